//! Isolation levels of transactions: which levels a history has, and the anomaly that excludes each next stronger one.
//!
//! Input: [`Transactions`]. Output: [`Levels`]. `docs/isolation.md` has the lattice of levels and its sources.
//!
//! ```
//! use retrograde::isolation::{Levels, Outcome, Step, Transactions};
//!
//! // Two clients read the same balance, and each writes what it makes of it.
//! let mut history = Transactions::default();
//! history.push(0, Some((0, 1)), Outcome::Committed, [Step::Write(0, 100)]);
//! history.push(1, Some((2, 4)), Outcome::Committed, [Step::Read(0, Some(100)), Step::Write(0, 150)]);
//! history.push(2, Some((3, 5)), Outcome::Committed, [Step::Read(0, Some(100)), Step::Write(0, 70)]);
//! let levels = Levels::of(&history, 1_000_000);
//! assert_eq!(levels.strongest(), ["strong-prefix"]);
//! ```

mod causality;
mod commit_order;
mod core;
mod decision;
mod dependencies;
mod level;
mod observed;
mod reasons;
#[cfg(test)]
mod tests;
mod transactions;

pub use self::core::{Choice, NoOrder};
pub use commit_order::CommitOrder;
pub use decision::{Decision, Dependency, Levels, Violation, anomaly};
pub use level::{Isolation, Level, Respects};
pub use observed::{Flaw, Flawed, Node};
pub use reasons::Because;
pub use transactions::{Key, Outcome, Step, Transactions, Value};
