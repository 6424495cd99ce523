//! The independent checker of certificates. Input: a history and claims about it. Output: whether each claim holds by the
//! definition alone. Invariant: it shares no code with the search, and prefers simple code to speed. Its work is bounded: a claim
//! that is too large to decide is reported as open, never as confirmed.
//!
//! From `search` it uses only the data of histories and certificates, from `model` only the definition of a data type, not its
//! hints.

mod check;
mod cited_record;
mod core;
#[doc(hidden)]
pub mod etcd;
mod facts;
mod linearization;
mod operations;
mod question;
mod report;
mod standing;
#[cfg(test)]
mod tests;

pub use check::{HistoryCheck, report};
pub use core::{CoreCheck, CoreFlaw, Finality, claims, core};
pub use etcd::EtcdFlaw;
pub use facts::{FactFlaw, FindingCheck};
pub use linearization::{OrderFlaw, linearization, prefix};
pub use operations::{ProofCheck, ProofFlaw};
pub use report::{Proof, Report, ReportedHistory, ReportedRemoval};
pub use standing::{Standing, standings};
