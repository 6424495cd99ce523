//! The core model of one register, by register forms. Input: calls on the register. Output: the state after each. Values that no
//! call can distinguish become one, [`SOME_VALUE`]; [`CoreModel::relax`] decides which.

use super::world::{CoreModel, Group, Required, Times, latest};
use crate::model::{Action, RegisterForm, Spec, Value};
use crate::search::history::{Outcome, SpecHistory};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// A value of a register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Content<'h> {
    Absent,
    Number(i64),
    Text(Cow<'h, str>),
    List(Cow<'h, [i64]>),
}

impl<'h> From<Value<'h>> for Content<'h> {
    fn from(value: Value<'h>) -> Self {
        match value {
            Value::Absent => Content::Absent,
            Value::Number(number) => Content::Number(number),
            Value::Text(text) => Content::Text(Cow::Borrowed(text)),
            Value::List(list) => Content::List(Cow::Borrowed(list)),
        }
    }
}

impl Content<'_> {
    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Content::Text(Cow::Owned(text)) => text.len(),
                Content::List(Cow::Owned(list)) => size_of_val(&**list),
                _ => 0,
            }
    }

    /// Whether appends can lead from this to the other.
    fn begins(&self, other: &Content<'_>) -> bool {
        match (self, other) {
            (Content::Absent, Content::Text(_) | Content::List(_)) => true,
            (Content::Text(begin), Content::Text(text)) => text.starts_with(&**begin),
            (Content::List(begin), Content::List(list)) => list.starts_with(begin),
            (begin, other) => begin == other,
        }
    }
}

/// An [`Action`] with values by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Nothing,
    Read(u32),
    FailedCas(u32),
    Write(u32),
    Cas(u32, u32),
    Append(u32),
}

/// The calls on one register.
pub(super) struct Registers<'h> {
    contents: Vec<Content<'h>>,
    numbers: FxHashMap<Content<'h>, u32>,
    /// By call: with its answer, and with any answer.
    acts: Vec<(Act, Act)>,
    /// Calls with the same effect with any answer, by invocation.
    classes: Vec<(Act, Group)>,
    class_of: FxHashMap<Act, usize>,
    /// All calls that would write, by invocation.
    writes: Vec<u32>,
    appends: bool,
    /// Values that calls distinguish; `None`: all.
    told: Option<FxHashSet<u32>>,
    /// By value: whether appends lead from it to one of those.
    tells: FxHashMap<u32, bool>,
    bytes: usize,
}

/// A value that no call distinguishes from others.
const SOME_VALUE: u32 = u32::MAX;

impl<'h> Registers<'h> {
    /// `calls`: those that matter, by invocation, all on one register. `None` if one has no form.
    pub(super) fn new<S: Spec>(spec: &'h S, history: &'h SpecHistory<S>, calls: &[u32]) -> Option<Self> {
        let all = history.calls();
        let mut registers = Registers {
            contents: Vec::new(),
            numbers: FxHashMap::default(),
            acts: vec![(Act::Nothing, Act::Nothing); all.len()],
            classes: Vec::new(),
            class_of: FxHashMap::default(),
            writes: Vec::new(),
            appends: false,
            told: None,
            tells: FxHashMap::default(),
            bytes: 0,
        };
        for &at in calls {
            let call = &all[at as usize];
            let relaxed = spec.form(&call.operation, None)?;
            let answered = match &call.outcome {
                Outcome::Completed { answer, .. } => spec.form(&call.operation, Some(answer))?,
                Outcome::Failed | Outcome::Unknown => relaxed,
            };
            if registers.contents.is_empty() {
                // The first value is the initial state, which has number 0.
                registers.number(spec.content(relaxed.register).into());
            }
            let acts = (registers.act(answered), registers.act(relaxed));
            registers.acts[at as usize] = acts;
            registers.appends |= matches!(acts.1, Act::Append(_));
            match acts.1 {
                // An observation without an answer.
                Act::Nothing | Act::Read(_) | Act::FailedCas(_) => continue,
                Act::Write(_) => registers.writes.push(at),
                Act::Cas(..) | Act::Append(_) => {}
            }
            let class = *registers.class_of.entry(acts.1).or_insert_with(|| {
                registers.classes.push((acts.1, Vec::new()));
                registers.classes.len() - 1
            });
            registers.classes[class].1.push(at);
        }
        Some(registers)
    }

    fn number(&mut self, content: Content<'h>) -> u32 {
        let fresh = self.contents.len() as u32;
        let number = *self.numbers.entry(content.clone()).or_insert(fresh);
        if number == fresh {
            self.bytes += 2 * content.bytes();
            self.contents.push(content);
        }
        number
    }

    fn act(&mut self, form: RegisterForm<'h>) -> Act {
        match form.action {
            Action::Nothing => Act::Nothing,
            Action::Read(value) => Act::Read(self.number(value.into())),
            Action::FailedCas(value) => Act::FailedCas(self.number(value.into())),
            Action::Write(value) => Act::Write(self.number(value.into())),
            Action::Cas { from, to } => Act::Cas(self.number(from.into()), self.number(to.into())),
            Action::Append(more) => Act::Append(self.number(more.into())),
        }
    }

