//! Input: 404 answers. Output: whether an object certainly existed under the name at the answered state, with the proof. Trap:
//! a 404 without a `Status` about the object says nothing about the name.

use crate::check::facts::staleness;
use crate::check::{Evidence, Fact};
use crate::history::{ClockId, KeyId, Marks, Operation, OperationId, Revision, Subresource, Symbol, Verb};
use crate::ingest::Time;
use crate::model::{Promise, promise};
use crate::order::{After, Provenance, Version, is_deliberate, remembers};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Whether an answer says that no object has the name. A 404 without `Status` is about the path: a resource that is not served
/// yet, or a subresource that does not exist.
pub fn is_absence(o: &Operation) -> bool {
    o.status == 404
        && o.key.is_some()
        && o.subresource == Subresource::None
        && o.marks.has(Marks::STATUS_ANSWER)
        && !o.marks.has(Marks::NO_RESOURCE)
}

/// Whether an object certainly had a name at a revision.
pub fn certainly_existed(evidence: &Evidence<'_>, key: KeyId, revision: Revision) -> bool {
    evidence.order.presence(evidence.history).at(key, revision).is_some()
}

/// The proof that an object had an absent name from a revision on until after the answer, so that the answer shows no state of
/// that revision or a later one. The first fact shows the object, and the second one the answer.
pub fn refuted(evidence: &Evidence<'_>, id: OperationId, o: &Operation, from: Revision) -> Option<Vec<Fact>> {
    let (history, order) = (evidence.history, evidence.order);
    let presence = order.presence(history);
    let life = presence.at(o.key, from)?;
    let (version, after) = presence.proof(o.key, from)?;
    let name = history.key_name(o.key);
    let shown = evidence.version(&version, format!("{name} existed at revision {}", version.revision));
    let mut facts = vec![shown, staleness::answer(evidence, id, from, "404 (not found)")];
    // The answer shows a state from the revision on, and before the first write that was sent after it.
    let later = order.watermarks.after_answer(history, &order.clocks, history.resource_of(o.key), o);
    if let Some((later, write)) = later.filter(|(later, _)| life.through.next() >= *later) {
        match after {
            After::Change(next) => facts.push(evidence.version(&next, evidence.change_words(&next))),
            After::Shown(list) => {
                facts.push(evidence.operation(list, life.through, format!("a list still showed {name}")));
            }
            After::Read(read) => {
                facts.push(evidence.operation(read, version.revision, format!("a read still showed {name}")))
            }
            After::Removed(by) => {
                facts.push(evidence.operation(by, version.revision, format!("{name} was removed later")))
            }
            After::Watched(watch) => {
                let says =
                    format!("a watch continued to revision {} or later without an event of its end", life.through);
                facts.push(evidence.operation(watch, version.revision, says));
            }
            After::Itself | After::Witness => {}
        }
        facts.push(evidence.request(write, later, format!("the write of revision {later} was sent after that answer")));
        return Some(facts);
    }
    // A request that was sent after the answer took effect above the state that the answer shows.
    let removed = |id: OperationId| {
        let by = history.operation(id);
        order.clocks.is_answered_before(o, &by)
    };
    let mut removals = order.timeline.removals_of(o.key, version.uid).iter().filter(|removal| removal.uid.is_some());
    if let Some(removal) = removals.find(|removal| removed(removal.operation)) {
        let says = format!(
            "{}, sent after that answer, removed it",
            history.request_name(&history.operation(removal.operation))
        );
        facts.push(evidence.operation(removal.operation, version.revision, says));
        return Some(facts);
    }
    let read = shown_after(evidence, o, &version)?;
    let of = history.operation(read);
    let revision = if of.answered.is_some() { of.answered } else { version.revision };
    let says =
        format!("{}, sent after that answer, showed the same uid, and one uid has one life", history.request_name(&of));
    facts.push(evidence.operation(read, revision, says));
    Some(facts)
}

/// A read without version that was sent after an answer, and shows the life of a version. The life existed at that answer.
fn shown_after(evidence: &Evidence<'_>, o: &Operation, version: &Version) -> Option<OperationId> {
    let (history, order) = (evidence.history, evidence.order);
    if !version.uid.is_some() {
        return None;
    }
    let presence = order.presence(history);
    let versions = order.timeline.versions(o.key);
    let last = versions.iter().rev().find(|v| v.uid == version.uid && v.change.lives() == Some(true));
    let reads = last.into_iter().chain([*version]).flat_map(|v| {
        let listed = presence.list_showing(order.timeline.present_through(&v), v.key, v.uid);
        presence.read_showing(&v).into_iter().chain(listed)
    });
    let recent = |id: &OperationId| {
        let read = history.operation(*id);
        promise(history, &read, None).0 == Promise::MostRecent && order.clocks.is_answered_before(o, &read)
    };
    reads.into_iter().find(recent)
}

/// An answer to a session that a name has no object.
#[derive(Clone, Copy, Debug)]
pub struct NotFoundAnswer {
    /// The time of the answer.
    pub time: Time,
    /// The answer shows the state of this revision or a later one.
    pub revision: Revision,
    /// The request.
    pub id: OperationId,
}

/// The 404 answers to every session, by session, name and clock.
#[derive(Debug, Default)]
pub struct NotFoundAnswers {
    /// Per clock, the answers with a higher revision than all before them, in order of time.
    of: FxHashMap<(u32, KeyId, ClockId), Vec<NotFoundAnswer>>,
}

