//! What one worker collects from one block: rows whose names are local to the block.

use super::client::Process;
use super::ids::*;
use super::interner::{Interner, Table};
use super::operation::*;
use super::request::{self, Asked, Verb};
use super::resource::{self, Key, Resource};
use super::revision::{Revision, RevisionError};
use super::scope::{Attributes, Scope};
use crate::ingest::object::{AnyBody, Body, Item as BodyItem, Metadata, Spec, StatusField, Text};
use crate::ingest::{self, FileId, Format, Position, Record, Refused, Time, audit, capture, etcd_watch};
use base64::Engine as _;

/// The tables that rows point into.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// Names.
    pub names: Interner,
    /// Resources.
    pub resources: Table<Resource>,
    /// Keys. The resource is [`ResourceId::NONE`] where only the request, on another line, says it.
    pub keys: Table<Key>,
    /// Scopes.
    pub scopes: Table<Scope>,
    /// What selectors see.
    pub attributes: Table<Attributes>,
    /// Processes.
    pub processes: Table<Process>,
}

impl Tables {
    /// A resource, cohabiting groups made one.
    pub fn resource(&mut self, group: &str, plural: &str) -> ResourceId {
        let group = self.names.intern(resource::canonical_group(group, plural));
        let plural = self.names.intern(plural);
        ResourceId(self.resources.intern(Resource { group, plural }))
    }

    /// A key.
    pub fn key(&mut self, resource: ResourceId, namespace: &str, name: &str) -> KeyId {
        let (namespace, name) = (self.names.intern(namespace), self.names.intern(name));
        KeyId(self.keys.intern(Key { resource, namespace, name }))
    }

    /// A text, or none where it is empty.
    pub fn optional(&mut self, text: &str) -> Symbol {
        if text.is_empty() { Symbol::NONE } else { self.names.intern(text) }
    }

    /// Takes in the tables of a block; returns where its ids went.
    pub fn absorb(&mut self, other: &Tables) -> Moved {
        let names: Vec<Symbol> = other.names.iter().map(|t| self.names.intern(t)).collect();
        let name = |s: Symbol| if s.is_some() { names[s.index()] } else { s };
        let resources: Vec<ResourceId> = other
            .resources
            .values()
            .iter()
            .map(|r| ResourceId(self.resources.intern(Resource { group: name(r.group), plural: name(r.plural) })))
            .collect();
        let resource = |r: ResourceId| if r.is_some() { resources[r.index()] } else { r };
        let keys = other
            .keys
            .values()
            .iter()
            .map(|k| {
                let key = Key { resource: resource(k.resource), namespace: name(k.namespace), name: name(k.name) };
                KeyId(self.keys.intern(key))
            })
            .collect();
        let scopes = other
            .scopes
            .values()
            .iter()
            .map(|s| {
                ScopeId(self.scopes.intern(Scope {
                    resource: resource(s.resource),
                    namespace: name(s.namespace),
                    name: name(s.name),
                    labels: name(s.labels),
                    fields: name(s.fields),
                    shard: name(s.shard),
                }))
            })
            .collect();
        let attributes = other
            .attributes
            .values()
            .iter()
            .map(|a| {
                let a = Attributes { labels: name(a.labels), node: name(a.node), phase: name(a.phase) };
                AttributesId(self.attributes.intern(a))
            })
            .collect();
        let processes = other
            .processes
            .values()
            .iter()
            .map(|p| {
                ProcessId(self.processes.intern(Process {
                    user: name(p.user),
                    label: name(p.label),
                    pod_uid: name(p.pod_uid),
                    pod_name: name(p.pod_name),
                    node_name: name(p.node_name),
                    address: name(p.address),
                    agent: name(p.agent),
                    clock: name(p.clock),
                }))
            })
            .collect();
        Moved { names, keys, scopes, attributes, processes }
    }
}

/// Where the ids of a block went in the tables that absorbed it.
#[derive(Debug)]
pub struct Moved {
    names: Vec<Symbol>,
    keys: Vec<KeyId>,
    scopes: Vec<ScopeId>,
    attributes: Vec<AttributesId>,
    processes: Vec<ProcessId>,
}

impl Moved {
    /// A name.
    pub fn name(&self, id: Symbol) -> Symbol {
        if id.is_some() { self.names[id.index()] } else { id }
    }

    /// A key.
    pub fn key(&self, id: KeyId) -> KeyId {
        if id.is_some() { self.keys[id.index()] } else { id }
    }

    /// A scope.
    pub fn scope(&self, id: ScopeId) -> ScopeId {
        if id.is_some() { self.scopes[id.index()] } else { id }
    }

    /// What selectors see.
    pub fn attributes(&self, id: AttributesId) -> AttributesId {
        if id.is_some() { self.attributes[id.index()] } else { id }
    }

