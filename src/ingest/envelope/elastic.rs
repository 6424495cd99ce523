//! Documents of Elasticsearch and OpenSearch: answers of a search (`hits.hits[]._source`), lines of a dump, and documents
//! as shippers write them. The event is the document itself, an object in it, or a text in it.
//!
//! Sources: the search API of Elasticsearch; the field reference of the integration `kubernetes` (`audit_logs`).

use super::cursor::Cursor;
use super::quoted::unescaped;
use super::{Envelope, Opening, Origin};

/// The answer of a search.
pub static HITS: Envelope = Envelope { name: "elastic-hits", lacks: "", keys: &["hits"], read: hits };

/// One hit, or one line of a dump.
pub static DOCUMENT: Envelope = Envelope { name: "elastic-document", lacks: "", keys: &["_source"], read: document };

/// A document without the frame of a hit, as shippers such as Filebeat and Fluent Bit write them.
pub static SHIPPED: Envelope = Envelope { name: "shipped-document", lacks: "", keys: &["@timestamp"], read: source };

/// As [`SHIPPED`], of a shipper that names its times in another way.
pub static MESSAGE: Envelope = Envelope { name: "shipped-document", lacks: "", keys: &["message"], read: source };

fn hits<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| {
        if key == "hits" {
            cursor.object(|cursor, key| {
                if key == "hits" {
                    cursor.list(|cursor| found |= document(cursor, out));
                }
            });
        }
    });
    found
}

fn document<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut source = "";
    cursor.object(|cursor, key| {
        if key == "_source" {
            source = cursor.value();
        }
    });
    if source.is_empty() {
        return false;
    }
    if !self::source(&mut Cursor::new(source), out) {
        out.payload(source, &Origin::default());
    }
    true
}

/// Hands over the event inside a document; false if none of its members holds one.
fn source<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut audit, mut original, mut message, mut cluster) = ("", "", "", "");
    let mut of_cluster = |cursor: &mut Cursor<'t>| {
        cursor.object(|cursor, key| match key {
            "cluster_id" => cluster = cursor.text(),
            "cluster" => cursor.object(|cursor, key| {
                if matches!(key, "name" | "uid") && cluster.is_empty() {
                    cluster = cursor.text();
                }
            }),
            _ => {}
        });
    };
    cursor.object(|cursor, key| match key {
        "kubernetes" => cursor.object(|cursor, key| {
            if key == "audit" {
                audit = cursor.value();
            }
        }),
        "kubernetes.audit" => audit = cursor.value(),
        "event" => cursor.object(|cursor, key| {
            if key == "original" {
                original = cursor.value();
            }
        }),
        "event.original" => original = cursor.value(),
        "message" | "log" => message = cursor.value(),
        "orchestrator" | "openshift" => of_cluster(cursor),
        _ => {}
    });
    let texts = [audit, original, message];
    let Some(event) = texts.iter().find(|text| text.starts_with('{') || text.starts_with("\"{")) else {
        let other = texts.iter().find(|text| text.starts_with('"'));
        if let Some(other) = other {
            out.other(other, super::line::OTHER_TEXT);
        }
        return other.is_some();
    };
    // The host of a shipper need not be that of the server.
    out.payload(event, &Origin { cluster: unescaped(cluster), ..Origin::default() });
    true
}
