//! How long it takes to drop the states of a search. Millions of a user's states are dropped one by one, and a caller has its
//! verdict only then. So a search ends that much before its deadline. The cost is measured by dropping samples, because the
//! program cannot know what a state holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The measurement for the states of one search. Now and then a state is computed twice. Its twin is kept while many more states
/// are computed; dropping a group of twins then takes as long for each as dropping a state.
pub(super) struct DropCostEstimator<'r, S> {
    twins: Vec<S>,
    /// The number of states at which the next twin is due.
    next: usize,
    /// How long the previous group of twins took.
    last: Option<Duration>,
    /// The nanoseconds of this search that are included in `all`.
    reported: u64,
    all: Option<&'r AtomicU64>,
}

/// States below this number are not sampled.
const MIN_SAMPLED_STATES: usize = 256;

/// States between two samples: [`OF`] of them, or the number of states divided by [`OF_MANY`] if that is more.
const OF: usize = 16;
const OF_MANY: usize = 256;

/// Twins that are dropped at once: enough to time, and few enough that the thread is seldom interrupted.
const SAMPLES: usize = 8;

impl<'r, S> DropCostEstimator<'r, S> {
    /// `all`: the nanoseconds of all searches; `None` without a deadline.
    pub(super) fn new(all: Option<&'r AtomicU64>) -> Self {
        DropCostEstimator { twins: Vec::new(), next: MIN_SAMPLED_STATES, last: None, reported: 0, all }
    }

    /// Whether the newest of `states` states is to be computed twice.
    pub(super) fn samples(&self, states: usize) -> bool {
        states >= self.next && self.all.is_some()
    }

    /// Adds the twin of the newest of `states` states.
    pub(super) fn sample(&mut self, twin: Option<S>, states: usize) {
        self.next = states + OF.max(states / OF_MANY);
        self.twins.extend(twin);
        if self.twins.len() < SAMPLES {
            return;
        }
        let begun = Instant::now();
        self.twins.clear();
        let took = begun.elapsed();
        // The thread is seldom interrupted in two groups in a row.
        if let (Some(all), Some(last)) = (self.all, self.last.replace(took)) {
            let each = took.min(last).as_nanos() as u64 / SAMPLES as u64;
            let reported = each.saturating_mul(states as u64);
            all.fetch_add(reported.wrapping_sub(self.reported), Ordering::Relaxed);
            self.reported = reported;
        }
    }
}

impl<S> Drop for DropCostEstimator<'_, S> {
    fn drop(&mut self) {
        if let Some(all) = self.all {
            all.fetch_sub(self.reported, Ordering::Relaxed);
        }
    }
}
