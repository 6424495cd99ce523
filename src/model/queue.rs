//! The model `queue`: elements leave in the order in which they came.
//!
//! ```
//! use retrograde::model::{Queue, queue::{Answer, Operation}};
//! use retrograde::{Recorder, assert_linearizable};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(Operation::Enqueue(1)).ok(Answer::Done);
//! recorder.client("a").invoke(Operation::Enqueue(2)).ok(Answer::Done);
//! recorder.client("b").invoke(Operation::Dequeue).ok(Answer::Element(Some(1)));
//! assert_linearizable!(Queue::default(), recorder);
//! ```

use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::sorted::Sorted;
use super::{Datum, QueueForm, Spec, spread};
use crate::history::ValueId;
use std::hash::{Hash, Hasher};

/// A queue, first in, first out (`fifo-queue` of knossos). Elements may repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue<V> {
    elements: std::marker::PhantomData<fn() -> V>,
}

impl<V> Default for Queue<V> {
    fn default() -> Self {
        Queue { elements: std::marker::PhantomData }
    }
}

/// What a client calls on a queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<V> {
    /// Puts an element at the end.
    Enqueue(V),
    /// Takes the first element.
    Dequeue,
    /// Takes the first element, as one of several that a drain takes one after the other.
    Drain {
        /// The number of the drain.
        drain: u64,
        /// The place of the element among those of the drain, from 0.
        place: u32,
        /// Whether the drain ends with it.
        last: bool,
    },
}

/// The state of a queue.
#[derive(Clone, Debug)]
pub struct State<V> {
    /// Each with its place, one more than that of the element before it.
    elements: Sorted<(u32, V)>,
    /// The place of the next element.
    next: u32,
    /// The sum of the hashes of the elements, each times a power of [`BASE`], from power 0 for the first. It distinguishes most
    /// different queues at once.
    sum: u64,
    /// Drains that have begun and not ended, each with its next place; ascending.
    drains: Vec<(u64, u32)>,
}

/// Odd, so that it has an inverse modulo 2^64.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
const INVERSE: u64 = inverse(BASE);

/// Newton's iteration doubles the correct bits. An odd number is its own inverse in three bits.
const fn inverse(odd: u64) -> u64 {
    let (mut inverse, mut bits) = (odd, 3);
    while bits < 64 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse
}

/// Places do not count: a queue that lost an element and got another may hold the same elements.
impl<V: PartialEq> PartialEq for State<V> {
    fn eq(&self, other: &Self) -> bool {
        self.sum == other.sum
            && self.elements.len() == other.elements.len()
            && self.drains == other.drains
            && match self.next == other.next {
                true => self.elements == other.elements,
                false => self.elements.iter().map(|held| &held.1).eq(other.elements.iter().map(|held| &held.1)),
            }
    }
}

impl<V: Eq> Eq for State<V> {}

impl<V> Hash for State<V> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.sum.hash(hasher);
        self.drains.hash(hasher);
    }
}

impl<V: Datum> State<V> {
    /// The queue with an element at the end.
    fn enqueue(&self, element: &V) -> Self {
        // Places run out only after 2^32 elements in a queue that was never empty.
        let Some(after) = self.next.checked_add(1) else {
            let all = self.elements.iter().map(|held| &held.1).chain([element]);
            let empty = State { elements: Sorted::default(), next: 0, sum: 0, drains: self.drains.clone() };
            return all.fold(empty, |queue, element| queue.enqueue(element));
        };
        let power = BASE.wrapping_pow(self.elements.len() as u32);
        State {
            elements: self.elements.with((self.next, element.clone())).unwrap_or_else(|| self.elements.clone()),
            next: after,
            sum: self.sum.wrapping_add(spread(element).wrapping_mul(power)),
            drains: self.drains.clone(),
        }
    }

    /// The queue without its first element, if it has one.
    fn dequeue(&self) -> Self {
        let Some((rest, first)) = self.elements.first().and_then(|first| Some((self.elements.without(first)?, first)))
        else {
            return self.clone();
        };
        State {
            next: if rest.len() == 0 { 0 } else { self.next },
            sum: self.sum.wrapping_sub(spread(&first.1)).wrapping_mul(INVERSE),
            elements: rest,
            drains: self.drains.clone(),
        }
    }

    /// The drains after a step of one of them; `None` if the step is out of turn.
    fn drained(&self, drain: u64, place: u32, last: bool) -> Option<Vec<(u64, u32)>> {
        let mut drains = self.drains.clone();
        match (drains.binary_search_by_key(&drain, |open| open.0), place) {
            (Ok(at), place) if drains[at].1 != place => return None,
            (Ok(at), _) if last => drop(drains.remove(at)),
            (Ok(at), _) => drains[at].1 += 1,
            (Err(_), 0) if last => {}
            (Err(at), 0) => drains.insert(at, (drain, 1)),
            (Err(_), _) => return None,
        }
        Some(drains)
    }
}

