//! Reconstruction of the revision order: every piece of evidence claims versions, and all claims of one version settle into one
//! row of the table. Input: [`History`]. Output: [`Timeline`]. Claims that disagree become [`Contradiction`]s. Deletions settle
//! after all other versions, because a DELETED event is recognized as misdated only by comparison with them.

use super::claim::{Claim, Claims, claim_of, side};
use super::flags::Flags;
use super::timeline::*;
use super::version::{Change, Fragment, Origin, Provenance, Version, VersionId};
use super::versions::{Table, Until};
use crate::history::{
    Asked, AttributesId, ClockId, Delivery, DeliveryKind, History, KeyId, Marks, Operation, OperationId, Revision,
    Stream, StreamId, Symbol, Verb,
};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet};

impl Timeline {
    /// Rebuilds the revision order.
    pub fn rebuild(history: &History) -> Timeline {
        let mut timeline = Timeline::default();
        let mut claims = Claims::new(history);
        witness_claims(history, &mut claims);
        timeline.operation_claims(history, &mut claims);
        stream_claims(history, &mut claims);
        timeline.settle(history, claims.rows);
        // Deletions come second: only the other versions show whether a DELETED event carries an earlier version.
        let mut deletions = Vec::new();
        timeline.deletion_claims(history, &mut deletions);
        timeline.settle_deletions(history, deletions);
        timeline.index(history);
        timeline.bound_presence(history);
        timeline.resolve_removals(history);
        timeline.cover(history);
        timeline
    }

    fn operation_claims(&mut self, history: &History, claims: &mut Claims<'_>) {
        for (index, o) in history.operations.iter().enumerate() {
            let id = OperationId(index as u32);
            let claim = |key, uid, revision, change, attributes, provenance, writes| Claim {
                revision,
                key,
                uid,
                change,
                attributes,
                origin: Origin { provenance, row: id.0 },
                operation: id,
                writes,
            };
            if o.verb == Verb::Update && o.asked_revision.is_some() && o.key.is_some() && o.is_answered() {
                // Only an accepted base proves that the version existed in this domain.
                claims.observe(claim(
                    o.key,
                    o.request_uid,
                    o.asked_revision,
                    Change::Put,
                    AttributesId::NONE,
                    Provenance::Base,
                    false,
                ));
            }
            if !o.is_answered() || o.marks.has(Marks::DRY_RUN) {
                continue;
            }
            for item in history.items_of(&o).iter().filter(|i| i.revision.is_some()) {
                claims.observe_again(claim(
                    item.key,
                    item.uid,
                    item.revision,
                    Change::Put,
                    item.attributes,
                    Provenance::Read,
                    false,
                ));
            }
            if !o.key.is_some() || o.marks.has(Marks::LIST_ANSWER) {
                continue;
            }
            match o.verb {
                Verb::Get if o.answered.is_some() && o.subresource.answers_parent() => {
                    claims.observe(claim(
                        o.key,
                        o.answer_uid,
                        o.answered,
                        Change::Put,
                        o.attributes,
                        Provenance::Read,
                        false,
                    ));
                }
                Verb::Create if o.answered.is_some() && o.status == 201 && o.subresource == Default::default() => {
                    claims.push(claim(
                        o.key,
                        o.answer_uid,
                        o.answered,
                        Change::Created,
                        o.attributes,
                        Provenance::Write,
                        true,
                    ));
                }
                Verb::Update | Verb::Patch if o.answered.is_some() && !o.marks.has(Marks::REMOVES) => {
                    let proven = o.asked_revision.is_some() && o.answered > o.asked_revision;
                    let change = match (proven, o.status) {
                        (_, 201) => Change::Created,
                        (true, _) => Change::Updated,
                        _ => Change::Put,
                    };
                    let writes = o.shows_its_commit();
                    let provenance =
                        if writes || !o.asked_revision.is_some() { Provenance::Write } else { Provenance::Read };
                    claims.push(claim(o.key, o.answer_uid, o.answered, change, o.attributes, provenance, writes));
                }
                // Not every body shows whether a finalizer still held the object.
                Verb::Delete if o.answered.is_some() && o.marks.has(Marks::HELD) => {
                    claims.push(claim(
                        o.key,
                        o.answer_uid,
                        o.answered,
                        Change::Put,
                        o.attributes,
                        Provenance::Write,
                        false,
                    ));
                }
                _ => {}
            }
            if removes(&o) {
                // Kubernetes 1.37 answers a deletion with the revision of the removal, older servers with the version before it.
                let after = match o.verb {
                    _ if !o.answered.is_some() => o.asked_revision,
                    Verb::Delete => o.answered.previous(),
                    _ => o.answered,
                };
                self.removals.push(Removal { key: o.key, uid: o.answer_uid, operation: id, after, before: None });
                if o.answered.is_some() && o.verb != Verb::Delete {
                    let base = claim(
                        o.key,
                        o.answer_uid,
                        o.answered,
                        Change::Put,
                        AttributesId::NONE,
                        Provenance::Base,
                        false,
                    );
                    claims.observe(base);
                }
            }
        }
    }

