//! Exports are judged as the audit logs that they hold.
//!
//! Each recorded incident is wrapped in each envelope. Its findings must be those of the plain log, its report must
//! verify against the export, and a container of it must be judged alike.
#![cfg(feature = "cli")]

mod agents;
mod parts;
mod samples;
mod wrapping;

use crate::support::folder::Folder;
use crate::support::reported::json_with_proofs;
use retrograde::history::snapshot::{self, Packing};
use retrograde::history::{Domains, History, Marks, load_each};
use retrograde::ingest::{Fields, FileId, InputFile, ReadOptions, SourceRule};
use retrograde::report::Part;
use retrograde::verify::{self, Standing};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
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

#[test]
fn a_report_of_an_export_verifies_and_its_container_is_judged_alike() {
    let path = Path::new("histories/incidents/kubelet-restart/buggy");
    let incident = incidents().into_iter().find(|incident| incident.path == path).unwrap();
    for wrapping in ALL {
        let files = wrapped(wrapping, &incident);
        let histories = load(files.clone());
        let json = json_with_proofs(&histories);
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
fn a_cached_check_of_an_export_says_what_the_check_says() {
    let path = Path::new("histories/incidents/kubelet-restart/buggy");
    let incident = incidents().into_iter().find(|incident| incident.path == path).unwrap();
    let cache = Folder::new();
    for wrapping in ALL {
        let folder = Folder::new();
        for file in wrapped(wrapping, &incident) {
            fs::write(folder.path(&file.shown), file.bytes.as_deref().unwrap()).unwrap();
        }
        let checked = |flag: Option<&str>| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_retrograde"));
            command.args(["check", "--json"]).arg(folder.root()).args(flag);
            let output = command.env("RETROGRADE_CACHE_DIR", cache.root()).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{}", wrapping.name);
            String::from_utf8(output.stdout).unwrap()
        };
        let direct = checked(None);
        assert!(direct.contains("\"violated\""), "{}: {direct}", wrapping.name);
        // The first run writes the container, and the second reads it.
        assert_eq!([checked(Some("--cache")), checked(Some("--cache"))], [direct.clone(), direct], "{}", wrapping.name);
    }
    assert_eq!(fs::read_dir(cache.root()).unwrap().count(), ALL.len());
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

/// Inputs of several exports, by name.
fn folder(files: &[(&str, Vec<u8>)]) -> Vec<InputFile> {
    files.iter().zip(0..).map(|((name, bytes), id)| InputFile::in_memory(FileId(id), name, bytes.clone())).collect()
}

fn wrapping(name: &str) -> &'static Wrapping {
    ALL.iter().find(|wrapping| wrapping.name == name).unwrap()
}

fn events(path: &str) -> String {
    fs::read_to_string(Path::new("histories/incidents/kubelet-restart").join(path)).unwrap()
}

#[test]
fn an_event_that_two_exports_repeat_counts_once() {
    let text = events("buggy/audit-A.log");
    let lines: Vec<&str> = text.lines().collect();
    let server = "kube-apiserver-audit-a";
    let one = |name: &str| (wrapping(name).wrap)(&lines, server);
    let alone = load(folder(&[("a", one("cloudwatch-subscription"))]));
    for (first, second) in [
        ("cloudwatch-subscription", "cloudwatch-s3"),
        ("cloudwatch-s3", "cloudwatch-subscription"),
        ("cri", "docker"),
        ("loki-answer", "cloudwatch-filter-log-events"),
        ("viaq", "array"),
    ] {
        let both = load(folder(&[("a", one(first)), ("b", one(second))]));
        assert_eq!(both.len(), 1, "{first}, {second}");
        assert_eq!(both[0].operations.len(), alone[0].operations.len(), "{first}, {second}");
        // The record that names the server stays.
        let names: Vec<&str> =
            both[0].operations.iter().map(|o| both[0].name(both[0].servers[o.server.index()])).collect();
        let known = [first, second].iter().any(|name| wrapping(name).names_server);
        assert!(names.iter().all(|name| (*name == server) == known), "{first}, {second}: {names:?}");
    }
}

#[test]
fn clusters_that_envelopes_name_are_judged_apart_and_one_takes_what_names_none() {
    let (buggy, fixed) = (events("buggy/audit-A.log"), events("quorum-lists/audit-A.log"));
    let wrap =
        |name: &str, text: &str| (wrapping(name).wrap)(&text.lines().collect::<Vec<_>>(), "kube-apiserver-audit-a");
    let capture = events("buggy/kubelet-1.jsonl").into_bytes();
    let (eks, aks) = (wrap("cloudwatch-subscription", &buggy), wrap("aks-storage", &fixed));
    let clusters = |files: &[(&str, Vec<u8>)]| {
        let histories = load(folder(files));
        let judged: Vec<_> =
            histories.iter().map(|history| retrograde::judge(history, &retrograde::Options::default())).collect();
        let parts = histories.iter().zip(&judged).map(|(history, judgement)| Part::of(history, judgement));
        let shown = |part: Part<'_>| {
            let files = part.history.files.iter().filter(|file| file.format.is_some()).map(|file| file.path.clone());
            format!("{}: {}", part.name, files.collect::<Vec<_>>().join(" "))
        };
        parts.map(shown).collect::<Vec<_>>()
    };
    assert_eq!(clusters(&[("a", eks.clone()), ("c", capture.clone())]), ["123456789012/prod: a c"]);
    assert_eq!(
        clusters(&[("a", eks.clone()), ("b", aks.clone()), ("c", capture)]),
        ["kubernetes: c", "123456789012/prod: a", "s1/g1/prod: b"]
    );
    // One file of two clusters.
    let joined = [&eks[..], b"\n", &aks[..]].concat();
    assert_eq!(clusters(&[("ab", joined)]), ["123456789012/prod: ab", "s1/g1/prod: ab"]);
    // What the user declares prevails.
    let declared = |cluster: &str, server: Option<&str>| {
        let source = SourceRule {
            cluster: Some(cluster.to_owned()),
            server: server.map(str::to_owned),
            ..SourceRule::default()
        };
        let files = folder(&[("a", eks.clone()), ("b", aks.clone())]);
        load(files.into_iter().map(|file| InputFile { source: source.clone(), ..file }).collect())
    };
    assert_eq!(declared("x", None).len(), 1);
    let one = declared("x", Some("s"));
    let history = &one[0];
    assert!(history.operations.iter().all(|o| history.name(history.servers[o.server.index()]) == "s"));
}

