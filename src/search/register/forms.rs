//! The calls of a history as register operations with numbered values. Input: a [`Spec`] and a [`History`] of it. Output:
//! [`Forms`], or `None` if an operation has no form. Equal values have equal numbers. The values themselves are kept only if
//! something is appended; to find out, the calls may be read twice.

use crate::model::{Action, Spec, Value};
use crate::search::history::{History, Outcome};
use crate::search::tight_vec;
use rustc_hash::FxHashMap;

/// What a call does to its register, with values by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::search) enum RegisterOp {
    /// It changes nothing and no answer depends on the state; or the call failed.
    Nothing,
    Read(u32),
    FailedCas(u32),
    Write(u32),
    Cas(u32, u32),
    Append(u32),
}

/// The register forms of all calls of a history.
pub(in crate::search) struct Forms<'h> {
    /// By call: its register. Empty if there is only one.
    register: Vec<u32>,
    /// By call: what it does.
    pub(in crate::search) operation: Vec<RegisterOp>,
    /// By register: its initial value.
    pub(in crate::search) content: Vec<u32>,
    /// How many different values there are.
    pub(in crate::search) count: usize,
    /// The values by number. Empty unless something is appended: else only their equality matters.
    pub(in crate::search) values: Vec<Value<'h>>,
}

impl<'h> Forms<'h> {
    /// `None` if an operation has no form.
    pub(in crate::search) fn of<S: Spec>(spec: &'h S, history: &'h History<S::Operation, S::Answer>) -> Option<Self> {
        let mut appends = false;
        let forms = Self::read(spec, history, &mut appends);
        if appends { Self::read(spec, history, &mut appends) } else { forms }
    }

    /// Reads the calls once; values are kept if `appends`. If it meets an append without `appends`, it sets `appends` and returns
    /// `None`.
    fn read<S: Spec>(spec: &'h S, history: &'h History<S::Operation, S::Answer>, appends: &mut bool) -> Option<Self> {
        let calls = history.calls();
        let mut values = Numbers::expecting(calls.len(), *appends);
        let mut registers = Numbers::expecting(0, true);
        let mut forms = Forms {
            register: Vec::new(),
            operation: Vec::with_capacity(calls.len()),
            content: Vec::new(),
            count: 0,
            values: Vec::new(),
        };
        for call in calls {
            let answer = match &call.outcome {
                Outcome::Completed { answer, .. } => Some(answer),
                Outcome::Unknown => None,
                Outcome::Failed => {
                    forms.push(0, RegisterOp::Nothing, calls.len());
                    continue;
                }
            };
            let form = spec.form(&call.operation, answer)?;
            let operation = match form.action {
                Action::Nothing => RegisterOp::Nothing,
                // Without an answer they say nothing about the state.
                Action::Read(_) | Action::FailedCas(_) if answer.is_none() => RegisterOp::Nothing,
                Action::Read(value) => RegisterOp::Read(values.of(value)),
                Action::FailedCas(value) => RegisterOp::FailedCas(values.of(value)),
                Action::Write(value) => RegisterOp::Write(values.of(value)),
                Action::Cas { from, to } if from == to => match answer {
                    Some(_) => RegisterOp::Read(values.of(from)),
                    None => RegisterOp::Nothing,
                },
                Action::Cas { from, to } => RegisterOp::Cas(values.of(from), values.of(to)),
                Action::Append(value) if *appends => RegisterOp::Append(values.of(value)),
                Action::Append(_) => {
                    *appends = true;
                    return None;
                }
            };
            forms.push(registers.of(form.register), operation, calls.len());
        }
        forms.content = registers.names.iter().flatten().map(|&register| values.of(spec.content(register))).collect();
        forms.count = values.count as usize;
        forms.values = values.names.unwrap_or_default();
        Some(forms)
    }
}

impl Forms<'_> {
    /// Adds the form of the next of `calls` calls.
    fn push(&mut self, register: u32, operation: RegisterOp, calls: usize) {
        if self.register.is_empty() && register != 0 {
            self.register.reserve_exact(calls);
            self.register.resize(self.operation.len(), 0);
        }
        // Most histories have one register and need no list.
        if self.register.capacity() > 0 {
            self.register.push(register);
        }
        self.operation.push(operation);
    }

    /// The register of a call that did not fail.
    pub(in crate::search) fn register(&self, call: u32) -> u32 {
        self.register.get(call as usize).copied().unwrap_or(0)
    }

    /// Bytes held.
    pub(in crate::search) fn bytes(&self) -> usize {
        tight_vec::bytes(&self.register)
            + tight_vec::bytes(&self.operation)
            + tight_vec::bytes(&self.content)
            + tight_vec::bytes(&self.values)
    }
}

/// Numbers the values in the order of their first use.
#[derive(Default)]
struct Numbers<'h> {
    index: FxHashMap<Value<'h>, u32>,
    /// The numbers of [`Value::Absent`] (first) and of small integers; [`u32::MAX`] before the first use.
    small: Vec<u32>,
    /// Integers from 0 to below this are small.
    below: i64,
    count: u32,
    /// Capacity of the map and the list, at most [`MAX_RESERVED`].
    expected: usize,
    /// The values by number, if they are kept.
    names: Option<Vec<Value<'h>>>,
}

/// Integers below this are small, or in a long history those below [`SMALL_PER_CALL`] times the number of calls.
const SMALL: i64 = 1 << 12;
const SMALL_PER_CALL: usize = 4;

/// Values to reserve memory for, at most.
const MAX_RESERVED: usize = 64;

impl<'h> Numbers<'h> {
    /// For the values of `calls` calls.
    fn expecting(calls: usize, keeps: bool) -> Self {
        let below = i64::try_from(calls.saturating_mul(SMALL_PER_CALL)).map_or(i64::MAX, |below| below.max(SMALL));
        let expected = calls.min(MAX_RESERVED);
        let names = keeps.then(|| Vec::with_capacity(expected));
        Numbers { below, expected, names, ..Numbers::default() }
    }

    /// Gives a new value its number.
    fn fresh(count: &mut u32, names: &mut Option<Vec<Value<'h>>>, value: Value<'h>) -> u32 {
        if let Some(names) = names {
            names.push(value);
        }
        *count += 1;
        *count - 1
    }

    fn of(&mut self, value: Value<'h>) -> u32 {
        let at = match value {
            Value::Absent => 0,
            Value::Number(number) if (0..self.below).contains(&number) => number as usize + 1,
            _ => return self.by_hash(value),
        };
        if self.small.len() <= at {
            self.small.resize((at + 1).max(64), u32::MAX);
        }
        if self.small[at] == u32::MAX {
            self.small[at] = Self::fresh(&mut self.count, &mut self.names, value);
        }
        self.small[at]
    }

    fn by_hash(&mut self, value: Value<'h>) -> u32 {
        if self.index.is_empty() {
            self.index.reserve(self.expected);
        }
        *self.index.entry(value).or_insert_with(|| Self::fresh(&mut self.count, &mut self.names, value))
    }
}