    fn deletion_claims(&mut self, history: &History, claims: &mut Vec<Claim>) {
        for stream in &history.streams {
            let operation = history.operation(stream.operation);
            let (selective, recorded) = (may_select(history, &operation), operation.asked != Asked::Unrecorded);
            let mut delivered: FxHashSet<(KeyId, Revision)> = FxHashSet::default();
            let mut dating = Dating::of(history, stream, &operation);
            for index in stream.deliveries() {
                let d = &history.deliveries[index];
                if dating.by(d) {
                    self.dated.insert((d.key, d.revision));
                }
                match d.kind {
                    DeliveryKind::Added | DeliveryKind::Modified if selective => {
                        delivered.insert((d.key, d.revision));
                    }
                    DeliveryKind::Deleted if d.revision.is_some() => {
                        let put = self.version_at(d.key, d.revision).filter(|v| v.change.lives() == Some(true));
                        // An event for an object that leaves a selector carries the version of the change that made it leave.
                        // Only a version that was inside the selection proves that the event carries an earlier one.
                        let misdated = put.is_some_and(|v| {
                            (v.uid == d.uid || !v.uid.is_some() || !d.uid.is_some())
                                && (!selective
                                    || delivered.contains(&(d.key, d.revision))
                                    || (recorded
                                        && history.selects(operation.scope, v.key, v.attributes) == Some(true)))
                        });
                        if misdated {
                            self.misdated.insert(index as u32);
                            continue;
                        }
                        if selective && let Some(put) = put {
                            // The object that leaves a selector is the one that changed, not another object with its name.
                            let other = put.uid.is_some() && d.uid.is_some() && put.uid != d.uid;
                            if let Some((known, certain)) = put.shows_uid(history).filter(|_| other) {
                                let event = Origin { provenance: Provenance::Event, row: index as u32 };
                                let shown = [known, Fragment { origin: event, uid: d.uid }];
                                self.contradictions.push(Contradiction::TwoUids(d.key, d.revision, shown, certain));
                            }
                            continue;
                        }
                        claims.push(Claim {
                            revision: d.revision,
                            key: d.key,
                            uid: d.uid,
                            change: if selective { Change::Left } else { Change::Deleted },
                            attributes: AttributesId::NONE,
                            origin: Origin { provenance: Provenance::Event, row: index as u32 },
                            operation: stream.operation,
                            writes: false,
                        });
                    }
                    _ => {}
                }
            }
        }
    }

    /// Groups claims by version and settles each group.
    fn settle(&mut self, history: &History, mut claims: Vec<Claim>) {
        claims.sort_unstable_by(|a, b| Claim::order(history, a, b));
        self.versions = Table::with_capacity(claims.chunk_by(Claim::is_of_one_version).count());
        self.wrote = Flags::none(history.operations.len());
        for group in claims.chunk_by(Claim::is_of_one_version) {
            let version = self.fold(history, group);
            self.contradictions.extend(shown_deleted(history, group));
            // A claim with a writer is about the version that the write was answered with.
            if version.writer.is_some() {
                self.wrote.set(version.writer.index());
            }
            self.versions.push(version);
        }
    }

