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
    /// Answered.
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

/// Why calls are not a history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// An answer arrived before its request was sent.
    #[error("call {call}: expected a return at {invoke} or later, found {returned}; correct the recorded times")]
    ReturnBeforeInvoke {
        /// Index of the call.
        call: usize,
        /// The time of its invocation.
        invoke: i64,
        /// The time of its return.
        returned: i64,
    },
    /// One process made two calls at once.
    #[error("process {process}: call {second} began before call {first} returned; use a process for each caller")]
    Overlap {
        /// The process.
        process: u32,
        /// Index of the earlier call.
        first: usize,
        /// Index of the later one.
        second: usize,
    },
    /// More calls than there are indices.
    #[error("expected fewer than 4294967296 calls, found {0}; check parts of the history separately")]
    TooMany(usize),
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
            return Err(HistoryError::TooMany(calls.len()));
        }
        for (at, call) in calls.iter().enumerate() {
            if let Outcome::Completed { returned, .. } = call.outcome
                && returned < call.invoke
            {
                return Err(HistoryError::ReturnBeforeInvoke { call: at, invoke: call.invoke, returned });
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
                return Err(HistoryError::Overlap { process: first.process, first: pair[0], second: pair[1] });
            }
        }
        Ok(History { calls })
    }

    /// The calls in the order given. Their indices name them in every result.
    pub fn calls(&self) -> &[Call<O, A>] {
        &self.calls
    }
}
