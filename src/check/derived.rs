//! What more than one rule derives of the same evidence, once.

use super::Evidence;
use super::outdated::Unconditioned;
use std::sync::OnceLock;

/// Derived when the first rule asks for it. Nothing here may run in parallel itself: a thread that waits for a part of it could take up a
/// rule that asks for the whole.
#[derive(Debug, Default)]
pub struct Derived {
    unconditioned: OnceLock<Unconditioned>,
}

impl<'h> Evidence<'h> {
    /// Writes that name no version (and deletions that name no uid either), after a read of the same object by the same process.
    pub(super) fn unconditioned(&self) -> &'h Unconditioned {
        self.derived.unconditioned.get_or_init(|| Unconditioned::of(self))
    }
}
