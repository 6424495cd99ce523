//! Joins the lines of a capture: contexts, requests, answers, events and ends of one recording.
//!
//! The id of a request connects its lines, and only inside its file. A response or event with an unknown id is reported and
//! skipped.

use super::batch::{Answer, CaptureId, CapturePart, Moved, Tables, put_answer};
use super::builder::Builder;
use super::client::Process;
use super::ids::*;
use super::operation::*;
use super::request::Verb;
use super::resource::Key;
use crate::ingest::{self, FileId, Time};

impl Builder {
    pub(super) fn merge_capture(
        &mut self,
        file: FileId,
        first_line: u32,
        parts: Vec<CapturePart>,
        moved: &Moved,
        items_base: u32,
        place: impl Fn(Operation) -> Operation,
    ) {
        if !self.files[file.0 as usize].named {
            self.capture_context(file, Symbol::NONE, Symbol::NONE, Symbol::NONE, Symbol::NONE);
        }
        let move_id = |id: CaptureId| match id {
            CaptureId::Name(name) => CaptureId::Name(moved.name(name)),
            number => number,
        };
        for part in parts {
            match part {
                CapturePart::Context { client, incarnation, server, clock } => {
                    let names = [client, incarnation, server, clock].map(|n| moved.name(n));
                    self.capture_context(file, names[0], names[1], names[2], names[3]);
                }
                CapturePart::Request { id, agent, operation } => {
                    let context = &self.files[file.0 as usize];
                    let process = Process { agent: moved.name(agent), ..context.process };
                    let (server, clock) = (context.capture_server, context.capture_clock);
                    let process = ProcessId(self.tables.processes.intern(process));
                    let row = self.operations.len() as u32;
                    let server = if server.is_some() { ServerId(self.servers.intern(server)) } else { ServerId::NONE };
                    let clock = ClockId(self.clocks.intern(clock));
                    let placed = place(*operation);
                    self.operations.push(Operation { server, clock, incarnation: IncarnationId(process.0), ..placed });
                    if placed.marks.has(Marks::REQUEST_BODY) {
                        self.request_places.push((row, placed.position));
                    }
                    if self.files[file.0 as usize].requests.insert(move_id(id), row).is_some() {
                        self.problem(
                            file,
                            placed.position.line,
                            "a request id that is new in its file",
                            "a repeated id",
                        );
                    }
                }
                CapturePart::Response { id, position, at, status, audit_id, answer } => {
                    let line = position.line + first_line;
                    let Some(&row) = self.files[file.0 as usize].requests.get(&move_id(id)) else {
                        self.problem(file, line, "a request before its response", "a response to an unknown id");
                        continue;
                    };
                    let answer = Answer {
                        uid: moved.name(answer.uid),
                        namespace: moved.name(answer.namespace),
                        name: moved.name(answer.name),
                        attributes: moved.attributes(answer.attributes),
                        page_end: moved.name(answer.page_end),
                        items: (answer.items.0 + items_base, answer.items.1),
                        ..answer
                    };
                    self.respond(
                        row,
                        ingest::Position { line, ..position },
                        at,
                        status,
                        moved.audit_id(audit_id),
                        &answer,
                    );
                }
                CapturePart::Event { id, delivery } => {
                    let mut delivery = self.placed(delivery, first_line, moved);
                    let Some(&row) = self.files[file.0 as usize].requests.get(&move_id(id)) else {
                        self.problem(
                            file,
                            delivery.position.line,
                            "a request before its events",
                            "an event of an unknown id",
                        );
                        continue;
                    };
                    // Only a watch has events; events of another request would be judged as a stream without a start.
                    if self.operations.get(row as usize).verb != Verb::Watch {
                        self.problem(
                            file,
                            delivery.position.line,
                            "events of a watch only",
                            "an event of a request that is no watch",
                        );
                        continue;
                    }
                    delivery.key = self.with_resource(delivery.key, row);
                    self.deliveries.push((row, delivery));
                }
                CapturePart::End { id, at, end } => {
                    if let Some(&row) = self.files[file.0 as usize].requests.get(&move_id(id)) {
                        self.ends.insert(row, (end, at));
                    }
                }
                CapturePart::Bracket(bracket) => {
                    let (incarnation, clock) = self.inside(file);
                    self.brackets.push(Bracket {
                        position: ingest::Position { line: bracket.position.line + first_line, ..bracket.position },
                        clock,
                        incarnation,
                        decision: moved.name(bracket.decision),
                        ..bracket
                    });
                }
                CapturePart::Annotation(annotation) => self.annotations.push(Annotation {
                    position: ingest::Position { line: annotation.position.line + first_line, ..annotation.position },
                    name: moved.name(annotation.name),
                    ..annotation
                }),
                CapturePart::Read(read) => {
                    let (incarnation, clock) = self.inside(file);
                    self.cache_reads.push(CacheRead {
                        position: ingest::Position { line: read.position.line + first_line, ..read.position },
                        clock,
                        incarnation,
                        decision: moved.name(read.decision),
                        key: moved.key(read.key),
                        uid: moved.name(read.uid),
                        ..read
                    });
                }
            }
        }
    }

