use super::*;
use crate::model::Spec;
use crate::search::{Call, Claim, History, Outcome, SpecHistory};

/// A register that holds a number. A read is answered with the value, a write without one.
struct Register;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Access {
    Read,
    Write(i32),
}
use Access::{Read, Write};

impl Spec for Register {
    type State = i32;
    type Operation = Access;
    type Answer = i32;

    fn initial(&self) -> i32 {
        0
    }

    fn step(&self, state: &i32, operation: &Access, answer: Option<&i32>) -> Option<i32> {
        match operation {
            Read => answer.is_none_or(|answer| answer == state).then_some(*state),
            Write(value) => Some(*value),
        }
    }
}

fn history(calls: &[(Access, i64, Outcome<i32>)]) -> SpecHistory<Register> {
    let call = |(process, (operation, invoke, outcome)): (usize, &(Access, i64, Outcome<i32>))| Call {
        process: process as u32,
        operation: *operation,
        invoke: *invoke,
        outcome: outcome.clone(),
    };
    History::new(calls.iter().enumerate().map(call).collect()).unwrap()
}

fn answered(returned: i64, answer: i32) -> Outcome<i32> {
    Outcome::Completed { returned, answer }
}

#[test]
fn an_order_that_explains_every_answer_is_a_linearization() {
    let history = history(&[
        (Write(1), 0, answered(10, 0)),
        (Read, 5, answered(20, 0)),
        (Read, 10, answered(30, 1)),
        (Write(2), 0, Outcome::Failed),
        (Write(3), 40, Outcome::Unknown),
        (Read, 50, answered(60, 3)),
    ]);
    assert_eq!(linearization(&Register, &history, &[1, 0, 2, 4, 5]), Ok(()));
    assert_eq!(prefix(&Register, &history, &[1, 0]), Ok(()));
    assert_eq!(prefix(&Register, &history, &[]), Ok(()));
}

#[test]
fn every_way_to_be_no_linearization_is_found() {
    let history = history(&[
        (Write(1), 0, answered(10, 0)),
        (Write(2), 11, answered(20, 0)),
        (Read, 21, answered(30, 2)),
        (Write(2), 0, Outcome::Failed),
        (Write(2), 31, Outcome::Unknown),
    ]);
    for (order, flaw) in [
        (&[0, 1, 2, 9][..], OrderFlaw::NoSuchCall { call: 9, calls: 5 }),
        (&[0, 1, 2, 1], OrderFlaw::Twice { call: 1 }),
        (&[3, 0, 1, 2], OrderFlaw::Failed { call: 3 }),
        (&[0, 1], OrderFlaw::Missing { call: 2, before: None }),
        (&[1, 0, 2], OrderFlaw::Backwards { first: 1, second: 0 }),
        (&[4, 0, 1, 2], OrderFlaw::Backwards { first: 4, second: 0 }),
        (&[0, 2, 1], OrderFlaw::Answer { call: 2, place: 1 }),
    ] {
        assert_eq!(linearization(&Register, &history, order), Err(flaw), "{order:?}");
    }
    assert_eq!(prefix(&Register, &history, &[0, 1]), Ok(()));
    assert_eq!(prefix(&Register, &history, &[1]), Err(OrderFlaw::Missing { call: 0, before: Some(1) }));
}

#[test]
fn calls_that_touch_at_one_time_are_concurrent() {
    let history = history(&[(Write(1), 0, answered(10, 0)), (Read, 10, answered(10, 0))]);
    assert_eq!(linearization(&Register, &history, &[1, 0]), Ok(()));
    let flaw = core(&Register, &history, &[0, 1], true, 100).unwrap_err();
    assert_eq!(flaw, CoreFlaw::Explained { order: vec![1, 0] });
}

