//! Compares what the provided models declare of their operations (forms, effects, keys) with their steps.

use super::*;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The content of a register, owned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Held {
    #[default]
    Absent,
    Number(i64),
    Text(String),
}

impl From<Value<'_>> for Held {
    fn from(value: Value<'_>) -> Held {
        match value {
            Value::Absent => Held::Absent,
            Value::Number(number) => Held::Number(number),
            Value::Text(text) => Held::Text(text.to_owned()),
            Value::List(list) => panic!("{list:?}"),
        }
    }
}

/// What a form declares that the operation does.
fn act(held: &Held, action: Action<'_>) -> Option<Held> {
    match action {
        Action::Nothing => Some(held.clone()),
        Action::Read(value) => (Held::from(value) == *held).then(|| held.clone()),
        Action::FailedCas(value) => (Held::from(value) != *held).then(|| held.clone()),
        Action::Write(value) => Some(value.into()),
        Action::Cas { from, to } => (Held::from(from) == *held).then(|| to.into()),
        Action::Append(more) => match (held, Held::from(more)) {
            (Held::Absent, more) => Some(more),
            (Held::Text(text), Held::Text(more)) => Some(Held::Text(format!("{text}{more}"))),
            other => panic!("{other:?}"),
        },
    }
}

/// Walks through states and compares each step with what the hints say. Returns how many steps had a form, and how many of
/// these were possible.
fn walk<S: Spec>(spec: &S, mut draw: impl FnMut(&mut Rng) -> (S::Operation, Option<S::Answer>)) -> (u32, u32) {
    let mut rng = Rng::with_seed(3);
    let (mut formed, mut possible) = (0, 0);
    for _ in 0..2_000 {
        let mut state = spec.initial();
        let mut registers: BTreeMap<String, Held> = BTreeMap::new();
        for _ in 0..12 {
            let (operation, answer) = draw(&mut rng);
            let next = spec.step(&state, &operation, answer.as_ref());
            match spec.effect(&operation, answer.as_ref()) {
                Effect::Read => assert!(next.as_ref().is_none_or(|next| *next == state), "{operation:?}"),
                Effect::Overwrite => assert!(next.is_some(), "{operation:?}"),
                Effect::Any => {}
            }
            let form = spec.form(&operation, answer.as_ref());
            if let Some(form) = form {
                formed += 1;
                let name = format!("{:?}", form.register);
                let held = registers.entry(name).or_insert_with(|| spec.content(form.register).into());
                // Without a known answer, an operation may have failed.
                let unseen = answer.is_none().then(|| held.clone());
                let held_next = act(held, form.action).or(unseen);
                assert_eq!(held_next.is_some(), next.is_some(), "{operation:?} {answer:?} at {held:?}");
                if let Some(next) = held_next {
                    *held = next;
                    possible += 1;
                }
            }
            // A step without a form may be taken only if it changes nothing that the registers hold.
            if let Some(next) = next
                && (form.is_some() || next == state)
            {
                state = next;
            }
        }
    }
    (formed, possible)
}

fn some<T>(rng: &mut Rng, answer: T) -> Option<T> {
    (rng.u64(..4) > 0).then_some(answer)
}

fn assert_worth((formed, possible): (u32, u32)) {
    assert!(formed > 8_000 && possible > 3_000 && formed - possible > 2_000, "{formed} {possible}");
}

fn value(rng: &mut Rng) -> Option<u8> {
    rng.u64(..3).checked_sub(1).map(|value| value as u8)
}

fn cas_register(rng: &mut Rng) -> (cas_register::Operation<u8>, Option<cas_register::Answer<u8>>) {
    use cas_register::{Answer, Operation};
    let answer = match rng.u64(..6) {
        0 => Answer::Done,
        1 | 2 => Answer::Value(value(rng)),
        n => Answer::Swapped(n == 3),
    };
    let operation = match (rng.u64(..8), &answer) {
        // Some answers belong to another question.
        (0, _) | (_, Answer::Value(_)) => Operation::Read,
        (_, Answer::Done) => Operation::Write(rng.u64(..3) as u8),
        (_, Answer::Swapped(_)) => Operation::Cas(value(rng), rng.u64(..3) as u8),
    };
    if operation == Operation::Read && !matches!(answer, Answer::Value(_)) {
        return (operation, None);
    }
    let answer = some(rng, answer);
    (operation, answer)
}

#[test]
fn registers_do_what_their_forms_say() {
    use register::{Answer, Operation};
    for initial in [None, Some(1)] {
        assert_worth(walk(&CasRegister { initial }, cas_register));
        let keyed = Keyed::<_, &str>::new(CasRegister { initial });
        assert_worth(walk(&keyed, |rng| {
            let key = if rng.u64(..2) == 0 { "a" } else { "b" };
            let (operation, answer) = cas_register(rng);
            (On { key, operation }, answer)
        }));
        assert_worth(walk(&Register { initial }, |rng| match rng.u64(..3) {
            0 => (Operation::Write(rng.u64(..3) as u8), some(rng, Answer::Done)),
            _ => (Operation::Read, Some(Answer::Value(value(rng)))),
        }));
    }
    use multi_register::Access::{Read, Write};
    let transactions = MultiRegister::<u8, u8>::default();
    assert_worth(walk(&transactions, |rng| {
        let key = rng.u64(..2) as u8;
        match rng.u64(..4) {
            0 => (vec![Write(key, rng.u64(..3) as u8)], some(rng, vec![])),
            1 => (vec![Read(0), Read(1)], some(rng, vec![None, None])),
            _ => (vec![Read(key)], Some(vec![value(rng)])),
        }
    }));
}

#[test]
fn texts_do_what_their_forms_say() {
    use kv::{Answer, Entry, Operation};
    const TEXTS: [&str; 5] = ["", "a", "b", "ab", "aa"];
    let text = |rng: &mut Rng| Arc::<str>::from(TEXTS[rng.u64(..5) as usize]);
    for absent_reads_empty in [false, true] {
        assert_worth(walk(&Keyed::<_, u32>::new(Entry { absent_reads_empty }), |rng| {
            let key = rng.u64(..2) as u32;
            let (operation, answer) = match rng.u64(..9) {
                0 => (Operation::Put(text(rng)), some(rng, Answer::Done)),
                1 => (Operation::Append(text(rng)), some(rng, Answer::Done)),
                2 => (Operation::Delete, some(rng, Answer::Done)),
                3 => (Operation::Get, None),
                4 | 5 => (Operation::Get, Some(Answer::Text(None))),
                _ => (Operation::Get, Some(Answer::Text(Some(text(rng))))),
            };
            (On { key, operation }, answer)
        }));
    }
}
