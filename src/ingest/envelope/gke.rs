//! Log entries of Google Cloud, as GKE writes its audit log. An entry takes the audit event apart, and this file writes
//! the event again.
//!
//! An entry has no request URI, so no version that a read asked for, and no selector. It has a gRPC code for the HTTP
//! status. `timestamp` is the server's. The end of a request is only bounded by `receiveTimestamp`, which is a time of
//! the logging service.
//!
//! Sources: the Cloud Logging reference (`LogEntry`, `AuditLog`); `google/rpc/code.proto` for the codes.

use super::cursor::Cursor;
use super::quoted::unescaped;
use super::{Envelope, OTHER_LOGS, OTHER_SERVICES, Opening, Origin};
use crate::ingest::position::Time;
use crate::ingest::timestamp;
use std::borrow::Cow;
use std::fmt::Write;

/// One log entry.
pub static ENTRY: Envelope = Envelope {
    name: "gke-log-entry",
    lacks: "request URIs (so what reads asked for, selectors, dry runs), HTTP statuses, ends of requests, servers",
    keys: &["logName", "resource"],
    read: entry,
};

/// How far the clocks of the logging service and of an API server may differ. Entries arrive seconds after their end.
const SKEW: i64 = 1_000_000_000;

/// The parts of an entry that are needed.
#[derive(Default)]
struct Entry<'t> {
    id: &'t str,
    begin: &'t str,
    received: &'t str,
    operation: &'t str,
    is_last: &'t str,
    payload: Option<Payload<'t>>,
    /// The project, the location and the name of the cluster.
    labels: [&'t str; 3],
}

/// An audit record.
#[derive(Default)]
struct Payload<'t> {
    service: &'t str,
    method: &'t str,
    resource: &'t str,
    user: &'t str,
    address: &'t str,
    agent: &'t str,
    code: &'t str,
    message: &'t str,
    request: &'t str,
    response: &'t str,
}

fn entry<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let whole = cursor.clone().value();
    let mut entry = Entry::default();
    let (mut json, mut text) = ("", "");
    cursor.object(|cursor, key| match key {
        "insertId" => entry.id = cursor.text(),
        "timestamp" => entry.begin = cursor.text(),
        "receiveTimestamp" => entry.received = cursor.text(),
        "operation" => cursor.object(|cursor, key| match key {
            "id" => entry.operation = cursor.text(),
            "last" => entry.is_last = cursor.value(),
            _ => {}
        }),
        "resource" => cursor.object(|cursor, key| {
            if key == "labels" {
                cursor.object(|cursor, key| match key {
                    "project_id" => entry.labels[0] = cursor.text(),
                    "location" => entry.labels[1] = cursor.text(),
                    "cluster_name" => entry.labels[2] = cursor.text(),
                    _ => {}
                });
            }
        }),
        "protoPayload" => entry.payload = Some(payload(cursor)),
        "jsonPayload" => json = cursor.value(),
        "textPayload" => text = cursor.value(),
        _ => {}
    });
    let whole_name = !cursor.is_broken() && !entry.labels[2].is_empty();
    let cluster = if whole_name { entry.labels.join("/") } else { String::new() };
    let origin = Origin { cluster: cluster.into(), ..Origin::default() };
    match &entry.payload {
        Some(payload) if payload.service == "k8s.io" => {
            // An event without its last members would be another event.
            if !cursor.is_broken() {
                out.written(whole, &entry.event(payload), &origin);
            }
        }
        Some(payload) if payload.service.is_empty() => return false,
        Some(_) => out.other(whole, OTHER_SERVICES),
        // An agent on a node may ship an audit log.
        None if json.contains("\"auditID\"") => out.payload(json, &origin),
        None if !json.is_empty() || !text.is_empty() => out.other(whole, OTHER_LOGS),
        None => return false,
    }
    true
}

fn payload<'t>(cursor: &mut Cursor<'t>) -> Payload<'t> {
    let mut payload = Payload::default();
    cursor.object(|cursor, key| match key {
        "serviceName" => payload.service = cursor.text(),
        "methodName" => payload.method = cursor.text(),
        "resourceName" => payload.resource = cursor.text(),
        "authenticationInfo" => cursor.object(|cursor, key| {
            if key == "principalEmail" {
                payload.user = cursor.text();
            }
        }),
        "requestMetadata" => cursor.object(|cursor, key| match key {
            "callerIp" => payload.address = cursor.text(),
            "callerSuppliedUserAgent" => payload.agent = cursor.text(),
            _ => {}
        }),
        "status" => cursor.object(|cursor, key| match key {
            "code" => payload.code = cursor.value(),
            "message" => payload.message = cursor.text(),
            _ => {}
        }),
        "request" => payload.request = cursor.value(),
        "response" => payload.response = cursor.value(),
        _ => {}
    });
    payload
}

