//! What calls do to states, for questions about some of them.

use crate::model::{Effect, Spec};
use crate::search::history::{Outcome, SpecHistory};
use rustc_hash::FxHashMap;

/// When calls began and ended.
#[derive(Clone, Debug)]
pub(super) struct Times {
    /// Invocation of each.
    pub(super) invoke: Vec<i64>,
    /// Return of each; [`i64::MAX`] where it has none.
    pub(super) returned: Vec<i64>,
}

/// Calls that do the same if nothing is known of their outcome, by invocation.
pub(super) type Group = Vec<u32>;

/// At most so many of the calls that could stand for one another are looked at.
const ALIKE: usize = 64;

/// The latest of some calls that were invoked by a time, the last first.
pub(super) fn latest<'a>(
    calls: &'a [u32],
    times: &Times,
    by: i64,
    fits: impl Fn(u32) -> bool + 'a,
) -> impl Iterator<Item = u32> + 'a {
    let end = calls.partition_point(|&call| times.invoke[call as usize] <= by);
    calls[..end].iter().rev().copied().filter(move |&call| fits(call)).take(ALIKE)
}

/// States as numbers; 0 is the initial one.
pub(super) trait CoreModel {
    /// The state after a call; with its answer if that is `known`, else whatever the answer would have been.
    fn step(&mut self, state: u32, call: u32, known: bool) -> Option<u32>;

    /// From now on states may be taken for equal that no call tells apart whose outcome counts, however the others are used.
    /// Those others, in groups; as many of each as an explanation can need, the earliest.
    fn relax(&mut self, required: &[Required], known: &[bool]) -> Vec<Group>;

    /// Calls that can stand for a member of a group of the last [`World::relax`], among those invoked by a time; the latest
    /// first, not all of them.
    fn alike(&mut self, call: u32, known: &[bool], times: &Times, by: i64) -> Vec<u32>;

    /// From now on every state is told from every other.
    fn tell_all(&mut self);

    /// The state after a call that happened whatever its answer was.
    fn happen(&mut self, state: u32, call: u32) -> Option<u32> {
        self.step(state, call, false)
    }

    /// Whether the state after a call, whatever its answer, is the same after every state.
    fn overwrites(&self, call: u32) -> bool;

    /// Whether there are no more states than the calls name.
    fn is_finite(&self) -> bool;

    /// Whether a call may change the state.
    fn changes(&self, call: u32) -> bool;

    /// Bytes that the states met so far hold.
    fn bytes(&self) -> usize;
}

/// A specification, step by step.
pub(super) struct Steps<'h, S: Spec> {
    spec: &'h S,
    history: &'h SpecHistory<S>,
    /// Calls that do the same whatever the answer, by invocation.
    groups: Vec<Group>,
    /// Operations with equal answers.
    class: Vec<u32>,
    /// Operations.
    kind: Vec<u32>,
    states: Vec<S::State>,
    numbers: FxHashMap<S::State, u32>,
    memo: FxHashMap<(u32, u32), Option<u32>>,
    bytes: usize,
}

impl<'h, S: Spec> Steps<'h, S> {
    /// `calls` are those that matter, by invocation.
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

/// A call that must have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Required {
    /// The call.
    pub(super) call: u32,
    /// Whether with the answer that it got.
    pub(super) answered: bool,
}