    /// Adds deletions to the table, or merges them into versions that exist already.
    fn settle_deletions(&mut self, history: &History, mut deletions: Vec<Claim>) {
        deletions.sort_unstable_by(|a, b| Claim::order(history, a, b));
        let mut new = Vec::new();
        for group in deletions.chunk_by(Claim::is_of_one_version) {
            let (key, revision) = (group[0].key, group[0].revision);
            match self.versions.find(key, revision) {
                Ok(at) => {
                    let known = self.versions.get(at);
                    let mut all = vec![claim_of(history, &known)];
                    if known.dated != known.origin() {
                        all.push(Claim {
                            uid: Symbol::NONE,
                            change: Change::Put,
                            attributes: AttributesId::NONE,
                            origin: known.dated,
                            operation: known.dated.operation(history),
                            ..all[0]
                        });
                    }
                    all.extend_from_slice(group);
                    all.sort_unstable_by(|a, b| Claim::order(history, a, b));
                    let folded = self.fold(history, &all);
                    self.versions.set(at, Version { writer: known.writer, ..folded });
                }
                Err(at) => {
                    let folded = self.fold(history, group);
                    new.push((at, Version { writer: OperationId::NONE, ..folded }));
                }
            }
        }
        self.versions.insert(&new);
    }

    /// Merges all claims of one version. The most trusted claim gives key and revision, the most specific one the kind of change.
    fn fold(&mut self, history: &History, group: &[Claim]) -> Version {
        let head = group[0];
        let (known, certain) = trusted_uid(group);
        let named_otherwise = |claim: &Claim| known.is_some_and(|known| claim.uid.is_some() && claim.uid != known.uid);
        let mut version = Version {
            revision: head.revision,
            key: head.key,
            uid: known.map_or(Symbol::NONE, |known| known.uid),
            change: head.change,
            attributes: if named_otherwise(&head) { AttributesId::NONE } else { head.attributes },
            writer: OperationId::NONE,
            provenance: head.origin.provenance,
            row: head.origin.row,
            dated: dated_by(history, head.origin, group.iter().filter(|claim| !named_otherwise(claim))),
        };
        let mut writer: Option<&Claim> = None;
        for claim in group {
            if let Some(known) = known.filter(|_| named_otherwise(claim)) {
                let shown = [known, Fragment { origin: claim.origin, uid: claim.uid }];
                self.contradictions.push(Contradiction::TwoUids(head.key, head.revision, shown, certain));
            } else if claim.uid.is_some()
                && let Some(difference) = history.difference(version.attributes, claim.attributes)
            {
                let fragment = Fragment { origin: claim.origin, uid: claim.uid };
                self.contradictions.push(Contradiction::TwoContents(head.key, head.revision, fragment, difference));
            }
            // A reduced object of a trusted source has fewer fields than a whole one of another source.
            if !named_otherwise(claim) && history.says_more(claim.attributes, version.attributes) {
                version.attributes = claim.attributes;
            }
            let specific = matches!(claim.change, Change::Created | Change::Updated | Change::Deleted);
            if specific && matches!(version.change, Change::Put | Change::Left) {
                version.change = claim.change;
            }
            if claim.writes {
                match writer {
                    // A request has at most one record per side, so two records of one side are two requests.
                    Some(other)
                        if side(history, other) == side(history, claim) && other.operation != claim.operation =>
                    {
                        self.contradictions.push(Contradiction::TwoWrites(other.operation, claim.operation));
                    }
                    // Of two records of one request, the client's tells which process wrote.
                    Some(_) if !side(history, claim) => {}
                    _ => writer = Some(claim),
                }
            }
        }
        // A patch without known base made this version, unless another write proves to be the writer or earlier evidence shows
        // the version before the patch was sent.
        let writer = writer.or_else(|| {
            let writes = |c: &Claim| c.origin.provenance == Provenance::Write;
            let patches = || group.iter().filter(|c| writes(c) && c.change == Change::Put);
            let patch = patches().find(|c| side(history, c)).or_else(|| patches().next())?;
            let o = history.operation(patch.operation);
            let earlier = group.iter().any(|c| {
                c.operation != patch.operation && c.clock(history) == o.clock && c.origin.time(history) < o.invoke
            });
            let mut claimants = group.iter().filter(|c| writes(c) && c.operation.is_some());
            (!earlier && claimants.all(|c| history.are_one_request(c.operation, patch.operation))).then_some(patch)
        });
        version.writer = writer.map_or(OperationId::NONE, |writer| writer.operation);
        version
    }

