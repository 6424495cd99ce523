//! A healthy cluster holds also as an export that takes events apart and loses some of their parts.
//!
//! The log of Google Cloud has no request URIs, and one list of the entries of all servers. Security Lake has no queries,
//! and times in milliseconds. What an export lacks must never make a violation.

use super::cluster::Recording;
use super::evidence::merged;
use super::{Cluster, Fault, describe, violations};
use crate::support::dice::Dice;
use crate::support::draws::seeds;
use retrograde::check::Judgement;
use retrograde::history::{self, Domains, History};
use retrograde::ingest::{FileId, InputFile, ReadOptions};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An audit event as a log entry of Google Cloud. It arrives up to five seconds after its end.
fn gke(event: &Value, dice: &mut Dice) -> Value {
    let object = &event["objectRef"];
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let group = Some(text(&object["apiGroup"])).filter(|group| !group.is_empty()).unwrap_or("core".to_owned());
    let (version, resource) = (text(&object["apiVersion"]), text(&object["resource"]));
    let mut name = format!("{group}/{version}");
    if !text(&object["namespace"]).is_empty() {
        name += &format!("/namespaces/{}", text(&object["namespace"]));
    }
    for part in [resource.clone(), text(&object["name"]), text(&object["subresource"])] {
        if !part.is_empty() {
            name += &format!("/{part}");
        }
    }
    let verb = text(&event["verb"]);
    let code = match event["responseStatus"]["code"].as_u64() {
        Some(200 | 201) => 0,
        Some(400) => 3,
        Some(404) => 5,
        Some(409) if verb == "create" => 6,
        Some(409) => 10,
        Some(504) => 4,
        _ => 13,
    };
    let mut entry = json!({
        "logName": "projects/p/logs/cloudaudit.googleapis.com%2Factivity",
        "insertId": event["auditID"],
        "timestamp": event["requestReceivedTimestamp"],
        "receiveTimestamp": later(&text(&event["stageTimestamp"]), dice.roll(5_000) as i64),
        "resource": {"type": "k8s_cluster", "labels": {"project_id": "p", "location": "l", "cluster_name": "c"}},
        "protoPayload": {
            "serviceName": "k8s.io",
            "methodName": format!("io.k8s.{group}.{version}.{resource}.{verb}"),
            "resourceName": name,
            "authenticationInfo": {"principalEmail": event["user"]["username"]},
            "requestMetadata": {"callerIp": event["sourceIPs"][0], "callerSuppliedUserAgent": event["userAgent"]},
            "status": {"code": code, "message": event["responseStatus"]["message"]},
        }
    });
    for (from, to) in [("requestObject", "request"), ("responseObject", "response")] {
        if event[from].is_object() {
            entry["protoPayload"][to] = event[from].clone();
        }
    }
    if event["stage"] == "ResponseStarted" {
        entry["operation"] = json!({"id": event["auditID"], "first": true});
    }
    entry
}

/// An audit event as Security Lake stores it.
fn ocsf(event: &Value) -> Value {
    let uri = event["requestURI"].as_str().unwrap_or("");
    let milliseconds = |time: &Value| time.as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
    let milliseconds = |time: &Value| milliseconds(time).map(|time| time.as_millisecond());
    json!({
        "class_uid": 6003,
        "message": event["stage"],
        "metadata": {"product": {"version": "audit.k8s.io/v1"}},
        "actor": {"user": {"name": event["user"]["username"]}},
        "src_endpoint": {"ip": event["sourceIPs"][0]},
        "api": {
            "operation": event["verb"],
            "request": {"uid": event["auditID"]},
            "response": {"code": event["responseStatus"]["code"], "message": event["responseStatus"]["message"]}
        },
        "http_request": {"url": {"path": uri.split('?').next()}, "user_agent": event["userAgent"]},
        "start_time": milliseconds(&event["requestReceivedTimestamp"]),
        "time": milliseconds(&event["stageTimestamp"]),
        "unmapped": {"requestObject": event["requestObject"], "responseObject": event["responseObject"]}
    })
}

