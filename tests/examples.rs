//! The programs below `examples/`, which users copy. Each has a test of its name that calls the function behind its
//! `main`.

#[path = "../examples/check_folder.rs"]
#[allow(dead_code)]
mod check_folder;
#[path = "../examples/own_spec.rs"]
#[allow(dead_code)]
mod own_spec;
#[path = "../examples/read_report.rs"]
#[allow(dead_code)]
mod read_report;
#[path = "../examples/record_etcd.rs"]
#[allow(dead_code)]
mod record_etcd;
#[cfg(feature = "tower")]
#[path = "../examples/record_kubernetes.rs"]
#[allow(dead_code)]
mod record_kubernetes;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The text has these parts in this order.
fn assert_shows(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not where it should be in\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn every_example_has_a_test_and_says_how_to_run_it() {
    let tests = include_str!("examples.rs");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(tests.contains(&format!("#[test]\nfn {name}()")), "{name} has no test in tests/examples.rs");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(&format!("//! $ cargo run --example {name}")), "{name} does not say how to run it");
        let lines = text.lines().count();
        assert!(lines <= 90 && !text.contains("unwrap()") && !text.contains("expect("), "{name}: {lines} lines");
        names.insert(name);
    }
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn check_folder() {
    let text = check_folder::checked(check_folder::INCIDENT.as_ref()).unwrap();
    let place = Path::new("kubelet-restart").join("buggy");
    let place = format!("{}", place.join("kubelet-1.jsonl:17").display());
    let parts = [
        "kubernetes: violated\n",
        "\nViolation of monotonic-reads: node-1 saw pods where spec.nodeName=node-1 at revision 105 after ",
        "  LIST pods where spec.nodeName=node-1 resourceVersion=0 answered the state of revision 105\n    at ",
        &place,
        "\n  because No observation of a process lies below one that it made before",
        "\nHazard of unsafe-first-read: ",
        "\nnot checked: no etcd witness",
    ];
    assert_shows(&text, &parts);
    assert!(check_folder::checked(Path::new("no such folder")).is_err());
}

#[test]
fn own_spec() {
    own_spec::checked(own_spec::take_at_once).unwrap();
    let all_have_read = std::sync::Barrier::new(4);
    let report = own_spec::checked(|stock| own_spec::take_in_two_steps(stock, &all_have_read)).unwrap_err();
    assert!(report.is_refuted());
    let report = report.to_string();
    let parts =
        ["VIOLATED", "no order explains 4 of 5 calls", "if any one", "of them is left out, there is such an order"];
    assert_shows(&report, &parts);
    assert_eq!(report.matches("`Take` answered `Taken`").count(), 4, "{report}");
}

#[cfg(feature = "tower")]
#[test]
fn record_kubernetes() {
    let folder = std::env::temp_dir().join(format!("retrograde-examples-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let report = record_kubernetes::recorded(&folder).unwrap().expect("a finding");
    fs::remove_dir_all(folder).unwrap();
    let summary = "node-1 saw pods at revision 105 after it had seen revision 115: it went back in time";
    let list = "LIST pods resourceVersion=0 answered the state of revision 105";
    assert_shows(&report, &["VIOLATED   1 violation", "monotonic-reads", summary, list, "node-1.jsonl:10"]);
}

#[test]
fn record_etcd() {
    assert_eq!(record_etcd::recorded((3, b"2")).unwrap(), ["verdict: holds"]);
    let expected = [
        "verdict: violated",
        "stale-consistent-read: A request that was sent after revision 3 had been seen was answered at revision 2.",
        "  put k=2; answered at revision 3 [client-ann/operations.json:4]",
        "  read k; answered at revision 2 [client-bob/operations.json:2]",
    ];
    assert_eq!(record_etcd::recorded((2, b"1")).unwrap(), expected);
}

#[test]
fn read_report() {
    let expected = "verdict: violated
kubernetes: violated
  1 violation of monotonic-reads
  1 hazard of unsafe-relist
";
    assert_eq!(read_report::summary(&read_report::sample().unwrap()).unwrap(), expected);
    assert!(read_report::summary(b"{}").is_err());
    let newer = br#"{"schema": "retrograde/report/2", "verdict": "holds", "histories": []}"#;
    let error = read_report::summary(newer).unwrap_err().to_string();
    assert_eq!(error, "expected retrograde/report/1, found retrograde/report/2");
}
