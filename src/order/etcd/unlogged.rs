//! Answered requests without an entry in the members' log. Transactions that may write, grants, revokes and compactions are
//! proposed to raft, even if they then change nothing, and are answered after their entry was applied. So the log of the members
//! has an entry of each at a place that its answer allows, and the places respect time.
//!
//! A place is the number of entries that were applied, the request's own included. The last place stands for all entries after
//! the end of the log.
//!
//! Source: etcd `server/etcdserver/v3_server.go` (`Txn`: only a read-only transaction is answered without a proposal;
//! `LeaseGrant`, `LeaseRevoke`, `Compact`), `apply` (`newHeader`: the revision of the store after the request).

use super::Analysis;
use super::effects::{Class, Effects};
use super::log::{self, Log, Logged, Replayed};
use super::proofs::{Proof, Proofs};
use crate::history::Symbol;
use crate::history::etcd::{Operation, Outcome, Recording, Request, Step, Txn, Value, ValueId};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// An answered request without an entry in the members' log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlogged {
    /// The request.
    pub operation: u32,
    /// Evidence from before it was sent, of a place after some such entries of the log; `None` if that excludes none.
    pub earlier: Option<Proof>,
    /// A request that was sent after the answer, and comes before `entry`; `None` if the answer itself shows the place.
    pub later: Option<u32>,
    /// An entry of the log that stands in the place of the request's own, or comes after it.
    pub entry: Option<Logged>,
    /// Whether that presumes that no other client granted a lease after the end of the log.
    pub presumes: bool,
}

/// A proposed request with its result, as far as both the client and the log show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Proposal {
    /// A transaction: its fingerprint, the revision after it, and whether it made that revision.
    Txn(u64, i64, bool),
    /// The lease and the revision.
    Grant(i64, i64),
    Revoke(i64, i64),
    /// The compacted revision.
    Compaction(i64),
    CompactedBefore(i64),
    CompactionOfFuture(i64),
}

/// An answered request and its possible places.
#[derive(Clone, Copy, Debug)]
struct Placed {
    operation: u32,
    call: Time,
    returned: Time,
    /// The entry that it needs; `None` for a read, and for a transaction without a fingerprint.
    proposal: Option<Proposal>,
    first: usize,
    last: usize,
    /// The earlier evidence that limits `first`.
    earlier: Option<Proof>,
    /// The later request that limits `last`.
    later: Option<u32>,
    /// The place of the entry that limits `last`.
    limit: Option<usize>,
    /// Whether `last` presumes that no other client granted a lease after the end of the log.
    presumes: bool,
}

/// Places of the log.
struct Places {
    /// By revision, from 2: the place of its entry.
    made: Vec<usize>,
    /// The places of entries, ascending.
    of_proposal: FxHashMap<Proposal, Vec<usize>>,
    /// Compactions that took effect: the compacted revision and the place, both ascending.
    compacted: Vec<(i64, usize)>,
    /// Leases that are not alive at the end of the log, and that no recorded request may grant after it, with the place of their
    /// last end.
    ended: FxHashMap<i64, usize>,
    /// The place after the end.
    end: usize,
}

/// Answered requests without an entry of their own at a possible place, in the order of the records.
pub fn unlogged(recording: &Recording, analysis: &Analysis) -> Vec<Unlogged> {
    let Analysis { effects, log, proofs, timeline, backward, .. } = analysis;
    if log.certain == 0 || !timeline.contradictions.is_empty() {
        return Vec::new();
    }
    let places = Places::of(recording, log);
    // Two answers that contradict each other show no place.
    let backwards: FxHashSet<u32> = backward.iter().map(|backward| backward.later).collect();
    let proofs = Some(proofs).filter(|_| backward.is_empty());
    let mut seen: FxHashSet<(u32, i64, Time, Time)> = FxHashSet::default();
    let mut all = Vec::new();
    for (at, operation) in (0..).zip(&recording.operations) {
        let times_known = operation.call.is_known() && operation.returned.is_known();
        if times_known
            && !backwards.contains(&at)
            && let Some(placed) = places.place(recording, effects, at)
            // A duplicated record is one request.
            && seen.insert((operation.client, operation.stream, operation.call, operation.returned))
        {
            all.push(placed);
        }
    }
    places.follow(proofs, &mut all);
    let mut unmatched = places.unmatched(&all);
    // A request that has no place after earlier ones shows nothing about them.
    if unmatched.is_empty() {
        places.precede(&mut all);
        unmatched = places.unmatched(&all);
    }
    let entry = |limit: Option<usize>| log.entries.get(limit?.checked_sub(1)?).copied();
    let unlogged = |Placed { operation, earlier, later, limit, presumes, .. }| Unlogged {
        operation,
        earlier,
        later,
        entry: entry(limit),
        presumes,
    };
    let mut unlogged: Vec<Unlogged> = unmatched.into_iter().map(unlogged).collect();
    unlogged.sort_unstable_by_key(|one| one.operation);
    unlogged
}

