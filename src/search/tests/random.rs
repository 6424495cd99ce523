//! Random histories: an execution is drawn and recorded, and sometimes an answer is changed.

use super::super::{Call, Outcome};
use crate::model::{Action, RegisterForm, Spec, Value};

/// splitmix64.
pub(in crate::search) struct Random(pub(in crate::search) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub(in crate::search) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub(in crate::search) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A register that is read, written, and compared and set.
pub(in crate::search) struct Register;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::search) enum Ask {
    Read,
    Write(i64),
    Cas(i64, i64),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::search) enum RegisterAnswer {
    Value(i64),
    Written,
    Set(bool),
}

impl Spec for Register {
    type State = i64;
    type Operation = Ask;
    type Answer = RegisterAnswer;

    fn initial(&self) -> i64 {
        0
    }

    fn step(&self, state: &i64, ask: &Ask, recorded: Option<&RegisterAnswer>) -> Option<i64> {
        let (next, answer) = match *ask {
            Ask::Read => (*state, RegisterAnswer::Value(*state)),
            Ask::Write(value) => (value, RegisterAnswer::Written),
            Ask::Cas(from, to) if *state == from => (to, RegisterAnswer::Set(true)),
            Ask::Cas(..) => (*state, RegisterAnswer::Set(false)),
        };
        recorded.is_none_or(|recorded| *recorded == answer).then_some(next)
    }

    fn form<'a>(&'a self, ask: &'a Ask, recorded: Option<&'a RegisterAnswer>) -> Option<RegisterForm<'a>> {
        let value = Value::Number;
        let action = match (*ask, recorded) {
            (Ask::Read, Some(RegisterAnswer::Value(read))) => Action::Read(value(*read)),
            (Ask::Read, None) => Action::Nothing,
            (Ask::Write(to), Some(RegisterAnswer::Written) | None) => Action::Write(value(to)),
            (Ask::Cas(from, to), Some(RegisterAnswer::Set(true)) | None) => {
                Action::Cas { from: value(from), to: value(to) }
            }
            (Ask::Cas(from, _), Some(RegisterAnswer::Set(false))) => Action::FailedCas(value(from)),
            _ => return None,
        };
        Some(RegisterForm { register: Value::Absent, action })
    }

    fn content<'a>(&'a self, _register: Value<'a>) -> Value<'a> {
        Value::Number(0)
    }
}

/// A text that is read, written, and appended to.
pub(in crate::search) struct Text;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::search) enum Edit {
    Read,
    Write(String),
    Append(String),
}

impl Spec for Text {
    type State = String;
    type Operation = Edit;
    type Answer = Option<String>;

    fn initial(&self) -> String {
        String::new()
    }

    fn step(&self, state: &String, edit: &Edit, recorded: Option<&Option<String>>) -> Option<String> {
        match edit {
            Edit::Read => recorded.is_none_or(|recorded| recorded.as_ref() == Some(state)).then(|| state.clone()),
            Edit::Write(text) => Some(text.clone()),
            Edit::Append(more) => Some(format!("{state}{more}")),
        }
    }

    fn form<'a>(&'a self, edit: &'a Edit, recorded: Option<&'a Option<String>>) -> Option<RegisterForm<'a>> {
        let action = match (edit, recorded) {
            (Edit::Read, Some(Some(read))) => Action::Read(Value::Text(read)),
            (Edit::Read, _) => Action::Nothing,
            (Edit::Write(text), _) => Action::Write(Value::Text(text)),
            (Edit::Append(more), _) => Action::Append(Value::Text(more)),
        };
        Some(RegisterForm { register: Value::Absent, action })
    }

    fn content<'a>(&'a self, _register: Value<'a>) -> Value<'a> {
        Value::Text("")
    }
}

/// A queue, first in, first out. An empty one returns nothing.
pub(in crate::search) struct Queue;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::search) enum Line {
    Put(u8),
    Take,
}

impl Spec for Queue {
    type State = Vec<u8>;
    type Operation = Line;
    type Answer = Option<u8>;

    fn initial(&self) -> Vec<u8> {
        Vec::new()
    }

    fn step(&self, state: &Vec<u8>, line: &Line, answer: Option<&Option<u8>>) -> Option<Vec<u8>> {
        let mut next = state.clone();
        let recorded = match *line {
            Line::Put(item) => {
                next.push(item);
                None
            }
            Line::Take if next.is_empty() => None,
            Line::Take => Some(next.remove(0)),
        };
        answer.is_none_or(|answer| *answer == recorded).then_some(next)
    }
}

