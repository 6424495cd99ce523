//! The signal by which another thread ends judging early.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends judging from another thread. No rule begins after that, and no search continues. The rest is unknown, for the given
/// reason.
#[derive(Debug, Default)]
pub struct Halt {
    is_set: AtomicBool,
    why: OnceLock<String>,
}

impl Halt {
    /// A signal that is not set.
    pub const fn new() -> Halt {
        Halt { is_set: AtomicBool::new(false), why: OnceLock::new() }
    }

    /// Sets it. `why` begins the reasons of verdicts, such as "the time budget was spent". Returns whether this was the first
    /// reason, which alone counts.
    pub fn set(&self, why: impl Into<String>) -> bool {
        let first = self.why.set(why.into()).is_ok();
        self.is_set.store(true, Ordering::Release);
        first
    }

    /// The reason, if it is set.
    pub fn why(&self) -> Option<&str> {
        self.is_set.load(Ordering::Acquire).then(|| self.why.get().map_or("interrupted", String::as_str))
    }

    /// The flag that searches poll.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.is_set
    }
}
