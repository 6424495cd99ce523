//! Regressions: the store went back, or members diverged. Evidence: answers older than complete ones, and revisions that two
//! writes got. Traces that overlap in revisions and time are one regression. Later contradictions about its revisions may follow
//! from it.

use super::effects::{Class, Effects};
use super::proofs::{Backward, Proofs, proved, seen_at};
use super::timeline::{Contradiction, Timeline, Witness};
use crate::history::etcd::{Recording, Request};
use crate::ingest::Time;
use std::collections::BTreeMap;

/// One regression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regression {
    /// The highest revision that was answered after the store went back.
    pub after: i64,
    /// The highest revision that had been seen before.
    pub through: i64,
    /// When that was first seen.
    pub from: Time,
    /// The last time of an answer below it.
    pub until: Time,
    /// Whether writes got its revisions again; otherwise only answers were old.
    pub wrote: bool,
    /// Whether writes at different members got revisions out of order. Then the members diverged for good.
    pub parted: bool,
    /// Whether answers alone show it, without watches.
    pub answered: bool,
}

/// The largest distance between revisions of two writes that still join into one regression; revisions in between may be unseen.
const NEAR: i64 = 16;

/// Limit on the regressions that are examined for one revision, so that many revisions and many regressions stay linear.
const NEAREST: usize = 256;

/// All regressions, by their first trace.
#[derive(Debug, Default)]
pub struct Regressions {
    /// In order of the first trace of each.
    pub all: Vec<Regression>,
    /// The regressions that moved writes, by the revision after which they begin.
    wrote: Vec<u32>,
    /// For each answer that went back, its regression.
    pub of_backward: Vec<u32>,
    /// For each contradiction of the timeline, its regression, if any.
    pub of_contradiction: Vec<Option<u32>>,
}

impl Regression {
    /// Whether the regression reaches a revision above its beginning.
    pub fn reaches(&self, revision: i64) -> bool {
        self.parted || revision <= self.through
    }
}

impl Regressions {
    /// The regressions that moved writes and begin below a revision, the nearest first: at most [`NEAREST`] of them.
    pub fn below(&self, revision: i64) -> impl Iterator<Item = (u32, &Regression)> {
        let begun = self.wrote.partition_point(|at| self.all[*at as usize].after < revision);
        self.wrote[..begun].iter().rev().take(NEAREST).map(|at| (*at, &self.all[*at as usize]))
    }

    /// The first regression that moved the write of a revision.
    pub fn moved(&self, revision: i64) -> Option<u32> {
        self.below(revision).filter(|(_, regression)| regression.reaches(revision)).map(|(at, _)| at).min()
    }
}

struct Joining {
    regressions: Vec<Regression>,
    parent: Vec<u32>,
    /// Regressions that may still grow, by their lower end; their revisions do not overlap.
    open: BTreeMap<i64, u32>,
}

impl Regressions {
    /// Finds the regressions behind answers that went back and revisions of two writes.
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
        let mut found = Regressions { all, wrote: Vec::new(), of_backward, of_contradiction };
        for regression in found.all.iter_mut().filter(|regression| regression.wrote && regression.answered) {
            // A watch may have shown revisions that no answer has.
            let seen = proofs.before(regression.until).map_or(0, |(seen, _)| seen);
            regression.through = regression.through.max(seen);
        }
        found.wrote = (0..found.all.len() as u32).filter(|at| found.all[*at as usize].wrote).collect();
        found.wrote.sort_by_key(|at| (found.all[*at as usize].after, *at));
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
        // From the last one that may be near, downwards.
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
            // A revision that two writes got is one regression, whenever it was seen.
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

    /// Once members have diverged, every higher revision differs too.
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

    /// All regressions, and the regression of each trace.
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
        // The revision below its own was known before it was written.
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

/// The regression behind a revision that a watch showed differently from the answer to its write.
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
    // Without member numbers, members cannot be distinguished.
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