    /// A process.
    pub fn process(&self, id: ProcessId) -> ProcessId {
        if id.is_some() { self.processes[id.index()] } else { id }
    }

    /// An audit id.
    pub fn audit_id(&self, id: AuditId) -> AuditId {
        match id {
            AuditId::Text(symbol) => AuditId::Text(self.name(symbol)),
            other => other,
        }
    }
}

/// A request id of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureId {
    /// A number.
    Number(u64),
    /// A text.
    Name(Symbol),
}

/// What an answer's body shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answer {
    /// Marks to set on the operation.
    pub marks: Marks,
    /// Revision of a list, version of an object.
    pub revision: Revision,
    /// Uid of the object (of the deleted one, in a `Status`).
    pub uid: Symbol,
    /// Its namespace and name.
    pub namespace: Symbol,
    /// See `namespace`.
    pub name: Symbol,
    /// What selectors see of it.
    pub attributes: AttributesId,
    /// Listed items: (start, length) in the batch.
    pub items: (u32, u32),
}

/// A line of a capture, whose context and request stand on other lines.
#[derive(Clone, Debug)]
pub enum CapturePart {
    /// A new context.
    Context {
        /// Client.
        client: Symbol,
        /// Incarnation.
        incarnation: Symbol,
        /// Server.
        server: Symbol,
        /// Clock.
        clock: Symbol,
    },
    /// A request: an open operation.
    Request {
        /// Its id.
        id: CaptureId,
        /// User agent.
        agent: Symbol,
        /// The row.
        operation: Box<Operation>,
    },
    /// A response.
    Response {
        /// Id of the request.
        id: CaptureId,
        /// Place.
        position: Position,
        /// When the last byte was read.
        at: Time,
        /// HTTP status.
        status: u16,
        /// Audit id.
        audit_id: AuditId,
        /// Body.
        answer: Answer,
    },
    /// A watch event. `items` of a whole list stand for initial events.
    Event {
        /// Id of the request.
        id: CaptureId,
        /// The row; the key's resource is not known yet.
        delivery: Delivery,
    },
    /// The end of a stream.
    End {
        /// Id of the request.
        id: CaptureId,
        /// When.
        at: Time,
        /// How.
        end: StreamEnd,
    },
    /// A read from a cache.
    Read(CacheRead),
}

/// Rows of one block.
#[derive(Debug)]
pub struct Batch {
    /// The file.
    pub file: FileId,
    /// Its format.
    pub format: Format,
    /// Names.
    pub tables: Tables,
    /// Audit operations; `incarnation` holds a process of `tables`.
    pub operations: Vec<Operation>,
    /// Listed items.
    pub items: Vec<Item>,
    /// Events of a raw stream; keys are complete.
    pub deliveries: Vec<Delivery>,
    /// Lines of a capture.
    pub capture: Vec<CapturePart>,
    /// Witness events.
    pub witness: Vec<WitnessEvent>,
    /// Indices into `witness` before which a hole may be (a cancelled or compacted watch).
    pub witness_breaks: Vec<usize>,
    /// Minor versions that loopback clients named.
    pub loopback_minor: Option<u32>,
    refused: Option<Refused>,
    last_process: (Symbol, Symbol, Symbol, ProcessId),
}

impl Batch {
    /// An empty batch for a block of a file.
    pub fn new(file: FileId, format: Format) -> Batch {
        Batch {
            file,
            format,
            tables: Tables::default(),
            operations: Vec::new(),
            items: Vec::new(),
            deliveries: Vec::new(),
            capture: Vec::new(),
            witness: Vec::new(),
            witness_breaks: Vec::new(),
            loopback_minor: None,
            refused: None,
            last_process: Default::default(),
        }
    }

    fn refuse(&mut self, expected: &str, found: impl Into<String>) {
        if self.refused.is_none() {
            self.refused = Some(Refused { expected: expected.to_owned(), found: found.into() });
        }
    }

    /// A version out of a body. Absent, empty and zero mean "none"; anything else that is no decimal is refused, once a line.
    fn version(&mut self, text: &str) -> Revision {
        if text.is_empty() || text == "0" {
            return Revision::NONE;
        }
        match Revision::version(text) {
            Ok(revision) => revision,
            Err(error) => {
                let shown: String = text.chars().take(60).collect();
                let why = if error == RevisionError::TooLarge {
                    "a resourceVersion of at most 128 bits"
                } else {
                    "a decimal resourceVersion"
                };
                self.refuse(why, format!("resourceVersion {shown:?}"));
                Revision::NONE
            }
        }
    }

