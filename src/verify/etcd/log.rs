//! Derives from members' logs which compactions happened, and the earliest time of each.
//!
//! Source: etcd `server/etcdserver/apply` (entries are applied in the order of their indices, compactions like writes).

use super::store::{Applied, ReplayedHistory, Store};
use crate::history::etcd::{LogEntry, Recording, Request, Step};
use crate::ingest::Time;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The compactions in members' logs.
pub(super) struct Logged {
    /// Earliest time, and highest revision compacted by this one or an earlier one; both ascending.
    compactions: Vec<(Time, i64)>,
}

impl Logged {
    /// Compares the logs with a replayed order. A compaction after the entry of a write was applied after that write was sent. If
    /// the logs have gaps or do not match the order, the writes before a compaction are unknown, and it may have happened at any
    /// time.
    pub fn of(recording: &Recording, replayed: &ReplayedHistory<'_>) -> Logged {
        let entries = entries(recording);
        let commit = recording.members.iter().filter_map(|member| Some(member.log.as_ref()?.commit)).max().unwrap_or(0);
        let mut store = Store::new(recording, leases(recording, &entries), HashMap::new());
        let mut compactions = Vec::new();
        let mut writes = replayed.written.iter().peekable();
        let mut sent = Time(i64::MIN);
        let (mut next, mut readable) = (1, true);
        for (index, entry) in &entries {
            readable &= *index == next;
            next = *index + 1;
            let before = store.revision;
            let applied = if readable { apply(&mut store, &entry.request) } else { None };
            readable &= applied.is_some() && store.not_compared == 0;
            if store.revision > before && !is_of(recording, &store, replayed) {
                // The log has other changes than the order, so it bounds no time.
                compactions.iter_mut().for_each(|(time, _)| *time = Time(i64::MIN));
                readable = false;
            }
            // An entry that is not known to be committed may have been replaced.
            while let Some((_, call)) = writes.next_if(|(number, _)| *index <= commit && *number <= store.revision) {
                sent = sent.max(*call);
            }
            if let Request::Compact { revision } = entry.request {
                match applied.filter(|_| readable) {
                    Some(Applied::Refused(_)) => {}
                    Some(Applied::Done) => compactions.push((sent, revision)),
                    None => compactions.push((Time(i64::MIN), revision)),
                }
            }
        }
        compactions.sort_unstable();
        for at in 1..compactions.len() {
            compactions[at].1 = compactions[at].1.max(compactions[at - 1].1);
        }
        Logged { compactions }
    }

    /// The highest revision that may be compacted at a time; -1: none.
    pub fn through(&self, by: Time) -> i64 {
        let at = self.compactions.partition_point(|(from, _)| *from <= by);
        self.compactions[..at].last().map_or(-1, |(_, through)| *through)
    }
}

/// One entry for each index: a committed one if any log has it, else that of the latest term.
fn entries(recording: &Recording) -> BTreeMap<u64, &LogEntry> {
    let mut best: BTreeMap<u64, ((bool, u64), &LogEntry)> = BTreeMap::new();
    for log in recording.members.iter().filter_map(|member| member.log.as_ref()) {
        for entry in &log.entries {
            let rank = (entry.index <= log.commit, entry.term);
            let here = best.entry(entry.index).or_insert((rank, entry));
            if here.0 < rank {
                *here = (rank, entry);
            }
        }
    }
    best.into_iter().map(|(index, (_, entry))| (index, entry)).collect()
}

/// The ids of all leases in entries. A lease is alive only after an entry grants it.
fn leases(recording: &Recording, entries: &BTreeMap<u64, &LogEntry>) -> HashSet<i64> {
    let mut leases = HashSet::new();
    for entry in entries.values() {
        match entry.request {
            Request::LeaseGrant { lease, .. } | Request::LeaseRevoke { lease } => drop(leases.insert(lease)),
            Request::Txn(txn) => {
                let steps = &recording.requests.steps;
                leases.extend(txn.success.of(steps).iter().chain(txn.failure.of(steps)).filter_map(
                    |step| match step {
                        Step::Put { lease, .. } => Some(*lease),
                        _ => None,
                    },
                ));
            }
            _ => {}
        }
    }
    leases
}

/// `None` if the entry's effect is unknown.
fn apply(store: &mut Store<'_>, request: &Request) -> Option<Applied> {
    match *request {
        Request::Txn(txn) => store.txn(txn, None).ok(),
        Request::LeaseGrant { lease, .. } => Some(store.grant(lease)),
        Request::LeaseRevoke { lease } => store.end(lease, &[]).ok(),
        Request::Compact { revision } => Some(store.compact(revision)),
        Request::Range(_) | Request::Defragment | Request::Other => Some(Applied::Done),
    }
}

/// Whether the latest revision of the log has the same changes in the order, if the order reaches it.
fn is_of(recording: &Recording, log: &Store<'_>, replayed: &ReplayedHistory<'_>) -> bool {
    let number = log.revision;
    if number > replayed.store.revision {
        return true;
    }
    let content = |store: &Store<'_>| {
        let first = store.changes.partition_point(|(revision, _)| *revision < number);
        let here = store.changes[first..].iter().take_while(|(revision, _)| *revision == number);
        here.map(|(_, changed)| (changed.key.to_owned(), changed.after.map(|live| live.value)))
            .collect::<BTreeMap<_, _>>()
    };
    let (logged, ordered) = (content(log), content(&replayed.store));
    logged.len() == ordered.len()
        && logged.iter().zip(&ordered).all(|((key, a), (other, b))| {
            let same = match (a, b) {
                (Some(a), Some(b)) => recording.values.same(*a, *b) != Some(false),
                (a, b) => a == b,
            };
            key == other && same
        })
}
