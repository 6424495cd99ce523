//! Cores and their reasons, for histories that a reader can follow.

use retrograde::model::{CasRegister, Queue, Spec, cas_register, queue};
use retrograde::search::{
    self, Alternative, Budget, Call, Claim, Core, History, Outcome, SpecHistory, Verdict, check, reason,
};
use retrograde::verify;

type Register = CasRegister<u32>;
use cas_register::Answer::{Done, Swapped, Value};
use cas_register::Operation::{Cas, Read, Write};

/// Step budget of the verifier.
const STEPS: u64 = 30_000;

fn completed<O, A>(operation: O, invoke: i64, returned: i64, answer: A) -> Call<O, A> {
    Call { process: 0, operation, invoke, outcome: Outcome::Completed { returned, answer } }
}

fn open<O, A>(operation: O, invoke: i64, outcome: Outcome<A>) -> Call<O, A> {
    Call { process: 0, operation, invoke, outcome }
}

fn core_of<S: Spec>(spec: &S, calls: Vec<Call<S::Operation, S::Answer>>) -> (SpecHistory<S>, Core) {
    let apart = (0..).zip(calls).map(|(process, call)| Call { process, ..call });
    let history = History::new(apart.collect()).unwrap();
    match check(spec, &history, &Budget::default()) {
        Verdict::Violated(found) => {
            assert!(verify::core(spec, &history, &found.calls, false, STEPS).is_ok());
            let core = search::minimal(spec, &history, &found, &Budget::default());
            (history, core)
        }
        other => panic!("{other:?}"),
    }
}

/// The calls of the core, after the verifier has decided it too.
fn minimal<S: Spec>(spec: &S, calls: Vec<Call<S::Operation, S::Answer>>) -> Vec<u32> {
    let (history, core) = core_of(spec, calls);
    let decided = verify::CoreCheck { refuted: verify::Finality::Decided, irreducible: verify::Finality::Decided };
    assert!(core.minimal);
    assert_eq!(verify::core(spec, &history, &core.calls, true, STEPS), Ok(decided));
    core.calls
}

fn stale_read() -> Vec<Call<cas_register::Operation<u32>, cas_register::Answer<u32>>> {
    vec![
        completed(Write(5), 0, 1, Done),
        completed(Write(1), 2, 10, Done),
        completed(Read, 12, 14, Value(Some(1))),
        completed(Write(2), 20, 30, Done),
        completed(Write(3), 35, 60, Done),
        completed(Read, 40, 50, Value(Some(1))),
        completed(Write(4), 70, 80, Done),
    ]
}

#[test]
fn a_stale_read_is_told_with_the_write_that_it_missed_and_the_one_that_it_saw() {
    assert_eq!(minimal(&Register::default(), stale_read()), [1, 3, 5]);
}

#[test]
fn the_reason_of_a_stale_read_is_what_lies_before_what() {
    let spec = Register::default();
    let (history, core) = core_of(&spec, stale_read());
    let reason = reason(&spec, &history, &core, &Budget::default());
    let claim = |call, answer, invoked, returned| Claim { call, answer, invoked, returned };
    assert_eq!(reason.claims, [claim(1, false, false, true), claim(3, false, true, true), claim(5, true, true, false)]);
    assert_eq!(reason.before, [(1, 3), (3, 5)]);
    assert_eq!(reason.alternatives, [Alternative { order: vec![1, 3], next: vec![5] }]);
    assert!(reason.complete);
}

#[test]
fn every_order_that_real_time_leaves_is_an_alternative() {
    let spec = Register::default();
    let calls = vec![
        completed(Write(1), 0, 10, Done),
        completed(Write(2), 0, 10, Done),
        completed(Read, 20, 30, Value(Some(1))),
        completed(Read, 20, 30, Value(Some(2))),
    ];
    let (history, core) = core_of(&spec, calls);
    let reason = reason(&spec, &history, &core, &Budget::default());
    assert_eq!(core.calls, [0, 1, 2, 3]);
    let alternative = |order: [u32; 3], next| Alternative { order: order.to_vec(), next: vec![next] };
    assert_eq!(reason.alternatives, [alternative([0, 1, 3], 2), alternative([1, 0, 2], 3)]);
}

#[test]
fn a_read_of_what_nobody_wrote_stands_alone() {
    let calls = vec![
        completed(Write(1), 0, 10, Done),
        completed(Read, 5, 15, Value(Some(7))),
        completed(Write(7), 20, 30, Done),
    ];
    assert_eq!(minimal(&Register::default(), calls), [1]);
}

#[test]
fn a_write_that_failed_is_part_of_what_is_wrong_with_its_read() {
    let calls = vec![open(Write(7), 0, Outcome::Failed), completed(Read, 5, 15, Value(Some(7)))];
    assert_eq!(minimal(&Register::default(), calls), [0, 1]);
}

#[test]
fn one_write_of_unknown_outcome_cannot_be_seen_come_and_go_and_come() {
    let calls = vec![
        open(Write(1), 0, Outcome::Unknown),
        open(Write(2), 0, Outcome::Unknown),
        completed(Read, 10, 11, Value(Some(1))),
        completed(Read, 12, 13, Value(Some(1))),
        completed(Read, 20, 21, Value(Some(2))),
        completed(Read, 30, 31, Value(Some(1))),
    ];
    let core = minimal(&Register::default(), calls);
    assert!(core == [2, 4, 5] || core == [3, 4, 5], "{core:?}");
}

#[test]
fn two_compare_and_sets_of_one_value_cannot_both_succeed() {
    let calls = vec![
        completed(Write(1), 0, 10, Done),
        completed(Cas(Some(1), 2), 20, 40, Swapped(true)),
        completed(Cas(Some(1), 3), 20, 40, Swapped(true)),
        completed(Cas(Some(9), 3), 20, 40, Swapped(false)),
    ];
    assert_eq!(minimal(&Register::default(), calls), [1, 2]);
}

#[test]
fn an_element_leaves_a_queue_once() {
    use queue::Answer::{Done, Element};
    use queue::Operation::{Dequeue, Enqueue};
    let calls = vec![
        completed(Enqueue(1), 0, 10, Done),
        completed(Enqueue(2), 0, 10, Done),
        completed(Dequeue, 20, 30, Element(Some(1))),
        completed(Dequeue, 20, 30, Element(Some(1))),
    ];
    assert_eq!(minimal(&Queue::default(), calls), [2, 3]);
}

#[test]
fn a_long_history_has_a_small_core() {
    let mut calls = Vec::new();
    for at in 0..3_000 {
        let begin = 100 * i64::from(at);
        calls.push(completed(Write(at), begin, begin + 250, Done));
        calls.push(completed(Read, begin + 260, begin + 500, Value(Some(at))));
    }
    // One call is late by many writes.
    let late = 2 * 2_000 + 1;
    calls[late] = completed(Read, 200_260, 200_400, Value(Some(1_950)));
    let (history, core) = core_of(&Register::default(), calls);
    assert!(core.minimal && core.calls.len() <= 3, "{core:?}");
    assert!(core.calls.contains(&(late as u32)), "{core:?}");
    assert!(verify::core(&Register::default(), &history, &core.calls, true, STEPS).is_ok());
}
