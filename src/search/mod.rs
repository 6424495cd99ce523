//! Linearizability where the order of the calls is not given. Input: a [`History`] of calls and a [`crate::model::Spec`]. Output:
//! a [`Verdict`] with its certificate. No verdict is wrong; a spent budget gives [`Verdict::Unknown`]. Operations with a register
//! form are decided by `register`, others by `wgl`.

mod budget;
mod check;
mod config;
mod core;
mod drop_cost;
mod events;
mod history;
mod incremental_table;
mod mask;
mod merge;
mod partition;
mod portfolio;
mod register;
mod schedule;
mod slots;
mod tight_vec;
mod transitions;
mod verdict;
mod visited;
mod wgl;

#[cfg(test)]
mod tests;

pub use check::check;
#[doc(hidden)]
pub use check::check_with;
#[doc(hidden)]
pub use config::SearchConfig;
pub use core::{Alternative, Claim, Missing, Reason, minimal, reason};
pub use history::{Call, History, HistoryError, Outcome, SpecHistory};
#[doc(hidden)]
pub use register::{Reductions, Width};
pub use verdict::{Budget, Core, Limit, Linearization, Undecided, Verdict};
