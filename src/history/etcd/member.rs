//! The log and the store of an etcd member.

use super::operation::Request;
use super::value::ValueId;
use crate::history::Symbol;
use crate::ingest::Position;
use serde::{Deserialize, Serialize};

/// A member.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// The name of its directory.
    pub name: String,
    /// Its write-ahead log.
    pub log: Option<Log>,
    /// Its store.
    pub store: Option<Store>,
}

/// A write-ahead log, assembled from its segments.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The member's id.
    pub node: u64,
    /// The id of its cluster.
    pub cluster: u64,
    /// Entries by index. Indices that a received snapshot replaced are missing.
    pub entries: Vec<LogEntry>,
    /// Effects of entries beside changes of keys, by index.
    pub notes: Vec<(u64, Note)>,
    /// Entries that were replaced although they were known to be committed, which raft excludes.
    pub overwritten: Vec<Overwritten>,
    /// The highest index known to be committed.
    pub commit: u64,
    /// The index after which the log begins; 0 for a complete log.
    pub after: u64,
    /// Whether the last record was truncated when the member stopped.
    pub torn: bool,
    /// Whether entries are missing, as the problems of its files say.
    pub broken: bool,
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Position.
    pub position: Position,
    /// Index.
    pub index: u64,
    /// Term.
    pub term: u64,
    /// The proposal.
    pub request: Request,
}

/// An effect of an entry beside changes of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// This member votes from here on.
    Voter(u64),
    /// This member does not vote from here on: it left, or is a learner.
    NoVoter(u64),
    /// The membership changed in an unknown way.
    Members,
    /// Later requests may be refused for reasons outside the log, or the entry itself may have changed keys.
    Restriction,
}

/// A replaced entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwritten {
    /// The committed entry.
    pub old: LogEntry,
    /// The entry that replaced it.
    pub new: LogEntry,
}

/// A store.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// Revisions in order. Compacted ones are missing, except the last one of each live key.
    pub revisions: Vec<StoredRevision>,
    /// Index of the last applied entry; 0: not recorded.
    pub consistent_index: u64,
    /// Term of that entry; 0: not recorded.
    pub term: u64,
    /// Highest revision through which a compaction began; 0: none.
    pub compaction_begun: i64,
    /// Highest revision through which a compaction ended; 0: none.
    pub compaction_done: i64,
    /// Live leases.
    pub leases: Vec<Lease>,
}

/// A revision of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRevision {
    /// Position.
    pub position: Position,
    /// Revision of the transaction.
    pub main: i64,
    /// Index of the change in the transaction, from 0.
    pub sub: i64,
    /// Whether the key was deleted.
    pub tombstone: bool,
    /// Key.
    pub key: Symbol,
    /// Value.
    pub value: ValueId,
    /// Revision at which the key's life began.
    pub create_revision: i64,
    /// Revision of this change.
    pub mod_revision: i64,
    /// Number of changes in this life.
    pub version: i64,
    /// Lease, or 0.
    pub lease: i64,
}

/// A lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The id.
    pub id: i64,
    /// Time to live in seconds.
    pub ttl: i64,
}
