//! The budget guard: whether a search must end. Input: a [`Budget`] and the results of competing searches. Output: the limit that
//! is reached. Every loop of a search must ask it, or a deadline passes unnoticed.

use super::verdict::{Budget, Limit};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The budget of one search of a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct BudgetGuard<'b> {
    begun: Instant,
    budget: Budget<'b>,
    /// Bytes that the history itself holds.
    held: usize,
    /// Nanoseconds that dropping the states of all searches will take: a caller has its answer only then.
    release: Option<&'b AtomicU64>,
    /// Results that count before the one of this search: among parts, in two portfolios, one within the other, in segments of one
    /// search, and in halves of a segment.
    rivals: [Option<Competitor<'b>>; 5],
}

/// The best rank that has a result. A lower rank counts before a higher one, even if it is slower.
#[derive(Clone, Copy, Debug)]
struct Competitor<'b> {
    won: &'b AtomicUsize,
    rank: usize,
}

/// No result yet.
pub(super) const NOBODY: usize = usize::MAX;

impl<'b> BudgetGuard<'b> {
    pub(super) fn begin(budget: &Budget<'b>) -> Self {
        BudgetGuard { begun: Instant::now(), budget: *budget, held: 0, release: None, rivals: [None; 5] }
    }

    /// The same, with time set aside for dropping states.
    pub(super) fn releasing<'c>(self, release: &'c AtomicU64) -> BudgetGuard<'c>
    where
        'b: 'c,
    {
        BudgetGuard { release: Some(release), ..self }
    }

    /// Nanoseconds that dropping the states will take; `None` without a deadline.
    pub(super) fn release(&self) -> Option<&'b AtomicU64> {
        self.release.filter(|_| self.budget.time.is_some())
    }

    /// The same, but it also ends as soon as a lower rank has a result.
    pub(super) fn competing<'c>(self, won: &'c AtomicUsize, rank: usize) -> BudgetGuard<'c>
    where
        'b: 'c,
    {
        let [_, parts, outer, inner, segments] = self.rivals;
        BudgetGuard { rivals: [parts, outer, inner, segments, Some(Competitor { won, rank })], ..self }
    }

    /// The same with less memory.
    pub(super) fn reserving(self, held: usize) -> Self {
        BudgetGuard { held: self.held + held, ..self }
    }

    /// The limit that is reached. Takes tens of nanoseconds: ask before every step of a user's specification, but only once in
    /// some hundred steps of the program's own.
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
