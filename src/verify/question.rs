//! Whether any order explains some calls when nothing is known of the others: decided by trying.

use crate::model::Spec;
use crate::search::{Outcome, SpecHistory};
use std::collections::HashSet;

/// Bytes that the states of one question may hold.
const STATES: usize = 256 << 20;

/// So many optional operations are few.
const FEW: usize = 24;

/// Calls of which the outcome counts, and the others, which may have happened or not.
pub(super) struct Question<'a, S: Spec> {
    spec: &'a S,
    history: &'a SpecHistory<S>,
    /// Completed calls of which the outcome counts, by invocation.
    required: Vec<u32>,
    /// Calls that may happen from their invocation on: the same operation in one group, each by invocation.
    optional: Vec<Vec<u32>>,
}

/// What trying came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// No order explains them.
    Impossible,
    /// This one does.
    Explained(Vec<u32>),
    /// Too many orders.
    TooLarge,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Place<T> {
    done: Vec<u64>,
    used: Vec<u32>,
    state: T,
}

impl<'a, S: Spec> Question<'a, S> {
    /// `known[i]`: the outcome of call i counts.
    pub(super) fn new(spec: &'a S, history: &'a SpecHistory<S>, known: &[bool]) -> Self {
        let calls = history.calls();
        let mut order: Vec<u32> = (0..calls.len() as u32).collect();
        order.sort_by_key(|&at| (calls[at as usize].invoke, at));
        let mut question = Question { spec, history, required: Vec::new(), optional: Vec::new() };
        // A call invoked after every required one has returned stands behind all of them: no order needs it.
        let horizon = (0..calls.len()).filter(|&at| known[at]).filter_map(|at| question.returned(at as u32)).max();
        let mut groups = std::collections::HashMap::new();
        for at in order {
            let call = &calls[at as usize];
            match (&call.outcome, known[at as usize]) {
                (Outcome::Completed { .. }, true) => question.required.push(at),
                (Outcome::Failed, true) => {}
                _ if horizon.is_none_or(|end| end < call.invoke) => {}
                _ => {
                    let group = *groups.entry(&call.operation).or_insert(question.optional.len());
                    if group == question.optional.len() {
                        question.optional.push(Vec::new());
                    }
                    question.optional[group].push(at);
                }
            }
        }
        question
    }

    fn returned(&self, at: u32) -> Option<i64> {
        match self.history.calls()[at as usize].outcome {
            Outcome::Completed { returned, .. } => Some(returned),
            Outcome::Failed | Outcome::Unknown => None,
        }
    }

    /// Tries all orders, at most `steps` steps of the specification.
    ///
    /// Where that takes long or there are many optional operations, as if each optional operation could happen any number of times from its first invocation on:
    /// what is impossible even so is impossible, and there are far fewer places to go through.
    pub(super) fn decide(&self, steps: u64) -> Decision {
        if self.optional.len() <= FEW {
            match self.search(false, steps / 8) {
                Decision::TooLarge => {}
                decision => return decision,
            }
        }
        match self.search(true, steps / 4) {
            Decision::Impossible => Decision::Impossible,
            Decision::Explained(order) if self.is_possible(&order) => Decision::Explained(order),
            _ => self.search(false, steps),
        }
    }

    fn is_possible(&self, order: &[u32]) -> bool {
        let mut seen = HashSet::new();
        order.iter().all(|at| seen.insert(at))
    }

    /// Depth first. Of one group the earlier invoked goes first: where a later one does in some order, they can be exchanged.
    /// An optional call that changes nothing is left out: the order without it is one as well.
    fn search(&self, any_number: bool, steps: u64) -> Decision {
        let calls = self.history.calls();
        let mut left = steps;
        let mut held = 0;
        let start = Place {
            done: vec![0; self.required.len().div_ceil(64)],
            used: vec![0; if any_number { 0 } else { self.optional.len() }],
            state: self.spec.initial(),
        };
        let mut seen = HashSet::from([start.clone()]);
        let mut path: Vec<u32> = Vec::new();
        let mut stack = vec![(self.bound(&start.done), start, 0)];
        while let Some((bound, place, choice)) = stack.last_mut() {
            let Some(bound) = *bound else { return Decision::Explained(path) };
            let at = *choice;
            *choice += 1;
            let mut next = if let Some(&call) = self.required.get(at) {
                if place.done[at / 64] >> (at % 64) & 1 == 1 || calls[call as usize].invoke > bound {
                    continue;
                }
                let mut done = place.done.clone();
                done[at / 64] |= 1 << (at % 64);
                (call, Place { done, used: place.used.clone(), state: place.state.clone() })
            } else if let Some(group) = self.optional.get(at - self.required.len()) {
                let number = at - self.required.len();
                let used = if any_number { 0 } else { place.used[number] };
                let Some(&call) = group.get(used as usize) else { continue };
                if calls[call as usize].invoke > bound {
                    continue;
                }
                let mut next = place.clone();
                if !any_number {
                    next.used[number] += 1;
                }
                (call, next)
            } else {
                stack.pop();
                path.pop();
                continue;
            };
            let Some(fewer) = left.checked_sub(1) else { return Decision::TooLarge };
            left = fewer;
            let (call, is_required) = (&calls[next.0 as usize], at < self.required.len());
            let answer = match &call.outcome {
                Outcome::Completed { answer, .. } if is_required => Some(answer),
                _ => None,
            };
            let Some(state) = self.spec.step(&place.state, &call.operation, answer) else { continue };
            if !is_required && state == place.state {
                continue;
            }
            next.1.state = state;
            if seen.insert(next.1.clone()) {
                held += 2 * self.spec.heap_bytes(&next.1.state);
                if held > STATES {
                    return Decision::TooLarge;
                }
                path.push(next.0);
                stack.push((self.bound(&next.1.done), next.1, 0));
            }
        }
        Decision::Impossible
    }

    /// The earliest return of what is not done: who was invoked later has to wait. `None`: all is done.
    fn bound(&self, done: &[u64]) -> Option<i64> {
        let open = self.required.iter().enumerate().filter(|(at, _)| done[at / 64] >> (at % 64) & 1 == 0);
        open.filter_map(|(_, &call)| self.returned(call)).min()
    }
}
