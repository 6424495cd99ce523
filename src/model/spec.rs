//! What a data type does, one operation after the other: the definition that linearizability is measured against.

use super::form::{RegisterForm, Value};
use std::fmt::Debug;
use std::hash::Hash;

/// A sequential specification.
///
/// ```
/// use retrograde::model::Spec;
///
/// /// A counter that answers with its new value.
/// struct Tickets;
///
/// impl Spec for Tickets {
///     type State = u64;
///     type Operation = ();
///     type Answer = u64;
///
///     fn initial(&self) -> u64 {
///         0
///     }
///
///     fn step(&self, state: &u64, _take: &(), answer: Option<&u64>) -> Option<u64> {
///         let next = state + 1;
///         answer.is_none_or(|answer| *answer == next).then_some(next)
///     }
/// }
/// ```
///
/// `step` must be a function: the same arguments give the same result. It may take as long as it likes, but a deadline is
/// looked at only between two steps.
pub trait Spec: Sync {
    /// What the object holds.
    type State: Clone + Eq + Hash + Send + Sync;
    /// What a client asks for.
    type Operation: Clone + Eq + Hash + Debug + Send + Sync;
    /// What it is told.
    type Answer: Clone + Eq + Hash + Debug + Send + Sync;

    /// The state before the first operation.
    fn initial(&self) -> Self::State;

    /// The state after `operation`, or `None` where it cannot be answered like this (or not happen at all) in `state`.
    /// Without an answer nobody saw one: whatever it would have been is right.
    fn step(
        &self,
        state: &Self::State,
        operation: &Self::Operation,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State>;

    /// The parts of the object that an operation reads or changes, as numbers; `None`: any part. Operations that share no
    /// number must neither see nor disturb one another: they are then decided separately (locality, Herlihy and Wing 1990).
    /// Two parts with one number, as hashes may have, cost time and are never wrong.
    fn keys(&self, _operation: &Self::Operation) -> Option<Vec<u64>> {
        None
    }

    /// What is known of an operation for all states. A wrong hint makes wrong verdicts; debug builds compare hints with `step`.
    fn effect(&self, _operation: &Self::Operation, _answer: Option<&Self::Answer>) -> Effect {
        Effect::Any
    }

    /// The operation as one on a register, where it is nothing else: by far the fastest to decide. It must agree with `step` and
    /// with [`Spec::content`]. The parts of the object are then the registers that the forms name; `keys` is asked only for the
    /// operations of a history in which some operation has no form.
    fn form<'a>(
        &'a self,
        _operation: &'a Self::Operation,
        _answer: Option<&'a Self::Answer>,
    ) -> Option<RegisterForm<'a>> {
        None
    }

    /// What a register that a form names holds in the initial state.
    fn content<'a>(&'a self, _register: Value<'a>) -> Value<'a> {
        Value::Absent
    }

    /// A number that equal states share, cheaper than hashing the whole state. It only speeds the comparison up.
    fn fingerprint(&self, _state: &Self::State) -> Option<u64> {
        None
    }

    /// Bytes that a state holds beyond its own size, for the memory limit.
    fn heap_bytes(&self, _state: &Self::State) -> usize {
        0
    }
}

/// What an operation does, in every state in which it can happen, to the parts that it names ([`Spec::keys`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing is known.
    Any,
    /// It leaves the state as it is.
    Read,
    /// It can happen in every state, and the state after it does not depend on the one before.
    Overwrite,
}
