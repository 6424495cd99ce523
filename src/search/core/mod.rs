//! The calls that a violation is about.
//!
//! **Theorem.** Let K be calls of a history H that are completed or failed. Take the outcome of every other call of H for
//! unknown: it may have happened at any time from its invocation on, with whatever answer, or never. If no order explains the
//! history H|K so made, none explains H.
//!
//! *Proof.* An order that explains H contains every completed call once, within its interval and with its answer, and no
//! failed one. H|K asks no more of the calls in K, and less of the others: the same order explains it. ∎
//!
//! By the same argument what is impossible for K is impossible for every set that contains K. So K is minimal when no single
//! call can be taken from it, and a call that was needed beside more calls is needed beside fewer. [`minimal`] proves both: no
//! order explains H|K, and for every call of K an order was found without it. Simply leaving calls out would prove nothing: a
//! read is impossible where its write was left out.
//!
//! K grows from the call at whose return the search had to give up. An order that explains H|K contradicts H somewhere: it
//! uses a call that had returned, or that failed, or with another answer than it got; or it has no place for a completed
//! call. What it contradicts is added, until nothing explains H|K. Then calls are taken away again, as many as possible.
//!
//! All this counts its steps, and so comes to the same result on every machine, unless a deadline ends it first.

mod reason;
mod registers;
mod relaxed;
mod world;

pub use reason::{Alternative, Claim, Missing, Reason, reason};

use super::budget::BudgetGuard;
use super::history::{History, Outcome, SpecHistory};
use super::verdict::Core;
use crate::model::Spec;
use registers::Registers;
use relaxed::{Budget, Decision, Placed, Relaxation};
use rustc_hash::{FxHashMap, FxHashSet};
use world::{CoreModel, Required, Steps, Times};

/// Steps that one question may take.
const STEPS_EACH: u64 = 100_000;

/// Steps that one core may take.
const STEPS: u64 = 4_000_000;

/// Completed calls that are tried one by one against an order before they are tried together.
const ALONE: usize = 20_000;

/// The core as the search leaves it: the completed ones among the calls of one part of the object that were invoked before a
/// return past which no order gets, and those that failed until then.
pub(super) fn initial_core<O, A>(history: &History<O, A>, part: &[u32], longest_prefix: Vec<u32>) -> Core {
    let all = history.calls();
    let is_completed = |call: &u32| matches!(all[*call as usize].outcome, Outcome::Completed { .. });
    let mut calls: Vec<u32> = part.iter().copied().filter(is_completed).collect();
    let end = part.iter().map(|&call| returned(&all[call as usize].outcome)).max().unwrap_or(i64::MAX);
    // One that failed could otherwise have been of help, to whichever part it belongs.
    let failed = (0..).zip(all).filter(|(_, call)| matches!(call.outcome, Outcome::Failed) && call.invoke <= end);
    calls.extend(failed.map(|(at, _)| at));
    calls.sort_by_key(|&call| (all[call as usize].invoke, call));
    Core { calls, minimal: false, longest_prefix }
}

/// A core from which no call can be taken, out of one that [`super::check`] found; where that takes too long, that one.
///
/// Takes a millisecond where the core is small, and at most a few seconds.
pub fn minimal<S: Spec>(spec: &S, history: &SpecHistory<S>, found: &Core, budget: &super::Budget<'_>) -> Core {
    // What the longest order has no place for, though it had to come next.
    let placed: FxHashSet<u32> = found.longest_prefix.iter().copied().collect();
    let end = |call: &u32| returned(&history.calls()[*call as usize].outcome);
    let missing = found.calls.iter().copied().filter(|call| end(call) < i64::MAX && !placed.contains(call));
    let Some(last) = missing.min_by_key(|call| (end(call), *call)) else { return found.clone() };
    let watch = BudgetGuard::begin(budget);
    let budget = Budget { steps: STEPS, each: STEPS_EACH, watch: &watch };
    let Some((mut core, minimal)) = in_world(spec, history, last, Minimise { last, budget }) else {
        return found.clone();
    };
    core.sort_by_key(|&call| (history.calls()[call as usize].invoke, call));
    Core { calls: core, minimal, longest_prefix: found.longest_prefix.clone() }
}

/// Something to do with a core, in whatever world its calls belong to.
trait Task<O, A> {
    type Output;

