//! Agreement of the members' stores, without any client. Input: the stores, and the merged logs. Output: the first
//! difference of each store, and how much was compared.
//!
//! A member applies the committed entries in their order and in one transaction of its store each. So a store has every
//! revision up to its last one, except what a compaction removed. Two stores have the same row for one change.
//!
//! Source: etcd `server/etcdserver/server.go` (`applyEntryNormal`), `server/storage/mvcc/kvstore_txn.go` (`End`),
//! `server/storage/mvcc/kvstore_compaction.go` (`scheduleCompaction`), `server/etcdserver/cindex/cindex.go`; etcd#13766 (a
//! store that was saved with an index beyond its revisions), etcd#14685 (a replayed entry).

use super::effects::Change;
use super::log::{Log, Logged};
use super::store::FIRST_CHANGE;
use crate::history::etcd::{Recording, Store, StoredRevision};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A row of a member's store: index of the member, and of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stored {
    /// Index in [`Recording::members`].
    pub member: u32,
    /// Index in the rows of that member's store.
    pub row: u32,
}

/// The first difference of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The committed log makes another content of the revision.
    Logged {
        /// The revision.
        revision: i64,
        /// A row of the revision, or the first row after it if the store lacks the revision.
        row: Stored,
        /// The entry.
        entry: Logged,
    },
    /// Another store has another content of the revision.
    Stores {
        /// The revision.
        revision: i64,
        /// A row of the revision.
        known: Stored,
        /// A row of the revision, or the first row after it if the store lacks the revision.
        row: Stored,
    },
    /// The store has applied an entry, and its last revision is not the one that the log has after this entry.
    Applied {
        /// The last row.
        row: Stored,
        /// The entry.
        entry: Logged,
        /// The last revision of the store.
        last: i64,
        /// The revision after the entry.
        expected: i64,
    },
    /// Two stores have applied the same entries, and their last revisions differ.
    Index {
        /// The index of the last applied entry.
        index: u64,
        /// The last row of the other store.
        known: Stored,
        /// The last row.
        row: Stored,
        /// The last revision of the store.
        last: i64,
        /// The last revision of the other store.
        expected: i64,
    },
}

/// What the stores of members show about each other.
#[derive(Debug, Default)]
pub struct Replicas {
    /// Revisions of stores that were compared with the log or with another store.
    pub compared: u64,
    /// The first difference of each store that has one.
    pub differences: Vec<Difference>,
}

/// A store while all are read by revision.
struct Reader<'r> {
    member: u32,
    rows: &'r [StoredRevision],
    next: usize,
    /// The store has every revision above this one, through that of its last row.
    above: i64,
    /// Whether some revision is that of the log. Otherwise the log may belong to another store, such as one from a backup.
    is_of_log: bool,
}

impl<'r> Reader<'r> {
    fn of(recording: &Recording, member: u32, store: &'r Store) -> Option<Reader<'r>> {
        let mut rows = &store.revisions[..];
        if !is_read_whole(recording, store) {
            // The last revision that was read may go on behind the damage.
            let last = rows.last()?.main;
            rows = &rows[..rows.partition_point(|row| row.main < last)];
        }
        rows.is_sorted_by_key(|row| (row.main, row.sub)).then_some(())?;
        rows.first()?;
        let above = store.compaction_begun.max(store.compaction_done).max(FIRST_CHANGE - 1);
        Some(Reader { member, rows, next: 0, above, is_of_log: false })
    }

    /// The first revision that the store has or lacks.
    fn from(&self) -> i64 {
        self.rows[0].main.min(self.above.saturating_add(1))
    }

    fn is_done(&self) -> bool {
        self.next == self.rows.len()
    }

    /// The rows of a revision, if the reader stands at it.
    fn rows_of(&self, revision: i64) -> &'r [StoredRevision] {
        let rest = &self.rows[self.next..];
        &rest[..rest.iter().take_while(|row| row.main == revision).count()]
    }