    fn index(&mut self, history: &History) {
        self.key_starts = vec![0; history.keys.len() + 1];
        for index in 0..self.versions.len() {
            self.key_starts[self.versions.key(index).index() + 1] += 1;
        }
        for key in 0..history.keys.len() {
            self.key_starts[key + 1] += self.key_starts[key];
        }
        self.by_resource = vec![Vec::new(); history.resources.len()];
        for index in 0..self.versions.len() {
            let resource = history.resource_of(self.versions.key(index));
            self.by_resource[resource.index()].push(VersionId(index as u32));
        }
        for list in &mut self.by_resource {
            list.sort_by_cached_key(|v| (self.versions.revision(v.0 as usize), *v));
        }
        // One revision for two keys is a contradiction within a domain.
        let place = |at: &VersionId| {
            let key = self.versions.key(at.0 as usize);
            (history.domain_of(history.resource_of(key)), self.revision(*at), *at)
        };
        // The part of each resource is sorted already, so this sort merges them.
        let mut places: Vec<_> = self.by_resource.iter().flatten().map(place).collect();
        places.sort();
        let twins = places.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
        let twins: Vec<Contradiction> = twins.map(|pair| Contradiction::TwoKeys(pair[0].2, pair[1].2)).collect();
        self.contradictions.extend(twins);
    }

    /// How long each version was at least the current one: a list at revision L that shows it proves this through L.
    fn bound_presence(&mut self, history: &History) {
        let mut shown: Vec<(VersionId, OperationId)> = Vec::new();
        for (list, o) in history.operations.of_marks(Marks::LIST_ANSWER) {
            if !o.is_answered() || !o.answered.is_some() {
                continue;
            }
            let items = history.items_of(&o).iter().filter(|item| item.revision <= o.answered);
            shown.extend(items.filter_map(|item| Some((self.id_at(item.key, item.revision)?, list))));
        }
        shown.sort_unstable();
        let answered = |&(_, list): &(VersionId, OperationId)| history.operations.answered(list.index());
        let latest =
            |lists: &[(VersionId, OperationId)]| (lists[0].0, lists.iter().map(answered).max().unwrap_or_default());
        self.until = Until::new(shown.chunk_by(|a, b| a.0 == b.0).map(latest));
    }

    fn resolve_removals(&mut self, history: &History) {
        let mut removals = std::mem::take(&mut self.removals);
        let last = self.last_versions(&removals);
        removals.retain_mut(|removal| {
            // The last known version bounds the removal from below; a known deletion settles it.
            if let Some(last) = last.get(&(removal.key, removal.uid)) {
                removal.after = removal.after.max(*last);
            }
            let range = self.range_of(removal.key);
            // A version below that bound cannot settle it.
            let below = match removal.after.is_some() {
                true => self.versions.part(range.clone()).through(removal.after.previous()),
                false => 0,
            };
            let mut settled = None;
            for index in range.start + below..range.end {
                let version = self.versions.get(index);
                if settled.is_some() || removal.before.is_some() {
                    break;
                }
                if removal.uid.is_some() && version.uid != removal.uid && version.uid.is_some() {
                    let later = removal.after.is_some() && version.revision > removal.after;
                    if later && removal.before.is_none() && version.change != Change::Deleted {
                        // The name is in use again, so the removal came before this version.
                        removal.before = Some(version.revision);
                    }
                    continue;
                }
                match version.change {
                    // A deletion of unknown uid may be that of a later incarnation.
                    Change::Deleted
                        if self.is_after(&version, removal.after)
                            && (version.uid.is_some() && removal.uid.is_some()
                                || seamless(history, removal, &version)) =>
                    {
                        settled = Some(index);
                    }
                    _ => {}
                }
            }
            match settled {
                Some(index) => {
                    let known = self.versions.writer(index);
                    let is_shadow = known.is_some() && history.operation(known).marks.has(Marks::SHADOW);
                    // Of two records of one request, the client's tells which process wrote.
                    if !known.is_some() || is_shadow && history.are_one_request(known, removal.operation) {
                        self.versions.set_writer(index, removal.operation);
                    }
                    false
                }
                None => true,
            }
        });
        removals.sort_by_key(|r| (r.key, r.uid, r.after));
        self.removed = Flags::none(history.keys.len());
        removals.iter().filter(|r| r.key.is_some()).for_each(|r| self.removed.set(r.key.index()));
        self.removals = removals;
    }

