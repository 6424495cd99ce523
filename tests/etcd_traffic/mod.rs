//! A real etcd that is killed twice, with clients of the crate `etcd-client` that a layer records. The recording
//! holds, and each of five tampered copies violates its rule.
//!
//! The clients are a separate program (`tests/etcd_client`), since their crate needs `protoc` to build. Skipped
//! without `etcd` or `protoc` on the PATH; if `CI` is set it fails.

mod tampering;

use crate::support::client_crate;
use crate::support::etcd::Etcd;
use crate::support::folder::Folder;
use crate::support::program::program;
use retrograde::assert_consistent;
use retrograde::check::{Kind, Verdict};
use retrograde::history::History;
use retrograde::record::replay;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tampering::Report;

/// Answered calls, and delivered events, between two faults.
const STRETCH: usize = 300;

/// Timeout of one interval on a busy machine. The clients live longer (`LIFE`).
const PATIENCE: Duration = Duration::from_secs(30);

/// The client program; killed on drop.
struct Traffic {
    process: Child,
    input: Option<ChildStdin>,
}

/// The path of the client program; `None`: it cannot be built here.
fn clients() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        program("protoc")?;
        let status = client_crate::cargo("build", "etcd_client").status().expect("cargo runs");
        assert!(status.success(), "the clients cannot be built");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("etcd_client/debug");
        Some(built.join(format!("etcd-traffic{}", std::env::consts::EXE_SUFFIX)))
    };
    BUILT.get_or_init(build).as_deref()
}

impl Traffic {
    /// Starts the clients and waits for their first call.
    fn start(program: &Path, folder: &Path, etcd: &Etcd) -> Traffic {
        let mut process = Command::new(program)
            .arg(folder)
            .arg(format!("http://{}", etcd.address))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the clients start");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("their output"));
        let traffic = Traffic { process, input };
        assert!(output.lines().any(|line| line.is_ok_and(|line| line == "begun")), "the clients did not begin");
        traffic
    }

    /// Stops the clients and waits for their end.
    fn finish(mut self) {
        self.input.take().expect("their input").write_all(b"stop\n").expect("they listen");
        assert!(self.process.wait().expect("they end").success(), "the clients failed");
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn wait_for(etcd: &Etcd) {
    while std::net::TcpStream::connect(etcd.address).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Progress of a recording.
#[derive(Debug, Default)]
struct Progress {
    answered: usize,
    open: usize,
    delivered: usize,
}

impl Progress {
    fn of(folder: &Folder) -> Progress {
        let history = replay(folder.root()).unwrap_or_default();
        let Some(cluster) = history.cluster() else { return Progress::default() };
        let calls = &cluster.recording.operations;
        let open = calls.iter().filter(|call| call.begun).count();
        Progress { answered: calls.len() - open, open, delivered: cluster.recording.events.len() }
    }
}

/// Waits for the progress of a recording.
fn wait_until(folder: &Folder, far_enough: impl Fn(&Progress) -> bool) {
    let begin = Instant::now();
    loop {
        let progress = Progress::of(folder);
        if far_enough(&progress) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{progress:?} after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits for an interval by its number, then for calls that never get an answer.
fn wait_for_open_calls(folder: &Folder, etcd: &Etcd, stretch: usize) {
    let far = stretch * STRETCH;
    wait_until(folder, |now| now.answered > far && now.delivered > far);
    etcd.freeze();
    wait_until(folder, |now| now.open > 0);
}

/// Findings other than hazards.
fn convicted(history: &History) -> Vec<String> {
    let judgement = retrograde::judge(history, &retrograde::Options::default());
    let grave = judgement.findings.iter().filter(|finding| finding.kind != Kind::Hazard);
    grave.map(|finding| format!("{}: {}", finding.rule, finding.summary)).collect()
}

#[test]
fn clients_of_a_real_etcd_that_is_killed_twice_saw_one_history_and_each_tampered_copy_is_convicted() {
    let Some(program) = clients() else { return };
    let Some(mut etcd) = Etcd::start("traffic", &[]) else { return };
    let folder = Folder::new();
    wait_for(&etcd);
    let traffic = Traffic::start(program, folder.root(), &etcd);
    for stretch in 1..3 {
        wait_for_open_calls(&folder, &etcd, stretch);
        etcd.kill();
        std::thread::sleep(Duration::from_millis(150));
        etcd.restart();
        wait_for(&etcd);
    }
    wait_until(&folder, |now| now.answered > 3 * STRETCH && now.delivered > 3 * STRETCH);
    traffic.finish();
    etcd.kill();

    let history = replay(folder.root()).expect("a recording");
    let recording = &history.cluster().expect("a report").recording;
    assert!(recording.clients.len() > 8 && recording.problems.is_empty(), "{:?}", recording.problems);
    let open = recording.operations.iter().filter(|o| !o.returned.is_known()).count();
    assert!(open > 0, "the calls that were open when etcd was killed have outcomes");
    assert_consistent!(history);

    let report = Report::read(folder.root());
    assert_eq!(report.judged().verdict, Verdict::Holds);
    for (rule, tamper) in tampering::TAMPERINGS {
        let mut copy = report.clone();
        let what = tamper(&mut copy);
        let judgement = copy.judged();
        let violated: Vec<&str> = judgement
            .rules
            .iter()
            .filter(|report| report.verdict == Verdict::Violated)
            .map(|report| report.rule)
            .collect();
        assert!(violated.contains(rule), "{what}: expected {rule}, found {violated:?}");
        eprintln!("{what}: {violated:?}");
    }
}

#[test]
fn a_recording_of_clients_that_were_killed_is_read_as_far_as_it_goes() {
    let Some(program) = clients() else { return };
    let Some(etcd) = Etcd::start("killed", &[]) else { return };
    let folder = Folder::new();
    wait_for(&etcd);
    let traffic = Traffic::start(program, folder.root(), &etcd);
    wait_for_open_calls(&folder, &etcd, 1);
    drop(traffic);
    let history = replay(folder.root()).expect("a recording");
    let recording = &history.cluster().expect("a report").recording;
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    assert!(recording.operations.len() > STRETCH && recording.operations.iter().any(|o| o.begun));
    // After the last observed revision further ones may exist without a writer, so the verdict may be unknown but
    // never violated.
    assert_eq!(convicted(&history), Vec::<String>::new());
}

#[test]
fn the_guide_shows_how_these_clients_are_recorded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name| std::fs::read_to_string(root.join(name)).expect("a text");
    let (source, guide) = (read("tests/etcd_client/src/main.rs"), read("docs/guide-ci.md"));
    let start = source.find("/// A client of etcd that is recorded.").expect("the function");
    let end = source[start..].find("\n}\n").expect("its end") + 3;
    let function = &source[start..start + end];
    assert!(guide.contains(function), "docs/guide-ci.md does not show\n{function}");
    let (_, snippet) = guide.split_once("use etcd_client::").expect("the snippet");
    for line in snippet.lines().skip(1).take_while(|line| line.starts_with("use ")) {
        let (path, names) = line.trim_end_matches(';').rsplit_once("::").expect("a path");
        let path = path.trim_start_matches("use ");
        for name in names.trim_matches(['{', '}']).split(", ") {
            let imports = |line: &str| line.contains(path) && line.contains(name);
            assert!(source.lines().any(imports), "the program of the clients does not use {path}::{name}");
        }
    }
}
