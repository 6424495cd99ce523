//! Exports of audit logs against the plain log: the same events in each envelope of `tests/exports`, read to records.
//!
//! The speed of an export is its bytes for each second of processor time. `RETROGRADE_BENCH_MB` is the size of the plain
//! log (16), `RETROGRADE_BENCH_ROUNDS` the number of rounds (7). `RETROGRADE_LOG` names a recorded audit log to use
//! instead of the generated one.

mod generator;
mod measure;
#[path = "../tests/exports/wrapping.rs"]
#[allow(dead_code, reason = "the tests also compare the servers and clusters that envelopes name")]
mod wrapping;

use criterion::BenchmarkId;
use generator::audit::AuditLog;
use generator::fields::Bodies;
use measure::{Count, figure, in_turn, ratio};
use retrograde::ingest::{self, FileId, Format, InputFile, ReadOptions};

/// The events in one form.
struct Export {
    name: &'static str,
    file: InputFile,
    bytes: usize,
    events: u64,
}

impl Export {
    fn new(name: &'static str, bytes: Vec<u8>, events: u64) -> Export {
        let length = bytes.len();
        Export { name, file: InputFile::in_memory(FileId(0), name, bytes), bytes: length, events }
    }

    fn read(&self) {
        let options = ReadOptions { threads: 1, ..retrograde::read_options() };
        let files = std::slice::from_ref(&self.file);
        let mut records = 0;
        let start = |_: &InputFile, _: Format| Count(0);
        let reading = ingest::read(files, &options, &(), start, |_, _, batch| records += batch.0);
        assert_eq!((records, reading.problems.len()), (self.events, 0), "{}", self.name);
    }
}

/// The target for an export: events that are text in JSON, rows of CSV, or none.
fn target(name: &str) -> Option<f64> {
    const TEXT: [&str; 12] = [
        "cloudwatch-subscription",
        "cloudwatch-subscription-lines",
        "cloudwatch-filter-log-events",
        "cloudwatch-array",
        "cloudwatch-insights",
        "log-analytics-text",
        "aks-event-hub",
        "aks-storage",
        "otlp",
        "loki-lines",
        "loki-answer",
        "docker",
    ];
    match name {
        name if TEXT.contains(&name) => Some(0.7),
        name if name.ends_with("csv") => Some(0.5),
        _ => None,
    }
}

fn main() {
    let log = match std::env::var_os("RETROGRADE_LOG") {
        Some(path) => std::fs::read_to_string(path).expect("RETROGRADE_LOG is a file of text"),
        None => {
            let megabytes = if measure::is_trial() { 1 } else { generator::size("RETROGRADE_BENCH_MB", 16) };
            String::from_utf8(AuditLog::of_bytes(1, Bodies::Full, megabytes * 1_000_000).0).expect("the log is UTF-8")
        }
    };
    let events: Vec<&str> = log.lines().collect();
    let count = events.len() as u64;
    let plain = Export::new("plain", log.clone().into_bytes(), count);
    let wrapped = wrapping::ALL.iter().map(|way| Export::new(way.name, (way.wrap)(&events, "server-a"), count));
    let exports: Vec<Export> = wrapped.collect();

    let mut criterion = measure::criterion();
    let mut group = criterion.benchmark_group("exports");
    for export in std::iter::once(&plain).chain(&exports) {
        group.throughput(measure::bytes(export.bytes));
        group.bench_function(BenchmarkId::from_parameter(export.name), |b| b.iter(|| export.read()));
    }
    group.finish();
    criterion.final_summary();
    if measure::is_trial() {
        return;
    }
    let rounds = generator::size("RETROGRADE_BENCH_ROUNDS", 7);
    println!("\n{count} events, {} MB, {rounds} rounds; speed of the plain log is 1", plain.bytes / 1_000_000);
    for export in &exports {
        let times = in_turn(rounds, &mut [&mut || plain.read(), &mut || export.read()]);
        let of_events = ratio(&times[0].thread, &times[1].thread);
        let speed = of_events * export.bytes as f64 / plain.bytes as f64;
        let name = format!("{} ({of_events:.2} by events)", export.name);
        match target(export.name) {
            Some(target) => figure(&name, speed, "", &target.to_string(), speed >= target),
            None => println!("{name:<52} {speed:>10.2}"),
        }
    }
}
