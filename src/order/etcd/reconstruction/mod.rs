//! Reconstruction of revisions whose changes no evidence shows completely: a backtracking search for their writers.
//!
//! Constraints link the revisions: a key that is read with its mod revision did not change in between, a version counter must
//! match, a condition was decided. The search goes over crashed operations and ends of leases in order of revisions and
//! backtracks at the first constraint that does not fit. A solution is added to the timeline and compared with all evidence.
//!
//! The problem is NP-hard (by exact cover, with transactions of three keys and counters that say that each key changed once), so
//! the budget counts steps, not time. Components that share no request and no key backtrack independently.

mod candidates;
mod constraints;
mod problem;
mod search;
mod state;

use super::attribution::{Attribution, Supposed, Writer};
use super::effects::Effects;
use super::lease::Lives;
use super::proofs::Proofs;
use super::timeline::Timeline;
use crate::history::etcd::Recording;
use problem::Problem;

/// The outcome of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchOutcome {
    /// These presumed writers explain everything.
    Found(Vec<Supposed>),
    /// No choice of recorded requests explains everything.
    Nothing {
        /// The highest revision without a remaining candidate.
        at: i64,
    },
    /// The step budget was spent.
    Spent,
    /// Not tried or not decided: too many open revisions, or a request with unrecorded effects.
    Beyond,
}

/// The inputs of the search.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub recording: &'a Recording,
    pub effects: &'a Effects,
    pub proofs: &'a Proofs,
    pub lives: &'a Lives,
    pub timeline: &'a Timeline,
    pub attribution: &'a Attribution,
}

/// Limit on searched revisions.
const REVISIONS: usize = 512;

/// Limit on candidate requests.
const REQUESTS: usize = 4096;

/// Up to this number of unacknowledged revisions, those with known content are searched too, because their writers decide
/// attachments to leases.
const FEW: usize = 24;

/// Limit on revisions times keys.
const CELLS: usize = 4_000_000;

/// Searches for writers that explain everything. `accepts` compares a choice with all evidence.
pub(super) fn search(known: Known<'_>, accepts: impl FnMut(&[Supposed]) -> bool) -> SearchOutcome {
    let Some(problem) = Problem::of(known) else { return SearchOutcome::Beyond };
    search::run(&problem, accepts)
}