/// Draws the calls of two to six clients: what each calls, and when it is invoked, takes effect and returns. Many times are
/// equal, and a call may take no time. A failed call has no effect.
fn record<S: Spec>(
    spec: &S,
    most: u64,
    random: &mut Random,
    mut ask: impl FnMut(&mut Random) -> S::Operation,
    tell: impl Fn(&S::State, &S::Operation) -> S::Answer,
    mut change: impl FnMut(&mut Random, &mut Call<S::Operation, S::Answer>),
) -> Vec<Call<S::Operation, S::Answer>> {
    let clients = 2 + random.below(5);
    let count = 4 + random.below(most - 3) as usize;
    let unknown = [0, 0, 10, 30, 50][random.below(5) as usize];
    let failed = [0, 0, 5][random.below(3) as usize];
    let (pause, before, after) = ([2, 6, 12][random.below(3) as usize], 1 + random.below(12), 1 + random.below(12));
    let mut clock: Vec<i64> = vec![0; clients as usize];
    let mut planned = Vec::new();
    for process in 0..count as u64 {
        let client = (process % clients) as usize;
        let invoke = clock[client] + random.below(pause) as i64;
        let happen = invoke + random.below(before) as i64;
        let returned = happen + random.below(after) as i64;
        clock[client] = returned;
        let (lost, failed) = (random.chance(unknown), random.chance(failed));
        let never = failed || lost && random.chance(50);
        planned.push((happen, process as u32, invoke, returned, ask(random), (lost, failed, never)));
    }
    planned.sort_by_key(|plan| (plan.0, plan.1));
    let mut state = spec.initial();
    let mut calls = Vec::new();
    for (_, process, invoke, returned, operation, (lost, failed, never)) in planned {
        let answer = tell(&state, &operation);
        if !never {
            state = spec.step(&state, &operation, Some(&answer)).unwrap_or_else(|| panic!("a right answer"));
        }
        let outcome = match () {
            () if failed => Outcome::Failed,
            () if lost => Outcome::Unknown,
            () => Outcome::Completed { returned, answer },
        };
        calls.push(Call { process, operation, invoke, outcome });
    }
    if random.chance(75) {
        let at = random.below(calls.len() as u64) as usize;
        change(random, &mut calls[at]);
    }
    calls
}

pub(in crate::search) fn register_history(most: u64, random: &mut Random) -> Vec<Call<Ask, RegisterAnswer>> {
    let values = [2, 3, 5, 0][random.below(4) as usize];
    let cas = random.below(5) * 10;
    let mut fresh = 0;
    let mut written = move |random: &mut Random| {
        fresh += 1;
        if values == 0 { fresh } else { random.below(values) as i64 }
    };
    let any = move |random: &mut Random| random.below(if values == 0 { 5 } else { values }) as i64;
    let ask = |random: &mut Random| match random.below(100) {
        roll if roll < cas => Ask::Cas(any(random), written(random)),
        roll if roll < 60 => Ask::Write(written(random)),
        _ => Ask::Read,
    };
    let tell = |state: &i64, ask: &Ask| match *ask {
        Ask::Read => RegisterAnswer::Value(*state),
        Ask::Write(_) => RegisterAnswer::Written,
        Ask::Cas(from, _) => RegisterAnswer::Set(*state == from),
    };
    record(&Register, most, random, ask, tell, |random, call| {
        if let Outcome::Completed { answer, .. } = &mut call.outcome {
            match answer {
                RegisterAnswer::Value(value) => *value = random.below(6) as i64,
                RegisterAnswer::Set(set) => *set = !*set,
                RegisterAnswer::Written => {}
            }
        }
    })
}

