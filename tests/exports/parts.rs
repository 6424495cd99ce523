//! Container runtimes cut lines of more than 16 KiB. Their parts are joined before an event is read.

use super::{Incident, incidents, inputs, judged, load};
use crate::exports::wrapping::lines;
use crate::support::reported::json_with_proofs;
use retrograde::ingest::{FileId, InputFile, ReadOptions};
use retrograde::verify::{self, Standing};
use serde_json::{Value, json};
use std::path::Path;

/// An event whose line is longer than a runtime writes.
fn long(event: &str) -> String {
    let padding = Value::from("é\n\"".repeat(6_000));
    format!("{},\"padding\":{padding}}}", event.strip_suffix('}').unwrap())
}

/// The parts of a text of at most `most` bytes.
fn cut(text: &str, most: usize) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while rest.len() > most {
        let at = (0..=most).rev().find(|at| rest.is_char_boundary(*at)).unwrap();
        let (part, more) = rest.split_at(at);
        parts.push(part);
        rest = more;
    }
    parts.push(rest);
    parts
}

/// Lines as CRI-O writes them, with a line of the other stream behind each first part.
fn cri(events: &[&str]) -> Vec<u8> {
    let time = "2026-03-02T09:00:00.000000001Z";
    let mut written = Vec::new();
    for event in events.iter().map(|event| long(event)) {
        let parts = cut(&event, 16 << 10);
        for (nth, part) in parts.iter().enumerate() {
            let flag = if nth + 1 < parts.len() { 'P' } else { 'F' };
            written.push(format!("{time} stdout {flag} {part}"));
            if nth == 0 {
                written.push(format!("{time} stderr F I0302 09:00:00.000000 1 trace.go:1] x"));
            }
        }
    }
    lines(written.into_iter())
}

/// Lines as Docker writes them.
fn docker(events: &[&str]) -> Vec<u8> {
    let mut written = Vec::new();
    for event in events.iter().map(|event| long(event) + "\n") {
        for part in cut(&event, 16 << 10) {
            written.push(json!({"log": part, "stream": "stdout", "time": "2026-03-02T09:00:00Z"}).to_string());
        }
        let other = json!({"log": "I0302 x\n", "stream": "stderr", "time": "2026-03-02T09:00:00Z"});
        written.push(other.to_string());
    }
    lines(written.into_iter())
}

/// Writes events as lines of a container.
type Write = fn(&[&str]) -> Vec<u8>;

const RUNTIMES: [(&str, Write); 2] = [("CRI-O", cri), ("Docker", docker)];

fn incident() -> Incident {
    let path = Path::new("histories/incidents/kubelet-restart/buggy");
    incidents().into_iter().find(|incident| incident.path == path).unwrap()
}

#[test]
fn a_log_of_a_container_is_judged_as_the_audit_log_whatever_its_parts() {
    let incident = incident();
    let plain = judged(&load(inputs(&incident, |_, text| text.into(), false)));
    for (runtime, write) in RUNTIMES {
        let files = inputs(&incident, |_, text| write(&text.lines().collect::<Vec<_>>()), false);
        let histories = load(files.clone());
        assert_eq!(judged(&histories), plain, "{runtime}");
        for file in histories.iter().flat_map(|history| &history.files) {
            assert_eq!(file.problems, 0, "{runtime}: {file:?}");
        }
        // The report is confirmed by reading the parts again.
        let saved: verify::Report = serde_json::from_slice(&json_with_proofs(&histories)).unwrap();
        let checks = verify::report(&saved, &files, &retrograde::read_options(), None, 1_000_000);
        let mut confirmed = 0;
        for (history, check) in saved.histories.iter().zip(&checks) {
            for (standing, text) in verify::standings(history, check) {
                assert_ne!(standing, Standing::Wrong, "{runtime}: {text}");
            }
            confirmed += check.findings.iter().map(|finding| finding.confirmed).sum::<u64>();
        }
        assert!(confirmed > 10, "{runtime}: {confirmed}");
    }
}

#[test]
fn parts_are_joined_wherever_a_block_ends() {
    let (name, text) = &incident().audits[0];
    let events: Vec<&str> = text.lines().take(5).collect();
    for (runtime, write) in RUNTIMES {
        let bytes = write(&events);
        let folder = crate::support::folder::Folder::new();
        std::fs::write(folder.path(name), &bytes).unwrap();
        for block_bytes in [1, 1_000, 17_000, 40_000, 100_000, bytes.len()] {
            let on_disk = InputFile { path: folder.path(name), shown: name.clone(), ..InputFile::default() };
            for input in [InputFile::in_memory(FileId(0), name, bytes.clone()), on_disk] {
                let options = ReadOptions { threads: 2, block_bytes, ..retrograde::read_options() };
                let histories = retrograde::history::load_each(vec![input], &options, &Default::default(), &());
                let file = &histories[0].files[0];
                let expected = (5, 0, 5);
                assert_eq!((file.records, file.problems, file.unknown), expected, "{runtime}, {block_bytes}: {file:?}");
            }
        }
    }
}

#[test]
fn a_line_whose_last_part_is_missing_is_a_problem_and_costs_no_other() {
    let (name, text) = &incident().audits[0];
    let events: Vec<&str> = text.lines().take(3).collect();
    for (runtime, write) in RUNTIMES {
        let whole = String::from_utf8(write(&events)).unwrap();
        let mut cut: Vec<&str> = whole.lines().collect();
        let first = cut.iter().position(|line| line.contains("stdout")).unwrap();
        // The first event loses its first part, and the last event its last part.
        cut.remove(first);
        let last = cut.iter().rposition(|line| line.contains("stdout")).unwrap();
        cut.remove(last);
        let histories = load(vec![InputFile::in_memory(FileId(0), name, cut.join("\n").into_bytes())]);
        let file = &histories[0].files[0];
        assert_eq!(file.records, 1, "{runtime}: {file:?}");
        assert!(file.problems + file.unknown > 3, "{runtime}: {file:?}");
    }
}
