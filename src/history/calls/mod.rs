//! The calls of an operation log: process, function, object, argument, answer and outcome. The model is applied in a later stage.

mod pairing;
mod rows;
mod run;
mod transactions;
mod tuples;
mod unnamed;
mod values;

pub(super) use pairing::{Batch, Pairing};
pub use rows::CallRows;
pub(super) use run::{outline as outline_of_run, same as same_run};
pub use values::{Value, Values};

use super::ids::{IncarnationId, KeyId, Symbol, ValueId};
use crate::ingest::call::Ending;
use crate::ingest::{Position, Time};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// The content of an operation log.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The calls, in the order of their invocations in the log.
    pub calls: CallRows,
    /// The values in calls.
    pub values: Values,
    /// The model that the log or the caller names.
    pub model: Option<String>,
    /// Number of calls of each function, in the order of their first call.
    pub functions: Vec<Function>,
    /// Number of records that are no calls, such as those of Jepsen's nemesis.
    pub others: u64,
    /// The most by which a later line has an earlier time, in the unit of the times; 0 if times never fall back. Otherwise two
    /// events are ordered only if lines and times agree.
    pub falls_back: i64,
    /// Whether nothing has a time: only the order of each process is known.
    pub is_timeless: bool,
    /// What may be missing, and from which rank.
    pub lost: Option<Lost>,
    /// The keys of objects in the history's table.
    pub keys: FxHashMap<ValueId, KeyId>,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The process that made it.
    pub process: IncarnationId,
    /// The function.
    pub function: Symbol,
    /// The object; none if the log has only one.
    pub key: ValueId,
    /// The argument; none if the log has no such field.
    pub argument: ValueId,
    /// The answer; none if the log has no such field.
    pub answer: ValueId,
    /// The outcome.
    pub ending: Ending,
    /// The moment of the invocation.
    pub invoke: Moment,
    /// The moment of the return; unknown if there is none.
    pub ret: Moment,
}

/// A moment: time, rank in the order, and position in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Rank in the order of the log. Only comparisons of ranks are meaningful.
    pub rank: i64,
    /// The time as it was recorded.
    pub time: Time,
    /// Position in the log.
    pub position: Position,
}

/// Number of calls of one function, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: Symbol,
    /// Calls that succeeded.
    pub ok: u64,
    /// Calls that were answered "no".
    pub refused: u64,
    /// Calls that certainly had no effect.
    pub failed: u64,
    /// Calls of unknown outcome.
    pub unknown: u64,
    /// Answers that are `nil`.
    pub nothing: u64,
}

/// A gap in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The rank of the first event that may follow the gap. Everything below it is complete.
    pub from: i64,
    /// The reason, as part of a sentence.
    pub why: String,
}

impl Calls {
    /// Whether there are no calls, as in a history of another nature.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Records a gap from a rank on.
    pub fn lose(&mut self, from: i64, why: impl FnOnce() -> String) {
        match &mut self.lost {
            Some(lost) => lost.from = lost.from.min(from),
            None => self.lost = Some(Lost { from, why: why() }),
        }
    }

    /// The call in a report: ``read` answered 3``.
    pub fn words(&self, call: &Call, function: &str) -> String {
        let value = |id: ValueId| self.values.brief(id, 60);
        let known = |id: ValueId| id.is_some() && !self.values.is_nil(id);
        let argument = if known(call.argument) { format!(" {}", value(call.argument)) } else { String::new() };
        let answered = match call.ending {
            Ending::Ok if call.answer.is_some() && call.answer != call.argument => {
                format!("answered {}", value(call.answer))
            }
            Ending::Ok if call.answer.is_some() && !known(call.answer) => "answered nil".to_owned(),
            Ending::Ok => "was done".to_owned(),
            Ending::Refused => "was answered no".to_owned(),
            Ending::Fail => "failed".to_owned(),
            Ending::Unknown => "was never answered".to_owned(),
        };
        format!("`{function}{argument}` {answered}")
    }
}

#[cfg(test)]
mod tests;
