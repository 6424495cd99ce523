//! When each revision was known to exist, and answers that are older than earlier evidence ([`Backward`]). Intervals are closed:
//! an answer at the very send time of a request is concurrent with it.

use super::effects::{Class, Effects};
use crate::history::etcd::{Operation, Outcome, Recording, Request};
use crate::ingest::Time;

/// The evidence that a revision existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// An operation's answer.
    Operation(u32),
    /// A watch response: the watch, and the response's index.
    Response(u32, u32),
}

impl Proof {
    /// The operation, if its answer is the evidence.
    pub fn operation(self) -> Option<u32> {
        match self {
            Proof::Operation(at) => Some(at),
            Proof::Response(..) => None,
        }
    }
}

/// The highest revision that a proof shows to exist.
pub fn proved(recording: &Recording, proof: Proof) -> i64 {
    match proof {
        Proof::Operation(at) => match recording.operations[at as usize].request {
            Request::Compact { revision } => revision,
            _ => recording.operations[at as usize].revision,
        },
        Proof::Response(_, n) => {
            let response = &recording.responses[n as usize];
            let events = response.events.of(&recording.events).iter().map(|event| event.revision);
            events.chain(response.progress.then_some(response.revision)).max().unwrap_or(0)
        }
    }
}

/// The time at which a client had the proof.
pub fn seen_at(recording: &Recording, proof: Proof) -> Time {
    match proof {
        Proof::Operation(at) => recording.operations[at as usize].returned,
        Proof::Response(_, n) => recording.responses[n as usize].time,
    }
}

/// The times at which revisions were proved to exist.
#[derive(Debug, Default)]
pub struct Proofs {
    /// Time, highest revision proved by then, and proof; both ascend.
    by_time: Vec<(Time, i64, Proof)>,
    /// Revision, earliest time at which it or a later one was proved, and proof; both ascend.
    by_revision: Vec<(i64, Time, Proof)>,
}

/// An operation whose answer is older than evidence that was complete when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backward {
    /// The earlier evidence with the highest place: an answer or a watch response.
    pub earlier: Proof,
    /// The later operation, which has a lower place.
    pub later: u32,
}

impl Proofs {
    /// Collects the proofs of all answers and watch responses.
    pub fn of(recording: &Recording) -> Proofs {
        let answers = (0..).zip(&recording.operations).filter_map(|(at, operation)| {
            let revision = shown(operation).filter(|_| operation.returned.is_known())?;
            Some((operation.returned, revision, Proof::Operation(at)))
        });
        let count = recording.operations.len() + recording.responses.len();
        Proofs::from(first_sights(answers.chain(told(recording)), count))
    }

    fn from(mut all: Vec<(Time, i64, Proof)>) -> Proofs {
        all.sort_by_key(|(time, revision, _)| (*time, std::cmp::Reverse(*revision)));
        let mut by_time: Vec<(Time, i64, Proof)> = Vec::new();
        for proof in &all {
            if by_time.last().is_none_or(|last| last.1 < proof.1) {
                by_time.push(*proof);
            }
        }
        // Only the highest revision of each time is kept, so the order by time is also that by revision.
        let by_revision = by_time.iter().map(|(time, revision, proof)| (*revision, *time, *proof)).collect();
        Proofs { by_time, by_revision }
    }

    /// The highest revision that was proved before a time, with the proof.
    pub fn before(&self, time: Time) -> Option<(i64, Proof)> {
        let at = self.by_time.partition_point(|(other, ..)| *other < time);
        self.by_time[..at].last().map(|(_, revision, proof)| (*revision, *proof))
    }

