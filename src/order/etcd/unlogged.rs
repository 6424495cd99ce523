//! Acknowledged transactions without an entry in the members' log. Every transaction that may write is proposed to raft, even if
//! it then changes nothing, and is answered after its entry was applied. So the entries of all transactions that were answered at
//! a revision are between the committed entries of that revision and the next.
//!
//! Source: etcd `server/etcdserver/v3_server.go` (`Txn`: only a read-only transaction is answered without a proposal), `apply`.

use super::effects::{Class, Effects};
use super::log::{self, Log};
use super::timeline::Timeline;
use crate::history::Symbol;
use crate::history::etcd::{Recording, Request, Step, Txn};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// Transactions that were answered as unchanged, at a revision where the log has fewer such entries.
pub fn unlogged(recording: &Recording, effects: &Effects, log: &Log, timeline: &Timeline) -> Vec<u32> {
    if log.steps.is_empty() || !timeline.contradictions.is_empty() {
        return Vec::new();
    }
    let mut entries: FxHashMap<(i64, u64), u32> = FxHashMap::default();
    for idle in &log.idle {
        if let Some(Request::Txn(txn)) = log::entry(recording, idle.entry).map(|entry| entry.request)
            && let Some(mark) = mark(recording, txn)
        {
            *entries.entry((idle.revision, mark)).or_default() += 1;
        }
    }
    let mut seen: FxHashSet<(u32, i64, Time, Time)> = FxHashSet::default();
    let mut unlogged = Vec::new();
    for (at, operation) in (0..).zip(&recording.operations) {
        // After the last revision, the log may have been copied before the entry was written.
        if effects.class(at) != Class::Same || !log.is_certain(operation.revision.saturating_add(1)) {
            continue;
        }
        let Request::Txn(txn) = operation.request else { continue };
        let Some(mark) = mark(recording, txn) else { continue };
        // A duplicated record is one request.
        if !seen.insert((operation.client, operation.stream, operation.call, operation.returned)) {
            continue;
        }
        match entries.get_mut(&(operation.revision, mark)).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => unlogged.push(at),
        }
    }
    unlogged
}

/// A fingerprint of the keys that a transaction may change; client records lack values and leases. `None` if there are none, or
/// they are unknown.
fn mark(recording: &Recording, txn: Txn) -> Option<u64> {
    let steps = [txn.success, txn.failure].map(|span| span.of(&recording.requests.steps));
    let mut writes: Vec<(bool, Symbol, Symbol)> = Vec::new();
    for step in steps.into_iter().flatten() {
        match step {
            Step::Put { key, .. } => writes.push((true, *key, Symbol::NONE)),
            Step::Delete(keys) => writes.push((false, keys.key, keys.end)),
            Step::Range(_) => {}
            Step::Txn(_) | Step::Nothing => return None,
        }
    }
    writes.sort_unstable();
    let mut hasher = FxHasher::default();
    writes.hash(&mut hasher);
    (!writes.is_empty()).then(|| hasher.finish())
}
