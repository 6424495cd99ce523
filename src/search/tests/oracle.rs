//! The oracle: tries every order, in as few lines as possible.

use super::super::{Call, Outcome};
use crate::model::Spec;

fn returned<O, A>(call: &Call<O, A>) -> i64 {
    match call.outcome {
        Outcome::Completed { returned, .. } => returned,
        Outcome::Failed | Outcome::Unknown => i64::MAX,
    }
}

fn answer<O, A>(call: &Call<O, A>) -> Option<&A> {
    match &call.outcome {
        Outcome::Completed { answer, .. } => Some(answer),
        Outcome::Failed | Outcome::Unknown => None,
    }
}

/// Whether an order explains every answer. `None` if there are too many orders.
pub(super) fn is_linearizable<S: Spec>(spec: &S, calls: &[Call<S::Operation, S::Answer>]) -> Option<bool> {
    fn search<S: Spec>(
        spec: &S,
        state: &S::State,
        left: &mut Vec<&Call<S::Operation, S::Answer>>,
        steps: &mut u32,
    ) -> bool {
        if left.iter().all(|call| matches!(call.outcome, Outcome::Unknown)) {
            return true;
        }
        let end = left.iter().map(|call| returned(call)).min().unwrap_or(i64::MAX);
        for at in 0..left.len() {
            let call = left[at];
            if call.invoke > end || *steps == 0 {
                continue;
            }
            *steps -= 1;
            if let Some(next) = spec.step(state, &call.operation, answer(call)) {
                left.remove(at);
                let found = search(spec, &next, left, steps);
                left.insert(at, call);
                if found {
                    return true;
                }
            }
        }
        false
    }
    let mut left = calls.iter().filter(|call| !matches!(call.outcome, Outcome::Failed)).collect();
    let mut steps = 200_000;
    let found = search(spec, &spec.initial(), &mut left, &mut steps);
    (found || steps > 0).then_some(found)
}

/// Whether an order contains every answered call, respects the intervals, and explains every answer.
pub(super) fn is_order<S: Spec>(
    spec: &S,
    calls: &[Call<S::Operation, S::Answer>],
    order: &[u32],
) -> Result<(), String> {
    is_beginning(spec, calls, order)?;
    match (0..).zip(calls).find(|(at, call)| answer(call).is_some() && !order.contains(at)) {
        Some((at, _)) => Err(format!("{at} is missing")),
        None => Ok(()),
    }
}

/// Whether an order respects the intervals and explains the answers of its calls.
pub(super) fn is_beginning<S: Spec>(
    spec: &S,
    calls: &[Call<S::Operation, S::Answer>],
    order: &[u32],
) -> Result<(), String> {
    let mut seen = vec![false; calls.len()];
    let mut state = spec.initial();
    let mut latest = i64::MIN;
    for &at in order {
        let call = &calls[at as usize];
        if std::mem::replace(&mut seen[at as usize], true) {
            return Err(format!("{at} twice"));
        }
        latest = latest.max(call.invoke);
        if returned(call) < latest || matches!(call.outcome, Outcome::Failed) {
            return Err(format!("{at} is out of its interval"));
        }
        state = spec.step(&state, &call.operation, answer(call)).ok_or_else(|| format!("{at} cannot happen there"))?;
    }
    Ok(())
}
