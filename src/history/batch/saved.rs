//! Turns saved lists and etcd witnesses into rows.

use super::super::ids::*;
use super::super::operation::*;
use super::super::request::{self, Asked, Verb};
use super::super::resource;
use super::super::revision::Revision;
use super::Batch;
use super::fields::Source;
use crate::ingest::kubernetes::body::Body;
use crate::ingest::{Found, Position, Time, etcd_watch};
use base64::Engine as _;

impl Batch {
    pub(super) fn saved_list(&mut self, position: Position, body: &Body<'_>) {
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
                let row = self.item(of_item, (&body.kind, &body.api_version), item);
                self.items.push(row);
            }
        }
        let is_list = body.items.is_some() || body.rows.is_some();
        if !is_list && body.metadata.name.is_empty() {
            self.refuse("an object with a name", "no metadata.name");
            return;
        }
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
            page_after: Symbol::NONE,
            page_end: Symbol::NONE,
            marks: Marks(Marks::CLIENT_SIDE.0 | Marks::SAVED.0 | Marks::ANSWER_BODY.0),
            status: 200,
            verb: if is_list { Verb::List } else { Verb::Get },
            asked: Asked::Unrecorded,
            subresource: Subresource::None,
        };
        if is_list {
            operation.marks.set(Marks::LIST_ANSWER);
            // The namespace or selector of the request is not recorded, so absence from the list proves nothing.
            operation.marks.set(Marks::MORE_PAGES);
        } else {
            operation.key = self.tables.key(resource, &body.metadata.namespace, &body.metadata.name);
            operation.answer_uid = self.tables.uid(&body.metadata.uid);
            operation.attributes = self.attributes(Source::of(body, resource));
        }
        self.operations.push(operation);
    }

    pub(super) fn witness(&mut self, position: Position, response: &etcd_watch::Response<'_>) {
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
                self.refuse("a mod_revision above zero", Found::described(kv.mod_revision.to_string()));
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
            // Custom resources are stored as JSON and read; built-in kinds are protobuf, which is not decoded.
            if id.is_some()
                && kv.value.starts_with("ey")
                && let Some(value) = decode(&kv.value)
                && let Ok(body) = serde_json::from_slice::<Body<'_>>(&value)
            {
                uid = self.tables.uid(&body.metadata.uid);
                let resource = self.tables.keys.values()[id.index()].resource;
                attributes = self.attributes(Source::of(&body, resource));
            }
            self.witness.push(WitnessEvent {
                position,
                revision: Revision::from(kv.mod_revision as u64),
                created: Revision::from(kv.create_revision.max(0) as u64),
                key: id,
                uid,
                attributes,
                count: u32::try_from(kv.version).unwrap_or(0),
                tombstone,
            });
        }
    }
}
