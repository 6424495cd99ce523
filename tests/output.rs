//! Output files: complete or absent, never over a file that is still needed, whatever readers and signals do.
#![cfg(all(feature = "cli", unix))]

use crate::support::folder::Folder;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const INCIDENT: &str = "histories/incidents/kubelet-restart/buggy";

/// A folder with evidence.
fn with_evidence() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("evidence")).unwrap();
    for entry in fs::read_dir(INCIDENT).unwrap().flatten() {
        fs::copy(entry.path(), folder.path("evidence").join(entry.file_name())).unwrap();
    }
    folder
}

/// The names of a folder's files, in order.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.root()).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_retrograde"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = program(arguments).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn no_output_replaces_what_is_read_under_any_name() {
    let folder = with_evidence();
    let evidence = folder.text("evidence");
    let log = folder.path("evidence/audit-A.log");
    fs::hard_link(&log, folder.path("hard.log")).unwrap();
    symlink(&log, folder.path("soft.log")).unwrap();
    fs::write(folder.path("rules.toml"), "").unwrap();
    fs::hard_link(folder.path("rules.toml"), folder.path("rules.json")).unwrap();
    assert_eq!(run(&["check", "--quiet", &format!("--json={}", folder.text("known.json")), &evidence]).0, Some(1));
    fs::write(folder.path("one.json"), "").unwrap();
    fs::hard_link(folder.path("one.json"), folder.path("two.json")).unwrap();
    symlink("three.json", folder.path("four.json")).unwrap();
    let before = fs::read(&log).unwrap();
    let json = |name: &str| format!("--json={}", folder.text(name));
    let (rules, known) = (folder.text("rules.toml"), folder.text("known.json"));
    for (arguments, why) in [
        (vec!["pack", &evidence, "-o", &folder.text("hard.log")], "one of the inputs"),
        (vec!["pack", &evidence, "-o", &folder.text("soft.log")], "one of the inputs"),
        (vec!["pack", &evidence, "--rules", &rules, "-o", &folder.text("rules.json")], "one of the rules files"),
        (vec!["check", &evidence, &json("hard.log")], "one of the inputs"),
        (vec!["check", &evidence, &json("soft.log")], "one of the inputs"),
        (vec!["check", &evidence, "--rules", &rules, &json("rules.json")], "one of the rules files"),
        (vec!["check", &evidence, "--baseline", &known, &json("known.json")], "the baseline"),
        (
            vec!["check", &evidence, &json("one.json"), "--report", &format!("html={}", folder.text("two.json"))],
            "two reports would go to",
        ),
        (
            vec!["check", &evidence, &json("three.json"), "--report", &format!("html={}", folder.text("four.json"))],
            "two reports would go to",
        ),
        (vec!["check", &evidence, &json("evidence")], "cannot write"),
    ] {
        let (code, said) = run(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
    let same = File::create(folder.path("same.txt")).unwrap();
    let refused = program(&["check", &evidence, &json("same.txt")]).stdout(same).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(fs::read(&log).unwrap(), before);
    assert_eq!(fs::read(folder.path("rules.toml")).unwrap(), b"");
    assert_eq!(names(&folder).iter().filter(|name| name.starts_with('.')).count(), 0);
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode_and_the_links_to_it() {
    let folder = with_evidence();
    let (evidence, real) = (folder.text("evidence"), folder.path("real.json"));
    fs::write(&real, "old").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o604)).unwrap();
    symlink("real.json", folder.path("link.json")).unwrap();
    let inode = fs::metadata(&real).unwrap().ino();
    let report = format!("--json={}", folder.text("link.json"));
    assert_eq!(run(&["check", "--quiet", &report, &evidence]).0, Some(1));
    let data = fs::metadata(&real).unwrap();
    assert_eq!(data.mode() & 0o7777, 0o604);
    assert_ne!(data.ino(), inode, "it was written beside its place");
    assert!(fs::symlink_metadata(folder.path("link.json")).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("retrograde/report/"));
    let packed = folder.path("packed.rgh");
    assert_eq!(run(&["pack", &evidence, "-o", packed.to_str().unwrap()]).0, Some(0));
    // Like any new file, by the umask of the process.
    fs::write(folder.path("any"), "").unwrap();
    assert_eq!(fs::metadata(&packed).unwrap().mode(), fs::metadata(folder.path("any")).unwrap().mode());
    assert_eq!(names(&folder), ["any", "evidence", "link.json", "packed.rgh", "real.json"]);
}

#[test]
fn pipes_and_devices_are_written_and_never_replaced() {
    let folder = with_evidence();
    let (evidence, fifo) = (folder.text("evidence"), folder.path("pipe"));
    pipe(&fifo);
    for (arguments, code, begins) in [
        (vec!["pack", &evidence, "-o", fifo.to_str().unwrap()], 0, &b"\x89RGH"[..]),
        (vec!["check", "--quiet", &evidence, &format!("--json={}", fifo.display())], 1, b"{\n"),
    ] {
        let mut reader = Command::new("cat").arg(&fifo).stdout(Stdio::piped()).spawn().unwrap();
        let ended = run(&arguments);
        // A pipe without a reader must not block the program.
        if !fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo() {
            reader.kill().unwrap();
        }
        let read = reader.wait_with_output().unwrap().stdout;
        assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo(), "{arguments:?}");
        assert_eq!(ended.0, Some(code), "{}", ended.1);
        assert!(read.starts_with(begins), "{arguments:?}");
    }
    let (code, said) = run(&["check", "--quiet", &evidence, "--json=/dev/full"]);
    assert_eq!(code, Some(2), "{said}");
    let other = folder.path("other.json");
    let both = ["check", "--quiet", &evidence, "--report", "html=/dev/full", &format!("--json={}", other.display())];
    assert_eq!(run(&both).0, Some(2));
    assert!(other.exists(), "one output that fails takes no other with it");
    assert_eq!(run(&["check", "--quiet", &evidence, "--json=/dev/null"]).0, Some(1));
    let named = program(&["check", &evidence, "--json=/dev/stdout"]).output().unwrap();
    let plain = program(&["check", &evidence, "--json"]).output().unwrap();
    assert_eq!(named.stdout, plain.stdout);
    let container = program(&["pack", &evidence, "-o", "/dev/stdout"]).output().unwrap();
    assert!(container.stdout.starts_with(b"\x89RGH") && container.status.code() == Some(0));
}

