//! Minimal cores: the calls that a violation is about. Input: a history and the core that the search found. Output: a core from
//! which no call can be left out, or the given one if that takes too long.
//!
//! **Theorem.** Let K be completed or failed calls of a history H. Let the outcome of every other call of H be unknown: it may
//! have taken effect at any time from its invocation on, with any answer, or never. If no order explains this history H|K, none
//! explains H.
//!
//! *Proof.* An order that explains H contains every completed call once, within its interval and with its answer, and no failed
//! one. H|K asks no more of the calls in K, and less of the others: the same order explains it. ∎
//!
//! By the same argument, what is impossible for K is impossible for every set that contains K. So K is minimal if no single call
//! can be left out, and a call that is needed in a larger core is needed in a smaller one. [`minimal`] proves both: no order
//! explains H|K, and for every call of K an order was found without it. To remove calls from the history would prove nothing: a
//! read is impossible if its write was removed.
//!
//! K grows from the call whose return the search could not pass. An order that explains H|K contradicts H somewhere. It uses a
//! call that had returned or that failed, or with another answer than it got; or it has no place for a completed call. What it
//! contradicts is added until no order explains H|K. Then as many calls as possible are removed again.
//!
//! All steps are counted, so the result is the same on every machine unless a deadline ends it first.

mod reason;
mod registers;
mod relaxed;
mod world;

pub use reason::{Alternative, Claim, Missing, Reason, reason};

use super::budget::BudgetGuard;
use super::history::{History, Outcome, SpecHistory};
use super::verdict::Core;
use crate::model::{Spec, Touch};
use registers::Registers;
use relaxed::{Budget, Decision, Placed, Relaxation};
use rustc_hash::{FxHashMap, FxHashSet};
use world::{CoreModel, Required, Steps, Times};

/// Steps of one decision, at most.
const STEPS_EACH: u64 = 100_000;

/// Steps of one core, at most.
const STEPS: u64 = 4_000_000;

/// Completed calls that are tried alone against an order before they are tried together.
const ALONE: usize = 20_000;

/// The core that the search leaves. It has the completed calls among `part`: calls of one part that were invoked before a return
/// that no linearization gets past. It also has the calls that failed until then.
pub(super) fn initial_core<O, A>(history: &History<O, A>, part: &[u32], longest_prefix: Vec<u32>) -> Core {
    let all = history.calls();
    let is_completed = |call: &u32| matches!(all[*call as usize].outcome, Outcome::Completed { .. });
    let mut calls: Vec<u32> = part.iter().copied().filter(is_completed).collect();
    let end = part.iter().map(|&call| returned(&all[call as usize].outcome)).max().unwrap_or(i64::MAX);
    // A failed call could otherwise be used to explain them, whichever part it is of.
    let failed = (0..).zip(all).filter(|(_, call)| matches!(call.outcome, Outcome::Failed) && call.invoke <= end);
    calls.extend(failed.map(|(at, _)| at));
    calls.sort_by_key(|&call| (all[call as usize].invoke, call));
    Core { calls, minimal: false, longest_prefix }
}

/// Reduces a core that [`super::check`] found until no call can be left out; returns `found` if that takes too long.
///
/// Takes a millisecond for a small core, and a few seconds at most.
pub fn minimal<S: Spec>(spec: &S, history: &SpecHistory<S>, found: &Core, budget: &super::Budget<'_>) -> Core {
    // Calls that had to be next in the longest partial linearization and have no place in it.
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

/// A task for a core, with the model that fits its calls.
trait Task<O, A> {
    type Output;

    /// `None`: the budget was spent.
    fn run<W: CoreModel>(self, search: Search<'_, O, A, W>) -> Option<Self::Output>;
}

/// Runs a task with the model that fits a call: a register, or the steps of the specification.
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

/// The calls that can be connected with one call, by invocation.
enum Scope {
    /// All calls on its register.
    Register(Vec<u32>),
    /// All calls that are connected with it by keys.
    Keys(Vec<u32>),
}

/// Failed calls are included: they connect parts that are independent as long as the calls are known to have failed.
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
    let touch = Touch::of(spec, calls.iter().map(|call| &call.operation));
    for (at, call) in (0..).zip(calls) {
        let of_call = touch.parts(&call.operation);
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

/// The calls that can be connected with a core, and their model.
struct Search<'a, O, A, W> {
    world: W,
    history: &'a History<O, A>,
    times: &'a Times,
    /// These calls, by invocation.
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

    /// Grows a core until no order explains it. `None`: the budget was spent.
    fn grow(&mut self, last: u32, budget: &mut Budget<'_, '_>) -> Option<Vec<u32>> {
        let mut core = vec![last];
        let end = self.times.returned[last as usize];
        // Calls before the end first, the nearest to it first, and calls that change the state before reads.
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

    /// Calls that an order uses after their return, although they failed, or with another answer. Also calls that could replace
    /// them and would be used no better.
    fn misused(&mut self, order: &[Placed], core: &[u32]) -> Vec<u32> {
        let mut found = Vec::new();
        let mut state = 0;
        let mut latest = i64::MIN;
        for placed in order {
            let (call, at) = (placed.call, placed.call as usize);
            let next = self.world.step(state, call, placed.known);
            if !placed.known && self.is_contradicted(call, state, latest) {
                found.push(call);
                // An equal call that returned as early would only be the next one to be misused.
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

    /// Whether the known outcome of a call forbids it in a state, after a call that was invoked at `latest`.
    fn is_contradicted(&mut self, call: u32, state: u32, latest: i64) -> bool {
        match self.history.calls()[call as usize].outcome {
            Outcome::Unknown => false,
            Outcome::Failed => true,
            Outcome::Completed { returned, .. } => returned < latest || self.world.step(state, call, true).is_none(),
        }
    }

    /// A completed call that has no place in an order that explains others. If every call has one alone, as many as possible are
    /// placed together. Such a call exists, because no order explains all.
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

    /// Where a call can be inserted into an order so that everything in it stays explained. The outer `None`: the budget was
    /// spent.
    fn place(&mut self, order: &[u32], call: u32, budget: &mut Budget<'_, '_>) -> Option<Option<usize>> {
        let (invoke, returned) = (self.times.invoke[call as usize], self.times.returned[call as usize]);
        // After everything that returned before its invocation, before everything that was invoked after its return.
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

    /// Removes the calls that are not needed. Returns whether it is proved that every remaining call is needed.
    fn shrink(&mut self, mut core: Vec<u32>, last: u32, budget: &mut Budget<'_, '_>) -> (Vec<u32>, bool) {
        // Reads are removed first, and calls far from the end.
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
