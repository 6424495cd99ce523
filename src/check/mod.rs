//! Stage 4 of 5: history, order and contract to findings. Input: a [`crate::history::History`] and its
//! [`crate::order::Order`]. Output: a [`Judgement`]. Invariant: prints nothing; a rule is a pure predicate that returns its
//! certificate.

pub mod evidence;
pub mod finding;
pub mod judgement;
pub mod rule;
pub mod rules;
pub mod ruling;

mod monotonic_reads;

pub use evidence::Evidence;
pub use finding::*;
pub use judgement::{Options, judge};
pub use rule::{Group, Rule};
pub use rules::RULES;
pub use ruling::{Draft, Ruling};
