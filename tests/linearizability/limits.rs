//! Histories that are too large are unknown, with a reason; histories that are only long are decided.

use retrograde::model::{CasRegister, Spec, cas_register};
use retrograde::search::{Budget, Call, History, Limit, Outcome, Verdict, check};
use std::time::Duration;

/// A list that is read whole: it has as many states as orders of its insertions.
struct Diary;

impl Spec for Diary {
    type State = Vec<u8>;
    type Operation = Option<u8>;
    type Answer = Vec<u8>;

    fn initial(&self) -> Vec<u8> {
        Vec::new()
    }

    fn step(&self, lines: &Vec<u8>, line: &Option<u8>, answer: Option<&Vec<u8>>) -> Option<Vec<u8>> {
        let next: Vec<u8> = lines.iter().copied().chain(*line).collect();
        answer.is_none_or(|answer| line.is_some() || *answer == next).then_some(next)
    }

    fn heap_bytes(&self, lines: &Vec<u8>) -> usize {
        lines.capacity()
    }
}

#[test]
fn more_states_than_a_budget_holds_are_unknown_with_the_limit() {
    let write = |process: u8| Call {
        process: u32::from(process),
        operation: Some(process),
        invoke: 0,
        outcome: Outcome::Completed { returned: 10, answer: Vec::new() },
    };
    let mut calls: Vec<_> = (0..20).map(write).collect();
    // A read of a value that was not written, which needs all orders to refute.
    calls.push(Call {
        process: 20,
        operation: None,
        invoke: 20,
        outcome: Outcome::Completed { returned: 30, answer: vec![99] },
    });
    let history = History::new(calls).expect("everybody does one thing");
    let budget = Budget { time: Some(Duration::from_secs(2)), memory: Some(16 << 20), cancel: None };
    match check(&Diary, &history, &budget) {
        Verdict::Unknown(undecided) => {
            assert!(matches!(undecided.limit, Limit::Memory | Limit::Time), "{undecided:?}");
            assert_eq!(undecided.calls.len(), 21);
        }
        other => panic!("20! orders were tried: {other:?}"),
    }
}

fn one_client_that_writes_and_reads(calls: u32, memory: Option<usize>) -> Verdict {
    use cas_register::{Answer, Operation};
    let call = |at: u32| {
        let value = at / 2 % 5;
        let (operation, answer) = match at % 2 {
            0 => (Operation::Write(value), Answer::Done),
            _ => (Operation::Read, Answer::Value(Some(value))),
        };
        let invoke = i64::from(at) * 2;
        Call { process: 0, operation, invoke, outcome: Outcome::Completed { returned: invoke + 1, answer } }
    };
    let history = History::new((0..calls).map(call).collect()).expect("one thing at a time");
    check(&CasRegister::<u32>::default(), &history, &Budget { memory, ..Budget::default() })
}

fn assert_in_order(verdict: Verdict, calls: u32) {
    match verdict {
        Verdict::Linearizable(found) => assert!(found.order.into_iter().eq(0..calls)),
        other => panic!("{:?}", std::mem::discriminant(&other)),
    }
}

fn assert_too_large(verdict: Verdict, calls: u32) {
    match verdict {
        Verdict::Unknown(undecided) => {
            assert_eq!((undecided.limit, undecided.calls.len()), (Limit::Memory, calls as usize));
        }
        other => panic!("{:?}", std::mem::discriminant(&other)),
    }
}

#[test]
fn a_client_that_does_one_thing_after_the_other_is_decided_however_long_it_goes_on() {
    assert_in_order(one_client_that_writes_and_reads(200_000, None), 200_000);
    assert_in_order(one_client_that_writes_and_reads(200_000, Some(64 << 20)), 200_000);
}

#[test]
fn more_calls_than_a_budget_holds_are_unknown_before_anything_is_made_of_them() {
    assert_too_large(one_client_that_writes_and_reads(200_000, Some(1 << 20)), 200_000);
}

#[test]
fn with_any_memory_the_verdict_is_right_or_none() {
    for memory in [8, 12, 16, 24, 32].map(|mb| mb << 20) {
        match one_client_that_writes_and_reads(200_000, Some(memory)) {
            Verdict::Violated(core) => panic!("{core:?}"),
            verdict @ Verdict::Unknown(_) => assert_too_large(verdict, 200_000),
            verdict @ Verdict::Linearizable(_) => assert_in_order(verdict, 200_000),
        }
    }
}

#[test]
#[ignore = "ten million calls: a gigabyte"]
fn ten_million_calls_of_one_client_are_decided() {
    assert_in_order(one_client_that_writes_and_reads(10_000_000, Some(2 << 30)), 10_000_000);
    assert_too_large(one_client_that_writes_and_reads(10_000_000, Some(256 << 20)), 10_000_000);
}