    fn time(&mut self, text: &Text<'_>, what: &str) -> Time {
        if text.is_empty() {
            return Time::UNKNOWN;
        }
        ingest::timestamp::parse(text).unwrap_or_else(|| {
            let shown: String = text.chars().take(60).collect();
            self.refuse("an RFC 3339 time", format!("{what} {shown:?}"));
            Time::UNKNOWN
        })
    }

    fn audit_id(&mut self, text: &str) -> AuditId {
        if text.is_empty() {
            return AuditId::None;
        }
        uuid_words(text).map_or_else(|| AuditId::Text(self.tables.names.intern(text)), |(h, l)| AuditId::Uuid(h, l))
    }

    fn attributes(
        &mut self,
        metadata: &Metadata<'_>,
        spec: &Option<Spec<'_>>,
        status: &StatusField<'_>,
    ) -> AttributesId {
        // A body without creationTimestamp was reduced to identity: its missing labels say nothing.
        if metadata.creation_timestamp.is_empty() {
            return AttributesId::NONE;
        }
        let names = &mut self.tables.names;
        let labels = names.intern(metadata.labels.map_or("null", |raw| raw.get()));
        let (node, phase) = match spec {
            Some(spec) => (names.intern(&spec.node_name), names.intern(&status.phase)),
            None => (Symbol::NONE, Symbol::NONE),
        };
        AttributesId(self.tables.attributes.intern(Attributes { labels, node, phase }))
    }

    fn item(&mut self, resource: ResourceId, item: &BodyItem<'_>) -> Item {
        let revision = self.version(&item.metadata.resource_version);
        let attributes = self.attributes(&item.metadata, &item.spec, &item.status);
        let key = self.tables.key(resource, &item.metadata.namespace, &item.metadata.name);
        let uid = self.tables.optional(&item.metadata.uid);
        Item { key, uid, revision, attributes }
    }

    /// Reads an answer's body. `resource` is the one of the request, none where another line says it.
    fn answer(&mut self, body: &AnyBody<'_>, resource: ResourceId) -> Answer {
        let mut answer = Answer::default();
        let Some(body) = body.object() else { return answer };
        answer.marks.set(Marks::ANSWER_BODY);
        let start = self.items.len() as u32;
        if let Some(items) = &body.items {
            for item in items.iter().filter(|i| !i.metadata.name.is_empty()) {
                let row = self.item(resource, item);
                self.items.push(row);
            }
        }
        if let Some(rows) = &body.rows {
            for row in rows.iter().filter(|r| !r.object.metadata.name.is_empty()) {
                let row = self.item(resource, &row.object);
                self.items.push(row);
            }
        }
        // A table of one object (kubectl get pod NAME) is still a table: its rows are items, its own version the list's.
        if body.items.is_some() || body.rows.is_some() {
            answer.marks.set(Marks::LIST_ANSWER);
            // includeObject=None leaves rows without identity: then the body says only the revision.
            let nameless = body.rows.as_ref().is_some_and(|r| r.iter().any(|r| r.object.metadata.name.is_empty()));
            if nameless {
                answer.marks.clear(Marks::ANSWER_BODY);
            }
            if !body.metadata.continue_token.is_empty() {
                answer.marks.set(Marks::MORE_PAGES);
            }
            answer.revision = self.version(&body.metadata.resource_version);
            answer.items = (start, self.items.len() as u32 - start);
            return answer;
        }
        if &*body.kind == "Status" {
            answer.marks.set(Marks::STATUS_ANSWER);
            answer.uid = self.tables.optional(&body.details.uid);
            return answer;
        }
        let metadata = &body.metadata;
        answer.revision = self.version(&metadata.resource_version);
        answer.uid = self.tables.optional(&metadata.uid);
        answer.namespace = self.tables.names.intern(&metadata.namespace);
        answer.name = self.tables.optional(&metadata.name);
        answer.attributes = self.attributes(metadata, &body.spec, &body.status);
        if !metadata.deletion_timestamp.is_empty() {
            answer.marks.set(Marks::TERMINATING);
            // Nothing holds the deletion back any more: the write that answers so removed the object (apiserver
            // registry/generic/registry/store.go, deleteWithoutFinalizers).
            if metadata.finalizers.is_empty() && metadata.deletion_grace_period_seconds.unwrap_or(0) == 0 {
                answer.marks.set(Marks::REMOVES);
            }
        }
        answer
    }

