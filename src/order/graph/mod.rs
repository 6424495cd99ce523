//! The happens-before graph: what must come before what, why, and what contradicts itself.
//!
//! Nodes are [`Unit`]s: a request, an event, or all that one decision read and wrote. Edges have kinds ([`EdgeKind`]) and come from
//! sources ([`EdgeSource`]), each of which can say why an edge of its own holds. A cycle cannot be; which kinds it takes says
//! what went wrong ([`Anomaly`]).
//!
//! T is given by revisions, so most rules need no graph: they sort and sweep. The graph serves where the units of interest are
//! larger than a request, and to prove and draw what was found.
//!
//! The idea that inference and explanation are two outputs of one source is Elle's (Kingsbury and Alvaro, VLDB 2020).

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
