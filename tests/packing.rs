//! `retrograde pack` and `--cache` on the command line.
#![cfg(feature = "cli")]

use crate::support::draws::every;
use crate::support::folder::Folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder, removed with the test.
/// Evidence of a violation.
const INCIDENT: &str = "histories/incidents/kubelet-restart/buggy";

fn retrograde(arguments: &[&str], cache: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retrograde"));
    command.args(arguments).env("RETROGRADE_CACHE_DIR", cache).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn containers(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "rgh")).collect();
    found.sort();
    found
}

#[test]
fn every_command_reads_a_container_as_it_reads_the_evidence() {
    let (evidence, to) = (Folder::copy_of(INCIDENT), Folder::new());
    let (path, packed) = (evidence.root().display().to_string(), to.text("x.rgh"));
    let run = |arguments: &[&str]| retrograde(arguments, to.root());
    let written = run(&["pack", &path, "-o", &packed]);
    assert_eq!(written.status.code(), Some(0), "{}", err(&written));
    assert!(out(&written).starts_with("packed "), "{}", out(&written));
    for (command, rest) in [
        ("check", &["--json"][..]),
        ("check", &["--report", "human=-"]),
        ("check", &["--report", "sarif=-"]),
        ("show", &[]),
        ("show", &["--key", "pods default/pod-0"]),
        ("explain", &["--client", "kubelet-1", "--key", "pod-0"]),
    ] {
        let of = |path: &str| run(&[&[command, path], rest].concat());
        let (direct, again) = (of(&path), of(&packed));
        assert_eq!(out(&direct), out(&again), "{command} {rest:?}");
        assert_eq!(direct.status.code(), again.status.code(), "{command} {rest:?}");
        assert!(!direct.stdout.is_empty());
    }
    // Packed again, from the container alone.
    let twice = to.text("y.rgh");
    assert_eq!(run(&["pack", &packed, "--output", &twice]).status.code(), Some(0));
    assert!(fs::read(&packed).unwrap() == fs::read(&twice).unwrap());
}

#[test]
fn a_container_moved_with_its_evidence_finds_it_beside_itself() {
    let (evidence, to) = (Folder::copy_of(INCIDENT), Folder::new());
    let run = |arguments: &[&str]| retrograde(arguments, to.root());
    let packed = evidence.text("x.rgh");
    assert_eq!(run(&["pack", &evidence.root().display().to_string(), "-o", &packed]).status.code(), Some(0));
    let before = out(&run(&["check", "--json", &packed]));
    let moved = to.path("moved");
    fs::rename(evidence.root(), &moved).unwrap();
    let packed = moved.join("x.rgh").display().to_string();
    assert_eq!(out(&run(&["check", "--json", &packed])), before);
    fs::remove_file(moved.join("audit-A.log")).unwrap();
    let less = out(&run(&["check", &packed]));
    assert!(less.contains("gone since they were packed"), "{less}");
}

#[test]
fn what_is_no_sound_container_is_a_problem_and_unknown() {
    let (evidence, to) = (Folder::copy_of(INCIDENT), Folder::new());
    let run = |arguments: &[&str]| retrograde(arguments, to.root());
    let packed = to.text("x.rgh");
    assert_eq!(run(&["pack", &evidence.root().display().to_string(), "-o", &packed]).status.code(), Some(0));
    let whole = fs::read(&packed).unwrap();
    let mut later = whole.clone();
    later[8] = 9;
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for (bytes, why) in [
        (&whole[..whole.len() - 1], "cut off"),
        (&later, "a version that this retrograde does not read"),
        (&damaged, "damaged"),
    ] {
        fs::write(&packed, bytes).unwrap();
        for arguments in [&["check", &packed][..], &["check", "--json", &packed]] {
            let refused = run(arguments);
            assert_eq!(refused.status.code(), Some(3), "{}", out(&refused));
            assert!(out(&refused).contains(why), "{}", out(&refused));
        }
        let nothing = run(&["pack", &packed, "-o", &to.text("y.rgh")]);
        assert!(nothing.status.code() == Some(3) && err(&nothing).contains(why), "{}", err(&nothing));
        assert!(!to.path("y.rgh").exists());
    }
}

