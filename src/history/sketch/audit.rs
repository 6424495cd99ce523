//! Lowers acts to audit logs: the events of `audit.k8s.io/v1` that an API server would write.

use super::body::Bodies;
use super::lowered::{Lowered, started, text, uri, written};
use super::syntax::*;
use crate::ingest::Format;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// One audit event and its time.
#[derive(Debug)]
pub struct Stage {
    time: i64,
    line: u32,
    json: Event,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: &'static str,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: &'static str,
    user: Value,
    #[serde(rename = "sourceIPs")]
    source_ips: Vec<String>,
    user_agent: String,
    object_ref: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<Value>,
    request_received_timestamp: String,
    stage_timestamp: String,
}

/// The audit events of a request, one per stage.
pub fn stages(bodies: &Bodies<'_>, act: &Timed, request: &Request, audit_id: &str) -> Vec<Stage> {
    let settings = bodies.settings;
    let client = &settings.clients[act.client];
    let clock = settings.server_clock(&act.server);
    // The server's interval lies inside the client's.
    let margin = settings.column / 5;
    let begin = act.begin + margin;
    let received = written(settings, clock, begin);
    let event = |stage, time: i64| Event {
        kind: "Event",
        api_version: "audit.k8s.io/v1",
        level: client.level.word(),
        audit_id: audit_id.to_owned(),
        stage,
        request_uri: uri(bodies, request),
        verb: verb(request.verb),
        user: user(client, &act.life),
        source_ips: vec![client.address.clone()],
        user_agent: client.agent.clone(),
        object_ref: object_ref(bodies, request, stage == "ResponseComplete"),
        response_status: None,
        request_object: None,
        response_object: None,
        request_received_timestamp: received.clone(),
        stage_timestamp: written(settings, clock, time),
    };
    let stage = |time, json| Stage { time, line: act.at.line, json };
    let mut stages = vec![stage(begin, event("RequestReceived", begin))];
    let ok = || Some(json!({"metadata": {}, "code": 200}));
    if request.verb == Verb::Watch && request.answer == Answer::None {
        let time = started(settings, act, request).max(begin);
        stages.push(stage(time, Event { response_status: ok(), ..event("ResponseStarted", time) }));
        let ended = request.events.iter().find(|e| matches!(e.carried, Carried::End(_))).map(|e| e.time);
        if let Some(end) = ended.or(act.end) {
            let time = (end - margin).max(time);
            stages.push(stage(time, Event { response_status: ok(), ..event("ResponseComplete", time) }));
        }
        return stages;
    }
    let (status, body) = bodies.answer(request);
    if let (Some(end), true) = (act.end, status != 0) {
        let time = end - margin;
        let mut complete = event("ResponseComplete", time);
        let refused = status >= 300;
        complete.response_status = Some(match (&body, refused) {
            (Some(body), true) => json!({
                "metadata": {}, "status": "Failure", "message": body["message"], "reason": body["reason"], "code": status,
            }),
            _ => json!({"metadata": {}, "code": status}),
        });
        if client.level >= Level::Request {
            complete.request_object = bodies.request(request);
        }
        if client.level >= Level::RequestResponse {
            complete.response_object = body;
        }
        stages.push(stage(time, complete));
    }
    stages
}

/// The audit log of one server.
pub fn log(settings: &Settings, server: &str, mut stages: Vec<Stage>) -> Lowered {
    stages.sort_by_key(|s| s.time);
    let name = if server.is_empty() { "audit.log".to_owned() } else { format!("audit-{server}.log") };
    Lowered {
        name,
        format: Format::Audit,
        server: Some((server.to_owned(), settings.server_clock(server).to_owned())),
        lines: stages.iter().map(|s| (s.line, text(&s.json))).collect(),
    }
}

fn user(client: &Client, life: &str) -> Value {
    let mut user = json!({"username": client.user});
    if !client.pod.is_empty() {
        user["extra"] = json!({
            "authentication.kubernetes.io/pod-name": [client.pod],
            "authentication.kubernetes.io/pod-uid": [super::body::uuid(&format!("{} {life}", client.pod))],
        });
    }
    user
}

fn object_ref(bodies: &Bodies<'_>, request: &Request, complete: bool) -> Value {
    let kind = bodies.kind(request.kind);
    let mut object = Map::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            object.insert(name.to_owned(), json!(value));
        }
    };
    put("resource", &kind.plural);
    let key = request.target.key.as_ref();
    put("namespace", key.map_or(&request.namespace, |k| &k.namespace));
    // The server decodes the body, and with it a new object's name, after the first stage. The path names any other object.
    let name = key.map_or("", |k| &k.name);
    let is_named = request.verb != Verb::Create || !request.subresource.is_empty();
    if name != "*" && (is_named || complete) {
        put("name", name);
    }
    if request.verb == Verb::Put && complete {
        put("uid", &bodies.uid(request.target.uid.as_deref().unwrap_or("")));
        put("resourceVersion", &request.target.revision.map_or(String::new(), |r| r.to_string()));
    }
    put("apiGroup", &kind.group);
    put("apiVersion", &kind.version);
    put("subresource", &request.subresource);
    Value::Object(object)
}

fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Create => "create",
        Verb::Put => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteAll => "deletecollection",
    }
}
