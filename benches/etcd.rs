//! Reports of etcd's robustness suite: parsing, deciding, and the certificate. Each pass asserts the verdict.
//!
//! `RETROGRADE_BENCH_OPERATIONS` is the size of the largest report (1,000,000), `RETROGRADE_BENCH_ROUNDS` the number
//! of rounds (5). `RETROGRADE_ETCD` is a directory of recorded reports, which are decided too.
//! `RETROGRADE_BENCH_ONLY` runs only the parts whose name contains it. `RETROGRADE_BENCH_SAVE` is a directory for the
//! largest report.

mod generator;
mod measure;

use generator::etcd::{Report, Traffic, unanswered};
use measure::{figure, in_turn, median, ratio};
use retrograde::check::{Options, Proof, Verdict, judge};
use retrograde::history::{Domains, History, load};
use retrograde::ingest::etcd::operation::{Answer, Request};
use retrograde::ingest::{FileId, InputFile, ReadOptions};
use retrograde::order::etcd::Writer;
use retrograde::order::{Order, OrderOptions};
use retrograde::verify::etcd::{Step, replay};
use std::hint::black_box;
use std::sync::Arc;

/// The parsed form of an operation.
#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Bare<'a> {
    client_id: i64,
    #[serde(borrow)]
    input: Request<'a>,
    call: i64,
    #[serde(borrow)]
    output: Answer<'a>,
    #[serde(rename = "Return")]
    returned: i64,
}

fn main() {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build_global()
        .expect("no pool was built before");
    let most = generator::size("RETROGRADE_BENCH_OPERATIONS", if measure::is_trial() { 1_000 } else { 1_000_000 });
    let part = |of: usize| of.min(most);
    for alike in [true, false] {
        decided(&format!("1,000 unknown puts, half seen, alike: {alike}"), &unanswered(part(1_000), alike), 0.010);
    }
    for (writers, readers, operations) in
        [(8, 8, 4_800), (8, 16, 7_200), (8, 24, 12_500), (24, 8, 9_700), (24, 32, 20_000)]
    {
        let name = format!("{writers} writers, {readers} readers, a stall");
        decided(&name, &Traffic::stalled(writers, readers, part(operations)).draw(), 0.1);
    }
    decided("100,000 operations", &Traffic::steady(8, 24, part(100_000)).draw(), 0.1);
    let stalls = Traffic { stalls: Some((2_000, 9_000)), ..Traffic::stalled(8, 24, part(569_000)) };
    decided("569,000 operations with stalls", &stalls.draw(), 1.0);
    let largest = Traffic::steady(8, 24, most).draw();
    save(&largest);
    parsing(&largest);
    decided("1,000,000 operations", &largest, 0.5);
    drop(largest);
    recorded();
    if let Some(peak) = measure::peak_memory() {
        println!("peak of all the above, with the texts in memory: {} MB", peak / 1_000_000);
    }
}

fn files(report: &Report) -> Vec<InputFile> {
    let mut files = Vec::new();
    let mut add = |name: String, text: &str| {
        let bytes: Arc<[u8]> = text.as_bytes().into();
        files.push(InputFile::in_memory(FileId(files.len() as u32), &name, bytes));
    };
    for (n, text) in (1..).zip(&report.operations) {
        add(format!("report/client-{n}/operations.json"), text);
    }
    add(format!("report/client-{}/watch.json", report.operations.len() + 1), &report.watch);
    files
}

/// Whether a part is to be run.
fn wanted(name: &str) -> bool {
    std::env::var("RETROGRADE_BENCH_ONLY").map_or(true, |only| name.contains(&only))
}