impl Places {
    fn of(recording: &Recording, log: &Log) -> Places {
        let certain = log.certain.min(log.replayed.len());
        let mut places = Places {
            made: Vec::new(),
            of_proposal: FxHashMap::default(),
            compacted: Vec::new(),
            ended: FxHashMap::default(),
            end: certain + 1,
        };
        // By lease: the number of grants, and the place of its end if it is not alive.
        let mut granted: FxHashMap<i64, (usize, Option<usize>)> = FxHashMap::default();
        for ((place, replayed), entry) in (1..).zip(&log.replayed[..certain]).zip(&log.entries) {
            if replayed.changed {
                places.made.push(place);
            }
            let Some(entry) = log::entry(recording, *entry) else { continue };
            match entry.request {
                _ if replayed.refused => {}
                Request::Compact { revision } => places.compacted.push((revision, place)),
                Request::LeaseGrant { lease, .. } => {
                    let (grants, ended) = granted.entry(lease).or_default();
                    (*grants, *ended) = (*grants + 1, None);
                }
                Request::LeaseRevoke { lease } => granted.entry(lease).or_default().1 = Some(place),
                _ => {}
            }
            if let Some(proposal) = of_entry(recording, entry.request, replayed) {
                places.of_proposal.entry(proposal).or_default().push(place);
            }
        }
        let mut asked: FxHashMap<i64, usize> = FxHashMap::default();
        for operation in recording.operations.iter().filter(|operation| operation.outcome != Outcome::Refused) {
            if let Request::LeaseGrant { lease, .. } = operation.request {
                *asked.entry(lease).or_default() += 1;
            }
        }
        let all_logged = |lease: &i64, grants: usize| (1..=grants).contains(&asked.get(lease).copied().unwrap_or(0));
        // The server may have given any number to a grant that asked for 0.
        if !asked.contains_key(&0) {
            let ended = granted.into_iter().filter(|(lease, (grants, _))| all_logged(lease, *grants));
            places.ended = ended.filter_map(|(lease, (_, ended))| Some((lease, ended?))).collect();
        }
        places
    }

    /// The place of the entry that made a revision; `None` if the log does not have it.
    fn made(&self, revision: i64) -> Option<usize> {
        self.made.get(usize::try_from(revision.checked_sub(2)?).ok()?).copied()
    }

    /// The first place at which a revision exists.
    fn reached(&self, revision: i64) -> usize {
        if revision < 2 { 0 } else { self.made(revision).unwrap_or(self.end) }
    }

    /// The places that an answer alone allows; `None` if it needs no entry and shows no place.
    fn place(&self, recording: &Recording, effects: &Effects, at: u32) -> Option<Placed> {
        let operation = &recording.operations[at as usize];
        let Operation { call, returned, revision, .. } = *operation;
        let placed = |proposal, first, last, limit| {
            let (earlier, later, presumes) = (None, None, false);
            Some(Placed { operation: at, call, returned, proposal, first, last, earlier, later, limit, presumes })
        };
        let next = self.made(revision.saturating_add(1));
        let Some(proposal) = of_answer(recording, effects, at) else {
            return match (effects.class(at), operation.request) {
                (Class::Write, _) => {
                    let made = self.reached(revision);
                    placed(None, made, made, Some(made).filter(|place| *place < self.end))
                }
                (Class::Same, _) => placed(None, self.reached(revision), next.map_or(self.end, |next| next - 1), next),
                // The read comes before a revision that does not exist yet.
                (_, Request::Range(range)) if operation.outcome == Outcome::Future && !range.serializable => {
                    let made = self.made(range.revision);
                    placed(None, 0, made.map_or(self.end, |made| made - 1), made)
                }
                _ => None,
            };
        };
        let entries = self.of_proposal.get(&proposal).map_or(&[][..], |entries| entries);
        let ended = match proposal {
            Proposal::Revoke(lease, _) if next.is_none() => self.ended.get(&lease).copied(),
            _ => None,
        };
        // The entry that must come later, and whether the request's own may come after the end.
        let (limit, may_follow) = match proposal {
            Proposal::Txn(.., true) => (self.made(revision), self.made(revision).is_none()),
            Proposal::Txn(..) | Proposal::Grant(..) => (next, next.is_none()),
            Proposal::Revoke(..) => (ended.or(next), ended.is_none() && next.is_none()),
            Proposal::Compaction(through) => {
                let at = self.compacted.partition_point(|(other, _)| *other <= through);
                let higher = self.compacted.get(at).map(|(_, place)| *place);
                (higher, self.compacted.last().is_none_or(|(other, _)| *other < through))
            }
            Proposal::CompactedBefore(_) => (None, true),
            Proposal::CompactionOfFuture(through) => (self.made(through), self.made(through).is_none()),
        };
        let first = entries.first().copied().unwrap_or(self.end);
        let last = if may_follow { self.end } else { entries.last().copied().unwrap_or(0) };
        placed(Some(proposal), first, last, limit).map(|placed| Placed { presumes: ended.is_some(), ..placed })
    }

