//! From a history to verdicts: a million watch events of fifty informers over ten thousand keys.
//!
//! `RETROGRADE_BENCH_EVENTS` is the number of events (1,000,000), `RETROGRADE_BENCH_ROUNDS` the number of rounds in
//! which reading and checking alternate (5).

mod generator;
mod measure;

use criterion::BenchmarkId;
use generator::watch::{Shape, capture};
use measure::{figure, in_turn, median, ratio};
use retrograde::check::{self, Verdict};
use retrograde::history::{self, Domains, History};
use retrograde::ingest::{FileId, InputFile, ReadOptions};
use retrograde::order::{Order, OrderOptions};

fn load(files: &[InputFile], events: usize) -> History {
    let options = ReadOptions { threads: 1, ..retrograde::read_options() };
    let history = history::load(files.to_vec(), &options, &Domains::default(), &());
    assert_eq!(history.problems.len(), 0, "{:?}", history.problems.first());
    assert!(history.deliveries.len() >= events);
    history
}

/// Every rule, on one core.
fn judge(history: &History) {
    let order = Order::derive(history, &OrderOptions::default());
    let judgement = check::judge(history, &order, &check::Options::default());
    let found = judgement.findings.first().map(|finding| (finding.rule, &finding.summary));
    assert_eq!(judgement.verdict, Verdict::Holds, "{found:?}");
    assert!(judgement.rules.iter().any(|rule| rule.checked > 0));
}

fn main() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .expect("no pool was built before");
    let events = if measure::is_trial() { 5_000 } else { generator::size("RETROGRADE_BENCH_EVENTS", 1_000_000) };
    let shape = Shape { events, keys: (events / 100).max(10), watchers: 50 };
    let files: Vec<InputFile> = capture(1, shape)
        .into_iter()
        .enumerate()
        .map(|(id, (name, bytes))| InputFile::in_memory(FileId(id as u32), &name, bytes))
        .collect();
    let length: usize = files.iter().filter_map(|file| Some(file.bytes.as_ref()?.len())).sum();
    let history = load(&files, events);
    let name = "watch-50-informers";
    let mut criterion = measure::criterion();
    let mut group = criterion.benchmark_group("check");
    group.throughput(criterion::Throughput::Elements(history.deliveries.len() as u64));
    let derive = || Order::derive(&history, &OrderOptions::default());
    group.bench_function(BenchmarkId::new(name, "order"), |b| b.iter_with_large_drop(derive));
    group.bench_function(BenchmarkId::new(name, "order-and-judge"), |b| b.iter(|| judge(&history)));
    group.finish();
    criterion.final_summary();
    if measure::is_trial() {
        return;
    }
    let rounds = generator::size("RETROGRADE_BENCH_ROUNDS", 5);
    let times = in_turn(rounds, &mut [&mut || drop(load(&files, events)), &mut || judge(&history)]);
    let [read, check] = times.as_slice() else { unreachable!("two variants") };
    println!("\n{name}: {} deliveries, {} MB, {rounds} rounds", history.deliveries.len(), length / 1_000_000);
    println!("{:<52} {:>10.2} s", "reading, processor time", median(&read.thread));
    let seconds = median(&check.thread) * 1e6 / events as f64;
    figure("order and all rules, a million events", seconds, "s", "2", seconds < 2.0);
    println!("{:<52} {:>10.2}", "order and all rules, of reading", ratio(&check.thread, &read.thread));
}