#[test]
fn entries_of_other_logs_are_counted_by_their_kind() {
    let text = events("buggy/audit-A.log");
    let event = text.lines().next().unwrap();
    let entry = |stream: &str, message: &str| {
        serde_json::json!({"logStreamName": stream, "timestamp": 1, "message": message}).to_string() + "\n"
    };
    let gke = r#"{"insertId":"1","logName":"l","resource":{"type":"gke_cluster"},"protoPayload":{"serviceName":"container.googleapis.com"}}"#;
    let lines = [
        entry("kube-apiserver-audit-1", event),
        entry("kube-scheduler-1", "I0302 09:00:00.000000 1 scheduler.go:1] x"),
        entry("kube-apiserver-audit-1", "{\"kind\":\"Pod\"}"),
        entry("other", "text"),
        format!("{gke}\n"),
    ];
    let histories = load(folder(&[("a", lines.concat().into_bytes())]));
    let file = &histories[0].files[0];
    assert_eq!((file.lines, file.records, file.problems, file.unknown), (5, 1, 0, 4), "{file:?}");
    let others: Vec<(&str, u64)> = file.export.others.iter().map(|(kind, count)| (&**kind, *count)).collect();
    let expected = [
        ("audit entries of other services", 1),
        ("entries of other log streams", 1),
        ("entries that are no audit events", 1),
        ("lines of other logs", 1),
    ];
    assert_eq!(others, expected);
}

