//! From bytes to records and to a history, against a bare loop that parses the same lines into the same struct.
//!
//! `RETROGRADE_BENCH_MB` is the size of the generated log (64), `RETROGRADE_BENCH_ROUNDS` the number of rounds (7).
//! `RETROGRADE_LOAD` is a directory of real audit logs (`*.log`), which are read too.

mod generator;
mod measure;

use criterion::BenchmarkId;
use generator::audit::AuditLog;
use generator::fields::Bodies;
use measure::{Count, figure, in_turn, least, median, ratio};
use retrograde::history::{self, Domains};
use retrograde::ingest::kubernetes::audit;
use retrograde::ingest::{self, FileId, Format, InputFile, ReadOptions};
use std::hint::black_box;
use std::sync::Arc;

/// A log and its counts.
struct Log {
    name: &'static str,
    files: Vec<InputFile>,
    bytes: Vec<Arc<[u8]>>,
    events: u64,
}

fn generated() -> Log {
    let megabytes = if measure::is_trial() { 1 } else { generator::size("RETROGRADE_BENCH_MB", 64) };
    let (text, log) = AuditLog::of_bytes(1, Bodies::Full, megabytes * 1_000_000);
    println!("generated: {} events, {} items, mean {} bytes", log.events, log.items, text.len() as u64 / log.events);
    let bytes: Arc<[u8]> = text.into();
    let file = InputFile::in_memory(FileId(0), "audit.log", bytes.clone());
    Log { name: "audit-generated", files: vec![file], bytes: vec![bytes], events: log.events }
}

fn recorded() -> Option<Log> {
    let Some(directory) = std::env::var_os("RETROGRADE_LOAD") else {
        println!("recorded: skipped, RETROGRADE_LOAD names no directory of audit logs");
        return None;
    };
    let directory = std::fs::read_dir(directory).expect("RETROGRADE_LOAD is a directory");
    let mut paths: Vec<_> = directory.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    assert!(!paths.is_empty(), "RETROGRADE_LOAD has files that end with .log");
    paths.sort();
    // From memory, like the baseline: file access is not compared.
    let bytes: Vec<Arc<[u8]>> =
        paths.iter().map(|path| std::fs::read(path).expect("the file can be read").into()).collect();
    let in_memory = |(nth, bytes): (usize, &Arc<[u8]>)| {
        InputFile::in_memory(FileId(nth as u32), &paths[nth].display().to_string(), bytes.clone())
    };
    let files = bytes.iter().enumerate().map(in_memory).collect();
    let events = bytes.iter().map(|bytes| bare(bytes)).sum();
    Some(Log { name: "audit-recorded", files, bytes, events })
}

/// The baseline: parses every line into the struct of records, and nothing else.
fn bare(bytes: &[u8]) -> u64 {
    let mut events = 0;
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        let line = std::str::from_utf8(&bytes[start..end]).expect("the log is UTF-8");
        let event: audit::Event<'_> = serde_json::from_str(line).expect("the log is JSON");
        black_box(&event);
        events += 1;
        start = end + 1;
    }
    events
}

impl Log {
    fn length(&self) -> usize {
        self.bytes.iter().map(|bytes| bytes.len()).sum()
    }

    fn parse(&self) {
        assert_eq!(self.bytes.iter().map(|bytes| bare(bytes)).sum::<u64>(), self.events);
    }

    /// As `parse`, by two threads that share nothing: the most that two cores can give.
    fn parse_by_two(&self) {
        let halves = |bytes: &Arc<[u8]>| {
            let middle = bytes.len() / 2;
            let cut = memchr::memchr(b'\n', &bytes[middle..]).map_or(bytes.len(), |at| middle + at + 1);
            [(bytes.clone(), 0..cut), (bytes.clone(), cut..bytes.len())]
        };
        let [first, second]: [Vec<_>; 2] =
            [0, 1].map(|half| self.bytes.iter().map(|bytes| halves(bytes)[half].clone()).collect());
        let parse = |parts: Vec<(Arc<[u8]>, std::ops::Range<usize>)>| -> u64 {
            parts.into_iter().map(|(bytes, range)| bare(&bytes[range])).sum()
        };
        let events = std::thread::scope(|scope| {
            let other = scope.spawn(|| parse(second));
            parse(first) + other.join().expect("the other half is parsed")
        });
        assert_eq!(events, self.events);
    }

    fn records(&self, threads: usize) {
        let mut records = 0;
        let options = ReadOptions { threads, ..retrograde::read_options() };
        let start = |_: &InputFile, format: Format| {
            assert_eq!(format, Format::Audit);
            Count(0)
        };
        let reading = ingest::read(&self.files, &options, &(), start, |_, _, batch| records += batch.0);
        assert_eq!((records, reading.problems.len()), (self.events, 0));
    }

    fn history(&self, threads: usize) {
        let options = ReadOptions { threads, ..retrograde::read_options() };
        let history = history::load(self.files.clone(), &options, &Domains::default(), &());
        assert_eq!(history.problems.len(), 0);
        assert!(!history.operations.is_empty() && history.operations.len() as u64 <= self.events);
        black_box(&history);
    }
}

fn main() {
    let logs: Vec<Log> = [Some(generated()), recorded()].into_iter().flatten().collect();
    let mut criterion = measure::criterion();
    for log in &logs {
        let mut group = criterion.benchmark_group("ingest");
        group.throughput(measure::bytes(log.length()));
        group.bench_function(BenchmarkId::new(log.name, "bare-parse"), |b| b.iter(|| log.parse()));
        group.bench_function(BenchmarkId::new(log.name, "records"), |b| b.iter(|| log.records(1)));
        group.bench_function(BenchmarkId::new(log.name, "history"), |b| b.iter(|| log.history(1)));
        group.finish();
    }
    criterion.final_summary();
    if measure::is_trial() {
        return;
    }
    for log in &logs {
        let rounds = generator::size("RETROGRADE_BENCH_ROUNDS", 7);
        let variants: &mut [&mut dyn FnMut()] = &mut [
            &mut || log.parse(),
            &mut || log.records(1),
            &mut || log.history(1),
            &mut || log.history(2),
            &mut || log.parse_by_two(),
        ];
        let times = in_turn(rounds, variants);
        let [bare, records, history, two, bare_two] = times.as_slice() else { unreachable!("five variants") };
        println!("\n{}: {} events, {} MB, {rounds} rounds", log.name, log.events, log.length() / 1_000_000);
        let speed = log.length() as f64 / 1e6 / median(&bare.thread);
        println!("{:<52} {speed:>10.2} MB/s", "bare parse, processor time");
        let to_records = ratio(&bare.thread, &records.thread);
        figure("bytes to records, of the bare parse", to_records, "", "0.85", to_records >= 0.85);
        let to_history = ratio(&bare.thread, &history.thread);
        figure("bytes to history, of the bare parse", to_history, "", "0.6", to_history >= 0.6);
        let scaling = ratio(&history.wall, &two.wall);
        figure("two threads, of one (wall, median)", scaling, "", "1.6", scaling >= 1.6);
        let scaling = least(&history.wall) / least(&two.wall);
        figure("two threads, of one (wall, best)", scaling, "", "1.6", scaling >= 1.6);
        let given = least(&bare.wall) / least(&bare_two.wall);
        println!("{:<52} {given:>10.2}", "what two cores give a bare parse (wall, best)");
    }
}
