//! The model `set`: elements that are added and removed, and read all at once.
//!
//! ```
//! use retrograde::model::{Set, set::{Answer, Operation}};
//! use retrograde::{Recorder, assert_linearizable};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(Operation::Add(2)).ok(Answer::Done);
//! recorder.client("b").invoke(Operation::Add(1)).ok(Answer::Done);
//! recorder.client("a").invoke(Operation::Read).ok(Answer::Elements(vec![1, 2]));
//! assert_linearizable!(Set::default(), recorder);
//! ```

use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::sorted::Sorted;
use super::{Datum, Effect, Spec, spread};
use crate::history::ValueId;
use std::hash::{Hash, Hasher};

/// A set: add, remove, and reads of all elements at one moment (the `set` workload of Jepsen).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set<V> {
    elements: std::marker::PhantomData<fn() -> V>,
}

impl<V> Default for Set<V> {
    fn default() -> Self {
        Set { elements: std::marker::PhantomData }
    }
}

/// What a client calls on a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<V> {
    /// Adds an element.
    Add(V),
    /// Removes an element.
    Remove(V),
    /// Returns all elements.
    Read,
}

/// What the call returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<V> {
    /// A change is done.
    Done,
    /// The elements of a read, ascending, each once.
    Elements(Vec<V>),
}

/// The elements, with the sum of their hashes, which distinguishes most different sets at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State<V> {
    sum: u64,
    elements: Sorted<V>,
}

impl<V> Hash for State<V> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.sum.hash(hasher);
    }
}

impl<V: Datum> Spec for Set<V> {
    type State = State<V>;
    type Operation = Operation<V>;
    type Answer = Answer<V>;

    fn initial(&self) -> State<V> {
        State { sum: 0, elements: Sorted::default() }
    }

    fn step(&self, state: &State<V>, operation: &Operation<V>, answer: Option<&Answer<V>>) -> Option<State<V>> {
        let State { sum, elements } = state;
        let changed = match (operation, answer) {
            (Operation::Read, Some(Answer::Elements(seen))) => {
                let is_it = seen.len() == elements.len() && seen.iter().eq(elements.iter());
                return is_it.then(|| state.clone());
            }
            (Operation::Read, None) => return Some(state.clone()),
            (Operation::Add(element), Some(Answer::Done) | None) => {
                elements.with(element.clone()).map(|elements| (sum.wrapping_add(spread(element)), elements))
            }
            (Operation::Remove(element), Some(Answer::Done) | None) => {
                elements.without(element).map(|elements| (sum.wrapping_sub(spread(element)), elements))
            }
            _ => return None,
        };
        Some(changed.map_or_else(|| state.clone(), |(sum, elements)| State { sum, elements }))
    }

    fn effect(&self, operation: &Operation<V>, _answer: Option<&Answer<V>>) -> Effect {
        if matches!(operation, Operation::Read) { Effect::Read } else { Effect::Any }
    }

    fn fingerprint(&self, state: &State<V>) -> Option<u64> {
        Some(state.sum)
    }

    fn heap_bytes(&self, state: &State<V>) -> usize {
        state.elements.own_bytes()
    }
}

/// `add`, `remove`, and `read` of all elements.
impl Recorded for Set<ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        Set::default()
    }

    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Operation<ValueId>, Answer<ValueId>>, Mismatch> {
        let done = (!call.is_unseen()).then_some(Answer::Done);
        Ok(match (call.function(), call.answer()) {
            ("add", _) => Meaning::One(Operation::Add(call.required("an element")?), done),
            ("remove", _) => Meaning::One(Operation::Remove(call.required("an element")?), done),
            ("read", seen) => {
                call.asks_nothing()?;
                let Some(seen) = seen else { return Ok(Meaning::Nothing) };
                let elements = seen.map_or(Some(&[][..]), |seen| call.elements(seen));
                let Some(elements) = elements else { return Err(call.mismatch("a set or a list of elements")) };
                let mut elements = elements.to_vec();
                elements.sort_unstable();
                if elements.windows(2).any(|pair| pair[0] == pair[1]) {
                    return Err(call.mismatch("each element once"));
                }
                Meaning::One(Operation::Read, Some(Answer::Elements(elements)))
            }
            _ => return Err(call.foreign("add, remove, read")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_gives_what_was_added_and_not_removed() {
        let set = Set::default();
        let run = |operations: &[Operation<u8>]| {
            operations.iter().fold(set.initial(), |state, operation| set.step(&state, operation, None).unwrap())
        };
        use Operation::*;
        let state = run(&[Add(3), Add(1), Add(3), Remove(2), Add(2), Remove(1)]);
        let reads = |elements: &[u8]| set.step(&state, &Read, Some(&Answer::Elements(elements.to_vec()))).is_some();
        assert!(reads(&[2, 3]));
        assert!(!reads(&[3]) && !reads(&[1, 2, 3]) && !reads(&[]));
        assert_eq!(state, run(&[Add(2), Add(3)]));
        assert_eq!(set.fingerprint(&run(&[Add(2), Remove(2)])), set.fingerprint(&set.initial()));
    }
}
