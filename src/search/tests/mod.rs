//! Small random histories, each compared with a decision by trying every order.

mod oracle;
pub(super) mod random;
pub(super) mod shapes;

use super::check::by_steps_within;
use super::{
    Budget, Call, History, Limit, Outcome, Reductions, SearchConfig, SpecHistory, Thresholds, Verdict, Width, check,
    check_with,
};
use crate::model::Spec;
use oracle::{is_beginning, is_linearizable, is_order};
use random::{
    Ask, Queue, Random, Register, RegisterAnswer, Text, long_history, long_text_history, queue_history,
    register_history, text_history,
};
use rayon::prelude::*;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The configurations of the search by steps.
fn by_steps() -> [SearchConfig; 2] {
    let shipped = SearchConfig { forms: false, ..SearchConfig::default() };
    [shipped, SearchConfig { kinds_in_key: 0, ..shipped }]
}

/// All configurations of the search.
fn ways() -> Vec<SearchConfig> {
    let (all, none) = (Reductions::default(), Reductions::NONE);
    let reductions = [
        all,
        none,
        Reductions { earliest_first: false, ..all },
        Reductions { last_producer: false, ..all },
        Reductions { useless_writes: false, ..all },
        Reductions { supply: false, ..all },
        Reductions { dominance: false, ..all },
        Reductions { forgotten_states: false, ..all },
    ];
    let widths = [None, Some(Width::Beam(1)), Some(Width::Beam(3)), Some(Width::Everything)];
    let shipped = SearchConfig::default();
    let mut ways = by_steps().to_vec();
    for reductions in reductions {
        ways.push(SearchConfig { reductions, ..shipped });
        ways.extend(widths.map(|width| SearchConfig { width, reductions, thresholds: Thresholds::SMALL, ..shipped }));
    }
    ways
}

/// Calls of a history whose orders can all be tried.
const FEW: u64 = 12;

/// Calls of a history that steps alone decide, for comparison with registers.
const MANY: u64 = 24;

/// The configurations that decide such a history fast.
fn small(mut ways: Vec<SearchConfig>) -> Vec<SearchConfig> {
    ways.retain(|way| way.reductions.dominance);
    ways
}

/// Whether a history is linearizable, by trying all orders; for many calls by steps alone. `None` if that takes too long.
fn expect<S: Spec>(spec: &S, history: &SpecHistory<S>) -> Option<bool> {
    if history.calls().len() <= FEW as usize {
        return is_linearizable(spec, history.calls());
    }
    by_steps_within(spec, history, 100_000)
}

/// Decides with these configurations and checks the certificates. Whether the history is linearizable; `None` if that takes too
/// long.
fn compare<S: Spec>(spec: &S, calls: Vec<Call<S::Operation, S::Answer>>, ways: &[SearchConfig]) -> Option<bool> {
    let history = History::new(calls).unwrap_or_else(|e| panic!("{e}"));
    let expected = expect(spec, &history)?;
    let calls = history.calls();
    let mut cores = Vec::new();
    for &way in ways {
        match check_with(spec, &history, &Budget::default(), &way) {
            Verdict::Linearizable(found) => {
                assert!(expected, "{way:?}: no order explains {calls:#?}");
                assert_eq!(is_order(spec, calls, &found.order), Ok(()), "{way:?}: {:?} of {calls:#?}", found.order);
            }
            Verdict::Violated(core) => {
                assert!(!expected, "{way:?}: some order explains {calls:#?}");
                let known = restricted(calls, &core.calls);
                let known = History::new(known).unwrap_or_else(|e| panic!("{e}"));
                assert_ne!(expect(spec, &known), Some(true), "{way:?}: no core: {core:?} of {calls:#?}");
                let begins = is_beginning(spec, calls, &core.longest_prefix);
                assert_eq!(begins, Ok(()), "{way:?}: {core:?} of {calls:#?}");
                cores.push(core.calls);
            }
            Verdict::Unknown(undecided) => panic!("{way:?}: no limit was given: {undecided:?}"),
        }
    }
    assert!(cores.iter().all(|core| *core == cores[0]), "cores differ by configuration: {cores:?} of {calls:#?}");
    Some(expected)
}

/// Draws histories and compares. There must be enough of both verdicts, and few may be skipped.
fn compare_all<S: Spec>(
    spec: &S,
    count: u32,
    mut draw: impl FnMut() -> (Vec<Call<S::Operation, S::Answer>>, Vec<SearchConfig>),
) {
    let (mut right, mut wrong) = (0, 0);
    for _ in 0..count {
        let (calls, ways) = draw();
        match compare(spec, calls, &ways) {
            Some(true) => right += 1,
            Some(false) => wrong += 1,
            None => {}
        }
    }
    assert!(count - right - wrong <= count / 100 + 5, "{} of {count} were skipped", count - right - wrong);
    assert!(right.min(wrong) > count / 12, "{right} of {count} are linearizable, {wrong} are not: too few of one sort");
}

