//! x
pub mod ingest;
