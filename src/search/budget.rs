//! When to stop.

use super::verdict::{Budget, Limit};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A budget that is being spent by one of those that work on a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct BudgetGuard<'b> {
    begun: Instant,
    budget: Budget<'b>,
    /// Bytes that are held for all of the history.
    held: usize,
    /// Nanoseconds that it will take to let go of what searches hold: a caller has its answer only then.
    release: Option<&'b AtomicU64>,
    /// Those whose result counts before this one's: among parts, in two races, one within the other, in legs of one search, and in
    /// halves of a leg.
    rivals: [Option<Competitor<'b>>; 5],
}

/// Who of several was first, by rank: lower ranks count before higher ones, whoever is faster.
#[derive(Clone, Copy, Debug)]
struct Competitor<'b> {
    won: &'b AtomicUsize,
    rank: usize,
}

/// Nobody has won.
pub(super) const NOBODY: usize = usize::MAX;

impl<'b> BudgetGuard<'b> {
    pub(super) fn begin(budget: &Budget<'b>) -> Self {
        BudgetGuard { begun: Instant::now(), budget: *budget, held: 0, release: None, rivals: [None; 5] }
    }

    /// The same, with a count of what it will take to let go of what is held.
    pub(super) fn releasing<'c>(self, release: &'c AtomicU64) -> BudgetGuard<'c>
    where
        'b: 'c,
    {
        BudgetGuard { release: Some(release), ..self }
    }

    /// Nanoseconds that it will take to let go of what searches hold; `None`: nobody waits for it.
    pub(super) fn release(&self) -> Option<&'b AtomicU64> {
        self.release.filter(|_| self.budget.time.is_some())
    }

    /// The same, to end also as soon as one of a lower rank has won.
    pub(super) fn competing<'c>(self, won: &'c AtomicUsize, rank: usize) -> BudgetGuard<'c>
    where
        'b: 'c,
    {
        let [_, parts, outer, inner, legs] = self.rivals;
        BudgetGuard { rivals: [parts, outer, inner, legs, Some(Competitor { won, rank })], ..self }
    }

    /// The same with less memory.
    pub(super) fn reserving(self, held: usize) -> Self {
        BudgetGuard { held: self.held + held, ..self }
    }

    /// The limit that has been reached. Tens of nanoseconds: for every step of a user's specification, or every few hundred own.
    pub(super) fn reached(&self) -> Option<Limit> {
        let outrun = |rival: &Competitor<'_>| rival.won.load(Ordering::Relaxed) < rival.rank;
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
