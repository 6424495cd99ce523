//! When which revision was known to exist, and answers that came after newer ones.

use super::effects::Effects;
use crate::history::etcd::Recording;
use crate::ingest::Time;

/// What proves that a revision existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// An operation's answer.
    Operation(u32),
    /// A watch response: of this watch, this one of all.
    Response(u32, u32),
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
    /// The earlier operation, with the highest place in the order.
    pub earlier: u32,
    /// The later one, below it.
    pub later: u32,
}

impl Proofs {
    /// Of answers and of what watches delivered.
    pub fn of(recording: &Recording) -> Proofs {
        let mut all: Vec<(Time, i64, Proof)> = Vec::new();
        for (at, operation) in recording.operations.iter().enumerate() {
            if operation.revision > 0 && operation.returned.is_known() {
                all.push((operation.returned, operation.revision, Proof::Operation(at as u32)));
            }
        }
        for (at, watch) in recording.watches.iter().enumerate() {
            for n in watch.responses.start..watch.responses.start + watch.responses.len {
                let response = &recording.responses[n as usize];
                let events = response.events.of(&recording.events).iter().map(|event| event.revision);
                let progress = response.progress.then_some(response.revision);
                if let Some(revision) = events.chain(progress).max().filter(|revision| *revision > 0) {
                    all.push((response.time, revision, Proof::Response(at as u32, n)));
                }
            }
        }
        Proofs::from(all)
    }

    /// Of answers alone.
    pub fn of_operations(recording: &Recording) -> Proofs {
        let answered = |(at, o): (usize, &crate::history::etcd::Operation)| {
            (o.revision > 0 && o.returned.is_known()).then_some((o.returned, o.revision, Proof::Operation(at as u32)))
        };
        Proofs::from(recording.operations.iter().enumerate().filter_map(answered).collect())
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

/// Operations below one that was complete before they were sent. Intervals are closed: what returned at the very time of
/// a call is concurrent with it.
///
/// This is complete: without such a pair the order of revisions keeps the order of time, since every cycle of the two together
/// holds a step of time that goes back in revisions.
pub fn backward(recording: &Recording, effects: &Effects) -> Vec<Backward> {
    let answered = |at: &u32| {
        let operation = &recording.operations[*at as usize];
        operation.revision > 0 && operation.returned.is_known()
    };
    let known: Vec<u32> = (0..recording.operations.len() as u32).filter(answered).collect();
    let of = |at: u32| &recording.operations[at as usize];
    let (mut by_call, mut by_return) = (known.clone(), known);
    by_call.sort_by_key(|at| (of(*at).call, *at));
    by_return.sort_by_key(|at| (of(*at).returned, *at));
    let mut found = Vec::new();
    let mut returned = by_return.into_iter().peekable();
    let mut highest: Option<(i128, u32)> = None;
    for later in by_call {
        while let Some(at) = returned.next_if(|at| of(*at).returned < of(later).call) {
            if let Some((slot, _)) = effects.slots(at, of(at).revision)
                && highest.is_none_or(|(other, _)| other < slot)
            {
                highest = Some((slot, at));
            }
        }
        let slot = effects.slots(later, of(later).revision).map(|(_, slot)| slot);
        if let (Some((above, earlier)), Some(slot)) = (highest, slot)
            && slot < above
        {
            found.push(Backward { earlier, later });
        }
    }
    found
}
