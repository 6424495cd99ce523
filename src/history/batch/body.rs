//! Turns bodies into rows: listed items, objects, conditions of writes.
//!
//! A recorder or an audit policy may cut a body, so a missing field counts only if the body must have had it.

use super::super::ids::*;
use super::super::operation::*;
use super::super::request::{ContinueToken, Verb};
use super::super::resource::Key;
use super::super::revision::Revision;
use super::super::scope::{Attributes, Deletion};
use super::deletion::{Hold, shows_deletion};
use super::fields::Source;
use super::{Batch, Tables};
use crate::ingest::Found;
use crate::ingest::kubernetes::body::AnyBody;
use crate::ingest::kubernetes::object::Item as BodyItem;
use crate::ingest::limits::{LONGEST_ADDRESS, LONGEST_NAME};
use crate::ingest::timestamp;

/// The content of an answer's body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// Marks to set on the operation.
    pub marks: Marks,
    /// Revision of a list, version of an object.
    pub revision: Revision,
    /// Uid of the object; in a `Status`, of the deleted object.
    pub uid: Symbol,
    /// Namespace of the object.
    pub namespace: Symbol,
    /// Name of the object.
    pub name: Symbol,
    /// The content that selectors and rules see.
    pub attributes: AttributesId,
    /// Listed items: (start, length) in the batch.
    pub items: (u32, u32),
    /// The last key of a page, if more pages follow.
    pub page_end: Symbol,
    /// Whether it is a `Status` about the requested path, not about an object.
    pub of_path: bool,
}

/// The message for a path that the server does not know, such as that of a custom resource that is not served yet (client-go and
/// apimachinery `api/errors`, `NewGenericServerResponse`). If only the object is missing, the message names it.
const UNKNOWN_PATH: &str = "the server could not find the requested resource";

impl Batch {
    pub(super) fn attributes(&mut self, source: Source<'_, '_>) -> AttributesId {
        let Source { metadata, spec, status, .. } = source;
        // A body without creationTimestamp was cut to identity; its missing labels prove nothing.
        if metadata.creation_timestamp.is_empty() {
            return AttributesId::NONE;
        }
        let labels = metadata.labels.map_or("null", |raw| raw.get());
        if labels.len() > LONGEST_ADDRESS {
            let expected = format!("labels of at most {LONGEST_ADDRESS} bytes");
            self.refuse(&expected, Found::text("labels", labels));
            return AttributesId::NONE;
        }
        let fields = self.fields(source);
        // A Secret may hold its own data at the paths of a pod's node and phase.
        let spec = spec.as_ref().filter(|_| !self.is_of(&source, ["secrets", ""], ["Secret", "v1"]));
        let names = &mut self.tables.names;
        let labels = names.intern(labels);
        // Every object with a phase has one from its creation, so a body without it was cut.
        let (node, phase) = match spec {
            Some(spec) => (
                names.intern(&spec.node_name),
                if status.phase.is_empty() { Symbol::NONE } else { names.intern(&status.phase) },
            ),
            None => (Symbol::NONE, Symbol::NONE),
        };
        let whole = source.kept.has_more && source.kind != "PartialObjectMetadata";
        // Servers write whole seconds (`metav1.Time`).
        let created = timestamp::parse(&metadata.creation_timestamp)
            .and_then(|time| u32::try_from(time.0.div_euclid(1_000_000_000)).ok())
            .unwrap_or(0);
        let deletion = match (metadata.deletion_timestamp.is_empty(), shows_deletion(&source, whole)) {
            (false, _) => Deletion::Begun,
            (true, true) => Deletion::NotBegun,
            (true, false) => Deletion::Unknown,
        };
        // Only a ConfigMap has content that no server defaults or converts. Of a Secret not even a digest is kept.
        let data = if self.is_of(&source, ["configmaps", ""], ["ConfigMap", "v1"]) { source.data } else { 0 };
        let attributes = Attributes { labels, node, phase, created, deletion, data, fields, whole };
        AttributesId(self.tables.attributes.intern(attributes))
    }

    /// One object of a list. `list` is the list's kind and API version, for objects without their own.
    pub(super) fn item(&mut self, resource: ResourceId, list: (&str, &str), item: &BodyItem<'_>) -> Item {
        let source = Source::of_item(item, list, resource);
        let revision = self.version(&item.metadata.resource_version);
        let attributes = self.attributes(source);
        let key = self.tables.key(resource, &item.metadata.namespace, &item.metadata.name);
        let uid = self.tables.uid(&item.metadata.uid);
        Item { key, uid, revision, attributes }
    }

