//! Assembles the files of one etcd member: the segments of its write-ahead log, and the facts of its store.
//!
//! Segments are sorted by the numbers in their names. At the first flaw assembly stops, since entries after a gap have no known
//! order.

use super::member::{Log, LogEntry, Note, Overwritten, Store};
use super::member_row::{LogFact, LogRow, StoreFact, StoreRow};
use crate::ingest::FileId;

/// The rows of one segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub file: FileId,
    /// The segment's number and first index, from its file name.
    pub name: Option<(u64, u64)>,
    pub rows: Vec<LogRow>,
}

/// A flaw of a segment.
pub(super) struct Flaw {
    pub file: FileId,
    pub expected: &'static str,
    pub found: String,
}

impl Log {
    /// Assembles segments. Everything after a flaw is left out, since later entries have no known order.
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
        let founded = assembly.snapshots.iter().copied().find(|index| *index > 0);
        log.found_on_backup(founded);
        (count > 0).then_some(log)
    }

    /// A log of a store that was restored from a backup begins with its members and a snapshot behind them. Revisions do
    /// not begin with the log then. `snapshot` is the index of the first snapshot.
    ///
    /// Source: etcd `etcdutl/snapshot/v3_snapshot.go` (`saveWALAndSnap`).
    fn found_on_backup(&mut self, snapshot: Option<u64>) {
        let Some(index) = snapshot.filter(|_| self.after == 0) else { return };
        let is_membership = |note: &&(u64, Note)| note.0 <= index && !matches!(note.1, Note::Restriction);
        if self.notes.iter().filter(is_membership).count() as u64 == index {
            let at = self.notes.partition_point(|note| note.0 <= index);
            self.notes.insert(at, (index, Note::Restriction));
        }
    }
}

type Broken = (&'static str, String);

struct Assembly<'l> {
    log: &'l mut Log,
    /// Indices of snapshots that were taken or received.
    snapshots: Vec<u64>,
    /// The checksum at the end of the previous segment.
    crc: u32,
    /// The number of that segment.
    sequence: Option<u64>,
    /// Whether member and cluster are known.
    known: bool,
}

impl Assembly<'_> {
    fn segment(&mut self, segment: &Segment, last: bool) -> Result<(), Broken> {
        let first = self.sequence.is_none();
        if let Some((sequence, index)) = segment.name {
            if let Some(before) = self.sequence.filter(|before| before.checked_add(1) != Some(sequence)) {
                return Err(("the next segment of the log", format!("segment {sequence} after segment {before}")));
            }
            if first {
                // Segments before the last snapshots are deleted; then the name says where this one begins.
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
                        return Err(("the next segment of the log", "a segment that continues another one".to_owned()));
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
                        return Err(("a complete segment", "a truncated record".to_owned()));
                    }
                }
            }
        }
        // The damaged record is already a problem of its file.
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
            let found = format!("entry {} after entry {before}", entry.index);
            // If the first entry of the log does not fit, the segment's name is wrong.
            return Err(("the next entry of the log", found));
        }
        entries.push(entry);
        Ok(())
    }
}

impl Store {
    /// A store from its facts.
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
