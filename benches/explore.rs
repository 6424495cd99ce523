//! The explorer: the shipped protocols without a fix, each with its counterexample, and the states of a reflector, on one thread
//! and on two.
//!
//! `RETROGRADE_BENCH_WRITES` is the number of writes beside the reflector (9), `RETROGRADE_BENCH_ROUNDS` the number of
//! rounds (5).

mod measure;

use measure::{figure, median};
use retrograde::explore::{Bounds, End, Exploration, Limits, Machine, PROTOCOLS, explore, read, shipped};
use std::time::Instant;

/// Writes beside the reflector, by default.
const WRITES: u8 = 9;

/// States of all runs of the reflector with that many writes.
const STATES: usize = 1_976_836;

fn reflector(writes: u8) -> Machine {
    let text = shipped("reflector").expect("a shipped protocol");
    let mut protocol = read(text, Some("fresh-first-list")).expect("a protocol without mistakes");
    protocol.set_limits(Limits { writes, crashes: 2, ..protocol.limits() });
    Machine::new(protocol).expect("a machine")
}

/// Every run on a number of threads, and its wall time in seconds.
fn explored(threads: usize, writes: u8) -> (Exploration, f64) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let machine = reflector(writes);
    let start = Instant::now();
    let found = pool.install(|| explore(&machine, Bounds::default()));
    (found, start.elapsed().as_secs_f64())
}

fn main() {
    let (writes, rounds) = match measure::is_trial() {
        true => (5, 1),
        false => (number("RETROGRADE_BENCH_WRITES", WRITES), number("RETROGRADE_BENCH_ROUNDS", 5)),
    };
    for &(name, text) in PROTOCOLS {
        let machine = Machine::new(read(text, None).expect("a protocol")).expect("a machine");
        let start = Instant::now();
        let found = explore(&machine, Bounds::default());
        let seconds = start.elapsed().as_secs_f64();
        let steps: Vec<usize> = found.counterexamples.iter().map(|path| path.as_ref().map_or(0, Vec::len)).collect();
        assert!(found.end == End::AllBroken && steps.iter().all(|steps| *steps > 0), "{name}");
        figure(&format!("{name}: a counterexample of each property"), seconds, "s", "1", seconds < 1.0);
    }
    let (mut on_one, mut on_two) = (Vec::new(), Vec::new());
    let mut states = 0;
    for _ in 0..rounds {
        for (threads, seconds) in [(1, &mut on_one), (2, &mut on_two)] {
            let (found, time) = explored(threads, writes);
            assert_eq!((found.end, found.counterexamples), (End::Exhausted, vec![None]));
            assert!(states == 0 || states == found.states, "the same states on any number of threads");
            states = found.states;
            seconds.push(time);
        }
    }
    assert!(writes != WRITES || states == STATES, "{states} states");
    let rate = |seconds: &[f64]| states as f64 / median(seconds) / 1e6;
    println!("{states} states of the reflector");
    println!("{:<52} {:>10.2} M states/s", "reflector, one thread", rate(&on_one));
    figure("reflector, two threads", rate(&on_two), "M states/s", "1", rate(&on_two) >= 1.0);
    let gain = median(&on_one) / median(&on_two);
    figure("two threads against one", gain, "times", "1.6", gain >= 1.6);
}

fn number<N: std::str::FromStr>(variable: &str, default: N) -> N {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
