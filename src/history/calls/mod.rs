//! The operations of an operation log: who asked what of which object when, and what came of it. No model yet.

mod pairing;
mod rows;
mod run;
mod tuples;
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

/// What an operation log holds.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// The calls, in the order of their invocations in the log.
    pub calls: CallRows,
    /// Their values.
    pub values: Values,
    /// The model that the log or the user names.
    pub model: Option<String>,
    /// How often each function was called, in the order of their first call.
    pub functions: Vec<Function>,
    /// Records about somebody else, such as Jepsen's nemesis.
    pub others: u64,
    /// By how much the times of the log fall back at most where later lines have earlier times; 0: nowhere. Only what lines and
    /// times agree about is then taken as order.
    pub falls_back: i64,
    /// What may be missing, and from where on.
    pub lost: Option<Lost>,
    /// The keys of objects among those of the history.
    pub keys: FxHashMap<ValueId, KeyId>,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Who asked.
    pub process: IncarnationId,
    /// What for.
    pub function: Symbol,
    /// Of which object; none where there is only one.
    pub key: ValueId,
    /// With which argument; none where the log has no such field.
    pub argument: ValueId,
    /// What was answered; none where the log has no such field.
    pub answer: ValueId,
    /// How it ended.
    pub ending: Ending,
    /// When it was sent.
    pub invoke: Moment,
    /// When the answer came; unknown where none came.
    pub ret: Moment,
}

/// A time with its place in the order, and in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Place in the order of the log: only comparing it means something.
    pub rank: i64,
    /// The time as it was recorded.
    pub time: Time,
    /// Where it stands.
    pub position: Position,
}

/// How often a function was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: Symbol,
    /// Calls that were answered.
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

/// Something that the log does not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The rank of the first event that may stand behind what is missing: everything below is complete.
    pub from: i64,
    /// Why, as part of a sentence.
    pub why: String,
}

impl Calls {
    /// Whether this is no operation log.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Notes that something is missing from a rank on.
    pub fn lose(&mut self, from: i64, why: impl FnOnce() -> String) {
        match &mut self.lost {
            Some(lost) => lost.from = lost.from.min(from),
            None => self.lost = Some(Lost { from, why: why() }),
        }
    }

    /// The call in words: ``read` answered 3``.
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
