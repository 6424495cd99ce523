//! Lowers a sketch to the evidence that recorders would leave: captures, audit logs, an etcd watch.

use super::audit;
use super::body::Bodies;
use super::lives::Lives;
use super::lowered::{Lowered, started, text, uri, written};
use super::syntax::*;
use crate::ingest::Format;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Lowers a sketch to files.
pub fn lower(sketch: &Sketch) -> Vec<Lowered> {
    let lives = Lives::of(sketch);
    let bodies = Bodies { settings: &sketch.settings, lives: &lives };
    let mut captures: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
    let mut audits: BTreeMap<String, Vec<audit::Stage>> = BTreeMap::new();
    for (index, act) in sketch.acts.iter().enumerate() {
        let client = &sketch.settings.clients[act.client];
        let captured = client.recorded != Recorded::Audit;
        match &act.act {
            Act::Request(request) => {
                let id = super::body::uuid(&format!("{}:{}:{index}", act.at.line, act.at.column));
                if captured {
                    captures.entry(act.client).or_default().extend(requested(&bodies, act, request, &id));
                }
                if client.recorded != Recorded::Capture {
                    audits.entry(act.server.clone()).or_default().extend(audit::stages(&bodies, act, request, &id));
                }
            }
            // Only a client's own recorder sees events inside the client.
            _ => captures.entry(act.client).or_default().extend(inside(&bodies, act)),
        }
    }
    let mut files: Vec<Lowered> = Vec::new();
    for (client, entries) in captures {
        files.push(capture(sketch, client, entries));
    }
    for (server, stages) in audits {
        files.push(audit::log(&sketch.settings, &server, stages));
    }
    if !sketch.witness.is_empty() {
        files.push(witness(&bodies, sketch));
    }
    files
}

/// A line of a capture without its context and id.
struct Entry {
    time: i64,
    context: (String, String),
    act: Place,
    line: u32,
    json: Line,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Line {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    client: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    incarnation: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    server: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    clock: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    id: Value,
    #[serde(skip_serializing_if = "String::is_empty")]
    decision: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    at: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    method: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    uri: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "String::is_empty")]
    audit_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<WatchEvent>,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    phase: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(rename = "resourceVersion", skip_serializing_if = "String::is_empty")]
    resource_version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
}

#[derive(Clone, Debug, Serialize)]
struct WatchEvent {
    #[serde(rename = "type")]
    kind: &'static str,
    object: Value,
}

fn requested(bodies: &Bodies<'_>, act: &Timed, request: &Request, audit_id: &str) -> Vec<Entry> {
    let settings = bodies.settings;
    let client = &settings.clients[act.client];
    let entry = |time: i64, line: u32, json: Line| Entry {
        time,
        context: (act.life.clone(), act.server.clone()),
        act: act.at,
        line,
        json: Line { at: written(settings, &client.clock, time), ..json },
    };
    let mut entries = vec![entry(
        act.begin,
        act.at.line,
        Line {
            kind: "request",
            method: method(request.verb),
            uri: uri(bodies, request),
            user_agent: client.agent.clone(),
            decision: request.decision.clone(),
            body: bodies.request(request),
            ..Line::default()
        },
    )];
    let (status, body) = bodies.answer(request);
    let answer =
        Line { kind: "response", status: Some(status), audit_id: audit_id.to_owned(), body, ..Line::default() };
    if request.verb != Verb::Watch {
        if let (Some(end), true) = (act.end, status != 0) {
            entries.push(entry(end, act.at.line, answer));
        }
        return entries;
    }
    let started = started(settings, act, request);
    entries.push(entry(started, act.at.line, answer));
    let mut ended = request.answer != Answer::None;
    for event in &request.events {
        let json = match &event.carried {
            Carried::End(reason) => {
                ended = true;
                Line { kind: "end", reason, ..Line::default() }
            }
            other => Line { kind: "event", event: Some(carried(bodies, request, other)), ..Line::default() },
        };
        entries.push(entry(event.time, event.at.line, json));
    }
    if let (Some(end), false) = (act.end, ended) {
        entries.push(entry(end, act.at.line, Line { kind: "end", reason: "eof", ..Line::default() }));
    }
    entries
}

fn carried(bodies: &Bodies<'_>, request: &Request, carried: &Carried) -> WatchEvent {
    let object = |kind, named: &Named, removal| WatchEvent {
        kind,
        object: named.key.as_ref().map_or(Value::Null, |key| bodies.shown(key, named, removal)),
    };
    let kind = bodies.kind(request.kind);
    let progress = |revision: u128, end: bool| {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        json!({"apiVersion": Bodies::api_version(kind), "kind": kind.kind, "metadata": metadata})
    };
    match carried {
        Carried::Added(named) => object("ADDED", named, false),
        Carried::Modified(named) => object("MODIFIED", named, false),
        Carried::Deleted(named) => object("DELETED", named, true),
        Carried::Bookmark(revision) => WatchEvent { kind: "BOOKMARK", object: progress(*revision, false) },
        Carried::InitialEnd(revision) => WatchEvent { kind: "BOOKMARK", object: progress(*revision, true) },
        Carried::Error(code) => {
            let message = match code {
                410 => format!("too old resource version: {}", request.ask.version.unwrap_or(0)),
                _ => bodies.message(request, *code, None),
            };
            WatchEvent { kind: "ERROR", object: bodies.status(*code, &message) }
        }
        Carried::End(_) => WatchEvent { kind: "ERROR", object: Value::Null },
    }
}