    /// The highest revision that was proved before a time. `hint`: the row of the previous query, which is mostly a little
    /// earlier; gallops from there.
    fn highest_before(&self, time: Time, hint: &mut usize) -> Option<i64> {
        let rows = &self.by_time;
        if *hint > 0 && rows[*hint - 1].0 >= time {
            *hint = 0;
        }
        let mut step = 1;
        while rows.get(*hint + step - 1).is_some_and(|(other, ..)| *other < time) {
            *hint += step;
            step *= 2;
        }
        let end = (*hint + step).min(rows.len());
        *hint += rows[*hint..end].partition_point(|(other, ..)| *other < time);
        rows[..*hint].last().map(|(_, revision, _)| *revision)
    }

    /// When a revision or a later one was first proved to exist.
    pub fn first(&self, revision: i64) -> Option<(Time, Proof)> {
        let at = self.by_revision.partition_point(|(other, ..)| *other < revision);
        self.by_revision.get(at).map(|(_, time, proof)| (*time, *proof))
    }

    /// The highest proved revision; 1, that of the empty store, without proofs.
    pub fn last(&self) -> i64 {
        self.by_time.last().map_or(1, |(_, revision, _)| *revision)
    }
}

/// The first proof of each revision, because most revisions are proved many times. Revisions that are implausibly high for
/// `count` records keep all their proofs.
fn first_sights(all: impl Iterator<Item = (Time, i64, Proof)>, count: usize) -> Vec<(Time, i64, Proof)> {
    let mut first: Vec<Option<(Time, Proof)>> = Vec::new();
    let mut others = Vec::new();
    for (time, revision, proof) in all {
        let Some(at) = usize::try_from(revision).ok().filter(|at| at / 2 <= count) else {
            others.push((time, revision, proof));
            continue;
        };
        if first.len() <= at {
            first.resize(at + 1, None);
        }
        if first[at].is_none_or(|(other, _)| time < other) {
            first[at] = Some((time, proof));
        }
    }
    let sights = (0..).zip(first).filter_map(|(revision, first)| first.map(|(time, proof)| (time, revision, proof)));
    others.extend(sights);
    others
}

/// The revision that an answer shows to exist.
fn shown(operation: &Operation) -> Option<i64> {
    match operation.request {
        Request::Compact { revision } => (operation.outcome == Outcome::Answered).then_some(revision),
        _ => (operation.revision > 0).then_some(operation.revision),
    }
}

/// Proofs of watch responses: time, revision, response.
fn told(recording: &Recording) -> impl Iterator<Item = (Time, i64, Proof)> {
    (0..).zip(&recording.watches).flat_map(move |(at, watch)| {
        (watch.responses.start..watch.responses.start + watch.responses.len).filter_map(move |n| {
            let response = &recording.responses[n as usize];
            let events = response.events.of(&recording.events).iter().map(|event| event.revision);
            let progress = response.progress.then_some(response.revision);
            let revision = events.chain(progress).max().filter(|revision| *revision > 0)?;
            Some((response.time, revision, Proof::Response(at, n)))
        })
    })
}

