//! A small sample of each envelope, from which the fuzz target `audit` begins.

use super::{load, server_of};
use crate::exports::wrapping::ALL;
use retrograde::history::History;
use retrograde::ingest::{FileId, InputFile};
use std::fs;
use std::path::Path;

const SAMPLES: &str = "tests/samples/exports";

/// The operations of one file, as text.
fn shown(bytes: &[u8]) -> Vec<String> {
    let histories = load(vec![InputFile::in_memory(FileId(0), "export", bytes)]);
    let of = |history: &History| -> Vec<String> {
        history.operations.iter().map(|o| format!("{:?} {} {} {}", o.verb, o.status, o.invoke, o.ret)).collect()
    };
    histories.iter().flat_map(of).collect()
}

#[test]
fn each_envelope_has_a_sample_that_holds_its_events() {
    let log = fs::read_to_string("histories/incidents/kubelet-restart/buggy/audit-A.log").unwrap();
    let events: Vec<&str> = log.lines().take(2).collect();
    let mut expected: Vec<String> = Vec::new();
    for wrapping in ALL {
        let path = Path::new(SAMPLES).join(wrapping.name);
        let wrapped = (wrapping.wrap)(&events, &server_of("audit-A.log"));
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(SAMPLES).unwrap();
            fs::write(&path, &wrapped).unwrap();
        }
        let sample = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(shown(&sample), shown(&wrapped), "{}", path.display());
        assert!(!shown(&sample).is_empty(), "{}", path.display());
        expected.push(wrapping.name.to_owned());
    }
    let mut found: Vec<String> =
        fs::read_dir(SAMPLES).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "UPDATE=1 writes the samples; remove those of envelopes that are gone");
}
