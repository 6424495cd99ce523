//! Recorded calls as operations of a model.

use super::{Effect, Keyed, On, Spec};
use crate::history::calls::{Call, Calls, Value};
use crate::history::{Interner, ValueId};
use crate::ingest::call::Ending;
use rustc_hash::FxHashSet;

/// Functions whose answer says no more than that they were done.
const DONE: [&str; 12] = [
    "write", "put", "append", "delete", "enqueue", "add", "remove", "acquire", "lock", "release", "unlock", "allocate",
];

/// A provided model as the reader of operation logs.
pub trait Recorded: Spec {
    /// The model for a log: what it leaves open is decided by how the log is written.
    fn of(log: &Log<'_>) -> Self;

    /// What a call was. One that failed is asked about as if nobody had seen its answer.
    ///
    /// # Errors
    /// Where it is none of this model, or its values are not of the kind.
    fn meaning(&self, call: &Recording<'_>) -> Result<Meaning<Self::Operation, Self::Answer>, Mismatch>;

    /// Values that an object may have had at its beginning, as its calls show it, each as the call that would have set it: those
    /// that were seen before any call could have set them, or all that were seen; of values only that an object naturally begins with.
    fn beginnings(
        _events: &[Event<'_, Self::Operation, Self::Answer>],
        _all: bool,
        _is_natural: &dyn Fn(ValueId) -> bool,
    ) -> Vec<(Self::Operation, Self::Answer)> {
        Vec::new()
    }
}

/// What happens to an object, in its order.
#[derive(Clone, Copy, Debug)]
pub enum Event<'c, O, A> {
    /// It was asked for something that may have happened.
    Asked(&'c O),
    /// It answered.
    Answered(&'c O, &'c A),
}

/// [`Recorded::beginnings`].
pub type Beginnings<O, A> = fn(&[Event<'_, O, A>], bool, &dyn Fn(ValueId) -> bool) -> Vec<(O, A)>;

/// Beginnings that are told apart: more are not looked at.
const BEGINNINGS: usize = 16;

/// Values that an object showed, each once, and no more than [`BEGINNINGS`]: those that nothing could have set before, or all.
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

/// What a recorded call was.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning<O, A> {
    /// It says nothing: a read whose answer was not recorded.
    Nothing,
    /// An operation with its answer; `None`: nobody saw one.
    One(O, Option<A>),
    /// Several answered ones, each at some time of the call.
    Several(Vec<(O, A)>),
}

/// Why a call is none of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What stood to reason.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// Whether it puts into doubt what the other calls mean.
    pub everywhere: bool,
}

impl Mismatch {
    /// Of these.
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
    /// How often a function was called.
    pub fn function(&self, name: &str) -> Option<&'l crate::history::calls::Function> {
        self.calls.functions.iter().find(|function| self.names.get(function.name) == name)
    }

    /// Whether registers or texts by key seem to have their keys in their values, although it is not said: everything that is
    /// written is a pair, and there are several first elements. The first such call, with its number.
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

    /// One of its calls.
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

    /// Whether there is no answer: nobody saw one, or the call failed.
    pub fn is_unseen(&self) -> bool {
        matches!(self.call.ending, Ending::Unknown | Ending::Fail)
    }

    /// Whether it certainly had no effect.
    pub fn has_failed(&self) -> bool {
        self.call.ending == Ending::Fail
    }

    /// Whether it was answered `false`, which says that it was not done: nothing more is known than of a failure.
    fn is_declined(&self) -> bool {
        let answer = self.call.answer;
        let is_false = self.call.ending == Ending::Ok && answer.is_some() && *self.value(answer) == Value::Bool(false);
        // In a return that repeats what was asked for, it is just that.
        is_false && answer != self.call.argument && DONE.contains(&self.function())
    }

    /// The argument; `None`: nil, or none recorded.
    pub fn argument(&self) -> Option<ValueId> {
        self.some(self.call.argument)
    }

    /// That nothing is asked of what reads or removes all that the object holds. An argument that is not just its answer looks
    /// like a key that no other call is told to have.
    ///
    /// # Errors
    /// Where there is an argument, and no key.
    pub fn asks_nothing(&self) -> Result<(), Mismatch> {
        match self.argument() {
            Some(argument) if !self.call.key.is_some() && argument != self.call.answer => {
                let expected = format!("a key of every call, or no argument of {}", self.function());
                Err(Mismatch { everywhere: true, ..self.mismatch(&expected) })
            }
            _ => Ok(()),
        }
    }

    /// The argument that there must be.
    ///
    /// # Errors
    /// Where there is none.
    pub fn required(&self, what: &str) -> Result<ValueId, Mismatch> {
        self.argument().ok_or_else(|| self.mismatch(&format!("{what} to {}", self.function())))
    }

    /// The answer of a call that was answered; `Some(None)`: it was nil; `None`: none was recorded.
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

    /// The steps of a transaction: `[[:append x 1] [:r y nil]]`, each with its word, its key and its value.
    pub fn steps(&self, id: ValueId) -> Option<Vec<(&'l str, ValueId, ValueId)>> {
        let values = &self.log.calls.values;
        let step = |id: &ValueId| match *values.sequence(*id)? {
            [word, key, value] => Some((values.text(word)?, key, value)),
            [word, key] => Some((values.text(word)?, key, ValueId::NONE)),
            _ => None,
        };
        values.sequence(id)?.iter().map(step).collect()
    }

    /// `None` where a value is nil or not recorded.
    pub fn some(&self, id: ValueId) -> Option<ValueId> {
        (id.is_some() && !self.log.calls.values.is_nil(id)).then_some(id)
    }

    /// That the call is not what was expected.
    pub fn mismatch(&self, expected: &str) -> Mismatch {
        Mismatch::new(expected, self.log.calls.words(&self.call, self.function()))
    }

    /// That the model has no such function.
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
    /// Its answer; `None`: nobody saw one, or it failed.
    pub answer: Option<A>,
    /// Whether it certainly had no effect.
    pub failed: bool,
}

/// The calls of a log as operations of one model.
#[derive(Clone, Debug)]
pub struct TypedLog<S: Spec> {
    /// The model.
    pub spec: S,
    /// Its operations, in the order of the calls. Reads that nobody saw the answer of are left out.
    pub operations: Vec<Typed<S::Operation, S::Answer>>,
    /// Calls that are none of the model.
    pub mismatches: Vec<(u32, Mismatch)>,
    /// What an object of these calls may have held at its beginning.
    pub beginnings: Beginnings<S::Operation, S::Answer>,
}

/// Reads a log as one of many objects by key, each of this model.
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

/// An operation of a model on one of many objects.
type OnKey<S> = On<ValueId, <S as Spec>::Operation>;

/// The beginnings of the object that the first of these events is of.
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

/// Reads a log as one of this model, whose operations name their keys themselves.
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
            // What did not happen need not be understood.
            Err(_) if failed => {}
            Err(mismatch) => mismatches.push((at, mismatch)),
        }
    }
    (operations, mismatches)
}
