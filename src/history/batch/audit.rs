//! Turns audit events into operations, and joins the stages of one request inside a block.

use super::super::client::Process;
use super::super::ids::*;
use super::super::operation::*;
use super::super::request::{self, Asked, Verb};
use super::super::revision::Revision;
use super::Batch;
use crate::ingest::kubernetes::audit;
use crate::ingest::kubernetes::body::AnyBody;
use crate::ingest::kubernetes::object::Text;
use crate::ingest::{Position, Time};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher as _;

/// Slots of the cache of processes.
const PLACES: usize = 256;

/// A direct-mapped cache of the processes on recent lines.
#[derive(Debug, Default)]
pub(super) struct Lately(Vec<Met>);

/// A process and its concatenated texts. Every line compares them, and in the interner they are far apart.
#[derive(Clone, Debug, Default)]
struct Met {
    texts: String,
    ends: [usize; 6],
    id: ProcessId,
}

impl Met {
    fn set(&mut self, texts: [&str; 6], id: ProcessId) {
        self.texts.clear();
        for (end, text) in self.ends.iter_mut().zip(texts) {
            self.texts.push_str(text);
            *end = self.texts.len();
        }
        self.id = id;
    }

    fn is(&self, texts: [&str; 6]) -> bool {
        let mut start = 0;
        self.ends.iter().zip(texts).all(|(&end, text)| {
            let length = end - start;
            start = end;
            // Most processes have no pod, so both texts are empty.
            length == text.len() && (length == 0 || &self.texts.as_bytes()[end - length..end] == text.as_bytes())
        })
    }
}

impl Lately {
    fn find(&self, place: usize, texts: [&str; 6]) -> Option<ProcessId> {
        self.0.get(place).filter(|met| met.id.is_some() && met.is(texts)).map(|met| met.id)
    }

    fn put(&mut self, place: usize, texts: [&str; 6], id: ProcessId) {
        if self.0.is_empty() {
            self.0.resize_with(PLACES, Met::default);
        }
        self.0[place].set(texts, id);
    }

    fn place(user: &str, address: &str) -> usize {
        // Users and addresses of one kind differ mostly at their ends.
        let end = |text: &str| text.bytes().rev().take(3).fold(text.len(), |sum, byte| sum * 31 + usize::from(byte));
        (end(user) * 7 + end(address)) % PLACES
    }
}

/// The first value of an extra field of a user.
fn first<'a>(list: Option<&'a Vec<Text<'a>>>) -> &'a str {
    list.and_then(|list| list.first()).map_or("", |text| text)
}

impl Batch {
    pub(super) fn process(&mut self, event: &audit::Event<'_>) -> ProcessId {
        let user = event.impersonated_user.as_ref().filter(|u| !u.username.is_empty()).unwrap_or(&event.user);
        let address = event.source_ips.last().map_or("", |a| a);
        let extra = user.extra.as_ref();
        let texts = [
            &*user.username,
            address,
            &*event.user_agent,
            first(extra.map(|e| &e.pod_uid)),
            first(extra.map(|e| &e.pod_name)),
            first(extra.map(|e| &e.node_name)),
        ];
        // Consecutive lines often share a few processes: six comparisons replace eight look-ups.
        let place = Lately::place(texts[0], texts[1]);
        if let Some(id) = self.lately.find(place, texts) {
            return id;
        }
        let names = &mut self.tables.names;
        let [user, address, agent, pod_uid, pod_name, node_name] = texts.map(|text| names.intern(text));
        let (label, clock) = (Symbol::NONE, Symbol::NONE);
        let process = Process { user, label, pod_uid, pod_name, node_name, address, agent, clock };
        let id = ProcessId(self.tables.processes.intern(process));
        self.lately.put(place, texts, id);
        let writer = self.writer;
        if &*event.user.username == "system:apiserver" && self.loopback_minors.iter().all(|(of, _)| *of != writer) {
            self.loopback_minors.extend(kubernetes_minor(&event.user_agent).map(|minor| (writer, minor)));
        }
        id
    }

