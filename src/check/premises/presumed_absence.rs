//! Deletions that presume the absence of another object (declared presumptions). Input: committed deletions, and the last
//! reads of their processes. Output: for each deletion what the revision order has against the presumption
//! ([`Counterevidence`]).

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

/// A committed deletion that presumes an absence.
#[derive(Clone, Copy, Debug)]
pub struct PresumedAbsence {
    /// The deletion.
    pub write: OperationId,
    /// The object that is presumed to be absent.
    pub target: KeyId,
    /// The evidence of the revision order against the presumption.
    pub counterevidence: Counterevidence,
}

/// The evidence of the revision order against a presumed absence.
#[derive(Clone, Copy, Debug)]
pub enum Counterevidence {
    /// The object existed when the deletion took effect: a version before it, and the proof that it still existed.
    Present(Version, ExistenceProof),
    /// Every absence that the process knew had ended before the deleted object was created: the last read of an absence, the
    /// version that ended the absence, and the first version of the deleted object.
    Outlived(LastRead, Version, Version),
    /// The object existed before, nothing shows its end, and the evidence does not show what the process saw.
    Open(Version),
    /// The evidence has nothing against it.
    Nothing,
}

/// The proof that an object still existed.
#[derive(Clone, Copy, Debug)]
pub enum ExistenceProof {
    /// Its life covers the revision of the deletion.
    Revision(Revision),
    /// A later change of the same object, sent after the deletion was answered.
    Later(Version),
}

/// Examines every committed deletion that a declared presumption names.
pub fn presumed(evidence: &Evidence<'_>) -> Vec<PresumedAbsence> {
    let candidates = candidates(evidence, &evidence.options.declarations.presumptions);
    if candidates.is_empty() {
        return Vec::new();
    }
    let basis = PremiseIndex::derive(evidence);
    let history = evidence.history;
    let known: FxHashSet<(IncarnationId, KeyId)> =
        candidates.iter().map(|&(write, target)| (history.operation(write).incarnation, target)).collect();
    let knowledge = ClientKnowledge::collect(evidence, &known);
    let deletions = PossibleDeletions::collect(history, candidates.iter().map(|(_, target)| *target).collect());
    let case = |&(write, target): &(OperationId, KeyId)| {
        let case = Case { evidence, basis: &basis, knowledge: &knowledge, deletions: &deletions, write, target };
        PresumedAbsence { write, target, counterevidence: case.counterevidence() }
    };
    candidates.iter().map(case).collect()
}

/// Deletions that a presumption names, each with the object that it presumes to be absent.
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
            // Two names without a group mean resources of one group.
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
                Some(path) => declared_text(evidence, &o, path).and_then(|text| history.names.find(&text)),
                None => Some(history.keys[o.key.index()].namespace),
            };
            let name = declared_text(evidence, &o, &presumption.target).and_then(|text| history.names.find(&text));
            let key = namespace.zip(name).and_then(|(namespace, name)| keys.get(&(*absent, namespace, name)));
            found.extend(key.map(|&target| (id, target)));
        }
    }
    found
}

