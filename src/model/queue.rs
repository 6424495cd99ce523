//! A queue that gives its elements in the order in which they came.

use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::{Datum, Spec};
use crate::history::ValueId;
use std::collections::VecDeque;

/// A first-in-first-out queue (knossos `fifo-queue`). Elements may repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue<V> {
    elements: std::marker::PhantomData<fn() -> V>,
}

impl<V> Default for Queue<V> {
    fn default() -> Self {
        Queue { elements: std::marker::PhantomData }
    }
}

/// What a client asks of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<V> {
    /// To put an element at the end.
    Enqueue(V),
    /// To take the first element.
    Dequeue,
    /// To take the first element, as one of several that a drain takes one after the other.
    Drain {
        /// The drain.
        drain: u64,
        /// Its place among what the drain takes, from 0.
        place: u32,
        /// Whether it is the last.
        last: bool,
    },
}

/// What a queue holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<V> {
    elements: VecDeque<V>,
    /// Drains that took something and not yet everything, with the place that is next; ascending.
    drains: Vec<(u64, u32)>,
}

impl<V> State<V> {
    /// The drains after a step of one of them; `None`: it is not the step's turn.
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

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<V> {
    /// Of an enqueue.
    Done,
    /// Of a dequeue; `None`: the queue is empty.
    Element(Option<V>),
}

impl<V: Datum> Spec for Queue<V> {
    type State = State<V>;
    type Operation = Operation<V>;
    type Answer = Answer<V>;

    fn initial(&self) -> Self::State {
        State { elements: VecDeque::new(), drains: Vec::new() }
    }

    fn step(&self, state: &Self::State, operation: &Operation<V>, answer: Option<&Answer<V>>) -> Option<Self::State> {
        let mut drains = None;
        let held = state.elements.iter();
        let elements = match (operation, answer) {
            (Operation::Enqueue(element), Some(Answer::Done) | None) => held.chain([element]).cloned().collect(),
            (Operation::Enqueue(_), _) | (_, Some(Answer::Done)) => return None,
            (_, Some(Answer::Element(seen))) if seen.as_ref() != state.elements.front() => return None,
            (Operation::Dequeue, _) => held.skip(1).cloned().collect(),
            (Operation::Drain { drain, place, last }, _) => {
                drains = Some(state.drained(*drain, *place, *last)?);
                held.skip(1).cloned().collect()
            }
        };
        Some(State { elements, drains: drains.unwrap_or_else(|| state.drains.clone()) })
    }

    fn heap_bytes(&self, state: &Self::State) -> usize {
        state.elements.capacity() * size_of::<V>() + state.drains.capacity() * size_of::<(u64, u32)>()
    }
}

/// `enqueue`, `dequeue`, and `drain`, which takes elements one after the other and not at one moment: those of a list in its
/// order, those of a set in any.
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

/// What a drain took.
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
        let holds = |elements: &[u8]| State { elements: elements.iter().copied().collect(), drains: Vec::new() };
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
        // The second out of turn, although it is the first of the queue.
        assert_eq!(after(vec![drain(7, 1, 2, 1), drain(7, 0, 2, 2)]), None);
        assert_eq!(after(vec![drain(7, 0, 2, 1), drain(7, 0, 2, 2)]), None);
        assert_eq!(after(vec![drain(7, 0, 3, 1), drain(7, 2, 3, 2)]), None);
    }
}
