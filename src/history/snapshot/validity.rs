//! Checks an unpacked history before any other code uses it: ids name existing rows, ranges lie in their tables, and tables have
//! the order that the builders leave. Later stages rely on this without checks of their own, so every new table needs its check
//! here.

use std::ops::Range;

use crate::container::Refusal;
use crate::history::Nature;
use crate::history::calls::{Call, Calls};
use crate::history::etcd::{self, Recording, Request, Span, Step, Txn};
use crate::history::operation::*;
use crate::history::store::History;
use crate::history::{Attributes, Incarnation, Key, KeyId, Scope, Symbol, Verb};
use crate::ingest::{Position, Problem};

/// The number of rows of a table.
#[derive(Clone, Copy, Debug)]
struct Extent(usize);

impl Extent {
    fn of<T>(table: &[T]) -> Extent {
        Extent(table.len())
    }

    /// Whether the row exists.
    fn has(self, row: usize) -> bool {
        row < self.0
    }

    /// Whether the row exists or is none.
    fn may(self, row: usize) -> bool {
        row < self.0 || row == u32::MAX as usize
    }

    /// Whether all rows of the range exist.
    fn spans(self, start: u32, length: u32) -> bool {
        start.checked_add(length).is_some_and(|end| end as usize <= self.0)
    }
}

/// The sizes of all tables that rows refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    files: Extent,
    names: Extent,
    resources: Extent,
    domains: Extent,
    keys: Extent,
    scopes: Extent,
    attributes: Extent,
    parts: Extent,
    clients: Extent,
    incarnations: Extent,
    servers: Extent,
    clocks: Extent,
    operations: Extent,
    items: Extent,
    deliveries: Extent,
    values: Extent,
}

fn all<T>(rows: &[T], what: &str, sound: impl Fn(&T) -> bool) -> Result<(), Refusal> {
    none(rows.iter().position(|row| !sound(row)), what)
}

/// An error if an unsound row was found.
fn none(unsound: Option<usize>, what: &str) -> Result<(), Refusal> {
    match unsound {
        Some(at) => Err(Refusal::contradiction(format!("{what} {at} refers to a row that does not exist"))),
        None => Ok(()),
    }
}

fn must(holds: bool, what: &str) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(Refusal::contradiction(what)) }
}

impl Bounds {
    pub fn of(history: &History) -> Bounds {
        Bounds {
            files: Extent::of(&history.files),
            names: Extent(history.names.len()),
            resources: Extent::of(&history.resources),
            domains: Extent::of(&history.domains),
            keys: Extent::of(&history.keys),
            scopes: Extent::of(&history.scopes),
            attributes: Extent::of(&history.attributes),
            parts: Extent(history.parts.len()),
            clients: Extent::of(&history.clients),
            incarnations: Extent::of(&history.incarnations),
            servers: Extent::of(&history.servers),
            clocks: Extent::of(&history.clocks),
            operations: Extent(history.operations.len()),
            items: Extent::of(&history.items),
            deliveries: Extent::of(&history.deliveries),
            values: Extent(history.calls().values.len()),
        }
    }

