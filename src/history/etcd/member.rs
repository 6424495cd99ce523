//! What a member logged and stored.

use super::log::{LogFact, LogRow, StoreFact, StoreRow};
use super::operation::Request;
use super::value::ValueId;
use crate::history::Symbol;
use crate::ingest::{FileId, Position};
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

/// The rows of one segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub file: FileId,
    /// Its place in the row of segments, and the first index that it holds, as its name says.
    pub name: Option<(u64, u64)>,
    pub rows: Vec<LogRow>,
}

/// Something that is wrong with a segment.
pub(super) struct Flaw {
    pub file: FileId,
    pub expected: &'static str,
    pub found: String,
}

impl Log {
    /// Puts segments together. What stands behind a flaw in the middle is left out: entries are in order only together.
    pub(super) fn of(mut segments: Vec<Segment>, flaws: &mut Vec<Flaw>) -> Option<Log> {
        segments.sort_by_key(|segment| (segment.name, segment.file));
        let mut log = Log::default();
        let mut assembly = Assembly { log: &mut log, snapshots: Vec::new(), crc: 0, sequence: None, known: false };
        let count = segments.len();
        for (at, segment) in segments.iter().enumerate() {
            if let Err((expected, found)) = assembly.segment(segment, at + 1 == count) {
                flaws.push(Flaw { file: segment.file, expected, found });
                assembly.log.broken = true;
                break;
            }
        }
        (count > 0).then_some(log)
    }
}

type Broken = (&'static str, String);

struct Assembly<'l> {
    log: &'l mut Log,
    /// Indices through which snapshots were taken or received.
    snapshots: Vec<u64>,
    /// The sum that the segment before ended with.
    crc: u32,
    /// The place of that segment.
    sequence: Option<u64>,
    /// Whether the member is known.
    known: bool,
}

impl Assembly<'_> {
    fn segment(&mut self, segment: &Segment, last: bool) -> Result<(), Broken> {
        let first = self.sequence.is_none();
        if let Some((sequence, index)) = segment.name {
            if let Some(before) = self.sequence.filter(|before| before.checked_add(1) != Some(sequence)) {
                return Err(("the segment behind the one before", format!("number {sequence} behind number {before}")));
            }
            if first {
                // Segments in front of the last snapshots are removed; then the name says where this one begins.
                self.log.after = if sequence == 0 { 0 } else { index.saturating_sub(1) };
            }
            self.sequence = Some(sequence);
        } else {
            self.sequence = Some(self.sequence.map_or(0, |before| before.saturating_add(1)));
        }
        let mut ended = false;
        for row in &segment.rows {
            match row.fact {
                LogFact::Metadata { node, cluster } => {
                    if self.known && (node, cluster) != (self.log.node, self.log.cluster) {
                        let found = format!("member {node:x} of cluster {cluster:x}");
                        return Err(("segments of one member's log", found));
                    }
                    (self.log.node, self.log.cluster, self.known) = (node, cluster, true);
                }
                LogFact::Crc(crc) => {
                    if !first && crc != self.crc {
                        return Err((
                            "the segment behind the one before",
                            "one that goes on from another one".to_owned(),
                        ));
                    }
                }
                LogFact::Commit(commit) => self.log.commit = self.log.commit.max(commit),
                LogFact::Snapshot(index) => self.snapshot(index),
                LogFact::Entry { index, term, request, note } => {
                    self.entry(LogEntry { position: row.position, index, term, request })?;
                    self.log.notes.extend(note.map(|note| (index, note)));
                }
                LogFact::End { crc, torn } => {
                    self.crc = crc;
                    self.log.torn = torn;
                    ended = true;
                    if torn && !last {
                        return Err(("a whole segment", "a record that is cut off".to_owned()));
                    }
                }
            }
        }
        // A damaged record, which is a problem of its file already.
        if ended { Ok(()) } else { Err(("the rest of a log", "a damaged record".to_owned())) }
    }

    fn snapshot(&mut self, index: u64) {
        self.snapshots.push(index);
        if self.log.entries.is_empty() {
            self.log.after = self.log.after.max(index);
        }
    }

    fn entry(&mut self, entry: LogEntry) -> Result<(), Broken> {
        while self.log.notes.pop_if(|(index, _)| *index >= entry.index).is_some() {}
        let entries = &mut self.log.entries;
        let kept = entries.partition_point(|other| other.index < entry.index);
        let commit = self.log.commit;
        for old in entries.drain(kept..).filter(|old| old.index <= commit) {
            // One term has one leader, which proposes one entry for an index.
            if old.term != entry.term {
                self.log.overwritten.push(Overwritten { old, new: entry });
            }
        }
        let before = entries.last().map_or(self.log.after, |last| last.index);
        if before.checked_add(1) != Some(entry.index)
            && !self.snapshots.iter().any(|at| at.checked_add(1) == Some(entry.index))
        {
            let found = format!("entry {} behind entry {before}", entry.index);
            // Where even the first one does not fit, the name of the segment was wrong.
            return Err(("entries without a hole", found));
        }
        entries.push(entry);
        Ok(())
    }
}

impl Store {
    /// A store out of its facts.
    pub(super) fn of(rows: Vec<StoreRow>) -> Store {
        let mut store = Store::default();
        for row in rows {
            match row.fact {
                StoreFact::Revision(revision) => store.revisions.push(revision),
                StoreFact::ConsistentIndex(index) => store.consistent_index = index,
                StoreFact::Term(term) => store.term = term,
                StoreFact::CompactionBegun(revision) => store.compaction_begun = revision,
                StoreFact::CompactionDone(revision) => store.compaction_done = revision,
                StoreFact::Lease(lease) => store.leases.push(lease),
            }
        }
        store
    }
}