/// Writes a report on request, as input of the program itself.
fn save(report: &Report) {
    let Some(directory) = std::env::var_os("RETROGRADE_BENCH_SAVE").map(std::path::PathBuf::from) else { return };
    for file in files(report) {
        let path = directory.join(&file.path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it can be made");
        std::fs::write(path, file.bytes.as_deref().unwrap_or_default()).expect("it can be written");
    }
}

fn options() -> ReadOptions {
    ReadOptions { threads: 1, ..retrograde::read_options() }
}

fn decide(history: &History, proofs: bool) -> Vec<Proof> {
    let order = Order::derive(history, &OrderOptions::default());
    let judgement = judge(history, &order, &Options { proofs, ..Options::default() });
    assert_eq!(judgement.verdict, Verdict::Holds, "{:?}", judgement.findings.first().map(|f| &f.summary));
    judgement.proofs
}

/// Asserts that the independent verifier accepts an order.
fn verified(history: &History, proofs: &[Proof]) {
    let recording = &history.cluster().expect("a report of etcd").recording;
    let Some(Proof::Etcd { order, removed }) = proofs.first() else { panic!("it holds without an order") };
    let step = |filler: &Writer| match filler {
        Writer::Operation(at) => Step::Operation(*at),
        Writer::Expiry(lease) => Step::Expiry(*lease),
    };
    let steps: Vec<Step> = order.iter().map(step).collect();
    let removed = removed.iter().map(|(revision, of)| (*revision, of.iter().map(String::as_str).collect())).collect();
    replay(recording, &steps, &removed).unwrap_or_else(|flaw| panic!("{flaw}"));
}

/// Measures reading, deciding, deciding with a certificate, and its verification.
fn decided(name: &str, report: &Report, target: f64) {
    if !wanted(name) {
        return;
    }
    let rounds = generator::size("RETROGRADE_BENCH_ROUNDS", if measure::is_trial() { 1 } else { 5 });
    println!("{name}: {} operations, {} unknown writes, revision {}", report.count, report.unknown, report.revision);
    let files = files(report);
    let history = load(files, &options(), &Domains::default(), &());
    let mut proofs = Vec::new();
    let times = in_turn(
        rounds,
        &mut [&mut || drop(black_box(decide(&history, false))), &mut || proofs = decide(&history, true)],
    );
    let replayed = in_turn(1, &mut [&mut || verified(&history, &proofs)]);
    let seconds = median(&times[0].thread);
    figure("  decided after parsing", seconds * 1e3, "ms", &format!("{} ms", target * 1e3), seconds < target);
    println!(
        "  with its certificate {:.2} times that; replayed in {:.1} ms",
        ratio(&times[1].thread, &times[0].thread),
        median(&replayed[0].thread) * 1e3
    );
}

/// Measures reading of operations against a bare loop into the same struct.
fn parsing(report: &Report) {
    if !wanted("parsing") {
        return;
    }
    let rounds = generator::size("RETROGRADE_BENCH_ROUNDS", if measure::is_trial() { 1 } else { 5 });
    let bytes: usize = report.operations.iter().map(String::len).sum();
    let mut only = files(report);
    only.pop();
    let bare = || {
        let lines = report.operations.iter().flat_map(|text| text.lines());
        let parsed = lines.map(|line| serde_json::from_str::<Bare<'_>>(line).expect("an operation"));
        let total = |bare: &Bare<'_>| {
            bare.input.kind.len() as i64 + bare.client_id + bare.call + bare.returned + bare.output.revision
        };
        parsed.map(|bare| total(&black_box(bare))).max()
    };
    let mut count = 0;
    let times = in_turn(
        rounds,
        &mut [&mut || assert!(black_box(bare()).is_some()), &mut || {
            let history = load(only.clone(), &options(), &Domains::default(), &());
            count = history.cluster().map_or(0, |cluster| cluster.recording.operations.len());
        }],
    );
    assert_eq!(count, report.count);
    let speed = |times: &[f64]| bytes as f64 / median(times) / 1e6;
    println!("{:.0} MB of operations.json; a bare loop {:.0} MB/s", bytes as f64 / 1e6, speed(&times[0].thread));
    let own = speed(&times[1].thread);
    figure("  bytes to a recording", own, "MB/s", "300 MB/s", own >= 300.0);
    let of_bare = ratio(&times[0].thread, &times[1].thread);
    figure("  of the bare loop", of_bare, "", "0.8", of_bare >= 0.8);
}

/// Decides recorded reports.
fn recorded() {
    if !wanted("recorded") {
        return;
    }
    let Some(directory) = std::env::var_os("RETROGRADE_ETCD") else {
        println!("recorded: skipped, RETROGRADE_ETCD names no directory of reports");
        return;
    };
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).expect("a directory").filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let found = retrograde::ingest::inputs(std::slice::from_ref(&path), &[], &[]).expect("it can be read");
        let history = load(found, &options(), &Domains::default(), &());
        let times = in_turn(
            5,
            &mut [&mut || {
                let order = Order::derive(&history, &OrderOptions::default());
                drop(black_box(judge(&history, &order, &Options::default())));
            }],
        );
        let seconds = median(&times[0].thread);
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        figure(&format!("  {name}, decided"), seconds * 1e3, "ms", "200 ms", seconds < 0.2);
    }
}
