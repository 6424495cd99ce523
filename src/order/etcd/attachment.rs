//! What keys are attached to, as far as requests tell.

use crate::history::Symbol;
use crate::history::etcd::{Recording, Request, Step};
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

/// What a request attaches a key to that it puts.
pub(super) fn attached_by(recording: &Recording, request: Option<Request>, key: Symbol) -> Option<Attached> {
    let Some(Request::Txn(txn)) = request else { return Some(Attached::Unknown) };
    let steps = txn.success.of(&recording.requests.steps);
    let plain = txn.conditions.len == 0 && txn.failure.len == 0 && steps.len() == 1;
    let both = steps.iter().chain(txn.failure.of(&recording.requests.steps));
    let mut lease = both.filter_map(|step| match step {
        Step::Put { key: put, lease, .. } if *put == key => Some(*lease),
        _ => None,
    });
    match lease.next_back() {
        Some(0) if plain => None,
        Some(0) | None => Some(Attached::Unknown),
        Some(lease) => Some(Attached::To(lease)),
    }
}