    /// The revision of the last known version of each removed object, by name and uid.
    fn last_versions(&self, removals: &[Removal]) -> FxHashMap<(KeyId, Symbol), Revision> {
        let with_uid = removals.iter().filter(|removal| removal.key.is_some() && removal.uid.is_some());
        let mut last: FxHashMap<(KeyId, Symbol), Revision> =
            with_uid.map(|removal| ((removal.key, removal.uid), Revision::NONE)).collect();
        let keys: FxHashSet<KeyId> = last.keys().map(|(key, _)| *key).collect();
        for key in keys {
            for v in self.versions.part(self.range_of(key)).iter() {
                if !matches!(v.change, Change::Deleted | Change::Left)
                    && let Some(last) = last.get_mut(&(key, v.uid))
                {
                    *last = v.revision;
                }
            }
        }
        last
    }

    /// Whether a deletion came after a version that existed, or is the version that the answer shows. Servers since 1.26 answer
    /// with the deletion's own version.
    fn is_after(&self, deletion: &Version, shown: Revision) -> bool {
        deletion.revision > shown || (deletion.revision == shown && self.is_dated(deletion))
    }

    fn cover(&mut self, history: &History) {
        for span in &history.witness_spans {
            self.spans.push(Span {
                after: span.after,
                through: span.through,
                scope: span.scope,
                provenance: Provenance::Witness,
                position: span.position,
            });
        }
        for stream in &history.streams {
            let operation = history.operation(stream.operation);
            if let Some((after, through)) = self.delivered(history, stream, &operation) {
                let (scope, position) = (operation.scope, operation.position);
                self.spans.push(Span { after, through, scope, provenance: Provenance::Event, position });
            }
        }
        self.spans.sort_by_key(|s| (s.scope, s.after, s.through));
    }

    /// (after, through] in which a stream delivers every change of its scope; `None` if its record may have gaps.
    fn delivered(&self, history: &History, stream: &Stream, watch: &Operation) -> Option<(Revision, Revision)> {
        if is_lossy(history, watch) || may_select(history, watch) {
            return None;
        }
        let after = stream_base(history, stream.id)?;
        let mut through = Revision::NONE;
        for index in stream.deliveries() {
            let d = &history.deliveries[index];
            match d.kind {
                DeliveryKind::Unidentified => return None,
                DeliveryKind::Error => break,
                _ if self.is_misdated(index) => {}
                _ => through = through.max(d.revision),
            }
        }
        (through > after).then_some((after, through))
    }

    /// Bounds removals of unknown revision by time: above everything that was complete when the request was sent, below every
    /// write that was sent after its return.
    pub fn bound_removals(&mut self, history: &History, clocks: &super::Clocks, watermarks: &super::Watermarks) {
        for removal in &mut self.removals {
            let o = history.operation(removal.operation);
            let resource = history.resource_of(removal.key);
            if let Some(watermark) = watermarks.before_request(history, clocks, resource, &o) {
                removal.after = removal.after.max(watermark.revision);
            }
            if let Some((revision, _)) = watermarks.after_answer(history, clocks, resource, &o) {
                removal.before = Some(removal.before.map_or(revision, |b| b.min(revision)));
            }
        }
        // All records of one removal share the tightest bounds.
        for records in self.removals.chunk_by_mut(|a, b| (a.key, a.uid) == (b.key, b.uid)) {
            let after = records.iter().map(|removal| removal.after).max().unwrap_or_default();
            let before = records.iter().filter_map(|removal| removal.before).min();
            let agree = before.is_none_or(|before| after < before);
            for removal in records.iter_mut().filter(|removal| removal.uid.is_some() && agree) {
                (removal.after, removal.before) = (after, before);
            }
        }
    }
}

/// Decides which DELETED events of a stream carry the revision of the deletion. Servers before 1.10 sent the version that the
/// object had last. A stream that delivers every change would have delivered that version as an event of its own.
struct Dating {
    /// The stream delivers every change of its scope after this revision.
    base: Option<Revision>,
    /// Without a base: the last version that the stream delivered of each object.
    delivered: Option<FxHashMap<KeyId, (Symbol, Revision)>>,
}