    fn next_row(&self) -> Stored {
        Stored { member: self.member, row: self.next as u32 }
    }

    /// A later row, or the last one.
    fn after(&self, row: Stored, count: usize) -> Stored {
        Stored { row: (row.row as usize + count).min(self.rows.len() - 1) as u32, ..row }
    }
}

impl Replicas {
    /// Compares the stores of a recording with its log and with each other.
    pub fn of(recording: &Recording, log: &Log) -> Replicas {
        let mut replicas = Replicas::default();
        let stores = || (0..).zip(&recording.members).filter_map(|(at, member)| Some((at, member.store.as_ref()?)));
        let mut waiting: Vec<Reader<'_>> =
            stores().filter_map(|(at, store)| Reader::of(recording, at, store)).collect();
        waiting.sort_by_key(|reader| Reverse((reader.from(), reader.member)));
        let mut open: Vec<Reader<'_>> = Vec::new();
        let mut of_log: Vec<u32> = Vec::new();
        let mut revision: i64 = 0;
        loop {
            // The next revision that a store or the log has.
            let begun = waiting.last().map(Reader::from);
            let stored = open.iter().map(|reader| reader.rows[reader.next].main);
            let logged = Some(revision.saturating_add(1)).filter(|next| !open.is_empty() && log.step(*next).is_some());
            let Some(next) = stored.chain(begun).chain(logged).min() else { break };
            revision = next;
            while let Some(reader) = waiting.pop_if(|reader| reader.from() <= revision) {
                open.push(reader);
            }
            replicas.compare(recording, log, revision, &mut open);
            of_log
                .extend(open.iter().filter(|reader| reader.is_done() && reader.is_of_log).map(|reader| reader.member));
            open.retain(|reader| !reader.is_done());
        }
        // Stores by the index that they have applied.
        let mut by_index: FxHashMap<u64, (Stored, i64)> = FxHashMap::default();
        for (member, store) in stores().filter(|(_, store)| is_read_whole(recording, store)) {
            let Some(newest) = store.revisions.len().checked_sub(1) else { continue };
            let row = Stored { member, row: newest as u32 };
            if replicas.differences.iter().any(|difference| difference.row().member == member) {
                continue;
            }
            if of_log.contains(&member) {
                replicas.applied(row, store, log);
            }
            let index = store.consistent_index;
            let (known, expected) = *by_index.entry(index).or_insert((row, last(store)));
            if index > 0 && known != row {
                replicas.compared += 1;
                if last(store) != expected {
                    replicas.differences.push(Difference::Index { index, known, row, last: last(store), expected });
                }
            }
        }
        replicas
    }

