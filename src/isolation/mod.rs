//! Isolation levels of transactions: which levels a history has, and the anomaly that excludes each next stronger one.
//!
//! Input: [`Transactions`]. Output: [`Levels`]. `docs/isolation.md` has the lattice of levels and its sources.

mod causality;
mod commit_order;
mod core;
mod decision;
mod dependencies;
mod level;
mod observed;
#[cfg(test)]
mod tests;
mod transactions;

pub use self::core::{Choice, NoOrder};
pub use commit_order::CommitOrder;
pub use decision::{Decision, Dependency, Levels, Violation, anomaly};
pub use dependencies::Because;
pub use level::{Isolation, Level, Respects};
pub use observed::{Flaw, Flawed, Node};
pub use transactions::{Key, Outcome, Step, Transactions, Value};
