//! Reads bodies of requests and answers again, for the few rules that need more than the identity of an object.
//!
//! Bodies are not kept in memory. All wanted bodies of one file are read in one pass, so ask for them together.

use super::ids::{KeyId, OperationId};
use super::store::History;
use crate::ingest::{self, FileId, Position};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::collections::BTreeMap;

/// A body in the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Document {
    /// The body that a request sent.
    Request(OperationId),
    /// The object in an answer.
    Answer(OperationId),
    /// One object of a list.
    Item(OperationId, KeyId),
    /// The object of a delivery (an index into the history's deliveries) of a watch.
    Delivery(u32, OperationId),
}

impl Document {
    fn operation(self) -> OperationId {
        match self {
            Document::Request(id) | Document::Answer(id) | Document::Item(id, _) | Document::Delivery(_, id) => id,
        }
    }
}

/// The paths to which a body was cut, beside the object's identity; `None` for a whole body. A recorder writes them into
/// `recordedFields`. A client that asked for metadata only received a `PartialObjectMetadata`.
pub fn recorded_fields(body: &Value) -> Option<&str> {
    match body.get("recordedFields") {
        Some(paths) => Some(paths.as_str().unwrap_or("")),
        None => (body.get("kind")? == "PartialObjectMetadata").then_some("metadata"),
    }
}

impl History {
    /// Reads bodies again, each file in one pass. A body that can no longer be read, or was not recorded, is missing in the
    /// result.
    #[doc(hidden)]
    pub fn documents(&self, wanted: &[Document]) -> FxHashMap<Document, Value> {
        let mut found = self.read_again(wanted.iter().map(|&document| (self.place(document), document)));
        let is_whole = |body: &Value| recorded_fields(body).is_none();
        // A server may have recorded what the client's recorder cut off.
        let lacking = wanted.iter().filter(|document| !found.get(document).is_some_and(is_whole));
        let records = lacking.flat_map(|&document| self.records(document).map(move |place| (place, document)));
        for (document, body) in self.read_again(records.collect::<Vec<_>>()) {
            if is_whole(&body) || !found.contains_key(&document) {
                found.insert(document, body);
            }
        }
        found
    }

    /// Positions of a server's records with bodies, for a request that a client recorded.
    fn records(&self, document: Document) -> impl Iterator<Item = Position> {
        let records = match document {
            Document::Delivery(..) => &[],
            _ => &self.server_records[..],
        };
        let first = records.partition_point(|(id, _)| *id < document.operation());
        records[first..].iter().take_while(move |(id, _)| *id == document.operation()).map(|(_, place)| *place)
    }

    fn read_again(&self, wanted: impl IntoIterator<Item = (Position, Document)>) -> FxHashMap<Document, Value> {
        // In the order of the files, so that an archive is read in one pass.
        let mut by_file: BTreeMap<FileId, Vec<(Position, Document)>> = BTreeMap::new();
        for (position, document) in wanted {
            by_file.entry(position.file).or_default().push((position, document));
        }
        let mut found = FxHashMap::default();
        let mut opener = ingest::Opener::default();
        for (file, mut places) in by_file {
            let Some(input) = self.input(file) else { continue };
            places.sort_unstable();
            places.dedup();
            let positions: Vec<Position> = places.iter().map(|(position, _)| *position).collect();
            let mut last: Option<(Position, Option<Value>)> = None;
            for ((position, document), text) in
                places.into_iter().zip(ingest::reread_by(&mut opener, input, &positions))
            {
                if last.as_ref().is_none_or(|(at, _)| *at != position) {
                    last = Some((position, text.and_then(|text| serde_json::from_str(&text).ok())));
                }
                let Some((_, Some(line))) = &last else { continue };
                if let Some(body) = self.extract(line, document).filter(|b| b.is_object() || b.is_array()) {
                    found.insert(document, body.clone());
                }
            }
        }
        found
    }

    fn place(&self, document: Document) -> Position {
        match document {
            Document::Delivery(index, _) => self.deliveries[index as usize].position,
            Document::Request(id) => match self.request_places.binary_search_by_key(&id, |(id, _)| *id) {
                Ok(at) => self.request_places[at].1,
                Err(_) => self.operation(id).position,
            },
            Document::Answer(id) | Document::Item(id, _) => self.operation(id).position,
        }
    }

    fn extract<'v>(&self, line: &'v Value, document: Document) -> Option<&'v Value> {
        let event = self.audit_event(line, document.operation());
        let body = match (document, event) {
            (Document::Request(_), Some(event)) => return event.get("requestObject"),
            (Document::Request(_), None) => return line.get("body"),
            (Document::Answer(_) | Document::Item(..), Some(event)) => event.get("responseObject")?,
            (Document::Delivery(..), _) => line.get("event").unwrap_or(line).get("object")?,
            // A response line of a capture, or a saved list or object.
            (_, None) if line.get("apiVersion").is_some() => line,
            (_, None) => line.get("body")?,
        };
        match document {
            Document::Item(_, key) => self.member(body, key),
            Document::Delivery(index, _) if body.get("items").is_some() => {
                self.member(body, self.deliveries[index as usize].key)
            }
            _ => Some(body),
        }
    }

    /// The audit event of an operation on its line. One line holds many events if a webhook sent a batch.
    fn audit_event<'v>(&self, line: &'v Value, id: OperationId) -> Option<&'v Value> {
        if line.get("auditID").is_some() {
            return Some(line);
        }
        if line.get("kind").and_then(Value::as_str) != Some("EventList") {
            return None;
        }
        let wanted = self.audit_id(self.operation(id).audit_id);
        let text = |event: &'v Value, field: &str| event.get(field).and_then(Value::as_str).unwrap_or("");
        line.get("items")?
            .as_array()?
            .iter()
            .find(|event| text(event, "auditID") == wanted && text(event, "stage") == "ResponseComplete")
    }

    /// The object with this key in a list or a table.
    fn member<'v>(&self, list: &'v Value, key: KeyId) -> Option<&'v Value> {
        let key = self.keys[key.index()];
        let (namespace, name) = (self.name(key.namespace), self.name(key.name));
        let is = |object: &Value| {
            let metadata = object.get("metadata");
            let text = |field: &str| metadata.and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or("");
            text("name") == name && text("namespace") == namespace
        };
        let items = list.get("items").and_then(Value::as_array).into_iter().flatten();
        let rows = list.get("rows").and_then(Value::as_array).into_iter().flatten().filter_map(|row| row.get("object"));
        items.chain(rows).find(|object| is(object))
    }
}
