//! From a history to its verdict.

use super::budget::Watch;
use super::depth::{Depth, Found};
use super::history::History;
use super::mask::Mask;
use super::partition::{self, Part};
use super::ranks::MOST_CALLS;
use super::slots::Slots;
use super::transitions::Transitions;
use super::verdict::{Budget, Core, Limit, Linearization, Undecided, Verdict};
use super::weave::weave;
use crate::model::Spec;

/// Decides whether some order of the calls, in which each happens between its invocation and its return, explains every answer.
pub fn check<S: Spec>(spec: &S, history: &History<S::Operation, S::Answer>, budget: &Budget<'_>) -> Verdict {
    let watch = Watch::begin(budget);
    if history.calls().len() > MOST_CALLS {
        let calls = (0..).take(history.calls().len()).collect();
        return Verdict::Unknown(Undecided { limit: Limit::Memory, spent: watch.spent(), calls });
    }
    let parts = partition::parts(spec, history);
    let mut orders = Vec::with_capacity(parts.len());
    let mut undecided = Vec::new();
    let mut stopped = None;
    for part in &parts {
        match decide(spec, history, part, &watch) {
            Ok(Decision::Order(order)) => orders.push(order),
            Ok(Decision::Core(core)) => return Verdict::Violated(core),
            Err(limit) => {
                stopped = stopped.or(Some(limit));
                undecided.extend_from_slice(&part.calls);
            }
        }
    }
    match stopped {
        None => Verdict::Linearizable(Linearization { order: weave(&parts, &orders) }),
        Some(limit) => {
            undecided.sort_by_key(|&call| (history.calls()[call as usize].invoke, call));
            Verdict::Unknown(Undecided { limit, spent: watch.spent(), calls: undecided })
        }
    }
}

/// What one part comes to.
enum Decision {
    Order(Vec<u32>),
    Core(Core),
}

fn decide<S: Spec>(
    spec: &S,
    history: &History<S::Operation, S::Answer>,
    part: &Part,
    watch: &Watch<'_>,
) -> Result<Decision, Limit> {
    let (mut transitions, class) = Transitions::of(spec, history, part);
    let slots = Slots::new(part, &class);
    let mut search = |goal: usize| match slots.count {
        0..=64 => depth::<S, [u64; 1]>(part, &slots, &mut transitions, &class, goal, watch),
        65..=256 => depth::<S, [u64; 4]>(part, &slots, &mut transitions, &class, goal, watch),
        _ => depth::<S, Box<[u64]>>(part, &slots, &mut transitions, &class, goal, watch),
    };
    let end = match search(part.events.len())? {
        Found::Order(order) => return Ok(Decision::Order(order)),
        Found::Impossible(at) => at,
    };
    // The order that gets that far was passed on the way: it is found again, and a deadline does not take the verdict back.
    let longest_prefix = match search(end) {
        Ok(Found::Order(order)) => order.iter().map(|&operation| part.calls[operation as usize]).collect(),
        Ok(Found::Impossible(_)) | Err(_) => Vec::new(),
    };
    Ok(Decision::Core(Core { calls: part.invoked_before(end), minimal: false, longest_prefix }))
}

fn depth<S: Spec, M: Mask>(
    part: &Part,
    slots: &Slots,
    transitions: &mut Transitions<'_, S>,
    class: &[u32],
    goal: usize,
    watch: &Watch<'_>,
) -> Result<Found, Limit> {
    Depth::<S, M>::new(part, slots, transitions, class, goal, watch.memory()).run(watch)
}
