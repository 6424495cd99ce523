//! An order of calls, replayed.

use crate::model::Spec;
use crate::search::{Call, History, Outcome, SpecHistory};
use std::collections::HashSet;

/// Why an order of calls is no linearization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderFlaw {
    /// There is no such call.
    #[error("there is no call {call}: the history has {calls}")]
    NoSuchCall {
        /// The index.
        call: u32,
        /// How many calls there are.
        calls: usize,
    },
    /// A call stands in it twice.
    #[error("call {call} happens twice")]
    Twice {
        /// The call.
        call: u32,
    },
    /// A call that certainly did not happen stands in it.
    #[error("call {call} failed, yet it happens")]
    Failed {
        /// The call.
        call: u32,
    },
    /// A call that was answered does not stand in it, or not in time.
    #[error("call {call} was answered, yet it does not happen{}", .before.map_or(String::new(), |b| format!(" before call {b}, which was invoked later")))]
    Missing {
        /// The call.
        call: u32,
        /// The call that begins after its return.
        before: Option<u32>,
    },
    /// Real time says otherwise.
    #[error("call {first} happens before call {second}, which had returned before it was invoked")]
    Backwards {
        /// The call that was invoked later.
        first: u32,
        /// The call that had returned.
        second: u32,
    },
    /// The data type would not answer like this.
    #[error("call {call}, at place {place}, cannot be answered as it was")]
    Answer {
        /// The call.
        call: u32,
        /// Its place in the order, from 0.
        place: usize,
    },
}

/// Whether an order explains a history: every completed call once, failed ones never, unknown ones at most once; no call
/// after one that was invoked after its return; and every answer what the data type gives at that place.
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

/// Whether an order explains how a history begins: as [`linearization`], but it may end early, and leave out calls that have
/// nothing to do with those in it. No other may be missing that had returned before one in the order was invoked.
///
/// # Errors
/// The first flaw.
pub fn prefix<S: Spec>(spec: &S, history: &SpecHistory<S>, order: &[u32]) -> Result<(), OrderFlaw> {
    let placed = replay(spec, history, order)?;
    let calls = history.calls();
    let Some(&last) = order.iter().max_by_key(|&&call| calls[call as usize].invoke) else { return Ok(()) };
    let keys = |call: &Call<S::Operation, S::Answer>| spec.keys(&call.operation);
    let touched: Option<Vec<Vec<u64>>> = order.iter().map(|&call| keys(&calls[call as usize])).collect();
    let touched: Option<HashSet<u64>> = touched.map(|keys| keys.into_iter().flatten().collect());
    let is_apart = |call| match (&touched, keys(call)) {
        (Some(touched), Some(keys)) => keys.iter().all(|key| !touched.contains(key)),
        _ => false,
    };
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

/// Which calls an order has, after everything that can be wrong with them.
fn replay<S: Spec>(
    spec: &S,
    history: &History<S::Operation, S::Answer>,
    order: &[u32],
) -> Result<Vec<bool>, OrderFlaw> {
    let calls = history.calls();
    let mut placed = vec![false; calls.len()];
    let mut state = spec.initial();
    // The call of the order so far that was invoked last: whoever follows must not have returned before that.
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
