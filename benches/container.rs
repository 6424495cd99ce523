//! Reading a packed history against reading the evidence, and the size of the container.
//!
//! `RETROGRADE_BENCH_MB`, `RETROGRADE_BENCH_ROUNDS` and `RETROGRADE_LOAD` as in `ingest`.

mod generator;
mod measure;

use criterion::BenchmarkId;
use generator::audit::AuditLog;
use generator::fields::Bodies;
use measure::{figure, in_turn, least, median, ratio};
use retrograde::history::snapshot::{self, Packing};
use retrograde::history::{self, Domains, History};
use retrograde::ingest::{self, FileId, InputFile, ReadOptions};
use retrograde::report::{Format, Look, Part, Report};
use std::hint::black_box;

struct Log {
    name: &'static str,
    files: Vec<InputFile>,
    length: u64,
    packed: Vec<u8>,
    /// Rows of the history: operations, items, names, versions.
    rows: [usize; 4],
}

fn rows(history: &History) -> [usize; 4] {
    [history.operations.len(), history.items.len(), history.names.len(), history.attributes.len()]
}

fn report(history: &History) -> Vec<u8> {
    let judgement = retrograde::judge(history, &retrograde::Options::default());
    let mut out = Vec::new();
    let report = Report { histories: vec![Part::of(history, &judgement)] };
    report.write(Format::Json, Look::default(), &mut out).expect("memory can be written");
    out
}

impl Log {
    fn new(name: &'static str, files: Vec<InputFile>) -> Log {
        let mut log = Log { name, files, length: 0, packed: Vec::new(), rows: [0; 4] };
        let history = log.ingest(1);
        log.length = history.files.iter().map(|file| file.bytes).sum();
        log.rows = rows(&history);
        log.packed = log.pack(std::slice::from_ref(&history));
        // Evidence in memory is in no file, so both are judged without lines.
        let mut unpacked = log.unpack();
        unpacked.inputs.clone_from(&history.inputs);
        assert!(report(&unpacked) == report(&history), "the container says what the evidence says");
        log
    }

    fn ingest(&self, threads: usize) -> History {
        let options = ReadOptions { threads, ..retrograde::read_options() };
        history::load(self.files.clone(), &options, &Domains::default(), &())
    }

    fn pack(&self, histories: &[History]) -> Vec<u8> {
        let fields = retrograde::read_options().fields;
        let packing = Packing { fields: &fields, request: "", compress: true };
        snapshot::write(Vec::new(), histories, &packing).expect("memory can be written")
    }

    fn unpack(&self) -> History {
        let fields = retrograde::read_options().fields;
        let unpacked = snapshot::read(&mut &self.packed[..], &fields, None).expect("what was packed can be read");
        let mut histories = unpacked.histories;
        histories.swap_remove(0)
    }

    fn direct(&self) {
        let history = self.ingest(1);
        assert_eq!(rows(&history), self.rows);
        black_box(&history);
    }

    fn packed(&self) {
        let history = self.unpack();
        assert_eq!(rows(&history), self.rows);
        black_box(&history);
    }
}

fn generated() -> Log {
    let megabytes = if measure::is_trial() { 1 } else { generator::size("RETROGRADE_BENCH_MB", 64) };
    let (text, _) = AuditLog::of_bytes(1, Bodies::Full, megabytes * 1_000_000);
    Log::new("audit-generated", vec![InputFile::in_memory(FileId(0), "audit.log", text)])
}

/// In memory, so that the disk has no influence.
fn recorded() -> Option<Log> {
    let Some(directory) = std::env::var_os("RETROGRADE_LOAD") else {
        println!("recorded: skipped, RETROGRADE_LOAD names no directory of audit logs");
        return None;
    };
    let directory = std::fs::read_dir(directory).expect("RETROGRADE_LOAD is a directory");
    let mut paths: Vec<_> = directory.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    let mut files = ingest::inputs(&paths, &[], &[]).expect("the files are there");
    for file in &mut files {
        file.bytes = Some(std::fs::read(&file.path).expect("the file can be read").into());
    }
    Some(Log::new("audit-recorded", files))
}

fn main() {
    // All work of a variant runs on the measured thread.
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .expect("no pool was used before");
    let two = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads");
    let logs: Vec<Log> = [Some(generated()), recorded()].into_iter().flatten().collect();
    let mut criterion = measure::criterion();
    for log in &logs {
        let mut group = criterion.benchmark_group("container");
        group.throughput(measure::bytes(log.length as usize));
        group.bench_function(BenchmarkId::new(log.name, "evidence"), |b| b.iter(|| log.direct()));
        group.bench_function(BenchmarkId::new(log.name, "container"), |b| b.iter(|| log.packed()));
        let history = log.ingest(1);
        group.bench_function(BenchmarkId::new(log.name, "pack"), |b| {
            b.iter(|| assert_eq!(log.pack(std::slice::from_ref(&history)).len(), log.packed.len()));
        });
        group.finish();
    }
    criterion.final_summary();
    if measure::is_trial() {
        return;
    }
    for log in &logs {
        let rounds = generator::size("RETROGRADE_BENCH_ROUNDS", 7);
        let variants: &mut [&mut dyn FnMut()] =
            &mut [&mut || log.direct(), &mut || log.packed(), &mut || two.install(|| log.packed())];
        let times = in_turn(rounds, variants);
        let [direct, packed, by_two] = times.as_slice() else { unreachable!("three variants") };
        println!("\n{}: {} operations, {} MB, {rounds} rounds", log.name, log.rows[0], log.length / 1_000_000);
        println!("{:<52} {:>10.2} ms", "reading the evidence, one thread", median(&direct.thread) * 1e3);
        println!("{:<52} {:>10.2} ms", "reading the container, one thread", median(&packed.thread) * 1e3);
        let faster = ratio(&direct.thread, &packed.thread);
        figure("times faster than the evidence", faster, "", "5", faster >= 5.0);
        let smaller = log.length as f64 / log.packed.len() as f64;
        figure("times smaller than the evidence", smaller, "", "10", smaller >= 10.0);
        let scaling = least(&packed.wall) / least(&by_two.wall);
        println!("{:<52} {scaling:>10.2}", "two threads, of one (wall, best)");
    }
}
