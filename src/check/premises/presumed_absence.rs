//! Deletions that take the absence of another object for granted (declared presumptions), and what T says to that.

use crate::check::facts::knowledge::{ClientKnowledge, Known, LastRead, Shown};
use crate::check::premises::premise_index::PremiseIndex;
use crate::check::{Evidence, Fact};
use crate::history::{
    Asked, History, IncarnationId, KeyId, Marks, Operation, OperationId, Outcome, ResourceId, Revision, Symbol, Verb,
};
use crate::ingest::Time;
use crate::model::declaration::{Path, Presumption};
use crate::order::{Change, Reading, Relation, Seen, ValidityInterval, Version, removes};
use rustc_hash::{FxHashMap, FxHashSet};

/// A committed deletion that took an absence for granted.
#[derive(Clone, Copy, Debug)]
pub struct PresumedAbsence {
    /// The deletion.
    pub write: OperationId,
    /// What was taken to be absent.
    pub target: KeyId,
    /// What T says.
    pub against: Against,
}

/// What T says to a presumed absence.
#[derive(Clone, Copy, Debug)]
pub enum Against {
    /// The object was there when the deletion took effect: a version before it, and what proves that it was still there.
    Present(Version, Stay),
    /// Every absence that the process knew of was over before the deleted object was even created: the last sight of an absence,
    /// the version that ended it, the first version of the deleted object.
    Outlived(LastRead, Version, Version),
    /// The object was there before, nothing shows its end, and what the process saw is not in the evidence.
    Open(Version),
    /// Nothing speaks against it.
    Nothing,
}

/// What proves that an object was still there.
#[derive(Clone, Copy, Debug)]
pub enum Stay {
    /// Its life covers the revision of the deletion.
    Revision(Revision),
    /// A later change of the same object, sent after the deletion was answered.
    Later(Version),
}

/// Looks into every committed deletion of which a declaration says what it takes for granted.
pub fn presumed(evidence: &Evidence<'_>) -> Vec<PresumedAbsence> {
    let candidates = candidates(evidence, &evidence.options.declarations.presumptions);
    if candidates.is_empty() {
        return Vec::new();
    }
    let basis = PremiseIndex::derive(evidence);
    let history = evidence.history;
    let known: FxHashSet<(IncarnationId, KeyId)> =
        candidates.iter().map(|&(write, target)| (history.operation(write).incarnation, target)).collect();
    let memories = ClientKnowledge::collect(evidence, &known);
    let ends = Ends::collect(history, candidates.iter().map(|(_, target)| *target).collect());
    let case = |&(write, target): &(OperationId, KeyId)| {
        let case = Case { evidence, basis: &basis, memories: &memories, ends: &ends, write, target };
        PresumedAbsence { write, target, against: case.against() }
    };
    candidates.iter().map(case).collect()
}

/// Deletions that a presumption speaks of, with what each takes to be absent.
fn candidates(evidence: &Evidence<'_>, presumptions: &[Presumption]) -> Vec<(OperationId, KeyId)> {
    let history = evidence.history;
    let resource = |id: ResourceId| {
        let resource = history.resources[id.index()];
        (history.name(resource.plural), history.name(resource.group))
    };
    let mut pairs: FxHashMap<ResourceId, Vec<(&Presumption, ResourceId)>> = FxHashMap::default();
    for presumption in presumptions {
        for from in evidence.resources_named(&presumption.deletes) {
            let group = resource(from).1;
            // Names without group mean one group.
            let one_group = presumption.deletes.group.is_none() && presumption.absent.group.is_none();
            let mut absent = evidence.resources_named(&presumption.absent).into_iter();
            let absent = absent.find(|&id| !one_group || resource(id).1 == group);
            if let Some(absent) = absent {
                pairs.entry(from).or_default().push((presumption, absent));
            }
        }
    }
    if pairs.is_empty() {
        return Vec::new();
    }
    let targets: FxHashSet<ResourceId> = pairs.values().flatten().map(|(_, absent)| *absent).collect();
    let mut keys: FxHashMap<(ResourceId, Symbol, Symbol), KeyId> = FxHashMap::default();
    for (index, key) in history.keys.iter().enumerate().filter(|(_, key)| targets.contains(&key.resource)) {
        keys.insert((key.resource, key.namespace, key.name), KeyId(index as u32));
    }
    let mut found = Vec::new();
    for (id, o) in evidence.of_verbs(&[Verb::Delete]) {
        let deletes = o.key.is_some() && evidence.committed(&o) && removes(&o);
        if !deletes || o.subresource != Default::default() {
            continue;
        }
        let Some(pairs) = pairs.get(&history.resource_of(o.key)) else { continue };
        for (presumption, absent) in pairs {
            if !presumption.speaks_of(history.client_name(o.incarnation)) {
                continue;
            }
            let namespace = match &presumption.namespace {
                Some(path) => said(evidence, &o, path).and_then(|text| history.names.find(&text)),
                None => Some(history.keys[o.key.index()].namespace),
            };
            let name = said(evidence, &o, &presumption.target).and_then(|text| history.names.find(&text));
            let key = namespace.zip(name).and_then(|(namespace, name)| keys.get(&(*absent, namespace, name)));
            found.extend(key.map(|&target| (id, target)));
        }
    }
    found
}

