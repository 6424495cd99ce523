//! Recorded calls as operations of a model. Input: a log of calls. Output: a [`TypedLog`] of operations, and the calls that do
//! not fit the model. A read without a known answer is left out; a failed call need not be understood.

use super::{Effect, Keyed, On, Spec};
use crate::history::calls::{Call, Calls, Value};
use crate::history::{Interner, ValueId};
use crate::ingest::call::Ending;
use rustc_hash::FxHashSet;

/// Functions whose answer says only that the call is done.
const DONE: [&str; 12] = [
    "write", "put", "append", "delete", "enqueue", "add", "remove", "acquire", "lock", "release", "unlock", "allocate",
];

/// A provided model that reads operation logs.
#[doc(hidden)]
pub trait Recorded: Spec {
    /// The model for a log: how the log is written decides what the model leaves open.
    fn of(log: &Log<'_>) -> Self;

    /// The operation of a call. A failed call is read as one without a known answer.
    ///
    /// # Errors
    /// If the call is not of this model, or its values are of another type.
    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Self::Operation, Self::Answer>, Mismatch>;

    /// Values that an object may have had at its beginning, each as the call that would have set it. Either those that were seen
    /// before any call could have set them, or all that were seen. Only values that an object naturally begins with.
    fn beginnings(
        _events: &[Event<'_, Self::Operation, Self::Answer>],
        _all: bool,
        _is_natural: &dyn Fn(ValueId) -> bool,
    ) -> Vec<(Self::Operation, Self::Answer)> {
        Vec::new()
    }
}

/// The events of an object, in order.
#[derive(Clone, Copy, Debug)]
pub enum Event<'c, O, A> {
    /// A call that may have taken effect.
    Asked(&'c O),
    /// An answer.
    Answered(&'c O, &'c A),
}

/// [`Recorded::beginnings`].
pub type Beginnings<O, A> = fn(&[Event<'_, O, A>], bool, &dyn Fn(ValueId) -> bool) -> Vec<(O, A)>;

/// Beginnings of an object that are looked at, at most.
const BEGINNINGS: usize = 16;

/// Values that an object showed, each once, at most [`BEGINNINGS`]: those that no earlier call could have set, or all.
pub(super) fn seen<O, A>(
    events: &[Event<'_, O, A>],
    all: bool,
    is_natural: &dyn Fn(ValueId) -> bool,
    set: impl Fn(&O) -> Option<ValueId>,
    shown: impl Fn(&O, &A) -> Option<ValueId>,
) -> Vec<ValueId> {
    let (mut may_be, mut seen) = (FxHashSet::default(), Vec::new());
    for event in events {
        match event {
            Event::Asked(operation) => may_be.extend(set(operation).filter(|_| !all)),
            Event::Answered(operation, answer) => {
                let value = shown(operation, answer)
                    .filter(|value| is_natural(*value) && !may_be.contains(value) && !seen.contains(value));
                seen.extend(value.filter(|_| seen.len() < BEGINNINGS));
            }
        }
    }
    seen
}

/// The meaning of a recorded call.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<O, A> {
    /// Nothing: a read whose answer was not recorded.
    Nothing,
    /// An operation with its answer; `None`: not known.
    One(O, Option<A>),
    /// Several answered operations, each at some time of the call.
    Several(Vec<(O, A)>),
}

/// Why a call does not fit a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// Whether the meaning of all other calls is in doubt too.
    pub everywhere: bool,
}

impl Mismatch {
    /// A mismatch that concerns one call.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Mismatch {
        Mismatch { expected: expected.into(), found: found.into(), everywhere: false }
    }
}

/// A log with the names that its calls use.
#[derive(Clone, Copy, Debug)]
pub struct Log<'l> {
    /// The calls.
    pub calls: &'l Calls,
    /// The names.
    pub names: &'l Interner,
}

impl<'l> Log<'l> {
    /// The function of this name, if it was called.
    pub fn function(&self, name: &str) -> Option<&'l crate::history::calls::Function> {
        self.calls.functions.iter().find(|function| self.names.get(function.name) == name)
    }

