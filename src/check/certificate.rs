//! Proofs of verdicts that can be decided again without the engine (`crate::verify`).

use crate::order::etcd::Writer;
use crate::search::Claim;

/// Why a rule came to its verdict, complete and for a machine. Operations are numbered from 0 as
/// [`crate::model::TypedLog::operations`] has them.
///
/// A further kind is a variant here, its fields in the JSON report, and a variant of `verify::Proof` that decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// An order that explains every answer of an operation log.
    Linearization {
        /// The model.
        model: &'static str,
        /// Its operations, first to last.
        order: Vec<u32>,
    },
    /// An order that explains every answer and delivery of a report of etcd. Its operations are numbered as
    /// [`crate::history::etcd::Recording::operations`] has them. Keys are written out: symbols are of the recording.
    Etcd {
        /// What took effect, first to last: operations, and leases that ended on their own.
        order: Vec<Writer>,
        /// Keys that the ends of leases removed, by revision.
        removed: Vec<(i64, Vec<String>)>,
    },
    /// What no order of the operations explains.
    Core {
        /// The model.
        model: &'static str,
        /// What is known of which operations: no order explains it, whatever the others did.
        claims: Vec<Claim>,
        /// Whether it takes all of it.
        minimal: bool,
    },
}
