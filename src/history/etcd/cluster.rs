//! A recording with the identifiers by which findings name its clients, keys and members.

use super::recording::Recording;
use crate::history::{ClockId, IncarnationId, KeyId, ServerId, Symbol};
use rustc_hash::FxHashMap;

/// A recording with the identifiers that its history has for its names.
#[derive(Debug)]
pub struct Cluster {
    /// What was recorded.
    pub recording: Recording,
    pub(super) keys: FxHashMap<Symbol, KeyId>,
    pub(super) servers: FxHashMap<u64, ServerId>,
}

impl Cluster {
    /// The identifier of a key.
    pub fn key(&self, text: Symbol) -> KeyId {
        self.keys.get(&text).copied().unwrap_or(KeyId::NONE)
    }

    /// The identifier of a member by its number.
    pub fn server(&self, member: u64) -> ServerId {
        self.servers.get(&member).copied().unwrap_or(ServerId::NONE)
    }

    /// The process life of a client: the one that it has.
    pub fn incarnation(&self, client: u32) -> IncarnationId {
        IncarnationId(client)
    }
}

/// The clock of a report: one process recorded everything.
pub const CLOCK: ClockId = ClockId(0);