#[test]
fn packing_overwrites_no_evidence_and_what_is_packed_cannot_be_read_otherwise() {
    let (evidence, to) = (Folder::copy_of(INCIDENT), Folder::new());
    let run = |arguments: &[&str]| retrograde(arguments, to.root());
    let (path, packed) = (evidence.root().display().to_string(), to.text("x.rgh"));
    for (arguments, why) in [
        (&["pack", &path, "-o", &evidence.text("audit-A.log")][..], "will not be overwritten"),
        (&["pack", &path, "-o", "-"], "into a file"),
        (&["pack", &path, "-o", "/no/such/folder/x.rgh"], "cannot write"),
        (&["pack", &path], "--output"),
    ] {
        let refused = run(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(err(&refused).contains(why), "{}", err(&refused));
    }
    assert_eq!(run(&["pack", &path, "-o", &packed]).status.code(), Some(0));
    for said in [["--domain", "apps/deployments=own"], ["--source", "x.rgh:server=a"], ["--format", "*:audit"]] {
        let refused = run(&["check", &packed, said[0], said[1]]);
        assert_eq!(refused.status.code(), Some(2), "{said:?}");
        assert!(err(&refused).contains("to `retrograde pack`"), "{}", err(&refused));
    }
    // No partial file is left.
    assert_eq!(fs::read_dir(to.root()).unwrap().count(), 1);
}

#[test]
fn a_cached_check_says_what_the_check_says_and_notices_every_change() {
    let (evidence, cache) = (Folder::copy_of(INCIDENT), Folder::new());
    let path = evidence.root().display().to_string();
    let direct = || out(&retrograde(&["check", "--json", &path], cache.root()));
    let cached = || {
        let output = retrograde(&["check", "--cache", "--json", &path], cache.root());
        assert_eq!(err(&output), "");
        out(&output)
    };
    let before = direct();
    assert_eq!(containers(cache.root()).len(), 0);
    assert_eq!((cached(), containers(cache.root()).len()), (before.clone(), 1));
    assert_eq!((cached(), containers(cache.root()).len()), (before.clone(), 1));
    // One byte changed in place, with equal size and time.
    let log = evidence.path("audit-A.log");
    let (text, data) = (fs::read(&log).unwrap(), fs::metadata(&log).unwrap());
    let changed = String::from_utf8(text.clone()).unwrap().replacen("pod-0", "pod-1", 1);
    fs::write(&log, changed).unwrap();
    fs::File::options().write(true).open(&log).unwrap().set_modified(data.modified().unwrap()).unwrap();
    let after = direct();
    assert_eq!(cached(), after);
    // Another file, and other options for the files.
    fs::write(evidence.path("more.log"), &text).unwrap();
    assert_eq!(cached(), direct());
    let with = |flag: &str| {
        out(&retrograde(&["check", "--json", &path, "--source", "audit-A.log:server=z", flag], cache.root()))
    };
    assert_eq!(with("--cache"), with("--timings"));
    assert!(containers(cache.root()).len() == 4);
    // A damaged container is a warning, and is rewritten.
    fs::remove_file(evidence.path("more.log")).unwrap();
    fs::write(&log, &text).unwrap();
    let now = cached();
    for path in containers(cache.root()) {
        fs::write(path, "damaged").unwrap();
    }
    let warned = retrograde(&["check", "--cache", "--json", &path], cache.root());
    assert!(err(&warned).contains("is of no use"), "{}", err(&warned));
    assert_eq!(out(&warned), now);
    assert_eq!(cached(), now);
}

#[test]
fn a_cached_check_of_any_history_says_what_the_check_says() {
    let cache = Folder::new();
    let all = every(5, crate::support::committed::evidence());
    for path in &all {
        let path = path.to_str().unwrap();
        let direct = retrograde(&["check", "--json", path], cache.root());
        for run in ["first", "second"] {
            let cached = retrograde(&["check", "--cache", "--json", path], cache.root());
            assert!(out(&cached) == out(&direct), "{path}, {run} run");
            assert_eq!((cached.status.code(), &*err(&cached)), (direct.status.code(), ""), "{path}, {run} run");
        }
    }
    assert!(!containers(cache.root()).is_empty());
}

#[test]
fn a_cache_that_cannot_be_used_is_a_warning() {
    let (evidence, to) = (Folder::copy_of(INCIDENT), Folder::new());
    let path = evidence.root().display().to_string();
    // A file is in the place of the folder.
    let blocked = to.path("file");
    fs::write(&blocked, "x").unwrap();
    let direct = retrograde(&["check", "--json", &path], to.root());
    let warned = retrograde(&["check", "--cache", "--json", &path], &blocked);
    assert!(err(&warned).contains("warning: --cache could not keep"), "{}", err(&warned));
    assert_eq!((out(&warned), warned.status.code()), (out(&direct), direct.status.code()));
    let packed = to.text("x.rgh");
    assert_eq!(retrograde(&["pack", &path, "-o", &packed], to.root()).status.code(), Some(0));
    let warned = retrograde(&["check", "--cache", "--json", &packed], to.root());
    assert!(err(&warned).contains("is packed already"), "{}", err(&warned));
    assert_eq!(out(&warned), out(&direct));
}

/// Histories of a check, their findings, and the report in one line.
fn judged(arguments: &[&str], cache: &Path) -> (usize, Vec<String>, String) {
    let output = retrograde(&[&["check", "--json"], arguments].concat(), cache);
    let report: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    let histories = report["histories"].as_array().unwrap();
    let findings = histories.iter().flat_map(|history| history["findings"].as_array().unwrap());
    let mut found: Vec<String> = findings.map(|f| format!("{} {} {}", f["kind"], f["rule"], f["client"])).collect();
    found.sort();
    let told = out(&retrograde(&[&["check"], arguments].concat(), cache));
    (histories.len(), found, told.split_whitespace().collect::<Vec<_>>().join(" "))
}

const SOURCES: [&str; 4] =
    ["--source", "audit-A.log:server=A,clock=apiserver-a", "--source", "audit-B.log:server=B,clock=apiserver-b"];

#[test]
fn a_container_beside_the_evidence_it_was_packed_from_counts_once_and_what_was_said_of_it_holds() {
    let (folder, cache) = (Folder::copy_of(INCIDENT), Folder::new());
    let alone = judged(&[&SOURCES[..], &[&folder.text("")]].concat(), cache.root());
    assert!(!alone.1.is_empty());
    let packed = folder.text("incident.rgh");
    assert!(
        retrograde(&[&["pack"], &SOURCES[..], &[&folder.text(""), "-o", &packed]].concat(), cache.root())
            .status
            .success()
    );
    let (histories, found, report) = judged(&[&folder.text("")], cache.root());
    assert_eq!((histories, &found), (1, &alone.1));
    assert!(report.contains("incident.rgh: a container of evidence that was given too"), "{report}");
    // Without the files it is the evidence; with some of them as well, and it is read instead.
    let away = Folder::new();
    fs::rename(folder.path("audit-A.log"), away.path("audit-A.log")).unwrap();
    let (histories, found, report) = judged(&[&folder.text("")], cache.root());
    assert_eq!((histories, &found), (1, &alone.1));
    assert!(report.contains("evidence that a given container holds: the container was read"), "{report}");
    // A file that is another one by now is evidence of its own, and the rest of the container counts twice.
    let mut changed = fs::read_to_string(away.path("audit-A.log")).unwrap();
    changed.push_str("{\"kind\":\"Event\",\"stage\":\"Panic\",\"auditID\":\"x\"}\n");
    fs::write(folder.path("audit-A.log"), changed).unwrap();
    let (histories, found, report) = judged(&[&folder.text("")], cache.root());
    assert_eq!(histories, 2, "{report}");
    assert!(found.len() > alone.1.len());
    assert!(report.contains("it counts twice: pack all evidence into one container"), "{report}");
}

#[test]
fn a_container_of_other_evidence_stays_a_history_of_its_own() {
    let (folder, other, cache) = (Folder::copy_of(INCIDENT), Folder::new(), Folder::new());
    let packed = folder.text("fixed.rgh");
    fs::write(
        other.path("run.edn"),
        "{:process 0, :type :invoke, :f :read, :value nil}\n{:process 0, :type :ok, :f :read, :value nil}\n",
    )
    .unwrap();
    assert!(retrograde(&["pack", &other.text(""), "-o", &packed], cache.root()).status.success());
    let (histories, _, report) = judged(&[&folder.text("")], cache.root());
    assert_eq!(histories, 2, "{report}");
    assert!(!report.contains("container"), "{report}");
}
