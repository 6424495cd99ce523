//! Peak memory and growth of time: the log is written into the pipe of a child process that reads and judges it.
//!
//! `RETROGRADE_BENCH_SMALL` is the number of small events of the small run (200,000; the large run has ten times as
//! many), `RETROGRADE_BENCH_ITEMS` the number of listed items (1,000,000).

mod generator;
mod measure;

use generator::audit::AuditLog;
use generator::fields::Bodies;
use generator::lists::ListLog;
use measure::{figure, peak_memory, process_time};
use retrograde::check::{self, Verdict};
use retrograde::history::{self, Domains};
use retrograde::ingest::{InputFile, ReadOptions};
use retrograde::order::{Order, OrderOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const CHILD: &str = "RETROGRADE_BENCH_CHILD";

/// Measurements that a child reports.
#[derive(Debug)]
struct Account {
    /// Peak memory after reading, in bytes.
    read: f64,
    /// Peak memory after deriving the order, in bytes.
    ordered: f64,
    /// Peak memory after judging, in bytes.
    peak: f64,
    /// Processor seconds of order and rules.
    judging: f64,
}

/// Reads standard input, judges, and prints its measurements.
fn child() {
    let input = InputFile { path: "-".into(), shown: "-".to_owned(), ..InputFile::default() };
    let options = ReadOptions { threads: 2, ..retrograde::read_options() };
    let history = history::load(vec![input], &options, &Domains::default(), &());
    assert_eq!(history.files.iter().map(|file| file.problems).sum::<u64>(), 0);
    let read = peak_memory().unwrap_or(0);
    let start = process_time();
    let order = Order::derive(&history, &OrderOptions::default());
    let ordered = peak_memory().unwrap_or(0);
    let judgement = check::judge(&history, &order, &check::Options::default());
    let judging = process_time() - start;
    let found = judgement.findings.first().map(|finding| (finding.rule, &finding.summary));
    assert_eq!(judgement.verdict, Verdict::Holds, "{found:?}");
    println!("{read} {ordered} {} {judging}", peak_memory().unwrap_or(0));
    std::mem::forget((history, order, judgement));
}

/// Runs a child over the text that `write` appends until it returns false.
fn account(mut write: impl FnMut(&mut String) -> bool) -> Account {
    let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    let mut text = String::new();
    let mut more = true;
    while more {
        more = write(&mut text);
        if text.len() > 1 << 20 || !more {
            pipe.write_all(text.as_bytes()).expect("the child reads to the end");
            text.clear();
        }
    }
    drop(pipe);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("the child answers");
    assert!(child.wait().expect("the child ends").success());
    let numbers: Vec<f64> = line.split_whitespace().map(|number| number.parse().expect("a number")).collect();
    Account { read: numbers[0], ordered: numbers[1], peak: numbers[2], judging: numbers[3] }
}

/// Compares with the budget: 200 MB, 160 bytes per event, 64 bytes per listed item.
fn report(what: &str, account: &Account, events: u64, items: u64) {
    let budget = 200e6 + 160.0 * events as f64 + 64.0 * items as f64;
    println!(
        "\n{what}: {events} events, {items} listed items, order and rules in {:.2} s of processor time",
        account.judging
    );
    println!("{:<52} {:>10.2} MB", "peak after reading", account.read / 1e6);
    println!("{:<52} {:>10.2} MB", "peak after the order was derived", account.ordered / 1e6);
    let target = format!("{:.0} MB", budget / 1e6);
    figure("peak", account.peak / 1e6, "MB", &target, account.peak <= budget);
}

fn small(events: usize) -> (Account, u64, u64) {
    let mut log = AuditLog::new(3, Bodies::Small);
    let account = account(|text| {
        log.event(text);
        log.events < events as u64
    });
    (account, log.events, log.items)
}

fn lists(items: usize) -> (Account, u64, u64) {
    let mut log = ListLog::new(4);
    let account = account(|text| {
        log.round(text);
        log.items < items as u64
    });
    (account, log.events, log.items)
}

fn main() {
    if std::env::var_os(CHILD).is_some() {
        return child();
    }
    let trial = measure::is_trial();
    if peak_memory().is_none() {
        println!("memory: skipped, this system does not tell a process its peak");
        return;
    }
    let events = if trial { 2_000 } else { generator::size("RETROGRADE_BENCH_SMALL", 200_000) };
    let (one, one_events, one_items) = small(events);
    let (ten, ten_events, ten_items) = small(events * 10);
    report("small events", &one, one_events, one_items);
    report("ten times as many", &ten, ten_events, ten_items);
    println!(
        "{:<52} {:>10.2} bytes",
        "growth an event, its items included",
        (ten.peak - one.peak) / (ten_events - one_events) as f64
    );
    let growth = ten.judging / one.judging;
    figure("time of all checks for ten times the events", growth, "times", "15", growth <= 15.0);
    let items = if trial { 20_000 } else { generator::size("RETROGRADE_BENCH_ITEMS", 1_000_000) };
    let (account, events, items) = lists(items);
    report("large lists", &account, events, items);
}