/// What a path of a deleted object leads to, in the last version of it that the evidence shows.
fn said(evidence: &Evidence<'_>, o: &Operation, path: &Path) -> Option<String> {
    let history = evidence.history;
    let key = history.keys[o.key.index()];
    match path.literal().as_slice() {
        ["metadata", "name"] => return Some(history.name(key.name).to_owned()),
        ["metadata", "namespace"] => return Some(history.name(key.namespace).to_owned()),
        _ => {}
    }
    let own = |v: &Version| v.uid == o.answer_uid && v.uid.is_some() && v.change.lives() == Some(true);
    let last = evidence.order.timeline.versions(o.key).iter().rfind(own)?;
    history.declared(o.key, last.uid, last.attributes)?.text(path)
}

/// Requests that may have ended an object, known or not.
pub struct Ends {
    of: FxHashMap<KeyId, Vec<OperationId>>,
    /// Deletions of many.
    many: Vec<OperationId>,
}

impl Ends {
    /// Those that may have ended one of these objects.
    pub fn collect(history: &History, wanted: FxHashSet<KeyId>) -> Ends {
        let mut ends = Ends { of: FxHashMap::default(), many: Vec::new() };
        for (id, o) in history.operations.all_of_verbs(&[Verb::Delete, Verb::DeleteCollection]) {
            let may_end = !o.marks.has(Marks::DRY_RUN) && o.outcome() != Outcome::Rejected;
            match o.verb {
                Verb::Delete if may_end && wanted.contains(&o.key) => ends.of.entry(o.key).or_default().push(id),
                Verb::DeleteCollection if may_end => ends.many.push(id),
                _ => {}
            }
        }
        ends
    }

    /// The last version of an object that was there before a write took effect, where nothing shows or may have been its end.
    pub fn unended(
        &self,
        evidence: &Evidence<'_>,
        basis: &PremiseIndex<'_>,
        key: KeyId,
        write: OperationId,
    ) -> Option<Version> {
        let versions = evidence.order.timeline.versions(key);
        let last = versions.iter().rfind(|v| basis.before_commit(v, write))?;
        let ended = versions.iter().any(|v| v.revision > last.revision && v.change.lives() != Some(true));
        let o = evidence.history.operation(write);
        (last.change.lives() == Some(true) && !ended && !self.may_have_ended(basis, evidence, &last, &o))
            .then_some(last)
    }

    /// Whether a request may have ended the object of a version before another request was answered.
    fn may_have_ended(
        &self,
        basis: &PremiseIndex<'_>,
        evidence: &Evidence<'_>,
        version: &Version,
        by: &Operation,
    ) -> bool {
        let (history, clocks) = (evidence.history, &evidence.order.clocks);
        let reading = Reading::Present { uid: version.uid, revision: version.revision };
        let made = basis.truths.of(version.key, reading, Seen::default()).not_before(history);
        let many = self.many.iter().filter(|id| history.covers_key(history.operation(**id).scope, version.key));
        self.of.get(&version.key).into_iter().flatten().chain(many).any(|id| {
            let o = history.operation(*id);
            // One that was answered before the object was made, or that names another one, ended another one.
            let earlier = made.is_some_and(|made| clocks.before((o.ret, o.clock), made));
            let another = o.answer_uid.is_some() && version.uid.is_some() && o.answer_uid != version.uid;
            !earlier && !another && !clocks.before((by.ret, by.clock), (o.invoke, o.clock))
        })
    }
}

struct Case<'c, 'h> {
    evidence: &'c Evidence<'h>,
    basis: &'c PremiseIndex<'h>,
    memories: &'c ClientKnowledge,
    ends: &'c Ends,
    write: OperationId,
    target: KeyId,
}

