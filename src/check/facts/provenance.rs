//! Values that show from which object a write was derived. Input: writes by name that may mean either of two lives. Output: a
//! text that the write sends and only the first life had. Trap: every version of the new object must be recorded as a whole.

use crate::check::Evidence;
use crate::check::facts::knowledge::{ClientKnowledge, LastRead, Shown};
use crate::history::{DeliveryKind, Document, OperationId, Subresource, Symbol, recorded_fields};
use crate::order::Version;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

/// Shorter texts occur in too many objects to prove a derivation.
const SHORTEST: usize = 3;

/// The most versions of the new object that are examined.
const VERSIONS: usize = 16;

/// A write to the new life by a process that knew the old one, if the reads do not show which of the two it meant.
pub struct AmbiguousWrite {
    /// The write.
    pub id: OperationId,
    /// The last read of the old life.
    pub seen: LastRead,
    /// Whether the process had read the new life too.
    pub overtaken: bool,
}

/// Per write, by index: a text that it sends and the life that the process read has, but no known version of the new life, and
/// that the process had not sent to this name before.
pub fn values(
    evidence: &Evidence<'_>,
    knowledge: &ClientKnowledge,
    doubts: &[AmbiguousWrite],
) -> FxHashMap<usize, String> {
    let history = evidence.history;
    let mut wanted: Vec<Document> = Vec::new();
    let mut plans = Vec::new();
    for doubt in doubts {
        let o = history.operation(doubt.id);
        let read = doubt.seen.document(o.key);
        let present = versions(evidence, doubt.id, o.answer_uid).unwrap_or_default();
        let own: Vec<Document> = knowledge
            .at_most(o.incarnation, o.key)
            .filter(|g| g.is_own_write(evidence))
            .filter_map(|g| if let Shown::Answer(id) = g.shown { Some(Document::Request(id)) } else { None })
            .filter(|d| *d != Document::Request(doubt.id))
            .collect();
        wanted.push(Document::Request(doubt.id));
        wanted.extend(read);
        wanted.extend(&present);
        wanted.extend(&own);
        plans.push((read, present, own));
    }
    let bodies = history.documents(&wanted);
    let all = |documents: &[Document]| -> FxHashSet<&str> {
        documents.iter().filter_map(|d| bodies.get(d)).flat_map(texts).collect()
    };
    let mut found = FxHashMap::default();
    for (at, (doubt, (read, present, own))) in doubts.iter().zip(plans).enumerate() {
        let request = bodies.get(&Document::Request(doubt.id));
        let (Some(request), Some(read)) = (request, read.and_then(|d| bodies.get(&d))) else { continue };
        // Every known version and every earlier request must be recorded as a whole, or the value may have been in it.
        let is_whole = |document: &Document| bodies.get(document).is_some_and(|body| recorded_fields(body).is_none());
        if present.is_empty() || !present.iter().chain(&own).all(is_whole) {
            continue;
        }
        let (before, now, sent_before) = (texts(read), all(&present), all(&own));
        let betrays = |text: &&str| before.contains(text) && !now.contains(text) && !sent_before.contains(text);
        // The least text, so that the report is deterministic.
        if let Some(value) = texts(request).into_iter().filter(betrays).min() {
            found.insert(at, value.to_owned());
        }
    }
    found
}

/// The bodies of the known versions of an object before a write to it; `None` if one of them has no body.
fn versions(evidence: &Evidence<'_>, id: OperationId, uid: Symbol) -> Option<Vec<Document>> {
    let o = evidence.history.operation(id);
    let known = evidence.order.timeline.versions(o.key).iter();
    known
        .rev()
        .filter(|v| v.uid == uid && v.writer != id && (!o.answered.is_some() || v.revision < o.answered))
        .take(VERSIONS)
        .map(|v| document(evidence, &v))
        .collect()
}

/// A document with the body of a version.
pub fn document(evidence: &Evidence<'_>, version: &Version) -> Option<Document> {
    let history = evidence.history;
    let shows = |id: OperationId| {
        let o = history.operation(id);
        // A Scale shows its parent's version, but not the parent's body.
        let answers = o.answered == version.revision && o.key == version.key && o.subresource != Subresource::Scale;
        if answers {
            return Some(Document::Answer(id));
        }
        if history.item(&o, version.key).is_some_and(|item| item.revision == version.revision) {
            return Some(Document::Item(id, version.key));
        }
        let stream = history.stream_of(id)?;
        // A DELETED event shows the object before its deletion.
        let index = stream.deliveries().find(|&i| {
            let event = &history.deliveries[i];
            event.kind != DeliveryKind::Deleted && (event.key, event.revision) == (version.key, version.revision)
        })?;
        Some(Document::Delivery(index as u32, id))
    };
    [version.writer, version.shown_by(evidence.history)].into_iter().filter(|id| id.is_some()).find_map(shows)
}

/// The texts in a body that are long enough and are not common to all objects.
fn texts(body: &Value) -> FxHashSet<&str> {
    let mut found = FxHashSet::default();
    let mut rest = vec![body];
    while let Some(value) = rest.pop() {
        match value {
            Value::String(text) if text.len() >= SHORTEST => {
                found.insert(text.as_str());
            }
            Value::Array(values) => rest.extend(values),
            Value::Object(fields) => {
                let kept = |name: &str| !matches!(name, "managedFields" | "apiVersion" | "kind" | "name" | "namespace");
                rest.extend(fields.iter().filter(|(name, _)| kept(name)).map(|(_, value)| value));
            }
            _ => {}
        }
    }
    found
}
