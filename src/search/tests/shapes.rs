//! Histories that random drawing seldom finds. Each has a wrong verdict if one condition of a pruning is left out.

use super::super::{Call, Outcome};
use super::random::{Ask, Edit, RegisterAnswer};
use Ask::{Cas, Read, Write};
use RegisterAnswer::{Set, Value, Written};

/// What is called, when it is invoked, and when it returns with which answer.
type Timed<O, A> = (O, i64, Option<(i64, A)>);

/// The condition that a history tests, and the history.
type Shape<O, A> = (&'static str, Vec<Call<O, A>>);

fn calls<O, A>(all: Vec<Timed<O, A>>) -> Vec<Call<O, A>> {
    let call = |(process, (operation, invoke, outcome)): (u32, Timed<O, A>)| Call {
        process,
        operation,
        invoke,
        outcome: outcome.map_or(Outcome::Unknown, |(returned, answer)| Outcome::Completed { returned, answer }),
    };
    (0..).zip(all).map(call).collect()
}

pub(in crate::search) fn of_registers() -> Vec<Shape<Ask, RegisterAnswer>> {
    let done = |ask: Ask, invoke: i64, returned: i64| {
        let answer = match ask {
            Write(_) => Written,
            _ => Set(true),
        };
        (ask, invoke, Some((returned, answer)))
    };
    let read = |value: i64, invoke: i64, returned: i64| (Read, invoke, Some((returned, Value(value))));
    let failed = |ask: Ask, invoke: i64, returned: i64| (ask, invoke, Some((returned, Set(false))));
    let open = |ask: Ask, invoke: i64| (ask, invoke, None);
    vec![
        (
            "a hidden compare-and-set before the last write may serve a read",
            calls(vec![
                read(0, -15, 14),
                read(0, -1, 13),
                done(Write(3), 9, 33),
                open(Cas(3, 2), 19),
                read(2, 37, 55),
                open(Write(0), 49),
                open(Cas(0, 3), 53),
                done(Write(2), 65, 82),
                read(3, 76, 88),
                read(2, 90, 98),
            ]),
        ),
        (
            "an operation used after a write is not available again before the next one",
            calls(vec![
                done(Write(1), 0, 1),
                open(Cas(1, 2), 2),
                read(2, 3, 4),
                done(Write(5), 5, 6),
                done(Cas(2, 3), 7, 20),
                done(Write(1), 7, 20),
                done(Write(9), 8, 9),
                open(Cas(1, 2), 10),
                read(9, 21, 22),
            ]),
        ),
        (
            "a use of a write for a failed compare-and-set counts too",
            calls(vec![
                done(Write(2), 0, 1),
                open(Write(1), 0),
                failed(Cas(2, 3), 2, 3),
                done(Write(2), 4, 5),
                failed(Cas(2, 3), 6, 7),
                done(Write(1), 8, 9),
                read(1, 10, 11),
            ]),
        ),
        (
            "using the newest operation leaves an old one for the gap, using the old one leaves none",
            calls(vec![
                done(Write(1), 0, 10),
                done(Write(1), 0, 30),
                open(Cas(1, 2), 0),
                done(Cas(2, 3), 0, 30),
                done(Cas(1, 3), 0, 30),
                done(Cas(2, 9), 0, 20),
                done(Write(1), 1, 2),
                open(Cas(1, 2), 3),
                read(3, 4, 5),
                read(3, 31, 32),
            ]),
        ),
    ]
}

pub(in crate::search) fn of_texts() -> Vec<Shape<Edit, Option<String>>> {
    let write = |text: &str, invoke: i64, returned: i64| (Edit::Write(text.into()), invoke, Some((returned, None)));
    let append = |text: &str, invoke: i64, returned: i64| (Edit::Append(text.into()), invoke, Some((returned, None)));
    let read = |text: &str, invoke: i64, returned: i64| (Edit::Read, invoke, Some((returned, Some(text.to_owned()))));
    let open = |text: &str, invoke: i64| (Edit::Append(text.into()), invoke, None);
    vec![
        (
            "an append that fits before the last write may be worth more there than one that does not",
            calls(vec![
                write("x", 0, 30),
                append("a", 0, 30),
                read("xa", 0, 30),
                write("y", 1, 2),
                append("a", 3, 40),
                read("ya", 4, 5),
                read("ya", 41, 42),
            ]),
        ),
        (
            "an append that fits before the last write may be worth more there than a crashed one that does not",
            calls(vec![
                write("x", 0, 30),
                append("a", 0, 30),
                open("a", 0),
                read("xaa", 0, 30),
                write("y", 1, 2),
                open("a", 3),
                read("ya", 4, 5),
                read("ya", 31, 32),
            ]),
        ),
        (
            "a write that was pending while the register held its value differs from one that was not",
            calls(vec![
                append("a", -3, 8),
                append("a", 3, 37),
                append("b", 18, 35),
                write("a", 17, 35),
                append("a", 20, 64),
                append("a", 21, 77),
                append("b", 57, 78),
                append("a", 51, 91),
                read("aaaba", 55, 105),
                append("b", 88, 119),
            ]),
        ),
    ]
}
