//! Decides whether any order explains some calls if nothing is known of the others. Depth-first search over all orders with
//! memoized places, in the manner of Wing and Gong (JPDC 17, 1993) and Lowe (2017), but without the heuristics of `search`.

use crate::model::Spec;
use crate::search::{Claim, Outcome, SpecHistory};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// Bound in bytes on the memoized states of one question.
const STATES: usize = 256 << 20;

/// Steps of the first attempt.
const FIRST_STEPS: u64 = 2_000;

/// Calls with known outcomes, and the others, which may have happened or not.
pub(super) struct Question<'a, S: Spec> {
    spec: &'a S,
    history: &'a SpecHistory<S>,
    /// Completed calls, which must happen, by invocation.
    required: Vec<Required>,
    /// Crashed calls (unknown outcome), which may happen from their invocation on. Equal operations are one group, each by
    /// invocation.
    optional: Vec<Vec<u32>>,
}

/// The known part of a completed call.
#[derive(Clone, Copy)]
struct Required {
    call: u32,
    /// Whether its answer counts.
    answered: bool,
    /// Lower bound on its linearization point.
    invoke: i64,
    /// Upper bound on its linearization point.
    returned: i64,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// No order explains the calls.
    Impossible,
    /// This order does.
    Explained(Vec<u32>),
    /// There are too many orders.
    TooLarge,
}

/// A prefix of an order: completed calls in it, crashed calls in it, and the state after it.
#[derive(Clone)]
struct Place<T> {
    done: Vec<u64>,
    used: Used,
    state: T,
}

/// How many crashed calls of each group are used, by group, without groups of which none is. A log can have as many groups as
/// calls, and an order uses few of them.
#[derive(Clone, Default)]
struct Used(Vec<(u32, u32)>);

impl Used {
    fn of(&self, group: u32) -> u32 {
        self.0.binary_search_by_key(&group, |(group, _)| *group).map_or(0, |at| self.0[at].1)
    }

    fn add(&mut self, group: u32) {
        match self.0.binary_search_by_key(&group, |(group, _)| *group) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (group, 1)),
        }
    }

    /// Whether another one used no fewer of any group.
    fn is_within(&self, other: &Used) -> bool {
        self.0.len() <= other.0.len() && self.0.iter().all(|&(group, used)| used <= other.of(group))
    }
}

/// Visited places, with the crashed calls used. A place that used more of each group is dominated by one that used fewer.
struct Met<T>(HashMap<(Vec<u64>, T), Vec<Used>>);

impl<T: Clone + Eq + Hash> Met<T> {
    /// Whether a place is new, and the cost of the comparison in steps.
    fn insert(&mut self, place: &Place<T>) -> (bool, u64) {
        let met = self.0.entry((place.done.clone(), place.state.clone())).or_default();
        if met.iter().any(|fewer| fewer.is_within(&place.used)) {
            return (false, met.len() as u64 / 8);
        }
        met.push(place.used.clone());
        (true, met.len() as u64 / 8)
    }
}

impl<'a, S: Spec> Question<'a, S> {
    /// Claims name completed and failed calls, each once. Of every other call only its invocation counts, as a lower bound.
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
        // A call invoked after the return of every required one would follow all of them, so no order needs it.
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

    /// Tries all orders, with at most `steps` steps of the specification.
    ///
    /// A short attempt decides small questions. Then follows a relaxation in which each crashed call may happen any number of
    /// times after its group's first invocation. It has far fewer places, and what is impossible there is impossible.
    pub(super) fn decide(&self, steps: u64) -> Decision {
        let mut decision = self.search(false, steps.min(FIRST_STEPS));
        for (any_number, steps) in [(true, steps.min(10 * FIRST_STEPS)), (false, steps / 2), (true, steps / 2)] {
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

    /// Depth-first search. Within a group the earliest invoked call is used first, since equal calls can be exchanged. A crashed
    /// call that changes nothing is skipped, since the order without it is valid too.
    fn search(&self, any_number: bool, steps: u64) -> Decision {
        let calls = self.history.calls();
        let mut left = steps;
        let mut held = 0;
        let start = Place {
            done: vec![0; self.required.len().div_ceil(64)],
            used: Used::default(),
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
                let number = (at - self.required.len()) as u32;
                let used = if any_number { 0 } else { place.used.of(number) };
                let Some(&call) = group.get(used as usize) else { continue };
                if calls[call as usize].invoke > bound {
                    continue;
                }
                let mut next = place.clone();
                if !any_number {
                    next.used.add(number);
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
                held += 2 * (self.spec.heap_bytes(&next.1.state) + size_of_val(&*next.1.used.0));
                if held > STATES {
                    return Decision::TooLarge;
                }
                path.push(next.0);
                stack.push((self.bound(&next.1.done), next.1, 0));
            }
        }
        Decision::Impossible
    }

    /// The earliest return of a call that is not in the order yet; `None` if all are. A call invoked later must wait.
    fn bound(&self, done: &[u64]) -> Option<i64> {
        let open = self.required.iter().enumerate().filter(|(at, _)| done[at / 64] >> (at % 64) & 1 == 0);
        open.map(|(_, required)| required.returned).min()
    }
}