    /// Incarnation and clock of capture lines about events inside the client.
    fn inside(&mut self, file: FileId) -> (IncarnationId, ClockId) {
        let context = &self.files[file.0 as usize];
        let (process, clock) = (context.process, context.capture_clock);
        (IncarnationId(self.tables.processes.intern(process)), ClockId(self.clocks.intern(clock)))
    }

    /// Applies a context line. Fields that it omits come from `--source`, then from the file.
    pub(super) fn capture_context(
        &mut self,
        file: FileId,
        client: Symbol,
        incarnation: Symbol,
        server: Symbol,
        clock: Symbol,
    ) {
        let (context, names) = (&mut self.files[file.0 as usize], &mut self.tables.names);
        let said = |names: &super::interner::Interner, s: Symbol| (!names.get(s).is_empty()).then_some(s);
        let client = said(names, client).or_else(|| context.client.as_deref().map(|c| names.intern(c)));
        let server = said(names, server).or_else(|| context.server.as_deref().map(|s| names.intern(s)));
        let clock = said(names, clock)
            .or_else(|| context.clock.as_deref().map(|c| names.intern(c)))
            .unwrap_or_else(|| names.intern(&context.path));
        // Without a label, each recording is one process.
        let label = said(names, incarnation).unwrap_or_else(|| names.intern(&context.path));
        context.process = Process { user: client.unwrap_or(Symbol::NONE), label, clock, ..Process::default() };
        context.capture_server = server.unwrap_or(Symbol::NONE);
        context.capture_clock = clock;
        context.named = true;
    }

    pub(super) fn respond(
        &mut self,
        row: u32,
        position: ingest::Position,
        at: Time,
        status: u16,
        audit_id: AuditId,
        answer: &Answer,
    ) {
        let resource = self.resource_of_row(row);
        // The items' keys have no resource yet, since only the request names it.
        let (start, length) = answer.items;
        for index in start as usize..(start + length) as usize {
            self.items[index].key = self.with_resource(self.items[index].key, row);
        }
        let mut operation = self.operations.get(row as usize);
        operation.status = status;
        operation.audit_id = audit_id;
        operation.position = position;
        operation.marks.clear(Marks::OPEN);
        if operation.verb != Verb::Watch {
            operation.ret = at;
        }
        let namespace = self.tables.scopes.values()[operation.scope.index()].namespace;
        put_answer(
            &mut operation,
            answer,
            |tables: &mut Tables, name| KeyId(tables.keys.intern(Key { resource, namespace, name })),
            &mut self.tables,
        );
        self.operations.set(row as usize, operation);
    }

    pub(super) fn resource_of_row(&self, row: u32) -> ResourceId {
        let scope = self.operations.get(row as usize).scope;
        if scope.is_some() { self.tables.scopes.values()[scope.index()].resource } else { ResourceId::NONE }
    }

    pub(super) fn with_resource(&mut self, key: KeyId, row: u32) -> KeyId {
        if !key.is_some() {
            return key;
        }
        let known = self.tables.keys.values()[key.index()];
        if known.resource.is_some() {
            return key;
        }
        KeyId(self.tables.keys.intern(Key { resource: self.resource_of_row(row), ..known }))
    }
}