#[test]
fn an_entry_of_gke_and_an_event_of_security_lake_say_no_more_than_they_hold() {
    let gke = serde_json::json!({
        "insertId": "85371f7c-2383-4041-96e8-000000000001", "logName": "projects/p/logs/x", "timestamp": "2026-03-02T09:00:00.000001Z",
        "receiveTimestamp": "2026-03-02T09:00:03.5Z",
        "resource": {"type": "k8s_cluster", "labels": {"project_id": "p", "location": "l", "cluster_name": "c"}},
        "protoPayload": {
            "serviceName": "k8s.io", "methodName": "io.k8s.core.v1.pods.create",
            "resourceName": "core/v1/namespaces/n/pods/a", "status": {"code": 0},
            "authenticationInfo": {"principalEmail": "u"}, "requestMetadata": {"callerIp": "10.0.0.1"},
            "response": {"@type": "core.k8s.io/v1.Pod", "metadata": {"name": "a", "namespace": "n", "uid": "u1", "resourceVersion": "7"}}
        }
    });
    let mut read = gke.clone();
    read["protoPayload"]["methodName"] = "io.k8s.core.v1.pods.get".into();
    read["insertId"] = "85371f7c-2383-4041-96e8-000000000002".into();
    let mut refused = gke.clone();
    refused["protoPayload"]["status"] = serde_json::json!({"code": 10, "message": "m"});
    refused["insertId"] = "85371f7c-2383-4041-96e8-000000000003".into();
    let ocsf = serde_json::json!({
        "class_uid": 6003, "message": "ResponseComplete", "metadata": {"product": {"version": "audit.k8s.io/v1"}},
        "actor": {"user": {"name": "u"}}, "src_endpoint": {"ip": "10.0.0.1"},
        "api": {"operation": "get", "request": {"uid": "85371f7c-2383-4041-96e8-000000000004"}, "response": {"code": 200}},
        "http_request": {"url": {"path": "/api/v1/namespaces/n/pods/a"}, "user_agent": "k"},
        "start_time": 1772442004000u64, "time": 1772442004100u64,
        "unmapped": {"responseObject": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "n", "uid": "u1", "resourceVersion": "7"}}}
    });
    let text = [&gke, &read, &refused, &ocsf].map(|value| value.to_string() + "\n").concat();
    let histories = load(folder(&[("a", text.into_bytes())]));
    let history = &histories[0];
    assert_eq!(history.files[0].problems, 0, "{:?}", history.problems);
    let shown: Vec<String> = (0..history.operations.len())
        .map(|at| history.operation(retrograde::history::OperationId(at as u32)))
        .map(|o| format!("{:?} {} {:?} {} {}..{}", o.verb, o.status, o.asked, o.answered, o.invoke, o.ret))
        .collect();
    let begin = "2026-03-02T09:00:00.000001Z";
    let received = "2026-03-02T09:00:04.500000Z";
    assert_eq!(
        shown,
        [
            format!("Create 201 Unset 7 {begin}..{received}"),
            format!("Get 200 Unrecorded 7 {begin}..{received}"),
            format!("Create 409 Unset 0 {begin}..{received}"),
            "Get 200 Unrecorded 7 2026-03-02T09:00:04.000000Z..2026-03-02T09:00:04.100999999Z".to_owned(),
        ]
    );
}

#[test]
fn a_text_in_the_place_of_a_body_is_a_body_that_is_not_there() {
    let text = events("buggy/audit-A.log");
    let event: serde_json::Value = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|event: &serde_json::Value| event["verb"] == "patch" || event["verb"] == "create")
        .unwrap();
    let marks = |request: serde_json::Value| {
        let mut event = event.clone();
        event["verb"] = "patch".into();
        event["requestObject"] = request;
        let histories = load(folder(&[("a", event.to_string().into_bytes())]));
        let operation = histories[0].operation(retrograde::history::OperationId(0));
        [Marks::REQUEST_BODY, Marks::UNCONDITIONED, Marks::TRUNCATED].map(|mark| operation.marks.has(mark))
    };
    assert_eq!(marks(serde_json::json!({"metadata": {"labels": {"a": "b"}}})), [true, true, false]);
    assert_eq!(marks("skipped-too-big-size-object".into()), [false, false, true]);
}
