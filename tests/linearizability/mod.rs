//! The search and the verifier against the definition: small random histories, decided by enumeration of all orders.
//!
//! It finds shortcuts that are sound in most histories only.

mod cores;
mod draw;
mod limits;
mod oracle;
mod own;
mod provided;
mod subject;
mod ways;

use crate::chance::Chance;
use crate::support::draws::seeds;
use rayon::ThreadPoolBuilder;
use retrograde::model::Spec;
use retrograde::search::{self, Budget, Call, Core, History, Missing, Outcome, Verdict};
use retrograde::verify;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};
use subject::{Subject, Word};

/// Most specification steps of an enumeration.
const STEPS: u64 = 300_000;

/// Most calls of a history.
const CALLS: usize = 12;

/// Counts of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    explained: u64,
    impossible: u64,
    /// Histories with more orders than the oracle tries.
    skipped: u64,
}

impl Add for Count {
    type Output = Count;
    fn add(self, other: Count) -> Count {
        Count {
            explained: self.explained + other.explained,
            impossible: self.impossible + other.impossible,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl Count {
    /// Both verdicts occur often enough, and few histories are skipped.
    fn assert_telling(&self, name: &str) {
        let all = self.explained + self.impossible + self.skipped;
        assert!(self.explained * 80 > all && self.impossible * 80 > all, "{name}: {self:?}");
        assert!(self.skipped * 100 < all, "{name}: {self:?}");
    }
}

fn subjects() -> Vec<Subject> {
    own::all().into_iter().chain(provided::all()).collect()
}

/// Histories decided in sequence on the same number of threads.
const BLOCK: u64 = 256;

/// Draws histories of a subject, each from its own seed, and decides each by definition. Blocks alternate between one
/// thread and two.
fn over_histories(
    subject: &Subject,
    seed: u64,
    number: u64,
    check: impl Fn(u64, &Shown<'_>, &History<Word, Word>, bool) + Sync,
) -> Count {
    let one = |at: u64| {
        let mut chance = Chance::new(seed ^ at.wrapping_mul(0xD129_0D3E_6F4D_A9E5));
        let history = draw::history(subject, &mut chance, CALLS);
        let Some(expected) = oracle::is_linearizable(subject, &history, STEPS) else {
            return Count { skipped: 1, ..Count::default() };
        };
        let shown = || format!("seed {seed}, history {at}: {:#?}", history.calls());
        check(at, &Shown(&shown), &history, expected);
        Count { explained: u64::from(expected), impossible: u64::from(!expected), skipped: 0 }
    };
    let next = AtomicU64::new(0);
    let work = || {
        let pools = [1, 2].map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"));
        let mut count = Count::default();
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            let histories = block * BLOCK..number.min((block + 1) * BLOCK);
            if histories.is_empty() {
                return count;
            }
            let of_block = || histories.map(one).fold(Count::default(), Count::add);
            count = count + pools[(block % 2) as usize].install(of_block);
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no assertion failed")).fold(Count::default(), Count::add)
    })
}

/// A history for a message, formatted only if needed.
struct Shown<'a>(&'a dyn Fn() -> String);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&(self.0)())
    }
}

/// The verifier, given all calls, decides as the oracle does, and its orders are linearizations.
fn verifier_agrees(subject: &Subject, number: u64) {
    let count = over_histories(subject, 1, number, |_, shown, history, expected| {
        let calls = history.calls();
        let known = |at: &u32| calls[*at as usize].outcome != Outcome::Unknown;
        let known: Vec<u32> = (0..calls.len() as u32).filter(known).collect();
        match verify::core(subject, history, &known, false, STEPS) {
            Ok(check) => assert!(check.refuted == verify::Finality::TooLarge || !expected, "{shown}"),
            Err(verify::CoreFlaw::Explained { order }) => {
                assert!(expected, "{order:?} {shown}");
                assert_eq!(verify::linearization(subject, history, &order), Ok(()), "{order:?} {shown}");
                refuses_what_is_none(subject, history, &order, shown);
            }
            Err(flaw) => panic!("{flaw} {shown}"),
        }
    });
    count.assert_telling(subject.name);
}

/// Neighbours of a linearization; most are no linearizations.
fn refuses_what_is_none(subject: &Subject, history: &History<Word, Word>, order: &[u32], shown: &Shown<'_>) {
    let mut others = Vec::new();
    for at in 0..order.len() {
        let mut other = order.to_vec();
        other.remove(at);
        others.push(other);
        for to in 0..at {
            let mut other = order.to_vec();
            other.swap(at, to);
            others.push(other);
        }
    }
    for call in 0..history.calls().len() as u32 {
        others.extend([0, order.len() / 2, order.len()].map(|at| [&order[..at], &[call], &order[at..]].concat()));
    }
    for other in others {
        let verified = verify::linearization(subject, history, &other).is_ok();
        assert_eq!(verified, oracle::explains(subject, history, &other), "{other:?} {shown}");
    }
}

#[test]
fn the_verifier_decides_as_every_order_does() {
    for subject in subjects() {
        verifier_agrees(&subject, seeds(1_000).end);
    }
}

/// Configurations tried for each history, beside the default one.
const WAYS: u64 = 3;

/// One history in this number gets a minimal core, which takes longer than all the rest.
const MINIMAL: u64 = 16;

