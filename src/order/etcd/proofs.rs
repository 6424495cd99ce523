//! When which revision was known to exist, and answers that came after newer ones.

use super::effects::{Class, Effects};
use crate::history::etcd::{Operation, Outcome, Recording, Request};
use crate::ingest::Time;

/// What proves that a revision existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// An operation's answer.
    Operation(u32),
    /// A watch response: of this watch, this one of all.
    Response(u32, u32),
}

impl Proof {
    /// The operation, where its answer proves it.
    pub fn operation(self) -> Option<u32> {
        match self {
            Proof::Operation(at) => Some(at),
            Proof::Response(..) => None,
        }
    }
}

/// The highest revision that something shows to exist.
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

/// When somebody knew it.
pub fn seen_at(recording: &Recording, proof: Proof) -> Time {
    match proof {
        Proof::Operation(at) => recording.operations[at as usize].returned,
        Proof::Response(_, n) => recording.responses[n as usize].time,
    }
}

/// When revisions were proved to exist, by time.
#[derive(Debug, Default)]
pub struct Proofs {
    /// Time, the highest revision proved until then, and what proves it; both ascending.
    by_time: Vec<(Time, i64, Proof)>,
    /// Revision and the earliest time at which it or a later one was proved; both ascending.
    by_revision: Vec<(i64, Time, Proof)>,
}

/// An operation that was answered from before one that was complete when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backward {
    /// What showed the highest place in the order before: an answer, or what a watch was told.
    pub earlier: Proof,
    /// The later operation, below it.
    pub later: u32,
}

impl Proofs {
    /// Of answers and of what watches delivered.
    pub fn of(recording: &Recording) -> Proofs {
        let answers = (0..).zip(&recording.operations).filter_map(|(at, operation)| {
            let revision = shown(operation).filter(|_| operation.returned.is_known())?;
            Some((operation.returned, revision, Proof::Operation(at)))
        });
        Proofs::from(answers.chain(told(recording)).collect())
    }

    fn from(mut all: Vec<(Time, i64, Proof)>) -> Proofs {
        all.sort_by_key(|(time, revision, _)| (*time, std::cmp::Reverse(*revision)));
        let mut by_time: Vec<(Time, i64, Proof)> = Vec::new();
        for proof in &all {
            if by_time.last().is_none_or(|last| last.1 < proof.1) {
                by_time.push(*proof);
            }
        }
        // Of each time only the highest revision was kept, so this order is that of revisions as well.
        let by_revision = by_time.iter().map(|(time, revision, proof)| (*revision, *time, *proof)).collect();
        Proofs { by_time, by_revision }
    }

    /// The highest revision that was proved before a time, and what proves it.
    pub fn before(&self, time: Time) -> Option<(i64, Proof)> {
        let at = self.by_time.partition_point(|(other, ..)| *other < time);
        self.by_time[..at].last().map(|(_, revision, proof)| (*revision, *proof))
    }

    /// When a revision, or a later one, was first proved to exist.
    pub fn first(&self, revision: i64) -> Option<(Time, Proof)> {
        let at = self.by_revision.partition_point(|(other, ..)| *other < revision);
        self.by_revision.get(at).map(|(_, time, proof)| (*time, *proof))
    }

    /// The highest revision that anything proves; 1, the empty store's, where nothing does.
    pub fn last(&self) -> i64 {
        self.by_time.last().map_or(1, |(_, revision, _)| *revision)
    }
}

/// The revision that an answer shows to exist.
fn shown(operation: &Operation) -> Option<i64> {
    match operation.request {
        Request::Compact { revision } => (operation.outcome == Outcome::Answered).then_some(revision),
        _ => (operation.revision > 0).then_some(operation.revision),
    }
}

/// What watches were told: time, revision, who.
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

/// Operations below something that was complete before they were sent. Intervals are closed: what returned at the very time of
/// a call is concurrent with it.
///
/// This is complete: without such a pair the order of revisions keeps the order of time, since every cycle of the two together
/// holds a step of time that goes back in revisions.
///
/// `wrote` says of an answer that does not say whether it wrote which it is, where that is known.
pub fn backward(recording: &Recording, effects: &Effects, wrote: impl Fn(u32) -> Option<bool>) -> Vec<Backward> {
    let mut returned: Vec<(Time, i128, Proof)> = Vec::new();
    let mut sent: Vec<(Time, u32, i128)> = Vec::new();
    for (at, operation) in (0..).zip(&recording.operations) {
        let Some((mut lowest, mut highest)) = places(effects, at, operation) else { continue };
        match (effects.class(at) == Class::Either).then(|| wrote(at)).flatten() {
            Some(true) => highest = lowest,
            Some(false) => lowest = highest,
            None => {}
        }
        if let Some(place) = lowest.filter(|_| operation.returned.is_known()) {
            returned.push((operation.returned, place, Proof::Operation(at)));
        }
        if let Some(place) = highest.filter(|_| operation.revision == 0 || operation.returned.is_known()) {
            sent.push((operation.call, at, place));
        }
    }
    let by_operations = returned.len();
    returned.extend(told(recording).map(|(time, revision, proof)| (time, behind_write(revision), proof)));
    // Of two at one time, the answer of a client is the plainer one.
    let (answers, watches) = returned.split_at_mut(by_operations);
    // Stable sorts use that clients are in order already.
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
        // A write that a watch foresaw is the watch's fault.
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

/// Places in the order: of the write of a revision, of what shows it, of what was answered at it.
fn behind_write(revision: i64) -> i128 {
    i128::from(revision) * 4 + 1
}

/// The lowest place that an operation can have, if it has one, and the highest.
fn places(effects: &Effects, at: u32, operation: &Operation) -> Option<(Option<i128>, Option<i128>)> {
    if let Some((lowest, highest)) = effects.slots(at, operation.revision).filter(|_| operation.revision > 0) {
        return Some((Some(lowest * 2), Some(highest * 2)));
    }
    match (operation.outcome, operation.request) {
        (Outcome::Answered, Request::Compact { revision }) => Some((Some(behind_write(revision)), None)),
        // It was answered before the write of that revision.
        (Outcome::Future, Request::Range(range)) if !range.serializable => {
            Some((None, Some(i128::from(range.revision) * 4 - 1)))
        }
        (Outcome::Future, Request::Compact { revision }) => Some((None, Some(i128::from(revision) * 4 - 1))),
        _ => None,
    }
}
