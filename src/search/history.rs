//! The input of the search: calls with intervals. [`History::new`] refuses calls that overlap within one process or return before
//! they are invoked.

use crate::model::Spec;

/// One operation of one process.
#[derive(Clone, Debug)]
pub struct Call<O, A> {
    /// The process that called. It makes one call at a time.
    pub process: u32,
    /// What it called.
    pub operation: O,
    /// When it was sent: nanoseconds, or the number of an event in a log. Only the order counts.
    pub invoke: i64,
    /// How it ended.
    pub outcome: Outcome<A>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<A> {
    /// Its answer arrived.
    Completed {
        /// When the answer arrived, on the clock of `invoke`.
        returned: i64,
        /// The answer.
        answer: A,
    },
    /// It certainly had no effect and never will.
    Failed,
    /// Not known: it may have taken effect at any time from its invocation on, may still do so, or never.
    Unknown,
}

/// The reason why calls are not a history. Indices are those of the calls as given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct HistoryError(Flaw);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Flaw {
    #[error("call {call}: expected a return at {invoke} or later, found {returned}; correct the recorded times")]
    ReturnBeforeInvoke { call: usize, invoke: i64, returned: i64 },
    #[error(
        "process {process}: expected call {second} after the return of call {first}, found it before; use a process \
         for each caller"
    )]
    Overlap { process: u32, first: usize, second: usize },
    #[error("expected fewer than 4294967296 calls, found {0}; check parts of the history separately")]
    TooMany(usize),
}

impl HistoryError {
    /// Whether an answer arrived before its request was sent.
    pub fn is_return_before_invoke(&self) -> bool {
        matches!(self.0, Flaw::ReturnBeforeInvoke { .. })
    }

    /// Whether one process made two calls at once.
    pub fn is_overlap(&self) -> bool {
        matches!(self.0, Flaw::Overlap { .. })
    }

    /// Whether there are more calls than indices.
    pub fn is_too_many(&self) -> bool {
        matches!(self.0, Flaw::TooMany(_))
    }
}

/// The calls of a [`Spec`].
pub type SpecHistory<S> = History<<S as Spec>::Operation, <S as Spec>::Answer>;

/// Calls that form a history.
///
/// **Time.** Intervals are closed: a call that returns at the very time at which another is invoked is concurrent with it. A
/// recorder that takes both times from one clock of limited resolution cannot say which came first, and a false order would be a
/// false alarm. The interval of a call may be a single time.
///
/// A process may invoke at the time of its own last return; the two calls then count as concurrent. An earlier invocation is
/// refused with both calls named, because such a recording is wrong somewhere. After an unknown outcome a process may continue,
/// while that call stays pending for ever.
#[derive(Clone, Debug)]
pub struct History<O, A> {
    calls: Vec<Call<O, A>>,
}

impl<O, A> History<O, A> {
    /// Accepts calls in any order.
    ///
    /// # Errors
    /// If a call returns before its invocation, or calls of a process overlap.
    pub fn new(calls: Vec<Call<O, A>>) -> Result<Self, HistoryError> {
        if u32::try_from(calls.len()).is_err() {
            return Err(HistoryError(Flaw::TooMany(calls.len())));
        }
        for (at, call) in calls.iter().enumerate() {
            if let Outcome::Completed { returned, .. } = call.outcome
                && returned < call.invoke
            {
                return Err(HistoryError(Flaw::ReturnBeforeInvoke { call: at, invoke: call.invoke, returned }));
            }
        }
        let mut order: Vec<usize> = (0..calls.len()).collect();
        let end = |call: &Call<O, A>| match call.outcome {
            Outcome::Completed { returned, .. } => returned,
            Outcome::Failed | Outcome::Unknown => call.invoke,
        };
        order.sort_by_key(|&at| (calls[at].process, calls[at].invoke, end(&calls[at])));
        for pair in order.windows(2) {
            let (first, second) = (&calls[pair[0]], &calls[pair[1]]);
            if first.process == second.process && second.invoke < end(first) {
                let flaw = Flaw::Overlap { process: first.process, first: pair[0], second: pair[1] };
                return Err(HistoryError(flaw));
            }
        }
        Ok(History { calls })
    }

    /// The calls in the order given. Their indices name them in every result.
    pub fn calls(&self) -> &[Call<O, A>] {
        &self.calls
    }
}
