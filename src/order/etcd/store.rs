//! The sequential semantics of etcd's requests: a store with leases to which requests are applied one by one, as members apply
//! them.
//!
//! Source: etcd `server/etcdserver/txn/{txn,range,put,delete}.go` (before 3.6 `apply.go`), `server/lease/lessor.go`,
//! `server/storage/mvcc/kvstore_txn.go`.

use super::effects::Change;
use crate::history::Symbol;
use crate::history::etcd::{Condition, Interval, Recording, Relation, Request, Step, Target, Txn, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// The compacted revision of a store that was never compacted.
///
/// Source: etcd `server/storage/mvcc/kvstore.go` (`compactMainRev`).
pub(super) const NOT_COMPACTED: i64 = -1;

/// The revision of the first change; an empty store has revision 1.
///
/// Source: etcd `server/storage/mvcc/kvstore.go` (`currentRev`).
pub const FIRST_CHANGE: i64 = 2;

/// A store at one revision.
#[derive(Clone, Debug)]
pub struct Store {
    /// Its revision: 1 while it is empty.
    pub revision: i64,
    /// The compacted revision; -1 if never compacted, so that even 0 can be compacted.
    pub compacted: i64,
    keys: FxHashMap<Symbol, Live>,
    leases: FxHashMap<i64, FxHashSet<Symbol>>,
}

impl Default for Store {
    fn default() -> Self {
        Store { revision: 1, compacted: NOT_COMPACTED, keys: FxHashMap::default(), leases: FxHashMap::default() }
    }
}

/// An existing key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// The revision at which it was created.
    pub create_revision: i64,
    /// The revision of its last change.
    pub mod_revision: i64,
    /// The number of changes since its creation.
    pub version: i64,
    /// Its value.
    pub value: ValueId,
    /// Its lease, or 0.
    pub lease: i64,
}

/// The effect of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The changes in their order; the store's revision rises by one if there are any.
    pub changes: Vec<Change>,
    /// Whether a transaction took its failure branch.
    pub failure: bool,
    /// Whether it was refused and had no effect.
    pub refused: bool,
}

/// The effect depends on a value that is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotKnown;

impl Store {
    /// Applies a request.
    ///
    /// # Errors
    /// If the request compares a value that is not recorded. The store is unchanged then.
    pub fn apply(&mut self, recording: &Recording, request: &Request) -> Result<Applied, NotKnown> {
        let mut applied = Applied::default();
        match *request {
            Request::Txn(txn) => return self.txn(recording, txn),
            Request::LeaseGrant { lease, .. } => {
                applied.refused = self.leases.contains_key(&lease);
                self.leases.entry(lease).or_default();
            }
            Request::LeaseRevoke { lease } => match self.leases.remove(&lease) {
                None => applied.refused = true,
                Some(keys) => {
                    let revision = self.revision + 1;
                    let mut keys: Vec<Symbol> = keys.into_iter().collect();
                    // etcd deletes them in order of their names.
                    keys.sort_by_key(|key| recording.texts.get(*key));
                    for key in keys {
                        self.delete(key, &mut applied.changes);
                    }
                    self.revision = if applied.changes.is_empty() { self.revision } else { revision };
                }
            },
            Request::Compact { revision } => {
                applied.refused = revision <= self.compacted || revision > self.revision;
                if !applied.refused {
                    self.compacted = revision;
                }
            }
            Request::Range(_) | Request::Defragment | Request::Other => {}
        }
        Ok(applied)
    }

    fn txn(&mut self, recording: &Recording, txn: Txn) -> Result<Applied, NotKnown> {
        let mut applied = Applied::default();
        let mut path = Vec::new();
        self.path(recording, txn, &mut path)?;
        applied.failure = !path[0];
        if !self.allows(recording, txn, &mut path.iter()) {
            applied.refused = true;
            return Ok(applied);
        }
        let revision = self.revision + 1;
        self.steps(recording, txn, &mut path.iter(), revision, &mut applied.changes);
        if !applied.changes.is_empty() {
            self.revision = revision;
        }
        Ok(applied)
    }

    /// The branch of each transaction, outer ones first, nested ones only in taken branches. All conditions are compared before
    /// any change.
    fn path(&self, recording: &Recording, txn: Txn, path: &mut Vec<bool>) -> Result<(), NotKnown> {
        let mut success = true;
        for condition in txn.conditions.of(&recording.requests.conditions) {
            success &= self.holds(recording, condition)?;
        }
        path.push(success);
        for step in txn.taken(success).of(&recording.requests.steps) {
            if let Step::Txn(inner) = step {
                self.path(recording, *inner, path)?;
            }
        }
        Ok(())
    }

    /// Whether a condition holds for all its keys.
    pub fn holds(&self, recording: &Recording, condition: &Condition) -> Result<bool, NotKnown> {
        let keys = self.inside(recording, condition.keys);
        if keys.is_empty() {
            return match condition.target {
                Target::Value => Ok(false),
                _ => compare(recording, condition, &Live::default()),
            };
        }
        let mut all = true;
        for key in keys {
            all &= compare(recording, condition, &self.keys[&key])?;
        }
        Ok(all)
    }