/// The history in which only the answers of `known` calls are known, and the failed calls.
fn restricted<O: Clone, A: Clone>(calls: &[Call<O, A>], known: &[u32]) -> Vec<Call<O, A>> {
    let restrict = |(at, call): (u32, &Call<O, A>)| Call {
        outcome: match call.outcome {
            Outcome::Completed { .. } if !known.contains(&at) => Outcome::Unknown,
            ref outcome => outcome.clone(),
        },
        ..call.clone()
    };
    (0..).zip(calls).map(restrict).collect()
}

#[test]
fn random_histories_of_registers_are_decided_like_by_trying_every_order() {
    let mut random = Random(1);
    compare_all(&Register, 1500, || (register_history(FEW, &mut random), ways()));
}

#[test]
fn histories_of_long_calls_are_decided_like_by_trying_every_order() {
    let mut random = Random(6);
    let ways = ways();
    let mut drawn = Random(7);
    compare_all(&Register, 6_000, || {
        let other = ways[drawn.below(ways.len() as u64) as usize];
        (long_history(FEW, &mut random), vec![SearchConfig::default(), other])
    });
    compare_all(&Text, 3_000, || {
        let other = ways[drawn.below(ways.len() as u64) as usize];
        (long_text_history(FEW, &mut random), vec![SearchConfig::default(), other])
    });
}

#[test]
fn histories_that_tell_conditions_of_reductions_are_decided_like_by_trying_every_order() {
    for (tells, calls) in shapes::of_registers() {
        assert!(compare(&Register, calls, &ways()).is_some(), "{tells}");
    }
    for (tells, calls) in shapes::of_texts() {
        assert!(compare(&Text, calls, &ways()).is_some(), "{tells}");
    }
}

#[test]
fn random_histories_of_texts_are_decided_like_by_trying_every_order() {
    let mut random = Random(3);
    compare_all(&Text, 1500, || (text_history(FEW, &mut random), ways()));
}

#[test]
fn longer_random_histories_are_decided_like_by_steps_alone() {
    let mut random = Random(5);
    let ways = small(ways());
    compare_all(&Register, 150, || (register_history(MANY, &mut random), ways.clone()));
    compare_all(&Text, 150, || (text_history(MANY, &mut random), ways.clone()));
}

/// `HISTORIES=20000000 SEED=1 cargo test --release --lib millions -- --ignored`
#[test]
#[ignore = "minutes: after a change of the search"]
fn millions_of_random_histories_are_decided_like_by_trying_every_order() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (histories, seed): (u32, u64) = (number("HISTORIES").unwrap_or(200_000) as u32, number("SEED").unwrap_or(1));
    let each = 20_000;
    (0..histories.div_ceil(each)).into_par_iter().for_each(|batch| {
        let mut random = Random(seed << 32 | u64::from(batch) << 8);
        let all = ways();
        let mut drawn = Random(!random.0);
        // The default, and three others.
        let mut some = move || {
            let mut some = vec![SearchConfig::default()];
            some.extend((0..3).map(|_| all[drawn.below(all.len() as u64) as usize]));
            some
        };
        match batch % 7 {
            6 => compare_all(&Text, each, || (long_text_history(FEW, &mut random), some())),
            5 => compare_all(&Register, each, || (long_history(FEW, &mut random), some())),
            0 | 1 => compare_all(&Register, each, || (register_history(FEW, &mut random), some())),
            2 => compare_all(&Register, each, || (register_history(MANY, &mut random), small(some()))),
            3 => compare_all(&Text, each, || (text_history(MANY, &mut random), small(some()))),
            _ => compare_all(&Text, each, || (text_history(FEW, &mut random), some())),
        }
    });
}

#[test]
fn verdicts_and_certificates_are_the_same_for_any_number_of_threads() {
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap_or_else(|e| panic!("{e}"));
    let (one, three) = (pool(1), pool(3));
    let mut random = Random(4);
    for _ in 0..300 {
        let history = History::new(register_history(FEW, &mut random)).unwrap_or_else(|e| panic!("{e}"));
        let small = SearchConfig { thresholds: Thresholds::SMALL, ..SearchConfig::default() };
        let decide = || check_with(&Register, &history, &Budget::default(), &small);
        assert_eq!(one.install(decide), three.install(decide), "{:#?}", history.calls());
    }
}