/// A time some milliseconds later.
fn later(time: &str, milliseconds: i64) -> String {
    let time: jiff::Timestamp = time.parse().expect("events have times");
    format!("{:.6}", time + jiff::SignedDuration::from_millis(milliseconds))
}

/// The audit logs of a cluster as exports, by name. Each is one file with the entries of all servers.
fn exports(seed: u64, recording: Recording) -> [(&'static str, String); 3] {
    let audits: Vec<_> = recording.files.into_iter().filter(|(name, _)| name.starts_with("audit")).collect();
    let (_, log) = merged(&audits).remove(0);
    let events: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("the simulation writes JSON")).collect();
    let mut dice = Dice::new(seed);
    let is_write = |event: &&Value| !matches!(event["verb"].as_str(), Some("get" | "list" | "watch"));
    let text = |entries: Vec<Value>| entries.iter().map(|entry| format!("{entry}\n")).collect::<String>();
    [
        ("all entries of Google Cloud", text(events.iter().map(|event| gke(event, &mut dice)).collect())),
        // Reads are in another log, which is off by default.
        ("writes of Google Cloud", text(events.iter().filter(is_write).map(|event| gke(event, &mut dice)).collect())),
        ("Security Lake", text(events.iter().map(ocsf).collect())),
    ]
}

/// Judges an export. Its times compare only where a user declares that all servers share a clock.
fn judged(export: &str, clock: Option<&str>) -> (History, Judgement) {
    let mut input = InputFile::in_memory(FileId(0), "export.json", export.as_bytes());
    input.source.clock = clock.map(str::to_owned);
    let options = ReadOptions { threads: 1, ..retrograde::read_options() };
    let history = history::load(vec![input], &options, &Domains::default(), &());
    assert!(history.problems.is_empty(), "{:?}", history.problems);
    let judgement = retrograde::judge(&history, &retrograde::Options::default());
    (history, judgement)
}

#[test]
fn a_healthy_cluster_holds_as_an_export_that_lacks_parts() {
    for seed in seeds(20) {
        let cluster = Cluster::new(seed, Fault::None);
        let clocks = [None, Some("lab")].into_iter().take(1 + usize::from(cluster.shared_clock()));
        for (what, export) in exports(seed, cluster.run(260)) {
            for clock in clocks.clone() {
                let (history, judgement) = judged(&export, clock);
                let found = violations(&judgement);
                assert!(found.is_empty(), "seed {seed}, {what}, {clock:?}:\n{}", describe(&history, &judgement));
            }
        }
    }
}

#[test]
fn a_fault_of_the_store_is_found_in_an_export_that_lacks_parts_and_nothing_unrelated_is() {
    for fault in [Fault::Rewind, Fault::Collision, Fault::BrokenCompare] {
        let (must, may) = fault.rules();
        let mut found_in: BTreeMap<&str, usize> = BTreeMap::new();
        for seed in seeds(8) {
            let recording = Cluster::new(seed, fault).run(320);
            if !recording.injected {
                continue;
            }
            for (what, export) in exports(seed, recording) {
                let (history, judgement) = judged(&export, Some("lab"));
                let found = violations(&judgement);
                let unrelated: Vec<_> =
                    found.iter().filter(|rule| !must.contains(rule) && !may.contains(rule)).collect();
                assert!(
                    unrelated.is_empty(),
                    "{fault:?}, seed {seed}, {what}: {unrelated:?}\n{}",
                    describe(&history, &judgement)
                );
                *found_in.entry(what).or_default() += usize::from(must.iter().any(|rule| found.contains(rule)));
            }
        }
        // Google Cloud bounds the end of a request by seconds, so none of these writes certainly follows another.
        let times_matter = fault == Fault::Rewind;
        for (what, count) in found_in {
            let is_expected = !times_matter || what == "Security Lake";
            assert_eq!(count > 0, is_expected, "{fault:?}, {what}: {count}");
        }
    }
}
