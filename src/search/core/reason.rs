//! The reason of a violation: why no order explains the calls of a core, in pieces that people can follow. Input: a core. Output:
//! which parts of its calls count, every order that explains as many of them as possible, and what other calls could contribute.
//! All lists are bounded; `complete` and `minimal` say whether a bound was reached.

use super::relaxed::{Budget, Decision, Place, Relaxation};
use super::world::{CoreModel, Required, Times};
use super::{STEPS, STEPS_EACH, Search, Task, in_world};
use crate::model::Spec;
use crate::search::budget::BudgetGuard;
use crate::search::history::{Outcome, SpecHistory};
use crate::search::verdict::Core;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Why no order explains the calls of a core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    /// What counts of each call, by invocation.
    pub claims: Vec<Claim>,
    /// Whether it is proved that every part of every claim counts.
    pub minimal: bool,
    /// Pairs of calls of which the first returned before the second was invoked. Only pairs that count and do not follow from
    /// others.
    pub before: Vec<(u32, u32)>,
    /// Every order that explains as many calls of the core as possible, and where it ends.
    pub alternatives: Vec<Alternative>,
    /// Whether `alternatives` has all of them.
    pub complete: bool,
    /// What calls outside the core could contribute.
    pub others: Missing,
}

/// Calls that are not in the core and could explain it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Not found within the budget.
    #[default]
    Open,
    /// These calls would explain it, but were invoked only after a call of the core had returned: each with the first such call.
    TooLate(Vec<(u32, u32)>),
    /// None: no order explains the core even if each other call could take effect at any time.
    NoHelp,
}

/// What counts of a call of a core: no order explains the core even if the rest were different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The call.
    pub call: u32,
    /// Its answer counts; of a failed call, that it failed. Otherwise only its effect counts.
    pub answer: bool,
    /// It counts that it took effect after its invocation.
    pub invoked: bool,
    /// It counts that it took effect by its return.
    pub returned: bool,
}

/// A possible order of calls of a core, up to where it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// Calls of the core, in order. Other calls may be between them.
    pub order: Vec<u32>,
    /// Calls of the core of which one had to be next: the others were invoked after one of them had returned. None of them can
    /// have got its answer, whatever other calls are in between.
    pub next: Vec<u32>,
}

/// Alternatives that are listed, at most.
const ALTERNATIVES: usize = 16;

/// Orders that are looked at for the alternatives, at most.
const ORDERS: usize = 2_000;

/// States that are possible at one place, at most.
const STATES: usize = 5_000;

/// Explains why no order explains the calls of a core. Takes about as long as [`super::minimal`].
pub fn reason<S: Spec>(spec: &S, history: &SpecHistory<S>, core: &Core, budget: &crate::search::Budget<'_>) -> Reason {
    let watch = BudgetGuard::begin(budget);
    let budget = Budget { steps: STEPS, each: STEPS_EACH, watch: &watch };
    let completed = |call: &&u32| matches!(history.calls()[**call as usize].outcome, Outcome::Completed { .. });
    let Some(&call) = core.calls.iter().find(completed) else { return Reason::default() };
    in_world(spec, history, call, Explain { core, budget }).unwrap_or_default()
}

/// The task of explaining a core.
struct Explain<'a, 'w, 'b> {
    core: &'a Core,
    budget: Budget<'w, 'b>,
}

impl<O, A> Task<O, A> for Explain<'_, '_, '_> {
    type Output = Reason;

    fn run<W: CoreModel>(mut self, mut search: Search<'_, O, A, W>) -> Option<Reason> {
        let mut known = vec![false; search.history.calls().len()];
        self.core.calls.iter().for_each(|&call| known[call as usize] = true);
        let mut what = Claims {
            times: search.times.clone(),
            claims: self
                .core
                .calls
                .iter()
                .map(|&call| Claim { call, answer: true, invoked: true, returned: true })
                .collect(),
        };
        let failed = |call: u32| matches!(search.history.calls()[call as usize].outcome, Outcome::Failed);
        for claim in what.claims.iter_mut().filter(|claim| failed(claim.call)) {
            (claim.invoked, claim.returned) = (false, false);
        }
        let is_failed: Vec<bool> = what.claims.iter().map(|claim| failed(claim.call)).collect();
        let others = what.others(&mut search, &known, &is_failed, &mut self.budget);
        let mut minimal = true;
        for at in (0..what.claims.len()).filter(|&at| !is_failed[at]) {
            // What is given up first is missed least: most answers of writes say nothing, and the past says less.
            for part in [Part::Answer, Part::Returned, Part::Invoked] {
                let kept = what.give_up(at, part);
                let required = what.required(&is_failed);
                let decided =
                    Relaxation::new(&mut search.world, &what.times, &known, required).decide(&mut self.budget);
                if decided != Decision::Impossible {
                    minimal &= decided != Decision::Open;
                    what.take_back(at, part, kept);
                }
            }
        }
        let required = what.required(&is_failed);
        let relaxed = Relaxation::new(&mut search.world, &what.times, &known, required);
        let (alternatives, complete) = Orders::of(relaxed, &mut self.budget);
        let before = what.before(search.times);
        Some(Reason { before, claims: what.claims, minimal, alternatives, complete, others })
    }
}

