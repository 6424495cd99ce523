//! Recording of etcd's gRPC calls as a report of its robustness suite (`docs/formats.md`).

mod answer;
mod call;
mod client_record;
mod recorder;
mod watches;

pub use call::EtcdCall;
#[cfg(feature = "tower")]
pub(super) use call::is_recorded;
pub use recorder::{EtcdClient, EtcdRecorder, replay};
pub use watches::EtcdWatches;

use crate::history::etcd::{HASHED, hash};
use serde_json::{Value, json};

/// A key as a report has it. Bytes above 127 are the characters of these numbers, so that different keys stay different and in their
/// order: what is UTF-8 beyond ASCII looks strange and is decided rightly.
fn key(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// A value as a report has it: short texts whole, everything else as its hash.
fn value(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok("") => json!({}),
        Ok(text) if bytes.len() < HASHED => json!({ "Value": text }),
        // A hash of zero would be none.
        _ => json!({ "Hash": hash(bytes).max(1) }),
    }
}
