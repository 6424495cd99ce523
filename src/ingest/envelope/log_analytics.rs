//! Answers of Azure Log Analytics: rows of the table `AKSAudit`, which takes the event apart, and of `AzureDiagnostics`,
//! which keeps its text. `az monitor log-analytics query` prints a list of rows. The HTTP interface answers with tables.
//!
//! Source: the Azure Monitor reference (tables AKSAudit, AKSAuditAdmin, AzureDiagnostics).

use super::cursor::{Cursor, unquoted};
use super::quoted::unescaped;
use super::{Envelope, OTHER_CATEGORIES, Opening, Origin, api_server};
use std::fmt::Write;

/// One row of `AKSAudit`.
pub static ROW: Envelope = Envelope {
    name: "aks-audit-row",
    lacks: "bodies that are too large, and reads in AKSAuditAdmin",
    keys: &["AuditId", "Stage"],
    read: row,
};

/// One row of `AzureDiagnostics`.
pub static TEXT_ROW: Envelope = Envelope {
    name: "azure-diagnostics-row",
    lacks: "reads, if the category is kube-audit-admin",
    keys: &["log_s"],
    read: text_row,
};

/// An answer with tables.
pub static TABLES: Envelope = Envelope { name: "azure-tables", lacks: "", keys: &["tables"], read: tables };

/// Columns, the members of an audit event for them, and whether they hold JSON.
const MEMBERS: [(&str, &str, bool); 15] = [
    ("AuditId", "auditID", false),
    ("Level", "level", false),
    ("Stage", "stage", false),
    ("RequestUri", "requestURI", false),
    ("Verb", "verb", false),
    ("User", "user", true),
    ("ImpersonatedUser", "impersonatedUser", true),
    ("SourceIps", "sourceIPs", true),
    ("UserAgent", "userAgent", false),
    ("ObjectRef", "objectRef", true),
    ("ResponseStatus", "responseStatus", true),
    ("RequestObject", "requestObject", true),
    ("ResponseObject", "responseObject", true),
    ("Annotations", "annotations", true),
    ("RequestReceivedTime", "requestReceivedTimestamp", false),
];

/// The time of the answer, of which there are two names.
const ENDS: [&str; 2] = ["StageReceivedTime", "StageTimestamp"];

/// Writes an event again from its columns.
#[derive(Default)]
struct Columns {
    event: String,
    has_id: bool,
    cluster: String,
    server: String,
}

impl Columns {
    fn put(&mut self, column: &str, value: &str) {
        match column {
            "PodName" => self.server = api_server(unquoted(value)).into_owned(),
            "_ResourceId" | "ResourceId" => self.cluster = super::aks::cluster(unquoted(value)),
            _ => {}
        }
        let is_end = ENDS.contains(&column);
        let known = MEMBERS.iter().find(|(known, ..)| *known == column);
        let Some((_, member, is_json)) = known.or(is_end.then_some(&("", "stageTimestamp", false))) else { return };
        if value.is_empty() || value == "null" || value == "\"\"" {
            return;
        }
        self.has_id |= *member == "auditID";
        let comma = if self.event.is_empty() { "" } else { "," };
        let text = unescaped(unquoted(value));
        // A column of a dynamic type is printed as the text of its JSON.
        let is_text_of_json = *is_json && value.starts_with('"') && text.starts_with(['{', '[']);
        let value = if is_text_of_json { &*text } else { value };
        let _ = write!(self.event, r#"{comma}"{member}":{value}"#);
    }

    fn hand(&self, row: &str, out: &mut Opening<'_, '_>) -> bool {
        if self.has_id {
            let event = format!(r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1",{}}}"#, self.event);
            let origin =
                Origin { cluster: (&*self.cluster).into(), server: (&*self.server).into(), ..Origin::default() };
            out.written(row, &event, &origin);
        }
        self.has_id
    }
}

fn row<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let whole = cursor.clone().value();
    let mut columns = Columns::default();
    cursor.object(|cursor, key| columns.put(key, cursor.value()));
    // An event without its last members would be another event.
    if cursor.is_broken() { columns.has_id } else { columns.hand(whole, out) }
}

fn text_row<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut log, mut pod, mut id, mut category) = ("", "", "", "");
    cursor.object(|cursor, key| match key {
        "log_s" => log = cursor.value(),
        "pod_s" => pod = cursor.text(),
        "_ResourceId" | "ResourceId" => id = cursor.text(),
        "Category" => category = cursor.text(),
        _ => {}
    });
    if !log.starts_with('"') {
        return false;
    }
    match category {
        "kube-audit" | "kube-audit-admin" | "" => {
            let cluster = super::aks::cluster(id).into();
            out.payload(log, &Origin { cluster, server: api_server(pod), ..Origin::default() });
        }
        _ => out.other(log, OTHER_CATEGORIES),
    }
    true
}

fn tables<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let mut found = false;
    cursor.object(|cursor, key| {
        if key == "tables" {
            cursor.list(|cursor| found |= table(cursor, out));
        }
    });
    found
}

fn table<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut names, mut rows) = (Vec::new(), "");
    cursor.object(|cursor, key| match key {
        "columns" => cursor.list(|cursor| {
            cursor.object(|cursor, key| {
                if key == "name" {
                    names.push(cursor.text());
                }
            });
        }),
        "rows" => rows = cursor.value(),
        _ => {}
    });
    let mut found = false;
    Cursor::new(rows).list(|cursor| {
        let row = cursor.clone().value();
        let mut values = Vec::new();
        cursor.list(|cursor| values.push(cursor.value()));
        if cursor.is_broken() {
            return;
        }
        let pairs = || names.iter().copied().zip(values.iter().copied());
        if let Some((_, log)) = pairs().find(|(name, _)| *name == "log_s") {
            let of = |wanted: &str| pairs().find(|(name, _)| *name == wanted).map_or("", |(_, value)| unquoted(value));
            let cluster = super::aks::cluster(of("_ResourceId")).into();
            out.payload(log, &Origin { cluster, server: api_server(of("pod_s")), ..Origin::default() });
            found = true;
            return;
        }
        // A row is a list, which is not read again by its place, so that only its table says what its columns are.
        let mut columns = Columns::default();
        pairs().for_each(|(name, value)| columns.put(name, value));
        found |= columns.hand(row, out);
    });
    found
}