fn inside(bodies: &Bodies<'_>, act: &Timed) -> Vec<Entry> {
    let settings = bodies.settings;
    let clock = &settings.clients[act.client].clock;
    let entry = |time: i64, json: Line| Entry {
        time,
        context: (act.life.clone(), act.server.clone()),
        act: act.at,
        line: act.at.line,
        json: Line { at: written(settings, clock, time), ..json },
    };
    match &act.act {
        Act::Read { key, seen, decision } => {
            let kind = bodies.kind(key.kind);
            let named = seen.as_ref();
            vec![entry(
                act.begin,
                Line {
                    kind: "read",
                    decision: decision.clone(),
                    resource: kind.plural.clone(),
                    group: kind.group.clone(),
                    namespace: key.namespace.clone(),
                    name: key.name.clone(),
                    uid: named.map_or(String::new(), |n| bodies.uid(&bodies.lives.uid(key, n))),
                    resource_version: named.and_then(|n| n.revision).map_or(String::new(), |r| r.to_string()),
                    ..Line::default()
                },
            )]
        }
        Act::Decide(name) => {
            let line = |phase| Line { kind: "decision", id: json!(name), phase, ..Line::default() };
            let end = act.end.map(|end| entry(end, line("end")));
            std::iter::once(entry(act.begin, line("begin"))).chain(end).collect()
        }
        Act::Mark(text) => vec![entry(act.begin, Line { kind: "mark", name: text.clone(), ..Line::default() })],
        Act::Request(_) => Vec::new(),
    }
}

fn capture(sketch: &Sketch, client: usize, mut entries: Vec<Entry>) -> Lowered {
    let client = &sketch.settings.clients[client];
    entries.sort_by_key(|e| e.time);
    let mut ids: BTreeMap<Place, u64> = BTreeMap::new();
    let mut context = None;
    let mut lines = Vec::new();
    for entry in entries {
        let opens = matches!(entry.json.kind, "request" | "read" | "decision" | "mark");
        if opens && context.as_ref() != Some(&entry.context) {
            let head = Line {
                kind: "capture",
                version: Some(1),
                client: client.user.clone(),
                incarnation: format!("{}#{}", client.alias, entry.context.0),
                server: entry.context.1.clone(),
                clock: client.clock.clone(),
                ..Line::default()
            };
            lines.push((entry.line, text(&head)));
            context = Some(entry.context);
        }
        let mut json = entry.json;
        if matches!(json.kind, "request" | "response" | "event" | "end") {
            let next = ids.len() as u64 + 1;
            json.id = json!(*ids.entry(entry.act).or_insert(next));
        }
        lines.push((entry.line, text(&json)));
    }
    Lowered { name: format!("{}.jsonl", client.alias), format: Format::Capture, server: None, lines }
}

fn witness(bodies: &Bodies<'_>, sketch: &Sketch) -> Lowered {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let mut lines = Vec::new();
    let mut counts: BTreeMap<SketchKey, u64> = BTreeMap::new();
    for event in &sketch.witness {
        let (named, tombstone) = match &event.carried {
            Carried::Added(named) | Carried::Modified(named) => (named, false),
            Carried::Deleted(named) => (named, true),
            Carried::Error(at) => {
                let header = json!({"cluster_id": 1, "member_id": 1, "revision": at, "raft_term": 2});
                let line = json!({"Header": header, "Events": [], "CompactRevision": at, "Canceled": true});
                lines.push((event.at.line, line.to_string()));
                continue;
            }
            _ => continue,
        };
        let (Some(key), Some(revision)) = (&named.key, named.revision) else { continue };
        let created = if tombstone { 0 } else { bodies.lives.created(key, revision) };
        let count = counts.entry(key.clone()).or_default();
        *count = if tombstone { 0 } else { *count + 1 };
        let mut kv = json!({
            "key": encode(&etcd_key(bodies, key)),
            "create_revision": created as u64,
            "mod_revision": revision as u64,
            "version": *count,
        });
        let mut line = json!({});
        if tombstone {
            line["type"] = json!(1);
        } else {
            kv["value"] = json!(encode(
                &bodies.shown(key, &Named { revision: None, ..stored(bodies, key, named) }, false).to_string()
            ));
        }
        line["kv"] = kv;
        let header = json!({"cluster_id": 1, "member_id": 1, "revision": revision as u64, "raft_term": 2});
        lines.push((event.at.line, json!({"Header": header, "Events": [line]}).to_string()));
    }
    Lowered { name: "etcd-watch.json".to_owned(), format: Format::EtcdWatch, server: None, lines }
}

/// The stored form of a version, with explicit uid and attributes, since an etcd value contains no version.
fn stored(bodies: &Bodies<'_>, key: &SketchKey, named: &Named) -> Named {
    Named {
        uid: Some(bodies.lives.uid(key, named)),
        attributes: Some(bodies.lives.attributes(key, named, false)),
        ..named.clone()
    }
}

fn etcd_key(bodies: &Bodies<'_>, key: &SketchKey) -> String {
    let kind = bodies.kind(key.kind);
    let prefix = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "nodes") => "minions".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        (group, plural) if group.contains('.') && !group.ends_with(".k8s.io") => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    let namespace = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    format!("/registry/{prefix}/{namespace}{}", key.name)
}

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get | Verb::List | Verb::Watch => "GET",
        Verb::Create => "POST",
        Verb::Put => "PUT",
        Verb::Patch => "PATCH",
        Verb::Delete | Verb::DeleteAll => "DELETE",
    }
}
