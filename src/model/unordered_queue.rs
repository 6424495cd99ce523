//! The model `unordered-queue`: elements leave in any order.
//!
//! ```
//! use retrograde::model::{UnorderedQueue, unordered_queue::Operation};
//! use retrograde::{Recorder, assertion::Claim};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(Operation::Enqueue(1)).ok(());
//! for client in ["b", "c"] {
//!     recorder.client(client).invoke(Operation::Dequeue(1)).ok(()); // the second time is one too many
//! }
//! assert!(Claim::default().linearizable(&UnorderedQueue::default(), &recorder).is_err());
//! ```

use super::queue::drained;
use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::{Datum, Spec, number};
use crate::history::ValueId;

/// A queue without order (`unordered-queue` of knossos, `total-queue` of Jepsen). An element leaves as often as it was put in.
///
/// The queue chooses the element of a dequeue, but a [`Spec`] has one next state. So the operation names the element that was
/// taken, and each element is decided separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnorderedQueue<V> {
    elements: std::marker::PhantomData<fn() -> V>,
}

impl<V> Default for UnorderedQueue<V> {
    fn default() -> Self {
        UnorderedQueue { elements: std::marker::PhantomData }
    }
}

/// What happens to a queue.
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
    /// The elements, ascending.
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

/// `enqueue`, `dequeue`, `drain`. A dequeue without a known answer may have taken an element. It is left out: unless a dequeue
/// found the queue empty, a history that holds with it also holds without it.
impl Recorded for UnorderedQueue<ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        UnorderedQueue::default()
    }

    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Operation<ValueId>, ()>, Mismatch> {
        let done = (!call.is_unseen()).then_some(());
        Ok(match (call.function(), call.answer()) {
            ("enqueue", _) => Meaning::One(Operation::Enqueue(call.required("an element")?), done),
            ("dequeue", Some(Some(element))) => Meaning::One(Operation::Dequeue(element), done),
            ("dequeue", Some(None)) => Meaning::One(Operation::FindEmpty, done),
            ("dequeue", None) if !call.is_unseen() => return Err(call.mismatch("the element that was dequeued")),
            ("dequeue", None) if call.log.function("dequeue").is_some_and(|dequeue| dequeue.nothing > 0) => {
                return Err(call.mismatch("an answer, since other dequeues found the queue empty"));
            }
            ("dequeue", None) => Meaning::Nothing,
            ("drain", _) => {
                Meaning::Several(drained(call)?.iter().map(|&element| (Operation::Dequeue(element), ())).collect())
            }
            _ => return Err(call.foreign("enqueue, dequeue, drain")),
        })
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