/// Operations whose place is below evidence that was complete before they were sent. Equal times are concurrent.
///
/// This is complete: without such a pair, the revision order respects time, because every cycle of both orders has a step of time
/// that goes back in revisions.
///
/// `wrote` decides whether an operation wrote whose answer does not show it; `None` if unknown.
pub fn backward(
    recording: &Recording,
    effects: &Effects,
    proofs: &Proofs,
    wrote: impl Fn(u32) -> Option<bool>,
) -> Vec<Backward> {
    let places = |at: u32, operation: &Operation| {
        let (lowest, highest) = places(effects, at, operation)?;
        Some(match (effects.class(at) == Class::Either).then(|| wrote(at)).flatten() {
            Some(true) => (lowest, lowest),
            Some(false) => (highest, highest),
            None => (lowest, highest),
        })
    };
    let operations = || (0..).zip(&recording.operations);
    let mut hint = 0;
    let below = |(at, operation): (u32, &Operation)| {
        let (_, highest) = places(at, operation)?;
        let place = highest.filter(|_| operation.revision == 0 || operation.returned.is_known())?;
        // No place at the highest revision known by then is above an answer at that revision.
        let known = proofs.highest_before(operation.call, &mut hint)?;
        (place < behind_answers(known)).then_some((operation.call, at, place))
    };
    let mut sent: Vec<(Time, u32, i128)> = operations().filter_map(below).collect();
    if sent.is_empty() {
        return Vec::new();
    }
    let lowest = |(at, operation): (u32, &Operation)| {
        let place = places(at, operation)?.0.filter(|_| operation.returned.is_known())?;
        Some((operation.returned, place, Proof::Operation(at)))
    };
    let mut returned: Vec<(Time, i128, Proof)> = operations().filter_map(lowest).collect();
    let by_operations = returned.len();
    returned.extend(told(recording).map(|(time, revision, proof)| (time, behind_write(revision), proof)));
    // Prefer the answer among proofs at one time.
    let (answers, watches) = returned.split_at_mut(by_operations);
    // Stable sorts are fast here because each client is sorted already.
    answers.sort_by_key(|(time, place, proof)| (*time, *place, rank(*proof)));
    watches.sort_by_key(|(time, place, proof)| (*time, *place, rank(*proof)));
    sent.sort();
    let (mut answers, mut watches) = (answers.iter().peekable(), watches.iter().peekable());
    let mut answered: Option<(i128, Proof)> = None;
    let mut delivered: Option<(i128, Proof)> = None;
    let raise = |highest: &mut Option<(i128, Proof)>, place: i128, proof: Proof| {
        if highest.is_none_or(|(other, _)| other < place) {
            *highest = Some((place, proof));
        }
    };
    let mut found = Vec::new();
    for (call, later, place) in sent {
        while let Some((_, place, proof)) = answers.next_if(|(time, ..)| *time < call) {
            raise(&mut answered, *place, *proof);
        }
        while let Some((_, place, proof)) = watches.next_if(|(time, ..)| *time < call) {
            raise(&mut delivered, *place, *proof);
        }
        let above = |(other, _): &(i128, Proof)| place < *other;
        // If a watch showed a write before it was sent, `streams` reports that.
        let delivered = delivered.filter(|_| effects.class(later) != Class::Write);
        if let Some((_, earlier)) = answered.filter(above).or(delivered.filter(above)) {
            found.push(Backward { earlier, later });
        }
    }
    found
}

fn rank(proof: Proof) -> (u32, u32) {
    match proof {
        Proof::Operation(at) => (at, 0),
        Proof::Response(watch, response) => (watch, response),
    }
}

/// The place of evidence that shows a revision: after its write, before answers at it.
fn behind_write(revision: i64) -> i128 {
    i128::from(revision) * 4 + 1
}

/// The place of answers at a revision.
fn behind_answers(revision: i64) -> i128 {
    i128::from(revision) * 4 + 2
}

/// The lowest place that an operation can have, if it has one, and the highest.
fn places(effects: &Effects, at: u32, operation: &Operation) -> Option<(Option<i128>, Option<i128>)> {
    if let Some((lowest, highest)) = effects.slots(at, operation.revision).filter(|_| operation.revision > 0) {
        return Some((Some(lowest * 2), Some(highest * 2)));
    }
    match (operation.outcome, operation.request) {
        (Outcome::Answered, Request::Compact { revision }) => Some((Some(behind_write(revision)), None)),
        // A serializable read may come from a member that is behind, but it shows existing revisions.
        (Outcome::Answered, Request::Range(range)) if range.serializable && operation.revision > 0 => {
            Some((Some(behind_write(operation.revision)), None))
        }
        // It was answered before the write of that revision.
        (Outcome::Future, Request::Range(range)) if !range.serializable => {
            Some((None, Some(i128::from(range.revision) * 4 - 1)))
        }
        (Outcome::Future, Request::Compact { revision }) => Some((None, Some(i128::from(revision) * 4 - 1))),
        _ => None,
    }
}
