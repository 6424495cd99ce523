//! Small random histories, each decided by trying every order.

mod oracle;
mod random;

use super::{Budget, Call, History, Limit, Outcome, Verdict, check};
use crate::model::Spec;
use oracle::{is_linearizable, is_order};
use random::{Queue, Random, Register, queue_history, register_history};
use std::time::Duration;

/// Decides by both ways and looks at the certificate.
fn compare<S: Spec>(spec: &S, calls: Vec<Call<S::Operation, S::Answer>>) -> bool {
    let expected = is_linearizable(spec, &calls);
    let history = History::new(calls).unwrap_or_else(|e| panic!("{e}"));
    match check(spec, &history, &Budget::default()) {
        Verdict::Linearizable(found) => {
            assert!(expected, "no order explains {:#?}", history.calls());
            assert_eq!(
                is_order(spec, history.calls(), &found.order),
                Ok(()),
                "{:?} of {:#?}",
                found.order,
                history.calls()
            );
        }
        Verdict::Violated(core) => {
            assert!(!expected, "some order explains {:#?}", history.calls());
            let calls: Vec<_> = core.calls.iter().map(|&call| history.calls()[call as usize].clone()).collect();
            assert!(
                !is_linearizable(spec, &calls),
                "the core {:?} explains nothing of {:#?}",
                core.calls,
                history.calls()
            );
        }
        Verdict::Unknown(undecided) => panic!("no limit was given: {undecided:?}"),
    }
    expected
}

#[test]
fn random_histories_of_registers_are_decided_like_by_trying_every_order() {
    let mut random = Random(1);
    let right = (0..4000).filter(|_| compare(&Register, register_history(&mut random))).count();
    assert!((1000..3500).contains(&right), "{right} of 4000 are linearizable: too few of one sort");
}

#[test]
fn random_histories_of_queues_are_decided_like_by_trying_every_order() {
    let mut random = Random(2);
    let right = (0..2000).filter(|_| compare(&Queue, queue_history(&mut random))).count();
    assert!((300..1800).contains(&right), "{right} of 2000 are linearizable: too few of one sort");
}

/// A specification of which every step takes a while.
struct Slow;

impl Spec for Slow {
    type State = u64;
    type Operation = u64;
    type Answer = u64;

    fn initial(&self) -> u64 {
        0
    }

    fn step(&self, state: &u64, add: &u64, answer: Option<&u64>) -> Option<u64> {
        std::thread::sleep(Duration::from_millis(1));
        let next = state + add;
        answer.is_none_or(|answer| *answer == next).then_some(next)
    }
}

#[test]
fn a_deadline_ends_a_search_of_slow_steps_and_names_the_calls() {
    let calls = (0..30).map(|at| Call {
        process: at,
        operation: 1 << at,
        invoke: 0,
        outcome: Outcome::Completed { returned: 10, answer: 1 },
    });
    let history = History::new(calls.collect()).unwrap_or_else(|e| panic!("{e}"));
    let budget = Budget { time: Some(Duration::from_millis(20)), ..Budget::default() };
    // Two operations answer as if they had come first: wrong, but proved only by trying.
    match check(&Slow, &history, &budget) {
        Verdict::Unknown(undecided) => {
            assert_eq!(undecided.limit, Limit::Time);
            assert_eq!(undecided.calls.len(), 30);
        }
        Verdict::Violated(_) => {}
        Verdict::Linearizable(_) => panic!("only the first operation can be answered by its own number"),
    }
}

#[test]
fn nothing_happened_is_linearizable() {
    let history = History::new(Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        matches!(check(&Register, &history, &Budget::default()), Verdict::Linearizable(found) if found.order.is_empty())
    );
}
