//! Reports in every layout that users keep: a directory, an archive of it, many under one root, or some files of one.
//! The verdicts must be the same.
//!
//! It finds archive members that are assigned to another report or lost, and verdicts that depend on the layout.

use super::Report;
use super::injection::starved;
use crate::support::folder::Folder;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Files by name.
type Files = Vec<(String, Vec<u8>)>;

/// A folder for one test.
fn write(folder: &Folder, files: &Files) {
    for (name, bytes) in files {
        let place = folder.path(name);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        fs::write(place, bytes).expect("a file");
    }
}

/// A tar archive (POSIX.1-1988, ustar) with its folders.
fn tar(files: &Files) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut folders: Vec<&str> = Vec::new();
    for (name, bytes) in files {
        for (at, _) in name.match_indices('/') {
            if !folders.contains(&&name[..=at]) {
                folders.push(&name[..=at]);
                archive.extend(header(&name[..=at], 0, b'5'));
            }
        }
        archive.extend(header(name, bytes.len(), b'0'));
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn header(name: &str, length: usize, kind: u8) -> [u8; 512] {
    let mut block = [0; 512];
    let mut set = |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    set(0, name);
    set(100, "0000644\0");
    set(124, &format!("{length:011o}\0"));
    set(136, "00000000000\0");
    set(148, "        ");
    set(257, "ustar\x0000");
    block[156] = kind;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(feature = "compress")]
fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).expect("a vector takes everything");
    packed.finish().expect("a vector takes everything")
}

/// An archive in each compression.
fn packed(files: &Files) -> Vec<(&'static str, Vec<u8>)> {
    let archive = tar(files);
    #[cfg(feature = "compress")]
    let more = [("tar.gz", gzip(&archive)), ("tar.zst", zstd::encode_all(&archive[..], 0).expect("zstd"))];
    #[cfg(not(feature = "compress"))]
    let more = [];
    [("tar", archive)].into_iter().chain(more).collect()
}

/// The result for a path: the exit code, and the name, verdict, findings and problems of each history, without the
/// path.
fn said(path: &Path, kept: &Path) -> (Option<i32>, Vec<(String, Value)>) {
    let output = Command::new(env!("CARGO_BIN_EXE_retrograde")).args(["check", "--json"]).arg(path).output();
    let output = output.expect("the program runs");
    let text = String::from_utf8(output.stdout).expect("text").replace(&format!("{}/", kept.display()), "");
    let report: Value = serde_json::from_str(&text).expect("a report");
    let of = |history: &Value| {
        let name = history["name"].as_str().unwrap_or("").to_owned();
        let fields = ["verdict", "reason", "findings", "rules", "clients"].map(|field| history[field].clone());
        (name, fields.into_iter().collect())
    };
    let mut histories: Vec<_> = report["histories"].as_array().expect("histories").iter().map(of).collect();
    histories.sort_by(|a, b| a.0.cmp(&b.0));
    (output.status.code(), histories)
}

fn renamed(files: Vec<(String, String)>, name: &str) -> Files {
    let rename = |path: String| format!("{name}{}", path.trim_start_matches("report"));
    files.into_iter().map(|(path, text)| (rename(path), text.into_bytes())).collect()
}

/// A report with a starved watch and an unrelated member's log.
fn broken(name: &str) -> Files {
    let report = (0..).find_map(starved).expect("some seed has a place for it");
    let mut files = renamed(report.files(), name);
    let log = include_bytes!("../samples/member.wal").to_vec();
    files.push((format!("{name}/server-m0/member/wal/0000000000000000-0000000000000000.wal"), log));
    files
}

fn healthy(name: &str, seed: u64) -> Files {
    renamed(Report::draw(seed, true).files(), name)
}

