//! Runs that end early, by a time budget, a signal or the memory limit: soon, at any point, with the results so far.
//! The times here are only upper bounds; `benches/README.md` has measurements.
#![cfg(all(feature = "cli", unix))]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const INCIDENT: &str = "histories/incidents/kubelet-restart/buggy";

/// No run here would end by itself within this time.
const SOON: Duration = Duration::from_secs(30);

/// A file or a pipe, removed with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        Place(std::env::temp_dir().join(format!("retrograde-halting-{name}-{}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// An operation log that would take years to judge: appends of unknown outcome to one list, and a read of a value
/// that was not appended.
fn endless(name: &str) -> Place {
    let place = Place::new(name);
    let mut text = String::new();
    for process in 0..64 {
        text += &format!("{{:process {process}, :type :invoke, :f :enqueue, :value {process}, :time {process}}}\n");
        text +=
            &format!("{{:process {process}, :type :info, :f :enqueue, :value {process}, :time {}}}\n", 100 + process);
    }
    text += "{:process 99, :type :invoke, :f :dequeue, :value nil, :time 200}\n";
    text += "{:process 99, :type :ok, :f :dequeue, :value 1000, :time 201}\n";
    fs::write(&place.0, text).unwrap();
    place
}

/// A pipe, as evidence without an end.
fn pipe(name: &str) -> Place {
    let place = Place::new(name);
    assert!(Command::new("mkfifo").arg(&place.0).status().unwrap().success());
    place
}

/// Waits until a program opens the pipe to read it. At that time its handler of signals is installed. Returns the end to write
/// to, which keeps the pipe open.
fn reader_opens(pipe: &Place) -> File {
    let path = pipe.0.clone();
    let (opened, is_open) = std::sync::mpsc::channel();
    std::thread::spawn(move || opened.send(File::options().write(true).open(path).unwrap()));
    is_open.recv_timeout(SOON).unwrap()
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retrograde"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits for a quick end, without reading the output before.
fn ended(mut child: Child) -> Output {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > SOON {
            child.kill().unwrap();
            panic!("expected an end, found a running program: {:?}", child.wait_with_output().unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a process holds this much memory (Linux only).
#[cfg(target_os = "linux")]
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[test]
fn the_budget_ends_reading_a_pipe_that_nobody_closes() {
    let pipe = pipe("reading");
    let child = start(&["check", "--time-budget", "300ms", pipe.path()]);
    let mut end = reader_opens(&pipe);
    end.write_all(b"{\"kind\":\"capture\",\"version\":1}\n").unwrap();
    let output = ended(child);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("the time budget was spent while the evidence was read"), "{output:?}");
}

#[test]
fn an_interrupt_while_evidence_is_read_makes_a_report_that_is_unknown() {
    let pipe = pipe("interrupt");
    let child = start(&["check", "--json", pipe.path()]);
    let _end = reader_opens(&pipe);
    interrupt(&child);
    let output = ended(child);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"], "unknown");
    assert_eq!(report["histories"][0]["rules"][0]["reason"], "interrupted while the evidence was read");
}

#[test]
fn a_search_ends_by_budget_and_by_interrupt_and_says_so() {
    // On a busy machine a report may be drawn before the search has noticed its end. A unit test of the rule has its own words.
    let log = endless("search");
    let output = ended(start(&["check", "--model", "queue", "--time-budget", "2s", log.path()]));
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("linearizability: the time budget was spent"), "{output:?}");
    let child = start(&["check", "--model", "queue", log.path()]);
    std::thread::sleep(Duration::from_secs(2));
    interrupt(&child);
    let output = ended(child);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).contains("linearizability: interrupted"), "{output:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_search_holds_no_more_than_the_limit_of_memory() {
    const LIMIT: u64 = 96 << 20;
    let log = endless("memory");
    let mut child = start(&["check", "--model", "queue", "--memory", "96MiB", log.path()]);
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak(&child).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(2 | 3)), "{output:?}");
    assert!(
        text(&output.stdout).contains("memory limit") || text(&output.stderr).contains("memory limit"),
        "{output:?}"
    );
    assert!(most > LIMIT / 2 && most <= LIMIT / 10 * 11, "{most}");
}

#[test]
fn reports_that_nobody_reads_end_with_the_budget_or_the_signal_and_the_verdict_is_told() {
    for budget in [true, false] {
        // A pipe holds 64 KiB, and this report is longer.
        let mut arguments = vec!["check", "--json", "histories/incidents/kubelet-restart"];
        if budget {
            arguments.extend(["--time-budget", "4s"]);
        }
        let mut child = start(&arguments);
        let (mut report, mut said) = (child.stdout.take().unwrap(), vec![0; 1]);
        report.read_exact(&mut said).unwrap();
        if !budget {
            interrupt(&child);
        }
        let output = ended(child);
        report.read_to_end(&mut said).unwrap();
        assert!(said.len() >= 60_000, "{output:?}");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(
            text(&output.stderr).contains("before every report was written; the verdict is violated"),
            "{output:?}"
        );
    }
}

#[test]
fn wherever_the_budget_ends_the_verdict_is_the_true_one_or_unknown() {
    let whole = Instant::now();
    assert_eq!(ended(start(&["check", "--quiet", INCIDENT])).status.code(), Some(1));
    let whole = whole.elapsed();
    for part in 0..24 {
        let budget = format!("{}us", (whole * part / 20).as_micros().max(1));
        let output = ended(start(&["check", "--json", "--time-budget", &budget, INCIDENT]));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        match output.status.code() {
            Some(1) => assert_eq!(report["verdict"], "violated", "{budget}"),
            Some(3) => {
                assert_eq!(report["verdict"], "unknown", "{budget}");
                let rules = report["histories"][0]["rules"].as_array().unwrap();
                let reasons = || rules.iter().filter_map(|rule| rule["reason"].as_str());
                assert!(reasons().any(|reason| reason.contains("the time budget was spent")), "{budget}: {rules:?}");
            }
            code => panic!("{budget}: {code:?} {output:?}"),
        }
    }
}

#[test]
fn commands_that_have_nothing_to_say_say_why() {
    let pipe = pipe("commands");
    let packed = Place::new("packed.rgh");
    for arguments in [vec!["show", pipe.path()], vec!["pack", pipe.path(), "-o", packed.path()]] {
        let child = start(&arguments);
        let _end = reader_opens(&pipe);
        interrupt(&child);
        let output = ended(child);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stderr), "interrupted: no report was made", "{arguments:?}");
        let limited = [arguments, vec!["--memory", "1MiB"]].concat();
        let output = ended(start(&limited));
        assert_eq!(output.status.code(), Some(2), "{limited:?}");
        assert_eq!(text(&output.stderr), "the memory limit of 1.0 MiB was reached: no report was made", "{limited:?}");
        assert!(!packed.0.exists());
    }
}
