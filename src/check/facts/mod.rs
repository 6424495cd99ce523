//! The input of rules: the history, its order, and facts that rules of several groups share. Facts know no rule.

pub(in crate::check) mod absence;
pub(in crate::check) mod authorship;
pub(in crate::check) mod awareness;
pub(in crate::check) mod bodies;
pub(in crate::check) mod catalog;
mod citation;
pub(in crate::check) mod commit_evidence;
pub(in crate::check) mod conflict_retries;
pub(in crate::check) mod cross_counter;
pub(in crate::check) mod first_reads;
pub(in crate::check) mod knowledge;
pub(in crate::check) mod live_keys;
pub(in crate::check) mod lone_witness;
pub(in crate::check) mod provenance;
pub(in crate::check) mod references;
pub(in crate::check) mod removals;
pub(in crate::check) mod selectable;
pub(in crate::check) mod stale_writes;
pub(crate) mod staleness;
pub(in crate::check) mod state_check;
pub(in crate::check) mod stream_view;
pub(in crate::check) mod three_way_diff;
mod unrecorded_reads;
pub(in crate::check) mod version_validity;

use self::catalog::Catalog;
use self::first_reads::FirstReads;
use self::selectable::Selectable;
use self::stale_writes::Unconditioned;
use super::options::Options;
use crate::history::{History, OperationId, ResourceId, Revision};
use crate::order::Order;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// A history with its order and the options of the run.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'h> {
    /// The recorded facts.
    pub history: &'h History,
    /// The derived order.
    pub order: &'h Order,
    /// The options of the run.
    pub options: &'h Options,
    /// The facts that several rules share.
    pub facts: &'h Facts,
}

/// Facts of one history. Each is computed at its first use, by the method of [`Evidence`] in its module.
///
/// No computation here may run in parallel itself: a thread that waits for a part of it could begin a rule that needs the
/// whole.
#[derive(Debug, Default)]
pub struct Facts {
    sizes: Sizes,
    catalog: OnceLock<Catalog>,
    first_reads: OnceLock<FirstReads>,
    selectable: Mutex<FxHashMap<ResourceId, Arc<Selectable>>>,
    removal_bounds: OnceLock<FxHashMap<OperationId, Revision>>,
    unconditioned: OnceLock<Unconditioned>,
}

/// Numbers from which on facts are computed in another way, or no further.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// The budget of one rule's declarations, in examined versions; see [`catalog::ScanBudget`].
    scan_budget: u64,
    /// The writes whose reads are kept at a time. Bounds the memory.
    judged_at_once: usize,
    /// The number of changes that are examined one by one, before the index of selectable objects is used.
    near_changes: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { scan_budget: 2_000_000, judged_at_once: 1 << 18, near_changes: 64 }
    }
}

#[cfg(test)]
impl Facts {
    /// Facts with sizes that a sketch exceeds.
    pub(in crate::check) fn of_small_sizes() -> Facts {
        Facts { sizes: Sizes { scan_budget: 2_000, judged_at_once: 2, near_changes: 1 }, ..Facts::default() }
    }
}

#[cfg(test)]
mod tests;
