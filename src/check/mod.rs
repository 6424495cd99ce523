//! Stage 4 of 5: history, order and contract to findings. Input: a [`crate::history::History`] and its
//! [`crate::order::Order`]. Output: a [`Judgement`]. Invariant: prints nothing; a rule is a pure predicate that returns its
//! certificate. Trap: a rule imports facts and its own group only.

pub mod engine;
pub mod finding;
pub mod focus;
pub mod halt;
pub mod invariants;
pub mod judgement;
pub mod options;
pub mod registry;
pub mod rule;
pub mod ruling;

mod certificate;
mod clusters;
mod etcd;
pub(crate) mod facts;
mod linearizability;
mod premises;
mod protocol;
mod published;
mod reads;
mod sessions;
#[cfg(test)]
pub(crate) mod testing;
mod watches;
mod writes;

pub use certificate::Proof;
pub use engine::{Rulings, judge};
pub use facts::{Evidence, Facts};
pub use finding::*;
pub use focus::Focus;
pub use halt::Halt;
pub use options::{Limits, NO_EVIDENCE, NOT_ASKED_FOR, OTHER_NATURE, Options};
pub use published::{PUBLISHED, Published};
pub use registry::RULES;
pub use rule::{Checks, Group, Rule};
pub use ruling::Ruling;