    /// Checks every row.
    pub fn check(&self, history: &History) -> Result<(), Refusal> {
        let h = history;
        let name = |symbol: &Symbol| self.names.has(symbol.index());
        inputs(h.inputs.len(), h.files.len(), &h.problems)?;
        let is_log = h.nature() == Nature::Operations;
        must(h.placements.len() == if is_log { 0 } else { h.resources.len() }, "resources without a domain")?;
        must(!is_log || (h.operations.is_empty() && h.witness.is_empty()), "an operation log with requests")?;
        all(&h.resources, "resource", |r| name(&r.group) && name(&r.plural))?;
        all(&h.placements, "place", |p| self.domains.has(p.domain.index()))?;
        all(&h.keys, "key", |k| self.key(k))?;
        all(&h.scopes, "scope", |s| self.scope(s))?;
        all(&h.attributes, "version", |a| self.attribute(a))?;
        all(&h.clients, "client", |client| self.names.may(client.index()))?;
        all(&h.incarnations, "incarnation", |i| self.incarnation(i))?;
        all(&h.servers, "server", name)?;
        all(&h.clocks, "clock", name)?;
        all(&h.server_versions, "server's version", |(server, _)| self.servers.has(server.index()))?;
        self.operations(h)?;
        all(&h.items, "item", |i| {
            self.keys.has(i.key.index()) && self.names.may(i.uid.index()) && self.attributes.may(i.attributes.index())
        })?;
        self.streams(h)?;
        all(&h.deliveries, "delivery", |d| self.delivery(h, d))?;
        all(&h.witness, "event of a witness", |w| {
            self.place(w.position)
                && self.object(h, w.key)
                && self.names.may(w.uid.index())
                && self.attributes.may(w.attributes.index())
        })?;
        all(&h.witness_spans, "span of a witness", |s| self.scopes.may(s.scope.index()) && self.place(s.position))?;
        all(&h.request_places, "position of a request", |(id, place)| {
            self.operations.has(id.index()) && self.place(*place)
        })?;
        must(h.request_places.is_sorted(), "positions of requests out of order")?;
        all(&h.server_records, "server's record of a request", |(id, place)| {
            self.operations.has(id.index()) && self.place(*place)
        })?;
        must(h.server_records.is_sorted(), "servers' records of requests out of order")?;
        all(&h.cache_reads, "read from a cache", |r| self.cache_read(h, r))?;
        all(&h.brackets, "bracket of a decision", |b| {
            self.place(b.position)
                && self.clocks.may(b.clock.index())
                && self.incarnations.may(b.incarnation.index())
                && self.names.may(b.decision.index())
        })?;
        all(&h.annotations, "mark", |a| self.place(a.position) && name(&a.name))?;
        self.calls(h.calls())
    }

    fn place(&self, position: Position) -> bool {
        self.files.has(position.file.0 as usize)
    }

    /// Whether a row of evidence names no object, or one whose resource is known: versions are listed by resource.
    fn object(&self, history: &History, key: KeyId) -> bool {
        let known = |key: &Key| self.resources.has(key.resource.index());
        !key.is_some() || history.keys.get(key.index()).is_some_and(known)
    }

    fn key(&self, key: &Key) -> bool {
        self.resources.may(key.resource.index())
            && self.names.may(key.namespace.index())
            && self.names.may(key.name.index())
    }

    fn scope(&self, scope: &Scope) -> bool {
        let names = [scope.namespace, scope.name, scope.labels, scope.fields, scope.shard];
        self.resources.may(scope.resource.index()) && names.iter().all(|name| self.names.may(name.index()))
    }

    fn attribute(&self, attributes: &Attributes) -> bool {
        let names = [attributes.labels, attributes.node, attributes.phase];
        names.iter().all(|name| self.names.may(name.index())) && self.parts.may(attributes.fields.index())
    }

    fn incarnation(&self, life: &Incarnation) -> bool {
        self.clients.has(life.client.index()) && self.clocks.may(life.clock.index())
    }

    fn operations(&self, history: &History) -> Result<(), Refusal> {
        // Items of an answer whose request is missing keep a key without a resource. No operation may list them.
        let unresolved = |item: &Item| !self.object(history, item.key);
        let unresolved: Vec<u32> = (0..).zip(&history.items).filter(|(_, i)| unresolved(i)).map(|(at, _)| at).collect();
        let resolved = |items: Range<usize>| {
            let next = unresolved.partition_point(|at| (*at as usize) < items.start);
            unresolved.get(next).is_none_or(|at| *at as usize >= items.end)
        };
        let mut before = None;
        for (at, o) in history.operations.iter().enumerate() {
            let audit_id = match o.audit_id {
                AuditId::Text(text) => self.names.has(text.index()),
                AuditId::None | AuditId::Uuid(..) => true,
            };
            let names = [o.request_uid, o.answer_uid, o.decision, o.page_after, o.page_end];
            // The builder leaves out requests without a resource.
            let of_resource = || self.resources.has(history.scopes[o.scope.index()].resource.index());
            let sound = audit_id
                && self.place(o.position)
                && self.clocks.may(o.clock.index())
                && self.servers.may(o.server.index())
                && self.incarnations.may(o.incarnation.index())
                && self.scopes.has(o.scope.index())
                && of_resource()
                && self.object(history, o.key)
                && names.iter().all(|name| self.names.may(name.index()))
                && self.attributes.may(o.attributes.index())
                && self.items.spans(o.items_start, o.items_len)
                && resolved(o.items());
            must(sound, &format!("operation {at} refers to a row that does not exist"))?;
            must(before <= Some((o.invoke, o.position)), &format!("operation {at} is out of order"))?;
            before = Some((o.invoke, o.position));
        }
        Ok(())
    }

