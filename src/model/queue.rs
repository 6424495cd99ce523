//! A queue that gives its elements in the order in which they came.

use super::{Datum, Spec};
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
