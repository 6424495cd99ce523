//! Builds a history from batches: makes names global, joins the lines of captures and the stages of audit events, drops
//! duplicates.
//!
//! Batches must arrive in the order of the inputs; then the result does not depend on how many threads read them.

use super::batch::{Batch, CaptureId, Moved, Tables};
use super::client::Process;
use super::deduplication::{Shown, join};
use super::ids::{sort_by_word, *};
use super::interner::Table;
use super::operation::*;
use super::operations::Operations;
use super::request::Verb;
use super::resource::{self, Placement};
use super::scope::Scope;
use super::store::History;
use super::writers;
use crate::ingest::limits::KEPT_PROBLEMS;
use crate::ingest::{self, FileId, FileSummary, Format, InputFile, Time};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::path::Path;

/// The domains that the user declares.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    /// `--domain 'GROUP/RESOURCE=NAME'`: (group, plural, name); a plural of `*` means the whole group.
    pub overrides: Vec<(String, String, String)>,
}

/// The source of a file, from its own lines or from `--source`.
#[derive(Debug)]
pub(super) struct FileContext {
    pub(super) path: String,
    pub(super) server: Option<String>,
    pub(super) client: Option<String>,
    pub(super) clock: Option<String>,
    /// The capture context in force: process, server and clock of the lines that follow.
    pub(super) process: Process,
    pub(super) capture_server: Symbol,
    pub(super) capture_clock: Symbol,
    pub(super) named: bool,
    pub(super) requests: FxHashMap<CaptureId, u32>,
    /// Row of the only stream of a raw watch file.
    pub(super) raw_stream: Option<u32>,
    pub(super) last_witness: Option<super::Revision>,
    /// Number of problems found when lines of the file were joined.
    problems: u64,
}

/// Collects batches in input order.
#[derive(Debug)]
pub struct Builder {
    pub(super) tables: Tables,
    pub(super) servers: Table<Symbol>,
    pub(super) clocks: Table<Symbol>,
    pub(super) files: Vec<FileContext>,
    pub(super) operations: Operations,
    pub(super) items: Vec<Item>,
    /// (row of the stream's request, delivery), in order of arrival.
    pub(super) deliveries: Vec<(u32, Delivery)>,
    pub(super) ends: FxHashMap<u32, (StreamEnd, Time)>,
    pub(super) witness: Vec<WitnessEvent>,
    pub(super) spans: Vec<WitnessSpan>,
    pub(super) span_start: usize,
    pub(super) cache_reads: Vec<CacheRead>,
    pub(super) brackets: Vec<Bracket>,
    pub(super) annotations: Vec<Annotation>,
    /// Positions of the bodies of captured requests, by row.
    pub(super) request_places: Vec<(u32, ingest::Position)>,
    pub(super) versions: Vec<(ServerId, u32)>,
    pub(super) problems: Vec<ingest::Problem>,
    /// Clocks of audit logs without a declared server.
    unknown: BTreeSet<ClockId>,
    /// Servers that are named by their file alone.
    presumed: BTreeSet<ServerId>,
}