/// What the call returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<V> {
    /// An enqueue is done.
    Done,
    /// The element of a dequeue; `None`: the queue is empty.
    Element(Option<V>),
}

impl<V: Datum> Spec for Queue<V> {
    type State = State<V>;
    type Operation = Operation<V>;
    type Answer = Answer<V>;

    fn initial(&self) -> Self::State {
        State { elements: Sorted::default(), next: 0, sum: 0, drains: Vec::new() }
    }

    fn step(&self, state: &Self::State, operation: &Operation<V>, answer: Option<&Answer<V>>) -> Option<Self::State> {
        match (operation, answer) {
            (Operation::Enqueue(element), Some(Answer::Done) | None) => return Some(state.enqueue(element)),
            (Operation::Enqueue(_), _) | (_, Some(Answer::Done)) => return None,
            (_, Some(Answer::Element(seen))) if seen.as_ref() != state.elements.first().map(|first| &first.1) => {
                return None;
            }
            (Operation::Dequeue | Operation::Drain { .. }, _) => {}
        }
        let mut next = state.dequeue();
        if let Operation::Drain { drain, place, last } = operation {
            next.drains = state.drained(*drain, *place, *last)?;
        }
        Some(next)
    }

    fn queue_form<'a>(&'a self, operation: &'a Operation<V>, answer: Option<&'a Answer<V>>) -> Option<QueueForm<'a>> {
        Some(match (operation, answer) {
            (Operation::Enqueue(element), Some(Answer::Done) | None) => QueueForm::Enqueue(element.value()?),
            (Operation::Dequeue, Some(Answer::Element(Some(seen)))) => QueueForm::Dequeue(Some(seen.value()?)),
            (Operation::Dequeue, Some(Answer::Element(None))) => QueueForm::Dequeue(None),
            (Operation::Dequeue, None) => QueueForm::Unknown,
            _ => return None,
        })
    }

    fn heap_bytes(&self, state: &Self::State) -> usize {
        state.elements.own_bytes() + state.drains.capacity() * size_of::<(u64, u32)>()
    }
}

/// `enqueue`, `dequeue`, and `drain`, which takes elements one after the other and not at one moment. A list has them in order, a
/// set in any order.
impl Recorded for Queue<ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        Queue::default()
    }

    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Operation<ValueId>, Answer<ValueId>>, Mismatch> {
        Ok(match (call.function(), call.answer()) {
            ("enqueue", _) => {
                let done = (!call.is_unseen()).then_some(Answer::Done);
                Meaning::One(Operation::Enqueue(call.required("an element")?), done)
            }
            ("dequeue", _) if call.is_unseen() => Meaning::One(Operation::Dequeue, None),
            ("dequeue", Some(element)) => Meaning::One(Operation::Dequeue, Some(Answer::Element(element))),
            ("dequeue", None) => return Err(call.mismatch("the element that was dequeued")),
            ("drain", _) => {
                let taken = drained(call)?;
                let ordered =
                    call.answer().flatten().is_some_and(|answer| call.log.calls.values.sequence(answer).is_some());
                let drain = call.call.invoke.position.offset;
                let step = |(place, &element)| {
                    let last = place as usize + 1 == taken.len();
                    let operation = if ordered { Operation::Drain { drain, place, last } } else { Operation::Dequeue };
                    (operation, Answer::Element(Some(element)))
                };
                Meaning::Several((0..).zip(taken).map(step).collect())
            }
            _ => return Err(call.foreign("enqueue, dequeue, drain")),
        })
    }
}

