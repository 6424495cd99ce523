//! What more than one rule derives of the same evidence, once.

use super::Evidence;
use super::catalog::Catalog;
use super::outdated::Unconditioned;
use super::unsafe_first_read::{FirstReads, first_reads};
use std::sync::OnceLock;

/// Derived when the first rule asks for it. Nothing here may run in parallel itself: a thread that waits for a part of it could take up a
/// rule that asks for the whole.
#[derive(Debug, Default)]
pub struct Derived {
    unconditioned: OnceLock<Unconditioned>,
    first_reads: OnceLock<FirstReads>,
    catalog: OnceLock<Catalog>,
}

impl<'h> Evidence<'h> {
    /// Resources and keys by name.
    pub(super) fn catalog(&self) -> &'h Catalog {
        self.derived.catalog.get_or_init(|| Catalog::of(self))
    }

    /// Writes that name no version (and deletions that name no uid either), after a read of the same object by the same process.
    pub(super) fn unconditioned(&self) -> &'h Unconditioned {
        self.derived.unconditioned.get_or_init(|| Unconditioned::of(self))
    }

    /// The first list or watch of each process life on each scope that was answered.
    pub(super) fn first_reads(&self) -> &'h FirstReads {
        self.derived.first_reads.get_or_init(|| first_reads(self))
    }
}
