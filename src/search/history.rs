//! The input of the search: calls with intervals.

use crate::model::Spec;

/// One operation of one process.
#[derive(Clone, Debug)]
pub struct Call<O, A> {
    /// Who asked. A process does one thing at a time.
    pub process: u32,
    /// What it asked for.
    pub operation: O,
    /// When it was sent: nanoseconds, or the number of an event in a log; only the order counts.
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
    /// It certainly did not happen and never will.
    Failed,
    /// Nobody knows: it may have happened at any time from its invocation on, may still happen, or never.
    Unknown,
}

/// Why calls are no history.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// An answer arrived before its request was sent.
    #[error("call {call} returned at {returned}, before it was invoked at {invoke}")]
    ReturnBeforeInvoke {
        /// Index of the call.
        call: usize,
        /// Its begin.
        invoke: i64,
        /// Its end.
        returned: i64,
    },
    /// One process did two things at once.
    #[error("process {process} began call {second} before call {first} had returned")]
    Overlap {
        /// The process.
        process: u32,
        /// Index of the earlier call.
        first: usize,
        /// Index of the later one.
        second: usize,
    },
    /// More calls than indices.
    #[error("{0} calls are more than a history can hold")]
    TooMany(usize),
}

/// The calls of a [`Spec`].
pub type SpecHistory<S> = History<<S as Spec>::Operation, <S as Spec>::Answer>;

/// Calls that were found to be a history.
///
/// **Time.** Intervals are closed: a call that returns at the very time at which another is invoked is concurrent with it,
/// because a recorder that takes both times from one clock of limited resolution cannot tell which came first, and a false
/// order would be a false alarm. A call of no length happened at that time. One process may invoke at the time of its own
/// last return; the two then count as concurrent like any others, so that the order stays one of intervals. Earlier it may
/// not: such a recording is wrong somewhere, and is refused with both calls named. After an unknown outcome a process may
/// go on, while the call stays open for ever.
#[derive(Clone, Debug)]
pub struct History<O, A> {
    calls: Vec<Call<O, A>>,
}

impl<O, A> History<O, A> {
    /// Takes calls in any order.
    ///
    /// # Errors
    /// Where a call ends before it begins, or a process overlaps itself.
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

    /// The calls, in the order in which they were given: their indices name them everywhere.
    pub fn calls(&self) -> &[Call<O, A>] {
        &self.calls
    }
}
