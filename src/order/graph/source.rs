//! Where edges come from: each source gives its edges, and can say of each one why it holds.

use super::cycle::Step;
use super::edge::EdgeKind;
use super::sparse::Edges;
use super::unit::Record;
use crate::history::{KeyId, Revision};

/// Why one thing comes before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The kind of order.
    pub kind: EdgeKind,
    /// One clause in the past tense: "web saw pods d/a at version 12, which cleaner had written".
    pub says: String,
    /// The record that shows it.
    pub at: Record,
    /// The key that it is about; none for order in time.
    pub key: KeyId,
    /// The revision that counts; none for order in time.
    pub revision: Revision,
}

/// A source of order. What it derives its edges from, it keeps to explain them.
pub trait EdgeSource {
    /// Adds its edges.
    fn add_to(&self, edges: &mut Edges);

    /// Why a step holds, where it is one of its own.
    fn explain(&self, step: Step) -> Option<Reason>;
}
