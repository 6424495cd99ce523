//! The model `cas-register`: one value that is read, written, and compared and set.
//!
//! ```
//! use retrograde::model::{CasRegister, cas_register::{Answer, Operation}};
//! use retrograde::{Recorder, assertion::Claim};
//!
//! let recorder = Recorder::new();
//! recorder.client("a").invoke(Operation::Cas(Some(1), 2)).ok(Answer::Swapped(true));
//! recorder.client("b").invoke(Operation::Cas(Some(1), 3)).ok(Answer::Swapped(true)); // it was 2 already
//! let register = CasRegister { initial: Some(1) };
//! assert!(Claim::default().linearizable(&register, &recorder).is_err());
//! ```

use super::datum::held;
use super::form::{Action, RegisterForm, Value};
use super::recorded::{Event, Log, Meaning, Mismatch, Recorded, Recording, seen};
use super::{Datum, Effect, Spec};
use crate::history::ValueId;
use crate::history::calls::Value as Recordable;
use crate::ingest::call::Ending;

/// A register with compare-and-set, the subject of most Jepsen tests of etcd, Consul and ZooKeeper (`cas-register` of knossos).
///
/// A compare-and-set that was answered "no" observed another value than the expected one, as a read does. Porcupine's `etcdModel`
/// reads Jepsen's logs of etcd so, in which the client writes `:fail` for that answer alone. A compare-and-set that failed for
/// any reason ([`Outcome::Failed`](crate::search)) observed nothing. Knossos reads `:fail` so, and so does the reader of EDN
/// histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CasRegister<V> {
    /// The value before the first write.
    pub initial: Option<V>,
}

impl<V> Default for CasRegister<V> {
    fn default() -> Self {
        CasRegister { initial: None }
    }
}

/// What a client calls on a register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<V> {
    /// Returns the value.
    Read,
    /// Replaces the value.
    Write(V),
    /// Replaces the first value with the second, if the register holds it; `None`: if it has no value.
    Cas(Option<V>, V),
}

/// What the call returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<V> {
    /// A write is done.
    Done,
    /// The value of a read; `None`: there is none.
    Value(Option<V>),
    /// Whether a compare-and-set found the expected value, and replaced it.
    Swapped(bool),
}

impl<V: Datum> Spec for CasRegister<V> {
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
            (Operation::Cas(from, to), answer) => {
                let fits = from == state;
                match answer {
                    Some(Answer::Swapped(swapped)) if *swapped != fits => None,
                    Some(Answer::Swapped(_)) | None => Some(if fits { Some(to.clone()) } else { state.clone() }),
                    Some(_) => None,
                }
            }
            _ => None,
        }
    }

    fn effect(&self, operation: &Operation<V>, answer: Option<&Answer<V>>) -> Effect {
        match (operation, answer) {
            (Operation::Read, _) | (Operation::Cas(..), Some(Answer::Swapped(false))) => Effect::Read,
            (Operation::Write(_), _) => Effect::Overwrite,
            (Operation::Cas(from, to), _) if from.as_ref() == Some(to) => Effect::Read,
            (Operation::Cas(..), _) => Effect::Any,
        }
    }

    fn form<'a>(&'a self, operation: &'a Operation<V>, answer: Option<&'a Answer<V>>) -> Option<RegisterForm<'a>> {
        let action = match (operation, answer) {
            (Operation::Read, None) => Action::Nothing,
            (Operation::Read, Some(Answer::Value(seen))) => Action::Read(held(seen)?),
            (Operation::Write(value), Some(Answer::Done) | None) => Action::Write(value.value()?),
            (Operation::Cas(from, _), Some(Answer::Swapped(false))) => Action::FailedCas(held(from)?),
            (Operation::Cas(from, to), Some(Answer::Swapped(true)) | None) => {
                Action::Cas { from: held(from)?, to: to.value()? }
            }
            _ => return None,
        };
        held(&self.initial)?;
        Some(RegisterForm { register: Value::Absent, action })
    }

    fn content<'a>(&'a self, _register: Value<'a>) -> Value<'a> {
        held(&self.initial).unwrap_or(Value::Absent)
    }
}

/// `read`, `write`, and `cas` of two values.
impl Recorded for CasRegister<ValueId> {
    fn of(_log: &Log<'_>) -> Self {
        CasRegister::default()
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
            ("cas", answer) => {
                let pair = call.argument().and_then(|argument| call.elements(argument));
                let Some(&[from, to]) = pair else { return Err(call.mismatch("cas [from to]")) };
                let Some(to) = call.some(to) else { return Err(call.mismatch("cas to a value")) };
                let recorded = answer.map(|answer| answer.map(|answer| (answer, call.value(answer))));
                let swapped = match recorded {
                    _ if call.call.ending == Ending::Refused => false,
                    None => true,
                    Some(Some((_, Recordable::Bool(swapped)))) => *swapped,
                    Some(Some((answer, _))) if answer == call.call.argument => true,
                    Some(_) => return Err(call.mismatch("true, false, or the argument, as the answer to a cas")),
                };
                let answer = (!call.is_unseen()).then_some(Answer::Swapped(swapped));
                Meaning::One(Operation::Cas(call.some(from), to), answer)
            }
            _ => return Err(call.foreign("read, write, cas")),
        })
    }

    fn beginnings(
        events: &[Event<'_, Self::Operation, Self::Answer>],
        all: bool,
        is_natural: &dyn Fn(ValueId) -> bool,
    ) -> Vec<(Self::Operation, Self::Answer)> {
        let set = |operation: &Self::Operation| match operation {
            Operation::Write(value) | Operation::Cas(_, value) => Some(*value),
            Operation::Read => None,
        };
        let shown = |operation: &Self::Operation, answer: &Self::Answer| match (operation, answer) {
            (_, Answer::Value(value)) => *value,
            (Operation::Cas(from, _), Answer::Swapped(true)) => *from,
            _ => None,
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

    fn cas(state: Option<u8>, from: Option<u8>, to: u8, answer: Option<bool>) -> Option<Option<u8>> {
        CasRegister::default().step(&state, &Operation::Cas(from, to), answer.map(Answer::Swapped).as_ref())
    }

    #[test]
    fn a_compare_and_set_says_whether_the_value_was_the_expected_one() {
        assert_eq!(cas(Some(1), Some(1), 2, Some(true)), Some(Some(2)));
        assert_eq!(cas(Some(1), Some(1), 2, Some(false)), None);
        assert_eq!(cas(Some(3), Some(1), 2, Some(true)), None);
        assert_eq!(cas(Some(3), Some(1), 2, Some(false)), Some(Some(3)));
        assert_eq!(cas(None, None, 2, Some(true)), Some(Some(2)));
        assert_eq!(cas(None, Some(1), 2, Some(false)), Some(None));
    }

    #[test]
    fn without_answer_it_sets_the_value_where_it_is_the_expected_one() {
        assert_eq!(cas(Some(1), Some(1), 2, None), Some(Some(2)));
        assert_eq!(cas(Some(3), Some(1), 2, None), Some(Some(3)));
    }
}