    /// `None`: the budget was spent.
    fn run<W: CoreModel>(self, search: Search<'_, O, A, W>) -> Option<Self::Output>;
}

/// Does it in the world that a call belongs to.
fn in_world<S: Spec, T: Task<S::Operation, S::Answer>>(
    spec: &S,
    history: &SpecHistory<S>,
    call: u32,
    task: T,
) -> Option<T::Output> {
    let calls = history.calls();
    let times = Times {
        invoke: calls.iter().map(|call| call.invoke).collect(),
        returned: calls.iter().map(|call| returned(&call.outcome)).collect(),
    };
    match scope(spec, history, call, &times) {
        Scope::Register(scope) => {
            let world = Registers::new(spec, history, &scope)?;
            task.run(Search { world, history, times: &times, scope: &scope })
        }
        Scope::Keys(scope) => {
            let world = Steps::new(spec, history, &scope);
            task.run(Search { world, history, times: &times, scope: &scope })
        }
    }
}

/// The search for a minimal core.
struct Minimise<'w, 'b> {
    last: u32,
    budget: Budget<'w, 'b>,
}

impl<O: PartialEq, A> Task<O, A> for Minimise<'_, '_> {
    type Output = (Vec<u32>, bool);

    fn run<W: CoreModel>(mut self, mut search: Search<'_, O, A, W>) -> Option<(Vec<u32>, bool)> {
        let core = search.grow(self.last, &mut self.budget)?;
        Some(search.shrink(core, self.last, &mut self.budget))
    }
}

fn returned<A>(outcome: &Outcome<A>) -> i64 {
    match outcome {
        Outcome::Completed { returned, .. } => *returned,
        Outcome::Failed | Outcome::Unknown => i64::MAX,
    }
}

/// The calls that can have to do with one, by invocation.
enum Scope {
    /// All on one register.
    Register(Vec<u32>),
    /// All that are connected by keys.
    Keys(Vec<u32>),
}

/// Also failed calls, which connect parts that have nothing to do with one another as long as they are known to have failed.
fn scope<S: Spec>(spec: &S, history: &SpecHistory<S>, one: u32, times: &Times) -> Scope {
    let calls = history.calls();
    let mut all: Vec<u32> = (0..calls.len() as u32).collect();
    all.sort_by_key(|&call| (times.invoke[call as usize], call));
    let form = |call: u32| {
        let call = &calls[call as usize];
        let relaxed = spec.form(&call.operation, None)?;
        match &call.outcome {
            Outcome::Completed { answer, .. } => spec.form(&call.operation, Some(answer)),
            _ => Some(relaxed),
        }
    };
    if let Some(register) = form(one).map(|form| form.register)
        && all.iter().all(|&call| form(call).is_some())
    {
        all.retain(|&call| form(call).is_some_and(|form| form.register == register));
        return Scope::Register(all);
    }
    let mut by_key: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
    let mut keys = Vec::with_capacity(calls.len());
    for (at, call) in (0..).zip(calls) {
        let Some(of_call) = spec.keys(&call.operation) else { return Scope::Keys(all) };
        of_call.iter().for_each(|&key| by_key.entry(key).or_default().push(at));
        keys.push(of_call);
    }
    let mut inside = FxHashSet::from_iter([one]);
    let mut open = vec![one];
    while let Some(call) = open.pop() {
        for key in &keys[call as usize] {
            open.extend(by_key.remove(key).into_iter().flatten().filter(|&other| inside.insert(other)));
        }
    }
    all.retain(|call| inside.contains(call));
    Scope::Keys(all)
}

/// The calls that can have to do with a core, and what they do.
struct Search<'a, O, A, W> {
    world: W,
    history: &'a History<O, A>,
    times: &'a Times,
    /// The calls that can have to do with it, by invocation.
    scope: &'a [u32],
}