    /// Conditions and identity that a request's body names.
    fn request_body(&mut self, operation: &mut Operation, body: &AnyBody<'_>) {
        if body.is_recorded() {
            operation.marks.set(Marks::REQUEST_BODY);
        }
        match body {
            AnyBody::Object(body) if matches!(operation.verb, Verb::Delete | Verb::DeleteCollection) => {
                operation.request_uid = self.tables.optional(&body.preconditions.uid);
                operation.asked_revision = self.version(&body.preconditions.resource_version);
                if !body.dry_run.is_empty() {
                    operation.marks.set(Marks::DRY_RUN);
                }
            }
            AnyBody::Object(body) => {
                if !body.metadata.uid.is_empty() {
                    operation.request_uid = self.tables.names.intern(&body.metadata.uid);
                    operation.marks.set(Marks::NAMES_UID);
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
                        "/metadata/uid" => operation.request_uid = self.tables.names.intern(value),
                        _ => {}
                    }
                }
            }
            AnyBody::Absent | AnyBody::Other => {}
        }
    }

    fn conditions(operation: &mut Operation) {
        let conditional = matches!(operation.verb, Verb::Update | Verb::Patch | Verb::Delete);
        // A patch or delete without recorded body may have had a condition; only a PUT shows its base without body.
        let known = operation.marks.has(Marks::REQUEST_BODY) || operation.verb == Verb::Delete;
        if conditional && known && !operation.asked_revision.is_some() && !operation.request_uid.is_some() {
            operation.marks.set(Marks::UNCONDITIONED);
        }
    }

    fn scope(&mut self, resource: ResourceId, namespace: &str, name: &str, options: &request::Options<'_>) -> ScopeId {
        let names = &mut self.tables.names;
        let name = if name.is_empty() { &*options.selected_name } else { name };
        let scope = Scope {
            resource,
            namespace: names.intern(namespace),
            name: names.intern(name),
            labels: names.intern(&options.label_selector),
            fields: names.intern(&options.field_selector),
            shard: names.intern(&options.shard_selector),
        };
        ScopeId(self.tables.scopes.intern(scope))
    }

    fn options(operation: &mut Operation, options: &request::Options<'_>) {
        for (on, mark) in [
            (options.dry_run, Marks::DRY_RUN),
            (options.bookmarks, Marks::BOOKMARKS),
            (options.limited, Marks::LIMITED),
            (options.send_initial_events == Some(true), Marks::INITIAL_EVENTS),
            (options.send_initial_events == Some(false), Marks::NO_INITIAL_EVENTS),
        ] {
            if on {
                operation.marks.set(mark);
            }
        }
        if !operation.verb.is_write() {
            operation.asked = options.asked;
            operation.asked_revision = options.revision;
        }
    }

    fn process(&mut self, event: &audit::Event<'_>) -> ProcessId {
        let user = event.impersonated_user.as_ref().filter(|u| !u.username.is_empty()).unwrap_or(&event.user);
        let address = event.source_ips.last().map_or("", |a| a);
        let tables = &mut self.tables;
        let extra = user.extra.as_ref();
        let (u, a, g, id) = self.last_process;
        // Consecutive lines are often of one process: three comparisons save eight look-ups.
        if id.is_some()
            && extra.is_none()
            && tables.names.get(u) == &*user.username
            && tables.names.get(a) == address
            && tables.names.get(g) == &*event.user_agent
        {
            return id;
        }
        let names = &mut tables.names;
        let first = |list: &Vec<Text<'_>>| list.first().map_or(String::new(), |t| t.to_string());
        let (pod_uid, pod_name, node_name) =
            extra.map_or_else(Default::default, |e| (first(&e.pod_uid), first(&e.pod_name), first(&e.node_name)));
        let process = Process {
            user: names.intern(&user.username),
            label: Symbol::NONE,
            pod_uid: names.intern(&pod_uid),
            pod_name: names.intern(&pod_name),
            node_name: names.intern(&node_name),
            address: names.intern(address),
            agent: names.intern(&event.user_agent),
            clock: Symbol::NONE,
        };
        let id = ProcessId(tables.processes.intern(process));
        self.last_process =
            if extra.is_none() { (process.user, process.address, process.agent, id) } else { Default::default() };
        if &*event.user.username == "system:apiserver" && self.loopback_minor.is_none() {
            self.loopback_minor = kubernetes_minor(&event.user_agent);
        }
        id
    }

    fn audit(&mut self, position: Position, event: &audit::Event<'_>) {
        let query = event.request_uri.split_once('?').map_or("", |(_, query)| query);
        let mut verb = Verb::from_audit(&event.verb);
        let Some(object) = event.object_ref.as_ref().filter(|o| !o.resource.is_empty()) else { return };
        let options = request::options(query);
        // The legacy /watch/ path keeps the verb; a list with watch=true is a watch in every release.
        if verb == Verb::List && options.watch {
            verb = Verb::Watch;
        }
        let resource = self.tables.resource(&object.api_group, &object.resource);
        let mut operation = Operation {
            position,
            audit_id: self.audit_id(&event.audit_id),
            invoke: self.time(&event.request_received, "requestReceivedTimestamp"),
            ret: Time::UNKNOWN,
            asked_revision: Revision::NONE,
            answered: Revision::NONE,
            clock: ClockId::NONE,
            server: ServerId::NONE,
            incarnation: IncarnationId(self.process(event).0),
            scope: self.scope(resource, &object.namespace, &object.name, &options),
            key: KeyId::NONE,
            request_uid: Symbol::NONE,
            answer_uid: Symbol::NONE,
            attributes: AttributesId::NONE,
            items_start: self.items.len() as u32,
            items_len: 0,
            decision: Symbol::NONE,
            marks: Marks::default(),
            status: event.response_status.as_ref().map_or(0, |s| s.code),
            verb,
            asked: Asked::Unset,
            subresource: Subresource::from_word(&object.subresource),
        };
        Self::options(&mut operation, &options);
        if !object.name.is_empty() && !matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
            operation.key = self.tables.key(resource, &object.namespace, &object.name);
        }
        if verb.is_write() {
            self.request_body(&mut operation, &event.request_object);
            if !object.uid.is_empty() && verb == Verb::Update {
                operation.request_uid = self.tables.names.intern(&object.uid);
                operation.marks.set(Marks::NAMES_UID);
            }
            if !object.resource_version.is_empty() && verb == Verb::Update {
                operation.asked_revision = self.version(&object.resource_version);
            }
            Self::conditions(&mut operation);
        }
        let message = event.response_status.as_ref().map_or("", |s| &s.message);
        match event.stage {
            // The filter fakes a 200 with this message when the connection went away (apiserver filters/audit.go).
            audit::Stage::ResponseComplete if !(verb.is_write() && message.starts_with("Connection closed early")) => {
                operation.ret = self.time(&event.stage_timestamp, "stageTimestamp");
                let answer = self.answer(&event.response_object, resource);
                self.apply(&mut operation, &answer);
                if operation.status == 409 {
                    self.live_uid(&mut operation, message);
                }
            }
            _ => operation.marks.set(Marks::OPEN),
        }
        if event.annotations.as_ref().is_some_and(|a| &*a.truncated == "true") {
            operation.marks.set(Marks::TRUNCATED);
        }
        self.operations.push(operation);
    }

    /// Takes the uids out of a refusal's text: the one that the request named, and the live one. Texts:
    /// `docs/formats.md`, "refusals".
    fn live_uid(&mut self, operation: &mut Operation, message: &str) {
        let between = |from: &str, to: &str| {
            let rest = message.split_once(from)?.1;
            Some(rest.split_once(to).map_or(rest, |(uid, _)| uid).trim())
        };
        let named = between("UID in precondition: ", ",").or_else(|| between("UID in the precondition (", ")"));
        let live = between("UID in object meta: ", "\"").or_else(|| between("UID in record (", ")"));
        if let Some(named) = named.filter(|_| !operation.request_uid.is_some()) {
            operation.request_uid = self.tables.optional(named);
        }
        if let Some(live) = live {
            operation.answer_uid = self.tables.optional(live);
        }
    }

    /// Puts an answer on its operation (names of one batch).
    fn apply(&mut self, operation: &mut Operation, answer: &Answer) {
        let resource = self.tables.scopes.values()[operation.scope.index()].resource;
        let namespace = self.tables.scopes.values()[operation.scope.index()].namespace;
        put_answer(
            operation,
            answer,
            |tables: &mut Tables, name| KeyId(tables.keys.intern(Key { resource, namespace, name })),
            &mut self.tables,
        );
    }

    fn capture(&mut self, position: Position, line: &capture::Line<'_>) {
        let at = match line.at.time() {
            Ok(time) => time,
            Err(text) => {
                let shown: String = text.chars().take(60).collect();
                self.refuse("an RFC 3339 time or nanoseconds", format!("at {shown:?}"));
                Time::UNKNOWN
            }
        };
        let id = match &line.id {
            Some(capture::Id::Number(n)) => Some(CaptureId::Number(*n)),
            Some(capture::Id::Text(t)) => Some(CaptureId::Name(self.tables.names.intern(t))),
            None => None,
        };
        match &*line.kind {
            "capture" => {
                let part = CapturePart::Context {
                    client: self.tables.names.intern(&line.client),
                    incarnation: self.tables.names.intern(&line.incarnation),
                    server: self.tables.optional(&line.server),
                    clock: self.tables.optional(&line.clock),
                };
                self.capture.push(part);
            }
            "request" => {
                let Some(id) = id else { return self.refuse("a request with an id", "no id") };
                let operation = self.capture_request(position, at, line);
                let agent = self.tables.names.intern(&line.user_agent);
                self.capture.push(CapturePart::Request { id, agent, operation: Box::new(operation) });
            }
            "response" => {
                let Some(id) = id else { return self.refuse("a response with an id", "no id") };
                let answer = self.answer(&line.body, ResourceId::NONE);
                let audit_id = self.audit_id(&line.audit_id);
                let status = line.status.unwrap_or(0);
                self.capture.push(CapturePart::Response { id, position, at, status, audit_id, answer });
            }
            "event" => {
                let Some(id) = id else { return self.refuse("an event with an id", "no id") };
                let Some(event) = &line.event else { return self.refuse("an event with a watch event", "no event") };
                for delivery in self.delivery(position, at, event, ResourceId::NONE) {
                    self.capture.push(CapturePart::Event { id, delivery });
                }
            }
            "end" => {
                let Some(id) = id else { return self.refuse("an end with an id", "no id") };
                let end = match &*line.reason {
                    "closed" => StreamEnd::Closed,
                    "eof" | "timeout" => StreamEnd::Eof,
                    _ => StreamEnd::Broken,
                };
                self.capture.push(CapturePart::End { id, at, end });
            }
            "read" => {
                let resource = self.tables.resource(&line.group, &line.resource);
                let read = CacheRead {
                    position,
                    at,
                    clock: ClockId::NONE,
                    incarnation: IncarnationId::NONE,
                    decision: self.tables.optional(&line.decision),
                    key: self.tables.key(resource, &line.namespace, &line.name),
                    uid: self.tables.optional(&line.uid),
                    revision: self.version(&line.resource_version),
                };
                self.capture.push(CapturePart::Read(read));
            }
            // Marks annotate pictures; a decision's brackets only order its own reads and writes.
            _ => {}
        }
    }

    fn capture_request(&mut self, position: Position, at: Time, line: &capture::Line<'_>) -> Operation {
        let parsed = request::parse(&line.uri).unwrap_or_default();
        let verb = if parsed.plural.is_empty() { Verb::Other } else { request::verb_of(&line.method, &parsed) };
        let resource = self.tables.resource(&parsed.group, &parsed.plural);
        let mut operation = Operation {
            position,
            audit_id: AuditId::None,
            invoke: at,
            ret: Time::UNKNOWN,
            asked_revision: Revision::NONE,
            answered: Revision::NONE,
            clock: ClockId::NONE,
            server: ServerId::NONE,
            incarnation: IncarnationId::NONE,
            scope: self.scope(resource, &parsed.namespace, &parsed.name, &parsed.options),
            key: KeyId::NONE,
            request_uid: Symbol::NONE,
            answer_uid: Symbol::NONE,
            attributes: AttributesId::NONE,
            items_start: 0,
            items_len: 0,
            decision: self.tables.optional(&line.decision),
            marks: Marks::CLIENT_SIDE,
            status: 0,
            verb,
            asked: Asked::Unset,
            subresource: Subresource::from_word(&parsed.subresource),
        };
        operation.marks.set(Marks::OPEN);
        Self::options(&mut operation, &parsed.options);
        if verb == Verb::Other {
            operation.marks.set(Marks::NO_RESOURCE);
        }
        if !parsed.name.is_empty() {
            operation.key = self.tables.key(resource, &parsed.namespace, &parsed.name);
        }
        if verb.is_write() {
            self.request_body(&mut operation, &line.body);
            if verb == Verb::Create
                && let Some(body) = line.body.object()
                && !body.metadata.name.is_empty()
            {
                operation.key = self.tables.key(resource, &parsed.namespace, &body.metadata.name);
            }
            Self::conditions(&mut operation);
        }
        operation
    }

    /// A watch event as deliveries: one, or one an item where `kubectl get -w` printed a whole list.
    fn delivery(
        &mut self,
        position: Position,
        at: Time,
        event: &capture::WatchEvent<'_>,
        resource: ResourceId,
    ) -> Vec<Delivery> {
        let body = &event.object;
        let kind = match &*event.kind {
            "ADDED" => DeliveryKind::Added,
            "MODIFIED" => DeliveryKind::Modified,
            "DELETED" => DeliveryKind::Deleted,
            "BOOKMARK" if &*body.metadata.annotations.initial_events_end == "true" => DeliveryKind::InitialEventsEnd,
            "BOOKMARK" => DeliveryKind::Bookmark,
            "ERROR" => DeliveryKind::Error,
            other => {
                let shown: String = other.chars().take(40).collect();
                self.refuse("ADDED, MODIFIED, DELETED, BOOKMARK or ERROR", format!("type {shown:?}"));
                return Vec::new();
            }
        };
        let mut delivery = Delivery {
            position,
            at,
            revision: Revision::NONE,
            key: KeyId::NONE,
            uid: Symbol::NONE,
            attributes: AttributesId::NONE,
            kind,
            code: body.code.unwrap_or(0),
        };
        // A whole list (kubectl's first chunks), or a table: one delivery an object.
        let listed: Option<Vec<&BodyItem<'_>>> = match (&body.items, &body.rows) {
            (Some(items), _) => Some(items.iter().collect()),
            (None, Some(rows)) if kind != DeliveryKind::Bookmark => Some(rows.iter().map(|r| &r.object).collect()),
            _ => None,
        };
        if let Some(objects) = listed {
            return objects
                .into_iter()
                .map(|object| {
                    if object.metadata.name.is_empty() {
                        // includeObject=None: something was delivered, and nobody can say what.
                        return Delivery { kind: DeliveryKind::Unidentified, ..delivery };
                    }
                    let partial = object.kind.is_empty() || &*object.kind == "PartialObjectMetadata";
                    let resource = if resource.is_some() && !partial {
                        self.resource_of_kind(&object.api_version, &object.kind)
                    } else {
                        resource
                    };
                    let row = self.item(resource, object);
                    Delivery {
                        key: row.key,
                        uid: row.uid,
                        revision: row.revision,
                        attributes: row.attributes,
                        ..delivery
                    }
                })
                .collect();
        }
        if kind != DeliveryKind::Error {
            delivery.revision = self.version(&body.metadata.resource_version);
        }
        if matches!(kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted) {
            if body.metadata.name.is_empty() {
                self.refuse("an object with a name", "no metadata.name");
                return Vec::new();
            }
            delivery.key = self.tables.key(resource, &body.metadata.namespace, &body.metadata.name);
            delivery.uid = self.tables.optional(&body.metadata.uid);
            delivery.attributes = self.attributes(&body.metadata, &body.spec, &body.status);
        }
        vec![delivery]
    }

    fn resource_of_kind(&mut self, api_version: &str, kind: &str) -> ResourceId {
        let plural = resource::plural_of_kind(kind);
        self.tables.resource(resource::group_of_api_version(api_version), &plural)
    }

    fn saved_list(&mut self, position: Position, body: &Body<'_>) {
        let start = self.items.len() as u32;
        let rows = body.rows.iter().flatten().map(|r| &r.object);
        let mut resource = match body.kind.strip_suffix("List") {
            Some(kind) if !kind.is_empty() && body.items.is_some() => self.resource_of_kind(&body.api_version, kind),
            _ => ResourceId::NONE,
        };
        for item in body.items.iter().flatten().chain(rows).filter(|i| !i.metadata.name.is_empty()) {
            let of_item = if item.kind.is_empty() || &*item.kind == "PartialObjectMetadata" {
                resource
            } else {
                self.resource_of_kind(&item.api_version, &item.kind)
            };
            if !resource.is_some() {
                resource = of_item;
            }
            if of_item.is_some() {
                let row = self.item(of_item, item);
                self.items.push(row);
            }
        }
        let is_list = body.items.is_some() || body.rows.is_some();
        if !is_list {
            resource = self.resource_of_kind(&body.api_version, &body.kind);
        }
        let nothing = request::Options::default();
        let mut operation = Operation {
            position,
            audit_id: AuditId::None,
            invoke: Time::UNKNOWN,
            ret: Time::UNKNOWN,
            asked_revision: Revision::NONE,
            answered: self.version(&body.metadata.resource_version),
            clock: ClockId::NONE,
            server: ServerId::NONE,
            incarnation: IncarnationId::NONE,
            scope: self.scope(resource, "", "", &nothing),
            key: KeyId::NONE,
            request_uid: Symbol::NONE,
            answer_uid: Symbol::NONE,
            attributes: AttributesId::NONE,
            items_start: start,
            items_len: self.items.len() as u32 - start,
            decision: Symbol::NONE,
            marks: Marks(Marks::CLIENT_SIDE.0 | Marks::SAVED.0 | Marks::ANSWER_BODY.0),
            status: 200,
            verb: if is_list { Verb::List } else { Verb::Get },
            asked: Asked::Unrecorded,
            subresource: Subresource::None,
        };
        if is_list {
            operation.marks.set(Marks::LIST_ANSWER);
            // Nobody recorded which namespace or selector was asked for, so absence from the list says nothing.
            operation.marks.set(Marks::MORE_PAGES);
        } else {
            operation.key = self.tables.key(resource, &body.metadata.namespace, &body.metadata.name);
            operation.answer_uid = self.tables.optional(&body.metadata.uid);
            operation.attributes = self.attributes(&body.metadata, &body.spec, &body.status);
        }
        self.operations.push(operation);
    }

    fn witness(&mut self, position: Position, response: &etcd_watch::Response<'_>) {
        if response.canceled || response.compact_revision > 0 {
            self.witness_breaks.push(self.witness.len());
        }
        let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).ok();
        for event in response.events.iter().flatten() {
            let kv = &event.kv;
            let Some(key) = decode(&kv.key).and_then(|k| String::from_utf8(k).ok()) else {
                self.refuse("a key in base64", "another text");
                continue;
            };
            if kv.mod_revision <= 0 {
                self.refuse("a mod_revision above zero", kv.mod_revision.to_string());
                continue;
            }
            let id = match resource::parse_etcd_key(&key) {
                Some((group, plural, namespace, name)) => {
                    let resource = self.tables.resource(group, plural);
                    self.tables.key(resource, namespace, name)
                }
                None => KeyId::NONE,
            };
            let tombstone = event.kind == etcd_watch::EventType::Delete;
            let (mut uid, mut attributes) = (Symbol::NONE, AttributesId::NONE);
            // Custom resources are stored as JSON; built-in kinds as protobuf, which stays closed.
            if id.is_some()
                && kv.value.starts_with("ey")
                && let Some(value) = decode(&kv.value)
                && let Ok(body) = serde_json::from_slice::<Body<'_>>(&value)
            {
                uid = self.tables.optional(&body.metadata.uid);
                attributes = self.attributes(&body.metadata, &body.spec, &body.status);
            }
            self.witness.push(WitnessEvent {
                position,
                revision: Revision::from(kv.mod_revision as u64),
                created: Revision::from(kv.create_revision.max(0) as u64),
                key: id,
                uid,
                attributes,
                tombstone,
            });
        }
    }
}

