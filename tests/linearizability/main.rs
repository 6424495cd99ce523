//! The search and the verifier against the definition: small random histories, decided by trying every order.
//!
//! Which bugs this finds: shortcuts that are sound in most histories only.

#[path = "../../benches/generator/chance.rs"]
mod chance;
mod draw;
mod oracle;
mod own;
mod subject;

use chance::Chance;
use rayon::prelude::*;
use retrograde::search::{Outcome, SpecHistory};
use retrograde::verify;
use std::ops::Add;
use subject::Subject;

/// Steps of the specification after which trying every order is given up.
const STEPS: u64 = 300_000;

/// Calls in a history, at most.
const CALLS: usize = 12;

/// What a run came to.
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
    /// Both verdicts are met often enough to mean something, and hardly any history is left out.
    fn assert_telling(&self, name: &str) {
        let all = self.explained + self.impossible + self.skipped;
        assert!(self.explained * 20 > all && self.impossible * 20 > all, "{name}: {self:?}");
        assert!(self.skipped * 100 < all, "{name}: {self:?}");
    }
}

/// Draws histories of a subject, each from its own number, and decides each by definition.
fn over_histories<S: Subject>(
    subject: &S,
    seed: u64,
    number: u64,
    check: impl Fn(&str, &SpecHistory<S::Spec>, bool) + Sync,
) -> Count {
    (0..number)
        .into_par_iter()
        .map(|at| {
            let mut chance = Chance::new(seed ^ at.wrapping_mul(0xD129_0D3E_6F4D_A9E5));
            let history = draw::history(subject, &mut chance, CALLS);
            let Some(expected) = oracle::is_linearizable(subject.spec(), &history, STEPS) else {
                return Count { skipped: 1, ..Count::default() };
            };
            check(&format!("seed {seed}, history {at}: {:#?}", history.calls()), &history, expected);
            Count { explained: u64::from(expected), impossible: u64::from(!expected), skipped: 0 }
        })
        .reduce(Count::default, Count::add)
}

/// The verifier, asked about all calls at once, decides as the oracle does, and its orders are linearizations.
fn verifier_agrees<S: Subject>(name: &str, subject: &S, number: u64) {
    let count = over_histories(subject, 1, number, |shown, history, expected| {
        let calls = history.calls();
        let known = |at: &u32| calls[*at as usize].outcome != Outcome::Unknown;
        let known: Vec<u32> = (0..calls.len() as u32).filter(known).collect();
        match verify::core(subject.spec(), history, &known, false, STEPS) {
            Ok(check) => assert!(check.refuted == verify::Finality::TooLarge || !expected, "{shown}"),
            Err(verify::CoreFlaw::Explained { order }) => {
                assert!(expected, "{order:?} {shown}");
                assert_eq!(verify::linearization(subject.spec(), history, &order), Ok(()), "{order:?} {shown}");
                refuses_what_is_none(subject, history, &order, shown);
            }
            Err(flaw) => panic!("{flaw} {shown}"),
        }
    });
    count.assert_telling(name);
}

/// Neighbours of a linearization: most are none, for one reason or another.
fn refuses_what_is_none<S: Subject>(subject: &S, history: &SpecHistory<S::Spec>, order: &[u32], shown: &str) {
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
        let verified = verify::linearization(subject.spec(), history, &other).is_ok();
        assert_eq!(verified, oracle::explains(subject.spec(), history, &other), "{other:?} {shown}");
    }
}

#[test]
fn the_verifier_decides_as_every_order_does() {
    verifier_agrees("bank", &own::Bank, 10_000);
    verifier_agrees("register", &own::PlainRegister, 10_000);
    verifier_agrees("slot", &own::Slot, 10_000);
}
