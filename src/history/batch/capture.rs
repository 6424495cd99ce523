//! Turns lines of captures into parts. The builder joins them, since context and request may be in another block.

use super::super::ids::*;
use super::super::operation::*;
use super::super::request::{self, Asked, Verb};
use super::super::revision::Revision;
use super::Batch;
use super::body::Answer;
use super::fields::Source;
use crate::ingest::kubernetes::capture;
use crate::ingest::kubernetes::object::Item as BodyItem;
use crate::ingest::{Found, Position, Time};

/// A request id of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureId {
    /// A number.
    Number(u64),
    /// A text.
    Name(Symbol),
}

/// A line of a capture. Its context and its request are on other lines.
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
    /// A request, as an operation without answer.
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
        /// Position.
        position: Position,
        /// Time of the last byte.
        at: Time,
        /// HTTP status.
        status: u16,
        /// Audit id.
        audit_id: AuditId,
        /// Body.
        answer: Answer,
    },
    /// A watch event. The items of a whole list become initial events.
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
        /// Time.
        at: Time,
        /// Kind of end.
        end: StreamEnd,
    },
    /// A read from a cache.
    Read(CacheRead),
    /// The begin or the end of a pass of a decision.
    Bracket(Bracket),
    /// A note for diagrams.
    Annotation(Annotation),
}

impl Batch {
    pub(super) fn capture(&mut self, position: Position, line: &capture::Line<'_>) {
        let at = match line.at.time() {
            Ok(time) => time,
            Err(text) => {
                self.refuse("an RFC 3339 time or nanoseconds", Found::text("a text", &text));
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
                let Some(event) = &line.event else { return self.refuse("a watch event", "no event") };
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
                    uid: self.tables.uid(&line.uid),
                    revision: self.version(&line.resource_version),
                };
                self.capture.push(CapturePart::Read(read));
            }
            "decision" => {
                let decision = match id {
                    Some(CaptureId::Name(name)) => name,
                    Some(CaptureId::Number(number)) => self.tables.names.intern(&number.to_string()),
                    None => return self.refuse("a decision with an id", "no id"),
                };
                let begins = match &*line.phase {
                    "begin" => true,
                    "end" => false,
                    other => {
                        return self.refuse("begin or end", Found::text("a phase", other));
                    }
                };
                let (clock, incarnation) = (ClockId::NONE, IncarnationId::NONE);
                self.capture.push(CapturePart::Bracket(Bracket { position, at, clock, incarnation, decision, begins }));
            }
            "mark" if at.is_known() => {
                let name = self.tables.names.intern(&line.name);
                let until = line.until.time().unwrap_or(Time::UNKNOWN);
                self.capture.push(CapturePart::Annotation(Annotation { position, at, until, name }));
            }
            _ => {}
        }
    }

    pub(super) fn capture_request(&mut self, position: Position, at: Time, line: &capture::Line<'_>) -> Operation {
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
            page_after: Symbol::NONE,
            page_end: Symbol::NONE,
            marks: Marks::CLIENT_SIDE,
            status: 0,
            verb,
            asked: Asked::Unset,
            subresource: Subresource::from_word(&parsed.subresource),
        };
        operation.marks.set(Marks::OPEN);
        operation.marks.set(mark_of_subresource(&parsed.subresource));
        self.options(&mut operation, &parsed.options);
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

    /// The deliveries in a watch event: one, or one per item if `kubectl get -w` printed a whole list.
    pub(super) fn delivery(
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
                self.refuse("ADDED, MODIFIED, DELETED, BOOKMARK or ERROR", Found::text("a type", other));
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
        // A whole list (kubectl's first chunks) or a table gives one delivery per object.
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
                        // includeObject=None: an event without an identified object.
                        return Delivery { kind: DeliveryKind::Unidentified, ..delivery };
                    }
                    let partial = object.kind.is_empty() || &*object.kind == "PartialObjectMetadata";
                    let resource = if resource.is_some() && !partial {
                        self.resource_of_kind(&object.api_version, &object.kind)
                    } else {
                        resource
                    };
                    let row = self.item(resource, (&body.kind, &body.api_version), object);
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
            delivery.uid = self.tables.uid(&body.metadata.uid);
            delivery.attributes = self.attributes(Source::of(body, resource));
        }
        vec![delivery]
    }
}
