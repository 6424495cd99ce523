//! Batches to a history: names made global, captures put together, audit stages joined, duplicates dropped.

use super::batch::{Answer, Batch, CaptureId, CapturePart, Moved, Tables, put_answer};
use super::client::{self, Incarnation, Process, ToldBy};
use super::ids::*;
use super::interner::Table;
use super::operation::*;
use super::request::Verb;
use super::resource::{self, Key, Placement};
use super::scope::Scope;
use super::store::History;
use crate::ingest::{self, FileId, Format, InputFile, Progress, ReadOptions, Time};
use rustc_hash::FxHashMap;
use std::path::Path;

/// What the user says about domains and processes.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    /// `--domain 'GROUP/RESOURCE=NAME'`: (group, plural, name); a plural of `*` means the whole group.
    pub overrides: Vec<(String, String, String)>,
}

/// Reads inputs into a history.
pub fn load(inputs: Vec<InputFile>, options: &ReadOptions, domains: &Domains, progress: &dyn Progress) -> History {
    let mut builder = Builder::new(&inputs);
    let reading = ingest::read(
        &inputs,
        options,
        progress,
        |file, format| Batch::new(file.id, format),
        |file, first_line, batch| builder.merge(file, first_line, batch),
    );
    let mut history = builder.finish(domains);
    history.inputs = inputs;
    history.files = reading.files;
    history.problems.splice(0..0, reading.problems);
    history
}

/// What a file says, or the user said of it.
#[derive(Clone, Debug)]
struct FileContext {
    path: String,
    server: Option<String>,
    client: Option<String>,
    clock: Option<String>,
    /// The capture context in force: process, server, clock.
    process: Process,
    capture_server: Symbol,
    capture_clock: Symbol,
    named: bool,
    requests: FxHashMap<CaptureId, u32>,
    /// Row of the one stream that a raw watch file is.
    raw_stream: Option<u32>,
    last_witness: Option<super::Revision>,
}

/// Collects batches in input order.
#[derive(Debug)]
pub struct Builder {
    tables: Tables,
    servers: Table<Symbol>,
    clocks: Table<Symbol>,
    files: Vec<FileContext>,
    operations: Vec<Operation>,
    items: Vec<Item>,
    /// (row of the stream's request, delivery), in order of arrival.
    deliveries: Vec<(u32, Delivery)>,
    ends: FxHashMap<u32, (StreamEnd, Time)>,
    witness: Vec<WitnessEvent>,
    spans: Vec<WitnessSpan>,
    span_start: usize,
    cache_reads: Vec<CacheRead>,
    versions: Vec<(FileId, u32)>,
    problems: Vec<ingest::Problem>,
}

