//! Whether any order explains some calls when nothing is known of the others: decided by trying.

use crate::model::Spec;
use crate::search::{Claim, Outcome, SpecHistory};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Bytes that the states of one question may hold.
const STATES: usize = 256 << 20;

/// Steps of the first try.
const SHORT: u64 = 2_000;

/// Calls of which the outcome counts, and the others, which may have happened or not.
pub(super) struct Question<'a, S: Spec> {
    spec: &'a S,
    history: &'a SpecHistory<S>,
    /// Completed calls that must have happened, by invocation.
    required: Vec<Required>,
    /// Calls that may happen from their invocation on: the same operation in one group, each by invocation.
    optional: Vec<Vec<u32>>,
}

/// What is known of a completed call.
#[derive(Clone, Copy)]
struct Required {
    call: u32,
    /// Whether its answer counts.
    answered: bool,
    /// From when on it can have happened.
    invoke: i64,
    /// By when it had.
    returned: i64,
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

/// How far an order has come.
#[derive(Clone)]
struct Place<T> {
    done: Vec<u64>,
    used: Vec<u32>,
    state: T,
}

/// The places met, with how many of each group had been used: whoever has used more can do no more from there.
struct Met<T>(HashMap<(Vec<u64>, T), Vec<Vec<u32>>>);

impl<T: Clone + Eq + Hash> Met<T> {
    /// Whether a place is new; and the steps that finding it out is worth.
    fn insert(&mut self, place: &Place<T>) -> (bool, u64) {
        let met = self.0.entry((place.done.clone(), place.state.clone())).or_default();
        if met.iter().any(|fewer| fewer.iter().zip(&place.used).all(|(fewer, used)| fewer <= used)) {
            return (false, met.len() as u64 / 8);
        }
        met.push(place.used.clone());
        (true, met.len() as u64 / 8)
    }
}

impl<'a, S: Spec> Question<'a, S> {
    /// Of every call that no claim names, nothing counts but that it was not before its invocation. Claims name completed and
    /// failed calls, each once.
    pub(super) fn new(spec: &'a S, history: &'a SpecHistory<S>, claims: &[Claim]) -> Self {
        let calls = history.calls();
        let mut question = Question { spec, history, required: Vec::new(), optional: Vec::new() };
        let mut known = vec![false; calls.len()];
        for claim in claims {
            known[claim.call as usize] = true;
            let call = &calls[claim.call as usize];
            if let Outcome::Completed { returned, .. } = call.outcome {
                question.required.push(Required {
                    call: claim.call,
                    answered: claim.answer,
                    invoke: if claim.invoked { call.invoke } else { i64::MIN },
                    returned: if claim.returned { returned } else { i64::MAX },
                });
            }
        }
        question.required.sort_by_key(|required| (required.invoke, required.call));
        // A call invoked after every required one has returned stands behind all of them: no order needs it.
        let horizon = question.required.iter().map(|required| required.returned).max();
        let mut others: Vec<u32> = (0..calls.len() as u32).filter(|&at| !known[at as usize]).collect();
        others.retain(|&at| horizon.is_some_and(|end| calls[at as usize].invoke <= end));
        others.sort_by_key(|&at| (calls[at as usize].invoke, at));
        let mut groups = HashMap::new();
        for at in others {
            let group = *groups.entry(&calls[at as usize].operation).or_insert(question.optional.len());
            if group == question.optional.len() {
                question.optional.push(Vec::new());
            }
            question.optional[group].push(at);
        }
        question
    }

    /// Tries all orders, at most `steps` steps of the specification.
    ///
    /// Where there are few, that is soon done. Else for a while as if each optional operation could happen any number of times
    /// from its first invocation on: what is impossible even so is impossible, and there are far fewer places to go through.
    pub(super) fn decide(&self, steps: u64) -> Decision {
        let mut decision = self.search(false, steps.min(SHORT));
        for (any_number, steps) in [(true, steps.min(10 * SHORT)), (false, steps / 2), (true, steps / 2)] {
            if decision != Decision::TooLarge {
                break;
            }
            decision = if any_number { self.any_number(steps) } else { self.search(false, steps) };
        }
        decision
    }

    fn any_number(&self, steps: u64) -> Decision {
        match self.search(true, steps) {
            Decision::Explained(order) if !self.is_possible(&order) => Decision::TooLarge,
            decision => decision,
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
        let mut met = Met(HashMap::new());
        met.insert(&start);
        let mut path: Vec<u32> = Vec::new();
        let mut stack = vec![(self.bound(&start.done), start, 0)];
        while let Some((bound, place, choice)) = stack.last_mut() {
            let Some(bound) = *bound else { return Decision::Explained(path) };
            let at = *choice;
            *choice += 1;
            let mut next = if let Some(required) = self.required.get(at) {
                if place.done[at / 64] >> (at % 64) & 1 == 1 || required.invoke > bound {
                    continue;
                }
                let mut done = place.done.clone();
                done[at / 64] |= 1 << (at % 64);
                (required.call, Place { done, used: place.used.clone(), state: place.state.clone() })
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
            let (call, required) = (&calls[next.0 as usize], self.required.get(at));
            let answer = match &call.outcome {
                Outcome::Completed { answer, .. } if required.is_some_and(|required| required.answered) => Some(answer),
                _ => None,
            };
            let Some(state) = self.spec.step(&place.state, &call.operation, answer) else { continue };
            if required.is_none() && state == place.state {
                continue;
            }
            next.1.state = state;
            let (new, cost) = met.insert(&next.1);
            left = left.saturating_sub(cost);
            if new {
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
        open.map(|(_, required)| required.returned).min()
    }
}