    /// Reads an answer's body. `resource` is that of the request; none if another line has it.
    pub(super) fn answer(&mut self, body: &AnyBody<'_>, resource: ResourceId) -> Answer {
        let mut answer = Answer::default();
        let Some(body) = body.object() else { return answer };
        answer.marks.set(Marks::ANSWER_BODY);
        let start = self.items.len() as u32;
        let list = (&*body.kind, &*body.api_version);
        if let Some(items) = &body.items {
            for item in items.iter().filter(|i| !i.metadata.name.is_empty()) {
                let row = self.item(resource, list, item);
                self.items.push(row);
            }
        }
        if let Some(rows) = &body.rows {
            for row in rows.iter().filter(|r| !r.object.metadata.name.is_empty()) {
                let row = self.item(resource, list, &row.object);
                self.items.push(row);
            }
        }
        // A table of one object (kubectl get pod NAME) is still a table: its rows are items, its version is the list's.
        if body.items.is_some() || body.rows.is_some() {
            answer.marks.set(Marks::LIST_ANSWER);
            // includeObject=None gives rows without identity, and a recorder may cut it off: then only the revision is known.
            let rows = body.rows.iter().flatten().map(|row| &row.object);
            let nameless = body.items.iter().flatten().chain(rows).any(|item| item.metadata.name.is_empty());
            if nameless {
                answer.marks.clear(Marks::ANSWER_BODY);
            }
            if !body.metadata.continue_token.is_empty() {
                answer.marks.set(Marks::MORE_PAGES);
                let token = ContinueToken::read(&body.metadata.continue_token).unwrap_or_default();
                answer.page_end = self.tables.optional(&token.after);
            }
            answer.revision = self.version(&body.metadata.resource_version);
            answer.items = (start, self.items.len() as u32 - start);
            // A client that accepts tables gets a table with one row for a single object.
            if let Some([row]) = body.rows.as_deref()
                && !row.object.metadata.deletion_timestamp.is_empty()
            {
                let source = Source::of_item(&row.object, list, resource);
                answer.marks.set(Marks(Marks::TERMINATING.0 | self.hold(&source).0));
            }
            return answer;
        }
        if &*body.kind == "Status" {
            answer.marks.set(Marks::STATUS_ANSWER);
            let details = body.details.as_ref();
            answer.uid = self.tables.uid(details.map_or("", |details| &details.uid));
            let nameless = details.is_some_and(|details| details.name.is_empty());
            answer.of_path = nameless || body.message.starts_with(UNKNOWN_PATH);
            return answer;
        }
        let metadata = &body.metadata;
        answer.revision = self.version(&metadata.resource_version);
        answer.uid = self.tables.uid(&metadata.uid);
        answer.namespace = self.tables.namespace(&metadata.namespace);
        answer.name = if metadata.name.is_empty() { Symbol::NONE } else { self.tables.name(&metadata.name) };
        answer.attributes = self.attributes(Source::of(body, resource));
        if !metadata.deletion_timestamp.is_empty() {
            answer.marks.set(Marks::TERMINATING);
            answer.marks.set(self.hold(&Source::of(body, resource)));
        }
        answer
    }

    /// Whether a body belongs to a resource (plural and group), by its own kind and API version if it has them.
    fn is_of(&self, source: &Source<'_, '_>, resource: [&str; 2], kind: [&str; 2]) -> bool {
        let typed = !matches!(source.kind, "" | "PartialObjectMetadata" | "Table");
        if typed || !source.resource.is_some() {
            return [source.kind.strip_suffix("List").unwrap_or(source.kind), source.api_version] == kind;
        }
        let known = self.tables.resources.values()[source.resource.index()];
        [known.plural, known.group].map(|symbol| self.tables.names.get(symbol)) == resource
    }

    /// The mark for what holds back an object under deletion.
    fn hold(&self, source: &Source<'_, '_>) -> Marks {
        // A namespace also has finalizers in its spec (registry/core/namespace/storage, ShouldDeleteNamespaceDuringUpdate).
        let untyped = matches!(source.kind, "PartialObjectMetadata" | "Table");
        let in_spec = (!untyped || source.resource.is_some())
            .then(|| self.is_of(source, ["namespaces", ""], ["Namespace", "v1"]));
        match Hold::of(source, in_spec) {
            Hold::Shown => Marks::HELD,
            Hold::Nothing => Marks::REMOVES,
            Hold::Unshown => Marks::default(),
        }
    }