    /// Narrows the first places: a request that was sent after an answer has a later place.
    fn follow(&self, proofs: Option<&Proofs>, all: &mut [Placed]) {
        let (by_call, by_return) = (order(all, |one| one.call), order(all, |one| one.returned));
        let mut answered = by_return.iter().peekable();
        let mut least = (0, None);
        for &at in &by_call {
            while let Some(before) = answered.next_if(|before| all[**before].returned < all[at].call) {
                let before = &all[*before];
                // The other direction finds a request after the end that has to come earlier.
                if before.first > least.0 && before.first < self.end {
                    least = (before.first, Some(before.earlier.unwrap_or(Proof::Operation(before.operation))));
                }
            }
            let seen = proofs.and_then(|proofs| proofs.before(all[at].call));
            let seen = seen.map(|(revision, proof)| (self.reached(revision), Some(proof)));
            let least = seen.filter(|seen| seen.0 > least.0).unwrap_or(least);
            if least.0 > all[at].first {
                (all[at].first, all[at].earlier) = (self.next_entry(&all[at], least.0), least.1);
            }
        }
    }

    /// Narrows the last places: a request that was answered before another was sent has an earlier place.
    fn precede(&self, all: &mut [Placed]) {
        let (by_call, by_return) = (order(all, |one| one.call), order(all, |one| one.returned));
        let mut sent = by_call.iter().rev().peekable();
        let mut most = (self.end, None, None, false);
        for &at in by_return.iter().rev() {
            while let Some(after) = sent.next_if(|after| all[**after].call > all[at].returned) {
                let after = &all[*after];
                if after.last < most.0 && !after.is_unmatched() {
                    let later = Some(after.later.unwrap_or(after.operation));
                    most = (after.last, later, after.limit_of_later(), after.presumes);
                }
            }
            if most.0 < all[at].last {
                all[at].last = self.last_entry(&all[at], most.0);
                (all[at].later, all[at].limit) = (most.1, most.2);
                all[at].presumes |= most.3;
            }
        }
    }

    /// The first possible place from one on.
    fn next_entry(&self, placed: &Placed, from: usize) -> usize {
        let Some(entries) = placed.proposal.and_then(|proposal| self.of_proposal.get(&proposal)) else { return from };
        entries.get(entries.partition_point(|place| *place < from)).copied().unwrap_or(self.end)
    }

    /// The last possible place through one; 0 if there is none.
    fn last_entry(&self, placed: &Placed, through: usize) -> usize {
        let Some(proposal) = placed.proposal else { return through };
        let entries = self.of_proposal.get(&proposal).map_or(&[][..], |entries| entries);
        entries.partition_point(|place| *place <= through).checked_sub(1).map_or(0, |at| entries[at])
    }

    /// The requests that are left when each entry goes to one of them. An entry goes to the request whose places end first.
    fn unmatched(&self, all: &[Placed]) -> Vec<Placed> {
        let mut asked: FxHashMap<Proposal, Vec<&Placed>> = FxHashMap::default();
        for placed in all {
            if let Some(proposal) = placed.proposal {
                asked.entry(proposal).or_default().push(placed);
            }
        }
        let mut left = Vec::new();
        for (proposal, mut asked) in asked {
            asked.sort_unstable_by_key(|placed| (placed.first, placed.operation));
            let mut asked = asked.into_iter().peekable();
            let mut open: BTreeMap<(usize, u32), &Placed> = BTreeMap::new();
            for &entry in self.of_proposal.get(&proposal).into_iter().flatten() {
                while let Some(placed) = asked.next_if(|placed| placed.first <= entry) {
                    open.insert((placed.last, placed.operation), placed);
                }
                while let Some(((last, _), placed)) = open.pop_first() {
                    if last >= entry {
                        break;
                    }
                    left.push(*placed);
                }
            }
            left.extend(open.into_values().chain(asked).filter(|placed| placed.last < self.end).copied());
        }
        left
    }
}