#[derive(Clone, Copy)]
enum Part {
    Answer,
    Invoked,
    Returned,
}

/// The remaining claims about the calls of a core, and their remaining times.
struct Claims {
    times: Times,
    claims: Vec<Claim>,
}

impl Claims {
    fn give_up(&mut self, at: usize, part: Part) -> i64 {
        let claim = &mut self.claims[at];
        let call = claim.call as usize;
        match part {
            Part::Answer => {
                claim.answer = false;
                0
            }
            Part::Invoked => {
                claim.invoked = false;
                std::mem::replace(&mut self.times.invoke[call], i64::MIN)
            }
            Part::Returned => {
                claim.returned = false;
                std::mem::replace(&mut self.times.returned[call], i64::MAX)
            }
        }
    }

    fn take_back(&mut self, at: usize, part: Part, kept: i64) {
        let claim = &mut self.claims[at];
        let call = claim.call as usize;
        match part {
            Part::Answer => claim.answer = true,
            Part::Invoked => (claim.invoked, self.times.invoke[call]) = (true, kept),
            Part::Returned => (claim.returned, self.times.returned[call]) = (true, kept),
        }
    }

    fn required(&self, is_failed: &[bool]) -> Vec<Required> {
        let happened = self.claims.iter().zip(is_failed).filter(|(_, failed)| !**failed);
        let mut required: Vec<Required> =
            happened.map(|(claim, _)| Required { call: claim.call, answered: claim.answer }).collect();
        required.sort_by_key(|required| (self.times.invoke[required.call as usize], required.call));
        required
    }

    /// The calls outside the core that would explain it if they could take effect at any time. Must run before any claim is given
    /// up: calls that explain less of the core may not explain all of it.
    fn others<O, A, W: CoreModel>(
        &self,
        search: &mut Search<'_, O, A, W>,
        known: &[bool],
        is_failed: &[bool],
        budget: &mut Budget<'_, '_>,
    ) -> Missing {
        let mut times = self.times.clone();
        let others = times.invoke.iter_mut().zip(known).filter(|(_, known)| !**known);
        others.for_each(|(invoke, _)| *invoke = i64::MIN);
        let required = self.required(is_failed);
        let order = match Relaxation::new(&mut search.world, &times, known, required).decide(budget) {
            Decision::Open => return Missing::Open,
            Decision::Impossible => return Missing::NoHelp,
            Decision::Explained(order) => order,
        };
        let mut late = Vec::new();
        // Of the calls of the core that come later in the order, the one that returned first.
        let mut first: Option<u32> = None;
        for placed in order.iter().rev() {
            let (call, returned) = (placed.call, &self.times.returned);
            if known[call as usize] {
                let sooner = |other: u32| returned[call as usize] < returned[other as usize];
                first = if first.is_none_or(sooner) { Some(call) } else { first };
            } else if let Some(first) =
                first.filter(|&first| returned[first as usize] < self.times.invoke[call as usize])
            {
                late.push((call, first));
            }
        }
        late.reverse();
        if late.is_empty() { Missing::Open } else { Missing::TooLate(late) }
    }

    /// The pairs that real time orders, without those that follow from two others.
    fn before(&self, times: &Times) -> Vec<(u32, u32)> {
        let before = |first: &Claim, second: &Claim| {
            let ends = times.returned[first.call as usize] < times.invoke[second.call as usize];
            first.returned && second.invoked && ends
        };
        let mut pairs = Vec::new();
        for first in &self.claims {
            for second in self.claims.iter().filter(|second| before(first, second)) {
                if !self.claims.iter().any(|between| before(first, between) && before(between, second)) {
                    pairs.push((first.call, second.call));
                }
            }
        }
        pairs
    }
}

