//! What more than one rule derives of the same evidence, once.

use super::Evidence;
use super::catalog::Catalog;
use super::outdated::Unconditioned;
use super::selectable::Selectable;
use super::unsafe_first_read::{FirstReads, first_reads};
use crate::history::ResourceId;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Derived when the first rule asks for it. Nothing here may run in parallel itself: a thread that waits for a part of it could take up a
/// rule that asks for the whole.
#[derive(Debug, Default)]
pub struct Derived {
    unconditioned: OnceLock<Unconditioned>,
    first_reads: OnceLock<FirstReads>,
    catalog: OnceLock<Catalog>,
    selectable: Mutex<FxHashMap<ResourceId, Arc<Selectable>>>,
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

    /// The objects of a resource by what selectors ask for.
    pub(super) fn selectable(&self, resource: ResourceId) -> Arc<Selectable> {
        let mut known = self.derived.selectable.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(resource).or_insert_with(|| Arc::new(Selectable::of(self, resource))).clone()
    }
}
