//! A core, decided again.

use super::question::{Decision, Question};
use crate::model::Spec;
use crate::search::{Outcome, SpecHistory};

/// Whether a question was decided by trying all orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finality {
    /// All orders were tried.
    Decided,
    /// There were too many.
    TooLarge,
}

/// What deciding a core again came to, where no flaw was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreCheck {
    /// That no order explains its calls.
    pub refuted: Finality,
    /// That it takes every one of them.
    pub irreducible: Finality,
}

/// Why calls are no core.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoreFlaw {
    /// There is no such call.
    #[error("there is no call {call}: the history has {calls}")]
    NoSuchCall {
        /// The index.
        call: u32,
        /// How many calls there are.
        calls: usize,
    },
    /// A call is named twice.
    #[error("call {call} is named twice")]
    Twice {
        /// The call.
        call: u32,
    },
    /// The outcome of a call is unknown, so it shows nothing.
    #[error("the outcome of call {call} is unknown: it shows nothing")]
    Unknown {
        /// The call.
        call: u32,
    },
    /// An order explains the calls.
    #[error("this order explains every call of the core: {order:?}")]
    Explained {
        /// It.
        order: Vec<u32>,
    },
    /// The other calls are enough.
    #[error("call {call} can be left out: no order explains the others either")]
    Reducible {
        /// The call.
        call: u32,
    },
}

/// Whether calls are a core of a history: taking the outcome of every other call for unknown, no order explains them. Then
/// no order explains the whole either, since it would explain these calls too. With `minimal`, also that this takes every
/// one of them.
///
/// Decided by trying orders, at most `steps` steps of the specification for each of these questions.
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
    let calls = history.calls();
    let mut known = vec![false; calls.len()];
    for &call in core {
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
    let refuted = match Question::new(spec, history, &known).decide(steps) {
        Decision::Impossible => Finality::Decided,
        Decision::TooLarge => Finality::TooLarge,
        Decision::Explained(order) => return Err(CoreFlaw::Explained { order }),
    };
    let mut irreducible = Finality::Decided;
    for &call in core.iter().filter(|_| minimal) {
        known[call as usize] = false;
        match Question::new(spec, history, &known).decide(steps) {
            Decision::Explained(_) => {}
            Decision::TooLarge => irreducible = Finality::TooLarge,
            Decision::Impossible => return Err(CoreFlaw::Reducible { call }),
        }
        known[call as usize] = true;
    }
    Ok(CoreCheck { refuted, irreducible })
}
