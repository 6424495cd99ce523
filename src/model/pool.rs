//! The model `pool`: items that are handed out and given back.
//!
//! ```
//! use retrograde::model::{Pool, pool::Operation};
//! use retrograde::{Recorder, assertion::Claim};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(Operation::Allocate("10.0.0.1")).ok(());
//! recorder.client("b").invoke(Operation::Allocate("10.0.0.1")).ok(()); // a still has it
//! assert!(Claim::default().linearizable(&Pool::default(), &recorder).is_err());
//! ```

use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::{Datum, Spec, number};
use crate::history::ValueId;
use std::hash::Hash;

/// A pool of addresses, ports, names or leases: an item is not handed out again before it was given back.
///
/// The pool chooses the item of an allocation, but a [`super::Spec`] has one next state. So the operation names the item, and
/// each item is decided separately. An allocation without a known answer may hold any item that was free then. It explains one
/// release of an item without a known holder, such as that of a collector of leaked addresses. A refused allocation is not an
/// observation, because the size of the pool was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool<V> {
    items: std::marker::PhantomData<fn() -> V>,
}

impl<V> Default for Pool<V> {
    fn default() -> Self {
        Pool { items: std::marker::PhantomData }
    }
}

/// What happens to a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<V> {
    /// This item is handed out.
    Allocate(V),
    /// An unknown item is handed out.
    AllocateUnseen,
    /// This item is given back.
    Release(V),
}

/// The items that are out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<V> {
    /// Items known to be out, ascending.
    held: Vec<V>,
    /// For each unknown item that is out, oldest first: the items that it cannot be, ascending. They include those of any later
    /// one. So the oldest that fits is the best one to explain a release.
    unseen: Vec<Vec<V>>,
}

impl<V: Datum> Spec for Pool<V> {
    type State = State<V>;
    type Operation = Operation<V>;
    type Answer = ();

    fn initial(&self) -> State<V> {
        State { held: Vec::new(), unseen: Vec::new() }
    }

    fn step(&self, state: &State<V>, operation: &Operation<V>, _answer: Option<&()>) -> Option<State<V>> {
        let mut next = state.clone();
        match operation {
            Operation::Allocate(item) => {
                let at = next.held.binary_search(item).err()?;
                next.held.insert(at, item.clone());
                // It was free until now, so no unknown item that is out is this one.
                next.unseen.iter_mut().for_each(|not| include(not, item));
            }
            Operation::AllocateUnseen => next.unseen.push(next.held.clone()),
            Operation::Release(item) => match next.held.binary_search(item) {
                Ok(at) => drop(next.held.remove(at)),
                Err(_) => {
                    let at = next.unseen.iter().position(|not| not.binary_search(item).is_err())?;
                    next.unseen.remove(at);
                    // That unknown item was this one until now, so no other is.
                    next.unseen.iter_mut().for_each(|not| include(not, item));
                }
            },
        }
        Some(next)
    }

    fn keys(&self, operation: &Operation<V>) -> Option<Vec<u64>> {
        match operation {
            Operation::Allocate(item) | Operation::Release(item) => Some(vec![number(item)]),
            Operation::AllocateUnseen => None,
        }
    }

    fn heap_bytes(&self, state: &State<V>) -> usize {
        let items = state.held.capacity() + state.unseen.iter().map(Vec::capacity).sum::<usize>();
        items * size_of::<V>() + state.unseen.capacity() * size_of::<Vec<V>>()
    }
}

fn include<V: Ord + Clone + Hash>(items: &mut Vec<V>, item: &V) {
    if let Err(at) = items.binary_search(item) {
        items.insert(at, item.clone());
    }
}

/// `allocate`, whose answer is the item, and `release` of an item.
impl Recorded for Pool<ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        Pool::default()
    }

    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Operation<ValueId>, ()>, Mismatch> {
        Ok(match (call.function(), call.answer()) {
            ("allocate", Some(Some(item))) => Meaning::One(Operation::Allocate(item), Some(())),
            // The pool was empty and handed out nothing.
            ("allocate", Some(None)) => Meaning::Nothing,
            ("allocate", None) if call.has_failed() => Meaning::Nothing,
            ("allocate", None) if call.is_unseen() => Meaning::One(Operation::AllocateUnseen, None),
            ("allocate", None) => return Err(call.mismatch("the item that was allocated")),
            ("release", _) => {
                Meaning::One(Operation::Release(call.required("an item")?), (!call.is_unseen()).then_some(()))
            }
            _ => return Err(call.foreign("allocate, release")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Operation::*;
    use super::*;

    fn happens(operations: &[Operation<u8>]) -> bool {
        let pool = Pool::default();
        let state =
            operations.iter().try_fold(pool.initial(), |state, operation| pool.step(&state, operation, Some(&())));
        state.is_some()
    }

    #[test]
    fn an_item_is_handed_out_again_only_after_it_was_given_back() {
        assert!(happens(&[Allocate(1), Allocate(2), Release(1), Allocate(1)]));
        assert!(!happens(&[Allocate(1), Allocate(2), Allocate(1)]));
        assert!(!happens(&[Release(1)]));
        assert!(!happens(&[Allocate(1), Release(1), Release(1)]));
    }

    /// Whether some choice of items explains the operations: the definition that the model must agree with.
    fn some_choice_explains(operations: &[Operation<u8>], held: &mut Vec<u8>) -> bool {
        let Some((first, rest)) = operations.split_first() else { return true };
        let mut give = |item: u8| {
            if held.contains(&item) {
                return false;
            }
            held.push(item);
            let explained = some_choice_explains(rest, held);
            held.retain(|other| *other != item);
            explained
        };
        match first {
            Allocate(item) => give(*item),
            // One item that no other operation names represents all such items.
            AllocateUnseen => (0..4).chain([100 + rest.len() as u8]).any(give),
            Release(item) => {
                let before = held.clone();
                held.retain(|other| other != item);
                let explained = held.len() < before.len() && some_choice_explains(rest, held);
                *held = before;
                explained
            }
        }
    }

    #[test]
    fn an_unseen_allocation_explains_exactly_what_some_item_explains() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut below = |n: u64| random.u64(..n);
        let (mut explained, mut impossible) = (0, 0);
        for _ in 0..20_000 {
            let length = 3 + below(6);
            let operations: Vec<_> = (0..length)
                .map(|_| match below(3) {
                    0 => AllocateUnseen,
                    1 => Allocate(below(4) as u8),
                    _ => Release(below(4) as u8),
                })
                .collect();
            let expected = some_choice_explains(&operations, &mut Vec::new());
            assert_eq!(happens(&operations), expected, "{operations:?}");
            if expected { explained += 1 } else { impossible += 1 }
        }
        assert!(explained > 2_000 && impossible > 2_000, "{explained} {impossible}");
    }
}
