//! Exports are judged as the audit logs that they hold.
//!
//! Each recorded incident is wrapped in each envelope. Its findings must be those of the plain log, its report must
//! verify against the export, and a container of it must be judged alike.
#![cfg(feature = "cli")]

mod wrapping;

use retrograde::history::snapshot::{self, Packing};
use retrograde::history::{Domains, History, load_each};
use retrograde::ingest::fields::Fields;
use retrograde::ingest::{FileId, InputFile, ReadOptions, SourceRule};
use retrograde::report::page::Look;
use retrograde::report::{Format, Part, Report};
use retrograde::verify::{self, Standing};
use std::fs;
use std::path::{Path, PathBuf};
use wrapping::{ALL, Wrapping};

/// Audit logs and other files of a recorded incident, by name.
struct Incident {
    path: PathBuf,
    audits: Vec<(String, String)>,
    others: Vec<(String, String)>,
}

fn incidents() -> Vec<Incident> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let paths = fs::read_dir(path).unwrap().flatten().map(|entry| entry.path());
        let mut folders: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
        folders.sort();
        folders
    };
    let incidents = folders(Path::new("histories/incidents"));
    let folders = incidents.iter().flat_map(|incident| folders(incident));
    let read = |path: PathBuf| {
        let (mut audits, mut others) = (Vec::new(), Vec::new());
        let mut names: Vec<PathBuf> = fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()).collect();
        names.sort();
        for file in names {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            if name == "expected.json" || name.ends_with(".sketch") || name.ends_with(".md") {
                continue;
            }
            let Ok(text) = fs::read_to_string(&file) else { continue };
            let is_audit =
                text.lines().all(|line| line.contains("\"audit.k8s.io/v1\"") && line.contains("\"auditID\""));
            if is_audit { audits.push((name, text)) } else { others.push((name, text)) }
        }
        Incident { path, audits, others }
    };
    folders.map(read).filter(|incident| !incident.audits.is_empty()).collect()
}

/// The inputs of an incident, with its audit logs as `content` gives them. `server` is declared for each, if it is
/// given.
fn inputs(incident: &Incident, content: impl Fn(&str, &str) -> Vec<u8>, server: bool) -> Vec<InputFile> {
    let audits = incident.audits.iter().map(|(name, text)| {
        let said = server.then(|| server_of(name));
        let source = SourceRule { server: said, ..SourceRule::default() };
        (name, content(name, text), source)
    });
    let others = incident.others.iter().map(|(name, text)| (name, text.clone().into_bytes(), SourceRule::default()));
    let all = audits.chain(others).zip(0..);
    all.map(|((name, bytes, source), id)| InputFile { source, ..InputFile::in_memory(FileId(id), name, bytes) })
        .collect()
}

/// The server that wrote a log, as envelopes name it.
fn server_of(name: &str) -> String {
    format!("kube-apiserver-audit-{}", name.trim_end_matches(".log"))
}

fn load(inputs: Vec<InputFile>) -> Vec<History> {
    load_each(inputs, &ReadOptions { threads: 1, ..retrograde::read_options() }, &Domains::default(), &())
}

/// The verdict and the findings of histories, without places.
fn judged(histories: &[History]) -> String {
    let mut said = String::new();
    for history in histories {
        let judgement = retrograde::judge(history, &retrograde::Options::default());
        let findings = judgement.findings.iter().map(|finding| format!("{} {:?}", finding.rule, finding.kind));
        let mut findings: Vec<String> = findings.collect();
        findings.sort();
        let verdict = format!("{:?}", judgement.verdict);
        said += &format!("{} {} {findings:?}\n", verdict.split('(').next().unwrap(), history.operations.len());
    }
    said
}

fn wrapped(wrapping: &Wrapping, incident: &Incident) -> Vec<InputFile> {
    let wrap = |name: &str, text: &str| (wrapping.wrap)(&text.lines().collect::<Vec<_>>(), &server_of(name));
    inputs(incident, wrap, false)
}

