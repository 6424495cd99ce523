//! Isolation levels of transactions: serializable list-append histories, and registers with values that are written once.
//!
//! `RETROGRADE_BENCH_ROUNDS` is the number of rounds (5). Reading the histories is not measured.

mod measure;

use fastrand::Rng;
use measure::{figure, median};
use retrograde::isolation::{Levels, Outcome, Step, Transactions};
use std::collections::VecDeque;
use std::time::Instant;

/// The size of a history.
struct Size {
    transactions: u32,
    steps: u32,
    sessions: u32,
    keys: u32,
}

/// A history of a serializable store: each transaction is at one moment, and up to one of each session runs at a time. Lists
/// are replaced by new ones after 32 elements, as Elle's generator does.
fn history(size: &Size, is_list: bool) -> Transactions {
    let mut dice = Rng::with_seed(7);
    let mut state: Vec<Vec<u32>> = vec![Vec::new(); size.keys as usize];
    let mut active: Vec<u32> = (0..size.keys.min(10)).collect();
    let mut history = Transactions::default();
    let mut ends = vec![0i64; size.sessions as usize];
    let mut running: VecDeque<u32> = (0..size.sessions).collect();
    let mut value = 0;
    for now in 0..i64::from(size.transactions) {
        running.rotate_left(dice.usize(..4));
        let session = running.pop_front().unwrap_or_default();
        running.push_back(session);
        let steps: Vec<Step> = (0..size.steps)
            .map(|_| {
                let key = if is_list { active[dice.usize(..active.len())] } else { dice.u32(..size.keys) };
                let known = &mut state[key as usize];
                if dice.bool() {
                    return match is_list {
                        true => Step::List(key, known.clone()),
                        false => Step::Read(key, known.last().copied()),
                    };
                }
                value += 1;
                known.push(value);
                if !is_list {
                    return Step::Write(key, value);
                }
                if known.len() == 32 {
                    let next = state.len() as u32;
                    state.push(Vec::new());
                    active.iter_mut().filter(|active| **active == key).for_each(|active| *active = next);
                }
                Step::Append(key, value)
            })
            .collect();
        // The moment of a transaction lies between its begin and its end, and each session does one at a time.
        let moment = 100 * now;
        let begin = (moment - dice.i64(0..3_000)).max(ends[session as usize] + 1).min(moment);
        let end = moment + dice.i64(0..40);
        ends[session as usize] = end;
        history.push(session, Some((begin, end)), Outcome::Committed, steps);
    }
    history
}

fn main() {
    let rounds = std::env::var("RETROGRADE_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let (scale, rounds) = if measure::is_trial() { (100, 1) } else { (1, rounds) };
    let cases = [
        ("100,000 transactions on lists", Size { transactions: 100_000, steps: 3, sessions: 10, keys: 10 }, true, 2.0),
        (
            "10,000 transactions of 8 steps",
            Size { transactions: 10_000, steps: 8, sessions: 20, keys: 1_000 },
            false,
            2.0,
        ),
        (
            "1,000,000 steps on registers",
            Size { transactions: 125_000, steps: 8, sessions: 50, keys: 10_000 },
            false,
            10.0,
        ),
    ];
    for (name, size, is_list, limit) in cases {
        let history = history(&Size { transactions: size.transactions / scale, ..size }, is_list);
        let mut times = Vec::new();
        for _ in 0..rounds {
            let start = Instant::now();
            let levels = Levels::of(&history, 10_000_000);
            times.push(start.elapsed().as_secs_f64());
            assert_eq!(levels.strongest(), ["strict-serializable"], "{name}");
        }
        let seconds = median(&times);
        figure(&format!("{name}: all levels"), seconds, "s", "2", seconds < limit);
    }
}
