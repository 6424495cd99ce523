//! Linearizability where the order is not given. Input: a [`History`] of calls and a [`Spec`]. Output: a [`Verdict`] with its
//! certificate. Invariant: never a wrong one; a spent budget is [`Verdict::Unknown`].

mod history;
mod verdict;

pub use history::{Call, History, HistoryError, Outcome, SpecHistory};
pub use verdict::{Budget, Core, Limit, Linearization, Undecided, Verdict};
