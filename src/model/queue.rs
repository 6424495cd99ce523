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
    type State = VecDeque<V>;
    type Operation = Operation<V>;
    type Answer = Answer<V>;

    fn initial(&self) -> Self::State {
        VecDeque::new()
    }

    fn step(&self, state: &Self::State, operation: &Operation<V>, answer: Option<&Answer<V>>) -> Option<Self::State> {
        match (operation, answer) {
            (Operation::Enqueue(element), Some(Answer::Done) | None) => {
                Some(state.iter().chain([element]).cloned().collect())
            }
            (Operation::Dequeue, Some(Answer::Element(seen))) if seen.as_ref() != state.front() => None,
            (Operation::Dequeue, Some(Answer::Element(_)) | None) => Some(state.iter().skip(1).cloned().collect()),
            _ => None,
        }
    }

    fn heap_bytes(&self, state: &Self::State) -> usize {
        state.capacity() * size_of::<V>()
    }
}

/// `enqueue`, `dequeue`, and `drain`, which takes elements one after the other and not at one moment.
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
                let taken = |&element| (Operation::Dequeue, Answer::Element(Some(element)));
                Meaning::Several(drained(call)?.iter().map(taken).collect())
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
        assert_eq!(queue.step(&[1, 2].into(), &Operation::Dequeue, None), Some([2].into()));
        assert_eq!(queue.step(&[].into(), &Operation::Dequeue, None), Some([].into()));
    }
}