#[test]
fn an_export_is_judged_as_the_audit_log_that_it_holds() {
    let incidents = incidents();
    assert!(incidents.len() > 20, "{}", incidents.len());
    for incident in &incidents {
        let plain = [false, true].map(|server| judged(&load(inputs(incident, |_, text| text.into(), server))));
        for wrapping in ALL {
            let histories = load(wrapped(wrapping, incident));
            let place = format!("{} as {}", incident.path.display(), wrapping.name);
            for file in histories.iter().flat_map(|history| &history.files) {
                let headers = file.export.others.get("headers of tables").copied().unwrap_or(0);
                assert_eq!((file.problems, file.unknown), (0, headers), "{place}: {file:?}");
                assert!(file.export.clusters.iter().all(|cluster| cluster == wrapping.cluster), "{place}: {file:?}");
            }
            assert_eq!(judged(&histories), plain[usize::from(wrapping.names_server)], "{place}");
        }
    }
}

/// The report of `check --json --proofs`.
fn report(histories: &[History]) -> Vec<u8> {
    let check = retrograde::check::Options { proofs: true, ..Default::default() };
    let options = retrograde::Options { check, ..Default::default() };
    let judgements: Vec<_> = histories.iter().map(|history| retrograde::judge(history, &options)).collect();
    let parts = histories.iter().zip(&judgements).map(|(history, judgement)| Part::of(history, judgement));
    let mut out = Vec::new();
    Format::Json.sink(Look::default()).write(&Report { histories: parts.collect() }, &mut out).unwrap();
    out
}

#[test]
fn a_report_of_an_export_verifies_and_its_container_is_judged_alike() {
    let path = Path::new("histories/incidents/kubelet-restart/buggy");
    let incident = incidents().into_iter().find(|incident| incident.path == path).unwrap();
    for wrapping in ALL {
        let files = wrapped(wrapping, &incident);
        let histories = load(files.clone());
        let json = report(&histories);
        let saved: verify::Report = serde_json::from_slice(&json).unwrap();
        assert!(saved.histories.iter().any(|history| history.verdict == "violated"), "{}", wrapping.name);
        let checks = verify::report(&saved, &files, &retrograde::read_options(), None, 1_000_000);
        let mut confirmed = 0;
        for (history, check) in saved.histories.iter().zip(&checks) {
            for (standing, text) in verify::standings(history, check) {
                assert_ne!(standing, Standing::Wrong, "{}: {text}", wrapping.name);
            }
            confirmed += check.findings.iter().map(|finding| finding.confirmed).sum::<u64>();
        }
        assert!(confirmed > 10, "{}: {confirmed}", wrapping.name);
        let packing = Packing { fields: &Fields::default(), request: "", compress: true };
        let packed = snapshot::write(Vec::new(), &histories, &packing).unwrap();
        let unpacked = snapshot::read(&mut &packed[..], &Fields::default(), None).unwrap().histories;
        assert_eq!(judged(&unpacked), judged(&histories), "{}", wrapping.name);
    }
}

#[test]
fn an_export_that_is_cut_off_anywhere_shows_what_is_in_front_of_the_cut() {
    let path = Path::new("histories/incidents/kubelet-restart/buggy");
    let incident = incidents().into_iter().find(|incident| incident.path == path).unwrap();
    let (name, text) = &incident.audits[0];
    let events: Vec<&str> = text.lines().take(6).collect();
    for wrapping in ALL {
        let whole = (wrapping.wrap)(&events, &server_of(name));
        let records = |bytes: &[u8]| {
            let histories = load(vec![InputFile::in_memory(FileId(0), name, bytes)]);
            histories.iter().flat_map(|history| &history.files).map(|file| file.records).sum::<u64>()
        };
        let all = records(&whole);
        assert_eq!(all, 6, "{}", wrapping.name);
        let mut last = 0;
        for at in (0..whole.len()).step_by(whole.len() / 97) {
            let found = records(&whole[..at]);
            // A batch that is packed can be read only whole.
            assert!(found >= last && found <= all, "{}: {found} after {last} in {at} bytes", wrapping.name);
            last = found;
        }
        assert!(last >= 3, "{}: {last}", wrapping.name);
    }
}
