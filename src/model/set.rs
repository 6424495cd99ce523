//! A set that is read whole.

use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::{Datum, Effect, Spec};
use crate::history::ValueId;
use std::hash::{Hash, Hasher};

/// A set: add, remove, and reads of all its elements at one moment (Jepsen's `set` workload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set<V> {
    elements: std::marker::PhantomData<fn() -> V>,
}

impl<V> Default for Set<V> {
    fn default() -> Self {
        Set { elements: std::marker::PhantomData }
    }
}

/// What a client asks of a set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<V> {
    /// To hold an element.
    Add(V),
    /// To hold it no longer.
    Remove(V),
    /// All elements.
    Read,
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<V> {
    /// Of a change.
    Done,
    /// Of a read: the elements in ascending order, each once.
    Elements(Vec<V>),
}

/// The elements in ascending order, with the sum of their hashes: two sets that differ are told apart without looking at all
/// of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State<V> {
    sum: u64,
    elements: Vec<V>,
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
        State { sum: 0, elements: Vec::new() }
    }

    fn step(&self, state: &State<V>, operation: &Operation<V>, answer: Option<&Answer<V>>) -> Option<State<V>> {
        let mut next = match (operation, answer) {
            (Operation::Read, Some(Answer::Elements(seen))) => return (*seen == state.elements).then(|| state.clone()),
            (Operation::Read, None) => return Some(state.clone()),
            (Operation::Add(_) | Operation::Remove(_), Some(Answer::Done) | None) => state.clone(),
            _ => return None,
        };
        match operation {
            Operation::Add(element) => {
                if let Err(at) = next.elements.binary_search(element) {
                    next.elements.insert(at, element.clone());
                    next.sum = next.sum.wrapping_add(spread(element));
                }
            }
            Operation::Remove(element) => {
                if let Ok(at) = next.elements.binary_search(element) {
                    next.elements.remove(at);
                    next.sum = next.sum.wrapping_sub(spread(element));
                }
            }
            Operation::Read => {}
        }
        Some(next)
    }

    fn effect(&self, operation: &Operation<V>, _answer: Option<&Answer<V>>) -> Effect {
        if matches!(operation, Operation::Read) { Effect::Read } else { Effect::Any }
    }

    fn fingerprint(&self, state: &State<V>) -> Option<u64> {
        Some(state.sum)
    }

    fn heap_bytes(&self, state: &State<V>) -> usize {
        state.elements.capacity() * size_of::<V>()
    }
}

/// A hash whose sums differ where sets do, but for accident.
fn spread(element: &impl Hash) -> u64 {
    let mut z = super::number(element).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
