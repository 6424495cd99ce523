//! Audit events to operations.

use super::super::client::Process;
use super::super::ids::*;
use super::super::operation::*;
use super::super::request::{self, Asked, Verb};
use super::super::revision::Revision;
use super::Batch;
use crate::ingest::object::Text;
use crate::ingest::{Position, Time, audit};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher as _;

/// How many processes are kept at hand.
const PLACES: usize = 256;

/// The processes of the last lines, each in one of a few places.
#[derive(Debug, Default)]
pub(super) struct Lately(Vec<Met>);

/// A process, with its texts in a row: they are compared at every line, and stand far apart among the names.
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
            // Most have no marks of a pod: nothing is compared to nothing.
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
        // The ends of user names and addresses are what tells many of one kind apart.
        let end = |text: &str| text.bytes().rev().take(3).fold(text.len(), |sum, byte| sum * 31 + usize::from(byte));
        (end(user) * 7 + end(address)) % PLACES
    }
}

/// The one value of a mark.
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
        // Consecutive lines are often of a few processes: six comparisons save eight look-ups.
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
        if &*event.user.username == "system:apiserver" && self.loopback_minor.is_none() {
            self.loopback_minor = kubernetes_minor(&event.user_agent);
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
        // The answer of a request whose arrival this block has: process and scope are known.
        let earlier = self.earlier(audit_id);
        let arrived = earlier
            .filter(|(_, row, known)| *known == uri && row.verb == verb && row.invoke == invoke)
            .map(|(_, row, _)| row);
        let resource = match arrived {
            Some(row) => self.tables.scopes.values()[row.scope.index()].resource,
            None => self.tables.resource(&object.api_group, &object.resource),
        };
        // An audit event names a namespace as inside itself (apiserver pkg/endpoints/request/requestinfo.go); it is inside none.
        let is_namespace = object.api_group.is_empty() && &*object.resource == "namespaces";
        let namespace = if is_namespace { "" } else { &*object.namespace };
        // A POST's name comes from its body, so its first stage lacks it: the scope of a creation is the collection.
        let scope_name = if verb == Verb::Create && object.subresource.is_empty() { "" } else { &*object.name };
        let mut operation = Operation {
            position,
            audit_id,
            invoke,
            ret: Time::UNKNOWN,
            asked_revision: Revision::NONE,
            answered: Revision::NONE,
            clock: ClockId::NONE,
            server: ServerId::NONE,
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
            // The filter fakes a 200 with this message when the connection went away (apiserver filters/audit.go).
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
        if event.annotations.as_ref().is_some_and(|a| &*a.truncated == "true") {
            operation.marks.set(Marks::TRUNCATED);
        }
        self.stage(operation, uri, earlier);
    }

    /// The row of an earlier stage of a request, by its audit id: the row, what is in it, and the hash of its URI.
    fn earlier(&self, audit_id: AuditId) -> Option<(u32, Operation, u64)> {
        let AuditId::Uuid(high, low) = audit_id else { return None };
        let (row, uri) = *self.open.get(&(high, low))?;
        Some((row, self.operations[row as usize], uri))
    }

    /// Puts a row, into that of an earlier stage where this block has it: most stages of a request stand near each other, and
    /// a row for each would double the memory of a history. The builder joins what is left, by the same rule.
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

    /// Takes the uids out of a refusal's text: the one that the request named, and the live one. Texts:
    /// `docs/formats.md`, "refusals".
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

/// Whether two rows of one block and audit id are stages of one request. An answer replaces the row, and a stage before the
/// answer says nothing that the first one did not say.
fn is_stage_of(earlier: &Operation, later: &Operation) -> bool {
    (earlier.verb, earlier.scope, earlier.invoke) == (later.verb, later.scope, later.invoke)
}

/// The minor version in `kube-apiserver/v1.34.1 (linux/amd64) ...`.
fn kubernetes_minor(agent: &str) -> Option<u32> {
    let version = agent.strip_prefix("kube-apiserver/v1.")?;
    version.split(['.', ' ', '+', '-']).next()?.parse().ok()
}
