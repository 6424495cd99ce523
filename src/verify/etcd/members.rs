//! Compares the logs and stores of members, where no client is recorded: by a table of all that they have.
//!
//! Source: etcd `server/etcdserver/server.go` (`applyEntryNormal`), `server/storage/mvcc/kvstore_txn.go` (`End`).

use super::EtcdFlaw;
use crate::history::etcd::{LogEntry, Recording, Request, StoredRevision};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

/// Committed entries and revisions that two members have. All others are known from one member only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Compared {
    pub entries: usize,
    pub revisions: usize,
}

/// Compares all members.
///
/// # Errors
///
/// The first difference of two logs or of two stores.
pub(super) fn compare(recording: &Recording) -> Result<Compared, EtcdFlaw> {
    let mut compared = Compared::default();
    let differ = |what: &'static str, number: i64, a: &str, b: &str| EtcdFlaw::Members {
        what,
        number,
        members: [a.to_owned(), b.to_owned()],
    };
    let mut entries: BTreeMap<u64, (&str, &LogEntry)> = BTreeMap::new();
    for member in &recording.members {
        let Some(log) = &member.log else { continue };
        for entry in log.entries.iter().filter(|entry| entry.index <= log.commit) {
            match entries.entry(entry.index) {
                Entry::Vacant(place) => _ = place.insert((&member.name, entry)),
                Entry::Occupied(known) => {
                    let (other, known) = *known.get();
                    let both = !matches!((known.request, entry.request), (Request::Other, _) | (_, Request::Other));
                    if known.term != entry.term || both && !recording.requests.same(&known.request, &entry.request) {
                        return Err(differ("index", entry.index.cast_signed(), other, &member.name));
                    }
                    compared.entries += 1;
                }
            }
        }
    }
    let mut rows: BTreeMap<(i64, i64), (&str, &StoredRevision)> = BTreeMap::new();
    for member in &recording.members {
        for row in member.store.iter().flat_map(|store| &store.revisions) {
            match rows.entry((row.main, row.sub)) {
                Entry::Vacant(place) => _ = place.insert((&member.name, row)),
                Entry::Occupied(known) => {
                    let (other, known) = *known.get();
                    let content =
                        |row: &StoredRevision| (row.key, row.tombstone, row.create_revision, row.version, row.lease);
                    let value = row.tombstone || recording.values.same(known.value, row.value) != Some(false);
                    if !value || content(known) != content(row) {
                        return Err(differ("revision", row.main, other, &member.name));
                    }
                    compared.revisions += 1;
                }
            }
        }
    }
    // Above its compaction, a store has every row through its last one.
    for member in &recording.members {
        let Some(store) = &member.store else { continue };
        let Some(last) = store.revisions.last() else { continue };
        let above = store.compaction_begun.max(store.compaction_done);
        let own: BTreeSet<(i64, i64)> = store.revisions.iter().map(|row| (row.main, row.sub)).collect();
        let mut all = rows.range((above.saturating_add(1), 0)..).take_while(|(place, _)| place.0 <= last.main);
        if let Some((place, (other, _))) = all.find(|(place, _)| !own.contains(place)) {
            return Err(differ("revision", place.0, other, &member.name));
        }
    }
    Ok(compared)
}