    pub(super) fn audit(&mut self, position: Position, event: &audit::Event<'_>) {
        let query = event.request_uri.split_once('?').map_or("", |(_, query)| query);
        let mut verb = Verb::from_audit(&event.verb);
        let Some(object) = event.object_ref.as_ref().filter(|o| !o.resource.is_empty()) else { return };
        let options = request::options(query);
        // The legacy /watch/ path keeps the verb; a list with watch=true is a watch in every release.
        if verb == Verb::List && options.watch {
            verb = Verb::Watch;
        }
        let audit_id = self.audit_id(&event.audit_id);
        let invoke = event.received;
        let uri = FxBuildHasher.hash_one(&*event.request_uri);
        // The answer to a request whose first stage is in this block: process and scope are known.
        let earlier = self.earlier(audit_id);
        let arrived = earlier
            .filter(|(_, row, known)| {
                *known == uri && row.verb == verb && row.invoke == invoke && row.server == self.writer
            })
            .map(|(_, row, _)| row);
        let resource = match arrived {
            Some(row) => self.tables.scopes.values()[row.scope.index()].resource,
            None => self.tables.resource(&object.api_group, &object.resource),
        };
        // An audit event gives a namespace itself as its namespace (apiserver pkg/endpoints/request/requestinfo.go); it has none.
        let is_namespace = object.api_group.is_empty() && &*object.resource == "namespaces";
        let namespace = if is_namespace { "" } else { &*object.namespace };
        // The name in a POST comes from the body, so the first stage lacks it: the scope of a creation is the collection.
        let scope_name = if verb == Verb::Create && object.subresource.is_empty() { "" } else { &*object.name };
        let mut operation = Operation {
            position,
            audit_id,
            invoke,
            ret: Time::UNKNOWN,
            asked_revision: Revision::NONE,
            answered: Revision::NONE,
            clock: ClockId::NONE,
            server: self.writer,
            incarnation: arrived.map_or_else(|| IncarnationId(self.process(event).0), |row| row.incarnation),
            scope: match arrived {
                Some(row) => row.scope,
                None => self.scope(resource, namespace, scope_name, &options),
            },
            key: KeyId::NONE,
            request_uid: Symbol::NONE,
            answer_uid: Symbol::NONE,
            attributes: AttributesId::NONE,
            items_start: self.items.len() as u32,
            items_len: 0,
            decision: Symbol::NONE,
            page_after: Symbol::NONE,
            page_end: Symbol::NONE,
            marks: mark_of_subresource(&object.subresource),
            status: event.response_status.as_ref().map_or(0, |s| s.code),
            verb,
            asked: Asked::Unset,
            subresource: Subresource::from_word(&object.subresource),
        };
        self.options(&mut operation, &options);
        // Some exports leave out the URI, and with it the state that was asked for.
        let is_cut = event.request_uri.is_empty();
        if is_cut && verb.selects_state() {
            operation.asked = Asked::Unrecorded;
        }
        if !object.name.is_empty() && !matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
            operation.key = self.tables.key(resource, namespace, &object.name);
        }
        if verb.is_write() {
            self.request_body(&mut operation, &event.request_object);
            if !object.uid.is_empty() && verb == Verb::Update {
                operation.request_uid = self.tables.uid(&object.uid);
                operation.marks.set(Marks::NAMES_UID);
            }
            if !object.resource_version.is_empty() && verb == Verb::Update {
                operation.asked_revision = self.version(&object.resource_version);
            }
            Self::conditions(&mut operation);
        }
        let message = event.response_status.as_ref().map_or("", |s| &s.message);
        match event.stage {
            // A filter writes a 200 with this message if the connection was lost (apiserver filters/audit.go).
            audit::Stage::ResponseComplete if !(verb.is_write() && message.starts_with("Connection closed early")) => {
                operation.ret = event.reached;
                let answer = self.answer(&event.response_object, resource);
                self.apply(&mut operation, &answer);
                if operation.status == 409 {
                    self.live_uid(&mut operation, message);
                }
            }
            _ => operation.marks.set(Marks::OPEN),
        }
        // A text in the place of a body says nothing about it.
        let is_replaced = |body: &AnyBody<'_>| matches!(body, AnyBody::Replaced);
        if is_replaced(&event.request_object) {
            operation.marks.clear(Marks::UNCONDITIONED);
        }
        if is_replaced(&event.request_object) || is_replaced(&event.response_object) {
            operation.marks.set(Marks::TRUNCATED);
        }
        // A deletion without its options may be a dry run.
        if is_cut && matches!(verb, Verb::Delete | Verb::DeleteCollection) && !operation.marks.has(Marks::REQUEST_BODY)
        {
            operation.marks.set(Marks::OPEN);
        }
        if event.annotations.as_ref().is_some_and(|a| &*a.truncated == "true") {
            operation.marks.set(Marks::TRUNCATED);
        }
        self.stage(operation, uri, earlier);
    }

    /// The row of an earlier stage with this audit id: its number, the operation, and the hash of its URI.
    fn earlier(&self, audit_id: AuditId) -> Option<(u32, Operation, u64)> {
        let AuditId::Uuid(high, low) = audit_id else { return None };
        let (row, uri) = *self.open.get(&(high, low))?;
        Some((row, self.operations[row as usize], uri))
    }

    /// Adds a row, or merges it into that of an earlier stage in this block. Most stages of a request are near each other, and
    /// separate rows would double the memory of a history. The builder joins the others by the same rule.
    fn stage(&mut self, operation: Operation, uri: u64, earlier: Option<(u32, Operation, u64)>) {
        let AuditId::Uuid(high, low) = operation.audit_id else { return self.operations.push(operation) };
        let open = operation.marks.has(Marks::OPEN);
        match earlier {
            Some((row, earlier, _)) if is_stage_of(&earlier, &operation) => {
                if !open {
                    self.operations[row as usize] = operation;
                    self.open.remove(&(high, low));
                }
            }
            _ => {
                if open {
                    self.open.insert((high, low), (self.operations.len() as u32, uri));
                }
                self.operations.push(operation);
            }
        }
    }

    /// Extracts the uids from the message of a refusal: the one in the request, and the live one. Texts: `docs/formats.md`,
    /// "refusals".
    pub(super) fn live_uid(&mut self, operation: &mut Operation, message: &str) {
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
}

/// Whether two rows with one audit id are stages of one request. An answer replaces the row; a second stage before the answer
/// adds nothing.
fn is_stage_of(earlier: &Operation, later: &Operation) -> bool {
    (earlier.verb, earlier.scope, earlier.invoke, earlier.server)
        == (later.verb, later.scope, later.invoke, later.server)
}

/// The minor version in `kube-apiserver/v1.34.1 (linux/amd64) ...`.
fn kubernetes_minor(agent: &str) -> Option<u32> {
    let version = agent.strip_prefix("kube-apiserver/v1.")?;
    version.split(['.', ' ', '+', '-']).next()?.parse().ok()
}
