//! The model `counter`: a number that is added to.
//!
//! ```
//! use retrograde::model::{Counter, counter::{Answer, Operation}};
//! use retrograde::{Recorder, assert_linearizable};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(Operation::AddAndGet(2)).ok(Answer::Value(2));
//! recorder.client("b").invoke(Operation::Read).ok(Answer::Value(2));
//! assert_linearizable!(Counter, recorder);
//! ```

use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::{Effect, Spec};
use crate::history::ValueId;
use crate::history::calls::Value;

/// A counter that begins at 0 and returns its exact value. (Jepsen's `counter` checker requires less: a read is between the sums
/// that were possible during it.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter;

/// What a client calls on a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Adds a number, which may be negative.
    Add(i64),
    /// Returns the value.
    Read,
    /// Adds a number and returns the new value.
    AddAndGet(i64),
}

/// What the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// An add is done.
    Done,
    /// The value.
    Value(i128),
}

impl Spec for Counter {
    /// No history has enough additions to overflow it.
    type State = i128;
    type Operation = Operation;
    type Answer = Answer;

    fn initial(&self) -> i128 {
        0
    }

    fn step(&self, state: &i128, operation: &Operation, answer: Option<&Answer>) -> Option<i128> {
        let (next, shown) = match operation {
            Operation::Add(by) => (state + i128::from(*by), false),
            Operation::Read => (*state, true),
            Operation::AddAndGet(by) => (state + i128::from(*by), true),
        };
        let fits = match answer {
            None => true,
            Some(Answer::Done) => !shown,
            Some(Answer::Value(value)) => shown && *value == next,
        };
        fits.then_some(next)
    }

    fn effect(&self, operation: &Operation, _answer: Option<&Answer>) -> Effect {
        match operation {
            Operation::Read | Operation::Add(0) | Operation::AddAndGet(0) => Effect::Read,
            _ => Effect::Any,
        }
    }
}

/// `add`, `read`, and `add-and-get`, which returns the value or `[added value]`.
impl Recorded for Counter {
    fn of(_log: &Log<'_>) -> Self {
        Counter
    }

    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Operation, Answer>, Mismatch> {
        let number = |id: Option<ValueId>| match id.map(|id| call.value(id)) {
            Some(Value::Int(number)) => Ok(*number),
            _ => Err(call.mismatch("an integer of 64 bits")),
        };
        Ok(match (call.function(), call.answer()) {
            ("add", _) => {
                Meaning::One(Operation::Add(number(call.argument())?), (!call.is_unseen()).then_some(Answer::Done))
            }
            ("read", seen) => {
                call.asks_nothing()?;
                let Some(seen) = seen else { return Ok(Meaning::Nothing) };
                Meaning::One(Operation::Read, Some(Answer::Value(number(seen)?.into())))
            }
            ("add-and-get", answer) => {
                let value = match answer {
                    _ if call.is_unseen() => None,
                    Some(Some(answer)) => match call.elements(answer) {
                        Some([_, value]) => Some(number(Some(*value))?),
                        _ => Some(number(Some(answer))?),
                    },
                    _ => return Err(call.mismatch("the value after an add-and-get")),
                };
                // The argument may also be the first element of a pair.
                let by = match call.argument().and_then(|argument| call.elements(argument)) {
                    Some([by, _]) => Some(*by),
                    _ => call.argument(),
                };
                Meaning::One(Operation::AddAndGet(number(by)?), value.map(|value| Answer::Value(value.into())))
            }
            _ => return Err(call.foreign("add, read, add-and-get")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_the_sum_of_what_was_added() {
        use Operation::*;
        let step = |state, operation, answer| Counter.step(&state, &operation, answer);
        assert_eq!(step(2, Add(-3), Some(&Answer::Done)), Some(-1));
        assert_eq!(step(2, Read, Some(&Answer::Value(2))), Some(2));
        assert_eq!(step(2, Read, Some(&Answer::Value(3))), None);
        assert_eq!(step(2, AddAndGet(1), Some(&Answer::Value(3))), Some(3));
        assert_eq!(step(2, AddAndGet(1), Some(&Answer::Value(2))), None);
        assert_eq!(step(i128::from(i64::MAX), Add(i64::MAX), None), Some(2 * i128::from(i64::MAX)));
    }
}
