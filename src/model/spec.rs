//! Sequential specifications: what an object does, one operation after the other. Linearizability is decided against them. `step`
//! defines the object; every other method is a hint that must agree with it.

use super::form::{QueueForm, RegisterForm, Value};
use super::number;
use rustc_hash::FxHashSet;
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
/// `step` must be a function: the same arguments give the same result. It may take any time, but a deadline is checked only
/// between two steps.
pub trait Spec: Sync {
    /// The state of the object.
    type State: Clone + Eq + Hash + Send + Sync;
    /// What a client calls.
    type Operation: Clone + Eq + Hash + Debug + Send + Sync;
    /// What the call returns.
    type Answer: Clone + Eq + Hash + Debug + Send + Sync;

    /// The state before the first operation.
    fn initial(&self) -> Self::State;

    /// The state after `operation`, or `None` if it cannot have this answer (or is impossible) in `state`. `None` as the answer
    /// means that it is not known: any answer fits.
    fn step(
        &self,
        state: &Self::State,
        operation: &Self::Operation,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State>;

    /// The object that an operation is on, as a number, if the specification is of several objects. Operations on two objects must
    /// not depend on one another. If two objects get one number, as hashes may, that costs time and is never wrong.
    fn object_of(&self, _operation: &Self::Operation) -> u64 {
        0
    }

    /// The parts of its object that an operation reads or changes, as numbers; `None`: any part. Operations that share no number
    /// must not depend on one another: they are decided separately (P-compositionality, Horn and Kroening 2015). If two parts get
    /// one number, that costs time and is never wrong.
    fn keys(&self, _operation: &Self::Operation) -> Option<Vec<u64>> {
        None
    }

    /// What is known of an operation in all states. A wrong hint makes wrong verdicts, and no build checks it.
    fn effect(&self, _operation: &Self::Operation, _answer: Option<&Self::Answer>) -> Effect {
        Effect::Any
    }

    /// The operation as one on a register, if it does nothing else: by far the fastest to decide. It must agree with `step` and
    /// with [`Spec::content`]. The parts of the object are then the registers that the forms name. `keys` is called only if some
    /// operation of the history has no form.
    fn form<'a>(
        &'a self,
        _operation: &'a Self::Operation,
        _answer: Option<&'a Self::Answer>,
    ) -> Option<RegisterForm<'a>> {
        None
    }

    /// The operation as one on a queue, first in, first out, that is empty at first, if it does nothing else. It must agree
    /// with `step`. It is called only if some operation of the history has no form on a register.
    fn queue_form<'a>(
        &'a self,
        _operation: &'a Self::Operation,
        _answer: Option<&'a Self::Answer>,
    ) -> Option<QueueForm<'a>> {
        None
    }

    /// The value in the initial state of a register that a form names.
    fn content<'a>(&'a self, _register: Value<'a>) -> Value<'a> {
        Value::Absent
    }

    /// A number that equal states share, cheaper than a hash of the whole state. It only makes comparison faster.
    fn fingerprint(&self, _state: &Self::State) -> Option<u64> {
        None
    }

    /// Bytes that a state holds beyond its own size, for the memory limit.
    fn heap_bytes(&self, _state: &Self::State) -> usize {
        0
    }
}

/// What an operation does to the parts that it names ([`Spec::keys`]), in every state in which it is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing is known.
    Any,
    /// It leaves the state unchanged.
    Read,
    /// It is possible in every state, and the state after it does not depend on the one before.
    Overwrite,
}

/// What the operations of one history touch: operations without a common number are independent.
pub(crate) struct Touch<'s, S> {
    spec: &'s S,
    /// Objects with an operation on any part of them. They count as one part.
    undivided: FxHashSet<u64>,
}

impl<'s, S: Spec> Touch<'s, S> {
    /// For all operations of a history.
    pub(crate) fn of<'o>(spec: &'s S, operations: impl Iterator<Item = &'o S::Operation>) -> Self
    where
        S: 'o,
    {
        let on_any_part = operations.filter(|operation| spec.keys(operation).is_none());
        Touch { spec, undivided: on_any_part.map(|operation| spec.object_of(operation)).collect() }
    }

    /// The numbers of the parts that an operation touches.
    pub(crate) fn parts(&self, operation: &S::Operation) -> Vec<u64> {
        let object = self.spec.object_of(operation);
        if self.undivided.contains(&object) {
            return vec![object];
        }
        let keys = self.spec.keys(operation).unwrap_or_default();
        keys.into_iter().map(|key| number(&(object, key))).collect()
    }
}
