//! Wraps the events of an audit log in each envelope, as the exports do that `docs/exports.md` names.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::Write;

/// One way of wrapping.
pub struct Wrapping {
    pub name: &'static str,
    /// Whether the envelope names the server.
    pub names_server: bool,
    /// The cluster that the envelope names; empty: none.
    pub cluster: &'static str,
    /// Wraps events, which stand one a line, of one server.
    pub wrap: fn(&[&str], &str) -> Vec<u8>,
}

/// All ways of wrapping that keep every event whole.
pub const ALL: &[Wrapping] = &[
    wrapping("cloudwatch-subscription", true, EKS, |events, server| subscriptions(events, server).concat().into()),
    wrapping("cloudwatch-subscription-lines", true, EKS, |events, server| {
        subscriptions(events, server).join("\n").into()
    }),
    wrapping("cloudwatch-filter-log-events", true, "", |events, server| {
        let entries: Vec<Value> = events.iter().map(|event| stream_entry(event, server)).collect();
        serde_json::to_vec_pretty(&json!({"events": entries, "searchedLogStreams": []})).unwrap()
    }),
    wrapping("cloudwatch-array", true, "", |events, server| {
        let entries: Vec<Value> = events.iter().map(|event| stream_entry(event, server)).collect();
        serde_json::to_vec(&entries).unwrap()
    }),
    wrapping("cloudwatch-s3", false, "", |events, _| {
        lines(events.iter().map(|event| format!("2026-03-02T09:00:00.000Z {event}")))
    }),
    wrapping("cloudwatch-insights", true, EKS, |events, server| {
        let rows: Vec<Value> = events
            .iter()
            .map(|event| {
                json!([
                    {"field": "@timestamp", "value": "2026-03-02 09:00:00.000"},
                    {"field": "@message", "value": event},
                    {"field": "@logStream", "value": server},
                    {"field": "@log", "value": "123456789012:/aws/eks/prod/cluster"},
                    {"field": "@ptr", "value": "CpQ"}
                ])
            })
            .collect();
        serde_json::to_vec_pretty(&json!({"results": rows, "status": "Complete"})).unwrap()
    }),
    wrapping("cloudwatch-insights-csv", true, EKS, |events, server| {
        let row = |event: &&str| {
            let event = event.replace('"', "\"\"");
            format!("2026-03-02 09:00:00.000,\"{event}\",{server},123456789012:/aws/eks/prod/cluster")
        };
        lines(["@timestamp,@message,@logStream,@log".to_owned()].into_iter().chain(events.iter().map(row)))
    }),
    wrapping("log-analytics-text", true, AKS, |events, server| {
        let row = |event: &&str| json!({"TableName": "PrimaryResult", "_ResourceId": AKS_ID, "log_s": event, "pod_s": server});
        let rows: Vec<Value> = events.iter().map(row).collect();
        serde_json::to_vec_pretty(&rows).unwrap()
    }),
    wrapping("log-analytics", true, AKS, |events, server| {
        let rows: Vec<Value> = events.iter().map(|event| audit_row(event, server)).collect();
        serde_json::to_vec(&rows).unwrap()
    }),
    wrapping("firehose-records", true, EKS, |events, server| {
        let record = |text: &String| json!({"data": STANDARD.encode(gzip(text.as_bytes()))});
        let records: Vec<Value> = subscriptions(events, server).iter().map(record).collect();
        serde_json::to_vec(&json!({"requestId": "r", "timestamp": 1, "records": records})).unwrap()
    }),
    wrapping("lambda", true, EKS, |events, server| {
        lines(
            subscriptions(events, server)
                .iter()
                .map(|text| json!({"awslogs": {"data": STANDARD.encode(gzip(text.as_bytes()))}}).to_string()),
        )
    }),
    wrapping("kinesis", true, EKS, |events, server| {
        let record =
            |text: &String| json!({"kinesis": {"data": STANDARD.encode(gzip(text.as_bytes()))}, "awsRegion": "r"});
        let records: Vec<Value> = subscriptions(events, server).iter().map(record).collect();
        serde_json::to_vec(&json!({"Records": records})).unwrap()
    }),
    wrapping("aks-event-hub", true, AKS, |events, server| {
        lines(events.chunks(3).map(|events| {
            let records: Vec<Value> =
                events.iter().map(|event| diagnostics(json!(format!("{event}\n")), server)).collect();
            json!({"records": records}).to_string()
        }))
    }),
    wrapping("aks-event-hub-objects", true, AKS, |events, server| {
        let record = |event: &&str| diagnostics(serde_json::from_str(event).unwrap(), server);
        let records: Vec<Value> = events.iter().map(record).collect();
        serde_json::to_vec_pretty(&json!({"records": records})).unwrap()
    }),
    wrapping("aks-storage", true, AKS, |events, server| {
        lines(events.iter().map(|event| diagnostics(json!(event), server).to_string()))
    }),
    wrapping("otlp", true, "c1", |events, server| otlp(events, server, |event| json!({"stringValue": event}))),
    wrapping("otlp-structured", true, "c1", |events, server| {
        otlp(events, server, |event| any_value(&serde_json::from_str(event).unwrap()))
    }),
    wrapping("viaq", true, "c1", |events, server| {
        lines(events.iter().map(|event| {
            let mut event: Value = serde_json::from_str(event).unwrap();
            event["level"] = json!("default");
            event["hostname"] = json!(server);
            event["openshift"] = json!({"cluster_id": "c1", "sequence": 7});
            event["@timestamp"] = json!("2026-03-02T09:00:00Z");
            event.to_string()
        }))
    }),
    wrapping("loki-lines", true, "c1", |events, server| {
        let labels = json!({"log_type": "audit", "kubernetes_host": server, "openshift_cluster_id": "c1"});
        lines(
            events
                .iter()
                .map(|event| json!({"labels": labels, "line": event, "timestamp": "2026-03-02T09:00:00Z"}).to_string()),
        )
    }),
    wrapping("loki-answer", false, "", |events, _| {
        let values: Vec<Value> = events.iter().map(|event| json!(["1772442000000000000", event])).collect();
        let result = json!([{"stream": {"job": "audit"}, "values": values}]);
        serde_json::to_vec(&json!({"status": "success", "data": {"resultType": "streams", "result": result}})).unwrap()
    }),
    wrapping("cri", false, "", |events, _| {
        lines(events.iter().map(|event| format!("2026-03-02T09:00:00.000000001Z stdout F {event}")))
    }),
    wrapping("docker", false, "", |events, _| lines(events.iter().map(|event| docker(event)))),
    wrapping("docker-in-loki", false, "", |events, _| {
        lines(events.iter().map(|event| json!({"labels": {}, "line": docker(event), "timestamp": "t"}).to_string()))
    }),
    wrapping("array", false, "", |events, _| format!("[{}]", events.join(",\n")).into()),
    wrapping("indented-array", false, "", |events, _| {
        let events: Vec<Value> = events.iter().map(|event| serde_json::from_str(event).unwrap()).collect();
        serde_json::to_vec_pretty(&events).unwrap()
    }),
    wrapping("elastic-hits", false, "", |events, _| {
        let hit = |event: &&str| json!({"_index": "i", "_source": serde_json::from_str::<Value>(event).unwrap()});
        let hits: Vec<Value> = events.iter().map(hit).collect();
        serde_json::to_vec(&json!({"took": 1, "hits": {"total": {"value": 1}, "hits": hits}})).unwrap()
    }),
    wrapping("elastic-integration", false, "", |events, _| {
        lines(events.iter().map(|event| {
            let event: Value = serde_json::from_str(event).unwrap();
            json!({"_id": "x", "_source": {"@timestamp": "t", "kubernetes": {"audit": event}}}).to_string()
        }))
    }),
    wrapping("shipped", false, "", |events, _| {
        lines(
            events.iter().map(|event| json!({"@timestamp": "t", "message": event, "host": {"name": "h"}}).to_string()),
        )
    }),
];

