//! Bodies of requests and answers: objects, lists, options, statuses.

use super::lives::{Lives, answered};
use super::syntax::{Answer, Attributes, Kind, Named, Request, Settings, SketchKey, Verb};
use serde_json::{Map, Value, json};

/// Writes the bodies of one sketch.
#[derive(Debug)]
pub struct Bodies<'s> {
    /// Settings for servers, clocks and kinds.
    pub settings: &'s Settings,
    /// Mentions of objects, for parts that a mention omits.
    pub lives: &'s Lives,
}

const CREATED: &str = "2026-03-02T08:00:00Z";
const DELETED: &str = "2026-03-02T09:00:00Z";

impl Bodies<'_> {
    /// The kind with this index.
    pub fn kind(&self, index: usize) -> &Kind {
        &self.settings.kinds[index]
    }

    /// A uid as written in the evidence.
    pub fn uid(&self, uid: &str) -> String {
        if !self.settings.uuids || uid.is_empty() {
            return uid.to_owned();
        }
        uuid(uid)
    }

    /// The `apiVersion` of a kind.
    pub fn api_version(kind: &Kind) -> String {
        if kind.group.is_empty() { kind.version.clone() } else { format!("{}/{}", kind.group, kind.version) }
    }

    fn metadata(&self, key: &SketchKey, uid: &str, revision: Option<u128>, said: &Attributes) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), json!(key.name));
        if !key.namespace.is_empty() {
            metadata.insert("namespace".to_owned(), json!(key.namespace));
        }
        if !uid.is_empty() {
            metadata.insert("uid".to_owned(), json!(self.uid(uid)));
        }
        if let Some(revision) = revision {
            metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        }
        if said.reduced {
            if said.deleting || said.gone {
                metadata.insert("deletionTimestamp".to_owned(), json!(DELETED));
            }
            return metadata;
        }
        metadata.extend(labels(said));
        if !said.owners.is_empty() {
            let owners: Vec<Value> = said
                .owners
                .iter()
                .map(|(kind, name, uid)| {
                    let known = self.settings.kinds.iter().find(|known| known.kind == *kind);
                    let version = known.map_or_else(|| "v1".to_owned(), Self::api_version);
                    json!({"apiVersion": version, "controller": true, "kind": kind, "name": name, "uid": self.uid(uid)})
                })
                .collect();
            metadata.insert("ownerReferences".to_owned(), json!(owners));
        }
        if !said.finalizers.is_empty() {
            metadata.insert("finalizers".to_owned(), json!(said.finalizers));
        }
        if said.deleting || said.gone {
            let seconds = if said.gone { 0 } else { 30 };
            metadata.insert("deletionTimestamp".to_owned(), json!(DELETED));
            metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(seconds));
        }
        metadata
    }

    /// An object as a server shows it.
    pub fn shown(&self, key: &SketchKey, named: &Named, removal: bool) -> Value {
        let said = self.lives.attributes(key, named, removal);
        let mut metadata = self.metadata(key, &self.lives.uid(key, named), named.revision, &said);
        if !said.reduced {
            metadata.insert("creationTimestamp".to_owned(), json!(CREATED));
        }
        self.object(key, metadata, &said)
    }

    fn object(&self, key: &SketchKey, metadata: Map<String, Value>, said: &Attributes) -> Value {
        let kind = self.kind(key.kind);
        let mut object = json!({"apiVersion": Self::api_version(kind), "kind": kind.kind, "metadata": metadata});
        // Only pods have a node; an empty `spec` still shows that it is absent.
        if !said.reduced && (kind.plural == "pods" || !said.node.is_empty() || !said.phase.is_empty()) {
            let mut spec = Map::new();
            if !said.node.is_empty() {
                spec.insert("nodeName".to_owned(), json!(said.node));
            }
            object["spec"] = Value::Object(spec);
            if !said.phase.is_empty() {
                object["status"] = json!({"phase": said.phase});
            }
        }
        for (path, value) in said.fields.iter().filter(|_| !said.reduced) {
            let mut at = &mut object;
            for name in path {
                if !at.is_object() {
                    *at = json!({});
                }
                at = &mut at[name.as_str()];
            }
            *at = value.clone();
        }
        object
    }

    /// The body of a request, if it has one.
    pub fn request(&self, request: &Request) -> Option<Value> {
        if !request.body {
            return None;
        }
        let key = request.target.key.as_ref();
        let uid = request.target.uid.as_deref().unwrap_or("");
        let said = request.target.attributes.clone().unwrap_or_default();
        match request.verb {
            Verb::Create | Verb::Put => {
                let key = key?;
                let mut metadata = self.metadata(key, uid, request.target.revision, &said);
                if key.name == "*" {
                    metadata.remove("name");
                    metadata.insert("generateName".to_owned(), json!("made-"));
                }
                Some(self.object(key, metadata, &said))
            }
            Verb::Patch if request.apply => {
                let key = key?;
                Some(self.object(key, self.metadata(key, uid, request.target.revision, &said), &said))
            }
            Verb::Patch => match &request.test {
                Some(test) => {
                    let mut steps = Vec::new();
                    if let Some(uid) = &test.uid {
                        steps.push(json!({"op": "test", "path": "/metadata/uid", "value": self.uid(uid)}));
                    }
                    if let Some(revision) = test.revision {
                        let value = revision.to_string();
                        steps.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": value}));
                    }
                    steps.push(json!({"op": "add", "path": "/metadata/annotations/touched", "value": "yes"}));
                    Some(json!(steps))
                }
                None => {
                    let mut metadata = Map::new();
                    if !uid.is_empty() {
                        metadata.insert("uid".to_owned(), json!(self.uid(uid)));
                    }
                    if let Some(revision) = request.target.revision {
                        metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
                    }
                    metadata.extend(labels(&said));
                    let mut body = json!({"metadata": metadata});
                    if request.subresource == "status" {
                        body["status"] = json!({"phase": if said.phase.is_empty() { "Running" } else { &said.phase }});
                    }
                    Some(body)
                }
            },
            Verb::Delete => {
                let mut preconditions = Map::new();
                if !uid.is_empty() {
                    preconditions.insert("uid".to_owned(), json!(self.uid(uid)));
                }
                if let Some(revision) = request.target.revision {
                    preconditions.insert("resourceVersion".to_owned(), json!(revision.to_string()));
                }
                let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
                (!preconditions_empty(&options)).then_some(options)
            }
            _ => None,
        }
    }

    /// HTTP status and body of an answer. The status is 0 if no answer was seen.
    pub fn answer(&self, request: &Request) -> (u16, Option<Value>) {
        let is_created = matches!(&request.answer, Answer::Object(object)
            if object.attributes.as_ref().is_some_and(|attributes| attributes.created));
        let success = if request.verb == Verb::Create || is_created { 201 } else { 200 };
        let key = request.target.key.as_ref();
        match &request.answer {
            Answer::None => (if request.verb == Verb::Watch { 200 } else { 0 }, None),
            Answer::Bare => (success, None),
            Answer::Ok(uid) => {
                let uid = uid.clone().or_else(|| request.target.uid.clone());
                let uid = uid.or_else(|| key.and_then(|key| self.lives.only_uid(key))).unwrap_or_default();
                let name = key.map_or("", |k| &k.name);
                let mut details = json!({"kind": self.kind(request.kind).plural, "name": name});
                if !uid.is_empty() {
                    details["uid"] = json!(self.uid(&uid));
                }
                let body = json!({
                    "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "details": details,
                });
                (success, Some(body))
            }
            Answer::Refused(code, live) => {
                (*code, Some(self.status(*code, &self.message(request, *code, live.as_deref()))))
            }
            Answer::Object(object) => {
                let key = object.key.as_ref().or(key);
                let object = answered(&request.target, object);
                (success, key.map(|key| self.shown(key, &object, false)))
            }
            Answer::List(revision, items, more) => {
                let kind = self.kind(request.kind);
                let revision = revision.to_string();
                let Some(items) = items else {
                    let rows = json!([{"cells": [], "object": null}]);
                    let metadata = json!({"resourceVersion": revision});
                    let body = json!({
                        "apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": metadata, "rows": rows,
                    });
                    return (success, Some(body));
                };
                let items: Vec<Value> =
                    items.iter().filter_map(|i| i.key.as_ref().map(|key| self.shown(key, i, false))).collect();
                let mut metadata = json!({"resourceVersion": revision});
                if *more {
                    metadata["continue"] = json!(token(revision.parse().ok(), &request.page_end().unwrap_or_default()));
                }
                let body = json!({
                    "apiVersion": Self::api_version(kind),
                    "kind": format!("{}List", kind.kind),
                    "metadata": metadata,
                    "items": items,
                });
                (success, Some(body))
            }
        }
    }

    /// The body of a refusal.
    pub fn status(&self, code: u16, message: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "code": code, "reason": reason(code), "message": message,
        })
    }

    /// The message of a refusal, in the API server's wording.
    pub fn message(&self, request: &Request, code: u16, live: Option<&str>) -> String {
        let kind = self.kind(request.kind);
        let name = request.target.key.as_ref().map_or("", |k| k.name.as_str());
        let resource =
            if kind.group.is_empty() { kind.plural.clone() } else { format!("{}.{}", kind.plural, kind.group) };
        match (code, live) {
            (409, Some(live)) => {
                let named = self.uid(request.target.uid.as_deref().unwrap_or(""));
                let place = if request.verb == Verb::Delete {
                    let live = self.uid(live);
                    format!("the UID in the precondition ({named}) does not match the UID in record ({live}). ")
                        + "The object might have been deleted and then recreated"
                } else {
                    let live = self.uid(live);
                    format!("Precondition failed: UID in precondition: {named}, UID in object meta: {live}")
                };
                format!("Operation cannot be fulfilled on {resource} \"{name}\": {place}")
            }
            (409, None) if request.verb == Verb::Create => format!("{resource} \"{name}\" already exists"),
            (409, None) => format!(
                "Operation cannot be fulfilled on {resource} \"{name}\": the object has been modified; please apply \
                 your changes to the latest version and try again"
            ),
            (404, _) => format!("{resource} \"{name}\" not found"),
            (410, _) => "The resourceVersion for the provided list is too old.".to_owned(),
            (504, _) => {
                "Timeout: request did not complete within requested timeout - context deadline exceeded".to_owned()
            }
            (429, _) => "storage is (re)initializing".to_owned(),
            _ => "the server could not fulfil the request".to_owned(),
        }
    }
}

