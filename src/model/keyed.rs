//! Objects of one specification by key. Input: operations, each with a key. The search decides each key separately.

use super::form::{QueueForm, RegisterForm, Value};
use super::parts::Parts;
use super::{Datum, Effect, Spec, number};
use std::marker::PhantomData;

/// Objects of one [`Spec`] by key. Every operation touches one of them, so the search splits a history by key, and by the parts
/// of each object (P-compositionality, Horn and Kroening 2015). Jepsen's `independent` tuples mean the same.
///
/// A hint of the object is valid for the whole, because an effect concerns only the parts that an operation names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keyed<S, K = u32> {
    object: S,
    keys: PhantomData<fn() -> K>,
}

impl<S, K> Keyed<S, K> {
    /// An object like this one for each key.
    pub fn new(object: S) -> Self {
        Keyed { object, keys: PhantomData }
    }

    /// The specification of each object.
    pub fn object(&self) -> &S {
        &self.object
    }
}

/// An operation on one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct On<K, O> {
    /// The key of the object.
    pub key: K,
    /// The operation on it.
    pub operation: O,
}

impl<S: Spec, K: Datum> Spec for Keyed<S, K> {
    type State = Parts<K, S::State>;
    type Operation = On<K, S::Operation>;
    type Answer = S::Answer;

    fn initial(&self) -> Self::State {
        Parts::default()
    }

    fn step(
        &self,
        state: &Self::State,
        operation: &Self::Operation,
        answer: Option<&Self::Answer>,
    ) -> Option<Self::State> {
        let initial = self.object.initial();
        let before = state.get(&operation.key).unwrap_or(&initial);
        let after = self.object.step(before, &operation.operation, answer)?;
        let mut next = state.clone();
        if after != *before {
            next.set(&operation.key, (after != initial).then_some(after));
        }
        Some(next)
    }

    fn object_of(&self, operation: &Self::Operation) -> u64 {
        number(&(&operation.key, self.object.object_of(&operation.operation)))
    }

    fn keys(&self, operation: &Self::Operation) -> Option<Vec<u64>> {
        self.object.keys(&operation.operation)
    }

    fn effect(&self, operation: &Self::Operation, answer: Option<&Self::Answer>) -> Effect {
        self.object.effect(&operation.operation, answer)
    }

    fn form<'a>(
        &'a self,
        operation: &'a Self::Operation,
        answer: Option<&'a Self::Answer>,
    ) -> Option<RegisterForm<'a>> {
        let form = self.object.form(&operation.operation, answer)?;
        // The key is the name of the register, so the object must be one register without a name.
        (form.register == Value::Absent).then_some(RegisterForm { register: operation.key.value()?, ..form })
    }

    /// Two queues that share a part may be decided as one: an order that explains their union explains each of them.
    fn queue_form<'a>(
        &'a self,
        operation: &'a Self::Operation,
        answer: Option<&'a Self::Answer>,
    ) -> Option<QueueForm<'a>> {
        self.object.queue_form(&operation.operation, answer)
    }

    fn content<'a>(&'a self, _register: Value<'a>) -> Value<'a> {
        self.object.content(Value::Absent)
    }

    fn heap_bytes(&self, state: &Self::State) -> usize {
        state.heap_bytes() + state.iter().map(|(_, part)| self.object.heap_bytes(part)).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::register::{Answer, Operation, Register};
    use super::*;

    #[test]
    fn an_operation_changes_the_object_that_it_names_and_no_other() {
        let registers = Keyed::<_, &str>::new(Register::<u8>::default());
        let on = |key, operation| On { key, operation };
        let state = registers.step(&registers.initial(), &on("a", Operation::Write(1)), None).unwrap();
        let state = registers.step(&state, &on("b", Operation::Write(2)), Some(&Answer::Done)).unwrap();
        let reads =
            |key, value| registers.step(&state, &on(key, Operation::Read), Some(&Answer::Value(value))).is_some();
        assert!(reads("a", Some(1)) && reads("b", Some(2)) && reads("c", None));
        assert!(!reads("a", Some(2)) && !reads("c", Some(1)));
        assert_ne!(registers.object_of(&on("a", Operation::Read)), registers.object_of(&on("b", Operation::Read)));
    }

    #[test]
    fn the_parts_of_an_object_are_independent_unless_an_operation_is_on_any_part_of_it() {
        use super::super::pool::{Operation::*, Pool};
        let pools = Keyed::<_, &str>::new(Pool::<u8>::default());
        let of = |operations: &[On<&'static str, super::super::pool::Operation<u8>>]| {
            let touch = super::super::Touch::of(&pools, operations.iter());
            operations.iter().map(|operation| touch.parts(operation)).collect::<Vec<_>>()
        };
        let on = |key, operation| On { key, operation };
        let divided = [on("a", Allocate(1)), on("a", Allocate(2)), on("b", Allocate(1)), on("b", Allocate(2))];
        let parts = of(&divided);
        assert!((0..4).all(|at| parts[..at].iter().all(|other| *other != parts[at])));
        let parts = of(&[&divided[..], &[on("b", AllocateUnseen)]].concat());
        assert!(parts[0] != parts[1] && parts[2] == parts[3] && parts[3] == parts[4] && parts[1] != parts[2]);
    }
}
