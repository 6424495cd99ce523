//! The verdict of a history. Input: a specification, a history and a budget. Output: a linearization, a core, or what is
//! undecided. Parts are decided separately. If all operations have register forms, the register search decides. If its
//! linearization fails the validation, the forms contradict each other and the history is decided again by steps.

use super::budget::BudgetGuard;
use super::config::SearchConfig;
use super::core;
use super::events::{self, Event, MOST_CALLS};
use super::fifo;
use super::history::{Call, History, Outcome};
use super::merge::merge_linearizations;
use super::partition::{self, Part};
use super::register::{self, Forms, RegisterOp};
use super::schedule::{self, DeadEnd, Found, Known, Parts, Search};
use super::slots::SlotAllocation;
use super::transitions::Transitions;
use super::verdict::{Budget, Core, Limit, Linearization, Undecided, Verdict};
use super::wgl::WglSearch;
use crate::model::Spec;
use rustc_hash::FxHashMap;
use std::sync::atomic::AtomicU64;

/// Decides whether a linearization exists: an order of the calls, each between its invocation and its return, that explains every
/// answer.
///
/// The core of a violation is not minimal. [`super::minimal`] reduces it.
///
/// The verdict and its certificate are the same for any number of threads of the current [`rayon`] pool, unless a limit ends the
/// search.
pub fn check<S: Spec>(spec: &S, history: &History<S::Operation, S::Answer>, budget: &Budget<'_>) -> Verdict {
    check_with(spec, history, budget, &SearchConfig::default())
}

/// [`check`] with some searches switched off, for tests that compare them.
#[doc(hidden)]
pub fn check_with<S: Spec>(
    spec: &S,
    history: &History<S::Operation, S::Answer>,
    budget: &Budget<'_>,
    switches: &SearchConfig,
) -> Verdict {
    let release = AtomicU64::new(0);
    let guard = BudgetGuard::begin(budget).releasing(&release);
    if history.calls().len() > MOST_CALLS.min(guard.memory() / LEAST) {
        let calls = (0..).take(history.calls().len()).collect();
        return Verdict::Unknown(Undecided { limit: Limit::Memory, spent: guard.spent(), calls });
    }
    let trial = Trial { spec, history, switches: *switches, guard };
    match switches.forms.then(|| forms_and_events(spec, history)) {
        Some((Some(forms), events)) => {
            let parts = partition::registers(history, events, &forms);
            let held = forms.bytes() + parts.iter().map(Part::bytes).sum::<usize>();
            let trial = Trial { guard: guard.reserving(held), ..trial };
            trial.decide(&parts, Some(&forms)).unwrap_or_else(|| trial.by_steps())
        }
        _ => trial.by_steps(),
    }
}

/// The register forms, if all operations have one, and the events. Two threads prepare a long history.
fn forms_and_events<'h, S: Spec>(
    spec: &'h S,
    history: &'h History<S::Operation, S::Answer>,
) -> (Option<Forms<'h>>, Vec<Event>) {
    let (forms, events) = (|| Forms::of(spec, history), || events::events(history.calls()));
    match schedule::is_for_two(history.calls().len()) {
        true => rayon::join(forms, events),
        false => {
            let forms = forms();
            let events = if forms.is_some() { events() } else { Vec::new() };
            (forms, events)
        }
    }
}

/// Bytes held for each call, at least: its form and its events.
const LEAST: usize = 32;

/// A history that is being decided.
struct Trial<'t, S: Spec> {
    spec: &'t S,
    history: &'t History<S::Operation, S::Answer>,
    switches: SearchConfig,
    guard: BudgetGuard<'t>,
}

impl<'t, S: Spec> Trial<'t, S> {
    /// Decides without register forms, by steps of the specification.
    fn by_steps(&self) -> Verdict {
        let parts = partition::parts(self.spec, self.history);
        let guard = self.guard.reserving(parts.iter().map(Part::bytes).sum());
        Trial { guard, ..*self }
            .decide(&parts, None)
            .unwrap_or_else(|| unreachable!("only linearizations from forms are validated"))
    }

