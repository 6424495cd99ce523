//! The operations of a history as registers see them, in numbers.

use crate::model::{Action, Spec, Value};
use crate::search::history::{History, Outcome};
use crate::search::tight_vec;
use rustc_hash::FxHashMap;

/// What a call does, with values by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::search) enum RegisterOp {
    /// Nothing that anybody could see; or it did not happen.
    Nothing,
    Read(u32),
    FailedCas(u32),
    Write(u32),
    Cas(u32, u32),
    Append(u32),
}

/// The calls of a history in which every operation has a form.
pub(in crate::search) struct Forms<'h> {
    /// The register of each call; empty where there is only one.
    register: Vec<u32>,
    /// What each call does.
    pub(in crate::search) deed: Vec<RegisterOp>,
    /// What each register holds at first.
    pub(in crate::search) content: Vec<u32>,
    /// How many values there are.
    pub(in crate::search) count: usize,
    /// The values, where something is appended: else nobody asks what they are.
    pub(in crate::search) values: Vec<Value<'h>>,
}

impl<'h> Forms<'h> {
    /// `None` where an operation has no form.
    pub(in crate::search) fn of<S: Spec>(spec: &'h S, history: &'h History<S::Operation, S::Answer>) -> Option<Self> {
        let mut appends = false;
        let forms = Self::read(spec, history, &mut appends);
        if appends { Self::read(spec, history, &mut appends) } else { forms }
    }

    /// Keeps the values where something is appended; `None` also where that comes as a surprise.
    fn read<S: Spec>(spec: &'h S, history: &'h History<S::Operation, S::Answer>, appends: &mut bool) -> Option<Self> {
        let calls = history.calls();
        let mut values = Numbers::expecting(calls.len(), *appends);
        let mut registers = Numbers::expecting(0, true);
        let mut forms = Forms {
            register: Vec::new(),
            deed: Vec::with_capacity(calls.len()),
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
            let deed = match form.action {
                Action::Nothing => RegisterOp::Nothing,
                // Nobody saw an answer that would say anything about the state.
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
            forms.push(registers.of(form.register), deed, calls.len());
        }
        forms.content = registers.names.iter().flatten().map(|&register| values.of(spec.content(register))).collect();
        forms.count = values.count as usize;
        forms.values = values.names.unwrap_or_default();
        Some(forms)
    }
}

impl Forms<'_> {
    /// Adds one of so many calls.
    fn push(&mut self, register: u32, deed: RegisterOp, calls: usize) {
        if self.register.is_empty() && register != 0 {
            self.register.reserve_exact(calls);
            self.register.resize(self.deed.len(), 0);
        }
        // Most histories are of one register.
        if self.register.capacity() > 0 {
            self.register.push(register);
        }
        self.deed.push(deed);
    }

    /// The register of a call that did not fail.
    pub(in crate::search) fn register(&self, call: u32) -> u32 {
        self.register.get(call as usize).copied().unwrap_or(0)
    }

    /// Bytes held.
    pub(in crate::search) fn bytes(&self) -> usize {
        tight_vec::bytes(&self.register)
            + tight_vec::bytes(&self.deed)
            + tight_vec::bytes(&self.content)
            + tight_vec::bytes(&self.values)
    }
}

/// Values by number.
#[derive(Default)]
struct Numbers<'h> {
    index: FxHashMap<Value<'h>, u32>,
    /// Those of small numbers, which most values are; [`u32::MAX`]: not seen yet.
    small: Vec<u32>,
    /// Numbers below this are small.
    below: i64,
    count: u32,
    /// How many are expected, where these are few.
    expected: usize,
    /// The values, where they are kept.
    names: Option<Vec<Value<'h>>>,
}

/// Numbers below this are small in any history, and in a long one those that are not above the number of its calls so many times.
const SMALL: i64 = 1 << 12;
const TIMES: usize = 4;

/// More values than these are not expected.
const EXPECTED: usize = 64;

impl<'h> Numbers<'h> {
    /// For the values of so many calls.
    fn expecting(calls: usize, keeps: bool) -> Self {
        let below = i64::try_from(calls.saturating_mul(TIMES)).map_or(i64::MAX, |below| below.max(SMALL));
        let expected = calls.min(EXPECTED);
        let names = keeps.then(|| Vec::with_capacity(expected));
        Numbers { below, expected, names, ..Numbers::default() }
    }

    /// The number of one that was not seen before.
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