    fn streams(&self, history: &History) -> Result<(), Refusal> {
        let mut delivered = 0;
        let mut before = None;
        for (at, stream) in history.streams.iter().enumerate() {
            let of_a_watch = self.operations.has(stream.operation.index())
                && history.operation(stream.operation).verb == Verb::Watch
                && before < Some(stream.operation);
            let in_order = stream.id.index() == at && stream.deliveries_start == delivered;
            must(
                of_a_watch && in_order && self.deliveries.spans(stream.deliveries_start, stream.deliveries_len),
                &format!("stream {at} has deliveries or an operation out of order"),
            )?;
            delivered += stream.deliveries_len;
            before = Some(stream.operation);
        }
        must(delivered as usize == self.deliveries.0, "deliveries without a stream")
    }

    fn delivery(&self, history: &History, d: &Delivery) -> bool {
        self.place(d.position)
            && self.object(history, d.key)
            && self.names.may(d.uid.index())
            && self.attributes.may(d.attributes.index())
    }

    fn cache_read(&self, history: &History, read: &CacheRead) -> bool {
        self.place(read.position)
            && self.clocks.may(read.clock.index())
            && self.incarnations.may(read.incarnation.index())
            && self.names.may(read.decision.index())
            && self.names.may(read.uid.index())
            && self.object(history, read.key)
    }

    fn calls(&self, calls: &Calls) -> Result<(), Refusal> {
        let value = |id: crate::history::ValueId| self.values.may(id.index());
        let sound = |call: Call| {
            self.incarnations.has(call.process.index())
                && self.names.has(call.function.index())
                && [call.key, call.argument, call.answer].into_iter().all(value)
                && (!call.key.is_some() || calls.keys.contains_key(&call.key))
                && self.place(call.invoke.position)
                && self.place(call.ret.position)
        };
        none(calls.calls.iter().position(|call| !sound(call)), "call")?;
        all(&calls.functions, "function", |function| self.names.has(function.name.index()))?;
        let mut keys = calls.keys.iter();
        must(
            keys.all(|(value, key)| self.values.has(value.index()) && self.keys.has(key.index())),
            "keys of calls that do not exist",
        )?;
        must(calls.calls.iter().is_sorted_by_key(|call| (call.invoke.rank, call.invoke.position)), "calls out of order")
    }
}

fn inputs(inputs: usize, files: usize, problems: &[Problem]) -> Result<(), Refusal> {
    must(inputs == files, "numbers of inputs and files that differ")?;
    all(problems, "problem", |problem| problem.file.is_none_or(|file| (file.0 as usize) < files))
}

/// Limit on nested transactions when a log is read.
const MAX_TXN_DEPTH: u8 = 64;