/// A state that is possible at a place, and the uses of each group that lead to it.
type Possible = (u32, Box<[u8]>);

/// What is possible at a place. Of each state only the fewest uses: whatever is possible after more uses is possible after fewer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Reached(BTreeSet<Possible>);

impl Reached {
    /// Whether it was new.
    fn add(&mut self, state: u32, used: &[u8]) -> bool {
        let least = |fewer: &[u8], more: &[u8]| fewer.iter().zip(more).all(|(fewer, more)| fewer <= more);
        let begin: Possible = (state, Box::default());
        let known: Vec<Possible> = self.0.range(begin..).take_while(|known| known.0 == state).cloned().collect();
        if known.iter().any(|known| least(&known.1, used)) {
            return false;
        }
        for more in known.iter().filter(|known| least(used, &known.1)) {
            self.0.remove(more);
        }
        self.0.insert((state, used.into()))
    }
}

/// The search for the alternatives.
struct Orders<'a, 'o, W> {
    relaxed: &'o mut Relaxation<'a, W>,
    counting: bool,
    seen: FxHashSet<(u32, u128, Reached)>,
    order: Vec<u32>,
    found: Vec<Alternative>,
    complete: bool,
}

impl<W: CoreModel> Orders<'_, '_, W> {
    fn of(mut relaxed: Relaxation<'_, W>, budget: &mut Budget<'_, '_>) -> (Vec<Alternative>, bool) {
        // Counts uses only if the core can be explained without counting.
        let counting = relaxed.is_impossible_without_counting(budget) != Some(true);
        let none = vec![0; if counting { relaxed.optional.len() } else { 0 }].into_boxed_slice();
        let mut orders = Orders {
            relaxed: &mut relaxed,
            counting,
            seen: FxHashSet::default(),
            order: Vec::new(),
            found: Vec::new(),
            complete: true,
        };
        let mut begin = Reached::default();
        begin.add(0, &none);
        orders.extend(Place::default(), &begin, budget);
        (orders.found, orders.complete)
    }

    /// Continues from a place at which some states are possible. The depth is at most the number of required calls.
    fn extend(&mut self, place: Place, possible: &Reached, budget: &mut Budget<'_, '_>) {
        if self.found.len() >= ALTERNATIVES || self.seen.len() >= ORDERS || self.order.len() > 200 {
            self.complete = false;
            return;
        }
        let bound = self.relaxed.bound(&place);
        let Some(reached) = self.reach(possible, bound, budget) else {
            self.complete = false;
            return;
        };
        let next: Vec<usize> = self.relaxed.next(place, bound).collect();
        let mut stuck = true;
        for &at in &next {
            let required = self.relaxed.required[at];
            let mut after = Reached::default();
            for (state, used) in &reached.0 {
                if let Some(state) = self.relaxed.take(*state, Some(required), required.call) {
                    after.add(state, used);
                }
            }
            if after.0.is_empty() {
                continue;
            }
            stuck = false;
            let then = place.with(at);
            if self.seen.insert((then.first, then.after, after.clone())) {
                self.order.push(required.call);
                self.extend(then, &after, budget);
                self.order.pop();
            }
        }
        if stuck {
            let next = next.into_iter().map(|at| self.relaxed.required[at].call).collect();
            self.found.push(Alternative { order: self.order.clone(), next });
        }
    }

    /// The states that are possible after any of the optional calls. `None` if there are too many.
    fn reach(&mut self, possible: &Reached, bound: i64, budget: &mut Budget<'_, '_>) -> Option<Reached> {
        let mut reached = possible.clone();
        let mut open: Vec<Possible> = possible.0.iter().cloned().collect();
        while let Some((state, used)) = open.pop() {
            // It was replaced by one with fewer uses.
            if !reached.0.contains(&(state, used.clone())) {
                continue;
            }
            for group in 0..self.relaxed.optional.len() {
                let number = if self.counting { usize::from(used[group]) } else { 0 };
                let Some(call) = self.relaxed.available(group, number, bound) else { continue };
                if !budget.spend() || reached.0.len() > STATES {
                    return None;
                }
                let Some(after) = self.relaxed.take(state, None, call).filter(|after| *after != state) else {
                    continue;
                };
                let mut more = used.clone();
                if self.counting {
                    more[group] = more[group].checked_add(1)?;
                }
                if reached.add(after, &more) {
                    open.push((after, more));
                }
            }
        }
        Some(reached)
    }
}