/// The text at a path of a deleted object, in its last version in the evidence.
fn declared_text(evidence: &Evidence<'_>, o: &Operation, path: &Path) -> Option<String> {
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

/// Requests that may have ended an object, whether or not the revision order has that end.
pub struct PossibleDeletions {
    of: FxHashMap<KeyId, Vec<OperationId>>,
    /// Deletions of collections.
    many: Vec<OperationId>,
}

impl PossibleDeletions {
    /// Collects the requests that may have ended one of these objects.
    pub fn collect(history: &History, wanted: FxHashSet<KeyId>) -> PossibleDeletions {
        let mut deletions = PossibleDeletions { of: FxHashMap::default(), many: Vec::new() };
        for (id, o) in history.operations.all_of_verbs(&[Verb::Delete, Verb::DeleteCollection]) {
            let may_end = !o.marks.has(Marks::DRY_RUN) && o.outcome() != Outcome::Rejected;
            match o.verb {
                Verb::Delete if may_end && wanted.contains(&o.key) => deletions.of.entry(o.key).or_default().push(id),
                Verb::DeleteCollection if may_end => deletions.many.push(id),
                _ => {}
            }
        }
        deletions
    }

    /// The last version of an object before a write took effect, unless something shows, or may have caused, the object's end.
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
        let made = basis.validity.of(version.key, reading, Seen::default()).not_before(history);
        let many = self.many.iter().filter(|id| history.covers_key(history.operation(**id).scope, version.key));
        self.of.get(&version.key).into_iter().flatten().chain(many).any(|id| {
            let o = history.operation(*id);
            // A request that was answered before the object was made, or that names another uid, ended another object.
            let earlier = made.is_some_and(|made| clocks.before((o.ret, o.clock), made));
            let another = o.answer_uid.is_some() && version.uid.is_some() && o.answer_uid != version.uid;
            !earlier && !another && !clocks.is_answered_before(by, &o)
        })
    }
}

struct Case<'c, 'h> {
    evidence: &'c Evidence<'h>,
    basis: &'c PremiseIndex<'h>,
    knowledge: &'c ClientKnowledge,
    deletions: &'c PossibleDeletions,
    write: OperationId,
    target: KeyId,
}