impl<O: PartialEq, A, W: CoreModel> Search<'_, O, A, W> {
    fn decide(&mut self, core: &[u32], budget: &mut Budget<'_, '_>) -> Decision {
        let mut known = vec![false; self.history.calls().len()];
        core.iter().for_each(|&call| known[call as usize] = true);
        let completed = core.iter().copied().filter(|&call| self.is_completed(call));
        let mut required: Vec<Required> = completed.map(|call| Required { call, answered: true }).collect();
        required.sort_by_key(|required| (self.times.invoke[required.call as usize], required.call));
        Relaxation::new(&mut self.world, self.times, &known, required).decide(budget)
    }

    fn is_completed(&self, call: u32) -> bool {
        matches!(self.history.calls()[call as usize].outcome, Outcome::Completed { .. })
    }

    /// Calls that no order explains. `None`: the budget was spent.
    fn grow(&mut self, last: u32, budget: &mut Budget<'_, '_>) -> Option<Vec<u32>> {
        let mut core = vec![last];
        let end = self.times.returned[last as usize];
        // Before the end, the nearest to it first, and those that change something before those that only look.
        let mut others: Vec<u32> = self.scope.iter().copied().filter(|&call| self.is_completed(call)).collect();
        others.sort_by_key(|&call| {
            let returned = self.times.returned[call as usize];
            (returned > end, !self.world.changes(call), std::cmp::Reverse(returned), call)
        });
        loop {
            let order = match self.decide(&core, budget) {
                Decision::Impossible => return Some(core),
                Decision::Open => return None,
                Decision::Explained(order) => order,
            };
            self.world.tell_all();
            let mut against = self.misused(&order, &core);
            if against.is_empty() {
                against.push(self.without_place(order, &others, budget)?);
            }
            core.extend(against);
        }
    }

    /// Calls that an order uses although they had returned or failed, or otherwise than they were answered; with those that
    /// could stand for them and would be used no better.
    fn misused(&mut self, order: &[Placed], core: &[u32]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut state = 0;
        let mut latest = i64::MIN;
        for placed in order {
            let (call, at) = (placed.call, placed.call as usize);
            let next = self.world.step(state, call, placed.known);
            if !placed.known && self.is_contradicted(call, state, latest) {
                found.push(call);
                // Whoever does the same and had returned as early would only be the next one to be used like this.
                let alike = self.scope.iter().copied().filter(|&other| {
                    other != call
                        && self.history.calls()[other as usize].operation == self.history.calls()[at].operation
                });
                let alike: Vec<u32> = alike.filter(|other| !core.contains(other)).collect();
                found.extend(alike.into_iter().filter(|&other| self.is_contradicted(other, state, latest)));
            }
            state = next.unwrap_or(state);
            latest = latest.max(self.times.invoke[at]);
        }
        found.sort_unstable();
        found.dedup();
        found.retain(|call| !order.contains(&Placed { call: *call, known: true }));
        found
    }

    /// Whether what is known of a call forbids it to happen in a state, after a call that was invoked at `latest`.
    fn is_contradicted(&mut self, call: u32, state: u32, latest: i64) -> bool {
        match self.history.calls()[call as usize].outcome {
            Outcome::Unknown => false,
            Outcome::Failed => true,
            Outcome::Completed { returned, .. } => returned < latest || self.world.step(state, call, true).is_none(),
        }
    }

    /// A completed call that has no place in an order which explains others: in the order as it is, or, failing that, after
    /// as many as possible of the rest were given a place in it. There is one, since no order explains all.
    fn without_place(&mut self, order: Vec<Placed>, others: &[u32], budget: &mut Budget<'_, '_>) -> Option<u32> {
        let mut order: Vec<u32> = order.into_iter().map(|placed| placed.call).collect();
        let placed: FxHashSet<u32> = order.iter().copied().collect();
        let missing = || others.iter().copied().filter(|call| !placed.contains(call));
        for call in missing().take(ALONE) {
            if self.place(&order, call, budget)?.is_none() {
                return Some(call);
            }
        }
        for call in missing() {
            match self.place(&order, call, budget)? {
                Some(at) => order.insert(at, call),
                None => return Some(call),
            }
        }
        None
    }

    /// Where a call can be put into an order so that everything in it stays explained. The outer `None`: no budget is left.
    fn place(&mut self, order: &[u32], call: u32, budget: &mut Budget<'_, '_>) -> Option<Option<usize>> {
        let (invoke, returned) = (self.times.invoke[call as usize], self.times.returned[call as usize]);
        // After everything that had returned before it was invoked, before everything that was invoked after it returned.
        let after =
            order.iter().rposition(|&other| self.times.returned[other as usize] < invoke).map_or(0, |at| at + 1);
        let before =
            order.iter().position(|&other| self.times.invoke[other as usize] > returned).unwrap_or(order.len());
        let mut state = 0;
        for at in 0..=before {
            if at >= after {
                let mut next = self.world.step(state, call, true);
                for &other in &order[at..] {
                    if !budget.spend() {
                        return None;
                    }
                    next = next.and_then(|state| self.world.step(state, other, self.is_completed(other)));
                    if next.is_none() {
                        break;
                    }
                }
                if next.is_some() {
                    return Some(Some(at));
                }
            }
            if let Some(&other) = order.get(at) {
                state = self.world.step(state, other, self.is_completed(other))?;
            }
        }
        Some(None)
    }

    /// Takes away what is not needed; and whether it was shown that everything left is.
    fn shrink(&mut self, mut core: Vec<u32>, last: u32, budget: &mut Budget<'_, '_>) -> (Vec<u32>, bool) {
        // What only looks goes first, and what is far from the end.
        core.sort_by_key(|&call| (call == last, self.world.changes(call), self.times.returned[call as usize], call));
        let mut minimal = true;
        let mut size = core.len().next_power_of_two() / 2;
        while size > 0 {
            let mut from = 0;
            while from < core.len() {
                let rest: Vec<u32> = core
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| !(from..from + size).contains(at))
                    .map(|(_, &call)| call)
                    .collect();
                match self.decide(&rest, budget) {
                    Decision::Impossible => core = rest,
                    decision => {
                        minimal &= size > 1 || decision != Decision::Open;
                        from += size;
                    }
                }
            }
            size /= 2;
        }
        (core, minimal)
    }
}