#[test]
fn readers_that_are_gone_or_full_change_no_exit_code() {
    let folder = with_evidence();
    let (evidence, blocked) = (folder.text("evidence"), folder.path("blocked"));
    fs::write(&blocked, "").unwrap();
    let known = folder.text("known.json");
    assert_eq!(run(&["check", "--quiet", &format!("--json={known}"), &evidence]).0, Some(1));
    let wrong = fs::read_to_string(&known).unwrap().replace("\"revision\": \"1", "\"revision\": \"9");
    fs::write(folder.path("wrong.json"), wrong).unwrap();
    for arguments in [
        vec!["check", "--timings", "--baseline", &known, "--cache", &evidence],
        vec!["check", "--timings", &evidence],
        vec!["explain", "--audit-id", "no-such-id", &evidence],
        vec!["verify", &folder.text("wrong.json"), &evidence],
        vec!["check", "/no/such/path"],
        vec!["check", "--no-such-option"],
        vec!["pack", "Cargo.lock", "-o", &folder.text("none.rgh")],
        vec!["rules"],
        vec!["man"],
    ] {
        let command = || {
            let mut command = program(&arguments);
            command.env("RETROGRADE_CACHE_DIR", &blocked);
            command
        };
        let code = command().output().unwrap().status.code();
        assert!(code.is_some_and(|code| code < 4), "{arguments:?}");
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(command().stderr(full).output().unwrap().status.code(), code, "{arguments:?}: full");
        let closed = |error: bool, out: bool| {
            let mut command = command();
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            if error {
                command.stderr(writer.try_clone().unwrap());
            }
            if out {
                command.stdout(writer);
            }
            let output: Output = command.output().unwrap();
            output.status.code()
        };
        for (error, out) in [(true, false), (false, true), (true, true)] {
            assert_eq!(closed(error, out), code, "{arguments:?}: closed {error} {out}");
        }
    }
}

#[test]
fn a_signal_leaves_the_old_file_or_the_new_one_and_nothing_else() {
    let folder = with_evidence();
    let (evidence, packed) = (folder.text("evidence"), folder.path("x.rgh"));
    // More evidence, so that there is time to interrupt.
    let log = fs::read_to_string(folder.path("evidence/audit-A.log")).unwrap();
    fs::write(folder.path("evidence/more.log"), log.repeat(100)).unwrap();
    let arguments = ["pack", &evidence, "-o", packed.to_str().unwrap()];
    let begun = Instant::now();
    assert_eq!(run(&arguments).0, Some(0));
    let whole = begun.elapsed();
    let made = fs::read(&packed).unwrap();
    for (signal, at) in (0..16).map(|n| (if n % 2 == 0 { "-TERM" } else { "-INT" }, whole * n / 15)) {
        fs::write(&packed, "old").unwrap();
        let mut child = program(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(at);
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let status = child.wait().unwrap();
        let left = fs::read(&packed).unwrap();
        assert!(left == b"old" || left == made, "{signal} after {at:?}");
        assert!(status.code() != Some(0) || left == made, "{signal} after {at:?}");
        assert_eq!(names(&folder), ["evidence", "x.rgh"], "{signal} after {at:?}");
    }
}

#[test]
fn a_cache_is_its_owners_and_follows_nothing() {
    let folder = with_evidence();
    let (evidence, cache) = (folder.text("evidence"), folder.path("open"));
    fs::create_dir(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    let check = |cache: &Path| {
        let mut child = program(&["check", "--cache", "--quiet", &evidence])
            .env("RETROGRADE_CACHE_DIR", cache)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begun.elapsed() > Duration::from_secs(60) {
                child.kill().unwrap();
                panic!("it waits for something");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let entry = |cache: &Path| fs::read_dir(cache).unwrap().flatten().next().unwrap().path();
    assert_eq!(check(&cache), "");
    let kept = entry(&cache);
    assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o7777, 0o600);
    let own = folder.path("new/folder");
    assert_eq!(check(&own), "");
    assert_eq!(fs::metadata(&own).unwrap().mode() & 0o7777, 0o700);
    // The same container behind a link, one that other users can write, and a pipe.
    let elsewhere = folder.path("elsewhere.rgh");
    fs::rename(&kept, &elsewhere).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    symlink(&elsewhere, &kept).unwrap();
    for next in [1, 2, 3] {
        let said = check(&cache);
        assert!(said.contains("is of no use"), "{next}: {said}");
        let data = fs::symlink_metadata(&kept).unwrap();
        assert!(data.is_file() && data.mode() & 0o7777 == 0o600, "{next}");
        assert_eq!(check(&cache), "", "{next}");
        match next {
            1 => fs::set_permissions(&kept, fs::Permissions::from_mode(0o666)).unwrap(),
            _ => {
                fs::remove_file(&kept).unwrap();
                pipe(&kept);
            }
        }
    }
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
}
