//! Linearizability where the order is not given. Input: a [`History`] of calls and a [`crate::model::Spec`]. Output: a
//! [`Verdict`] with its certificate. Invariant: never a wrong one; a spent budget is [`Verdict::Unknown`].

mod budget;
mod check;
mod core;
mod depth;
mod history;
mod mask;
mod partition;
mod race;
mod ranks;
mod register;
mod release;
mod room;
mod rows;
mod schedule;
mod shards;
mod slots;
mod switches;
mod transitions;
mod verdict;
mod weave;

#[cfg(test)]
mod tests;

pub use check::check;
#[doc(hidden)]
pub use check::check_with;
pub use core::{Alternative, Claim, Others, Reason, minimal, reason};
pub use history::{Call, History, HistoryError, Outcome, SpecHistory};
#[doc(hidden)]
pub use register::{Reductions, Width};
#[doc(hidden)]
pub use switches::Switches;
pub use verdict::{Budget, Core, Limit, Linearization, Undecided, Verdict};