/// The elements that a drain took.
pub(super) fn drained<'l>(call: &Recording<'l>) -> Result<&'l [ValueId], Mismatch> {
    match call.answer() {
        None => {
            Err(call.mismatch("the elements that were drained (an unknown drain may have taken any number of them)"))
        }
        Some(None) => Ok(&[]),
        Some(Some(answer)) => call.elements(answer).ok_or_else(|| call.mismatch("a list of drained elements")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_leave_in_the_order_in_which_they_came() {
        let queue = Queue::default();
        let mut state = queue.initial();
        for element in [1, 2, 2] {
            state = queue.step(&state, &Operation::Enqueue(element), Some(&Answer::Done)).unwrap();
        }
        let take = |state: &_, element| queue.step(state, &Operation::Dequeue, Some(&Answer::Element(element)));
        assert_eq!(take(&state, Some(2)), None);
        assert_eq!(take(&state, None), None);
        for element in [1, 2, 2] {
            state = take(&state, Some(element)).unwrap();
        }
        assert_eq!(take(&state, None), Some(queue.initial()));
    }

    #[test]
    fn a_dequeue_that_nobody_saw_the_answer_of_takes_the_first_element_if_there_is_one() {
        let queue = Queue::default();
        let holds = |elements: &[u8]| elements.iter().fold(queue.initial(), |state, element| state.enqueue(element));
        assert_eq!(queue.step(&holds(&[1, 2]), &Operation::Dequeue, None), Some(holds(&[2])));
        assert_eq!(queue.step(&holds(&[]), &Operation::Dequeue, None), Some(holds(&[])));
    }

    #[test]
    fn a_drain_takes_one_element_after_the_other_and_others_may_come_in_between() {
        let queue = Queue::default();
        let put = |element| (Operation::Enqueue(element), Answer::Done);
        let take = |element| (Operation::Dequeue, Answer::Element(Some(element)));
        let drain = |drain, place, of, element| {
            (Operation::Drain { drain, place, last: place + 1 == of }, Answer::Element(Some(element)))
        };
        let happens = |steps: &[(Operation<u8>, Answer<u8>)]| {
            steps
                .iter()
                .try_fold(queue.initial(), |state, (operation, answer)| queue.step(&state, operation, Some(answer)))
        };
        let full = || vec![put(1), put(2), put(3)];
        let after = |steps: Vec<_>| happens(&[full(), steps].concat());
        assert_eq!(after(vec![drain(7, 0, 2, 1), take(2), drain(7, 1, 2, 3)]), Some(queue.initial()));
        assert_eq!(after(vec![drain(7, 0, 2, 1), drain(9, 0, 1, 2), drain(7, 1, 2, 3)]), Some(queue.initial()));
        // The second step comes first, although its element is first in the queue.
        assert_eq!(after(vec![drain(7, 1, 2, 1), drain(7, 0, 2, 2)]), None);
        assert_eq!(after(vec![drain(7, 0, 2, 1), drain(7, 0, 2, 2)]), None);
        assert_eq!(after(vec![drain(7, 0, 3, 1), drain(7, 2, 3, 2)]), None);
    }

    #[test]
    fn a_form_says_what_a_step_does() {
        use crate::model::Value;
        let queue = Queue::default();
        let value = |element: &u8| Value::Number(i64::from(*element));
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..2_000 {
            let (mut state, mut held) = (queue.initial(), std::collections::VecDeque::<u8>::new());
            for _ in 0..12 {
                let element = random.u8(..3);
                let operation = if random.bool() { Operation::Enqueue(element) } else { Operation::Dequeue };
                let answer = match (&operation, random.u8(..5)) {
                    (_, 0) => None,
                    (Operation::Enqueue(_), _) => Some(Answer::Done),
                    (_, 1) => Some(Answer::Element(None)),
                    _ => Some(Answer::Element(Some(element))),
                };
                let form = queue.queue_form(&operation, answer.as_ref()).expect("it is no drain");
                let is_possible = match form {
                    QueueForm::Enqueue(put) => put == value(&element),
                    QueueForm::Dequeue(seen) => held.front().map(value) == seen,
                    QueueForm::Unknown => true,
                };
                let next = queue.step(&state, &operation, answer.as_ref());
                assert_eq!(next.is_some(), is_possible, "{held:?} {operation:?} {answer:?}");
                let Some(next) = next else { continue };
                match form {
                    QueueForm::Enqueue(_) => held.push_back(element),
                    _ => drop(held.pop_front()),
                }
                state = next;
                assert!(state.elements.iter().map(|(_, element)| element).eq(&held));
            }
        }
        let drain = Operation::Drain { drain: 1, place: 0, last: true };
        assert_eq!(queue.queue_form(&drain, Some(&Answer::Element(Some(1)))), None);
    }

    #[test]
    fn queues_that_hold_the_same_are_equal_whatever_went_through_them() {
        let queue = Queue::default();
        let put = |state: &_, element| queue.step(state, &Operation::Enqueue(element), None).unwrap();
        let hash = |state: &State<u8>| std::hash::BuildHasher::hash_one(&rustc_hash::FxBuildHasher, state);
        let (mut state, mut held) = (queue.initial(), std::collections::VecDeque::new());
        for at in 0..600_u32 {
            let element = (at * at / 7 % 5) as u8;
            if at % 5 < 2 + at / 150 % 2 {
                state = put(&state, element);
                held.push_back(element);
            } else {
                let first = Answer::Element(held.pop_front());
                state = queue.step(&state, &Operation::Dequeue, Some(&first)).unwrap();
            }
            let fresh = held.iter().fold(queue.initial(), |state, &element| put(&state, element));
            assert!(state == fresh && hash(&state) == hash(&fresh), "{held:?}");
            assert!(held.is_empty() || state != put(&fresh, 1));
        }
        assert_eq!(BASE.wrapping_mul(INVERSE), 1);
        let mut late = put(&queue.initial(), 1);
        late.next = u32::MAX;
        assert_eq!(put(&late, 2), put(&put(&queue.initial(), 1), 2));
    }
}
