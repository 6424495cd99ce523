//! Logs of two servers that one log agent ships. The agent's host is no server, so their times must not be compared as if they
//! were of one clock.

use super::{incidents, judged, load};
use jiff::{SignedDuration, Timestamp};
use retrograde::ingest::{FileId, InputFile, SourceRule};
use serde_json::{Value, json};
use std::path::Path;

/// How an agent ships one event: the form, and what wraps the text.
type Agent = (&'static str, fn(&str) -> Value);

const AGENTS: [Agent; 9] = [
    ("a host in Loki", |event| json!({"labels": {"hostname": "agent"}, "line": event, "timestamp": "t"})),
    ("an instance in Loki", |event| json!({"labels": {"instance": "agent:3100"}, "line": event, "timestamp": "t"})),
    ("a node in Loki", |event| json!({"labels": {"node_name": "worker"}, "line": event, "timestamp": "t"})),
    (
        "the node of a pod on OpenShift",
        |event| json!({"labels": {"log_type": "application", "kubernetes_host": "worker"}, "line": event, "timestamp": "t"}),
    ),
    ("a host in OpenTelemetry", |event| otlp("host.name", event)),
    ("a node in OpenTelemetry", |event| otlp("k8s.node.name", event)),
    ("a stream of an agent in CloudWatch", |event| json!({"logStreamName": "agent-1", "message": event})),
    (
        "a pod of an agent in Azure",
        |event| json!({"category": "kube-audit", "properties": {"log": event, "pod": "agent-1"}}),
    ),
    ("a host in Elasticsearch", |event| json!({"@timestamp": "t", "host": {"name": "agent"}, "message": event})),
];

fn otlp(attribute: &str, event: &str) -> Value {
    let resource = json!({"attributes": [{"key": attribute, "value": {"stringValue": "agent"}}]});
    let record = json!({"body": {"stringValue": event}});
    json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]})
}

/// The events of two servers by their time, after the clock of the second one was set forward.
fn merged(audits: &[(String, String)], ahead: SignedDuration) -> Vec<String> {
    let mut events = Vec::new();
    for (at, (_, text)) in audits.iter().enumerate() {
        for line in text.lines() {
            let mut event: Value = serde_json::from_str(line).unwrap();
            for name in ["requestReceivedTimestamp", "stageTimestamp"] {
                let time: Timestamp = event[name].as_str().unwrap().parse().unwrap();
                let time = if at == 1 { time + ahead } else { time };
                event[name] = json!(format!("{time:.6}"));
            }
            events.push(event);
        }
    }
    events.sort_by_key(|event| event["stageTimestamp"].as_str().unwrap().to_owned());
    events.iter().map(Value::to_string).collect()
}

fn judged_as(lines: &[String], server: Option<&str>) -> String {
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let source = SourceRule { server: server.map(str::to_owned), ..SourceRule::default() };
    judged(&load(vec![InputFile { source, ..InputFile::in_memory(FileId(0), "audit.log", text.into_bytes()) }]))
}

#[test]
fn the_host_of_a_log_agent_is_no_server() {
    let path = Path::new("histories/incidents/kubelet-restart/quorum-lists");
    let incident = incidents().into_iter().find(|incident| incident.path == path).unwrap();
    assert_eq!(incident.audits.len(), 2);
    let mut compared = 0;
    for milliseconds in [-2_000, -40, -8, 8, 40, 2_000] {
        let events = merged(&incident.audits, SignedDuration::from_millis(milliseconds));
        let plain = judged_as(&events, None);
        compared += u32::from(judged_as(&events, Some("one")) != plain);
        for (form, wrap) in AGENTS {
            let lines: Vec<String> = events.iter().map(|event| wrap(event).to_string()).collect();
            assert_eq!(judged_as(&lines, None), plain, "{form}, {milliseconds} ms");
        }
    }
    // As one server the two have violations, so the comparison can fail.
    assert!(compared > 0);
}
