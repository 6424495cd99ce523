//! Writes each exchange into the servers' audit logs and the clients' captures.

use crate::simulation::cluster::{Cluster, Object, phase_name};
use serde_json::{Value, json};

impl Cluster {
    pub(super) fn record_event(&mut self, at: usize, event: Value) {
        let when = self.now + self.dice.roll(100_000);
        self.now = when;
        let stream = &mut self.streams[at];
        stream.delivered += 1;
        stream.last = Some(event.clone());
        let (client, id) = (stream.client, stream.id);
        let line = json!({"kind": "event", "id": id, "at": time(when, 0), "event": event});
        if self.clients[client].captured {
            self.clients[client].lines.push(line.to_string());
        }
        let version = event["object"]["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok()).unwrap_or(0);
        let client = &mut self.clients[client];
        client.frontier = client.frontier.max(version);
    }

    /// Records one exchange on both sides: invocation before now, return after it.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn exchange(
        &mut self,
        client: usize,
        server: usize,
        verb: &str,
        method: &str,
        uri: &str,
        request: Option<Value>,
        status: u16,
        answer: Option<Value>,
        name: Option<&str>,
    ) {
        let before = 50_000 + self.dice.roll(900_000);
        let after = 50_000 + self.dice.roll(900_000);
        let (invoke, ret) = (self.now - before, self.now + after);
        let audit_id = self.audit_id();
        let id = self.next();
        self.capture_context(client, server);
        let c = &mut self.clients[client];
        c.busy = ret + 1_000;
        if c.captured {
            let mut line = json!({"kind": "request", "id": id, "at": time(invoke - 20_000, 0), "method": method, "uri": uri, "user_agent": c.agent});
            if let Some(request) = &request {
                line["body"] = request.clone();
            }
            c.lines.push(line.to_string());
            let mut line = json!({"kind": "response", "id": id, "at": time(ret + 20_000, 0), "status": status, "audit_id": audit_id});
            if let Some(answer) = &answer {
                line["body"] = answer.clone();
            }
            c.lines.push(line.to_string());
        }
        self.audit(client, server, verb, uri, (invoke, ret), &audit_id, request, status, answer, name);
        self.now = ret + 25_000;
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn audit(
        &mut self,
        client: usize,
        server: usize,
        verb: &str,
        uri: &str,
        span: (u64, u64),
        audit_id: &str,
        request: Option<Value>,
        status: u16,
        answer: Option<Value>,
        name: Option<&str>,
    ) {
        let c = &self.clients[client];
        let s = &mut self.servers[server];
        let resource = uri.split(['/', '?']).nth(5).unwrap_or_default();
        let mut reference = json!({"resource": resource, "namespace": "prod", "apiVersion": "v1"});
        if let Some(name) = name {
            reference["name"] = json!(name);
        }
        if let (Some(request), "update") = (&request, verb) {
            for field in ["uid", "resourceVersion"] {
                if let Some(value) = request["metadata"].get(field) {
                    reference[field] = value.clone();
                }
            }
        }
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": audit_id,
            "stage": "ResponseComplete", "requestURI": uri, "verb": verb, "user": {"username": c.name},
            "sourceIPs": [format!("10.0.0.{}", client + 1)], "userAgent": c.agent, "objectRef": reference,
            "responseStatus": {"metadata": {}, "code": status},
            "requestReceivedTimestamp": time(span.0, s.offset), "stageTimestamp": time(span.1, s.offset),
        });
        if let Some(request) = request {
            event["requestObject"] = request;
        }
        if let Some(answer) = answer {
            event["responseObject"] = answer;
        }
        s.audit.push((span.1, event.to_string()));
    }

    pub(super) fn capture_context(&mut self, client: usize, server: usize) {
        let c = &mut self.clients[client];
        if c.context == (c.incarnation, server) || !c.captured {
            return;
        }
        c.context = (c.incarnation, server);
        let name = c.name.rsplit(':').next().unwrap_or("client");
        let line = json!({"kind": "capture", "version": 1, "client": c.name, "incarnation": format!("{name}#{}", c.incarnation),
            "server": self.servers[server].name, "clock": "lab"});
        c.lines.push(line.to_string());
    }

    pub(super) fn answer_list(&self, revision: u64, items: Vec<Value>) -> Value {
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": revision.to_string()}, "items": items})
    }
}

pub fn body(name: &str, object: &Object, revision: u64) -> Value {
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "prod", "uid": object.uid,
        "resourceVersion": revision.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"}},
        "spec": {"nodeName": "node-1"}, "status": {"phase": phase_name(object.phase)}})
}

pub fn time(nanos: u64, offset: i64) -> String {
    let shifted = nanos as i64 + offset;
    format!("{:.6}", jiff::Timestamp::from_nanosecond(i128::from(shifted / 1_000 * 1_000)).unwrap())
}
