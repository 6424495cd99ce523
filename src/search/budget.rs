//! When to stop.

use super::verdict::{Budget, Limit};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A budget that is being spent by one of those that work on a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch<'b> {
    begun: Instant,
    budget: Budget<'b>,
    /// Bytes that are held for all of the history.
    held: usize,
    /// Nanoseconds that it will take to let go of what searches hold: a caller has its answer only then.
    release: Option<&'b AtomicU64>,
    /// Those whose result counts before this one's: among parts, in two races, one within the other, in legs of one search, and in
    /// halves of a leg.
    rivals: [Option<Rival<'b>>; 5],
}

/// Who of several was first, by rank: lower ranks count before higher ones, whoever is faster.
#[derive(Clone, Copy, Debug)]
struct Rival<'b> {
    won: &'b AtomicUsize,
    rank: usize,
}

/// Nobody has won.
pub(super) const NOBODY: usize = usize::MAX;

impl<'b> Watch<'b> {
    pub(super) fn begin(budget: &Budget<'b>) -> Self {
        Watch { begun: Instant::now(), budget: *budget, held: 0, release: None, rivals: [None; 5] }
    }

    /// The same, with a count of what it will take to let go of what is held.
    pub(super) fn releasing<'c>(self, release: &'c AtomicU64) -> Watch<'c>
    where
        'b: 'c,
    {
        Watch { release: Some(release), ..self }
    }

    /// Nanoseconds that it will take to let go of what searches hold; `None`: nobody waits for it.
    pub(super) fn release(&self) -> Option<&'b AtomicU64> {
        self.release.filter(|_| self.budget.time.is_some())
    }

    /// The same, to end also as soon as one of a lower rank has won.
    pub(super) fn among<'c>(self, won: &'c AtomicUsize, rank: usize) -> Watch<'c>
    where
        'b: 'c,
    {
        let [_, parts, outer, inner, legs] = self.rivals;
        Watch { rivals: [parts, outer, inner, legs, Some(Rival { won, rank })], ..self }
    }

    /// The same with less memory.
    pub(super) fn beside(self, held: usize) -> Self {
        Watch { held: self.held + held, ..self }
    }

    /// The limit that has been reached. Tens of nanoseconds: for every step of a user's specification, or every few hundred own.
    pub(super) fn reached(&self) -> Option<Limit> {
        let outrun = |rival: &Rival<'_>| rival.won.load(Ordering::Relaxed) < rival.rank;
        if self.rivals.iter().flatten().any(outrun) {
            return Some(Limit::Cancelled);
        }
        if self.budget.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Some(Limit::Cancelled);
        }
        let release = || self.release.map_or(0, |release| release.load(Ordering::Relaxed));
        let is_over = |time| self.begun.elapsed() + Duration::from_nanos(release()) >= time;
        self.budget.time.is_some_and(is_over).then_some(Limit::Time)
    }

    pub(super) fn spent(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Bytes that may be held.
    pub(super) fn memory(&self) -> usize {
        self.budget.memory.unwrap_or(usize::MAX).saturating_sub(self.held)
    }
}
