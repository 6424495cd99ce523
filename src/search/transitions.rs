//! A specification as a table: states and operations are numbers, and no step is taken twice.

use super::budget::Watch;
use super::history::{History, Outcome};
use super::partition::Part;
use super::verdict::Limit;
use crate::model::Spec;
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// Operations with equal answers are of one class.
type Class<'h, S> = (&'h <S as Spec>::Operation, Option<&'h <S as Spec>::Answer>);

/// A state that is not there.
const NONE: u32 = u32::MAX;

/// The steps of a specification that were needed so far.
pub(super) struct Transitions<'h, S: Spec> {
    spec: &'h S,
    classes: Vec<Class<'h, S>>,
    states: Vec<S::State>,
    by_content: HashTable<u32>,
    memo: FxHashMap<(u32, u32), u32>,
    held: usize,
}

impl<'h, S: Spec> Transitions<'h, S> {
    /// The number of the initial state.
    pub(super) const INITIAL: u32 = 0;

    /// For the operations of a part; with the class of each.
    pub(super) fn of(spec: &'h S, history: &'h History<S::Operation, S::Answer>, part: &Part) -> (Self, Vec<u32>) {
        let mut classes: Vec<Class<'h, S>> = Vec::new();
        let mut index: FxHashMap<Class<'h, S>, u32> = FxHashMap::default();
        let class_of = part
            .calls
            .iter()
            .map(|&call| {
                let call = &history.calls()[call as usize];
                let answer = match &call.outcome {
                    Outcome::Completed { answer, .. } => Some(answer),
                    Outcome::Failed | Outcome::Unknown => None,
                };
                *index.entry((&call.operation, answer)).or_insert_with(|| {
                    classes.push((&call.operation, answer));
                    classes.len() as u32 - 1
                })
            })
            .collect();
        let mut transitions = Transitions {
            spec,
            classes,
            states: Vec::new(),
            by_content: HashTable::new(),
            memo: FxHashMap::default(),
            held: 0,
        };
        transitions.intern(spec.initial());
        (transitions, class_of)
    }

    /// The state after an operation of a class in a state, if it can happen there.
    ///
    /// # Errors
    /// At a deadline: a step of the specification may take long, so the clock is looked at before each.
    pub(super) fn step(&mut self, state: u32, class: u32, watch: &Watch<'_>) -> Result<Option<u32>, Limit> {
        if let Some(&next) = self.memo.get(&(state, class)) {
            return Ok((next != NONE).then_some(next));
        }
        if let Some(limit) = watch.reached() {
            return Err(limit);
        }
        let (operation, answer) = self.classes[class as usize];
        let next = self.spec.step(&self.states[state as usize], operation, answer).map(|next| self.intern(next));
        self.memo.insert((state, class), next.unwrap_or(NONE));
        Ok(next)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.held + self.memo.capacity() * size_of::<(u32, u32, u32)>() + self.by_content.capacity() * size_of::<u32>()
    }

    fn intern(&mut self, state: S::State) -> u32 {
        let (spec, states) = (self.spec, &self.states);
        let hash = |state: &S::State| match spec.fingerprint(state) {
            Some(print) => FxBuildHasher.hash_one(print),
            None => FxBuildHasher.hash_one(state),
        };
        let found =
            self.by_content.entry(hash(&state), |&at| states[at as usize] == state, |&at| hash(&states[at as usize]));
        let fresh = match found {
            hashbrown::hash_table::Entry::Occupied(known) => return *known.get(),
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                let fresh = states.len() as u32;
                vacant.insert(fresh);
                fresh
            }
        };
        self.held += size_of::<S::State>() + spec.heap_bytes(&state);
        self.states.push(state);
        fresh
    }
}