impl Builder {
    /// Creates an empty builder for these inputs.
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
                problems: 0,
            })
            .collect();
        Builder {
            tables: Tables::default(),
            servers: Table::default(),
            clocks: Table::default(),
            files,
            operations: Operations::default(),
            items: Vec::new(),
            deliveries: Vec::new(),
            ends: FxHashMap::default(),
            witness: Vec::new(),
            spans: Vec::new(),
            span_start: 0,
            cache_reads: Vec::new(),
            brackets: Vec::new(),
            annotations: Vec::new(),
            request_places: Vec::new(),
            versions: Vec::new(),
            problems: Vec::new(),
            unknown: BTreeSet::new(),
            presumed: BTreeSet::new(),
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

    /// Server and clock of a file, from `--source`. With a server and no clock, the clock is the server's. With neither, an audit
    /// file counts as one server with a clock of its own.
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

    /// Server and clock of an audit log. Without a declared server, several servers may have written it.
    fn audit_source(&mut self, file: FileId) -> (ServerId, ClockId) {
        let (server, clock) = self.file_source(file, true);
        let context = &self.files[file.0 as usize];
        if context.server.is_none() && context.clock.is_none() {
            self.unknown.insert(clock);
            self.presumed.insert(server);
        }
        (server, clock)
    }

    /// Servers and clocks that the envelopes of a block name. What the user declares for the file prevails.
    fn writers(&mut self, file: FileId, batch: &Batch, moved: &Moved) -> Vec<(ServerId, ClockId)> {
        let context = &self.files[file.0 as usize];
        if context.server.is_some() || context.clock.is_some() {
            return Vec::new();
        }
        let writers = batch.writers.values().iter();
        writers
            .map(|writer| {
                let (server, clock) = (moved.name(writer.server), moved.name(writer.clock));
                (ServerId(self.servers.intern(server)), ClockId(self.clocks.intern(clock)))
            })
            .collect()
    }

    /// Appends one block. `first_line` is the number, from 1, of the block's first line.
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
            operation.page_after = moved.name(operation.page_after);
            operation.page_end = moved.name(operation.page_end);
            operation.items_start += items_base;
            operation
        };
        match batch.format {
            Format::Audit => {
                let writers = self.writers(file, &batch, &moved);
                let is_named = |writer: ServerId| writers.get(writer.index()).is_some();
                let source = match batch.operations.iter().all(|row| is_named(row.server)) {
                    true => (ServerId::NONE, ClockId::NONE),
                    false => self.audit_source(file),
                };
                let of = |writer: ServerId| writers.get(writer.index()).copied().unwrap_or(source);
                for row in &batch.operations {
                    let (server, clock) = of(row.server);
                    let name = self.servers.values()[server.index()];
                    let process = self.on_server(moved.process(ProcessId(row.incarnation.0)), name);
                    let row = place(*row);
                    self.operations.push(Operation { server, clock, incarnation: IncarnationId(process.0), ..row });
                }
                let known = batch.loopback_minors.iter().map(|(writer, minor)| (of(*writer).0, *minor));
                self.versions.extend(known.filter(|(server, _)| server.is_some()));
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
                for &row in &batch.operations {
                    let row = place(row);
                    self.operations.push(Operation { server, clock, incarnation: IncarnationId(process.0), ..row });
                }
            }
            Format::EtcdWatch => self.merge_witness(file, first_line, &batch.witness, &batch.witness_breaks, &moved),
            Format::LegacyAudit | Format::Edn | Format::JepsenLog | Format::Operations | Format::Transactions => {}
            // The lines of these formats become no row here: `history::etcd` reads them.
            Format::EtcdOperations
            | Format::EtcdWatches
            | Format::EtcdTraffic
            | Format::EtcdLog
            | Format::EtcdStore => {}
        }
    }

    /// The clocks of audit logs that several servers may have written.
    pub(super) fn of_several(&self) -> BTreeSet<ClockId> {
        let tables = &self.tables;
        let (keys, resources) = (tables.keys.values(), tables.resources.values());
        let names = writers::Names { keys, resources, names: &tables.names };
        let count = self.clocks.values().len();
        let shown = writers::collect(&self.operations, self.unknown.iter().copied(), count, names);
        let several =
            (0..).map(ClockId).zip(shown).filter(|(_, writers)| writers.as_ref().is_some_and(|w| !w.are_one()));
        several.map(|(clock, _)| clock).collect()
    }

    pub(super) fn placed(&self, mut delivery: Delivery, first_line: u32, moved: &Moved) -> Delivery {
        delivery.position.line += first_line;
        delivery.key = moved.key(delivery.key);
        delivery.uid = moved.name(delivery.uid);
        delivery.attributes = moved.attributes(delivery.attributes);
        delivery
    }

    /// The process of a saved file: the declared client, else no client.
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

    pub(super) fn problem(&mut self, file: FileId, line: u32, expected: &str, found: &str) {
        let context = &mut self.files[file.0 as usize];
        context.problems += 1;
        if self.problems.len() >= KEPT_PROBLEMS && context.problems > 1 {
            return;
        }
        let path = context.path.clone();
        self.problems.push(ingest::Problem {
            file: Some(file),
            path,
            line,
            expected: expected.to_owned(),
            found: found.to_owned(),
        });
    }

    /// Joins, orders and names the collected rows.
    pub fn finish(mut self, domains: &Domains) -> History {
        self.close_span();
        let (processes, names) = (self.tables.processes.values(), &self.tables.names);
        let joined = join(
            &mut self.operations,
            |process| {
                let known = processes[process.index()];
                let said = |name: Symbol| if names.get(name).is_empty() { Symbol::NONE } else { name };
                Process { user: said(known.user), agent: said(known.agent), ..known }
            },
            |server| self.presumed.contains(&server),
            Shown { attributes: self.tables.attributes.values(), items: &self.items },
        );
        // A raw stream's scope is the resource of its objects.
        self.scope_raw_streams();
        let (order, place) = self.order(&joined.gone);
        let mut history = History { problems: std::mem::take(&mut self.problems), ..History::default() };
        let summary = |file: &FileContext| FileSummary {
            path: file.path.clone(),
            problems: file.problems,
            ..FileSummary::default()
        };
        history.files = self.files.iter().map(summary).collect();
        let incarnations = self.incarnations(&mut history, &order);
        self.served(&mut history, &incarnations, &joined.sides);
        history.request_places = std::mem::take(&mut self.request_places)
            .into_iter()
            .chain(joined.bodies)
            .map(|(row, position)| (OperationId(place[row as usize]), position))
            .filter(|(id, _)| id.is_some())
            .collect();
        history.request_places.sort_unstable();
        history.server_records = joined
            .server_records
            .into_iter()
            .map(|(row, position)| (OperationId(place[row as usize]), position))
            .filter(|(id, _)| id.is_some())
            .collect();
        history.server_records.sort_unstable();
        let cache_reads = without_copies(std::mem::take(&mut self.cache_reads), |read| {
            ((read.at, read.clock, read.incarnation, read.decision, read.key, read.revision), read.position.file)
        });
        history.cache_reads = cache_reads
            .into_iter()
            .map(|read| CacheRead {
                incarnation: incarnations.get(&read.incarnation.0).copied().unwrap_or_default(),
                ..read
            })
            .collect();
        let brackets = without_copies(std::mem::take(&mut self.brackets), |bracket| {
            let Bracket { at, clock, incarnation, decision, begins, .. } = *bracket;
            ((at, clock, incarnation, decision, begins), bracket.position.file)
        });
        history.brackets = brackets
            .into_iter()
            .map(|bracket| Bracket {
                incarnation: incarnations.get(&bracket.incarnation.0).copied().unwrap_or_default(),
                ..bracket
            })
            .collect();
        history.annotations = std::mem::take(&mut self.annotations);
        history.operations = std::mem::take(&mut self.operations);
        history.operations.arrange(order);
        history.operations.change_incarnations(|process| incarnations.get(&process.0).copied().unwrap_or_default());
        self.streams(&mut history, &place, &joined.copies);
        history.items = self.items;
        history.witness = self.witness;
        history.witness_spans = self.spans;
        history.resources = self.tables.resources.into_values();
        history.keys = self.tables.keys.into_values();
        history.scopes = self.tables.scopes.into_values();
        history.attributes = self.tables.attributes.into_values();
        history.parts = self.tables.parts;
        let names = self.tables.names;
        let mut domain_table = Table::default();
        history.placements = history
            .resources
            .iter()
            .map(|r| {
                let (group, plural) = (names.get(r.group).to_owned(), names.get(r.plural).to_owned());
                let said = domains.overrides.iter().rev().find(|(g, p, _)| *g == group && (*p == plural || p == "*"));
                let domain =
                    said.map_or_else(|| resource::default_domain(&group, &plural).to_owned(), |(_, _, d)| d.clone());
                // The user declared this domain, so no override is possible.
                let overridable = said.is_none() && resource::is_built_in(&group);
                Placement { domain: DomainId(domain_table.intern(domain)), overridable }
            })
            .collect();
        history.domains = domain_table.into_values();
        for (server, minor) in std::mem::take(&mut self.versions) {
            if history.server_versions.iter().all(|(s, _)| *s != server) {
                history.server_versions.push((server, minor));
            }
        }
        history.servers = self.servers.into_values();
        history.clocks = self.clocks.into_values();
        history.names = names;
        history
    }

    fn scope_raw_streams(&mut self) {
        let mut scopes: FxHashMap<u32, Scope> = FxHashMap::default();
        let empty = self.tables.names.intern("");
        for (row, delivery) in self.deliveries.iter().filter(|(_, d)| d.key.is_some()) {
            if self.operations.get(*row as usize).scope.is_some() {
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
            let scope = ScopeId(self.tables.scopes.intern(scope));
            self.operations.change(row as usize, |operation| operation.scope = scope);
        }
    }

    /// The rows that stay, in order of invoke time then position, and the new number of each old row.
    fn order(&self, gone: &FxHashMap<u32, u32>) -> (Vec<u32>, Vec<u32>) {
        let scopes = self.tables.scopes.values();
        // A table without rows, or rows without objects, names no resource.
        let of_resource = |o: &Operation| o.scope.is_some() && scopes[o.scope.index()].resource.is_some();
        let useful = |o: &Operation| of_resource(o) && !o.marks.has(Marks::NO_RESOURCE);
        let mut order: Vec<u32> = (0..self.operations.len() as u32)
            .filter(|r| !gone.contains_key(r) && useful(&self.operations.get(*r as usize)))
            .collect();
        let invoke = |r: u32| self.operations.get(r as usize).invoke;
        sort_by_word(&mut order, invoke, |r| (self.operations.get(r as usize).position, r));
        let mut place = vec![u32::MAX; self.operations.len()];
        for (at, &row) in order.iter().enumerate() {
            place[row as usize] = at as u32;
        }
        for (&from, &to) in gone {
            place[from as usize] = place[to as usize];
        }
        (order, place)
    }

    /// Keeps the deliveries of one file where several files hold the same stream: the first file that has most of them.
    fn drop_copied_deliveries(&mut self, copies: &FxHashMap<u32, u32>) {
        if copies.is_empty() {
            return;
        }
        let original = |row: u32| copies.get(&row).copied().unwrap_or(row);
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for (row, _) in &self.deliveries {
            *counts.entry(*row).or_default() += 1;
        }
        let mut best: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
        for (row, count) in counts {
            let known = best.entry(original(row)).or_insert((row, count));
            if count > known.1 {
                *known = (row, count);
            }
        }
        self.deliveries.retain(|(row, _)| best.get(&original(*row)).is_some_and(|(kept, _)| kept == row));
    }

    fn streams(&mut self, history: &mut History, place: &[u32], copies: &FxHashMap<u32, u32>) {
        self.drop_copied_deliveries(copies);
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
                history.streams.push(stream(row, ended.remove(&row)));
            }
            history.deliveries.push(delivery);
            if let Some(stream) = history.streams.last_mut() {
                stream.deliveries_len += 1;
            }
        }
        // A watch without deliveries is a stream too: its silence is evidence.
        let known = history.streams.len();
        for (id, operation) in history.operations.by_id() {
            let recorded = operation.verb == Verb::Watch && operation.marks.has(Marks::CLIENT_SIDE);
            if recorded && history.streams[..known].binary_search_by_key(&id, |s| s.operation).is_err() {
                history.streams.push(stream(id.0, ended.remove(&id.0)));
            }
        }
        history.streams.sort_unstable_by_key(|s| s.operation);
        let mut delivered = 0;
        for stream in &mut history.streams {
            stream.deliveries_start = delivered;
            delivered += stream.deliveries_len;
        }
        for (index, stream) in history.streams.iter_mut().enumerate() {
            stream.id = StreamId(index as u32);
            let mut operation = history.operations.get(stream.operation.index());
            if stream.ended.is_known() && !operation.ret.is_known() {
                operation.ret = stream.ended;
                history.operations.set(stream.operation.index(), operation);
            }
            // A process lives as long as its streams.
            let last = history.deliveries[stream.deliveries_start as usize..][..stream.deliveries_len as usize].last();
            let seen = last.map(|d| d.at).filter(|at| at.is_known());
            let ended = if operation.ret.is_known() { Some(operation.ret) } else { seen };
            if let Some(life) = history.incarnations.get_mut(operation.incarnation.index())
                && life.clock == operation.clock
                && let Some(ended) = ended
                && (ended > life.span.1 || !life.span.1.is_known())
            {
                life.span.1 = ended;
            }
        }
    }
}

/// Removes records that another file repeats for the same process at the same time, as copied or joined captures do.
fn without_copies<T, K: Hash + Eq>(mut rows: Vec<T>, of: impl Fn(&T) -> (K, FileId)) -> Vec<T> {
    let mut first: FxHashMap<K, FileId> = FxHashMap::default();
    rows.retain(|row| {
        let (said, file) = of(row);
        *first.entry(said).or_insert(file) == file
    });
    rows
}

pub(super) const EMPTY: Operation = Operation {
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
    page_after: Symbol::NONE,
    page_end: Symbol::NONE,
    marks: Marks(0),
    status: 0,
    verb: Verb::Other,
    asked: super::Asked::Unset,
    subresource: Subresource::None,
};

fn stream(row: u32, ended: Option<(StreamEnd, Time)>) -> Stream {
    let (end, ended) = ended.unwrap_or_default();
    Stream { id: StreamId::NONE, operation: OperationId(row), deliveries_start: 0, deliveries_len: 0, end, ended }
}

/// The file name of a path, for labels.
pub fn short_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|n| n.to_str()).unwrap_or(path)
}
