//! The independent checker of certificates. Input: a history and what was claimed about it. Output: whether the claim holds,
//! by the definition alone. Invariant: shares no code with the search; plain rather than fast, and bounded: what is too
//! large for it is said to be too large, never waved through.
//!
//! Of `search` it uses the plain data of histories and certificates, of `model` the definition of a data type: not its hints.

mod check;
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
