//! Ten invariants of a rules file over a hundred thousand revisions of ten thousand objects: incremental evaluation
//! against full evaluation at every revision.
//!
//! `RETROGRADE_BENCH_CHANGES` is the number of revisions (100,000), with a tenth as many objects;
//! `RETROGRADE_BENCH_ROUNDS` is the number of evaluations (5).

mod generator;
mod measure;

use criterion::BenchmarkId;
use generator::machines::capture;
use measure::{figure, in_turn, median};
use retrograde::check::invariants::declared::{Failure, Mode, Tally, evaluate};
use retrograde::check::{Evidence, Facts, Limits, Options};
use retrograde::history::{self, Domains, History};
use retrograde::ingest::{FileId, InputFile, ReadOptions};
use retrograde::model::Declarations;
use retrograde::model::expression::deep;
use retrograde::order::{Order, OrderOptions};
use std::sync::Arc;

/// Repetitions of a measurement that is shorter than a tick of the processor clock.
const AGAIN: u32 = 50;

/// Number of times at which two machines have one slot.
const WRONG: usize = 20;

/// Scope, expression, further members.
const INVARIANTS: [(&str, &str, &str); 10] = [
    ("object", "self.spec.memory <= self.spec.memoryLimit", ""),
    ("object", "self.spec.ports.all(p, p > 0 && p < 65536)", ""),
    ("object", "has(self.status.host) && self.status.host.startsWith('h')", ""),
    ("object", "self.status.phase in ['Running', 'Stopped'] && self.spec.image.matches('^[a-z]+$')", ""),
    ("transition", "self.spec.disk >= oldSelf.spec.disk", "transitive = true"),
    ("transition", "self.spec.image == oldSelf.spec.image || self.spec.disk > oldSelf.spec.disk", ""),
    ("live", "objects.size() <= 1", "per = [\"status.host\", \"status.slot\"]"),
    ("live", "objects.size() <= 1", "per = [\"status.address\"]"),
    (
        "live",
        "objects.all(a, objects.all(b, a.metadata.uid == b.metadata.uid || a.status.address != b.status.address))",
        "per = [\"status.host\"]",
    ),
    (
        "live",
        "objects.exists(o, o.status.phase == 'Running')",
        "per = [\"status.host\"]\nwhen = { \"metadata.labels.tier\" = [\"gold\"] }",
    ),
];

fn declarations() -> Arc<Declarations> {
    let rule = |(nth, (scope, expression, rest)): (usize, &(&str, &str, &str))| {
        format!(
            "[[invariant]]\nname = \"i{nth}\"\nresource = \"machines.cloud.example.com\"\nscope = \"{scope}\"\nexpression = '''{expression}'''\n{rest}\n"
        )
    };
    let text: String = INVARIANTS.iter().enumerate().map(rule).collect();
    Arc::new(Declarations::read("bench.toml", &text).unwrap_or_else(|mistakes| panic!("{mistakes:?}")))
}

struct Scene {
    history: History,
    order: Order,
    options: Options,
    wrong: usize,
}

impl Scene {
    fn of(objects: usize, changes: usize, wrong: usize) -> Scene {
        let declarations = declarations();
        let input = InputFile::in_memory(FileId(0), "machines.jsonl", capture(1, objects, changes, wrong).into_bytes());
        let options = ReadOptions { threads: 1, ..retrograde::read_options_for(&declarations) };
        let history = history::load(vec![input], &options, &Domains::default(), &());
        assert!(history.problems.is_empty() && history.deliveries.len() == changes);
        let order = Order::derive(&history, &OrderOptions::default());
        Scene { history, order, options: Options { declarations, ..Options::default() }, wrong }
    }

    fn evaluated(&self, mode: Mode) -> Vec<Tally> {
        let evidence =
            Evidence { history: &self.history, order: &self.order, options: &self.options, facts: &Facts::default() };
        let tallies = evaluate(&evidence, Limits::default(), mode);
        assert_eq!(tallies.len(), INVARIANTS.len());
        for (nth, tally) in tallies.iter().enumerate() {
            assert!(tally.failed.is_empty() && tally.given_up.is_none(), "i{nth}: {tally:?}");
            // Only the invariant on slots is violated.
            assert_eq!(tally.failures.len(), if nth == 6 { self.wrong } else { 0 }, "i{nth}");
        }
        tallies
    }
}

fn places(tallies: &[Tally]) -> Vec<(usize, u128)> {
    let of = |(nth, tally): (usize, &Tally)| {
        tally.failures.iter().map(move |failure: &Failure| (nth, failure.from.value())).collect::<Vec<_>>()
    };
    tallies.iter().enumerate().flat_map(of).collect()
}

fn main() {
    // On one thread, with the stack that expressions need.
    deep(measured);
}

fn measured() {
    let changes = if measure::is_trial() { 1_000 } else { generator::size("RETROGRADE_BENCH_CHANGES", 100_000) };
    let (small, large) = (Scene::of(40, 200, 3), Scene::of(changes / 10, changes, WRONG));
    let checked: u64 = large.evaluated(Mode::Incremental).iter().map(|tally| tally.checked).sum();
    assert!(checked as usize > 8 * changes, "{checked}");
    // Both modes find the same.
    assert_eq!(places(&small.evaluated(Mode::Incremental)), places(&small.evaluated(Mode::Full)));
    let mut criterion = measure::criterion();
    let mut group = criterion.benchmark_group("invariants");
    for (name, mode) in [("incremental", Mode::Incremental), ("full", Mode::Full)] {
        group.bench_function(BenchmarkId::new("ten-over-200-revisions-of-40", name), |b| {
            b.iter(|| small.evaluated(mode))
        });
    }
    group.finish();
    criterion.final_summary();
    if measure::is_trial() {
        return;
    }
    let rounds = generator::size("RETROGRADE_BENCH_ROUNDS", 5);
    let times = in_turn(rounds, &mut [&mut || drop(large.evaluated(Mode::Incremental))]);
    println!(
        "\nten invariants, {changes} revisions of {} objects: {checked} evaluations counted, {rounds} rounds",
        changes / 10
    );
    let seconds = median(&times[0].thread) * 1e5 / changes as f64;
    figure("ten invariants over 100,000 revisions", seconds, "s", "5", seconds < 5.0);
    let times = in_turn(
        rounds,
        &mut [&mut || (0..AGAIN).for_each(|_| drop(small.evaluated(Mode::Incremental))), &mut || {
            drop(small.evaluated(Mode::Full))
        }],
    );
    println!(
        "{:<52} {:>10.1}",
        "full, of incremental, 200 revisions of 40 objects",
        f64::from(AGAIN) * measure::ratio(&times[1].thread, &times[0].thread)
    );
}
