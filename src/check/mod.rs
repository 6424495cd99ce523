//! Stage 4 of 5: history, order and contract to findings. Input: a [`crate::history::History`] and its
//! [`crate::order::Order`]. Output: a [`Judgement`]. Invariant: prints nothing; a rule is a pure predicate that returns its
//! certificate. Trap: a rule imports facts and its own group only.

pub(crate) mod engine;
pub(crate) mod finding;
pub(crate) mod focus;
pub(crate) mod halt;
#[doc(hidden)]
pub mod invariants;
pub(crate) mod judgement;
pub(crate) mod options;
#[doc(hidden)]
pub mod registry;
pub(crate) mod rule;
pub(crate) mod ruling;

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
