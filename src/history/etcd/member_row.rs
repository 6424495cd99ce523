//! Rows of members' files before assembly: records of a log, facts of a store.

use super::member::{Lease, Note, StoredRevision};
use super::operation::Request;
use crate::ingest::Position;

/// A record of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogRow {
    pub position: Position,
    pub fact: LogFact,
}

/// The content of a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum LogFact {
    Metadata { node: u64, cluster: u64 },
    Entry { index: u64, term: u64, request: Request, note: Option<Note> },
    Commit(u64),
    Crc(u32),
    Snapshot(u64),
    End { crc: u32, torn: bool },
}

/// A fact of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreRow {
    pub position: Position,
    pub fact: StoreFact,
}

/// The content of a fact.
#[derive(Clone, Copy, Debug)]
pub(super) enum StoreFact {
    Revision(StoredRevision),
    ConsistentIndex(u64),
    Term(u64),
    CompactionBegun(i64),
    CompactionDone(i64),
    Lease(Lease),
}
