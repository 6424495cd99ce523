//! `retrograde` checks recorded etcd and Kubernetes histories: did each client see a history that etcd's total order of
//! revisions can explain?
//!
//! ```text
//! bytes --ingest--> records --history--> operations --order--> timeline + happens-before --check--> findings
//!       findings --counterfactual--> prevention --explain--> narrative --report--> outputs
//! ```
#![deny(missing_docs)]

pub mod ingest;

pub mod history;

pub mod order;

pub mod check;