impl<'h> Case<'_, 'h> {
    fn counterevidence(&self) -> Counterevidence {
        if let Some((version, existence)) = self.present() {
            return Counterevidence::Present(version, existence);
        }
        let (history, o) = (self.evidence.history, self.evidence.history.operation(self.write));
        let moment = (o.invoke, o.clock);
        let absences: Vec<(LastRead, ValidityInterval)> = self
            .knowledge
            .at_most(o.incarnation, self.target)
            .filter(|g| self.evidence.order.clocks.relation(g.moment, moment) != Relation::NotBefore)
            .filter_map(|g| Some((*g, self.absence(history, g)?)))
            .collect();
        let absences: Vec<(LastRead, ValidityInterval)> =
            absences.iter().filter(|(g, _)| !self.repeats_an_event(g, &absences)).copied().collect();
        let silent = self.knowledge.may_know_more(self.evidence, o.incarnation, self.target, BEGINNING, moment);
        if silent || absences.is_empty() {
            return self.unended().map_or(Counterevidence::Nothing, Counterevidence::Open);
        }
        // The latest absence that the process knew. One that nothing ended is in favour of the process.
        let Some(latest) = absences.iter().max_by_key(|(_, t)| t.through.unwrap_or(Revision::new(u128::MAX))) else {
            return Counterevidence::Nothing;
        };
        // If the object may have ended again by then, the presumption may be true.
        let outlived =
            latest.1.ended_by.zip(self.basis.birth_of_deleted(self.write)).filter(|_| self.unended().is_some());
        match outlived {
            Some((end, creation))
                if self.basis.before_commit(&end, self.write) && self.basis.before(&end, &creation) =>
            {
                Counterevidence::Outlived(latest.0, end, creation)
            }
            _ => Counterevidence::Nothing,
        }
    }

    /// Whether a cache read shows no more than an event of before, which told the process of the end. The cache is filled by the
    /// streams of the process.
    fn repeats_an_event(&self, read: &LastRead, absences: &[(LastRead, ValidityInterval)]) -> bool {
        let clocks = &self.evidence.order.clocks;
        let is_before = |(event, _): &(LastRead, ValidityInterval)| {
            matches!((event.shown, event.known), (Shown::Event(..), Known::End(_)))
                && clocks.before(event.moment, read.moment)
        };
        matches!(read.shown, Shown::Cache(_)) && absences.iter().any(is_before)
    }

    /// Proof that the object existed when the deletion took effect.
    fn present(&self) -> Option<(Version, ExistenceProof)> {
        let (evidence, basis) = (self.evidence, self.basis);
        let (history, order) = (evidence.history, evidence.order);
        let o = history.operation(self.write);
        let shared = history.share_counter(history.resource_of(o.key), history.resource_of(self.target));
        if let Some(commit) = basis.committed_at(self.write).filter(|_| shared)
            && basis.validity.presence().at(self.target, commit).is_some()
        {
            let version = order.timeline.at_or_before(self.target, commit)?;
            return Some((version, ExistenceProof::Revision(commit)));
        }
        // By time: shown before the deletion was sent, and changed again by a request that was sent after the deletion's
        // answer.
        let versions = order.timeline.versions(self.target);
        let lives = |v: &Version| v.change.lives() == Some(true) && v.uid.is_some();
        let before = versions.iter().filter(lives).rfind(|v| basis.before_commit(v, self.write))?;
        let later = versions.iter().filter(|v| lives(v) && v.uid == before.uid).find(|v| {
            let reading = Reading::Present { uid: v.uid, revision: v.revision };
            let sent = basis.validity.of(self.target, reading, Seen::default()).not_before(history);
            v.revision > before.revision && sent.is_some_and(|sent| order.clocks.before((o.ret, o.clock), sent))
        })?;
        Some((before, ExistenceProof::Later(later)))
    }

    /// A version of the object before the deletion, if nothing shows an end of it.
    fn unended(&self) -> Option<Version> {
        self.deletions.unended(self.evidence, self.basis, self.target, self.write)
    }

    /// The validity interval of an absence that the process saw; `None` if it saw none.
    fn absence(&self, history: &History, last_read: &LastRead) -> Option<ValidityInterval> {
        let validity = &self.basis.validity;
        let seen = match (last_read.known, last_read.shown) {
            (Known::Nothing, Shown::List(id)) => match validity.list_revision(id) {
                Some(revision) => Seen { from: revision, through: Some(revision) },
                None => Seen::default(),
            },
            (Known::Nothing, Shown::Answer(id)) => {
                let o = history.operation(id);
                let fresh = o.verb == Verb::Get && o.asked == Asked::Unset;
                validity.seen_by_request(self.target, &o, fresh)
            }
            (Known::Nothing, _) => validity.seen_by_moment(self.target, last_read.moment),
            (Known::End(uid), _) if uid.is_some() => self.after_the_end_of(uid),
            // An object that left a selection may still exist.
            (Known::End(_) | Known::Left(_), _) => Seen::default(),
            (Known::Life(_) | Known::Unsure, _) => return None,
        };
        Some(validity.of(self.target, Reading::Absent, seen))
    }

    /// The states right after an object's end, if the revision order has that end.
    fn after_the_end_of(&self, uid: Symbol) -> Seen {
        let versions = self.evidence.order.timeline.versions(self.target);
        let Some(last) = versions.iter().rposition(|v| v.uid == uid) else { return Seen::default() };
        let end = match (versions.get(last), versions.get(last + 1)) {
            (Some(v), _) if v.change == Change::Deleted => v.revision,
            (Some(v), Some(_)) => v.revision.next(),
            // Only the event shows the end, with a version of the living object.
            _ => return Seen::default(),
        };
        Seen { from: end, through: Some(end) }
    }
}

/// A moment before all others.
const BEGINNING: (Time, crate::history::ClockId) = (Time(i64::MIN), crate::history::ClockId::NONE);

/// The facts about the target: the version before the deletion, and the later change of the same object if there is one.
pub fn existence(evidence: &Evidence<'_>, version: &Version, existence: ExistenceProof) -> Vec<Fact> {
    let mut facts = vec![evidence.version(version, evidence.change_words(version))];
    if let ExistenceProof::Later(later) = existence {
        facts.push(evidence.version(&later, format!("{}: the same object", evidence.change_words(&later))));
    }
    facts
}
