//! Times at which the store went back: answers from before what was complete, and revisions that were given twice. What overlaps in
//! revisions and in time is one regression. Everything that was told of its revisions from then on may come of it.

use super::effects::{Class, Effects};
use super::proofs::{Backward, Proofs, proved, seen_at};
use super::timeline::{Contradiction, Timeline, Witness};
use crate::history::etcd::{Recording, Request};
use crate::ingest::Time;
use std::collections::BTreeMap;

/// One time at which the store went back, or members parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regression {
    /// The highest revision that was answered instead.
    pub after: i64,
    /// The highest revision that had been seen.
    pub through: i64,
    /// When it was first seen.
    pub from: Time,
    /// The last time at which something below it was answered.
    pub until: Time,
    /// Whether writes were given revisions of it; otherwise only answers were old.
    pub wrote: bool,
    /// Whether writes that different members answered were given revisions out of order: their courses parted, for good.
    pub parted: bool,
    /// Whether answers alone show it; otherwise it takes what a watch was told.
    pub answered: bool,
}

/// Revisions between two writes of one course that was left: what stood between them may not have been seen.
const NEAR: i64 = 16;

/// All of them, by the first of their traces.
#[derive(Debug, Default)]
pub struct Regressions {
    /// Each with the number of its first trace.
    pub all: Vec<Regression>,
    /// Of each answer that went back: which one it shows.
    pub of_backward: Vec<u32>,
    /// Of each contradiction of T: which one it shows, if it does.
    pub of_contradiction: Vec<Option<u32>>,
}

impl Regressions {
    /// The first one that moved the write of a revision.
    pub fn moved(&self, revision: i64) -> Option<u32> {
        let moved = |regression: &Regression| {
            regression.wrote && regression.after < revision && (regression.parted || revision <= regression.through)
        };
        self.all.iter().position(moved).map(|at| at as u32)
    }
}

struct Joining {
    regressions: Vec<Regression>,
    parent: Vec<u32>,
    /// Those that may still grow, by the revision after which they begin; their revisions do not overlap.
    open: BTreeMap<i64, u32>,
}

impl Regressions {
    /// Of answers that went back and of revisions that answered for two writes.
    pub fn of(
        recording: &Recording,
        effects: &Effects,
        timeline: &Timeline,
        proofs: &Proofs,
        backward: &[Backward],
    ) -> Regressions {
        let mut traces: Vec<Regression> = backward.iter().map(|back| went_back(recording, effects, back)).collect();
        let of_contradictions: Vec<Option<Regression>> = timeline
            .contradictions
            .iter()
            .map(|contradiction| match contradiction {
                Contradiction::TwoWrites(lost, kept) => Some(written_twice(recording, *lost, *kept)),
                Contradiction::OtherKey { revision, shown_by, .. } => {
                    told_otherwise(recording, timeline, *revision, *shown_by)
                }
                Contradiction::TwoContents { known, shown_by, .. } => {
                    told_otherwise(recording, timeline, timeline.versions[*known as usize].revision, *shown_by)
                }
                Contradiction::LogDiffers { .. } => None,
            })
            .collect();
        traces.extend(of_contradictions.iter().flatten());
        let mut order: Vec<u32> = (0..traces.len() as u32).collect();
        order.sort_by_key(|at| (traces[*at as usize].from, *at));
        let parent = (0..traces.len() as u32).collect();
        let mut joining = Joining { regressions: traces, parent, open: BTreeMap::new() };
        order.into_iter().for_each(|at| joining.add(at));
        joining.join_parted();
        let (all, of_trace) = joining.finish();
        let (of_backward, mut rest) = (of_trace[..backward.len()].to_vec(), of_trace[backward.len()..].iter());
        let of_contradiction = of_contradictions.iter().map(|trace| trace.and_then(|_| rest.next().copied())).collect();
        let mut found = Regressions { all, of_backward, of_contradiction };
        for regression in found.all.iter_mut().filter(|regression| regression.wrote && regression.answered) {
            // What nobody was answered, a watch may have been told.
            let seen = proofs.before(regression.until).map_or(0, |(seen, _)| seen);
            regression.through = regression.through.max(seen);
        }
        found
    }
}

impl Joining {
    fn root(&mut self, at: u32) -> u32 {
        let mut at = at;
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
    }

