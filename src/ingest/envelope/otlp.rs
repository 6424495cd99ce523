//! Logs of the OpenTelemetry protocol in JSON, as the collectors of OpenShift and others write them. The body of a record
//! is the event, as text or as a list of keys and values. Attributes of the resource may name the cluster and the node.
//!
//! Source: opentelemetry-proto, `opentelemetry/proto/logs/v1/logs.proto` and `common/v1/common.proto`, in its JSON form.

use super::cursor::{Cursor, unquoted};
use super::quoted::unescaped;
use super::{AUDIT, Envelope, Opening, Origin};
use std::fmt::Write;

/// A request or a file of logs.
pub static LOGS: Envelope = Envelope { name: "otlp", lacks: "", keys: &["resourceLogs"], read: logs };

/// The body of one record, as a list of keys and values.
pub static BODY: Envelope = Envelope { name: "otlp", lacks: "", keys: &["kvlistValue"], read: body };

/// Nested values of a body.
const MAX_NESTING: u8 = 64;

fn logs<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| {
        if key == "resourceLogs" {
            cursor.list(|cursor| {
                let (mut resource, mut scopes) = ("", "");
                cursor.object(|cursor, key| match key {
                    "resource" => resource = cursor.value(),
                    "scopeLogs" | "instrumentationLibraryLogs" => scopes = cursor.value(),
                    _ => {}
                });
                let origin = writer(resource);
                Cursor::new(scopes).list(|cursor| {
                    cursor.object(|cursor, key| {
                        if key == "logRecords" {
                            cursor.list(|cursor| {
                                found = true;
                                record(cursor, out, &origin);
                            });
                        }
                    });
                });
            });
        }
    });
    found
}

/// The writer that the attributes of a resource name. One host has several API servers, which share its clock. Only OpenShift's
/// forwarder reads audit logs on the node of their server. Any other host may be that of a collector that several servers send to.
fn writer(resource: &str) -> Origin<'static> {
    let (mut cluster, mut node, mut source, mut kind) = (String::new(), String::new(), String::new(), String::new());
    Cursor::new(resource).object(|cursor, key| {
        if key != "attributes" {
            return;
        }
        cursor.list(|cursor| {
            let (mut name, mut value) = ("", "");
            cursor.object(|cursor, key| match key {
                "key" => name = cursor.text(),
                "value" => cursor.object(|cursor, key| {
                    if key == "stringValue" {
                        value = cursor.text();
                    }
                }),
                _ => {}
            });
            let field = match name {
                "openshift.cluster.uid" | "openshift.cluster_id" | "k8s.cluster.uid" | "k8s.cluster.name" => {
                    &mut cluster
                }
                "k8s.node.name" | "kubernetes.host" => &mut node,
                "openshift.log.source" | "log_source" => &mut source,
                "openshift.log.type" | "log_type" => &mut kind,
                _ => return,
            };
            if field.is_empty() {
                *field = unescaped(value).into_owned();
            }
        });
    });
    match kind == AUDIT {
        true => super::of_node(cluster, node, source),
        false => Origin { cluster: cluster.into(), ..Origin::default() },
    }
}

fn record<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>, origin: &Origin<'_>) {
    let mut body = "";
    cursor.object(|cursor, key| {
        if key == "body" {
            body = cursor.value();
        }
    });
    let (mut text, mut pairs) = ("", "");
    Cursor::new(body).object(|cursor, key| match key {
        "stringValue" => text = cursor.value(),
        "kvlistValue" => pairs = cursor.value(),
        _ => {}
    });
    if !text.is_empty() {
        return out.payload(text, origin);
    }
    if pairs.is_empty() {
        return out.other(body, "entries without text");
    }
    // An event without its last members would be another event.
    if !cursor.is_broken() {
        let mut json = String::new();
        write_value(&mut json, body, 0);
        out.written(body, &json, origin);
    }
}

/// Hands over an event that is a list of keys and values.
fn body<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let body = cursor.value();
    if cursor.is_broken() {
        return false;
    }
    let mut json = String::new();
    write_value(&mut json, body, 0);
    out.written(body, &json, &Origin::default());
    true
}

/// Writes a value of the protocol as plain JSON.
fn write_value(out: &mut String, value: &str, depth: u8) {
    if depth == MAX_NESTING {
        out.push_str("null");
        return;
    }
    let start = out.len();
    Cursor::new(value).object(|cursor, key| {
        if out.len() > start {
            return;
        }
        match key {
            "stringValue" | "boolValue" | "doubleValue" => out.push_str(cursor.value()),
            // 64-bit integers are texts in JSON of protobuf.
            "intValue" => out.push_str(unquoted(cursor.value())),
            "kvlistValue" => {
                out.push('{');
                let begin = out.len();
                values(cursor, |cursor| {
                    let (mut name, mut value) = ("\"\"", "");
                    cursor.object(|cursor, key| match key {
                        "key" => name = cursor.value(),
                        "value" => value = cursor.value(),
                        _ => {}
                    });
                    let comma = if out.len() == begin { "" } else { "," };
                    let _ = write!(out, "{comma}{name}:");
                    write_value(out, value, depth + 1);
                });
                out.push('}');
            }
            "arrayValue" => {
                out.push('[');
                let begin = out.len();
                values(cursor, |cursor| {
                    if out.len() > begin {
                        out.push(',');
                    }
                    write_value(out, cursor.value(), depth + 1);
                });
                out.push(']');
            }
            _ => {}
        }
    });
    if out.len() == start {
        out.push_str("null");
    }
}

fn values<'t>(cursor: &mut Cursor<'t>, mut each: impl FnMut(&mut Cursor<'t>)) {
    cursor.object(|cursor, key| {
        if key == "values" {
            cursor.list(&mut each);
        }
    });
}
