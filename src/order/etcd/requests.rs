//! Requests by the keys that they may change.

use super::effects::{Class, Effects};
use crate::history::Symbol;
use crate::history::etcd::{Recording, Request, Step, Txn};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// Requests that may have an effect nobody was told, by the keys that they may change.
pub(super) struct Requests {
    by_key: FxHashMap<Symbol, Vec<Asked>>,
    /// Those that change what cannot be told by a name: ranges, leases.
    any: Vec<Asked>,
    /// How many kinds there are.
    pub kinds: u32,
}

/// A request.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// The operation.
    pub at: u32,
    /// When it was sent.
    pub call: Time,
    /// Requests of one kind ask for the same.
    pub kind: u32,
}

impl Requests {
    /// Of all operations of a class.
    pub fn of(recording: &Recording, effects: &Effects, class: Class) -> Requests {
        let mut requests = Requests { by_key: FxHashMap::default(), any: Vec::new(), kinds: 0 };
        let mut kinds = FxHashMap::default();
        for (at, operation) in (0..).zip(&recording.operations) {
            if effects.class(at) != class {
                continue;
            }
            let mut asked = Asked { at, call: operation.call, kind: requests.kinds };
            let Request::Txn(txn) = operation.request else {
                if matches!(operation.request, Request::LeaseRevoke { .. }) {
                    requests.kinds += 1;
                    requests.any.push(asked);
                }
                continue;
            };
            let steps = [txn.success, txn.failure].map(|span| span.of(&recording.requests.steps));
            asked.kind =
                *kinds.entry((txn.conditions.of(&recording.requests.conditions), steps)).or_insert_with(|| {
                    requests.kinds += 1;
                    requests.kinds - 1
                });
            let mut keys = Vec::new();
            let named = names(recording, txn, &mut keys);
            keys.sort_unstable();
            keys.dedup();
            match named {
                true => keys.into_iter().for_each(|key| requests.by_key.entry(key).or_default().push(asked)),
                false => requests.any.push(asked),
            }
        }
        requests
    }

    /// Those that may change a key.
    pub fn about(&self, key: Symbol) -> impl Iterator<Item = Asked> {
        self.by_key.get(&key).into_iter().flatten().chain(&self.any).copied()
    }
}

/// The keys that a transaction may change; whether all have names.
pub(super) fn names(recording: &Recording, txn: Txn, keys: &mut Vec<Symbol>) -> bool {
    let mut named = true;
    for span in [txn.success, txn.failure] {
        for step in span.of(&recording.requests.steps) {
            match step {
                Step::Put { key, .. } => keys.push(*key),
                Step::Delete(interval) if !interval.end.is_some() => keys.push(interval.key),
                Step::Range(_) => {}
                Step::Delete(_) | Step::Txn(_) | Step::Nothing => named = false,
            }
        }
    }
    named
}
