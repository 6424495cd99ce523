//! The model `register`: one value that is read and written.
//!
//! ```
//! use retrograde::model::{Register, register::{Answer, Operation}};
//! use retrograde::{Recorder, assertion::Claim};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(Operation::Write(7)).ok(Answer::Done);
//! recorder.client("b").invoke(Operation::Read).ok(Answer::Value(None)); // the write is lost
//! assert!(Claim::default().linearizable(&Register::default(), &recorder).is_err());
//! ```

use super::datum::held;
use super::form::{Action, RegisterForm, Value};
use super::recorded::{Event, Log, Meaning, Mismatch, Recorded, Recording, seen};
use super::{Datum, Effect, Spec};
use crate::history::ValueId;

/// A register. It has no value until the first write.
///
/// Like the `register` of knossos, with one difference. Here a read that returned no value observed that there is none. In
/// knossos a read of `nil` fits any value, because such histories left out answers; the reader of histories leaves out these
/// reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register<V> {
    /// The value before the first write.
    pub initial: Option<V>,
}

impl<V> Default for Register<V> {
    fn default() -> Self {
        Register { initial: None }
    }
}

/// What a client calls on a register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<V> {
    /// Returns the value.
    Read,
    /// Replaces the value.
    Write(V),
}

/// What the call returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<V> {
    /// A write is done.
    Done,
    /// The value of a read; `None`: there is none.
    Value(Option<V>),
}

impl<V: Datum> Spec for Register<V> {
    type State = Option<V>;
    type Operation = Operation<V>;
    type Answer = Answer<V>;

    fn initial(&self) -> Self::State {
        self.initial.clone()
    }

    fn step(&self, state: &Self::State, operation: &Operation<V>, answer: Option<&Answer<V>>) -> Option<Self::State> {
        match (operation, answer) {
            (Operation::Read, Some(Answer::Value(seen))) => (seen == state).then(|| state.clone()),
            (Operation::Read, None) => Some(state.clone()),
            (Operation::Write(value), Some(Answer::Done) | None) => Some(Some(value.clone())),
            _ => None,
        }
    }

    fn effect(&self, operation: &Operation<V>, _answer: Option<&Answer<V>>) -> Effect {
        match operation {
            Operation::Read => Effect::Read,
            Operation::Write(_) => Effect::Overwrite,
        }
    }

    fn form<'a>(&'a self, operation: &'a Operation<V>, answer: Option<&'a Answer<V>>) -> Option<RegisterForm<'a>> {
        let action = match (operation, answer) {
            (Operation::Read, None) => Action::Nothing,
            (Operation::Read, Some(Answer::Value(seen))) => Action::Read(held(seen)?),
            (Operation::Write(value), Some(Answer::Done) | None) => Action::Write(value.value()?),
            _ => return None,
        };
        held(&self.initial)?;
        Some(RegisterForm { register: Value::Absent, action })
    }

    fn content<'a>(&'a self, _register: Value<'a>) -> Value<'a> {
        held(&self.initial).unwrap_or(Value::Absent)
    }
}

/// `read` and `write`.
impl Recorded for Register<ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        Register::default()
    }

    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Operation<ValueId>, Answer<ValueId>>, Mismatch> {
        Ok(match (call.function(), call.answer()) {
            ("read", seen) => {
                call.asks_nothing()?;
                match seen {
                    Some(seen) => Meaning::One(Operation::Read, Some(Answer::Value(seen))),
                    None => Meaning::Nothing,
                }
            }
            ("write", _) => {
                let done = (!call.is_unseen()).then_some(Answer::Done);
                Meaning::One(Operation::Write(call.required("a value")?), done)
            }
            _ => return Err(call.foreign("read, write")),
        })
    }

    fn beginnings(
        events: &[Event<'_, Self::Operation, Self::Answer>],
        all: bool,
        is_natural: &dyn Fn(ValueId) -> bool,
    ) -> Vec<(Self::Operation, Self::Answer)> {
        let set = |operation: &Self::Operation| match operation {
            Operation::Write(value) => Some(*value),
            Operation::Read => None,
        };
        let shown = |_: &_, answer: &Self::Answer| match answer {
            Answer::Value(value) => *value,
            Answer::Done => None,
        };
        seen(events, all, is_natural, set, shown)
            .into_iter()
            .map(|value| (Operation::Write(value), Answer::Done))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_gives_the_value_written_last() {
        let register = Register::default();
        let fresh = register.initial();
        let read = |state, value| register.step(state, &Operation::Read, Some(&Answer::Value(value))).is_some();
        assert!(read(&fresh, None) && !read(&fresh, Some(1)));
        let written = register.step(&fresh, &Operation::Write(1), Some(&Answer::Done)).unwrap();
        assert!(read(&written, Some(1)) && !read(&written, None) && !read(&written, Some(2)));
    }

    #[test]
    fn an_answer_that_nobody_saw_fits_whatever_it_would_have_been() {
        let register = Register { initial: Some(7) };
        assert_eq!(register.step(&Some(7), &Operation::Read, None), Some(Some(7)));
        assert_eq!(register.step(&Some(7), &Operation::Write(8), None), Some(Some(8)));
    }

    #[test]
    fn an_answer_to_another_question_fits_nothing() {
        let register = Register::<u8>::default();
        assert_eq!(register.step(&None, &Operation::Read, Some(&Answer::Done)), None);
        assert_eq!(register.step(&None, &Operation::Write(1), Some(&Answer::Value(None))), None);
    }
}
