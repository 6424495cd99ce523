//! Proofs of verdicts that `crate::verify` decides again without the engine.

use crate::order::etcd::Writer;
use crate::search::Claim;

/// The complete proof of a rule's verdict, for a machine. Operations are numbered from 0 as in
/// [`crate::model::TypedLog::operations`].
///
/// A new kind needs a variant here, its fields in the JSON report, and a variant of `verify::Proof` that decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// An order that explains every answer of an operation log.
    Linearization {
        /// The model.
        model: &'static str,
        /// The operations in their order of linearization points.
        order: Vec<u32>,
    },
    /// An order that explains every answer and delivery of an etcd report. Operations are numbered as in
    /// [`crate::history::etcd::Recording::operations`]. Keys are texts, because symbols belong to the recording.
    Etcd {
        /// Operations and expiries of leases, in the order of their effects.
        order: Vec<Writer>,
        /// Keys that ends of leases removed, by revision.
        removed: Vec<(i64, Vec<String>)>,
    },
    /// Operations that no order explains.
    Core {
        /// The model.
        model: &'static str,
        /// The parts of these operations that count. No order explains them, whatever the other operations did.
        claims: Vec<Claim>,
        /// Whether every claim is needed.
        minimal: bool,
    },
}