#[test]
fn random_histories_of_queues_are_decided_like_by_trying_every_order() {
    let mut random = Random(2);
    compare_all(&Queue, 2000, || (queue_history(FEW, &mut random), by_steps().to_vec()));
}

/// A specification whose every step takes a while.
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
    // Each answers as if it had come first. That is wrong, but can only be proved by trying.
    match check(&Slow, &history, &budget) {
        Verdict::Unknown(undecided) => {
            assert_eq!(undecided.limit, Limit::Time);
            assert_eq!(undecided.calls.len(), 30);
        }
        Verdict::Violated(_) => {}
        Verdict::Linearizable(_) => panic!("only the first operation can be answered by its own number"),
    }
}

/// A specification that keeps what was appended, in order. Dropping a state takes much longer than computing it.
struct Clinging {
    deadline: Instant,
    /// Dropped states, and those of them that were dropped after the deadline.
    dropped: AtomicU32,
    late: AtomicU32,
}

#[derive(Clone)]
struct Held<'c>(Vec<u32>, &'c Clinging);

impl PartialEq for Held<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Held<'_> {}

impl Hash for Held<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_micros(50));
        self.1.dropped.fetch_add(1, Ordering::Relaxed);
        self.1.late.fetch_add(u32::from(Instant::now() > self.1.deadline), Ordering::Relaxed);
    }
}

impl<'c> Spec for &'c Clinging {
    type State = Held<'c>;
    type Operation = u32;
    type Answer = ();

    fn initial(&self) -> Held<'c> {
        Held(Vec::new(), self)
    }

    /// Call 0 reads a list that no order yields.
    fn step(&self, state: &Held<'c>, append: &u32, _answer: Option<&()>) -> Option<Held<'c>> {
        (*append > 0).then(|| Held(state.0.iter().copied().chain([*append]).collect(), self))
    }
}

#[test]
fn states_that_take_long_to_let_go_of_are_let_go_of_by_the_deadline() {
    let time = Duration::from_millis(500);
    let calls = (0..18).map(|at| Call {
        process: at,
        operation: at,
        invoke: 0,
        outcome: if at == 0 { Outcome::Completed { returned: 10, answer: () } } else { Outcome::Unknown },
    });
    let history = History::new(calls.collect()).unwrap_or_else(|e| panic!("{e}"));
    let clinging = Clinging { deadline: Instant::now() + time, dropped: AtomicU32::new(0), late: AtomicU32::new(0) };
    let verdict = check(&&clinging, &history, &Budget { time: Some(time), ..Budget::default() });
    assert!(matches!(verdict, Verdict::Unknown(undecided) if undecided.limit == Limit::Time));
    let [dropped, late] = [&clinging.dropped, &clinging.late].map(|count| count.load(Ordering::Relaxed));
    // On a busy machine dropping may take longer than measured.
    assert!(dropped > 500 && late < dropped / 2, "{late} of {dropped} states are dropped after the deadline");
}

#[test]
fn nothing_happened_is_linearizable() {
    let history = History::new(Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        matches!(check(&Register, &history, &Budget::default()), Verdict::Linearizable(found) if found.order.is_empty())
    );
}

#[test]
fn calls_in_turn_are_their_own_order_and_unseen_ones_are_used_only_where_they_must_be() {
    let written = |at| Outcome::Completed { returned: at, answer: RegisterAnswer::Written };
    let read = |value, at| Outcome::Completed { returned: at, answer: RegisterAnswer::Value(value) };
    let decide = |seen| {
        let calls = [
            (Ask::Write(1), 0, written(1)),
            (Ask::Write(2), 2, Outcome::Unknown),
            (Ask::Read, 3, read(seen, 4)),
            (Ask::Write(3), 5, written(6)),
            (Ask::Read, 7, read(3, 8)),
        ];
        let call = |(process, (operation, invoke, outcome))| Call { process, operation, invoke, outcome };
        let history = History::new((0..).zip(calls).map(call).collect()).unwrap_or_else(|e| panic!("{e}"));
        match check(&Register, &history, &Budget::default()) {
            Verdict::Linearizable(found) => Ok(found.order),
            Verdict::Violated(core) => Err(core.longest_prefix),
            Verdict::Unknown(undecided) => panic!("{undecided:?}"),
        }
    };
    assert_eq!(decide(1), Ok(vec![0, 2, 3, 4]));
    assert_eq!(decide(2), Ok(vec![0, 1, 2, 3, 4]));
    assert_eq!(decide(3), Err(vec![0]));
}