#[test]
fn a_stale_read_and_the_writes_that_it_missed_are_a_core() {
    let history = history(&[
        (Write(1), 0, answered(10, 0)),
        (Write(2), 20, answered(30, 0)),
        (Read, 40, answered(50, 1)),
        (Write(3), 0, answered(60, 0)),
    ]);
    let decided = CoreCheck { refuted: Finality::Decided, irreducible: Finality::Decided };
    assert_eq!(core(&Register, &history, &[0, 1, 2], true, 1000), Ok(decided));
    // With an unknown outcome the first write could have happened between the second one and the read.
    assert!(matches!(core(&Register, &history, &[1, 2], true, 1000), Err(CoreFlaw::Explained { .. })));
    assert_eq!(core(&Register, &history, &[0, 1, 2, 3], true, 1000), Err(CoreFlaw::Reducible { call: 3, part: "all" }));
    assert_eq!(core(&Register, &history, &[0, 1, 2, 3], false, 1000), Ok(decided));
}

#[test]
fn a_failed_write_is_in_the_core_where_only_it_would_explain_a_read() {
    let history =
        history(&[(Write(7), 0, Outcome::Failed), (Read, 5, answered(6, 7)), (Write(7), 9, Outcome::Unknown)]);
    let decided = CoreCheck { refuted: Finality::Decided, irreducible: Finality::Decided };
    assert_eq!(core(&Register, &history, &[0, 1], true, 100), Ok(decided));
    let explained = core(&Register, &history, &[1], true, 100);
    assert_eq!(explained, Err(CoreFlaw::Explained { order: vec![0, 1] }));
    assert_eq!(core(&Register, &history, &[0, 1, 2], true, 100), Err(CoreFlaw::Unknown { call: 2 }));
    assert_eq!(core(&Register, &history, &[1, 1], true, 100), Err(CoreFlaw::Twice { call: 1 }));
    assert_eq!(core(&Register, &history, &[8], true, 100), Err(CoreFlaw::NoSuchCall { call: 8, calls: 3 }));
}

#[test]
fn an_operation_that_happens_once_explains_one_answer_only() {
    // Reads of 0, 1, then 0 although 0 was never written: the value cannot return to 0, even if the write of 1 is unknown.
    let history = history(&[
        (Write(1), 0, Outcome::Unknown),
        (Write(2), 0, Outcome::Unknown),
        (Read, 10, answered(11, 1)),
        (Read, 20, answered(21, 2)),
        (Read, 30, answered(31, 1)),
    ]);
    let decided = CoreCheck { refuted: Finality::Decided, irreducible: Finality::Decided };
    assert_eq!(core(&Register, &history, &[2, 3, 4], true, 1000), Ok(decided));
}

#[test]
fn what_is_too_large_is_said_to_be_too_large() {
    let mut calls: Vec<_> = (0..12).map(|value| (Write(value), 0, answered(100, 0))).collect();
    calls.push((Read, 0, answered(100, 77)));
    let history = history(&calls);
    let all: Vec<u32> = (0..13).collect();
    let check = core(&Register, &history, &all, false, 1000).unwrap();
    assert_eq!(check.refuted, Finality::TooLarge);
    assert_eq!(core(&Register, &history, &[12], true, 1000).unwrap().refuted, Finality::Decided);
}

#[test]
fn a_claim_counts_only_as_far_as_it_is_made() {
    let history =
        history(&[(Write(1), 0, answered(10, 0)), (Write(2), 20, answered(30, 0)), (Read, 40, answered(50, 1))]);
    let claim = |call, answer, invoked, returned| Claim { call, answer, invoked, returned };
    let tight = [claim(0, false, false, true), claim(1, false, true, true), claim(2, true, true, false)];
    let decided = CoreCheck { refuted: Finality::Decided, irreducible: Finality::Decided };
    assert_eq!(claims(&Register, &history, &tight, true, 1000), Ok(decided));
    let loose = [claim(0, true, false, true), tight[1], tight[2]];
    assert_eq!(
        claims(&Register, &history, &loose, true, 1000),
        Err(CoreFlaw::Reducible { call: 0, part: "the answer" })
    );
    let early = [tight[0], tight[1], claim(2, true, true, true)];
    assert_eq!(
        claims(&Register, &history, &early, true, 1000),
        Err(CoreFlaw::Reducible { call: 2, part: "the return" })
    );
    let less = [tight[0], claim(1, false, false, true), tight[2]];
    assert!(matches!(claims(&Register, &history, &less, true, 1000), Err(CoreFlaw::Explained { .. })));
}
