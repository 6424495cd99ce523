//! The core model: what the calls of a core do to states. Input: a specification and a history. Output: the state after each
//! call, with its answer or with any. A relaxation may merge states that no required call can distinguish; only
//! [`CoreModel::tell_all`] separates them again.

use crate::model::{Effect, Spec};
use crate::search::history::{Outcome, SpecHistory};
use rustc_hash::FxHashMap;

/// The times of all calls.
#[derive(Clone, Debug)]
pub(super) struct Times {
    /// By call: its invocation.
    pub(super) invoke: Vec<i64>,
    /// By call: its return; [`i64::MAX`] without one.
    pub(super) returned: Vec<i64>,
}

/// Calls with the same effect if their outcome is unknown, by invocation.
pub(super) type Group = Vec<u32>;

/// Calls of a group that are looked at, at most.
const ALIKE: usize = 64;

/// The latest of some calls that were invoked by a time, newest first.
pub(super) fn latest<'a>(
    calls: &'a [u32],
    times: &Times,
    by: i64,
    fits: impl Fn(u32) -> bool + 'a,
) -> impl Iterator<Item = u32> + 'a {
    let end = calls.partition_point(|&call| times.invoke[call as usize] <= by);
    calls[..end].iter().rev().copied().filter(move |&call| fits(call)).take(ALIKE)
}

/// What calls do to numbered states; 0 is the initial state.
pub(super) trait CoreModel {
    /// The state after a call: with its answer if `known`, else with any answer.
    fn step(&mut self, state: u32, call: u32, known: bool) -> Option<u32>;

    /// Allows states to be merged that no required call can distinguish, however the other calls are used. Returns those other
    /// calls in groups: of each group the earliest, as many as an explanation can need.
    fn relax(&mut self, required: &[Required], known: &[bool]) -> Vec<Group>;

    /// Calls that can replace a member of a group of the last [`CoreModel::relax`] and were invoked by a time, newest first. Not
    /// all of them.
    fn alike(&mut self, call: u32, known: &[bool], times: &Times, by: i64) -> Vec<u32>;

    /// Separates all states again.
    fn tell_all(&mut self);

    /// The state after a call that took effect with any answer.
    fn happen(&mut self, state: u32, call: u32) -> Option<u32> {
        self.step(state, call, false)
    }

    /// Whether the state after a call, with any answer, does not depend on the state before it.
    fn overwrites(&self, call: u32) -> bool;

    /// Whether the calls name all states.
    fn is_finite(&self) -> bool;

    /// Whether a call may change the state.
    fn changes(&self, call: u32) -> bool;

    /// Bytes that the states held so far take.
    fn bytes(&self) -> usize;
}

/// The core model of any specification, by its steps.
pub(super) struct Steps<'h, S: Spec> {
    spec: &'h S,
    history: &'h SpecHistory<S>,
    /// Calls with equal operations, by invocation.
    groups: Vec<Group>,
    /// By call: the number of its operation with its answer.
    class: Vec<u32>,
    /// By call: the number of its operation.
    kind: Vec<u32>,
    states: Vec<S::State>,
    numbers: FxHashMap<S::State, u32>,
    memo: FxHashMap<(u32, u32), Option<u32>>,
    bytes: usize,
}

impl<'h, S: Spec> Steps<'h, S> {
    /// `calls`: those that matter, by invocation.
    pub(super) fn new(spec: &'h S, history: &'h SpecHistory<S>, calls: &[u32]) -> Self {
        let all = history.calls();
        let (mut kind, mut class) = (vec![0; all.len()], vec![0; all.len()]);
        let mut groups: Vec<Group> = Vec::new();
        let mut kinds: FxHashMap<&S::Operation, u32> = FxHashMap::default();
        let mut classes: FxHashMap<(&S::Operation, &S::Answer), u32> = FxHashMap::default();
        for &at in calls {
            let call = &all[at as usize];
            let number = *kinds.entry(&call.operation).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() as u32 - 1
            });
            groups[number as usize].push(at);
            kind[at as usize] = number;
            if let Outcome::Completed { answer, .. } = &call.outcome {
                let fresh = classes.len() as u32;
                class[at as usize] = *classes.entry((&call.operation, answer)).or_insert(fresh);
            }
        }
        let (states, numbers) = (vec![spec.initial()], FxHashMap::from_iter([(spec.initial(), 0)]));
        Steps { spec, history, groups, class, kind, states, numbers, memo: FxHashMap::default(), bytes: 0 }
    }
}

impl<S: Spec> CoreModel for Steps<'_, S> {
    fn step(&mut self, state: u32, call: u32, known: bool) -> Option<u32> {
        let what = if known { self.class[call as usize] << 1 | 1 } else { self.kind[call as usize] << 1 };
        if let Some(&next) = self.memo.get(&(state, what)) {
            return next;
        }
        let asked = &self.history.calls()[call as usize];
        let answer = match &asked.outcome {
            Outcome::Completed { answer, .. } if known => Some(answer),
            _ => None,
        };
        let next = self.spec.step(&self.states[state as usize], &asked.operation, answer).map(|next| {
            let fresh = self.states.len() as u32;
            let number = *self.numbers.entry(next.clone()).or_insert(fresh);
            if number == fresh {
                self.bytes += 2 * (size_of::<S::State>() + self.spec.heap_bytes(&next));
                self.states.push(next);
            }
            number
        });
        self.memo.insert((state, what), next);
        next
    }

    fn relax(&mut self, _required: &[Required], known: &[bool]) -> Vec<Group> {
        let calls = self.history.calls();
        let counts = |group: &&Group| self.spec.effect(&calls[group[0] as usize].operation, None) != Effect::Read;
        let others = |group: &Group| group.iter().copied().filter(|&call| !known[call as usize]).collect();
        let groups = self.groups.iter().filter(counts).map(others);
        groups.filter(|group: &Group| !group.is_empty()).collect()
    }

    fn alike(&mut self, call: u32, known: &[bool], times: &Times, by: i64) -> Vec<u32> {
        let group = &self.groups[self.kind[call as usize] as usize];
        latest(group, times, by, |call| !known[call as usize]).collect()
    }

    fn tell_all(&mut self) {}

    fn overwrites(&self, call: u32) -> bool {
        self.spec.effect(&self.history.calls()[call as usize].operation, None) == Effect::Overwrite
    }

    fn is_finite(&self) -> bool {
        false
    }

    fn changes(&self, call: u32) -> bool {
        let call = &self.history.calls()[call as usize];
        let answer = match &call.outcome {
            Outcome::Completed { answer, .. } => Some(answer),
            _ => None,
        };
        self.spec.effect(&call.operation, answer) != Effect::Read
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A call that must have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Required {
    /// The call.
    pub(super) call: u32,
    /// Whether with the answer that it got.
    pub(super) answered: bool,
}