/// Long calls of few values, some of unknown outcome. They are drawn in an order, and each overlaps many neighbours; a few
/// answers are changed. Many pending operations can only be explained right before a write.
pub(in crate::search) fn long_history(most: u64, random: &mut Random) -> Vec<Call<Ask, RegisterAnswer>> {
    let count = 6 + random.below(most - 5);
    let (values, reach) = (2 + random.below(3), 10 + random.below(60));
    let (reads, writes, lost) =
        (20 + random.below(30), 15 + random.below(30), [0, 20, 50, 80][random.below(4) as usize]);
    let mut state = 0;
    let mut calls = Vec::new();
    for at in 0..count {
        let happen = 10 * at as i64;
        let operation = match random.below(100) {
            roll if roll < reads => Ask::Read,
            roll if roll < reads + writes => Ask::Write(random.below(values) as i64),
            // Mostly one that succeeds.
            _ => {
                let from = if random.chance(85) { state } else { random.below(values) as i64 };
                Ask::Cas(from, (from + 1 + random.below(values - 1) as i64) % values as i64)
            }
        };
        let answer = match operation {
            Ask::Read => RegisterAnswer::Value(state),
            Ask::Write(_) => RegisterAnswer::Written,
            Ask::Cas(from, _) => RegisterAnswer::Set(state == from),
        };
        state = Register.step(&state, &operation, Some(&answer)).unwrap_or(state);
        let is_lost = !matches!(operation, Ask::Read) && random.chance(lost);
        let returned = happen + random.below(reach) as i64;
        let outcome = if is_lost { Outcome::Unknown } else { Outcome::Completed { returned, answer } };
        calls.push(Call { process: at as u32, operation, invoke: happen - random.below(reach) as i64, outcome });
    }
    for _ in 0..random.below(5) {
        let at = random.below(count) as usize;
        if let Outcome::Completed { answer: RegisterAnswer::Value(value), .. } = &mut calls[at].outcome {
            *value = random.below(values) as i64;
        }
    }
    calls
}

/// The same for a text. An append has another result wherever it takes effect.
pub(in crate::search) fn long_text_history(most: u64, random: &mut Random) -> Vec<Call<Edit, Option<String>>> {
    let count = 6 + random.below(most - 5);
    let reach = 10 + random.below(60);
    let (reads, writes, lost) = (20 + random.below(30), 20 + random.below(30), [0, 20, 50][random.below(3) as usize]);
    let mut state = String::new();
    let mut calls = Vec::new();
    for at in 0..count {
        let happen = 10 * at as i64;
        let operation = match random.below(100) {
            roll if roll < reads => Edit::Read,
            roll if roll < reads + writes => Edit::Write(["", "a", "b"][random.below(3) as usize].to_owned()),
            _ => Edit::Append(["a", "b"][random.below(2) as usize].to_owned()),
        };
        let answer = matches!(operation, Edit::Read).then(|| state.clone());
        state = Text.step(&state, &operation, Some(&answer)).unwrap_or(state);
        let is_lost = answer.is_none() && random.chance(lost);
        let returned = happen + random.below(reach) as i64;
        let outcome = if is_lost { Outcome::Unknown } else { Outcome::Completed { returned, answer } };
        calls.push(Call { process: at as u32, operation, invoke: happen - random.below(reach) as i64, outcome });
    }
    if random.chance(75) {
        let at = random.below(count) as usize;
        if let Outcome::Completed { answer: Some(text), .. } = &mut calls[at].outcome {
            *text = ["a", "b", "ab", "ba"][random.below(4) as usize].to_owned();
        }
    }
    calls
}

pub(in crate::search) fn queue_history(most: u64, random: &mut Random) -> Vec<Call<Line, Option<u8>>> {
    let ask = |random: &mut Random| if random.chance(50) { Line::Put(random.below(3) as u8) } else { Line::Take };
    let tell = |state: &Vec<u8>, line: &Line| match line {
        Line::Put(_) => None,
        Line::Take => state.first().copied(),
    };
    record(&Queue, most, random, ask, tell, |random, call| {
        if let (Line::Take, Outcome::Completed { answer, .. }) = (call.operation, &mut call.outcome) {
            *answer = random.chance(70).then(|| random.below(3) as u8);
        }
    })
}

pub(in crate::search) fn text_history(most: u64, random: &mut Random) -> Vec<Call<Edit, Option<String>>> {
    let appends = 30 + random.below(3) * 20;
    let piece = |random: &mut Random| ["a", "b", "ab", "ba", "aa"][random.below(5) as usize].to_owned();
    let ask = |random: &mut Random| match random.below(100) {
        roll if roll < appends => Edit::Append(piece(random)),
        roll if roll < appends + 10 => Edit::Write(piece(random)),
        _ => Edit::Read,
    };
    let tell = |state: &String, edit: &Edit| matches!(edit, Edit::Read).then(|| state.clone());
    record(&Text, most, random, ask, tell, |random, call| {
        if let Outcome::Completed { answer: Some(text), .. } = &mut call.outcome {
            match random.below(3) {
                0 => drop(text.pop()),
                1 => text.push('a'),
                _ => *text = text.chars().rev().collect(),
            }
        }
    })
}
