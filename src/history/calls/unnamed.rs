//! Logs whose events name no process: a return is that of an open invocation with its function, key and argument.
//!
//! If several equal invocations are open, the log does not say which of them returned, and which never does. All of them
//! begin with the first, so whichever returned, its interval and those of the others are never too short. If different
//! ones may have returned, the log is ambiguous.

use super::super::ids::{Symbol, ValueId};
use super::Moment;
use super::values::{Value, Values};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Open invocations of one function that are compared with a return. A log with more of them is ambiguous.
const COMPARED: usize = 64;

/// What an invocation asks for: its function, key and argument.
pub(super) type Question = (Symbol, ValueId, ValueId);

/// Numbers the processes of events without one, so that each process does one thing at a time.
#[derive(Debug, Default)]
pub(super) struct Unnamed {
    /// Open invocations by question.
    open: FxHashMap<Question, Open>,
    /// The questions with open invocations, by function.
    questions: FxHashMap<Symbol, FxHashSet<Question>>,
    /// Processes that may do the next thing.
    idle: Vec<u32>,
    count: u32,
}

/// Equal invocations that are open.
#[derive(Debug)]
struct Open {
    /// The first invocation since none was open.
    since: Moment,
    /// The processes of those that are open, in the order of their invocations.
    processes: VecDeque<u32>,
    /// The processes of those that returned since.
    returned: Vec<u32>,
}

/// The reason why a return has no invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpaired {
    /// No invocation of the function is open that it may belong to.
    Missing,
    /// Different invocations may have returned.
    Ambiguous,
}

impl Unnamed {
    /// The process of an invocation, and the earliest moment at which it may have been.
    pub fn invoke(&mut self, question: Question, at: Moment) -> (u32, Moment) {
        let process = self.idle.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        let open = self.open.entry(question).or_insert_with(|| {
            self.questions.entry(question.0).or_default().insert(question);
            Open { since: at, processes: Default::default(), returned: Vec::new() }
        });
        open.processes.push_back(process);
        (process, open.since)
    }

    /// Whether the function was invoked.
    pub fn has_invoked(&self, function: Symbol) -> bool {
        self.questions.contains_key(&function)
    }

    /// The process of a return. `repeats`: a return of this function has the argument of its invocation. `lives`: the
    /// process goes on after it.
    pub fn give_back(
        &mut self,
        values: &Values,
        (function, key, value): Question,
        repeats: bool,
        lives: bool,
    ) -> Result<u32, Unpaired> {
        let question = match (function, key, value) {
            asked if repeats && self.open.contains_key(&asked) => asked,
            _ => {
                let asked = self.questions.get(&function).ok_or(Unpaired::Missing)?;
                if asked.len() > COMPARED {
                    return Err(Unpaired::Ambiguous);
                }
                let fits = |(_, of, argument): &&Question| {
                    (!key.is_some() || !of.is_some() || key == *of) && may_answer(values, *argument, value, repeats)
                };
                let mut fitting = asked.iter().filter(fits);
                let first = *fitting.next().ok_or(Unpaired::Missing)?;
                if fitting.next().is_some() {
                    return Err(Unpaired::Ambiguous);
                }
                first
            }
        };
        let open = self.open.get_mut(&question).ok_or(Unpaired::Missing)?;
        let process = open.processes.pop_front().ok_or(Unpaired::Missing)?;
        if lives {
            open.returned.push(process);
        }
        if open.processes.is_empty() {
            // Until now, the interval of a later call of these processes would reach back to `since`.
            self.idle.append(&mut open.returned);
            self.open.remove(&question);
            if let Some(asked) = self.questions.get_mut(&function) {
                asked.remove(&question);
            }
        }
        Ok(process)
    }
}

/// Whether a return with this value may be that of an invocation with this argument.
fn may_answer(values: &Values, argument: ValueId, value: ValueId, repeats: bool) -> bool {
    // A return states what it did by all of its argument, by `true` or by nothing.
    if matches!(values.get(value), Value::Bool(_)) {
        return true;
    }
    let mut compared = vec![(argument, value, repeats)];
    while let Some((argument, value, repeats)) = compared.pop() {
        let is_open = |id: ValueId| !id.is_some() || values.is_nil(id);
        if argument == value || is_open(argument) || is_open(value) {
            continue;
        }
        match (values.get(argument), values.get(value)) {
            // What a list names beside `nil`, such as the key of a read, is repeated by its answer.
            (Value::Sequence(asked), Value::Sequence(told)) if asked.len() == told.len() => {
                compared.extend(asked.iter().zip(told.iter()).map(|(asked, told)| (*asked, *told, true)));
            }
            _ if repeats => return false,
            _ => {}
        }
    }
    true
}
