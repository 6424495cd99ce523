//! Records etcd's gRPC calls as a report of its robustness suite (`docs/formats.md`).

mod answer;
mod call;
mod client_record;
mod recorder;
mod watches;

pub use call::EtcdCall;
#[cfg(feature = "tower")]
pub(super) use call::is_recorded_call;
pub use recorder::{EtcdClient, EtcdRecorder, replay};
pub use watches::EtcdWatches;

use crate::history::etcd::{HASHED, hash};
use serde_json::{Value, json};

/// A key as a report has it: each byte as the character of its number. Different keys stay different and in their
/// order. UTF-8 beyond ASCII looks different in findings, but verdicts are right.
fn key(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// A value as a report has it: a short text, or the hash of anything else.
fn value(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok("") => json!({}),
        Ok(text) if bytes.len() < HASHED => json!({ "Value": text }),
        // In a report hash 0 means no hash.
        _ => json!({ "Hash": hash(bytes).max(1) }),
    }
}
