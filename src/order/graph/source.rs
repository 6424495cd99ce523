//! Sources of edges: each adds its edges and can give the reason for each of them.

use super::cycle::Step;
use super::edge::EdgeKind;
use super::sparse::Edges;
use super::unit::Record;
use crate::history::{KeyId, Revision};

/// The reason why one unit comes before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The kind of order.
    pub kind: EdgeKind,
    /// One clause in the past tense: "web saw pods d/a at version 12, which cleaner had written".
    pub says: String,
    /// The record that shows it.
    pub at: Record,
    /// The key of the reason; none for order in time.
    pub key: KeyId,
    /// The revision of the reason; none for order in time.
    pub revision: Revision,
}

/// A source of order. It keeps the evidence of its edges to explain them later.
pub trait EdgeSource {
    /// Adds all edges of the source.
    fn add_to(&self, edges: &mut Edges);

    /// The reason for a step; `None` if this source has no such edge.
    fn explain(&self, step: Step) -> Option<Reason>;
}