impl<'h> Case<'_, 'h> {
    fn against(&self) -> Against {
        if let Some((version, stay)) = self.present() {
            return Against::Present(version, stay);
        }
        let (history, o) = (self.evidence.history, self.evidence.history.operation(self.write));
        let moment = (o.invoke, o.clock);
        let absences: Vec<(LastRead, ValidityInterval)> = self
            .memories
            .at_most(o.incarnation, self.target)
            .filter(|g| self.evidence.order.clocks.relation(g.moment, moment) != Relation::NotBefore)
            .filter_map(|g| Some((*g, self.absence(history, g)?)))
            .collect();
        let silent = self.memories.may_know_more(self.evidence, o.incarnation, self.target, BEGINNING, moment);
        if silent || absences.is_empty() {
            return self.unended().map_or(Against::Nothing, Against::Open);
        }
        // The latest absence that it knew of; one that nothing ended speaks for the process.
        let Some(latest) = absences.iter().max_by_key(|(_, t)| t.through.unwrap_or(Revision::new(u128::MAX))) else {
            return Against::Nothing;
        };
        // Where the object may have ended again by then, what the process took for granted may be true.
        let outlived =
            latest.1.ended_by.zip(self.basis.birth_of_deleted(self.write)).filter(|_| self.unended().is_some());
        match outlived {
            Some((end, born)) if self.basis.before_commit(&end, self.write) && self.basis.before(&end, &born) => {
                Against::Outlived(latest.0, end, born)
            }
            _ => Against::Nothing,
        }
    }

    /// Proof that the object was there when the deletion took effect.
    fn present(&self) -> Option<(Version, Stay)> {
        let (evidence, basis) = (self.evidence, self.basis);
        let (history, order) = (evidence.history, evidence.order);
        let o = history.operation(self.write);
        let shared = history.share_counter(history.resource_of(o.key), history.resource_of(self.target));
        if let Some(commit) = basis.committed_at(self.write).filter(|_| shared)
            && basis.truths.presence().at(self.target, commit).is_some()
        {
            let version = order.timeline.at_or_before(self.target, commit)?;
            return Some((version, Stay::Revision(commit)));
        }
        // By time: shown before the deletion was sent, changed again by a request sent after its answer.
        let versions = order.timeline.versions(self.target);
        let lives = |v: &Version| v.change.lives() == Some(true) && v.uid.is_some();
        let before = versions.iter().filter(lives).rfind(|v| basis.before_commit(v, self.write))?;
        let later = versions.iter().filter(|v| lives(v) && v.uid == before.uid).find(|v| {
            let reading = Reading::Present { uid: v.uid, revision: v.revision };
            let sent = basis.truths.of(self.target, reading, Seen::default()).not_before(history);
            v.revision > before.revision && sent.is_some_and(|sent| order.clocks.before((o.ret, o.clock), sent))
        })?;
        Some((before, Stay::Later(later)))
    }

    /// A version of the object that was there before the deletion, and of which nothing shows an end.
    fn unended(&self) -> Option<Version> {
        self.ends.unended(self.evidence, self.basis, self.target, self.write)
    }

    /// When an absence that the process saw was true; `None` where it saw none.
    fn absence(&self, history: &History, glimpse: &LastRead) -> Option<ValidityInterval> {
        let truths = &self.basis.truths;
        let seen = match (glimpse.known, glimpse.shown) {
            (Known::Nothing, Shown::List(id)) => match truths.list_revision(id) {
                Some(revision) => Seen { from: revision, through: Some(revision) },
                None => Seen::default(),
            },
            (Known::Nothing, Shown::Answer(id)) => {
                let o = history.operation(id);
                let fresh = o.verb == Verb::Get && o.asked == Asked::Unset;
                truths.seen(self.target, o.clock, fresh.then_some(o.invoke), o.ret)
            }
            (Known::Nothing, _) => truths.seen(self.target, glimpse.moment.1, None, glimpse.moment.0),
            (Known::End(uid), _) if uid.is_some() => self.after_the_end_of(uid),
            // What left a selection may be anywhere.
            (Known::End(_) | Known::Left(_), _) => Seen::default(),
            (Known::Life(_) | Known::Unsure, _) => return None,
        };
        Some(truths.of(self.target, Reading::Absent, seen))
    }

    /// The states right after an object's end, where the order shows that it ended.
    fn after_the_end_of(&self, uid: Symbol) -> Seen {
        let versions = self.evidence.order.timeline.versions(self.target);
        let Some(last) = versions.iter().rposition(|v| v.uid == uid) else { return Seen::default() };
        let end = match (versions.get(last), versions.get(last + 1)) {
            (Some(v), _) if v.change == Change::Deleted => v.revision,
            (Some(v), Some(_)) => v.revision.next(),
            // Only the event says so, with a version that the object had while it lived.
            _ => return Seen::default(),
        };
        Seen { from: end, through: Some(end) }
    }
}

/// Before everything.
const BEGINNING: (Time, crate::history::ClockId) = (Time(i64::MIN), crate::history::ClockId::NONE);

/// The facts about the target: the version before the deletion, and what shows it still there.
pub fn stay(evidence: &Evidence<'_>, version: &Version, stay: Stay) -> Vec<Fact> {
    let mut facts = vec![evidence.version(version, evidence.change_words(version))];
    if let Stay::Later(later) = stay {
        facts.push(evidence.version(&later, format!("{}: the same object", evidence.change_words(&later))));
    }
    facts
}
