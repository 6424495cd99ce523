//! The files of one client's calls and watches.

use crate::assertion::lines::{Clock, Lines};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Clock and counter of all clients of a recorder.
#[derive(Debug)]
pub(super) struct Shared {
    clock: Clock,
    next: AtomicU64,
}

impl Shared {
    pub(super) fn new() -> Shared {
        Shared { clock: Clock::new(), next: AtomicU64::new(1) }
    }
}

/// Files of one client.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) operations: Lines,
    pub(super) watches: Lines,
}

/// One client's part of a recording.
#[derive(Clone, Debug)]
pub(super) struct ClientRecord {
    shared: Arc<Shared>,
    files: Arc<Files>,
}

impl ClientRecord {
    pub(super) fn new(shared: Arc<Shared>, files: Arc<Files>) -> ClientRecord {
        ClientRecord { shared, files }
    }

    /// Present time, in nanoseconds since the recording began.
    pub(super) fn now(&self) -> i64 {
        self.shared.clock.now()
    }

    /// A number that is unique in the recording.
    pub(super) fn next(&self) -> u64 {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Appends a line about a call.
    pub(super) fn operation(&self, line: &Value) {
        self.files.operations.append(line);
    }

    /// Appends a line about a watch.
    pub(super) fn watch(&self, line: &Value) {
        self.files.watches.append(line);
    }
}