impl Placed {
    /// Whether no entry is left for it.
    fn is_unmatched(&self) -> bool {
        self.proposal.is_some() && self.last == 0
    }

    /// The entry that limits the places of earlier requests: its own, or the one after its last place.
    fn limit_of_later(&self) -> Option<usize> {
        if self.proposal.is_some() && self.later.is_none() { Some(self.last) } else { self.limit }
    }
}

/// The indices of requests in the order of a time.
fn order(all: &[Placed], time: impl Fn(&Placed) -> Time) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|at| time(&all[*at]));
    order
}

fn of_entry(recording: &Recording, request: Request, replayed: &Replayed) -> Option<Proposal> {
    let Replayed { revision, refused, changed, failure } = *replayed;
    match request {
        Request::Compact { revision: through } if !refused => Some(Proposal::Compaction(through)),
        Request::Compact { revision: through } if through > revision => Some(Proposal::CompactionOfFuture(through)),
        Request::Compact { revision: through } => Some(Proposal::CompactedBefore(through)),
        _ if refused => None,
        Request::Txn(txn) => Some(Proposal::Txn(fingerprint(recording, txn, failure)?, revision, changed)),
        Request::LeaseGrant { lease, .. } => Some(Proposal::Grant(lease, revision)),
        Request::LeaseRevoke { lease } => Some(Proposal::Revoke(lease, revision)),
        _ => None,
    }
}

/// The entry that an answer needs. The server chooses the number of a grant that asks for 0.
fn of_answer(recording: &Recording, effects: &Effects, at: u32) -> Option<Proposal> {
    let operation = &recording.operations[at as usize];
    match (operation.request, operation.outcome, effects.class(at)) {
        (Request::Compact { revision }, Outcome::Answered, _) => Some(Proposal::Compaction(revision)),
        (Request::Compact { revision }, Outcome::Compacted, _) => Some(Proposal::CompactedBefore(revision)),
        (Request::Compact { revision }, Outcome::Future, _) => Some(Proposal::CompactionOfFuture(revision)),
        (Request::Txn(txn), _, class) => {
            let wrote = effects.wrote(recording, at);
            let fingerprint =
                fingerprint(recording, txn, operation.failure).filter(|_| wrote || class == Class::Same)?;
            Some(Proposal::Txn(fingerprint, operation.revision, wrote))
        }
        (Request::LeaseGrant { lease, .. }, _, Class::Same) if lease != 0 => {
            Some(Proposal::Grant(lease, operation.revision))
        }
        // The answer to a revoke does not show whether it removed keys.
        (Request::LeaseRevoke { lease }, _, Class::Either) => Some(Proposal::Revoke(lease, operation.revision)),
        _ => None,
    }
}

/// A fingerprint of a transaction and the branch that it took, without leases, which client records lack. `None` if it changes no
/// key, or if a step is unknown.
fn fingerprint(recording: &Recording, txn: Txn, failure: bool) -> Option<u64> {
    let mut hasher = FxHasher::default();
    failure.hash(&mut hasher);
    let mut may_change = false;
    for condition in txn.conditions.of(&recording.requests.conditions) {
        (condition.keys.key, condition.keys.end, condition.number).hash(&mut hasher);
        // Reports do not tell which number an expected 0 is compared with. All of them are 0 for an absent key.
        (condition.number != 0).then(|| std::mem::discriminant(&condition.target)).hash(&mut hasher);
    }
    for span in [txn.success, txn.failure] {
        span.len.hash(&mut hasher);
        for step in span.of(&recording.requests.steps) {
            may_change |= !matches!(step, Step::Range(_));
            let shown = match *step {
                Step::Put { key, value, .. } => (0, key, Symbol::NONE, exact(recording, value)),
                Step::Delete(keys) => (1, keys.key, keys.end, None),
                Step::Range(range) => (2, range.keys.key, range.keys.end, None),
                Step::Txn(_) | Step::Nothing => return None,
            };
            shown.hash(&mut hasher);
        }
    }
    may_change.then(|| hasher.finish())
}

/// A value whose equality is always decided: not a hash, and not a long text, which may equal a hash.
fn exact(recording: &Recording, value: ValueId) -> Option<ValueId> {
    let is_text = matches!(recording.values.get(value), Value::Text(_));
    Some(value).filter(|value| is_text && !recording.values.is_unhashed(*value))
}