const EKS: &str = "123456789012/prod";
const AKS: &str = "s1/g1/prod";
const AKS_ID: &str = "/SUBSCRIPTIONS/S1/RESOURCEGROUPS/G1/PROVIDERS/MICROSOFT.CONTAINERSERVICE/MANAGEDCLUSTERS/PROD";

const fn wrapping(
    name: &'static str,
    names_server: bool,
    cluster: &'static str,
    wrap: fn(&[&str], &str) -> Vec<u8>,
) -> Wrapping {
    Wrapping { name, names_server, cluster, wrap }
}

pub fn lines(lines: impl Iterator<Item = String>) -> Vec<u8> {
    lines.map(|line| line + "\n").collect::<String>().into()
}

fn subscriptions(events: &[&str], server: &str) -> Vec<String> {
    let message = |events: &[&str]| {
        let entry = |event: &&str| json!({"id": "1", "timestamp": 1, "message": event});
        let events: Vec<Value> = events.iter().map(entry).collect();
        json!({
            "messageType": "DATA_MESSAGE",
            "owner": "123456789012",
            "logGroup": "/aws/eks/prod/cluster",
            "logStream": server,
            "subscriptionFilters": ["all"],
            "logEvents": events
        })
        .to_string()
    };
    events.chunks(3).map(message).collect()
}