impl Dating {
    fn of(history: &History, stream: &Stream, watch: &Operation) -> Dating {
        if is_lossy(history, watch) || may_select(history, watch) {
            return Dating { base: None, delivered: None };
        }
        let base = stream_base(history, stream.id);
        let deletes = || history.deliveries_of(stream).iter().any(|d| d.kind == DeliveryKind::Deleted);
        Dating { base, delivered: (base.is_none() && deletes()).then(FxHashMap::default) }
    }

    /// Reads the next event. Returns whether it dates a deletion, provided that no known put has its revision.
    fn by(&mut self, event: &Delivery) -> bool {
        match event.kind {
            // The lost event may have delivered the version that the next one carries.
            DeliveryKind::Unidentified => *self = Dating { base: None, delivered: None },
            DeliveryKind::Added | DeliveryKind::Modified => {
                if let Some(delivered) = &mut self.delivered {
                    delivered.insert(event.key, (event.uid, event.revision));
                }
            }
            DeliveryKind::Deleted if event.key.is_some() && event.uid.is_some() => {
                let before = self.delivered.as_mut().and_then(|delivered| delivered.remove(&event.key));
                let goes_on = before.is_some_and(|(uid, last)| uid == event.uid && last < event.revision);
                return goes_on || self.base.is_some_and(|base| base < event.revision);
            }
            _ => {}
        }
        false
    }
}

/// Whether the record of a stream may have lost events.
fn is_lossy(history: &History, watch: &Operation) -> bool {
    history.files.get(watch.position.file.0 as usize).is_some_and(|file| file.problems > 0)
}

/// Whether an etcd witness covers everything from the last known version of a removed object to a deletion of its key. No other
/// incarnation fits in between then.
fn seamless(history: &History, removal: &Removal, deletion: &Version) -> bool {
    removal.after.is_some()
        && history.witness_spans.iter().any(|span| {
            (!span.scope.is_some() || history.covers_key(span.scope, removal.key))
                && span.after <= removal.after
                && span.through >= deletion.revision
        })
}

/// Whether an operation removed its object: a successful delete that left nothing behind, or the write that removed the last
/// finalizer.
pub fn removes(o: &Operation) -> bool {
    if !o.is_answered() || o.marks.has(Marks::DRY_RUN) || !o.key.is_some() {
        return false;
    }
    match o.verb {
        // A delete answers with a Status that names the uid, or with the object; the object is gone unless something holds it.
        Verb::Delete if o.subresource == Default::default() => {
            let object = o.answered.is_some();
            // Servers answer 202 if the object was not deleted at once (apiserver, endpoints/handlers/delete.go).
            o.status != 202
                && o.marks.has(Marks::ANSWER_BODY)
                && (!object || !o.marks.has(Marks::TERMINATING) || o.marks.has(Marks::REMOVES))
        }
        Verb::Update | Verb::Patch => o.marks.has(Marks::REMOVES),
        _ => false,
    }
}

/// The revision after which a stream delivers every change of its scope: its start, or the end of its initial events. `None` if
/// neither is known.
pub fn stream_base(history: &History, stream: StreamId) -> Option<Revision> {
    let stream = &history.streams[stream.index()];
    let operation = history.operation(stream.operation);
    let deliveries = history.deliveries_of(stream);
    if let Some(end) = deliveries.iter().find(|d| d.kind == DeliveryKind::InitialEventsEnd) {
        return end.revision.known();
    }
    let plain = operation.asked == Asked::From && !operation.marks.has(Marks::INITIAL_EVENTS);
    plain.then_some(operation.asked_revision)
}

/// Whether a stream may have had a selector. A saved stream may lack the record of its request.
fn may_select(history: &History, watch: &Operation) -> bool {
    watch.asked == Asked::Unrecorded || !watch.scope.is_some() || history.is_selective(watch.scope)
}

