//! Judging that ends early, because somebody else says so.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends judging from another thread. No rule begins after that and no search goes on; what is left is unknown, for the reason that is
/// given here.
#[derive(Debug, Default)]
pub struct Halt {
    is_set: AtomicBool,
    why: OnceLock<String>,
}

impl Halt {
    /// One that is not set.
    pub const fn new() -> Halt {
        Halt { is_set: AtomicBool::new(false), why: OnceLock::new() }
    }

    /// Sets it. `why` begins the reasons of verdicts, such as "the time budget was spent". Only the first reason counts: returns
    /// whether this was it.
    pub fn set(&self, why: impl Into<String>) -> bool {
        let first = self.why.set(why.into()).is_ok();
        self.is_set.store(true, Ordering::Release);
        first
    }

    /// Why it is set, if it is.
    pub fn why(&self) -> Option<&str> {
        self.is_set.load(Ordering::Acquire).then(|| self.why.get().map_or("interrupted", String::as_str))
    }

    /// What searches look at.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.is_set
    }
}
