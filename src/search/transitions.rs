//! The transitions of a specification, computed on demand. Input: a [`Spec`] and the operations of a part. Output: numbers for
//! states and classes, and the state after each step. No step is computed twice, and equal states have equal numbers.

use super::budget::BudgetGuard;
use super::drop_cost::DropCostEstimator;
use super::history::{History, Outcome};
use super::incremental_table::{IncrementalTable, spread};
use super::partition::Part;
use super::verdict::Limit;
use crate::model::Spec;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::sync::atomic::AtomicU64;

/// Calls with equal operations and answers are of one class.
type Class<'h, S> = (&'h <S as Spec>::Operation, Option<&'h <S as Spec>::Answer>);

/// No state: the step is impossible.
const NONE: u32 = u32::MAX;

/// The steps of a specification that were computed so far.
pub(super) struct Transitions<'h, S: Spec> {
    spec: &'h S,
    classes: Vec<Class<'h, S>>,
    states: Vec<S::State>,
    /// Half of the hash of a state, and its number.
    by_content: IncrementalTable<(u32, u32)>,
    memo: IncrementalTable<Step>,
    held: usize,
    release: DropCostEstimator<'h, S::State>,
}

/// The state after an operation of a class in a state, or [`NONE`].
struct Step {
    state: u32,
    class: u32,
    next: u32,
}

impl Step {
    fn hash(state: u32, class: u32) -> u64 {
        FxBuildHasher.hash_one((state, class))
    }
}

impl<'h, S: Spec> Transitions<'h, S> {
    /// The number of the initial state.
    pub(super) const INITIAL: u32 = 0;

    /// For the operations of a part; also returns the class of each. `release`: nanoseconds that dropping all states will take.
    pub(super) fn of(
        spec: &'h S,
        history: &'h History<S::Operation, S::Answer>,
        part: &Part,
        release: Option<&'h AtomicU64>,
    ) -> (Self, Vec<u32>) {
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
            by_content: IncrementalTable::new(),
            memo: IncrementalTable::new(),
            held: 0,
            release: DropCostEstimator::new(release),
        };
        transitions.intern(spec.initial());
        (transitions, class_of)
    }

    /// The state after an operation of a class in a state, if it is possible there.
    ///
    /// # Errors
    /// The limit that is reached. A step of a user's specification may take long, so each is preceded by a check.
    pub(super) fn step(&mut self, state: u32, class: u32, guard: &BudgetGuard<'_>) -> Result<Option<u32>, Limit> {
        let hash = Step::hash(state, class);
        if let Some(known) = self.memo.find(hash, |step| step.state == state && step.class == class) {
            return Ok((known.next != NONE).then_some(known.next));
        }
        if let Some(limit) = guard.reached() {
            return Err(limit);
        }
        let (operation, answer) = self.classes[class as usize];
        let states = self.states.len();
        let next = self.spec.step(&self.states[state as usize], operation, answer).map(|next| self.intern(next));
        let count = self.states.len();
        if count > states && self.release.samples(count) && guard.reached().is_none() {
            // A clone might share memory with the state.
            let twin = self.spec.step(&self.states[state as usize], operation, answer);
            self.release.sample(twin, count);
        }
        let step = Step { state, class, next: next.unwrap_or(NONE) };
        self.memo.insert(hash, step, |step| Step::hash(step.state, step.class));
        Ok(next)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.held + self.memo.bytes() + self.by_content.bytes()
    }

    fn intern(&mut self, state: S::State) -> u32 {
        let (spec, states) = (self.spec, &self.states);
        let hash = match spec.fingerprint(&state) {
            Some(print) => FxBuildHasher.hash_one(print),
            None => FxBuildHasher.hash_one(&state),
        } as u32;
        let is_it = |&(other, at): &(u32, u32)| other == hash && states[at as usize] == state;
        if let Some(&(_, known)) = self.by_content.find(spread(hash), is_it) {
            return known;
        }
        let fresh = states.len() as u32;
        self.by_content.insert(spread(hash), (hash, fresh), |&(hash, _)| spread(hash));
        self.held += size_of::<S::State>() + spec.heap_bytes(&state);
        self.states.push(state);
        fresh
    }
}