/// The uid of a version among those that its claims name, and whether it is certain despite differences. It is certain if all
/// witness events, or else all write answers, agree. Otherwise the most trusted claim decides.
fn trusted_uid(group: &[Claim]) -> (Option<Fragment>, bool) {
    let named = |claim: &&Claim| claim.uid.is_some();
    let fragment = |claim: &Claim| Some(Fragment { origin: claim.origin, uid: claim.uid });
    let Some(first) = group.iter().find(named) else { return (None, false) };
    for provenance in [Provenance::Witness, Provenance::Write] {
        let mut shown = group.iter().filter(named).filter(|claim| claim.origin.provenance == provenance);
        if let Some(agreed) = shown.next() {
            let certain = shown.all(|other| other.uid == agreed.uid);
            return (fragment(if certain { agreed } else { first }), certain);
        }
    }
    (fragment(first), false)
}

/// The first claim that shows an object at a revision at which a witness shows the deletion of its key. Only reads, lists,
/// events and answers to creations count. Another write may have deleted the object itself, and its answer then may carry the
/// revision of the deletion. A saved file may hold the object of a DELETED event without its type, as `kubectl get -w -o json`
/// prints it.
fn shown_deleted(history: &History, group: &[Claim]) -> Option<Contradiction> {
    let witnessed = group.iter().take_while(|claim| claim.origin.provenance == Provenance::Witness);
    if !witnessed.clone().any(|claim| claim.change == Change::Deleted) {
        return None;
    }
    let shows = |claim: &&Claim| {
        claim.change.lives() == Some(true)
            && match claim.origin.provenance {
                Provenance::Event => true,
                Provenance::Write | Provenance::Read => {
                    let o = history.operation(claim.operation);
                    matches!(o.verb, Verb::Get | Verb::List | Verb::Create) && !o.marks.has(Marks::SAVED)
                }
                Provenance::Witness | Provenance::Base => false,
            }
    };
    let shown = group[witnessed.count()..].iter().find(shows)?;
    let fragment = Fragment { origin: shown.origin, uid: shown.uid };
    Some(Contradiction::ShownDeleted(shown.key, shown.revision, fragment))
}

/// The evidence that dates a version: the most trusted claim, or for a witness, which has no time, the earliest claim with the
/// clock of the first that has one.
fn dated_by<'c>(history: &History, head: Origin, claims: impl Iterator<Item = &'c Claim>) -> Origin {
    if head.provenance != Provenance::Witness {
        return head;
    }
    let mut found: Option<(Origin, (Time, ClockId))> = None;
    for claim in claims {
        let (time, clock) = claim.origin.moment(history);
        let earlier = found.is_none_or(|(_, known)| known.1 == clock && time < known.0);
        if time.is_known() && earlier {
            found = Some((claim.origin, (time, clock)));
        }
    }
    found.map_or(head, |(origin, _)| origin)
}

fn witness_claims(history: &History, claims: &mut Claims<'_>) {
    for (row, e) in history.witness.iter().enumerate().filter(|(_, e)| e.key.is_some()) {
        let change = if e.tombstone {
            Change::Deleted
        } else if e.created == e.revision {
            Change::Created
        } else {
            Change::Updated
        };
        claims.push(Claim {
            revision: e.revision,
            key: e.key,
            uid: e.uid,
            change,
            attributes: e.attributes,
            origin: Origin { provenance: Provenance::Witness, row: row as u32 },
            operation: OperationId::NONE,
            writes: false,
        });
    }
}

fn stream_claims(history: &History, claims: &mut Claims<'_>) {
    for stream in &history.streams {
        let operation = history.operation(stream.operation);
        let start = if operation.asked == Asked::From && !operation.marks.has(Marks::INITIAL_EVENTS) {
            Some(operation.asked_revision)
        } else {
            None
        };
        let selective = may_select(history, &operation);
        for row in stream.deliveries() {
            let d = &history.deliveries[row];
            if !d.revision.is_some() || !d.key.is_some() {
                continue;
            }
            let change = match d.kind {
                // After the start of a stream without selector, ADDED is a creation.
                DeliveryKind::Added if !selective && start.is_some_and(|s| d.revision > s) => Change::Created,
                DeliveryKind::Modified if !selective => Change::Updated,
                DeliveryKind::Added | DeliveryKind::Modified => Change::Put,
                _ => continue,
            };
            claims.observe_again(Claim {
                revision: d.revision,
                key: d.key,
                uid: d.uid,
                change,
                attributes: d.attributes,
                origin: Origin { provenance: Provenance::Event, row: row as u32 },
                operation: stream.operation,
                writes: false,
            });
        }
    }
}