/// Checks every row of a recorded cluster.
pub(super) fn check_recording(r: &Recording) -> Result<(), Refusal> {
    let rows = Rows {
        files: Extent::of(&r.files),
        texts: Extent(r.texts.len()),
        values: Extent(r.values.len()),
        conditions: Extent::of(&r.requests.conditions),
        depths: Vec::new(),
    };
    inputs(r.inputs.len(), r.files.len(), &r.problems)?;
    let rows = rows.with_steps(&r.requests.steps)?;
    let span = |span: Span, extent: Extent| extent.spans(span.start, span.len);
    let (operations, watches) = (Extent::of(&r.operations), Extent::of(&r.watches));
    let clients = Extent::of(&r.clients);
    for (at, client) in r.clients.iter().enumerate() {
        let mine =
            |rows: &std::ops::Range<u32>, extent: Extent| rows.start <= rows.end && rows.end as usize <= extent.0;
        let sound = mine(&client.operations, operations)
            && mine(&client.watches, watches)
            && r.operations_of(client).iter().all(|operation| operation.client as usize == at)
            && r.watches_of(client).iter().all(|watch| watch.client as usize == at);
        must(sound, &format!("client {at} has rows of another client"))?;
    }
    let results = Extent::of(&r.results);
    all(&r.operations, "operation", |o| {
        rows.place(o.position)
            && clients.may(o.client as usize)
            && rows.request(&o.request)
            && span(o.results, results)
            && rows.texts.may(o.error.index())
    })?;
    must(r.operations.is_sorted_by_key(|o| (o.client, o.call, o.begun, o.position)), "operations out of order")?;
    all(&r.requests.conditions, "condition", |c| rows.interval(c.keys) && rows.value(c.value))?;
    let pairs = Extent::of(&r.pairs);
    all(&r.results, "result", |result| span(result.pairs, pairs))?;
    all(&r.pairs, "pair", |pair| rows.texts.has(pair.key.index()) && rows.value(pair.value))?;
    let responses = Extent::of(&r.responses);
    all(&r.watches, "watch", |watch| {
        rows.place(watch.position)
            && clients.may(watch.client as usize)
            && rows.texts.has(watch.key.index())
            && rows.texts.may(watch.end.index())
            && span(watch.responses, responses)
    })?;
    must(r.watches.is_sorted_by_key(|watch| (watch.client, watch.position)), "watches out of order")?;
    let events = Extent::of(&r.events);
    all(&r.responses, "response", |response| span(response.events, events) && rows.texts.may(response.error.index()))?;
    all(&r.events, "event", |event| {
        rows.texts.has(event.key.index())
            && rows.value(event.value)
            && event.previous.is_none_or(|previous| rows.value(previous.value))
    })?;
    for member in &r.members {
        if let Some(log) = &member.log {
            let entry = |entry: &etcd::LogEntry| rows.place(entry.position) && rows.request(&entry.request);
            all(&log.entries, "entry", entry)?;
            all(&log.overwritten, "overwritten entry", |both| entry(&both.old) && entry(&both.new))?;
            must(log.entries.is_sorted_by(|a, b| a.index < b.index), "entries out of order")?;
        }
        if let Some(store) = &member.store {
            all(&store.revisions, "stored revision", |revision| {
                rows.place(revision.position) && rows.texts.has(revision.key.index()) && rows.value(revision.value)
            })?;
        }
    }
    Ok(())
}

/// The sizes of a recording's tables.
struct Rows {
    files: Extent,
    texts: Extent,
    values: Extent,
    conditions: Extent,
    /// Depth of each step: 1 unless it is a transaction.
    depths: Vec<u8>,
}

impl Rows {
    /// A step may contain only earlier steps.
    fn with_steps(mut self, steps: &[Step]) -> Result<Rows, Refusal> {
        self.depths.reserve_exact(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let depth = match step {
                Step::Range(range) => self.interval(range.keys).then_some(1),
                Step::Put { key, value, .. } => (self.texts.has(key.index()) && self.value(*value)).then_some(1),
                Step::Delete(keys) => self.interval(*keys).then_some(1),
                Step::Txn(txn) => self.txn(*txn).filter(|depth| *depth < MAX_TXN_DEPTH).map(|depth| depth + 1),
                Step::Nothing => Some(1),
            };
            self.depths
                .push(depth.ok_or_else(|| Refusal::contradiction(format!("step {at} refers to a missing step")))?);
        }
        Ok(self)
    }

    /// The greatest depth among a transaction's steps.
    fn txn(&self, txn: Txn) -> Option<u8> {
        let depth = |span: Span| {
            let end = span.start.checked_add(span.len)?;
            self.depths.get(span.start as usize..end as usize).map(|depths| depths.iter().copied().max().unwrap_or(0))
        };
        let conditions = self.conditions.spans(txn.conditions.start, txn.conditions.len);
        let (success, failure) = (depth(txn.success)?, depth(txn.failure)?);
        conditions.then_some(success.max(failure))
    }

    fn request(&self, request: &Request) -> bool {
        match request {
            Request::Range(range) => self.interval(range.keys),
            Request::Txn(txn) => self.txn(*txn).is_some(),
            _ => true,
        }
    }

    fn interval(&self, keys: etcd::Interval) -> bool {
        self.texts.has(keys.key.index()) && self.texts.may(keys.end.index())
    }

    fn value(&self, value: etcd::ValueId) -> bool {
        self.values.has(value.0 as usize)
    }

    fn place(&self, position: Position) -> bool {
        self.files.has(position.file.0 as usize)
    }
}