/// The labels of an object, as a member of its metadata.
fn labels(said: &Attributes) -> Option<(String, Value)> {
    let labels: Map<String, Value> = said.labels.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    (!labels.is_empty()).then(|| ("labels".to_owned(), Value::Object(labels)))
}

fn preconditions_empty(options: &Value) -> bool {
    options["preconditions"].as_object().is_none_or(Map::is_empty)
}

fn reason(code: u16) -> &'static str {
    match code {
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        504 => "Timeout",
        _ => "InternalError",
    }
}

/// A continue token (apiserver `pkg/storage/continue.go`) for the page after a key; without a key if `after` is empty.
pub fn token(revision: Option<u128>, after: &str) -> String {
    use base64::Engine as _;
    let revision = revision.map_or("-1".to_owned(), |r| r.to_string());
    let start = if after.is_empty() { String::new() } else { format!("/{after}\\u0000") };
    let token = format!("{{\"v\":\"meta.k8s.io/v1\",\"rv\":{revision},\"start\":\"{start}\"}}");
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(token)
}

/// A UUID derived from a text.
pub fn uuid(text: &str) -> String {
    let mut words = [0u64; 2];
    for (salt, word) in words.iter_mut().enumerate() {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325 ^ (salt as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash = (hash ^ (hash >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        *word = hash ^ (hash >> 29);
    }
    let (high, low) = (words[0] & !0xf000 | 0x4000, words[1] & !(0b11 << 62) | 0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}