    /// Whether registers or texts seem to have their keys in their values without a word about it: everything written is a pair,
    /// with several different first elements. Returns the first such call and its number.
    pub fn resembles_keys(&self) -> Option<(u32, Call)> {
        let values = &self.calls.values;
        let pair = |id: ValueId| match values.sequence(id).filter(|_| id.is_some()) {
            Some([key, value]) if !matches!(values.get(*key), Value::Sequence(_)) => Some((*key, *value)),
            _ => None,
        };
        let (mut first, mut several) = (None, false);
        for (at, call) in (0..).zip(self.calls.calls.iter()) {
            if call.key.is_some() {
                return None;
            }
            let key = match self.names.get(call.function) {
                "read" | "get" | "delete" => continue,
                "write" | "put" | "append" => pair(call.argument)?.0,
                "cas" => {
                    pair(call.argument)
                        .filter(|(_, both)| values.sequence(*both).is_some_and(|both| both.len() == 2))?
                        .0
                }
                _ => return None,
            };
            let (.., before) = *first.get_or_insert((at, call, key));
            several |= before != key;
        }
        first.filter(|_| several).map(|(at, call, _)| (at, call))
    }

    /// One call of the log.
    pub fn recording(&self, call: Call) -> Recording<'l> {
        Recording { log: *self, call }
    }
}

/// One call of a log.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'l> {
    /// The log.
    pub log: Log<'l>,
    /// The call.
    pub call: Call,
}

impl<'l> Recording<'l> {
    /// The function.
    pub fn function(&self) -> &'l str {
        self.log.names.get(self.call.function)
    }

    /// Whether there is no known answer, or the call failed.
    pub fn is_unseen(&self) -> bool {
        matches!(self.call.ending, Ending::Unknown | Ending::Fail)
    }

    /// Whether it certainly had no effect.
    pub fn has_failed(&self) -> bool {
        self.call.ending == Ending::Fail
    }

    /// Whether it was answered `false`, so it was not done: it counts as a failure.
    fn is_declined(&self) -> bool {
        let answer = self.call.answer;
        let is_false = self.call.ending == Ending::Ok && answer.is_some() && *self.value(answer) == Value::Bool(false);
        // A return that only repeats the argument says nothing more.
        is_false && answer != self.call.argument && DONE.contains(&self.function())
    }

    /// The argument; `None`: nil or not recorded.
    pub fn argument(&self) -> Option<ValueId> {
        self.some(self.call.argument)
    }

    /// Checks that a call that reads or removes everything has no argument. An argument that does not just repeat the answer
    /// looks like a key that the log does not declare.
    ///
    /// # Errors
    /// If there is an argument and no key.
    pub fn asks_nothing(&self) -> Result<(), Mismatch> {
        match self.argument() {
            Some(argument) if !self.call.key.is_some() && argument != self.call.answer => {
                let expected = format!("a key on every call, or no argument to {}", self.function());
                Err(Mismatch { everywhere: true, ..self.mismatch(&expected) })
            }
            _ => Ok(()),
        }
    }

    /// The argument, which is required.
    ///
    /// # Errors
    /// If there is none.
    pub fn required(&self, what: &str) -> Result<ValueId, Mismatch> {
        self.argument().ok_or_else(|| self.mismatch(&format!("{what} to {}", self.function())))
    }

    /// The answer of an answered call; `Some(None)`: nil; `None`: not recorded.
    pub fn answer(&self) -> Option<Option<ValueId>> {
        (!self.is_unseen() && self.call.answer.is_some()).then(|| self.some(self.call.answer))
    }

    /// A value.
    pub fn value(&self, id: ValueId) -> &'l Value {
        self.log.calls.values.get(id)
    }

    /// The elements of a sequence or set.
    pub fn elements(&self, id: ValueId) -> Option<&'l [ValueId]> {
        match self.value(id) {
            Value::Sequence(elements) | Value::Set(elements) => Some(elements),
            _ => None,
        }
    }

    /// The steps of a transaction: `[[:append x 1] [:r y nil]]`, each as its word, key and value.
    pub fn steps(&self, id: ValueId) -> Option<Vec<(&'l str, ValueId, ValueId)>> {
        let values = &self.log.calls.values;
        let step = |id: &ValueId| match *values.sequence(*id)? {
            [word, key, value] => Some((values.text(word)?, key, value)),
            [word, key] => Some((values.text(word)?, key, ValueId::NONE)),
            _ => None,
        };
        values.sequence(id)?.iter().map(step).collect()
    }

    /// The value, unless it is nil or not recorded.
    pub fn some(&self, id: ValueId) -> Option<ValueId> {
        (id.is_some() && !self.log.calls.values.is_nil(id)).then_some(id)
    }

    /// The call is not what was expected.
    pub fn mismatch(&self, expected: &str) -> Mismatch {
        Mismatch::new(expected, self.log.calls.words(&self.call, self.function()))
    }

    /// The model has no such function.
    pub fn foreign(&self, functions: &str) -> Mismatch {
        Mismatch::new(format!("one of {functions}"), format!("`{}`", self.function()))
    }
}