impl NotFoundAnswers {
    /// Collects the answers to reads with a memory that are not deliberate.
    pub fn collect(evidence: &Evidence<'_>) -> NotFoundAnswers {
        let (history, order) = (evidence.history, evidence.order);
        let mut answers = NotFoundAnswers::default();
        // A 404 to a write may come from an admission webhook, about another object.
        for (id, o) in evidence.of_verbs(&[Verb::Get]) {
            let counts = is_absence(&o) && o.ret.is_known() && remembers(history, o.incarnation);
            if !counts || is_deliberate(&order.chains, id, &o) {
                continue;
            }
            let Some(revision) = reached(evidence, &o) else { continue };
            let session = order.sessions.index_of(o.incarnation);
            let of = answers.of.entry((session, o.key, o.clock)).or_default();
            of.push(NotFoundAnswer { time: o.ret, revision, id });
        }
        answers.of.values_mut().for_each(keep_rising);
        answers
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The answer with the highest revision that a session had before a request, if it reaches the given version.
    pub fn before(
        &self,
        evidence: &Evidence<'_>,
        o: &Operation,
        key: KeyId,
        version: Revision,
    ) -> Option<NotFoundAnswer> {
        let order = evidence.order;
        let of = self.of.get(&(order.sessions.index_of(o.incarnation), key, o.clock))?;
        let before = |answer: &NotFoundAnswer| order.clocks.before((answer.time, o.clock), (o.invoke, o.clock));
        let last = of.partition_point(before).checked_sub(1)?;
        Some(of[last]).filter(|answer| answer.revision >= version)
    }
}

/// Sorts the answers of one clock by time, and keeps those with a higher revision than all before them.
fn keep_rising(of: &mut Vec<NotFoundAnswer>) {
    of.sort_by_key(|answer| (answer.time, answer.id));
    let mut highest = Revision::NONE;
    of.retain(|answer| {
        let raises = answer.revision > highest;
        highest = highest.max(answer.revision);
        raises
    });
}

/// The 404 answers to reads of the most recent state, whoever read, and the lives of the names that they are about.
#[derive(Debug, Default)]
pub struct ConsistentNotFoundAnswers {
    /// By name and clock, as in [`NotFoundAnswers`].
    of: FxHashMap<KeyId, BTreeMap<ClockId, Vec<NotFoundAnswer>>>,
    /// The first version that certainly existed of each life.
    first_existing: FxHashMap<(KeyId, Symbol), Revision>,
}

impl ConsistentNotFoundAnswers {
    /// Collects them.
    pub fn collect(evidence: &Evidence<'_>) -> ConsistentNotFoundAnswers {
        let (history, timeline) = (evidence.history, &evidence.order.timeline);
        let mut fresh = ConsistentNotFoundAnswers::default();
        for (id, o) in evidence.of_verbs(&[Verb::Get]) {
            if !is_absence(&o) || !o.ret.is_known() || promise(history, &o, None).0 != Promise::MostRecent {
                continue;
            }
            let Some(revision) = reached(evidence, &o) else { continue };
            let of = fresh.of.entry(o.key).or_default().entry(o.clock).or_default();
            of.push(NotFoundAnswer { time: o.ret, revision, id });
        }
        fresh.of.values_mut().flat_map(BTreeMap::values_mut).for_each(keep_rising);
        for &key in fresh.of.keys() {
            for version in timeline.versions(key).iter() {
                if version.change.lives() == Some(true) && version.provenance < Provenance::Base {
                    fresh.first_existing.entry((key, version.uid)).or_insert(version.revision);
                }
            }
        }
        fresh
    }

    /// A 404 answer before a request, to a read that was sent when the life of a deletion existed or was over. So the
    /// deletion was complete before the request.
    pub fn after(&self, evidence: &Evidence<'_>, end: &Version, o: &Operation) -> Option<OperationId> {
        let first_existing =
            *self.first_existing.get(&(end.key, end.uid)).filter(|first_existing| **first_existing < end.revision)?;
        let is_before = |time, clock| evidence.order.clocks.is_before_request((time, clock), o);
        self.of.get(&end.key)?.iter().find_map(|(clock, of)| {
            let last = of.partition_point(|answer| is_before(answer.time, *clock)).checked_sub(1)?;
            (of[last].revision >= first_existing).then_some(of[last].id)
        })
    }
}

/// A revision that an absence certainly reached, if the server kept its promise and the process did not go back before.
fn reached(evidence: &Evidence<'_>, o: &Operation) -> Option<Revision> {
    let (history, order) = (evidence.history, evidence.order);
    let resource = history.resource_of(o.key);
    let watermark = || Some(order.watermarks.before_request(history, &order.clocks, resource, o)?.revision);
    let own = || {
        let frontier = order.frontiers.of(history, order, o.incarnation, resource)?;
        let of_key = [frontier.keys.get(&o.key), frontier.commits_of.get(&o.key)].into_iter().flatten();
        of_key
            .filter_map(|maxima| maxima.before(&order.clocks, o.clock, o.invoke))
            .map(|observation| observation.revision)
            .max()
    };
    match promise(history, o, None).0 {
        Promise::MostRecent => watermark(),
        Promise::NotOlderThan(minimum) => Some(minimum),
        _ => own(),
    }
}
