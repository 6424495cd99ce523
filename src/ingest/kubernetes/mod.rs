//! Evidence of Kubernetes: audit events, captures, and the objects and bodies in both, as identity and versions.

pub mod audit;
pub(crate) mod body;
pub(crate) mod capture;
pub(crate) mod digest;
pub(super) mod lenient_body;
pub(crate) mod object;
