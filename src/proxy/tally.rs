//! What a proxy passed, for the last line of a run.

use crate::explain::words::count;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Requests that the recording has.
    pub recorded: Counter,
    /// Requests that passed unrecorded, since they concern no objects or keys.
    pub passed: Counter,
    /// Requests that should have been recorded and were not.
    pub missed: Counter,
    /// Requests that the proxy refused.
    pub refused: Counter,
}

/// A counter that several threads raise.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What passed, in words.
    pub text: String,
    /// The first reason why the recording is incomplete.
    pub incomplete: Option<String>,
}

impl Tally {
    /// Sums up. `what` is the word for one request; `error` is the first error of writing.
    pub(super) fn summary(&self, what: &str, error: Option<String>) -> Summary {
        let (recorded, passed, refused) = (self.recorded.get(), self.passed.get(), self.refused.get());
        let mut text = format!("recorded {}; {passed} passed unrecorded", count(recorded, what));
        if refused > 0 {
            text += &format!("; {refused} refused");
        }
        let missed = self.missed.get();
        let missed = (missed > 0).then(|| format!("{} not recorded: too many clients", count(missed, what)));
        Summary { text, incomplete: error.or(missed) }
    }
}