/// Puts an answer on its operation. `key` makes the key of a created object whose name only the answer says.
pub fn put_answer<T>(
    operation: &mut Operation,
    answer: &Answer,
    key: impl FnOnce(&mut T, Symbol) -> KeyId,
    tables: &mut T,
) {
    let succeeded = (200..300).contains(&operation.status);
    let mut marks = answer.marks;
    if !matches!(operation.verb, Verb::Update | Verb::Patch | Verb::Delete) {
        marks.clear(Marks::REMOVES);
    }
    operation.marks.set(marks);
    if !succeeded {
        return;
    }
    operation.items_start = answer.items.0;
    operation.items_len = answer.items.1;
    if marks.has(Marks::LIST_ANSWER) {
        operation.answered = answer.revision;
        return;
    }
    // A binding's or eviction's answer, a token, a log: none of them shows the parent's version.
    if !operation.subresource.answers_parent() {
        return;
    }
    operation.answer_uid = answer.uid;
    operation.answered = answer.revision;
    operation.attributes = answer.attributes;
    // A Scale's labels and spec are not its parent's.
    if operation.subresource == Subresource::Scale {
        operation.attributes = AttributesId::NONE;
    }
    if !operation.key.is_some() && operation.verb == Verb::Create && answer.name.is_some() {
        operation.key = key(tables, answer.name);
    }
}

