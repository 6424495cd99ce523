//! Every shape of the growth bench at a small size. It is valid evidence, every command ends with a verdict, and
//! output for twice the evidence is about twice as long. `benches/growth.rs` measures times.

mod shape;

use crate::support::draws::every;
use serde_json::Value;
use shape::{Shape, shapes};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;

const BYTES: u64 = 20_000;
/// Longer output grows with the evidence, not with its first client or rule.
const LONG: usize = 100_000;

/// Shapes whose lines are meant to be problems.
const PROBLEMS: [&str; 3] = ["audit-parts-without-end", "etcd-copied-operations", "witness-disorder"];

/// Shapes whose streams lack nearly every change. Findings are about pairs, up to the limit of a rule.
const PAIRS: [&str; 4] = ["capture-streams", "capture-gaps", "capture-clients-of-streams", "capture-clocks-of-streams"];

/// Runs a closure for one shape in five, on all cores. `RETROGRADE_DRAWS=5` takes all shapes.
fn each(test: impl Fn(&Shape, &Path) + Sync) {
    let left = Mutex::new(every(5, shapes()));
    let work = || {
        while let Some(shape) = { left.lock().expect("no test failed").pop() } {
            let folder = tempfile::tempdir().expect("there is room for temporary files");
            test(&shape, folder.path());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
}

fn retrograde(shape: &Shape, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_retrograde"))
        .args(arguments)
        .args(["--threads", "1"])
        .output()
        .expect("the program starts");
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1 | 3)), "{}: {arguments:?} ends with {code:?}: {output:?}", shape.name);
    output
}

fn draw(shape: &Shape, folder: &Path, name: &str, bytes: u64) -> String {
    let folder = folder.join(name);
    shape.draw(&folder, bytes);
    folder.to_str().expect("temporary folders have plain names").to_owned()
}

fn report(shape: &Shape, evidence: &str) -> Vec<u8> {
    retrograde(shape, &["check", "--json", evidence]).stdout
}

#[test]
fn at_least_eighty_shapes_have_names_of_their_own() {
    let names: BTreeSet<&str> = shapes().iter().map(|shape| shape.name).collect();
    assert_eq!(names.len(), shapes().len());
    assert!(names.len() >= 80);
}

#[test]
fn every_shape_is_evidence_that_is_understood() {
    each(|shape, folder| {
        let json = report(shape, &draw(shape, folder, "evidence", BYTES));
        let json: Value = serde_json::from_slice(&json).expect("a report");
        let inputs =
            json["histories"].as_array().expect("histories").iter().flat_map(|history| history["inputs"].as_array());
        let (mut records, mut problems, mut unknown) = (0, 0, 0);
        for input in inputs.flatten() {
            assert_eq!(input["ignored"], Value::Null, "{}: {input}", shape.name);
            let count = |name: &str| input[name].as_u64().expect("a count");
            records += count("records");
            problems += count("problems");
            unknown += count("unknown");
        }
        assert!(records > 0 && unknown == 0, "{}: {records} records, {unknown} unknown", shape.name);
        assert_eq!(problems > 0, PROBLEMS.contains(&shape.name), "{}: {problems} problems", shape.name);
    });
}

#[test]
fn a_shape_has_the_size_that_is_asked_for() {
    each(|shape, folder| {
        draw(shape, folder, "evidence", BYTES);
        let mut bytes = 0;
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().expect("a folder").flatten() {
                let data = entry.metadata().expect("a file");
                if data.is_dir() { folders.push(entry.path()) } else { bytes += data.len() }
            }
        }
        assert!((BYTES / 2..2 * BYTES).contains(&bytes), "{}: {bytes} bytes", shape.name);
    });
}

#[test]
fn every_command_ends_with_a_verdict_on_every_shape() {
    each(|shape, folder| {
        let evidence = draw(shape, folder, "evidence", BYTES);
        let path = |name: &str| folder.join(name).to_str().expect("a plain name").to_owned();
        let (saved, packed) = (path("report.json"), path("packed.rgh"));
        retrograde(
            shape,
            &["check", &format!("--json={saved}"), &format!("--report=html={}", path("page.html")), &evidence],
        );
        retrograde(shape, &["verify", &saved, &evidence]);
        retrograde(shape, &["show", &evidence]);
        retrograde(shape, &[&["explain"], &shape.question()[..], &[&evidence]].concat());
        let nothing = retrograde(shape, &["pack", "-o", &packed, &evidence]).status.code() == Some(3);
        assert_eq!(nothing, !Path::new(&packed).exists(), "{}: what is packed is in a file", shape.name);
        if nothing {
            return;
        }
        assert_eq!(
            retrograde(shape, &["check", &packed]).status.code(),
            retrograde(shape, &["check", &evidence]).status.code(),
            "{}: a container is judged as its evidence is",
            shape.name
        );
    });
}

#[test]
fn a_report_on_twice_the_evidence_is_at_most_two_and_a_half_times_as_long() {
    each(|shape, folder| {
        if PAIRS.contains(&shape.name) {
            return;
        }
        let [once, twice] = [("once", 2 * BYTES), ("twice", 4 * BYTES)]
            .map(|(name, bytes)| report(shape, &draw(shape, folder, name, bytes)).len());
        assert!(once < LONG || twice * 2 <= once * 5, "{}: {once} and {twice} bytes", shape.name);
    });
}
