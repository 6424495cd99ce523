//! Loki: lines of `logcli -o jsonl`, answers of its HTTP interface, and pushed streams. Labels may name the cluster.
//!
//! Sources: the HTTP API of Loki (`query_range`, `push`); the labels of OpenShift's cluster-logging-operator.

use super::cursor::Cursor;
use super::quoted::unescaped;
use super::{AUDIT, Envelope, Opening, Origin};
use std::borrow::Cow;

/// One line of `logcli`.
pub static LINE: Envelope = Envelope { name: "loki-line", lacks: "", keys: &["labels", "line"], read: line };

/// The answer of a query.
pub static ANSWER: Envelope = Envelope { name: "loki-answer", lacks: "", keys: &["status", "data"], read: answer };

/// Streams as agents push them.
pub static PUSH: Envelope = Envelope { name: "loki-push", lacks: "", keys: &["streams"], read: push };

/// The writer that the labels of a stream name. Only OpenShift's forwarder reads audit logs on the node of their server. Any
/// other label of a host may be that of an agent that several servers send to.
fn writer<'t>(labels: &'t str) -> Origin<'t> {
    let (mut cluster, mut of_openshift, mut node, mut of_audit) = ("", "", "", false);
    Cursor::new(labels).object(|cursor, key| match key {
        "openshift_cluster_id" => of_openshift = cursor.text(),
        "cluster" | "cluster_name" | "k8s_cluster_name" if cluster.is_empty() => cluster = cursor.text(),
        "kubernetes_host" => node = cursor.text(),
        "log_type" | "openshift_log_type" => of_audit |= cursor.text() == AUDIT,
        _ => {}
    });
    let cluster = unescaped(if of_openshift.is_empty() { cluster } else { of_openshift });
    let server = if of_audit { unescaped(node) } else { Cow::Borrowed("") };
    Origin { cluster, server, ..Origin::default() }
}

fn line<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut line, mut labels) = ("", "");
    cursor.object(|cursor, key| match key {
        "line" => line = cursor.value(),
        "labels" => labels = cursor.value(),
        _ => {}
    });
    if !line.starts_with('"') {
        return false;
    }
    out.payload(line, &writer(labels));
    true
}

fn answer<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| {
        if key == "data" {
            cursor.object(|cursor, key| {
                if key == "result" {
                    found |= streams(cursor, out);
                }
            });
        }
    });
    found
}

fn push<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| {
        if key == "streams" {
            found |= streams(cursor, out);
        }
    });
    found
}

/// A list of `{"stream":{...},"values":[["TIME","LINE"],...]}`.
fn streams<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.list(|cursor| {
        let (mut labels, mut values) = ("", "");
        cursor.object(|cursor, key| match key {
            "stream" => labels = cursor.value(),
            "values" => values = cursor.value(),
            _ => {}
        });
        let origin = writer(labels);
        Cursor::new(values).list(|cursor| {
            let mut nth = 0;
            cursor.list(|cursor| {
                if nth == 1 {
                    found = true;
                    out.payload(cursor.value(), &origin);
                }
                nth += 1;
            });
        });
    });
    found
}
