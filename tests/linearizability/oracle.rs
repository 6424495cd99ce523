//! Linearizability by definition: enumerates all orders, without memoization, reduction or knowledge of data types.

use retrograde::model::Spec;
use retrograde::search::{Outcome, SpecHistory};

/// Whether some order explains a history; `None` if `steps` steps do not decide it.
pub fn is_linearizable<S: Spec>(spec: &S, history: &SpecHistory<S>, steps: u64) -> Option<bool> {
    let mut left = steps;
    let mut placed = vec![false; history.calls().len()];
    some_order(spec, history, &spec.initial(), &mut placed, &mut left)
}

fn some_order<S: Spec>(
    spec: &S,
    history: &SpecHistory<S>,
    state: &S::State,
    placed: &mut [bool],
    left: &mut u64,
) -> Option<bool> {
    let calls = history.calls();
    // A call that returned before another was invoked goes first.
    let mut earliest_return = None;
    for (call, placed) in calls.iter().zip(&*placed) {
        if let (Outcome::Completed { returned, .. }, false) = (&call.outcome, placed) {
            earliest_return = Some(earliest_return.map_or(*returned, |earliest: i64| earliest.min(*returned)));
        }
    }
    let Some(earliest_return) = earliest_return else { return Some(true) };
    for (at, call) in calls.iter().enumerate() {
        if placed[at] || call.invoke > earliest_return {
            continue;
        }
        let answer = match &call.outcome {
            Outcome::Completed { answer, .. } => Some(answer),
            Outcome::Unknown => None,
            Outcome::Failed => continue,
        };
        *left = left.checked_sub(1)?;
        let Some(next) = spec.step(state, &call.operation, answer) else { continue };
        placed[at] = true;
        let decided = some_order(spec, history, &next, placed, left);
        placed[at] = false;
        match decided {
            Some(false) => {}
            other => return other,
        }
    }
    Some(false)
}

/// Whether an order is a linearization, clause by clause of the definition.
pub fn explains<S: Spec>(spec: &S, history: &SpecHistory<S>, order: &[u32]) -> bool {
    let calls = history.calls();
    let times = |at: usize| order.iter().filter(|&&placed| placed as usize == at).count();
    let in_number = calls.iter().enumerate().all(|(at, call)| match call.outcome {
        Outcome::Completed { .. } => times(at) == 1,
        Outcome::Unknown => times(at) <= 1,
        Outcome::Failed => times(at) == 0,
    });
    let returned_before = |first: u32, second: u32| match calls[first as usize].outcome {
        Outcome::Completed { returned, .. } => returned < calls[second as usize].invoke,
        _ => false,
    };
    let in_time = (0..order.len()).all(|at| (0..at).all(|earlier| !returned_before(order[at], order[earlier])));
    let in_state = order.iter().try_fold(spec.initial(), |state, &at| {
        let answer = match &calls[at as usize].outcome {
            Outcome::Completed { answer, .. } => Some(answer),
            _ => None,
        };
        spec.step(&state, &calls[at as usize].operation, answer)
    });
    in_number && in_time && in_state.is_some()
}