    /// Compares the rows of one revision, and ends the readers that differ.
    fn compare(&mut self, recording: &Recording, log: &Log, revision: i64, open: &mut [Reader<'_>]) {
        let step = log.step(revision).filter(|step| step.certain);
        // The first store with all rows of this revision is the measure of the others.
        let has_all = |reader: &&Reader<'_>| reader.above < revision && !reader.rows_of(revision).is_empty();
        let known = open.iter().find(has_all).map(|reader| (reader.next_row(), reader.rows_of(revision)));
        for reader in open {
            let (row, rows) = (reader.next_row(), reader.rows_of(revision));
            reader.next += rows.len();
            // A compaction keeps only the last row of each key.
            let whole = reader.above < revision;
            if rows.is_empty() && !whole {
                continue;
            }
            let mut difference = None;
            if let Some(step) = step {
                let other = unlike_log(recording, step.changes.of(&log.changes), rows, whole);
                let row = other.map(|at| reader.after(row, at)).filter(|_| reader.is_of_log);
                difference = row.map(|row| Difference::Logged { revision, row, entry: step.entry });
                reader.is_of_log |= other.is_none();
                self.compared += u64::from(reader.is_of_log);
            }
            // The log is the measure where it has the revision: a store that agrees with it needs no other one.
            let by_log = step.is_some() && reader.is_of_log;
            if let Some((known, others)) = known.filter(|(known, _)| !by_log && known.member != reader.member) {
                self.compared += 1;
                difference =
                    unlike_store(recording, others, rows, whole).map(|(of_known, of_row)| Difference::Stores {
                        revision,
                        known: Stored { row: known.row + of_known as u32, ..known },
                        row: reader.after(row, of_row),
                    });
            }
            if let Some(difference) = difference {
                self.differences.push(difference);
                reader.next = reader.rows.len();
            }
        }
    }

    /// Compares the last revision of a store with that of the log after the last entry that the store has applied.
    fn applied(&mut self, row: Stored, store: &Store, log: &Log) {
        let Some(at) = usize::try_from(store.consistent_index).ok().and_then(|index| index.checked_sub(1)) else {
            return;
        };
        let (Some(replayed), Some(&entry)) = (log.replayed.get(at), log.entries.get(at)) else { return };
        if at >= log.certain {
            return;
        }
        let (last, expected) = (last(store), replayed.revision);
        self.compared += 1;
        if last != expected {
            self.differences.push(Difference::Applied { row, entry, last, expected });
        }
    }
}

/// The last revision of a store. A compaction may have removed its row.
fn last(store: &Store) -> i64 {
    let stored = store.revisions.last().map_or(FIRST_CHANGE - 1, |row| row.main);
    stored.max(store.compaction_begun).max(store.compaction_done)
}

impl Difference {
    /// The row of the store that differs.
    pub fn row(&self) -> Stored {
        match self {
            Difference::Logged { row, .. }
            | Difference::Stores { row, .. }
            | Difference::Applied { row, .. }
            | Difference::Index { row, .. } => *row,
        }
    }
}

/// Whether all rows of a store were read. Rows in front of a damage are complete.
fn is_read_whole(recording: &Recording, store: &Store) -> bool {
    let file = store.revisions.first().map(|row| row.position.file);
    !recording.problems.iter().any(|problem| problem.file == file)
}

/// Index of the first row that is no change of the log. `whole`: otherwise a compaction may have removed some rows.
fn unlike_log(recording: &Recording, changes: &[Change], rows: &[StoredRevision], whole: bool) -> Option<usize> {
    let is_change = |row: &StoredRevision| {
        let change = usize::try_from(row.sub).ok().and_then(|sub| changes.get(sub));
        change.is_some_and(|change| {
            let value = match (row.tombstone, change.value) {
                (false, Some(value)) => recording.values.same(row.value, value) != Some(false),
                (tombstone, value) => tombstone && value.is_none(),
            };
            row.key == change.key && value
        })
    };
    rows.iter().position(|row| !is_change(row)).or((whole && rows.len() < changes.len()).then_some(rows.len()))
}

/// Index of the first row that is none of `others`, all rows of another store, with the index of the row there in its
/// place. `whole`: otherwise a compaction may have removed some rows.
fn unlike_store(
    recording: &Recording,
    others: &[StoredRevision],
    rows: &[StoredRevision],
    whole: bool,
) -> Option<(usize, usize)> {
    let place = |sub: i64| others.partition_point(|other| other.sub < sub).min(others.len() - 1);
    let is_same = |a: &StoredRevision, b: &StoredRevision| {
        let value = a.tombstone || recording.values.same(a.value, b.value) != Some(false);
        let content =
            |row: &StoredRevision| (row.sub, row.key, row.tombstone, row.create_revision, row.version, row.lease);
        value && content(a) == content(b)
    };
    if let Some(at) = rows.iter().position(|row| !is_same(row, &others[place(row.sub)])) {
        return Some((place(rows[at].sub), at));
    }
    (whole && rows.len() < others.len()).then_some((rows.len(), rows.len()))
}
