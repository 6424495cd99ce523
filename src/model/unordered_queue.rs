//! A queue that gives its elements in any order.

use super::{Datum, Spec, number};

/// A queue without order (knossos `unordered-queue`, Jepsen's `total-queue`): what was put in once comes out once.
///
/// Which element a dequeue takes is the queue's choice. An operation is therefore named by what it took: a [`Spec`] has one
/// next state, and with the element in the operation each element is decided by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnorderedQueue<V> {
    elements: std::marker::PhantomData<fn() -> V>,
}

impl<V> Default for UnorderedQueue<V> {
    fn default() -> Self {
        UnorderedQueue { elements: std::marker::PhantomData }
    }
}

/// What happens to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<V> {
    /// An element is put in.
    Enqueue(V),
    /// This element is taken out.
    Dequeue(V),
    /// A dequeue finds nothing.
    FindEmpty,
}

impl<V: Datum> Spec for UnorderedQueue<V> {
    /// The elements, in their order.
    type State = Vec<V>;
    type Operation = Operation<V>;
    type Answer = ();

    fn initial(&self) -> Vec<V> {
        Vec::new()
    }

    fn step(&self, state: &Vec<V>, operation: &Operation<V>, _answer: Option<&()>) -> Option<Vec<V>> {
        let mut next = state.clone();
        match operation {
            Operation::Enqueue(element) => {
                let at = next.partition_point(|other| other < element);
                next.insert(at, element.clone());
            }
            Operation::Dequeue(element) => drop(next.remove(next.binary_search(element).ok()?)),
            Operation::FindEmpty if state.is_empty() => {}
            Operation::FindEmpty => return None,
        }
        Some(next)
    }

    fn keys(&self, operation: &Operation<V>) -> Option<Vec<u64>> {
        match operation {
            Operation::Enqueue(element) | Operation::Dequeue(element) => Some(vec![number(element)]),
            Operation::FindEmpty => None,
        }
    }

    fn heap_bytes(&self, state: &Vec<V>) -> usize {
        state.capacity() * size_of::<V>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_once_comes_out_once_in_any_order() {
        let queue = UnorderedQueue::default();
        let run = |operations: &[Operation<u8>]| {
            operations.iter().try_fold(Vec::new(), |state, operation| queue.step(&state, operation, Some(&())))
        };
        use Operation::*;
        assert_eq!(run(&[Enqueue(2), Enqueue(1), Enqueue(2), Dequeue(2), Dequeue(1)]), Some(vec![2]));
        assert_eq!(run(&[Enqueue(1), Dequeue(1), Dequeue(1)]), None);
        assert_eq!(run(&[Dequeue(1)]), None);
        assert_eq!(run(&[FindEmpty, Enqueue(1), Dequeue(1), FindEmpty]), Some(vec![]));
        assert_eq!(run(&[Enqueue(1), FindEmpty]), None);
    }
}