fn stream_entry(event: &str, server: &str) -> Value {
    json!({"logStreamName": server, "timestamp": 1, "message": event, "ingestionTime": 2, "eventId": "3"})
}

fn diagnostics(log: Value, server: &str) -> Value {
    json!({
        "category": "kube-audit",
        "operationName": "Microsoft.ContainerService/managedClusters/diagnosticLogs/Read",
        "resourceId": AKS_ID,
        "properties": {"log": log, "stream": "stdout", "pod": server},
        "time": "2026-03-02T09:00:00Z"
    })
}

/// A row of the table AKSAudit, with its dynamic columns as text.
fn audit_row(event: &str, server: &str) -> Value {
    let event: Value = serde_json::from_str(event).unwrap();
    let mut row = json!({"PodName": server, "_ResourceId": AKS_ID.to_lowercase(), "TenantId": "t"});
    for (column, member, is_dynamic) in [
        ("AuditId", "auditID", false),
        ("Level", "level", false),
        ("Stage", "stage", false),
        ("RequestUri", "requestURI", false),
        ("Verb", "verb", false),
        ("User", "user", true),
        ("SourceIps", "sourceIPs", true),
        ("UserAgent", "userAgent", false),
        ("ObjectRef", "objectRef", true),
        ("ResponseStatus", "responseStatus", true),
        ("RequestObject", "requestObject", true),
        ("ResponseObject", "responseObject", true),
        ("RequestReceivedTime", "requestReceivedTimestamp", false),
        ("StageReceivedTime", "stageTimestamp", false),
    ] {
        row[column] = match event.get(member) {
            Some(value) if is_dynamic => json!(value.to_string()),
            Some(value) => value.clone(),
            None => json!(""),
        };
    }
    row
}

fn docker(event: &str) -> String {
    json!({"log": format!("{event}\n"), "stream": "stdout", "time": "2026-03-02T09:00:00Z"}).to_string()
}

fn otlp(events: &[&str], server: &str, body: fn(&str) -> Value) -> Vec<u8> {
    let attribute = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let records: Vec<Value> = events.iter().map(|event| json!({"timeUnixNano": "1", "body": body(event)})).collect();
    let resource = json!({"attributes": [attribute("k8s.node.name", server), attribute("openshift.cluster.uid", "c1"), attribute("openshift.log.type", "audit")]});
    let logs = json!([{"resource": resource, "scopeLogs": [{"scope": {}, "logRecords": records}]}]);
    serde_json::to_vec_pretty(&json!({"resourceLogs": logs})).unwrap()
}

/// A value as the OpenTelemetry protocol writes it.
fn any_value(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_i64() || number.is_u64() => json!({"intValue": number.to_string()}),
        Value::Number(number) => json!({"doubleValue": number}),
        Value::String(text) => json!({"stringValue": text}),
        Value::Array(values) => json!({"arrayValue": {"values": values.iter().map(any_value).collect::<Vec<_>>()}}),
        Value::Object(members) => {
            let pair = |(key, value): (&String, &Value)| json!({"key": key, "value": any_value(value)});
            json!({"kvlistValue": {"values": members.iter().map(pair).collect::<Vec<_>>()}})
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}
