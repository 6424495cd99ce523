//! Evidence of etcd itself: reports of its robustness suite, and files of its members.
//!
//! A report is a directory with `client-N/operations.json`, `client-N/watch.json` and
//! `server-NAME/member/{wal,snap}`. Evidence is never changed: etcd's own reader truncates a log that ends inside a
//! record, this one reports it.

pub(crate) mod backend;
mod bbolt;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod layout;
pub mod operation;
mod protobuf;
pub(crate) mod request;
#[cfg(test)]
pub(crate) mod store_fixture;
pub(crate) mod traffic;
pub(crate) mod wal;
pub(crate) mod watch;

/// Highest revision that is believed. At a million writes a second a server reaches it after 36,000 years. The
/// revision order computes with small multiples of revisions, which must not overflow.
pub const HIGHEST_REVISION: i64 = 1 << 60;

pub use protobuf::WireError;
pub(crate) use protobuf::{Field, Fields};

pub(super) use bbolt::is_store;

/// Offset of the byte that an error names by line and column.
fn byte(text: &str, error: &serde_json::Error) -> usize {
    let mut starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
    let start = starts.nth(error.line().saturating_sub(1)).unwrap_or(text.len());
    let at = start.saturating_add(error.column()).saturating_sub(1).min(text.len());
    if text.is_char_boundary(at) { at } else { 0 }
}
