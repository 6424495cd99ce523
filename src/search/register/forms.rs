//! The operations of a history as registers see them, in numbers.

use crate::model::{Action, Spec, Value};
use crate::search::history::{History, Outcome};
use crate::search::room;
use rustc_hash::FxHashMap;

/// What a call does, with values by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::search) enum Deed {
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
    /// The register of each call.
    pub(in crate::search) register: Vec<u32>,
    /// What each call does.
    pub(in crate::search) deed: Vec<Deed>,
    /// What each register holds at first.
    pub(in crate::search) content: Vec<u32>,
    /// The values.
    pub(in crate::search) values: Vec<Value<'h>>,
}

impl<'h> Forms<'h> {
    /// `None` where an operation has no form.
    pub(in crate::search) fn of<S: Spec>(spec: &'h S, history: &'h History<S::Operation, S::Answer>) -> Option<Self> {
        let calls = history.calls();
        let mut values = Numbers::expecting(calls.len());
        let mut registers = Numbers::default();
        let mut forms = Forms {
            register: Vec::with_capacity(calls.len()),
            deed: Vec::with_capacity(calls.len()),
            content: Vec::new(),
            values: Vec::new(),
        };
        for call in calls {
            let answer = match &call.outcome {
                Outcome::Completed { answer, .. } => Some(answer),
                Outcome::Unknown => None,
                Outcome::Failed => {
                    forms.register.push(u32::MAX);
                    forms.deed.push(Deed::Nothing);
                    continue;
                }
            };
            let form = spec.form(&call.operation, answer)?;
            forms.register.push(registers.of(form.register));
            forms.deed.push(match form.action {
                Action::Nothing => Deed::Nothing,
                // Nobody saw an answer that would say anything about the state.
                Action::Read(_) | Action::FailedCas(_) if answer.is_none() => Deed::Nothing,
                Action::Read(value) => Deed::Read(values.of(value)),
                Action::FailedCas(value) => Deed::FailedCas(values.of(value)),
                Action::Write(value) => Deed::Write(values.of(value)),
                Action::Cas { from, to } if from == to => match answer {
                    Some(_) => Deed::Read(values.of(from)),
                    None => Deed::Nothing,
                },
                Action::Cas { from, to } => Deed::Cas(values.of(from), values.of(to)),
                Action::Append(value) => Deed::Append(values.of(value)),
            });
        }
        forms.content = registers.names.iter().map(|&register| values.of(spec.content(register))).collect();
        forms.values = values.names;
        Some(forms)
    }
}

impl Forms<'_> {
    /// Bytes held.
    pub(in crate::search) fn bytes(&self) -> usize {
        room::bytes(&self.register) + room::bytes(&self.deed) + room::bytes(&self.content) + room::bytes(&self.values)
    }
}

/// Values by number.
#[derive(Default)]
struct Numbers<'h> {
    index: FxHashMap<Value<'h>, u32>,
    /// Those of small numbers, which most values are; [`u32::MAX`]: not seen yet.
    small: Vec<u32>,
    names: Vec<Value<'h>>,
}

/// Numbers below this are small.
const SMALL: i64 = 1 << 12;

/// More values than these are not expected.
const EXPECTED: usize = 64;

impl<'h> Numbers<'h> {
    /// With room for the values of so many calls, where these are few.
    fn expecting(calls: usize) -> Self {
        Numbers { names: Vec::with_capacity(calls.min(EXPECTED)), ..Numbers::default() }
    }

    fn of(&mut self, value: Value<'h>) -> u32 {
        let at = match value {
            Value::Absent => 0,
            Value::Number(number @ 0..SMALL) => number as usize + 1,
            _ => return self.by_hash(value),
        };
        if self.small.len() <= at {
            self.small.resize((at + 1).max(64), u32::MAX);
        }
        let known = &mut self.small[at];
        if *known == u32::MAX {
            *known = self.names.len() as u32;
            self.names.push(value);
        }
        *known
    }

    fn by_hash(&mut self, value: Value<'h>) -> u32 {
        if self.index.is_empty() {
            self.index.reserve(self.names.capacity());
        }
        *self.index.entry(value).or_insert_with(|| {
            self.names.push(value);
            self.names.len() as u32 - 1
        })
    }
}
