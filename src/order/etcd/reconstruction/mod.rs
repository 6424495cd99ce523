//! Revisions of which nobody showed all that they changed: who can have made them. What else is known says little about each, and
//! much about all together: a key that is read with its revision did not change in between, a count of changes has to come out, a
//! condition was decided. So this is a search over the requests of unknown outcome and the ends of leases, in the order of revisions,
//! which turns back where something that is known does not fit. What it finds is taken for T and held against everything, as T is.
//!
//! The problem is NP-hard (exact cover: transactions of three keys, and counts of changes that say that each key changed once), so
//! the search has a budget, of steps and not of time. Parts that share no request and no key are searched on their own.

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

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchOutcome {
    /// This explains everything.
    Found(Vec<Supposed>),
    /// No choice of recorded requests does.
    Nothing {
        /// The highest revision for which none was left.
        at: i64,
    },
    /// The budget was spent.
    Spent,
    /// Too much is open to begin with, or a request does what no report tells.
    Beyond,
}

/// What is known.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub recording: &'a Recording,
    pub effects: &'a Effects,
    pub proofs: &'a Proofs,
    pub lives: &'a Lives,
    pub timeline: &'a Timeline,
    pub filling: &'a Attribution,
}

/// Revisions that a search is tried for.
const REVISIONS: usize = 512;

/// Requests that may have made them.
const REQUESTS: usize = 4096;

/// With so many revisions without an acknowledged maker, those of which the content is known are part of the search: who made
/// them says what is attached to leases.
const FEW: usize = 24;

/// Revisions times keys that a search keeps.
const CELLS: usize = 4_000_000;

/// Looks for what explains everything. `accepts` holds a choice against everything else that is known.
pub(super) fn search(known: Known<'_>, accepts: impl FnMut(&[Supposed]) -> bool) -> SearchOutcome {
    let Some(course) = Problem::of(known) else { return SearchOutcome::Beyond };
    search::run(&course, accepts)
}
