//! When to stop.

use super::verdict::{Budget, Limit};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A budget that is being spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch<'b> {
    begun: Instant,
    budget: Budget<'b>,
}

impl<'b> Watch<'b> {
    pub(super) fn begin(budget: &Budget<'b>) -> Self {
        Watch { begun: Instant::now(), budget: *budget }
    }

    /// The limit that has been reached. Tens of nanoseconds: for every step of a user's specification, or every few hundred own.
    pub(super) fn reached(&self) -> Option<Limit> {
        if self.budget.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Some(Limit::Cancelled);
        }
        self.budget.time.is_some_and(|time| self.begun.elapsed() >= time).then_some(Limit::Time)
    }

    pub(super) fn spent(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Bytes that may be held.
    pub(super) fn memory(&self) -> usize {
        self.budget.memory.unwrap_or(usize::MAX)
    }
}
