//! The subject of drawn histories: a specification with few operations and answers.
//!
//! All subjects share one type, so that the search is compiled once for this test.

use retrograde::model::{Effect, RegisterForm, Spec, Value};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An operation or an answer of a subject.
#[derive(Clone, Copy)]
pub struct Word {
    index: usize,
    shown: &'static str,
}

impl Word {
    fn all(things: &[impl fmt::Debug]) -> Vec<Word> {
        let word = |(index, thing)| Word { index, shown: format!("{thing:?}").leak() };
        things.iter().enumerate().map(word).collect()
    }
}

impl PartialEq for Word {
    fn eq(&self, other: &Word) -> bool {
        self.shown == other.shown
    }
}

impl Eq for Word {}

impl Hash for Word {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.shown.hash(hasher);
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown)
    }
}

/// A state of some specification.
#[derive(Clone)]
pub struct State(Arc<dyn AnyState>);

trait AnyState: Any + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
    fn hash(&self, hasher: &mut dyn Hasher);
    fn any(&self) -> &dyn Any;
}

impl<T: Eq + Hash + Send + Sync + 'static> AnyState for T {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }

    fn hash(&self, mut hasher: &mut dyn Hasher) {
        Hash::hash(self, &mut hasher);
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

impl PartialEq for State {
    fn eq(&self, other: &State) -> bool {
        self.0.equals(other.0.any())
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash(hasher);
    }
}

/// A specification with its operations and answers.
pub struct Subject {
    /// Name for messages.
    pub name: &'static str,
    /// Repeated operations are drawn more often.
    pub operations: Vec<Word>,
    /// Possible answers; the specification decides which ones an operation has.
    pub answers: Vec<Word>,
    model: Box<dyn Model>,
}

impl Subject {
    /// A specification with its operations and answers.
    pub fn new<S>(name: &'static str, spec: S, operations: Vec<S::Operation>, answers: Vec<S::Answer>) -> Subject
    where
        S: Spec + Send + 'static,
        S::State: 'static,
        S::Operation: 'static,
        S::Answer: 'static,
    {
        let words = (Word::all(&operations), Word::all(&answers));
        Subject { name, operations: words.0, answers: words.1, model: Box::new(World { spec, operations, answers }) }
    }
}

struct World<S: Spec> {
    spec: S,
    operations: Vec<S::Operation>,
    answers: Vec<S::Answer>,
}

trait Model: Send + Sync {
    fn initial(&self) -> State;
    fn step(&self, state: &State, operation: usize, answer: Option<usize>) -> Option<State>;
    fn object_of(&self, operation: usize) -> u64;
    fn keys(&self, operation: usize) -> Option<Vec<u64>>;
    fn effect(&self, operation: usize, answer: Option<usize>) -> Effect;
    fn form(&self, operation: usize, answer: Option<usize>) -> Option<RegisterForm<'_>>;
    fn content<'a>(&'a self, register: Value<'a>) -> Value<'a>;
    fn fingerprint(&self, state: &State) -> Option<u64>;
    fn heap_bytes(&self, state: &State) -> usize;
}

impl<S> World<S>
where
    S: Spec,
    S::State: 'static,
{
    fn state<'a>(&self, state: &'a State) -> &'a S::State {
        state.0.any().downcast_ref().expect("states are those of this specification")
    }
}

impl<S> Model for World<S>
where
    S: Spec + Send,
    S::State: 'static,
{
    fn initial(&self) -> State {
        State(Arc::new(self.spec.initial()))
    }

    fn step(&self, state: &State, operation: usize, answer: Option<usize>) -> Option<State> {
        let answer = answer.map(|answer| &self.answers[answer]);
        let next = self.spec.step(self.state(state), &self.operations[operation], answer)?;
        Some(State(Arc::new(next)))
    }

    fn object_of(&self, operation: usize) -> u64 {
        self.spec.object_of(&self.operations[operation])
    }

    fn keys(&self, operation: usize) -> Option<Vec<u64>> {
        self.spec.keys(&self.operations[operation])
    }

    fn effect(&self, operation: usize, answer: Option<usize>) -> Effect {
        self.spec.effect(&self.operations[operation], answer.map(|answer| &self.answers[answer]))
    }

    fn form(&self, operation: usize, answer: Option<usize>) -> Option<RegisterForm<'_>> {
        self.spec.form(&self.operations[operation], answer.map(|answer| &self.answers[answer]))
    }

    fn content<'a>(&'a self, register: Value<'a>) -> Value<'a> {
        self.spec.content(register)
    }

    fn fingerprint(&self, state: &State) -> Option<u64> {
        self.spec.fingerprint(self.state(state))
    }

    fn heap_bytes(&self, state: &State) -> usize {
        self.spec.heap_bytes(self.state(state))
    }
}

impl Spec for Subject {
    type State = State;
    type Operation = Word;
    type Answer = Word;

    fn initial(&self) -> State {
        self.model.initial()
    }

    fn step(&self, state: &State, operation: &Word, answer: Option<&Word>) -> Option<State> {
        self.model.step(state, operation.index, answer.map(|answer| answer.index))
    }

    fn object_of(&self, operation: &Word) -> u64 {
        self.model.object_of(operation.index)
    }

    fn keys(&self, operation: &Word) -> Option<Vec<u64>> {
        self.model.keys(operation.index)
    }

    fn effect(&self, operation: &Word, answer: Option<&Word>) -> Effect {
        self.model.effect(operation.index, answer.map(|answer| answer.index))
    }

    fn form<'a>(&'a self, operation: &'a Word, answer: Option<&'a Word>) -> Option<RegisterForm<'a>> {
        self.model.form(operation.index, answer.map(|answer| answer.index))
    }

    fn content<'a>(&'a self, register: Value<'a>) -> Value<'a> {
        self.model.content(register)
    }

    fn fingerprint(&self, state: &State) -> Option<u64> {
        self.model.fingerprint(state)
    }

    fn heap_bytes(&self, state: &State) -> usize {
        self.model.heap_bytes(state)
    }
}