/// The search decides as the oracle does in every configuration, and its certificates are right and equal in all.
fn search_agrees(subject: &Subject, seed: u64, number: u64) -> Count {
    let ways = ways::all();
    let count = over_histories(subject, seed, number, |at, shown, history, expected| {
        let others = (0..WAYS).map(|other| &ways[((at * WAYS + other) % ways.len() as u64) as usize]);
        // Without register forms a history has other partitions. If several violate, another one may have the
        // shortest core.
        let mut usual = [None, None];
        for way in std::iter::once(&ways[0]).chain(others) {
            let verdict = search::check_with(subject, history, &Budget::default(), way);
            match &verdict {
                Verdict::Linearizable(found) => {
                    assert!(expected, "{way:?} {:?} {shown}", found.order);
                    let verified = verify::linearization(subject, history, &found.order);
                    assert_eq!(verified, Ok(()), "{way:?} {:?} {shown}", found.order);
                }
                Verdict::Violated(found) => {
                    assert!(!expected, "{way:?} {found:?} {shown}");
                    let verified = verify::prefix(subject, history, &found.longest_prefix);
                    assert_eq!(verified, Ok(()), "{way:?} {found:?} {shown}");
                    let usual = &mut usual[usize::from(way.forms)];
                    match usual {
                        None => core_is_right(subject, history, found, at.is_multiple_of(MINIMAL), shown),
                        Some(usual) => assert_eq!(&found.calls, &*usual, "{way:?} {shown}"),
                    }
                    usual.get_or_insert_with(|| found.calls.clone());
                }
                Verdict::Unknown(undecided) => panic!("{way:?} {undecided:?} {shown}"),
            }
        }
    });
    count.assert_telling(subject.name);
    count
}

/// No order explains a core. With `minimal`, no call can be left out of it.
fn core_is_right(subject: &Subject, history: &History<Word, Word>, found: &Core, minimal: bool, shown: &Shown<'_>) {
    let checked = verify::core(subject, history, &found.calls, false, STEPS);
    assert!(checked.is_ok(), "{checked:?} {found:?} {shown}");
    if minimal {
        let core = search::minimal(subject, history, found, &Budget::default());
        let checked = verify::core(subject, history, &core.calls, core.minimal, STEPS);
        assert!(checked.is_ok() && core.minimal, "{checked:?} {core:?} {shown}");
        // The other calls that would explain it, had they been earlier.
        let explained = |sooner: &dyn Fn(u32) -> bool| {
            let changed = |(at, call): (u32, &Call<Word, Word>)| {
                let (own, invoke) = (core.calls.contains(&at), if sooner(at) { i64::MIN } else { call.invoke });
                match own {
                    true => Call { process: at, ..call.clone() },
                    false => Call { process: at, invoke, outcome: Outcome::Unknown, ..call.clone() },
                }
            };
            let changed = History::new((0..).zip(history.calls()).map(changed).collect());
            oracle::is_linearizable(subject, &changed.unwrap_or_else(|e| panic!("{e} {shown}")), STEPS)
        };
        match search::reason(subject, history, &core, &Budget::default()).others {
            Missing::Open => {}
            Missing::NoHelp => assert_ne!(explained(&|_| true), Some(true), "{core:?} {shown}"),
            Missing::TooLate(late) => {
                let is_late = |at: u32| late.iter().any(|late| late.0 == at);
                assert_ne!(explained(&is_late), Some(false), "{late:?} {core:?} {shown}");
            }
        }
    }
}

/// Draws histories of every subject; three times as many for those whose operations the search knows by form.
#[test]
fn the_search_decides_as_every_order_does() {
    let (drawn, subjects) = (seeds(20_000), subjects());
    let number = drawn.end - drawn.start;
    let weight = |subject: &Subject| if subject.form(&subject.operations[0], None).is_some() { 3 } else { 1 };
    let all: u64 = subjects.iter().map(weight).sum();
    for subject in &subjects {
        let count = search_agrees(subject, drawn.start, (number * weight(subject)).div_ceil(all));
        println!("{}: {count:?}", subject.name);
    }
}

#[test]
fn an_unseen_allocation_is_one_of_any_item_that_was_free() {
    let pools = provided::UnseenAllocations::new();
    let count = over_histories(&pools.drawn, 4, seeds(400).end, |_, shown, history, expected| {
        let mut meant: Vec<Vec<Call<Word, Word>>> = vec![Vec::new()];
        for (at, call) in history.calls().iter().enumerate() {
            let meanings = pools.meanings(call.operation, at).into_iter();
            let calls: Vec<_> = meanings.map(|operation| Call { operation, ..call.clone() }).collect();
            meant = meant
                .iter()
                .flat_map(|before| calls.iter().map(|call| [&before[..], std::slice::from_ref(call)].concat()))
                .collect();
        }
        let explains =
            |calls| oracle::is_linearizable(&pools.meant, &History::new(calls).expect("times are as before"), STEPS);
        let decided: Vec<Option<bool>> = meant.into_iter().map(explains).collect();
        if decided.contains(&Some(true)) || !decided.contains(&None) {
            assert_eq!(decided.contains(&Some(true)), expected, "{shown}");
        }
    });
    count.assert_telling("pool");
}