    fn add(&mut self, at: u32) {
        let mut grown = self.regressions[at as usize];
        // From the last one down that may be near.
        let mut below = grown.through.saturating_add(NEAR);
        while let Some((&after, &other)) = self.open.range(..=below).next_back() {
            let before = self.regressions[other as usize];
            if before.through.saturating_add(NEAR) < grown.after {
                break;
            }
            below = after - 1;
            let near = if grown.wrote && before.wrote { NEAR } else { 0 };
            let touches = before.after <= grown.through.saturating_add(near)
                && before.through.saturating_add(near) >= grown.after;
            // A revision that two writes were given is one fault, whenever it is told.
            let same = grown.wrote && before.wrote && before.after < grown.through && before.through > grown.after;
            let over = before.until < grown.from && !same;
            if over || touches {
                self.open.remove(&after);
            }
            if over || !touches {
                continue;
            }
            grown = Regression {
                after: grown.after.min(before.after),
                through: grown.through.max(before.through),
                from: grown.from.min(before.from),
                until: grown.until.max(before.until),
                wrote: grown.wrote || before.wrote,
                parted: grown.parted || before.parted,
                answered: grown.answered || before.answered,
            };
            below = grown.through.saturating_add(NEAR);
            self.parent[other as usize] = at;
        }
        self.regressions[at as usize] = grown;
        self.open.insert(grown.after, at);
    }

    /// Once courses have parted, everything above goes on to differ.
    fn join_parted(&mut self) {
        let roots: Vec<u32> = (0..self.parent.len() as u32).filter(|at| self.parent[*at as usize] == *at).collect();
        let parted = roots.iter().copied().filter(|at| self.regressions[*at as usize].parted);
        let Some(first) = parted.min_by_key(|at| (self.regressions[*at as usize].after, *at)) else { return };
        let begins = self.regressions[first as usize].after;
        for root in roots.into_iter().filter(|root| *root != first) {
            let other = self.regressions[root as usize];
            if other.after >= begins && (other.wrote || other.parted) {
                let whole = &mut self.regressions[first as usize];
                whole.through = whole.through.max(other.through);
                whole.from = whole.from.min(other.from);
                whole.until = whole.until.max(other.until);
                self.parent[root as usize] = first;
            }
        }
    }

    /// All, and which one each trace is of.
    fn finish(mut self) -> (Vec<Regression>, Vec<u32>) {
        let (mut all, mut of_trace) = (Vec::new(), Vec::new());
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        for at in 0..self.parent.len() as u32 {
            let root = self.root(at);
            let number = *numbers.entry(root).or_insert_with(|| {
                all.push(self.regressions[root as usize]);
                all.len() as u32 - 1
            });
            of_trace.push(number);
        }
        (all, of_trace)
    }
}

fn went_back(recording: &Recording, effects: &Effects, back: &Backward) -> Regression {
    let later = &recording.operations[back.later as usize];
    let wrote = effects.class(back.later) == Class::Write;
    let below = match (later.revision, later.request) {
        (0, Request::Range(range)) => range.revision.saturating_sub(1),
        (0, Request::Compact { revision }) => revision.saturating_sub(1),
        // Its own number was known before it was written.
        (number, _) if wrote => number - 1,
        (number, _) => number,
    };
    let through = proved(recording, back.earlier);
    let earlier = back.earlier.operation().map(|at| &recording.operations[at as usize]);
    let parted = wrote
        && earlier.is_some_and(|earlier| earlier.member != 0 && later.member != 0 && earlier.member != later.member)
        && back.earlier.operation().is_some_and(|at| effects.class(at) == Class::Write);
    Regression {
        after: below.min(through - 1),
        through,
        from: seen_at(recording, back.earlier),
        until: if later.returned.is_known() { later.returned.max(later.call) } else { later.call },
        wrote,
        parted,
        answered: true,
    }
}

/// A revision that a watch showed otherwise than the answer to its write.
fn told_otherwise(recording: &Recording, timeline: &Timeline, revision: i64, by: Witness) -> Option<Regression> {
    let writer = &recording.operations[timeline.revision(revision)?.writer? as usize];
    let told = match by {
        Witness::Event(_, response, _) => recording.responses[response as usize].time,
        Witness::Write(_) | Witness::Pair(..) | Witness::Log(_) | Witness::Store(..) | Witness::Supposed(_) => {
            return None;
        }
    };
    told.is_known().then_some(Regression {
        after: revision - 1,
        through: revision,
        from: told.min(writer.returned),
        until: told.max(writer.call),
        wrote: true,
        parted: false,
        answered: false,
    })
}

fn written_twice(recording: &Recording, lost: u32, kept: u32) -> Regression {
    let (lost, kept) = (&recording.operations[lost as usize], &recording.operations[kept as usize]);
    let known = lost.member != 0 && kept.member != 0;
    // Without their numbers, members cannot be told apart.
    let parted = if known { lost.member != kept.member } else { recording.members.len() > 1 };
    Regression {
        after: kept.revision - 1,
        through: kept.revision,
        from: lost.returned.min(kept.returned),
        until: kept.returned.max(lost.returned).max(kept.call).max(lost.call),
        wrote: true,
        parted,
        answered: true,
    }
}
