//! What keys are attached to, as far as requests tell.

use crate::history::Symbol;
use crate::history::etcd::{Recording, Span, Step, Txn};
use rustc_hash::{FxHashMap, FxHashSet};

/// What keys are attached to, as far as requests tell.
#[derive(Default)]
pub(super) struct Attachments {
    /// By key.
    pub of_key: FxHashMap<Symbol, Attached>,
    /// By lease.
    pub keys: FxHashMap<i64, FxHashSet<Symbol>>,
}

/// What a key is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Attached {
    /// A lease.
    To(i64),
    /// Clients' transactions are recorded without their leases.
    Unknown,
}

impl Attachments {
    /// Attaches a key, or leaves it to itself.
    pub fn set(&mut self, key: Symbol, attached: Option<Attached>) {
        if let Some(Attached::To(lease)) = self.of_key.remove(&key)
            && let Some(keys) = self.keys.get_mut(&lease)
        {
            keys.remove(&key);
        }
        if let Some(attached) = attached {
            self.of_key.insert(key, attached);
            if let Attached::To(lease) = attached {
                self.keys.entry(lease).or_default().insert(key);
            }
        }
    }

    /// Whether removing just these keys is the end of a lease: all that are attached to it, and no others.
    pub fn ends(&self, lease: i64, keys: &[Symbol]) -> bool {
        let attached = self.keys.get(&lease);
        let fits = |key: &Symbol| match self.of_key.get(key) {
            Some(Attached::To(other)) => *other == lease,
            Some(Attached::Unknown) => true,
            None => false,
        };
        keys.iter().all(fits) && attached.is_none_or(|attached| attached.iter().all(|key| keys.contains(key)))
    }
}

/// What a transaction attaches a key to that it puts. `success`: whether its conditions were true, where that is known.
pub(super) fn attached_by(recording: &Recording, txn: Txn, success: Option<bool>, key: Symbol) -> Option<Attached> {
    let steps = |way: Span| way.of(&recording.requests.steps);
    let plain = txn.conditions.len == 0 && txn.failure.len == 0 && txn.success.len == 1;
    let last = |way: Span| {
        steps(way).iter().rev().find_map(|step| match step {
            // What the key was attached to before.
            Step::Put { key: put, keeps_lease: true, .. } if *put == key => Some(Some(Attached::Unknown)),
            Step::Put { key: put, lease: 0, .. } if *put == key => Some((!plain).then_some(Attached::Unknown)),
            Step::Put { key: put, lease, .. } if *put == key => Some(Some(Attached::To(*lease))),
            _ => None,
        })
    };
    match success {
        Some(true) => last(txn.success),
        Some(false) => last(txn.failure),
        None => match (last(txn.success), last(txn.failure)) {
            (Some(one), Some(other)) if one != other => None,
            (one, other) => one.or(other),
        },
    }
    .unwrap_or(Some(Attached::Unknown))
}