#[test]
fn nothing_of_a_report_is_written() {
    let folder = Folder::new();
    let mut files = broken("bad");
    // A log that ends inside a record.
    let log = files.last_mut().expect("a log");
    log.1.truncate(log.1.len() / 2);
    write(&folder, &files);
    said(&folder.path("bad"), folder.root());
    let mut found = Vec::new();
    let mut folders = vec![folder.root().to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let place = entry.expect("an entry").path();
            match place.is_dir() {
                true => folders.push(place),
                false => found.push(place),
            }
        }
    }
    assert_eq!(found.len(), files.len(), "{found:?}");
    for (name, bytes) in &files {
        assert!(&fs::read(folder.path(name)).expect("a file") == bytes, "{name}");
    }
}

#[test]
fn an_archive_of_a_report_is_judged_as_the_report() {
    let folder = Folder::new();
    for (name, files, word) in [("good", healthy("good", 3), "holds"), ("bad", broken("bad"), "violated")] {
        write(&folder, &files);
        let (code, expected) = said(&folder.path(name), folder.root());
        assert_eq!(expected.len(), 1);
        assert_eq!(expected[0].1[0], *word);
        for (kind, archive) in packed(&files) {
            let place = folder.path(&format!("{name}.{kind}"));
            fs::write(&place, archive).expect("a file");
            assert_eq!(said(&place, &place), (code, expected.clone()), "{name}.{kind}");
        }
    }
}

#[test]
fn many_reports_under_one_root_are_judged_one_by_one() {
    let folder = Folder::new();
    let reports = [healthy("runs/1", 3), broken("runs/TestRobustness/2"), healthy("runs/3", 5)];
    reports.iter().for_each(|files| write(&folder, files));
    let alone = |name: &str| said(&folder.path(name), folder.root()).1;
    let expected: Vec<_> = ["runs/1", "runs/3", "runs/TestRobustness/2"].into_iter().flat_map(alone).collect();
    assert_eq!(expected.len(), 3);
    assert_eq!(said(&folder.path("runs"), folder.root()), (Some(1), expected.clone()));
    // All reports in one archive, and each in an archive of its own.
    let apart = Folder::new();
    for (kind, archive) in packed(&reports.concat()) {
        let place = folder.path(&format!("all.{kind}"));
        fs::write(&place, archive).expect("a file");
        assert_eq!(said(&place, &place), (Some(1), expected.clone()), "{kind}");
    }
    for (n, files) in reports.iter().enumerate() {
        let (kind, archive) = packed(files).swap_remove(n % packed(files).len());
        fs::write(apart.path(&format!("{n}.{kind}")), archive).expect("a file");
    }
    let (code, found) = said(apart.root(), apart.root());
    let verdicts = |of: &[(String, Value)]| of.iter().map(|(_, history)| history[0].to_string()).collect::<Vec<_>>();
    assert_eq!((code, verdicts(&found).len()), (Some(1), 3));
    assert_eq!(verdicts(&found).iter().filter(|verdict| *verdict == "\"violated\"").count(), 1);
}

#[test]
fn some_files_of_a_report_are_judged_as_what_is_there() {
    let folder = Folder::new();
    let files = healthy("whole", 3);
    write(&folder, &files);
    for (name, _) in &files {
        let (code, found) = said(&folder.path(name), folder.root());
        assert_ne!(code, Some(1), "{name}: {found:?}");
        let (of_folder, in_folder) = said(folder.path(name).parent().expect("a folder"), folder.root());
        assert_ne!(of_folder, Some(1), "{name}: {in_folder:?}");
    }
    // Without the first client: equal to an archive without it.
    let rest: Files = files.iter().filter(|(name, _)| !name.contains("client-1/")).cloned().collect();
    let rest: Files = rest.into_iter().map(|(name, bytes)| (name.replace("whole", "rest"), bytes)).collect();
    write(&folder, &rest);
    let expected = said(&folder.path("rest"), folder.root());
    for (kind, archive) in packed(&rest) {
        let place = folder.path(&format!("rest.{kind}"));
        fs::write(&place, archive).expect("a file");
        assert_eq!(said(&place, &place), expected, "{kind}");
    }
}
