//! Events of the Open Cybersecurity Schema Framework, as Security Lake stores the audit log of EKS in JSON. The event is
//! taken apart; bodies stand under `unmapped`, or as text under `api`. This file writes the event again.
//!
//! Sources: schema.ocsf.io, class API Activity (6003), versions 1.1 to 1.5; ocsf/examples, mappings of EKS.

use super::cursor::{Cursor, unquoted};
use super::quoted::unescaped;
use super::{Envelope, OTHER_SERVICES, Opening, Origin};
use std::fmt::Write;

/// One event.
pub static EVENT: Envelope = Envelope {
    name: "ocsf",
    lacks: "parts of a millisecond, queries of request URIs, members of lists, servers",
    keys: &["class_uid", "api"],
    read: event,
};

/// The parts of an event that are needed: raw JSON, empty if absent.
#[derive(Default)]
struct Event<'t> {
    product: &'t str,
    cluster: &'t str,
    stage: &'t str,
    verb: &'t str,
    id: &'t str,
    status: &'t str,
    message: &'t str,
    user: &'t str,
    address: &'t str,
    agent: &'t str,
    path: &'t str,
    query: &'t str,
    begin: &'t str,
    begin_number: &'t str,
    end: &'t str,
    end_number: &'t str,
    request: &'t str,
    response: &'t str,
}

fn event<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let whole = cursor.clone().value();
    let mut event = Event::default();
    cursor.object(|cursor, key| match key {
        "message" => event.stage = cursor.text(),
        "api" => cursor.object(|cursor, key| match key {
            "operation" => event.verb = cursor.text(),
            "request" => cursor.object(|cursor, key| match key {
                "uid" => event.id = cursor.text(),
                "data" => event.request = cursor.value(),
                _ => {}
            }),
            "response" => cursor.object(|cursor, key| match key {
                "code" => event.status = cursor.value(),
                "message" => event.message = cursor.text(),
                "data" => event.response = cursor.value(),
                _ => {}
            }),
            _ => {}
        }),
        "actor" => cursor.object(|cursor, key| {
            if key == "user" {
                cursor.object(|cursor, key| {
                    if key == "name" {
                        event.user = cursor.text();
                    }
                });
            }
        }),
        "src_endpoint" => cursor.object(|cursor, key| {
            if key == "ip" {
                event.address = cursor.text();
            }
        }),
        "http_request" => cursor.object(|cursor, key| match key {
            "user_agent" => event.agent = cursor.text(),
            "url" => cursor.object(|cursor, key| match key {
                "path" => event.path = cursor.text(),
                "query_string" => event.query = cursor.text(),
                _ => {}
            }),
            _ => {}
        }),
        "metadata" => cursor.object(|cursor, key| {
            if key == "product" {
                cursor.object(|cursor, key| {
                    if key == "version" {
                        event.product = cursor.text();
                    }
                });
            }
        }),
        "start_time_dt" => event.begin = cursor.text(),
        "start_time" => event.begin_number = cursor.value(),
        "time_dt" => event.end = cursor.text(),
        "time" => event.end_number = cursor.value(),
        "unmapped" => cursor.object(|cursor, key| match key {
            "requestObject" => event.request = cursor.value(),
            "responseObject" => event.response = cursor.value(),
            "eks_cluster_name" => event.cluster = cursor.text(),
            _ => {}
        }),
        _ => {}
    });
    if !event.product.starts_with("audit.k8s.io/") {
        let is_whole = !event.product.is_empty() && !cursor.is_broken();
        if is_whole {
            out.other(whole, OTHER_SERVICES);
        }
        return is_whole;
    }
    // An event without its last members would be another event.
    if !cursor.is_broken() {
        let origin = Origin { cluster: unescaped(event.cluster), ..Origin::default() };
        out.written(whole, &event.written(), &origin);
    }
    true
}

