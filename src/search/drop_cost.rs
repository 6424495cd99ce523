//! How long it takes to let go of states. Millions of a user's own are let go of one by one, and who asked for a verdict has it only
//! then: so a search ends that much before its deadline. It is measured, for nobody can know what a state holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The measure for the states of one search. Now and then a state is made twice: its twin is kept for as long as it takes to make
/// many more, and how long it takes to let go of twins tells the same of the others.
pub(super) struct DropCostEstimator<'r, S> {
    twins: Vec<S>,
    /// The state that is to be made twice next.
    next: usize,
    /// What the twins before took.
    last: Option<Duration>,
    /// What is added to the count of all searches, in nanoseconds.
    told: u64,
    all: Option<&'r AtomicU64>,
}

/// So few states are soon gone.
const FEW: usize = 256;

/// Of so many states at least one is made twice, and of many states one in so many of those that there are.
const OF: usize = 16;
const OF_MANY: usize = 256;

/// So many twins are let go of at a time: enough for a clock, and few enough that the thread is seldom interrupted.
const SAMPLES: usize = 8;

impl<'r, S> DropCostEstimator<'r, S> {
    /// `all`: the nanoseconds of all searches; `None`: nobody waits.
    pub(super) fn new(all: Option<&'r AtomicU64>) -> Self {
        DropCostEstimator { twins: Vec::new(), next: FEW, last: None, told: 0, all }
    }

    /// Whether a state is to be made twice, the last of so many.
    pub(super) fn samples(&self, states: usize) -> bool {
        states >= self.next && self.all.is_some()
    }

    /// Takes the twin of a state, the last of so many.
    pub(super) fn sample(&mut self, twin: Option<S>, states: usize) {
        self.next = states + OF.max(states / OF_MANY);
        self.twins.extend(twin);
        if self.twins.len() < SAMPLES {
            return;
        }
        let begun = Instant::now();
        self.twins.clear();
        let took = begun.elapsed();
        // Who is interrupted once is seldom interrupted twice.
        if let (Some(all), Some(last)) = (self.all, self.last.replace(took)) {
            let each = took.min(last).as_nanos() as u64 / SAMPLES as u64;
            let told = each.saturating_mul(states as u64);
            all.fetch_add(told.wrapping_sub(self.told), Ordering::Relaxed);
            self.told = told;
        }
    }
}

impl<S> Drop for DropCostEstimator<'_, S> {
    fn drop(&mut self) {
        if let Some(all) = self.all {
            all.fetch_sub(self.told, Ordering::Relaxed);
        }
    }
}
