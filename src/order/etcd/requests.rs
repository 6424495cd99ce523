//! Requests indexed by the keys that they may change and by the changes that they may make.

use super::effects::{Change, Class, Effects};
use crate::history::Symbol;
use crate::history::etcd::{Recording, Request, Span, Step, Txn, Value, ValueId};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// Requests whose effect no answer shows, by the keys that they may change.
pub(super) struct Requests {
    by_key: FxHashMap<Symbol, Vec<Asked>>,
    /// The possible changes of these requests: by key and change, then in order of operations.
    by_change: Vec<(Symbol, Makes, Asked)>,
    /// Requests whose keys are not known by name: ranges and leases.
    any: Vec<Asked>,
    /// The number of kinds.
    pub kinds: u32,
}

/// A request.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// The operation.
    pub at: u32,
    /// When it was sent.
    pub call: Time,
    /// Requests of one kind have the same content.
    pub kind: u32,
}

/// A change that a request may make.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Makes {
    /// It removes the key.
    Removal,
    /// It puts this value.
    Value(ValueId),
    /// It puts a value that is known only by its hash.
    Hash,
    /// It puts a long value without a known hash.
    Unhashed,
}

impl Makes {
    /// The class of a vague value, and the class that it may be equal to. `None` for an exactly known value.
    fn vague(recording: &Recording, value: ValueId) -> Option<[Makes; 2]> {
        match recording.values.get(value) {
            Value::Hash(_) => Some([Makes::Hash, Makes::Unhashed]),
            Value::Text(_) => recording.values.is_unhashed(value).then_some([Makes::Unhashed, Makes::Hash]),
        }
    }
}

impl Requests {
    /// The requests of all operations of a class.
    pub fn of(recording: &Recording, effects: &Effects, class: Class) -> Requests {
        let mut requests = Requests { by_key: FxHashMap::default(), by_change: Vec::new(), any: Vec::new(), kinds: 0 };
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
                true => {
                    keys.into_iter().for_each(|key| requests.by_key.entry(key).or_default().push(asked));
                    requests.by_change.extend(made(recording, txn).map(|(key, makes)| (key, makes, asked)));
                }
                false => requests.any.push(asked),
            }
        }
        requests.by_change.sort_unstable_by_key(|(key, makes, asked)| (*key, *makes, asked.at));
        requests.by_change.dedup_by_key(|(key, makes, asked)| (*key, *makes, asked.at));
        requests
    }

    /// The requests that may change a key.
    pub fn about(&self, key: Symbol) -> impl Iterator<Item = Asked> {
        self.by_key.get(&key).into_iter().flatten().chain(&self.any).copied()
    }

    /// The number of requests that may change a key.
    pub fn count_about(&self, key: Symbol) -> usize {
        self.by_key.get(&key).map_or(0, Vec::len) + self.any.len()
    }

    /// The requests that may make exactly this change: a subset of [`Requests::about`] its key, in the same order.
    pub fn making(&self, recording: &Recording, change: Change) -> impl Iterator<Item = Asked> {
        let makes = change.value.map_or(Makes::Removal, Makes::Value);
        let vague = change.value.and_then(|value| Makes::vague(recording, value));
        let mut exact = self.named(change.key, makes).iter().map(|(.., asked)| *asked).peekable();
        let also = vague.map_or(&[][..], |[_, others]| self.named(change.key, others));
        let mut also = also.iter().map(|(.., asked)| *asked).peekable();
        // Both are in order of operations, and an operation may be in both.
        let named = std::iter::from_fn(move || match (exact.peek().copied(), also.peek().copied()) {
            (Some(one), Some(other)) => {
                let first = one.at.min(other.at);
                also.next_if(|asked| asked.at == first);
                exact.next_if(|asked| asked.at == first);
                Some(if one.at == first { one } else { other })
            }
            (Some(_), None) => exact.next(),
            (None, _) => also.next(),
        });
        named.chain(self.any.iter().copied())
    }

    fn named(&self, key: Symbol, makes: Makes) -> &[(Symbol, Makes, Asked)] {
        let from = self.by_change.partition_point(|(other, of, _)| (*other, *of) < (key, makes));
        let rest = &self.by_change[from..];
        &rest[..rest.partition_point(|(other, of, _)| (*other, *of) == (key, makes))]
    }
}

/// The changes that a transaction may make to the keys that it names.
fn made(recording: &Recording, txn: Txn) -> impl Iterator<Item = (Symbol, Makes)> {
    let steps = move |span: Span| span.of(&recording.requests.steps).iter();
    steps(txn.success).chain(steps(txn.failure)).flat_map(move |step| {
        let (one, other) = match *step {
            Step::Put { key, value, .. } => {
                let vague = Makes::vague(recording, value).map(|[own, _]| (key, own));
                (Some((key, Makes::Value(value))), vague)
            }
            Step::Delete(interval) => (Some((interval.key, Makes::Removal)), None),
            _ => (None, None),
        };
        one.into_iter().chain(other)
    })
}

/// Collects the keys that a transaction may change. Returns whether all are known by name.
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
