//! The happens-before graph: which units must come before which, with the reasons, and its cycles as contradictions.
//!
//! Nodes are [`Unit`]s: a request, an event, or all reads and writes of one decision. Edges have kinds ([`EdgeKind`]) and come
//! from sources ([`EdgeSource`]), each of which explains its own edges. No real execution has a cycle; the kinds of edges in a
//! cycle name the failure ([`Anomaly`]). The idea that inference and explanation are two outputs of one source is Elle's
//! (Kingsbury and Alvaro, VLDB 2020).
//!
//! Revisions give the revision order directly, so most rules need no graph: they sort and sweep. The graph serves where units are
//! larger than a request, and for proofs and drawings.

mod anomaly;
mod component;
mod cycle;
mod data_flow;
mod edge;
mod happens_before;
mod in_time;
mod message;
pub(crate) mod picture;
mod precedence;
mod source;
mod sparse;
#[cfg(test)]
mod tests;
mod unit;

pub use anomaly::{Anomalies, Anomaly, Assumed, Dependencies};
pub use component::Components;
pub(crate) use cycle::Search as CycleSearch;
pub use cycle::{Cycle, Found, Step};
pub use data_flow::DataFlow;
pub use edge::{EdgeKind, EdgeKinds};
pub use happens_before::HappensBefore;
pub use in_time::{ProcessOrder, RealTime};
pub use message::Messages;
pub use picture::Picture;
pub use precedence::{Interval, reduction};
pub use source::{EdgeSource, Reason};
pub use sparse::{Edges, Graph, Node};
pub use unit::{Access, Record, Touch, Unit, Units, What, written};
