//! Linearizability where the order is not given. Input: a [`History`] of calls and a [`crate::model::Spec`]. Output: a
//! [`Verdict`] with its certificate. Invariant: never a wrong one; a spent budget is [`Verdict::Unknown`].

mod budget;
mod check;
mod depth;
mod history;
mod mask;
mod partition;
mod ranks;
mod slots;
mod transitions;
mod verdict;
mod weave;

#[cfg(test)]
mod tests;

pub use check::check;
pub use history::{Call, History, HistoryError, Outcome, SpecHistory};
pub use verdict::{Budget, Core, Limit, Linearization, Undecided, Verdict};