    /// `None` if a linearization is not valid: the forms contradict each other.
    fn decide(&self, parts: &[Part], forms: Option<&Forms<'_>>) -> Option<Verdict> {
        let begin = |part| self.search(part, forms, None);
        Some(match schedule::decide(parts, begin, &self.guard) {
            Parts::Orders(orders) => {
                if let Some(forms) = forms {
                    let holds =
                        |(part, order): (&Part, &Vec<u32>)| register::is_valid_linearization(part, forms, order);
                    if !parts.iter().zip(&orders).all(holds) {
                        debug_assert!(false, "the register search found an invalid linearization");
                        return None;
                    }
                }
                Verdict::Linearizable(Linearization { order: merge_linearizations(parts, &orders) })
            }
            Parts::Refuted(part, dead) => {
                let mut core = self.core(&parts[part], parts, dead, forms);
                if let Some(forms) = forms {
                    self.add_free(&parts[part], parts, forms, &mut core.longest_prefix);
                }
                Verdict::Violated(core)
            }
            Parts::Undecided(limit, undecided) => {
                let mut calls: Vec<u32> = undecided.iter().flat_map(|&part| parts[part].calls.clone()).collect();
                calls.sort_by_key(|&call| (self.history.calls()[call as usize].invoke, call));
                Verdict::Unknown(Undecided { limit, spent: self.guard.spent(), calls })
            }
        })
    }

    /// The search of a part, up to event `goal` or to its end.
    fn search<'p>(&self, part: &'p Part, forms: Option<&Forms<'_>>, goal: Option<usize>) -> Search<'p>
    where
        't: 'p,
    {
        if let Some(forms) = forms {
            if forms.operation[part.calls[0] as usize] == RegisterOp::Nothing {
                return Box::new(Known((0..part.calls.len() as u32).collect()));
            }
            if let Some(search) = register::search(part, forms, goal, self.switches, &self.guard) {
                return search;
            }
        }
        if goal.is_none()
            && let Some(order) = self.queued(part)
        {
            return Box::new(Known(order));
        }
        let goal = goal.unwrap_or(part.events.len());
        let (transitions, class) = Transitions::of(self.spec, self.history, part, self.guard.release());
        let slots = SlotAllocation::new(part, &class);
        Box::new(WglSearch::new(part, slots, transitions, class, goal, self.switches.kinds_in_key))
    }

    /// A linearization of a part whose operations are those of a queue, if one is found without a search.
    fn queued(&self, part: &Part) -> Option<Vec<u32>> {
        if !self.switches.forms || part.calls.len() > self.guard.memory() / fifo::BYTES {
            return None;
        }
        let form = |call: &u32| {
            let Call { operation, outcome, .. } = &self.history.calls()[*call as usize];
            let answer = if let Outcome::Completed { answer, .. } = outcome { Some(answer) } else { None };
            self.spec.queue_form(operation, answer)
        };
        let forms: Vec<_> = part.calls.iter().map(form).collect::<Option<_>>()?;
        fifo::linearization(part, &forms)
    }

    /// Adds to an order of a part the calls of the same register that can be linearized anywhere, if they were invoked before its
    /// last point.
    fn add_free(&self, part: &Part, parts: &[Part], forms: &Forms<'_>, order: &mut Vec<u32>) {
        if parts.len() == 1 {
            return;
        }
        let invoked: FxHashMap<u32, u32> = part.calls.iter().copied().zip(part.invoked.iter().copied()).collect();
        let mut point = 0;
        // The point of a call is the latest invocation up to it, as in `merge_linearizations`.
        let mut points: Vec<(u32, u32)> = Vec::with_capacity(order.len());
        for &call in order.iter() {
            point = point.max(invoked[&call]);
            points.push((point, call));
        }
        let before = free_beside(part, parts, forms).filter(|&(_, at)| at < point);
        points.extend(before.map(|(call, at)| (at, call)));
        points.sort_by_key(|&(point, _)| point);
        order.clear();
        order.extend(points.into_iter().map(|(_, call)| call));
    }

