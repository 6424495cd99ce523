//! Evidence of etcd itself: the reports of its robustness suite, and the files of its members.
//!
//! A report is a directory of `client-N/operations.json`, `client-N/watch.json` and `server-NAME/member/{wal,snap}`. Nothing in
//! it is ever changed: etcd's own reader truncates a log that ends in the middle of a record, this one says so.

pub(crate) mod backend;
mod bbolt;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod layout;
pub mod operation;
mod protobuf;
pub(crate) mod request;
pub(crate) mod traffic;
pub(crate) mod wal;
pub(crate) mod watch;

/// The highest revision that is taken for one. No server comes so far (at a million writes a second it takes 36,000 years), and the order is
/// rebuilt in small multiples of revisions.
pub const HIGHEST_REVISION: i64 = 1 << 60;

pub use protobuf::WireError;
pub(crate) use protobuf::{Field, Fields};

pub(super) use bbolt::is_store;

/// The byte of a text that an error is about.
fn byte(text: &str, error: &serde_json::Error) -> usize {
    let mut starts = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1));
    let start = starts.nth(error.line().saturating_sub(1)).unwrap_or(text.len());
    let at = start.saturating_add(error.column()).saturating_sub(1).min(text.len());
    if text.is_char_boundary(at) { at } else { 0 }
}