impl Builder {
    /// For these inputs.
    pub fn new(inputs: &[InputFile]) -> Builder {
        let files = inputs
            .iter()
            .map(|input| FileContext {
                path: input.shown.clone(),
                server: input.source.server.clone(),
                client: input.source.client.clone(),
                clock: input.source.clock.clone(),
                process: Process::default(),
                capture_server: Symbol::NONE,
                capture_clock: Symbol::NONE,
                named: false,
                requests: FxHashMap::default(),
                raw_stream: None,
                last_witness: None,
            })
            .collect();
        Builder {
            tables: Tables::default(),
            servers: Table::default(),
            clocks: Table::default(),
            files,
            operations: Vec::new(),
            items: Vec::new(),
            deliveries: Vec::new(),
            ends: FxHashMap::default(),
            witness: Vec::new(),
            spans: Vec::new(),
            span_start: 0,
            cache_reads: Vec::new(),
            versions: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn server(&mut self, name: &str) -> ServerId {
        let symbol = self.tables.names.intern(name);
        ServerId(self.servers.intern(symbol))
    }

    fn clock(&mut self, name: &str) -> ClockId {
        let symbol = self.tables.names.intern(name);
        ClockId(self.clocks.intern(symbol))
    }

    /// Server and clock of a file: `--source`; with a server and no clock, the clock is the server's; without either, an audit
    /// file is a server and a clock of its own.
    fn file_source(&mut self, file: FileId, audit: bool) -> (ServerId, ClockId) {
        let context = &self.files[file.0 as usize];
        let (path, server, clock) = (context.path.clone(), context.server.clone(), context.clock.clone());
        let clock = clock.or_else(|| server.clone()).unwrap_or_else(|| path.clone());
        let server = match server {
            Some(server) => self.server(&server),
            None if audit => self.server(&path),
            None => ServerId::NONE,
        };
        (server, self.clock(&clock))
    }

    /// Takes in one block. `first_line` is the number, from 1, of the block's first line.
    pub fn merge(&mut self, file: FileId, first_line: u32, batch: Batch) {
        let moved = self.tables.absorb(&batch.tables);
        let items_base = self.items.len() as u32;
        self.items.extend(batch.items.iter().map(|item| Item {
            key: moved.key(item.key),
            uid: moved.name(item.uid),
            attributes: moved.attributes(item.attributes),
            revision: item.revision,
        }));
        let place = |mut operation: Operation| {
            operation.position.line += first_line;
            operation.audit_id = moved.audit_id(operation.audit_id);
            operation.scope = moved.scope(operation.scope);
            operation.key = moved.key(operation.key);
            operation.request_uid = moved.name(operation.request_uid);
            operation.answer_uid = moved.name(operation.answer_uid);
            operation.attributes = moved.attributes(operation.attributes);
            operation.decision = moved.name(operation.decision);
            operation.items_start += items_base;
            operation
        };
        match batch.format {
            Format::Audit => {
                let (server, clock) = self.file_source(file, true);
                let name = self.servers.values()[server.index()];
                for row in &batch.operations {
                    let process = self.on_server(moved.process(ProcessId(row.incarnation.0)), name);
                    let row = place(*row);
                    self.operations.push(Operation { server, clock, incarnation: IncarnationId(process.0), ..row });
                }
                if let Some(minor) = batch.loopback_minor {
                    self.versions.push((file, minor));
                }
            }
            Format::Capture => self.merge_capture(file, first_line, batch.capture, &moved, items_base, place),
            Format::Watch => {
                let row = self.raw_stream(file, first_line);
                for delivery in batch.deliveries {
                    let delivery = self.placed(delivery, first_line, &moved);
                    self.deliveries.push((row, delivery));
                }
            }
            Format::List => {
                let (server, clock) = self.file_source(file, false);
                let process = self.file_process(file);
                self.operations.extend(batch.operations.iter().map(|&row| Operation {
                    server,
                    clock,
                    incarnation: IncarnationId(process.0),
                    ..place(row)
                }));
            }
            Format::EtcdWatch => self.merge_witness(file, first_line, &batch.witness, &batch.witness_breaks, &moved),
            Format::LegacyAudit => {}
        }
    }

    /// An API server's own loopback client is a process of that server: its user and address are the same on every one.
    fn on_server(&mut self, process: ProcessId, server: Symbol) -> ProcessId {
        let known = self.tables.processes.values()[process.index()];
        if self.tables.names.get(known.user) != "system:apiserver" {
            return process;
        }
        ProcessId(self.tables.processes.intern(Process { clock: server, ..known }))
    }

    fn placed(&self, mut delivery: Delivery, first_line: u32, moved: &Moved) -> Delivery {
        delivery.position.line += first_line;
        delivery.key = moved.key(delivery.key);
        delivery.uid = moved.name(delivery.uid);
        delivery.attributes = moved.attributes(delivery.attributes);
        delivery
    }

    /// The process of a saved file: what `--source` says, else nobody in particular.
    fn file_process(&mut self, file: FileId) -> ProcessId {
        let context = &self.files[file.0 as usize];
        let (client, path) = (context.client.clone(), context.path.clone());
        let process = Process {
            user: self.tables.optional(client.as_deref().unwrap_or("")),
            label: self.tables.names.intern(&path),
            ..Process::default()
        };
        ProcessId(self.tables.processes.intern(process))
    }

    fn raw_stream(&mut self, file: FileId, first_line: u32) -> u32 {
        if let Some(row) = self.files[file.0 as usize].raw_stream {
            return row;
        }
        let (server, clock) = self.file_source(file, false);
        let process = self.file_process(file);
        let row = self.operations.len() as u32;
        self.operations.push(Operation {
            position: ingest::Position { file, line: first_line, offset: 0 },
            server,
            clock,
            incarnation: IncarnationId(process.0),
            marks: Marks(Marks::CLIENT_SIDE.0 | Marks::SAVED.0),
            status: 200,
            verb: Verb::Watch,
            asked: super::Asked::Unrecorded,
            ..EMPTY
        });
        self.files[file.0 as usize].raw_stream = Some(row);
        row
    }

    fn merge_capture(
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
                    if self.files[file.0 as usize].requests.insert(move_id(id), row).is_some() {
                        self.problem(
                            file,
                            placed.position.line,
                            "a request id that is new in its file",
                            "an id met before",
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
                    delivery.key = self.with_resource(delivery.key, row);
                    self.deliveries.push((row, delivery));
                }
                CapturePart::End { id, at, end } => {
                    if let Some(&row) = self.files[file.0 as usize].requests.get(&move_id(id)) {
                        self.ends.insert(row, (end, at));
                    }
                }
                CapturePart::Read(read) => {
                    let context = &self.files[file.0 as usize];
                    let (process, clock) = (context.process, context.capture_clock);
                    let process = ProcessId(self.tables.processes.intern(process));
                    self.cache_reads.push(CacheRead {
                        position: ingest::Position { line: read.position.line + first_line, ..read.position },
                        clock: ClockId(self.clocks.intern(clock)),
                        incarnation: IncarnationId(process.0),
                        decision: moved.name(read.decision),
                        key: moved.key(read.key),
                        uid: moved.name(read.uid),
                        ..read
                    });
                }
            }
        }
    }

    /// Puts a capture line's context in force; what it leaves out comes from `--source`, then from the file.
    fn capture_context(&mut self, file: FileId, client: Symbol, incarnation: Symbol, server: Symbol, clock: Symbol) {
        let context = self.files[file.0 as usize].clone();
        let names = &mut self.tables.names;
        let said = |names: &super::interner::Interner, s: Symbol| (!names.get(s).is_empty()).then_some(s);
        let client = said(names, client).or_else(|| context.client.as_deref().map(|c| names.intern(c)));
        let server = said(names, server).or_else(|| context.server.as_deref().map(|s| names.intern(s)));
        let clock = said(names, clock)
            .or_else(|| context.clock.as_deref().map(|c| names.intern(c)))
            .unwrap_or_else(|| names.intern(&context.path));
        // Without a label the recording itself is the process: one recorder, one process.
        let label = said(names, incarnation).unwrap_or_else(|| names.intern(&context.path));
        let context = &mut self.files[file.0 as usize];
        context.process = Process { user: client.unwrap_or(Symbol::NONE), label, clock, ..Process::default() };
        context.capture_server = server.unwrap_or(Symbol::NONE);
        context.capture_clock = clock;
        context.named = true;
    }

    fn respond(
        &mut self,
        row: u32,
        position: ingest::Position,
        at: Time,
        status: u16,
        audit_id: AuditId,
        answer: &Answer,
    ) {
        let resource = self.resource_of_row(row);
        // The items' keys lacked the resource: only the request says it.
        let (start, length) = answer.items;
        for index in start as usize..(start + length) as usize {
            self.items[index].key = self.with_resource(self.items[index].key, row);
        }
        let operation = &mut self.operations[row as usize];
        operation.status = status;
        operation.audit_id = audit_id;
        operation.position = position;
        operation.marks.clear(Marks::OPEN);
        if operation.verb != Verb::Watch {
            operation.ret = at;
        }
        let namespace = self.tables.scopes.values()[operation.scope.index()].namespace;
        put_answer(
            operation,
            answer,
            |tables: &mut Tables, name| KeyId(tables.keys.intern(Key { resource, namespace, name })),
            &mut self.tables,
        );
    }

    fn resource_of_row(&self, row: u32) -> ResourceId {
        let scope = self.operations[row as usize].scope;
        if scope.is_some() { self.tables.scopes.values()[scope.index()].resource } else { ResourceId::NONE }
    }

    fn with_resource(&mut self, key: KeyId, row: u32) -> KeyId {
        if !key.is_some() {
            return key;
        }
        let known = self.tables.keys.values()[key.index()];
        if known.resource.is_some() {
            return key;
        }
        KeyId(self.tables.keys.intern(Key { resource: self.resource_of_row(row), ..known }))
    }

    fn problem(&mut self, file: FileId, line: u32, expected: &str, found: &str) {
        let path = self.files[file.0 as usize].path.clone();
        self.problems.push(ingest::Problem {
            file: Some(file),
            path,
            line,
            expected: expected.to_owned(),
            found: found.to_owned(),
        });
    }

    fn merge_witness(
        &mut self,
        file: FileId,
        first_line: u32,
        events: &[WitnessEvent],
        breaks: &[usize],
        moved: &Moved,
    ) {
        for (index, event) in events.iter().enumerate() {
            let event = WitnessEvent {
                position: ingest::Position { line: event.position.line + first_line, ..event.position },
                key: moved.key(event.key),
                uid: moved.name(event.uid),
                attributes: moved.attributes(event.attributes),
                ..*event
            };
            let last = self.files[file.0 as usize].last_witness;
            if breaks.contains(&index) || last.is_none_or(|last| event.revision < last) {
                self.close_span();
                self.span_start = self.witness.len();
            }
            self.files[file.0 as usize].last_witness = Some(event.revision);
            self.witness.push(event);
        }
    }

    /// Ends the present stretch of witness events.
    ///
    /// `etcdctl watch --prefix P` shows P only, and P is not recorded: a stretch with objects of two resources is taken to show
    /// everything below the registry, one with a single resource only that resource (and only its namespace if all are in one).
    fn close_span(&mut self) {
        let events = &self.witness[self.span_start.min(self.witness.len())..];
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        let keys = self.tables.keys.values();
        let mut seen = events.iter().filter(|e| e.key.is_some()).map(|e| keys[e.key.index()]);
        let Some(one) = seen.next() else { return };
        let (mut resources, mut namespaces) = (false, false);
        for key in seen {
            resources |= key.resource != one.resource;
            namespaces |= key.namespace != one.namespace;
        }
        let (after, through, position) =
            (super::Revision::new(first.revision.value().saturating_sub(1)), last.revision, first.position);
        let scope = if resources {
            ScopeId::NONE
        } else {
            let empty = self.tables.names.intern("");
            let namespace = if namespaces { empty } else { one.namespace };
            let scope =
                Scope { resource: one.resource, namespace, name: empty, labels: empty, fields: empty, shard: empty };
            ScopeId(self.tables.scopes.intern(scope))
        };
        self.spans.push(WitnessSpan { after, through, scope, position });
    }

    /// Joins, orders and names what was collected.
    pub fn finish(mut self, domains: &Domains) -> History {
        self.close_span();
        let rows = std::mem::take(&mut self.operations);
        let (rows, gone) = join(rows);
        self.operations = rows;
        // A raw stream's scope is the resource of its objects.
        self.scope_raw_streams();
        let (order, place) = self.order(&gone);
        let mut history = History { problems: std::mem::take(&mut self.problems), ..History::default() };
        let incarnations = self.incarnations(&mut history, &order);
        let processes = std::mem::take(&mut self.cache_reads);
        history.cache_reads = processes
            .into_iter()
            .map(|read| CacheRead {
                incarnation: incarnations.get(&read.incarnation.0).copied().unwrap_or_default(),
                ..read
            })
            .collect();
        history.operations = order
            .iter()
            .map(|&row| {
                let mut operation = self.operations[row as usize];
                operation.incarnation = incarnations.get(&operation.incarnation.0).copied().unwrap_or_default();
                operation
            })
            .collect();
        self.operations = Vec::new();
        self.streams(&mut history, &place);
        history.items = self.items;
        history.witness = self.witness;
        history.witness_spans = self.spans;
        history.resources = self.tables.resources.values().to_vec();
        history.keys = self.tables.keys.values().to_vec();
        history.scopes = self.tables.scopes.values().to_vec();
        history.attributes = self.tables.attributes.values().to_vec();
        let mut names = self.tables.names;
        let mut domain_table = Table::default();
        history.placements = history
            .resources
            .iter()
            .map(|r| {
                let (group, plural) = (names.get(r.group).to_owned(), names.get(r.plural).to_owned());
                let said = domains.overrides.iter().rev().find(|(g, p, _)| *g == group && (*p == plural || p == "*"));
                let domain =
                    said.map_or_else(|| resource::default_domain(&group, &plural).to_owned(), |(_, _, d)| d.clone());
                // What the user placed is placed.
                let overridable = said.is_none() && resource::is_built_in(&group);
                Placement { domain: DomainId(domain_table.intern(domain)), overridable }
            })
            .collect();
        history.domains = domain_table.values().to_vec();
        let versions = std::mem::take(&mut self.versions);
        for (file, minor) in versions {
            let context = &self.files[file.0 as usize];
            let name = names.intern(context.server.as_deref().unwrap_or(&context.path));
            let server = ServerId(self.servers.intern(name));
            if history.server_versions.iter().all(|(s, _)| *s != server) {
                history.server_versions.push((server, minor));
            }
        }
        history.servers = self.servers.values().to_vec();
        history.clocks = self.clocks.values().to_vec();
        history.names = names;
        history
    }

    fn scope_raw_streams(&mut self) {
        let mut scopes: FxHashMap<u32, Scope> = FxHashMap::default();
        let empty = self.tables.names.intern("");
        for (row, delivery) in self.deliveries.iter().filter(|(_, d)| d.key.is_some()) {
            if self.operations[*row as usize].scope.is_some() {
                continue;
            }
            let key = self.tables.keys.values()[delivery.key.index()];
            scopes.entry(*row).or_insert(Scope {
                resource: key.resource,
                namespace: empty,
                name: empty,
                labels: empty,
                fields: empty,
                shard: empty,
            });
        }
        for (row, scope) in scopes {
            self.operations[row as usize].scope = ScopeId(self.tables.scopes.intern(scope));
        }
    }

    /// Rows that stay, in order of invoke time then place; and where each row went.
    fn order(&self, gone: &FxHashMap<u32, u32>) -> (Vec<u32>, Vec<u32>) {
        let useful = |o: &Operation| o.scope.is_some() && !o.marks.has(Marks::NO_RESOURCE);
        let mut order: Vec<u32> = (0..self.operations.len() as u32)
            .filter(|r| !gone.contains_key(r) && useful(&self.operations[*r as usize]))
            .collect();
        order.sort_unstable_by_key(|&r| {
            let o = &self.operations[r as usize];
            (o.invoke, o.position, r)
        });
        let mut place = vec![u32::MAX; self.operations.len()];
        for (at, &row) in order.iter().enumerate() {
            place[row as usize] = at as u32;
        }
        for (&from, &to) in gone {
            place[from as usize] = place[to as usize];
        }
        (order, place)
    }

    fn streams(&mut self, history: &mut History, place: &[u32]) {
        let mut rows: Vec<(u32, Delivery)> = std::mem::take(&mut self.deliveries)
            .into_iter()
            .map(|(row, d)| (place[row as usize], d))
            .filter(|(row, _)| *row != u32::MAX)
            .collect();
        rows.sort_by_key(|(row, _)| *row);
        let mut ended: FxHashMap<u32, (StreamEnd, Time)> =
            self.ends.iter().map(|(row, end)| (place[*row as usize], *end)).collect();
        history.deliveries.reserve_exact(rows.len());
        for (row, delivery) in rows {
            if history.streams.last().is_none_or(|s| s.operation != OperationId(row)) {
                history.streams.push(stream(row, history.deliveries.len(), ended.remove(&row)));
            }
            history.deliveries.push(delivery);
            if let Some(stream) = history.streams.last_mut() {
                stream.deliveries_len += 1;
            }
        }
        // Streams that delivered nothing are streams too: what they did not deliver counts.
        for (at, operation) in history.operations.iter().enumerate() {
            let client_side = operation.marks.has(Marks::CLIENT_SIDE);
            if operation.verb == Verb::Watch
                && client_side
                && history.streams.binary_search_by_key(&OperationId(at as u32), |s| s.operation).is_err()
            {
                let new = stream(at as u32, 0, ended.remove(&(at as u32)));
                let index = history.streams.partition_point(|s| s.operation < new.operation);
                history.streams.insert(index, new);
            }
        }
        for (index, stream) in history.streams.iter_mut().enumerate() {
            stream.id = StreamId(index as u32);
            let operation = &mut history.operations[stream.operation.index()];
            if stream.ended.is_known() && !operation.ret.is_known() {
                operation.ret = stream.ended;
            }
        }
    }

    /// Tells process lives apart. Returns the incarnation of each process that some operation has.
    fn incarnations(&mut self, history: &mut History, order: &[u32]) -> FxHashMap<u32, IncarnationId> {
        let mut clients: Table<Symbol> = Table::default();
        let mut lives: FxHashMap<(Symbol, ToldBy, String), IncarnationId> = FxHashMap::default();
        let mut of_process = FxHashMap::default();
        for &row in order {
            let operation = &self.operations[row as usize];
            let process = operation.incarnation.0;
            let id = match of_process.get(&process) {
                Some(&id) => id,
                None => {
                    let evidence = self.tables.processes.values()[process as usize];
                    let saved = operation.marks.has(Marks::SAVED);
                    let (told_by, label, place, program) = self.tell(&evidence, saved);
                    let client = ClientId(clients.intern(evidence.user));
                    let id = *lives.entry((evidence.user, told_by, label.clone())).or_insert_with(|| {
                        let id = IncarnationId(history.incarnations.len() as u32);
                        let span = (operation.invoke, operation.invoke);
                        history.incarnations.push(Incarnation {
                            client,
                            label: label.clone(),
                            told_by,
                            place,
                            program,
                            span,
                            clock: operation.clock,
                        });
                        id
                    });
                    of_process.insert(process, id);
                    id
                }
            };
            let life = &mut history.incarnations[id.index()];
            // Spans of one clock only: another clock's times would stretch them by the offset.
            if operation.clock == life.clock {
                if operation.invoke.is_known() && (operation.invoke < life.span.0 || !life.span.0.is_known()) {
                    life.span.0 = operation.invoke;
                }
                let last = if operation.ret.is_known() { operation.ret } else { operation.invoke };
                if last.is_known() && (last > life.span.1 || !life.span.1.is_known()) {
                    life.span.1 = last;
                }
            }
        }
        history.clients = clients.values().to_vec();
        of_process
    }

    fn tell(&self, p: &Process, saved: bool) -> (ToldBy, String, Option<String>, String) {
        let text = |s: Symbol| self.tables.names.get(s);
        let program = client::program(text(p.agent)).to_owned();
        if saved {
            return (ToldBy::File, text(p.label).to_owned(), None, program);
        }
        if p.label.is_some() {
            let place = format!("{} recorded on clock {}", client::label_stem(text(p.label)), text(p.clock));
            return (ToldBy::CaptureLabel, text(p.label).to_owned(), Some(place), program);
        }
        if !text(p.pod_uid).is_empty() {
            let place = client::pod_place(text(p.pod_name), text(p.node_name), &program);
            return (ToldBy::PodUid, text(p.pod_uid).to_owned(), place, program);
        }
        // A node's own identity is its place; any other user is placed by its address.
        let place = text(p.user).strip_prefix("system:node:").map(|node| format!("{program} on node {node}"));
        let mut label = format!("{} from {}", text(p.agent), text(p.address));
        if p.clock.is_some() {
            label += &format!(" inside {}", text(p.clock));
        }
        let told_by = if client::is_command_line(&program) { ToldBy::CommandLine } else { ToldBy::Address };
        let place = place.or_else(|| Some(format!("{program} at {}{}", text(p.address), text(p.clock))));
        (told_by, label, place, program)
    }
}

const EMPTY: Operation = Operation {
    position: ingest::Position { file: FileId(0), line: 0, offset: 0 },
    audit_id: AuditId::None,
    invoke: Time::UNKNOWN,
    ret: Time::UNKNOWN,
    asked_revision: super::Revision::NONE,
    answered: super::Revision::NONE,
    clock: ClockId::NONE,
    server: ServerId::NONE,
    incarnation: IncarnationId::NONE,
    scope: ScopeId::NONE,
    key: KeyId::NONE,
    request_uid: Symbol::NONE,
    answer_uid: Symbol::NONE,
    attributes: AttributesId::NONE,
    items_start: 0,
    items_len: 0,
    decision: Symbol::NONE,
    marks: Marks(0),
    status: 0,
    verb: Verb::Other,
    asked: super::Asked::Unset,
    subresource: Subresource::None,
};

fn stream(row: u32, start: usize, ended: Option<(StreamEnd, Time)>) -> Stream {
    let (end, ended) = ended.unwrap_or_default();
    Stream {
        id: StreamId::NONE,
        operation: OperationId(row),
        deliveries_start: start as u32,
        deliveries_len: 0,
        end,
        ended,
    }
}

/// Joins the stages of audit events, drops events met twice, and puts the two sides of one request together.
///
/// Two audit events are the same iff server, audit id, stage, both timestamps, verb and URI agree; audit ids alone are not
/// unique (a client may send one). Returns the rows and, for every row that went into another, which one.
fn join(mut rows: Vec<Operation>) -> (Vec<Operation>, FxHashMap<u32, u32>) {
    let mut gone = FxHashMap::default();
    let mut index: Vec<u32> = (0..rows.len() as u32).filter(|&r| rows[r as usize].audit_id != AuditId::None).collect();
    let group = |o: &Operation| (o.audit_id, o.verb, o.scope, o.marks.has(Marks::CLIENT_SIDE), o.server, o.invoke);
    index.sort_unstable_by_key(|&r| {
        (group(&rows[r as usize]), rows[r as usize].marks.has(Marks::OPEN), rows[r as usize].ret, r)
    });
    let mut at = 0;
    while at < index.len() {
        let first = index[at];
        let mut end = at + 1;
        while end < index.len() && group(&rows[index[end] as usize]) == group(&rows[first as usize]) {
            end += 1;
        }
        if !rows[first as usize].marks.has(Marks::CLIENT_SIDE) {
            let mut kept = first;
            for &row in &index[at + 1..end] {
                let (k, r) = (rows[kept as usize], rows[row as usize]);
                // A stage before the answer goes into the answer; an answer met twice counts once.
                if r.marks.has(Marks::OPEN)
                    || (r.ret == k.ret && r.status == k.status && r.asked_revision == k.asked_revision)
                {
                    gone.insert(row, kept);
                } else {
                    kept = row;
                }
            }
        }
        at = end;
    }
    pair_sides(&mut rows, &index, &mut gone);
    (rows, gone)
}

/// Finds the server's record of a request that a client recorded too. On one clock the two become one operation with the
/// server's narrower interval; on two clocks both stay, the server's as a shadow that bounds clocks and proves commits.
fn pair_sides(rows: &mut [Operation], index: &[u32], gone: &mut FxHashMap<u32, u32>) {
    let mut by_id: FxHashMap<(AuditId, Verb), Vec<u32>> = FxHashMap::default();
    for &row in index {
        let o = &rows[row as usize];
        if !o.marks.has(Marks::CLIENT_SIDE) && !gone.contains_key(&row) {
            by_id.entry((o.audit_id, o.verb)).or_default().push(row);
        }
    }
    if by_id.is_empty() {
        return;
    }
    let mut taken: FxHashMap<u32, ()> = FxHashMap::default();
    for &row in index {
        let client = rows[row as usize];
        if !client.marks.has(Marks::CLIENT_SIDE) {
            continue;
        }
        let Some(candidates) = by_id.get(&(client.audit_id, client.verb)) else { continue };
        let fits = |server: &Operation| {
            let same_key = server.key == client.key || !server.key.is_some() || !client.key.is_some();
            let same_server = server.server == client.server || !server.server.is_some() || !client.server.is_some();
            // Audit times are cut to microseconds, so the server may seem to begin up to one early.
            let inside = server.clock != client.clock
                || (server.invoke.0 >= client.invoke.0.saturating_sub(1_000)
                    && (client.ret >= server.ret || client.verb == Verb::Watch));
            server.scope == client.scope && same_key && same_server && inside
        };
        // Servers of different names for one apiserver are usual (no --source): then an id that occurs once is enough.
        let loose = |server: &Operation| server.scope == client.scope && candidates.len() == 1;
        let free = |r: &&u32| !taken.contains_key(*r);
        let fitting: Vec<u32> = candidates.iter().filter(free).filter(|&&r| fits(&rows[r as usize])).copied().collect();
        let found = match fitting.as_slice() {
            [one] => Some(*one),
            [] => candidates
                .iter()
                .filter(free)
                .find(|&&r| rows[r as usize].clock != client.clock && loose(&rows[r as usize]))
                .copied(),
            _ => None,
        };
        let Some(found) = found else { continue };
        taken.insert(found, ());
        let server = rows[found as usize];
        let merged = &mut rows[row as usize];
        merged.marks.set(Marks::BOTH_SIDES);
        if !merged.answered.is_some() && !merged.marks.has(Marks::ANSWER_BODY) {
            merged.answered = server.answered;
            merged.answer_uid = server.answer_uid;
            merged.items_start = server.items_start;
            merged.items_len = server.items_len;
            merged.marks.set(Marks(
                server.marks.0
                    & (Marks::ANSWER_BODY.0
                        | Marks::LIST_ANSWER.0
                        | Marks::MORE_PAGES.0
                        | Marks::REMOVES.0
                        | Marks::TERMINATING.0
                        | Marks::STATUS_ANSWER.0),
            ));
        }
        if !merged.request_uid.is_some() {
            merged.request_uid = server.request_uid;
        }
        if !merged.key.is_some() {
            merged.key = server.key;
        }
        if !merged.server.is_some() {
            merged.server = server.server;
        }
        if server.clock == merged.clock {
            merged.invoke = merged.invoke.max(server.invoke);
            if server.ret.is_known() && merged.verb != Verb::Watch {
                merged.ret = merged.ret.min(server.ret);
            }
            gone.insert(found, row);
        } else {
            rows[found as usize].marks.set(Marks(Marks::SHADOW.0 | Marks::BOTH_SIDES.0));
        }
    }
}

/// Reads a file's own name out of a path, for labels.
pub fn short_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|n| n.to_str()).unwrap_or(path)
}
