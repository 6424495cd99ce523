//! A recorded cluster with the ids by which findings name its clients, keys and members.

use super::recording::Recording;
use crate::history::{ClockId, IncarnationId, KeyId, ServerId, Symbol};
use rustc_hash::FxHashMap;

/// A recording with the ids that its history assigned.
#[derive(Debug)]
pub struct Cluster {
    /// The recording.
    pub recording: Recording,
    pub(super) keys: FxHashMap<Symbol, KeyId>,
    pub(super) servers: FxHashMap<u64, ServerId>,
}

impl Cluster {
    /// The id of a key; none for another text.
    pub fn key(&self, text: Symbol) -> KeyId {
        self.keys.get(&text).copied().unwrap_or(KeyId::NONE)
    }

    /// The id of a member by its number; none for an unknown one.
    pub fn server(&self, member: u64) -> ServerId {
        self.servers.get(&member).copied().unwrap_or(ServerId::NONE)
    }

    /// The incarnation of a client; each client has only one.
    pub fn incarnation(&self, client: u32) -> IncarnationId {
        IncarnationId(client)
    }
}

/// The clock of a report. One process records a whole report, so there is one clock.
pub const CLOCK: ClockId = ClockId(0);