    /// The core: the calls up to the earliest return that no linearization gets past.
    fn core(&self, part: &Part, parts: &[Part], dead: DeadEnd, forms: Option<&Forms<'_>>) -> Core {
        let answered = |end: usize| {
            let mut calls = part.answered_before(end);
            let stuck = &self.history.calls()[part.calls[part.events[end - 1].of() as usize] as usize];
            if let (Some(forms), Outcome::Completed { returned, .. }) = (forms, &stuck.outcome) {
                let invoked = |call: &u32| self.history.calls()[*call as usize].invoke <= *returned;
                calls.extend(free_beside(part, parts, forms).map(|(call, _)| call).filter(invoked));
            }
            calls
        };
        let named = |order: Vec<u32>| order.iter().map(|&operation| part.calls[operation as usize]).collect();
        if let Some(longest) = dead.longest {
            return core::initial_core(self.history, &answered(dead.reached + 1), named(longest));
        }
        let try_to = |goal| schedule::finish(self.search(part, forms, Some(goal)), &self.guard);
        // A linearization gets to `low`, and none gets to `high`.
        let (mut low, mut high) = (dead.reached, part.events.len());
        let mut longest = None;
        let (mut goal, mut step) = (dead.suspect + 1, 1);
        while high - low > 1 {
            goal = goal.clamp(low + 1, high - 1);
            match try_to(goal) {
                Ok(Found::Order(order)) => {
                    longest = Some((goal, order));
                    (low, goal) = (goal, goal + step);
                }
                Ok(Found::Impossible(dead)) => {
                    (low, high) = (low.max(dead.reached), goal);
                    goal = if dead.suspect + 1 < high { dead.suspect + 1 } else { high.saturating_sub(step) };
                }
                // A spent budget does not withdraw the verdict.
                Err(_) => break,
            }
            // Far from the suspected return, halving the interval is as good.
            step *= 2;
            if step > 64 {
                goal = usize::midpoint(low, high);
            }
        }
        if longest.as_ref().is_none_or(|longest| longest.0 < low)
            && let Ok(Found::Order(order)) = try_to(low)
        {
            longest = Some((low, order));
        }
        let longest = longest.map(|longest| longest.1).unwrap_or_default();
        core::initial_core(self.history, &answered(high), named(longest))
    }
}

/// The calls on the register of a part that can be linearized anywhere, each with the place of its invocation among all events.
fn free_beside(part: &Part, parts: &[Part], forms: &Forms<'_>) -> impl Iterator<Item = (u32, u32)> {
    let own = forms.register(part.calls[0]);
    let free = parts.iter().filter(|part| forms.operation[part.calls[0] as usize] == RegisterOp::Nothing);
    let all = free.flat_map(|free| free.calls.iter().copied().zip(free.invoked.iter().copied()));
    all.filter(move |&(call, _)| forms.register(call) == own)
}

/// Whether a history is linearizable, decided by steps. `None` if that takes more work.
#[cfg(test)]
pub(super) fn by_steps_within<S: Spec>(spec: &S, history: &super::history::SpecHistory<S>, work: u64) -> Option<bool> {
    let guard = BudgetGuard::begin(&Budget::default());
    let trial = Trial { spec, history, switches: SearchConfig { forms: false, ..SearchConfig::default() }, guard };
    let parts = partition::parts(spec, history);
    let mut found =
        parts.iter().map(|part| trial.search(part, None, None).run(work, usize::MAX, &guard).ok().flatten());
    found.try_fold(true, |all, found| Some(all && matches!(found?, Found::Order(_))))
}
