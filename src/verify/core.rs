//! Decides a core again, by trying all orders.

use super::question::{Decision, Question};
use crate::model::Spec;
use crate::search::{Claim, Outcome, SpecHistory};

/// Whether a question was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finality {
    /// All orders were tried.
    Decided,
    /// There were too many orders.
    TooLarge,
}

/// The result of deciding a core again, without a flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreCheck {
    /// Whether no order explains its calls.
    pub refuted: Finality,
    /// Whether every claim is needed.
    pub irreducible: Finality,
}

/// The reason why calls are no core.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoreFlaw {
    /// The history has no such call.
    #[error("there is no call {call}: the history has {calls}")]
    NoSuchCall {
        /// The index.
        call: u32,
        /// Number of calls in the history.
        calls: usize,
    },
    /// A call is named twice.
    #[error("call {call} is named twice")]
    Twice {
        /// The call.
        call: u32,
    },
    /// The outcome of a call is unknown, so it proves nothing.
    #[error("the outcome of call {call} is unknown: it proves nothing")]
    Unknown {
        /// The call.
        call: u32,
    },
    /// An order explains the calls.
    #[error("this order explains every call of the core: {order:?}")]
    Explained {
        /// The order, by call numbers.
        order: Vec<u32>,
    },
    /// A part of the core suffices.
    #[error("{part} of call {call} can be left out: no order explains the rest either")]
    Reducible {
        /// The call.
        call: u32,
        /// The superfluous part.
        part: &'static str,
    },
}

impl CoreFlaw {
    /// The same flaw with calls renumbered.
    pub(super) fn renamed(self, numbers: &[u32]) -> CoreFlaw {
        let name = |call: u32| numbers.get(call as usize).copied().unwrap_or(call);
        match self {
            CoreFlaw::NoSuchCall { .. } => self,
            CoreFlaw::Twice { call } => CoreFlaw::Twice { call: name(call) },
            CoreFlaw::Unknown { call } => CoreFlaw::Unknown { call: name(call) },
            CoreFlaw::Explained { order } => CoreFlaw::Explained { order: order.into_iter().map(name).collect() },
            CoreFlaw::Reducible { call, part } => CoreFlaw::Reducible { call: name(call), part },
        }
    }
}

/// Whether calls are a core of a history: no order explains them if the outcome of every other call is unknown. Then no order
/// explains the whole history, since it would explain these calls too. With `minimal`, also whether every call is needed.
///
/// Tries orders, with at most `steps` steps of the specification per question.
///
/// # Errors
/// The first flaw.
pub fn core<S: Spec>(
    spec: &S,
    history: &SpecHistory<S>,
    core: &[u32],
    minimal: bool,
    steps: u64,
) -> Result<CoreCheck, CoreFlaw> {
    let whole = |&call: &u32| Claim { call, answer: true, invoked: true, returned: true };
    let core: Vec<Claim> = core.iter().map(whole).collect();
    let without = |claims: &[Claim], at: usize| {
        let mut claims = claims.to_vec();
        vec![(ALL, {
            claims.remove(at);
            claims
        })]
    };
    decide(spec, history, &core, if minimal { Some(&without) } else { None }, steps)
}

/// As [`core()`], for parts of calls. With `minimal`, also whether every claimed answer and bound is needed.
///
/// # Errors
/// The first flaw.
pub fn claims<S: Spec>(
    spec: &S,
    history: &SpecHistory<S>,
    claims: &[Claim],
    minimal: bool,
    steps: u64,
) -> Result<CoreCheck, CoreFlaw> {
    let less = |claims: &[Claim], at: usize| {
        let Claim { answer, invoked, returned, .. } = claims[at];
        let has_failed = history.calls()[claims[at].call as usize].outcome == Outcome::Failed;
        let mut fewer: Vec<(&'static str, Vec<Claim>)> = Vec::new();
        let mut give_up = |part, less: &dyn Fn(&mut Claim)| {
            let mut claims = claims.to_vec();
            less(&mut claims[at]);
            fewer.push((part, claims));
        };
        if !has_failed {
            // Impossible without a whole call implies impossible without a part of it, so testing the parts suffices.
            if answer {
                give_up("the answer", &|claim| claim.answer = false);
            }
            if invoked {
                give_up("the invocation", &|claim| claim.invoked = false);
            }
            if returned {
                give_up("the return", &|claim| claim.returned = false);
            }
        }
        if fewer.is_empty() {
            let mut claims = claims.to_vec();
            claims.remove(at);
            fewer.push((ALL, claims));
        }
        fewer
    };
    decide(spec, history, claims, if minimal { Some(&less) } else { None }, steps)
}

/// The whole call.
const ALL: &str = "all";

/// Weaker claims: all ways to give up a part of the claim at an index.
type Less<'l> = &'l dyn Fn(&[Claim], usize) -> Vec<(&'static str, Vec<Claim>)>;

fn decide<S: Spec>(
    spec: &S,
    history: &SpecHistory<S>,
    claims: &[Claim],
    less: Option<Less<'_>>,
    steps: u64,
) -> Result<CoreCheck, CoreFlaw> {
    let calls = history.calls();
    let mut known = vec![false; calls.len()];
    for &Claim { call, .. } in claims {
        let Some(known) = known.get_mut(call as usize) else {
            return Err(CoreFlaw::NoSuchCall { call, calls: calls.len() });
        };
        if std::mem::replace(known, true) {
            return Err(CoreFlaw::Twice { call });
        }
        if calls[call as usize].outcome == Outcome::Unknown {
            return Err(CoreFlaw::Unknown { call });
        }
    }
    let refuted = match Question::new(spec, history, claims).decide(steps) {
        Decision::Impossible => Finality::Decided,
        Decision::TooLarge => Finality::TooLarge,
        Decision::Explained(order) => return Err(CoreFlaw::Explained { order }),
    };
    let mut irreducible = Finality::Decided;
    let questions = (0..claims.len()).flat_map(|at| {
        let fewer = less.map(|less| less(claims, at)).unwrap_or_default();
        fewer.into_iter().map(move |(part, fewer)| (at, part, fewer))
    });
    for (at, part, fewer) in questions {
        match Question::new(spec, history, &fewer).decide(steps) {
            Decision::Explained(_) => {}
            // The other questions would take as long.
            Decision::TooLarge => {
                irreducible = Finality::TooLarge;
                break;
            }
            Decision::Impossible => return Err(CoreFlaw::Reducible { call: claims[at].call, part }),
        }
    }
    Ok(CoreCheck { refuted, irreducible })
}
