//! The model `kv`: texts by key, with get, put, delete and append.
//!
//! ```
//! use retrograde::model::{Kv, On, kv::{Answer, Operation}};
//! use retrograde::{Recorder, assert_linearizable};
//!
//! let (recorder, on) = (Recorder::new(), |operation| On { key: "k", operation });
//! recorder.client("a").invoke(on(Operation::Put("x".into()))).ok(Answer::Done);
//! recorder.client("b").invoke(on(Operation::Append("y".into()))).ok(Answer::Done);
//! recorder.client("a").invoke(on(Operation::Get)).ok(Answer::Text(Some("xy".into())));
//! assert_linearizable!(Kv::default(), recorder);
//! ```

use super::form::{Action, RegisterForm, Value};
use super::keyed::Keyed;
use super::recorded::{Log, Meaning, Mismatch, Recorded, Recording};
use super::{Effect, Spec};
use crate::history::ValueId;
use crate::history::calls::Value as Recordable;
use std::sync::Arc;

/// A key-value store of texts, as in porcupine's test logs. Every operation touches one key.
pub type Kv<K = u32> = Keyed<Entry, K>;

/// One key of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Whether a get of an absent key returns the empty text, as after a put of it. The labs of MIT 6.824 do so, whose histories
    /// porcupine's `kvModel` reads; etcd and most others report that the key is absent.
    pub absent_reads_empty: bool,
}

/// What a client calls on a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Returns the text.
    Get,
    /// Replaces the text.
    Put(Arc<str>),
    /// Adds text at the end; an absent key then has only this text.
    Append(Arc<str>),
    /// Removes the key, if it is there.
    Delete,
}

/// What the call returns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Any call but a get is done.
    Done,
    /// The text of a get; `None`: the key is absent.
    Text(Option<Arc<str>>),
}

impl Spec for Entry {
    type State = Option<Arc<str>>;
    type Operation = Operation;
    type Answer = Answer;

    fn initial(&self) -> Self::State {
        None
    }

    fn step(&self, state: &Self::State, operation: &Operation, answer: Option<&Answer>) -> Option<Self::State> {
        let text = match (operation, answer) {
            (Operation::Get, None) => return Some(state.clone()),
            (Operation::Get, Some(Answer::Text(seen))) => {
                let fits = match (seen, state) {
                    (Some(text), None) => self.absent_reads_empty && text.is_empty(),
                    (seen, state) => seen == state,
                };
                return fits.then(|| state.clone());
            }
            (Operation::Put(text), Some(Answer::Done) | None) => text.clone(),
            (Operation::Append(more), Some(Answer::Done) | None) => match state {
                None => more.clone(),
                Some(text) => format!("{text}{more}").into(),
            },
            (Operation::Delete, Some(Answer::Done) | None) => return Some(None),
            _ => return None,
        };
        // One state for what no get can distinguish.
        Some(if self.absent_reads_empty && text.is_empty() { None } else { Some(text) })
    }

    fn effect(&self, operation: &Operation, _answer: Option<&Answer>) -> Effect {
        match operation {
            Operation::Get => Effect::Read,
            Operation::Put(_) | Operation::Delete => Effect::Overwrite,
            Operation::Append(_) => Effect::Any,
        }
    }

    fn form<'a>(&'a self, operation: &'a Operation, answer: Option<&'a Answer>) -> Option<RegisterForm<'a>> {
        let held = |text: &'a Arc<str>| match self.absent_reads_empty && text.is_empty() {
            true => Value::Absent,
            false => Value::Text(text),
        };
        let action = match (operation, answer) {
            (Operation::Get, None) => Action::Nothing,
            (Operation::Get, Some(Answer::Text(seen))) => Action::Read(seen.as_ref().map_or(Value::Absent, held)),
            (_, Some(Answer::Text(_))) => return None,
            (Operation::Get, Some(Answer::Done)) => return None,
            (Operation::Put(text), _) => Action::Write(held(text)),
            (Operation::Delete, _) => Action::Write(Value::Absent),
            (Operation::Append(more), _) => match held(more) {
                Value::Absent => Action::Nothing,
                more => Action::Append(more),
            },
        };
        Some(RegisterForm { register: Value::Absent, action })
    }

    fn heap_bytes(&self, state: &Self::State) -> usize {
        state.as_ref().map_or(0, |text| text.len() + 2 * size_of::<usize>())
    }
}

/// `get`, `put`, `append`, `delete`. Values of other types become texts as EDN writes them, unless the log has appends.
impl Recorded for Entry {
    fn of(log: &Log<'_>) -> Self {
        Entry { absent_reads_empty: log.function("get").is_none_or(|get| get.nothing == 0) }
    }

    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Operation, Answer>, Mismatch> {
        let appends = call.log.function("append").is_some();
        let text = |id: ValueId| match call.value(id) {
            Recordable::Text(text) if appends || call.log.calls.values.texts.get(*text).is_empty() => {
                Ok(Arc::from(call.log.calls.values.texts.get(*text)))
            }
            _ if appends => Err(call.mismatch("a text, since texts are appended to")),
            _ => Ok(Arc::from(call.log.calls.values.show(id, usize::MAX))),
        };
        let done = (!call.is_unseen()).then_some(Answer::Done);
        if matches!(call.function(), "get" | "delete") {
            call.asks_nothing()?;
        }
        Ok(match (call.function(), call.answer()) {
            ("get", Some(seen)) => Meaning::One(Operation::Get, Some(Answer::Text(seen.map(text).transpose()?))),
            ("get", None) => Meaning::Nothing,
            ("put", _) => Meaning::One(Operation::Put(text(call.required("a value")?)?), done),
            ("append", _) => Meaning::One(Operation::Append(text(call.required("a text")?)?), done),
            ("delete", _) => Meaning::One(Operation::Delete, done),
            _ => return Err(call.foreign("get, put, append, delete")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(entry: Entry, operations: &[Operation]) -> Option<Arc<str>> {
        operations.iter().fold(entry.initial(), |state, operation| entry.step(&state, operation, None).unwrap())
    }

    fn reads(entry: Entry, state: &Option<Arc<str>>, text: Option<&str>) -> bool {
        entry.step(state, &Operation::Get, Some(&Answer::Text(text.map(Arc::from)))).is_some()
    }

    #[test]
    fn texts_are_put_appended_and_deleted() {
        let entry = Entry::default();
        let (put, append) = (|text: &str| Operation::Put(text.into()), |text: &str| Operation::Append(text.into()));
        let state = after(entry, &[append("x"), put("a"), append("b"), append("")]);
        assert!(reads(entry, &state, Some("ab")) && !reads(entry, &state, Some("xab")) && !reads(entry, &state, None));
        assert!(reads(entry, &after(entry, &[append("x")]), Some("x")));
        assert!(reads(entry, &after(entry, &[put("a"), Operation::Delete]), None));
    }

    #[test]
    fn the_empty_text_is_absence_only_where_the_store_says_so() {
        let (strict, lenient) = (Entry::default(), Entry { absent_reads_empty: true });
        let empty = [Operation::Put("".into())];
        assert!(reads(strict, &after(strict, &empty), Some("")) && !reads(strict, &after(strict, &empty), None));
        assert!(reads(strict, &None, None) && !reads(strict, &None, Some("")));
        assert_eq!(after(lenient, &empty), lenient.initial());
        assert!(reads(lenient, &None, Some("")) && reads(lenient, &None, None));
    }
}