impl Entry<'_> {
    /// The audit event. Texts are spliced with their escapes.
    fn event(&self, payload: &Payload<'_>) -> String {
        let verb = payload.method.rsplit('.').next().unwrap_or("");
        let id = if self.operation.is_empty() { self.id } else { self.operation };
        // A member that is false is left out.
        let is_begun = !self.operation.is_empty() && self.is_last != "true";
        let stage = if is_begun { "ResponseStarted" } else { "ResponseComplete" };
        let mut event = format!(
            r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"{id}","stage":"{stage}","verb":"{verb}""#
        );
        let _ = write!(event, r#","user":{{"username":"{}"}},"userAgent":"{}""#, payload.user, payload.agent);
        if !payload.address.is_empty() {
            let _ = write!(event, r#","sourceIPs":["{}"]"#, payload.address);
        }
        let name = unescaped(payload.resource);
        if let Some(object) = Object::of(&name) {
            let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
            let _ = write!(
                event,
                r#","objectRef":{{"apiGroup":{},"apiVersion":{},"namespace":{},"resource":{},"name":{},"subresource":{}}}"#,
                text(object.group),
                text(object.version),
                text(object.namespace),
                text(object.resource),
                text(object.name),
                text(object.subresource)
            );
        }
        let code = status(payload.code, verb);
        let _ = write!(event, r#","responseStatus":{{"code":{code},"message":"{}"}}"#, payload.message);
        let _ = write!(event, r#","requestReceivedTimestamp":"{}""#, self.begin);
        match timestamp::parse(&unescaped(self.received)) {
            Some(Time(received)) => {
                let _ = write!(event, r#","stageTimestamp":"{}""#, Time(received.saturating_add(SKEW)));
            }
            None => {
                let _ = write!(event, r#","stageTimestamp":"{}""#, self.received);
            }
        }
        if payload.request.starts_with('{') {
            let _ = write!(event, r#","requestObject":{}"#, payload.request);
        }
        // Selectors of a list are unknown, so its members say nothing.
        if payload.response.starts_with('{') && !matches!(verb, "list" | "watch") {
            let _ = write!(event, r#","responseObject":{}"#, typed(payload.response));
        }
        event.push('}');
        event
    }
}

/// A body with its kind and its version, which some entries have as a type alone.
fn typed(body: &str) -> Cow<'_, str> {
    let (mut kind, mut of_type) = (false, "");
    Cursor::new(body).object(|cursor, key| match key {
        "kind" => kind = true,
        "@type" => of_type = cursor.text(),
        _ => {}
    });
    // `core.k8s.io/v1.Pod`
    let Some((version, name)) = of_type.rsplit_once('.').filter(|_| !kind) else { return Cow::Borrowed(body) };
    let version = version.strip_prefix("core.k8s.io/").unwrap_or(version);
    Cow::Owned(format!(r#"{{"kind":"{name}","apiVersion":"{version}",{}"#, &body[1..]))
}

/// The HTTP status for a gRPC code. A code that may stand for a lost answer is one of those that leave the outcome open.
fn status(code: &str, verb: &str) -> u16 {
    match code {
        "" | "0" if verb == "create" => 201,
        "" | "0" => 200,
        "3" | "9" | "11" => 400,
        "4" => 504,
        "5" => 404,
        "6" | "10" => 409,
        "7" => 403,
        "8" => 429,
        "14" => 503,
        "16" => 401,
        _ => 500,
    }
}

/// The object in the name of a resource.
#[derive(Debug, Default, PartialEq, Eq)]
struct Object<'n> {
    group: &'n str,
    version: &'n str,
    namespace: &'n str,
    resource: &'n str,
    name: &'n str,
    subresource: &'n str,
}

impl<'n> Object<'n> {
    /// Reads `GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE`, where all behind the version may be absent.
    fn of(name: &'n str) -> Option<Object<'n>> {
        let parts: Vec<&str> = name.splitn(8, '/').collect();
        let [group, version, rest @ ..] = parts.as_slice() else { return None };
        let group = if *group == "core" { "" } else { group };
        let at = |n: usize| rest.get(n).copied().unwrap_or("");
        // A subresource of a namespace is no resource in it.
        let is_inside = at(0) == "namespaces" && rest.len() > 2 && !matches!(at(2), "status" | "finalize");
        let (namespace, skipped) = match at(0) {
            "namespaces" if is_inside => (at(1), 2),
            "namespaces" => (at(1), 0),
            _ => ("", 0),
        };
        let object = Object {
            group,
            version,
            namespace,
            resource: at(skipped),
            name: at(skipped + 1),
            subresource: at(skipped + 2),
        };
        (!object.resource.is_empty()).then_some(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_resources_name_objects() {
        let object =
            |text| Object::of(text).map(|o| [o.group, o.version, o.namespace, o.resource, o.name, o.subresource]);
        for (text, expected) in [
            ("core/v1/namespaces/n/pods/p", ["", "v1", "n", "pods", "p", ""]),
            ("core/v1/namespaces/n/pods/p/status", ["", "v1", "n", "pods", "p", "status"]),
            ("core/v1/namespaces/n/pods", ["", "v1", "n", "pods", "", ""]),
            ("core/v1/namespaces/n", ["", "v1", "n", "namespaces", "n", ""]),
            ("core/v1/namespaces/n/finalize", ["", "v1", "n", "namespaces", "n", "finalize"]),
            ("core/v1/nodes/a/status", ["", "v1", "", "nodes", "a", "status"]),
            ("networking.gke.io/v1/things", ["networking.gke.io", "v1", "", "things", "", ""]),
        ] {
            assert_eq!(object(text), Some(expected), "{text}");
        }
        assert_eq!((object("HNAP1"), object("core/v1"), object("")), (None, None, None));
    }

    #[test]
    fn a_body_gets_the_kind_of_its_type() {
        let typed = |body| typed(body).into_owned();
        assert_eq!(
            typed(r#"{"@type":"core.k8s.io/v1.Status","code":1}"#),
            r#"{"kind":"Status","apiVersion":"v1","@type":"core.k8s.io/v1.Status","code":1}"#
        );
        assert_eq!(typed(r#"{"@type":"apps.k8s.io/v1.X","kind":"Y"}"#), r#"{"@type":"apps.k8s.io/v1.X","kind":"Y"}"#);
        assert_eq!(typed("{}"), "{}");
    }
}