impl ingest::Batch for Batch {
    fn record(&mut self, line: u32, offset: u64, record: Record<'_>) -> Result<(), Refused> {
        let position = Position { file: self.file, line, offset };
        match record {
            Record::Audit(event) => self.audit(position, &event),
            Record::Capture(part) => self.capture(position, &part),
            Record::Watch(event) => {
                let resource = self.resource_of_kind(&event.object.api_version, &event.object.kind);
                let rows = self.delivery(position, Time::UNKNOWN, &event, resource);
                self.deliveries.extend(rows);
            }
            Record::List(body) => self.saved_list(position, &body),
            Record::Etcd(response) => self.witness(position, &response),
        }
        self.refused.take().map_or(Ok(()), Err)
    }
}

/// The two words of a UUID in canonical form (36 characters, lower case), so that writing it again gives the same text.
fn uuid_words(text: &str) -> Option<(u64, u64)> {
    let b = text.as_bytes();
    if b.len() != 36 {
        return None;
    }
    let mut value: u128 = 0;
    for (at, &c) in b.iter().enumerate() {
        let digit = match (at, c) {
            (8 | 13 | 18 | 23, b'-') => continue,
            (8 | 13 | 18 | 23, _) => return None,
            (_, b'0'..=b'9') => c - b'0',
            (_, b'a'..=b'f') => c - b'a' + 10,
            _ => return None,
        };
        value = value << 4 | u128::from(digit);
    }
    Some(((value >> 64) as u64, value as u64))
}

/// The minor version in `kube-apiserver/v1.34.1 (linux/amd64) ...`.
fn kubernetes_minor(agent: &str) -> Option<u32> {
    let version = agent.strip_prefix("kube-apiserver/v1.")?;
    version.split(['.', ' ', '+', '-']).next()?.parse().ok()
}
