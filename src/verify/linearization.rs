//! Replays an order of calls: the independent check of a linearization. Runs in linear time, so every certificate can be checked.

use crate::model::{Spec, Touch};
use crate::search::{Call, History, Outcome, SpecHistory};
use std::collections::HashSet;

/// The reason why an order of calls is no linearization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderFlaw {
    /// The history has no such call.
    #[error("there is no call {call}: the history has {calls}")]
    NoSuchCall {
        /// The index.
        call: u32,
        /// Number of calls in the history.
        calls: usize,
    },
    /// A call occurs twice.
    #[error("call {call} is in the order twice")]
    Twice {
        /// The call.
        call: u32,
    },
    /// A failed call occurs, although it had no effect.
    #[error("call {call} failed, but is in the order")]
    Failed {
        /// The call.
        call: u32,
    },
    /// A completed call does not occur, or occurs too late.
    #[error("call {call} was answered, but is not in the order{}", .before.map_or(String::new(), |b| format!(" before call {b}, which was invoked later")))]
    Missing {
        /// The call.
        call: u32,
        /// The call that was invoked after its return.
        before: Option<u32>,
    },
    /// The order contradicts real time.
    #[error("call {first} is before call {second}, which had returned before call {first} was invoked")]
    Backwards {
        /// The call that was invoked later.
        first: u32,
        /// The call that had returned.
        second: u32,
    },
    /// The data type gives another answer.
    #[error("call {call}, at place {place}, cannot have the recorded answer")]
    Answer {
        /// The call.
        call: u32,
        /// Index in the order, from 0.
        place: usize,
    },
}

/// Checks that an order explains a history. Every completed call occurs once, no failed one, and each call of unknown outcome at
/// most once. No call follows one that was invoked after its return. Every answer is that of the data type at that place.
///
/// Linear in the calls, besides the steps of the specification.
///
/// # Errors
/// The first flaw.
pub fn linearization<S: Spec>(spec: &S, history: &SpecHistory<S>, order: &[u32]) -> Result<(), OrderFlaw> {
    let placed = replay(spec, history, order)?;
    let missing = history
        .calls()
        .iter()
        .zip(&placed)
        .position(|(call, placed)| !placed && matches!(call.outcome, Outcome::Completed { .. }));
    match missing {
        Some(call) => Err(OrderFlaw::Missing { call: call as u32, before: None }),
        None => Ok(()),
    }
}

/// Checks that an order explains the begin of a history. As [`linearization`], but the order may end early and omit calls that
/// share nothing with those in it. It may omit no other call that returned before one in the order was invoked.
///
/// # Errors
/// The first flaw.
pub fn prefix<S: Spec>(spec: &S, history: &SpecHistory<S>, order: &[u32]) -> Result<(), OrderFlaw> {
    let placed = replay(spec, history, order)?;
    let calls = history.calls();
    let Some(&last) = order.iter().max_by_key(|&&call| calls[call as usize].invoke) else { return Ok(()) };
    let not_failed = calls.iter().filter(|call| !matches!(call.outcome, Outcome::Failed));
    let touch = Touch::of(spec, not_failed.map(|call| &call.operation));
    let parts = |call: &Call<S::Operation, S::Answer>| touch.parts(&call.operation);
    let touched: HashSet<u64> = order.iter().flat_map(|&call| parts(&calls[call as usize])).collect();
    let is_apart = |call| parts(call).iter().all(|part| !touched.contains(part));
    let missing = calls.iter().zip(&placed).position(|(call, placed)| {
        !placed && returned(&call.outcome).is_some_and(|at| at < calls[last as usize].invoke) && !is_apart(call)
    });
    match missing {
        Some(call) => Err(OrderFlaw::Missing { call: call as u32, before: Some(last) }),
        None => Ok(()),
    }
}

fn returned<A>(outcome: &Outcome<A>) -> Option<i64> {
    match outcome {
        Outcome::Completed { returned, .. } => Some(*returned),
        Outcome::Failed | Outcome::Unknown => None,
    }
}

/// Replays an order; returns which calls are in it.
fn replay<S: Spec>(
    spec: &S,
    history: &History<S::Operation, S::Answer>,
    order: &[u32],
) -> Result<Vec<bool>, OrderFlaw> {
    let calls = history.calls();
    let mut placed = vec![false; calls.len()];
    let mut state = spec.initial();
    // The latest invoked call so far. A later call in the order must not have returned before that invocation.
    let mut latest: Option<u32> = None;
    for (place, &at) in order.iter().enumerate() {
        let Some(call) = calls.get(at as usize) else {
            return Err(OrderFlaw::NoSuchCall { call: at, calls: calls.len() });
        };
        if std::mem::replace(&mut placed[at as usize], true) {
            return Err(OrderFlaw::Twice { call: at });
        }
        let answer = match &call.outcome {
            Outcome::Completed { answer, .. } => Some(answer),
            Outcome::Unknown => None,
            Outcome::Failed => return Err(OrderFlaw::Failed { call: at }),
        };
        if let (Some(first), Some(end)) = (latest, returned(&call.outcome))
            && end < calls[first as usize].invoke
        {
            return Err(OrderFlaw::Backwards { first, second: at });
        }
        state = spec.step(&state, &call.operation, answer).ok_or(OrderFlaw::Answer { call: at, place })?;
        if latest.is_none_or(|first| calls[first as usize].invoke < call.invoke) {
            latest = Some(at);
        }
    }
    Ok(placed)
}
