//! What a member logged and stored.

use super::operation::Request;
use super::value::ValueId;
use crate::history::Symbol;
use crate::ingest::Position;
use serde::{Deserialize, Serialize};

/// A member.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// Its name: that of its directory.
    pub name: String,
    /// Its write-ahead log.
    pub log: Option<Log>,
    /// Its store.
    pub store: Option<Store>,
}

/// A write-ahead log, put together from its segments.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The member's number.
    pub node: u64,
    /// Its cluster's number.
    pub cluster: u64,
    /// Entries by index. Where a snapshot was received instead, indices are left out.
    pub entries: Vec<LogEntry>,
    /// What some entries mean beside the keys, by index.
    pub notes: Vec<(u64, Note)>,
    /// Entries that another one took the place of although they were known to be committed, which raft excludes.
    pub overwritten: Vec<Overwritten>,
    /// The highest index that was known to be committed.
    pub commit: u64,
    /// The index behind which the log begins: 0 where it is whole.
    pub after: u64,
    /// Whether the last record was cut off when the member stopped.
    pub torn: bool,
    /// Whether entries are missing in its middle or at its end, as problems of its files say.
    pub broken: bool,
}

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Where it stands.
    pub position: Position,
    /// Index.
    pub index: u64,
    /// Term.
    pub term: u64,
    /// What was proposed.
    pub request: Request,
}

/// What an entry means beside the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// This member counts for majorities from here on.
    Voter(u64),
    /// This member counts no more, or not yet: it left, or it is a learner.
    NoVoter(u64),
    /// Members changed in a way that is not known.
    Members,
    /// Requests behind it may be refused for reasons that the log does not show, or it may have changed keys itself.
    Restriction,
}

/// An entry that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overwritten {
    /// The one that was committed.
    pub old: LogEntry,
    /// The one in its place.
    pub new: LogEntry,
}

/// A store.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// Revisions in their order. Those of compacted history are left out, except the last one of each key that lives.
    pub revisions: Vec<StoredRevision>,
    /// Index of the last entry whose effect is in it; 0: not recorded.
    pub consistent_index: u64,
    /// Term of that entry; 0: not recorded.
    pub term: u64,
    /// A compaction was begun through this revision; 0: none.
    pub compaction_begun: i64,
    /// A compaction was done through this revision; 0: none.
    pub compaction_done: i64,
    /// Leases that had not ended.
    pub leases: Vec<Lease>,
}

/// A revision of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRevision {
    /// Where it stands.
    pub position: Position,
    /// The transaction.
    pub main: i64,
    /// The change within it, from 0.
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
    /// Its number.
    pub id: i64,
    /// Seconds.
    pub ttl: i64,
}