/// An operation of a model, with the call that it was recorded as.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed<O, A> {
    /// Index of the call.
    pub call: u32,
    /// The operation.
    pub operation: O,
    /// Its answer; `None`: not known, or the call failed.
    pub answer: Option<A>,
    /// Whether it certainly had no effect.
    pub failed: bool,
}

/// The calls of a log as operations of one model.
#[derive(Clone, Debug)]
pub struct TypedLog<S: Spec> {
    /// The model.
    pub spec: S,
    /// Its operations, in the order of the calls, without reads whose answer is not known.
    pub operations: Vec<Typed<S::Operation, S::Answer>>,
    /// Calls that do not fit the model.
    pub mismatches: Vec<(u32, Mismatch)>,
    /// The values that an object of these calls may have had at its beginning.
    pub beginnings: Beginnings<S::Operation, S::Answer>,
}

/// Reads a log as many objects of this model, by key.
pub fn keyed<S: Recorded>(log: Log<'_>) -> TypedLog<Keyed<S, ValueId>> {
    let object = S::of(&log);
    let (operations, mismatches) = read(log, |call| {
        let on = |operation| On { key: call.call.key, operation };
        Ok(match object.meaning(call)? {
            Meaning::Nothing => Meaning::Nothing,
            Meaning::One(operation, None) if object.effect(&operation, None) == Effect::Read => Meaning::Nothing,
            Meaning::One(operation, answer) => Meaning::One(on(operation), answer),
            Meaning::Several(all) => {
                Meaning::Several(all.into_iter().map(|(operation, answer)| (on(operation), answer)).collect())
            }
        })
    });
    TypedLog { spec: Keyed::new(object), operations, mismatches, beginnings: of_key::<S> }
}

/// An operation on one of many objects.
type OnKey<S> = On<ValueId, <S as Spec>::Operation>;

/// The beginnings of the object of the first event.
fn of_key<S: Recorded>(
    events: &[Event<'_, OnKey<S>, S::Answer>],
    all: bool,
    is_natural: &dyn Fn(ValueId) -> bool,
) -> Vec<(OnKey<S>, S::Answer)> {
    let Some(Event::Asked(On { key, .. }) | Event::Answered(On { key, .. }, _)) = events.first() else {
        return Vec::new();
    };
    let inner = |event: &_| match *event {
        Event::Asked(On { operation, .. }) => Event::Asked(operation),
        Event::Answered(On { operation, .. }, answer) => Event::Answered(operation, answer),
    };
    let inner: Vec<_> = events.iter().map(inner).collect();
    let beginnings = S::beginnings(&inner, all, is_natural).into_iter();
    beginnings.map(|(operation, answer)| (On { key: *key, operation }, answer)).collect()
}

/// Reads a log as one object of this model, whose operations name their keys.
pub fn whole<S: Recorded>(log: Log<'_>) -> TypedLog<S> {
    let spec = S::of(&log);
    let (operations, mismatches) = read(log, |call| {
        if call.call.key.is_some() {
            return Err(Mismatch::new("keys in the steps of the transaction", "a key of the whole call"));
        }
        Ok(match spec.meaning(call)? {
            Meaning::One(operation, None) if spec.effect(&operation, None) == Effect::Read => Meaning::Nothing,
            meaning => meaning,
        })
    });
    TypedLog { spec, operations, mismatches, beginnings: S::beginnings }
}

type Operations<O, A> = (Vec<Typed<O, A>>, Vec<(u32, Mismatch)>);

fn read<O, A>(log: Log<'_>, meaning: impl Fn(&Recording<'_>) -> Result<Meaning<O, A>, Mismatch>) -> Operations<O, A> {
    let (mut operations, mut mismatches) = (Vec::with_capacity(log.calls.calls.len()), Vec::new());
    for (at, call) in (0..).zip(log.calls.calls.iter()) {
        let mut recording = log.recording(call);
        if recording.is_declined() {
            recording.call.ending = Ending::Fail;
        }
        let failed = recording.has_failed();
        match meaning(&recording) {
            Ok(Meaning::Nothing) => {}
            Ok(Meaning::One(operation, answer)) => operations.push(Typed { call: at, operation, answer, failed }),
            Ok(Meaning::Several(all)) => {
                let typed = |(operation, answer)| Typed { call: at, operation, answer: Some(answer), failed };
                operations.extend(all.into_iter().map(typed));
            }
            // A call without effect need not be understood.
            Err(_) if failed => {}
            Err(mismatch) => mismatches.push((at, mismatch)),
        }
    }
    (operations, mismatches)
}