    /// The number of a value, or [`SOME_VALUE`] if no call distinguishes it.
    fn seen(&mut self, value: u32) -> u32 {
        let Some(told) = &self.told else { return value };
        if told.contains(&value) || value == SOME_VALUE {
            return value;
        }
        let contents = &self.contents;
        let leads = |value: u32| told.iter().any(|&to| contents[value as usize].begins(&contents[to as usize]));
        let tells = self.appends && *self.tells.entry(value).or_insert_with(|| leads(value));
        if tells { value } else { SOME_VALUE }
    }

    fn appended(&mut self, to: u32, more: u32) -> u32 {
        let joined = match (&self.contents[to as usize], &self.contents[more as usize]) {
            (Content::Text(text), Content::Text(more)) => Content::Text(Cow::Owned(format!("{text}{more}"))),
            (Content::List(list), Content::List(more)) => Content::List(Cow::Owned([&**list, &**more].concat())),
            (_, more) => more.clone(),
        };
        self.number(joined)
    }
}

impl CoreModel for Registers<'_> {
    fn step(&mut self, state: u32, call: u32, known: bool) -> Option<u32> {
        let (answered, relaxed) = self.acts[call as usize];
        let state = self.seen(state);
        match if known { answered } else { relaxed } {
            Act::Nothing => Some(state),
            Act::Read(value) => (self.seen(value) == state).then_some(state),
            Act::FailedCas(value) => (self.seen(value) != state).then_some(state),
            Act::Write(value) => Some(self.seen(value)),
            Act::Cas(from, to) => {
                let fits = self.seen(from) == state && state != SOME_VALUE;
                fits.then(|| self.seen(to))
            }
            Act::Append(_) if state == SOME_VALUE => Some(SOME_VALUE),
            Act::Append(more) => {
                let next = self.appended(state, more);
                Some(self.seen(next))
            }
        }
    }

    /// The distinguished values are those that required calls observe, and those from which optional compare-and-sets lead to one
    /// of them.
    fn relax(&mut self, required: &[Required], known: &[bool]) -> Vec<Group> {
        let mut told = FxHashSet::default();
        for required in required {
            let (answered, relaxed) = self.acts[required.call as usize];
            match if required.answered { answered } else { relaxed } {
                Act::Read(value) | Act::FailedCas(value) | Act::Cas(value, _) => told.insert(value),
                Act::Nothing | Act::Write(_) | Act::Append(_) => false,
            };
        }
        let mut grown = true;
        while std::mem::take(&mut grown) {
            for (act, members) in &self.classes {
                if let Act::Cas(from, to) = *act
                    && (told.contains(&to) || self.appends)
                    && members.iter().any(|&call| !known[call as usize])
                {
                    grown |= told.insert(from);
                }
            }
        }
        self.tells.clear();
        self.told = Some(told);
        // Between two required calls an explanation needs at most one write, the last one, and no value twice. Appends can lead
        // through any number of values.
        let enough = required.len() + 1;
        let mut groups = Vec::new();
        for at in 0..self.classes.len() {
            let act = self.classes[at].0;
            let (counts, bounded) = match act {
                Act::Write(value) => (self.seen(value) != SOME_VALUE, true),
                Act::Cas(from, _) => (self.seen(from) != SOME_VALUE, !self.appends),
                _ => (true, false),
            };
            if !counts {
                continue;
            }
            let others = self.classes[at].1.iter().copied().filter(|&call| !known[call as usize]);
            groups.push(others.take(if bounded { enough } else { usize::MAX }).collect());
        }
        let mut members = Vec::new();
        for at in 0..self.writes.len() {
            let call = self.writes[at];
            if members.len() == enough {
                break;
            }
            let Act::Write(value) = self.acts[call as usize].1 else { continue };
            if !known[call as usize] && self.seen(value) == SOME_VALUE {
                members.push(call);
            }
        }
        groups.push(members);
        groups.retain(|group: &Group| !group.is_empty());
        groups
    }

    fn alike(&mut self, call: u32, known: &[bool], times: &Times, by: i64) -> Vec<u32> {
        let act = self.acts[call as usize].1;
        match act {
            Act::Write(value) if self.seen(value) == SOME_VALUE => {
                let acts = &self.acts;
                let told = self.told.as_ref();
                let same = |call: u32| match acts[call as usize].1 {
                    Act::Write(value) => !known[call as usize] && told.is_none_or(|told| !told.contains(&value)),
                    _ => false,
                };
                latest(&self.writes, times, by, same).collect()
            }
            act => {
                let Some(&class) = self.class_of.get(&act) else { return vec![call] };
                latest(&self.classes[class].1, times, by, |call| !known[call as usize]).collect()
            }
        }
    }

    fn tell_all(&mut self) {
        self.told = None;
    }

    fn happen(&mut self, state: u32, call: u32) -> Option<u32> {
        // A compare-and-set that found another value.
        self.step(state, call, false).or_else(|| Some(self.seen(state)))
    }

    fn overwrites(&self, call: u32) -> bool {
        matches!(self.acts[call as usize].1, Act::Write(_))
    }

    fn is_finite(&self) -> bool {
        !self.appends
    }

    fn changes(&self, call: u32) -> bool {
        matches!(self.acts[call as usize].0, Act::Write(_) | Act::Cas(..) | Act::Append(_))
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