impl Event<'_> {
    /// The audit event. Texts are spliced with their escapes.
    fn written(&self) -> String {
        let Event { id, stage, verb, user, agent, .. } = self;
        let mut event = format!(
            r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"{id}","stage":"{stage}","verb":"{verb}","user":{{"username":"{user}"}},"userAgent":"{agent}""#
        );
        if !self.address.is_empty() {
            let _ = write!(event, r#","sourceIPs":["{}"]"#, self.address);
        }
        let path = unescaped(self.path);
        let path = path.split('?').next().unwrap_or("");
        if let Some(object) = object(path, verb) {
            let _ = write!(event, r#","objectRef":{object}"#);
        }
        // A path without its query does not say what a read asked for.
        if self.path.contains('?') {
            let _ = write!(event, r#","requestURI":"{}""#, self.path);
        } else if !self.query.is_empty() {
            let _ = write!(event, r#","requestURI":"{}?{}""#, self.path, self.query);
        }
        if self.status.bytes().all(|byte| byte.is_ascii_digit()) && !self.status.is_empty() {
            let _ = write!(event, r#","responseStatus":{{"code":{},"message":"{}"}}"#, self.status, self.message);
        }
        for (name, text, number) in
            [("requestReceivedTimestamp", self.begin, self.begin_number), ("stageTimestamp", self.end, self.end_number)]
        {
            let time = if text.is_empty() { printed(number) } else { Some(text.to_owned()) };
            if let Some(time) = time {
                let _ = write!(event, r#","{name}":"{time}""#);
            }
        }
        let is_list = matches!(*verb, "list" | "watch" | "deletecollection");
        for (name, body) in [("requestObject", self.request), ("responseObject", self.response)] {
            // Members of lists are texts joined by commas.
            if name == "responseObject" && is_list {
                continue;
            }
            let text = unescaped(unquoted(body));
            if body.starts_with('{') {
                let _ = write!(event, r#","{name}":{body}"#);
            } else if text.starts_with('{') || text.starts_with('[') {
                let _ = write!(event, r#","{name}":{text}"#);
            }
        }
        event.push('}');
        event
    }
}

/// A time for a number of milliseconds, microseconds or nanoseconds, with as many digits as it has.
fn printed(number: &str) -> Option<String> {
    let number: i64 = number.parse().ok().filter(|number| *number > 0)?;
    let (unit, digits) = match number.ilog10() {
        0..14 => (1_000_000, 3),
        14..17 => (1_000, 6),
        _ => (1, 9),
    };
    let time = jiff::Timestamp::from_nanosecond(i128::from(number) * unit).ok()?;
    Some(format!("{time:.digits$}"))
}

/// The object that a path names, as JSON; `None` for a path without one.
fn object(path: &str, verb: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).take(10).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, inner @ ..] if !inner.is_empty() && !matches!(inner, ["status" | "finalize"]) => {
            (*namespace, inner)
        }
        ["namespaces", namespace, ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let at = |n: usize| rest.get(n).copied().unwrap_or("");
    if at(0).is_empty() || (at(0) == "watch" && verb == "watch") {
        return None;
    }
    let object = serde_json::json!({
        "apiGroup": group, "apiVersion": version, "namespace": namespace,
        "resource": at(0), "name": at(1), "subresource": at(2)
    });
    Some(object.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_objects() {
        let name = |path| object(path, "get").map(|json| json.replace('"', ""));
        assert_eq!(
            name("/apis/apps/v1/namespaces/n/deployments/d/scale").unwrap(),
            "{apiGroup:apps,apiVersion:v1,name:d,namespace:n,resource:deployments,subresource:scale}"
        );
        assert_eq!(
            name("/api/v1/namespaces/n").unwrap(),
            "{apiGroup:,apiVersion:v1,name:n,namespace:n,resource:namespaces,subresource:}"
        );
        assert!(name("/api/v1/nodes").unwrap().contains("resource:nodes"));
        assert_eq!((name("/healthz"), name("/api/v1"), name("")), (None, None, None));
    }

    #[test]
    fn numbers_are_times_with_their_digits() {
        assert_eq!(printed("1631047050642").unwrap(), "2021-09-07T20:37:30.642Z");
        assert_eq!(printed("1631047050642854").unwrap(), "2021-09-07T20:37:30.642854Z");
        assert_eq!((printed(""), printed("-1"), printed("x")), (None, None, None));
    }
}