    /// Conditions and identity in a request's body.
    pub(super) fn request_body(&mut self, operation: &mut Operation, body: &AnyBody<'_>) {
        if body.is_recorded() {
            operation.marks.set(Marks::REQUEST_BODY);
        }
        match body {
            AnyBody::Object(body) if matches!(operation.verb, Verb::Delete | Verb::DeleteCollection) => {
                operation.request_uid = self.tables.uid(&body.preconditions.uid);
                operation.asked_revision = self.version(&body.preconditions.resource_version);
                if !body.dry_run.is_empty() {
                    operation.marks.set(Marks::DRY_RUN);
                }
            }
            AnyBody::Object(body) => {
                if let Some(options) =
                    body.delete_options.as_ref().filter(|_| operation.subresource == Subresource::Effect)
                {
                    operation.request_uid = self.tables.uid(&options.preconditions.uid);
                    operation.asked_revision = self.version(&options.preconditions.resource_version);
                    if !options.dry_run.is_empty() {
                        operation.marks.set(Marks::DRY_RUN);
                    }
                }
                if !body.metadata.uid.is_empty() {
                    operation.request_uid = self.tables.uid(&body.metadata.uid);
                    operation.marks.set(Marks::NAMES_UID);
                }
                // Only a server-side apply sends a patch with kind and apiVersion (Kubernetes API concepts, "Server-Side Apply").
                if operation.verb == Verb::Patch && !body.kind.is_empty() && !body.api_version.is_empty() {
                    operation.marks.set(Marks::APPLY);
                }
                if operation.verb != Verb::Create && !body.metadata.resource_version.is_empty() {
                    operation.asked_revision = self.version(&body.metadata.resource_version);
                }
            }
            AnyBody::Patch(steps) => {
                for step in steps.iter().filter(|s| &*s.op == "test") {
                    let Some(value) = &step.value.0 else { continue };
                    match &*step.path {
                        "/metadata/resourceVersion" => operation.asked_revision = self.version(value),
                        "/metadata/uid" if value.len() > LONGEST_NAME => {
                            self.refuse(&format!("a uid of at most {LONGEST_NAME} bytes"), Found::text("a uid", value));
                        }
                        "/metadata/uid" => operation.request_uid = self.tables.names.intern(value),
                        _ => {}
                    }
                }
            }
            AnyBody::Absent | AnyBody::Replaced | AnyBody::Other => {}
        }
    }

    pub(super) fn conditions(operation: &mut Operation) {
        let conditional = matches!(operation.verb, Verb::Update | Verb::Patch | Verb::Delete);
        // A patch or delete without recorded body may have had a condition; only a PUT shows its base without body.
        let known = operation.marks.has(Marks::REQUEST_BODY) || operation.verb == Verb::Delete;
        let named = operation.asked_revision.is_some() || operation.request_uid.is_some();
        if conditional && known && !named && !operation.marks.has(Marks::APPLY) {
            operation.marks.set(Marks::UNCONDITIONED);
        }
    }

    /// Applies an answer to its operation, inside one batch.
    pub(super) fn apply(&mut self, operation: &mut Operation, answer: &Answer) {
        let resource = self.tables.scopes.values()[operation.scope.index()].resource;
        let namespace = self.tables.scopes.values()[operation.scope.index()].namespace;
        put_answer(
            operation,
            answer,
            |tables: &mut Tables, name| KeyId(tables.keys.intern(Key { resource, namespace, name })),
            &mut self.tables,
        );
    }
}

/// Applies an answer to its operation. `key` makes the key of a created object, whose name may be in the answer only.
pub fn put_answer(
    operation: &mut Operation,
    answer: &Answer,
    key: impl FnOnce(&mut Tables, Symbol) -> KeyId,
    tables: &mut Tables,
) {
    let succeeded = (200..300).contains(&operation.status);
    let mut marks = answer.marks;
    if !matches!(operation.verb, Verb::Update | Verb::Patch | Verb::Delete) {
        marks.clear(Marks(Marks::REMOVES.0 | Marks::HELD.0));
    }
    operation.marks.set(marks);
    if operation.status == 404 && answer.of_path && operation.key.is_some() {
        operation.marks.set(Marks::NO_RESOURCE);
    }
    if !succeeded {
        return;
    }
    if operation.compared_nothing() {
        operation.asked_revision = Revision::NONE;
    }
    operation.items_start = answer.items.0;
    operation.items_len = answer.items.1;
    if marks.has(Marks::LIST_ANSWER) {
        operation.answered = answer.revision;
        operation.page_end = answer.page_end;
        return;
    }
    // The answer to a binding, an eviction, a token or a log does not show the parent's version.
    if !operation.subresource.answers_parent() {
        return;
    }
    if is_other(operation, answer, tables) {
        operation.marks.set(Marks::OTHER_OBJECT);
        return;
    }
    operation.answer_uid = answer.uid;
    operation.answered = answer.revision;
    operation.attributes = answer.attributes;
    // Labels and spec of a Scale differ from its parent's.
    if operation.subresource == Subresource::Scale {
        operation.attributes = AttributesId::NONE;
    }
    if !operation.key.is_some() && operation.verb == Verb::Create && answer.name.is_some() {
        operation.key = key(tables, answer.name);
    }
}

/// Whether a read returned another object than the requested one. On some servers the name `~` means the caller's own object.
fn is_other(operation: &Operation, answer: &Answer, tables: &Tables) -> bool {
    if operation.verb != Verb::Get || operation.subresource != Subresource::None || !operation.key.is_some() {
        return false;
    }
    let asked = tables.keys.values()[operation.key.index()];
    let differ = |asked: Symbol, answered: Symbol| {
        let said = |symbol: Symbol| symbol.is_some().then(|| tables.names.get(symbol)).filter(|text| !text.is_empty());
        said(asked).zip(said(answered)).is_some_and(|(asked, answered)| asked != answered && asked != "~")
    };
    differ(asked.name, answer.name) || differ(asked.namespace, answer.namespace)
}
