//! Linearizability where the order of the calls is not given. Input: a [`History`] of calls and a [`crate::model::Spec`]. Output:
//! a [`Verdict`] with its certificate. No verdict is wrong; a spent budget gives [`Verdict::Unknown`]. Operations with a register
//! form are decided by `register`, others by `wgl`. Queues are explained by `fifo` if no element repeats.
//!
//! ```
//! use retrograde::model::{Register, register::{Answer, Operation}};
//! use retrograde::search::{Budget, Call, History, Outcome, Verdict, check};
//!
//! let call = |process, operation, invoke, answer| {
//!     Call { process, operation, invoke, outcome: Outcome::Completed { returned: invoke + 1, answer } }
//! };
//! let history = History::new(vec![
//!     call(1, Operation::Write(7), 0, Answer::Done),
//!     call(2, Operation::Read, 10, Answer::Value(None)), // after the write had returned
//! ])?;
//! let verdict = check(&Register::default(), &history, &Budget::default());
//! assert!(matches!(verdict, Verdict::Violated(core) if core.calls == [0, 1]));
//! # Ok::<(), retrograde::search::HistoryError>(())
//! ```

mod budget;
mod check;
mod config;
mod core;
mod crashed_uses;
mod drop_cost;
mod events;
mod fifo;
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
pub use core::minimal;
pub use history::{Call, History, HistoryError, Outcome, SpecHistory};
pub use verdict::{Budget, Core, Limit, Linearization, Undecided, Verdict};

#[doc(hidden)]
pub use self::{
    check::check_with,
    config::SearchConfig,
    core::{Alternative, Claim, Missing, Reason, reason},
    register::{Reductions, Thresholds, Width},
};