    /// Whether every step of the taken branches is allowed.
    fn allows<'p>(&self, recording: &Recording, txn: Txn, path: &mut impl Iterator<Item = &'p bool>) -> bool {
        let success = path.next().copied().unwrap_or(true);
        txn.taken(success).of(&recording.requests.steps).iter().all(|step| match step {
            Step::Put { key, lease, keeps_value, keeps_lease, .. } => {
                (*lease == 0 || self.leases.contains_key(lease))
                    && (!(*keeps_value || *keeps_lease) || self.keys.contains_key(key))
            }
            Step::Range(range) => {
                range.revision <= 0 || (range.revision <= self.revision && range.revision >= self.compacted)
            }
            Step::Txn(inner) => self.allows(recording, *inner, path),
            Step::Delete(_) | Step::Nothing => true,
        })
    }

    fn steps<'p>(
        &mut self,
        recording: &Recording,
        txn: Txn,
        path: &mut impl Iterator<Item = &'p bool>,
        revision: i64,
        changes: &mut Vec<Change>,
    ) {
        let success = path.next().copied().unwrap_or(true);
        for step in txn.taken(success).of(&recording.requests.steps) {
            match *step {
                Step::Put { key, value, lease, keeps_value, keeps_lease } => {
                    let before = self.keys.get(&key).copied();
                    let kept = before.unwrap_or_default();
                    let value = if keeps_value { kept.value } else { value };
                    let lease = if keeps_lease { kept.lease } else { lease };
                    self.put(key, value, lease, revision);
                    changes.push(Change { key, value: Some(value) });
                }
                Step::Delete(keys) => {
                    let mut keys = self.inside(recording, keys);
                    keys.sort_by_key(|key| recording.texts.get(*key));
                    for key in keys {
                        self.delete(key, changes);
                    }
                }
                Step::Txn(inner) => self.steps(recording, inner, path, revision, changes),
                Step::Range(_) | Step::Nothing => {}
            }
        }
    }

    fn put(&mut self, key: Symbol, value: ValueId, lease: i64, revision: i64) {
        let before = self.keys.get(&key).copied();
        let live = Live {
            create_revision: before.map_or(revision, |before| before.create_revision),
            mod_revision: revision,
            version: before.map_or(1, |before| before.version + 1),
            value,
            lease,
        };
        self.detach(key, before);
        if let Some(keys) = self.leases.get_mut(&lease) {
            keys.insert(key);
        }
        self.keys.insert(key, live);
    }

    fn delete(&mut self, key: Symbol, changes: &mut Vec<Change>) {
        if let Some(before) = self.keys.remove(&key) {
            self.detach(key, Some(before));
            changes.push(Change { key, value: None });
        }
    }

    fn detach(&mut self, key: Symbol, before: Option<Live>) {
        if let Some(keys) = before.and_then(|before| self.leases.get_mut(&before.lease)) {
            keys.remove(&key);
        }
    }

    /// The existing keys of an interval.
    fn inside(&self, recording: &Recording, keys: Interval) -> Vec<Symbol> {
        if !keys.end.is_some() {
            return self.keys.contains_key(&keys.key).then_some(keys.key).into_iter().collect();
        }
        self.keys.keys().copied().filter(|key| covers(recording, keys, *key)).collect()
    }
}

/// Whether an interval includes a key. An end of `\0` means no upper bound.
pub fn covers(recording: &Recording, keys: Interval, key: Symbol) -> bool {
    if !keys.end.is_some() {
        return keys.key == key;
    }
    let (text, first, end) = (recording.texts.get(key), recording.texts.get(keys.key), recording.texts.get(keys.end));
    text >= first && (end == "\0" || text < end)
}

/// Whether the taken branch reads a revision above the last one, so that etcd refuses the transaction.
///
/// Source: etcd `server/etcdserver/txn/txn.go` (`checkRange`).
pub(super) fn reads_ahead(recording: &Recording, txn: Txn, success: bool, last: i64) -> bool {
    let mut steps = txn.taken(success).of(&recording.requests.steps).iter();
    steps.any(|step| matches!(step, Step::Range(range) if range.revision > last))
}

/// Compares one key; an absent key has zeros in all fields.
pub(super) fn compare(recording: &Recording, condition: &Condition, live: &Live) -> Result<bool, NotKnown> {
    let order = match condition.target {
        Target::Version => live.version.cmp(&condition.number),
        Target::CreateRevision => live.create_revision.cmp(&condition.number),
        Target::ModRevision => live.mod_revision.cmp(&condition.number),
        Target::Lease => live.lease.cmp(&condition.number),
        Target::Value => {
            let same = recording.values.same(live.value, condition.value).ok_or(NotKnown)?;
            return match condition.relation {
                Relation::Equal => Ok(same),
                Relation::NotEqual => Ok(!same),
                // Long values are known only by their hash, so they have no order.
                _ if same => Ok(false),
                _ => Err(NotKnown),
            };
        }
        Target::Unknown => return Err(NotKnown),
    };
    match condition.relation {
        Relation::Equal => Ok(order == Ordering::Equal),
        Relation::NotEqual => Ok(order != Ordering::Equal),
        Relation::Greater => Ok(order == Ordering::Greater),
        Relation::Less => Ok(order == Ordering::Less),
        Relation::Unknown => Err(NotKnown),
    }
}
