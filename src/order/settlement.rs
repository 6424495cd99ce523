//! How T is rebuilt: every piece of evidence claims versions, and the claims are settled into one table.

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
    /// Rebuilds T.
    pub fn rebuild(history: &History) -> Timeline {
        let mut timeline = Timeline::default();
        let mut claims = Claims::new(history);
        witness_claims(history, &mut claims);
        timeline.operation_claims(history, &mut claims);
        stream_claims(history, &mut claims);
        timeline.settle(history, claims.rows);
        // Deletions come second: whether a DELETED event carries an earlier version shows only against the puts.
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
                // Only an accepted base proves that the version existed in this timeline.
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
                // Not every body shows whether anything still held the object.
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
                let after = if o.answered.is_some() { o.answered } else { o.asked_revision };
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
                        // With a selector, leaving it carries the version of the change that made the object leave; only a
                        // version that was itself inside the selection proves an old one.
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
                            // What leaves a selector by a change is the object that was changed, not another of its name.
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

    /// Sorts claims into versions.
    fn settle(&mut self, history: &History, mut claims: Vec<Claim>) {
        claims.sort_unstable_by(|a, b| Claim::order(history, a, b));
        self.versions = Table::with_capacity(claims.chunk_by(Claim::is_of_one_version).count());
        self.wrote = Flags::none(history.operations.len());
        for group in claims.chunk_by(Claim::is_of_one_version) {
            let version = self.fold(history, group);
            // A claim of a write is of the version that it was answered with.
            if version.writer.is_some() {
                self.wrote.set(version.writer.index());
            }
            self.versions.push(version);
        }
    }

    /// Puts deletions beside the versions, or into those that they are of.
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

    /// One version out of all claims of it: the most trusted one gives the place, the most specific one the change.
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
            // A reduced object of a trusted source says less than a whole one of another.
            if !named_otherwise(claim) && history.says_more(claim.attributes, version.attributes) {
                version.attributes = claim.attributes;
            }
            let specific = matches!(claim.change, Change::Created | Change::Updated | Change::Deleted);
            if specific && matches!(version.change, Change::Put | Change::Left) {
                version.change = claim.change;
            } else if version.change == Change::Left && claim.change == Change::Put {
                version.change = Change::Put;
            }
            if claim.writes {
                match writer {
                    // One request has at most one record a side, so two of one side are two requests.
                    Some(other)
                        if side(history, other) == side(history, claim) && other.operation != claim.operation =>
                    {
                        self.contradictions.push(Contradiction::TwoWrites(other.operation, claim.operation));
                    }
                    Some(_) => {}
                    None => writer = Some(claim),
                }
            }
        }
        // A patch without known base: its own answer made this version unless another write proves to be the writer or
        // someone showed it before.
        let writer = writer.or_else(|| {
            let writes = |c: &Claim| c.origin.provenance == Provenance::Write;
            let patch = group.iter().find(|c| writes(c) && c.change == Change::Put)?;
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
        // One revision, two keys: within every group of resources that share a counter for certain, and (weaker) a domain.
        let place = |at: &VersionId| {
            let key = self.versions.key(at.0 as usize);
            (history.domain_of(history.resource_of(key)), self.revision(*at), *at)
        };
        // Every resource's part is in order already, so this only merges them.
        let mut places: Vec<_> = self.by_resource.iter().flatten().map(place).collect();
        places.sort();
        let twins = places.windows(2).filter(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1));
        let twins: Vec<Contradiction> = twins.map(|pair| Contradiction::TwoKeys(pair[0].2, pair[1].2)).collect();
        self.contradictions.extend(twins);
    }

    /// How long each version was the present one at least: a list at L that shows it proves it through L.
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
            // The last known version of the object bounds the removal from below; a known deletion of it settles it.
            if let Some(last) = last.get(&(removal.key, removal.uid)) {
                removal.after = removal.after.max(*last);
            }
            let range = self.range_of(removal.key);
            // No version below that bound settles it.
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
                        // A later life of the name: the removal came before it.
                        removal.before = Some(version.revision);
                    }
                    continue;
                }
                match version.change {
                    // A deletion of unknown uid may be that of a later life.
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
                    if !self.versions.writer(index).is_some() {
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

    /// Of objects that were removed, by name and uid, the revision of the last known version.
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

    /// Whether a deletion came after a version that was there, or is the one that an answer shows: servers from 1.26 on answer with the
    /// deletion's own version.
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

    /// (after, through] of which a stream delivers every change, as far as its client recorded it without loss.
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

    /// Bounds removals of unknown revision by time: above everything that was complete when the request began, below every
    /// write that was sent after it had returned.
    pub fn bound_removals(&mut self, history: &History, clocks: &super::Clocks, heads: &super::Watermarks) {
        for removal in &mut self.removals {
            let o = history.operation(removal.operation);
            let resource = history.resource_of(removal.key);
            if let Some(head) = heads.before(history, clocks, resource, o.clock, o.invoke) {
                removal.after = removal.after.max(head.revision);
            }
            if let Some((revision, _)) = heads.after(history, clocks, resource, o.clock, o.ret) {
                removal.before = Some(removal.before.map_or(revision, |b| b.min(revision)));
            }
        }
    }
}

/// Which DELETED events of a stream carry the revision of the deletion. Servers before 1.10 put the version that the object had there:
/// but where a stream delivers every change, it would have delivered that version itself, and the event is known for what it is.
struct Dating {
    /// After this revision it delivers every change of its scope.
    base: Option<Revision>,
    /// Without that, of these objects: what it delivered of them before.
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

    /// Takes the next event: whether it dates a deletion, unless it carries a version that is known.
    fn by(&mut self, event: &Delivery) -> bool {
        match event.kind {
            // What was lost may be the version that the next one carries.
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

/// Whether events of a stream may be missing from its record.
fn is_lossy(history: &History, watch: &Operation) -> bool {
    history.files.get(watch.position.file.0 as usize).is_some_and(|file| file.problems > 0)
}

/// Whether an etcd witness shows everything between the last known version of a removed object and a deletion of its key: then no
/// other life fits in between.
fn seamless(history: &History, removal: &Removal, deletion: &Version) -> bool {
    removal.after.is_some()
        && history.witness_spans.iter().any(|span| {
            (!span.scope.is_some() || history.covers_key(span.scope, removal.key))
                && span.after <= removal.after
                && span.through >= deletion.revision
        })
}

/// Whether an operation removed its object: a delete answered with success that left nothing behind, or the write that took
/// the last finalizer away.
pub fn removes(o: &Operation) -> bool {
    if !o.is_answered() || o.marks.has(Marks::DRY_RUN) || !o.key.is_some() {
        return false;
    }
    match o.verb {
        // A delete answers with a Status that names the uid, or with the object: gone unless something holds it.
        Verb::Delete if o.subresource == Default::default() => {
            let object = o.answered.is_some();
            // Servers answer 202 where the object was not deleted at once (apiserver endpoints/handlers/delete.go).
            o.status != 202
                && o.marks.has(Marks::ANSWER_BODY)
                && (!object || !o.marks.has(Marks::TERMINATING) || o.marks.has(Marks::REMOVES))
        }
        Verb::Update | Verb::Patch => o.marks.has(Marks::REMOVES),
        _ => false,
    }
}

/// The revision after which a stream is known to deliver every change of its scope: its start, or the end of its initial
/// events. `None` where neither is known.
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

/// Whether a stream may have had a selector: nobody recorded the request of a saved one.
fn may_select(history: &History, watch: &Operation) -> bool {
    watch.asked == Asked::Unrecorded || !watch.scope.is_some() || history.is_selective(watch.scope)
}

/// Which uid a version has of those that its claims name, and whether that is certain where they differ: what a witness shows, or the
/// answers of writes. Else it is that of the most trusted one.
fn trusted_uid(group: &[Claim]) -> (Option<Fragment>, bool) {
    let named = |claim: &&Claim| claim.uid.is_some();
    let fragment = |claim: &Claim| Some(Fragment { origin: claim.origin, uid: claim.uid });
    let Some(first) = group.iter().find(named) else { return (None, false) };
    for provenance in [Provenance::Witness, Provenance::Write] {
        let mut shown = group.iter().filter(named).filter(|claim| claim.origin.provenance == provenance);
        if let Some(stands) = shown.next() {
            let certain = shown.all(|other| other.uid == stands.uid);
            return (fragment(if certain { stands } else { first }), certain);
        }
    }
    (fragment(first), false)
}

/// What tells by when a version was there: its most trusted claim that has a time, or an earlier one of the same clock. Where that is no
/// witness, it is the most trusted one.
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
                // Outside the initial part and without selector, ADDED is a creation.
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
