//! `retrograde record etcd` between etcdctl and a real etcd.

use crate::etcd_server::Etcd;
use crate::folder::Folder;
use crate::http;
use crate::program::program;
use crate::proxy::{Proxy, retrograde, whole_files};
use retrograde::assert_consistent;
use retrograde::check::Verdict;
use retrograde::history::etcd::Outcome;
use retrograde::record::replay;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Timeout of one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of puts.
const PUTS: usize = 20;

struct Etcdctl {
    program: PathBuf,
    endpoint: String,
}

impl Etcdctl {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.endpoint, "--command-timeout=10s"]).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().expect("etcdctl runs")
    }

    /// Runs a command that must succeed.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn wait_for(etcd: &Etcd) {
    let begin = Instant::now();
    while std::net::TcpStream::connect(etcd.address).is_err() {
        assert!(begin.elapsed() < PATIENCE, "etcd does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// etcd, the proxy in front of it, and a client.
fn started(name: &str, folder: &Folder) -> Option<(Etcd, Proxy, Etcdctl)> {
    let program = program("etcdctl")?;
    let etcd = Etcd::start(name, &[])?;
    wait_for(&etcd);
    let endpoints = format!("http://{}", etcd.address);
    let proxy = Proxy::start(&["etcd", "--endpoints", &endpoints, "-o", &folder.text("recording")]).expect("a proxy");
    let endpoint = proxy.address.to_string();
    Some((etcd, proxy, Etcdctl { program, endpoint }))
}

fn verdict(folder: &Path) -> Verdict {
    let history = replay(folder).expect("a recording");
    retrograde::judge(&history, &retrograde::Options::default()).verdict
}

/// Events in a recording.
fn delivered(folder: &Path) -> usize {
    let history = replay(folder).unwrap_or_default();
    history.cluster().map_or(0, |cluster| cluster.recording.events.len())
}

#[test]
fn etcdctl_is_recorded_and_a_changed_answer_is_convicted() {
    let folder = Folder::new();
    let Some((_etcd, proxy, etcdctl)) = started("proxy", &folder) else { return };
    let recording = folder.path("recording");
    let mut watch = etcdctl
        .command(&["watch", "--prefix", "--rev", "1", ""])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("etcdctl runs");
    for number in 0..PUTS {
        etcdctl.done(&["put", &format!("k{}", number % 7), &format!("value-{number}")]);
        assert!(etcdctl.done(&["get", "--prefix", "k"]).contains(&format!("value-{number}")));
    }
    let mut txn = etcdctl.command(&["txn"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("etcdctl runs");
    txn.stdin
        .take()
        .expect("its input")
        .write_all(b"version(\"k1\") > \"0\"\n\nput t 1\n\nget k1\n\n")
        .expect("it reads");
    assert!(txn.wait_with_output().expect("it ends").status.success());
    etcdctl.done(&["get", "k1", "--rev", "3"]);
    etcdctl.done(&["lease", "grant", "600"]);
    etcdctl.done(&["del", "k2"]);
    etcdctl.done(&["compaction", "5"]);
    assert!(etcdctl.done(&["member", "list"]).contains("started"));
    let begin = Instant::now();
    while delivered(&recording) < PUTS + 2 {
        assert!(begin.elapsed() < PATIENCE, "{} events", delivered(&recording));
        std::thread::sleep(Duration::from_millis(50));
    }
    let ended = proxy.end("-TERM");
    let _ = watch.kill();
    let _ = watch.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.took < Duration::from_secs(1), "{ended:?}");
    assert!(ended.said.contains("1 passed unrecorded"), "{ended:?}");
    let files = whole_files(&recording);
    assert_eq!(files.len(), 2, "the calls and the watches of one client");

    let history = replay(&recording).expect("a recording");
    let recorded = &history.cluster().expect("a report").recording;
    assert_eq!((recorded.operations.len(), recorded.events.len()), (2 * PUTS + 5, PUTS + 2));
    assert!(recorded.operations.iter().all(|operation| operation.outcome == Outcome::Answered));
    assert_consistent!(history);
    // The program reads the folder as it is.
    let checked = retrograde(&["check", "--quiet", &folder.text("recording")]).status().expect("the program runs");
    assert_eq!(checked.code(), Some(0));

    // A read that answered the value of another write.
    let path = std::fs::read_dir(&recording).expect("a folder").flatten().next().expect("a client").path();
    let path = path.join("operations.json");
    let text = std::fs::read_to_string(&path).expect("the calls");
    let (wrong, right) = (r#""Value":{"Value":"value-4"}"#, r#""Value":{"Value":"value-5"}"#);
    let is_read = |line: &str| line.contains(r#""Range":{"Count""#) && line.contains(right);
    let changed: Vec<String> =
        text.lines().map(|line| if is_read(line) { line.replace(right, wrong) } else { line.to_owned() }).collect();
    assert_ne!(changed.join("\n"), text.trim_end(), "there is such a read");
    std::fs::write(&path, changed.join("\n") + "\n").expect("a changed file");
    assert_eq!(verdict(&recording), Verdict::Violated);
}

#[test]
fn a_client_sees_that_etcd_is_gone_and_goes_on_when_it_is_back() {
    let folder = Folder::new();
    let Some((mut etcd, proxy, etcdctl)) = started("proxy-killed", &folder) else { return };
    etcdctl.done(&["put", "k", "1"]);
    etcd.kill();
    assert!(!etcdctl.run(&["put", "k", "2"]).status.success(), "there is no etcd");
    etcd.restart();
    wait_for(&etcd);
    etcdctl.done(&["put", "k", "3"]);
    assert!(etcdctl.done(&["get", "k"]).contains('3'));
    let ended = proxy.end("-INT");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let history = replay(folder.path("recording")).expect("a recording");
    let recorded = &history.cluster().expect("a report").recording;
    let of = |outcome| recorded.operations.iter().filter(|operation| operation.outcome == outcome).count();
    // Nothing was sent without a connection, so nothing can have been written.
    assert_eq!((of(Outcome::Answered), of(Outcome::Unknown)), (3, 0));
    assert_consistent!(history);
}

#[test]
fn what_cannot_be_recorded_is_refused_with_the_reason() {
    let folder = Folder::new();
    let output = folder.text("recording");
    let refused = |arguments: &[&str]| Proxy::start(&[&["etcd"], arguments].concat()).err().unwrap_or_default();
    assert!(refused(&["-o", &output, "--endpoints", "ftp://x"]).contains("expected an endpoint"));
    assert!(refused(&["-o", &output, "--cacert", "/dev/null"]).contains("expected certificate authorities"));
    let outside = retrograde(&["record", "etcd", "-o", &output, "--listen", "0.0.0.0:0"]).output().expect("it runs");
    assert_eq!(outside.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&outside.stderr).contains("--allow-other-hosts"));
    std::fs::write(folder.path("kept"), "kept").expect("a file");
    assert!(refused(&["-o", &folder.root().display().to_string()]).contains("expected an empty folder"));
    assert_eq!(std::fs::read(folder.path("kept")).expect("the file"), b"kept");
    // etcd's JSON gateway would write without a record.
    let proxy = Proxy::start(&["etcd", "-o", &output, "--endpoints", "127.0.0.1:1"]).expect("a proxy");
    let answer = http::ask(proxy.address, "POST", "/v3/kv/put", &[], r#"{"key":"aw==","value":"dg=="}"#);
    assert_eq!(answer.status, 505, "{answer:?}");
    assert!(answer.body.contains("gRPC"), "{answer:?}");
    let ended = proxy.end("-TERM");
    assert!(ended.said.contains("1 refused"), "{ended:?}");
}
