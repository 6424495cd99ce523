//! Writes and reads the tables of Kubernetes evidence and of operation logs.

use super::kind;
use super::validity::Bounds;
use crate::container::{Container, Refusal, Writer};
use crate::history::Subject;
use crate::history::calls::{CallRows, Calls, Lost, Values};
use crate::history::interner::Interner;
use crate::history::json_parts::Parts;
use crate::history::store::History;
use crate::history::{KeyId, ValueId};
use crate::ingest::{InputFile, Problem};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The fields of an operation log outside its tables.
#[derive(Debug, Serialize, Deserialize)]
struct Log {
    model: Option<String>,
    others: u64,
    falls_back: i64,
    is_timeless: bool,
    lost: Option<Lost>,
}

pub(super) fn write<W: Write>(to: &mut Writer<W>, history: &History) -> io::Result<()> {
    // Every field by name, so that the compiler reports a new one.
    let History {
        inputs: _,
        problems: _,
        subject: _,
        names: texts,
        files,
        resources,
        placements,
        domains,
        keys,
        scopes,
        attributes,
        parts,
        clients,
        incarnations,
        servers,
        clocks,
        operations,
        items,
        streams,
        deliveries,
        witness,
        witness_spans,
        request_places,
        server_records,
        cache_reads,
        brackets,
        annotations,
        server_versions,
    } = history;
    to.rows(kind::FILES, files)?;
    names(to, texts)?;
    to.rows(kind::RESOURCES, resources)?;
    to.rows(kind::PLACEMENTS, placements)?;
    to.rows(kind::DOMAINS, domains)?;
    to.rows(kind::KEYS, keys)?;
    to.rows(kind::SCOPES, scopes)?;
    to.rows(kind::ATTRIBUTES, attributes)?;
    to.rows(kind::PARTS, parts.rows().0)?;
    to.rows(kind::PART_CHILDREN, parts.rows().1)?;
    to.rows(kind::CLIENTS, clients)?;
    to.rows(kind::INCARNATIONS, incarnations)?;
    to.rows(kind::SERVERS, servers)?;
    to.rows(kind::CLOCKS, clocks)?;
    to.rows(kind::SERVER_VERSIONS, server_versions)?;
    to.table(kind::OPERATIONS, operations.len(), |range| range.map(|at| operations.get(at)).collect::<Vec<_>>())?;
    to.rows(kind::ITEMS, items)?;
    to.rows(kind::STREAMS, streams)?;
    to.rows(kind::DELIVERIES, deliveries)?;
    to.rows(kind::WITNESS, witness)?;
    to.rows(kind::WITNESS_SPANS, witness_spans)?;
    to.rows(kind::REQUEST_PLACES, request_places)?;
    to.rows(kind::SERVER_RECORDS, server_records)?;
    to.rows(kind::CACHE_READS, cache_reads)?;
    to.rows(kind::BRACKETS, brackets)?;
    to.rows(kind::ANNOTATIONS, annotations)
}

pub(super) fn write_calls<W: Write>(to: &mut Writer<W>, calls: &Calls) -> io::Result<()> {
    let Calls { calls, values, model, functions, others, falls_back, is_timeless, lost, keys } = calls;
    let log = Log {
        model: model.clone(),
        others: *others,
        falls_back: *falls_back,
        is_timeless: *is_timeless,
        lost: lost.clone(),
    };
    to.rows(kind::LOG, &[log])?;
    to.table(kind::CALLS, calls.len(), |range| range.map(|at| calls.get(at)).collect::<Vec<_>>())?;
    names(to, &values.texts)?;
    to.rows(kind::VALUES, values.rows())?;
    to.rows(kind::FUNCTIONS, functions)?;
    let mut keys: Vec<(ValueId, KeyId)> = keys.iter().map(|(value, key)| (*value, *key)).collect();
    keys.sort_unstable();
    to.rows(kind::CALL_KEYS, &keys)
}

pub(super) fn read(
    from: &mut Container,
    inputs: Vec<InputFile>,
    problems: Vec<Problem>,
    is_log: bool,
) -> Result<History, Refusal> {
    let mut history = History {
        inputs,
        problems,
        files: from.rows(kind::FILES)?,
        names: read_names(from)?,
        resources: from.rows(kind::RESOURCES)?,
        placements: from.rows(kind::PLACEMENTS)?,
        domains: from.rows(kind::DOMAINS)?,
        keys: from.rows(kind::KEYS)?,
        scopes: from.rows(kind::SCOPES)?,
        attributes: from.rows(kind::ATTRIBUTES)?,
        ..History::default()
    };
    let (parts, children) = (from.rows(kind::PARTS)?, from.rows(kind::PART_CHILDREN)?);
    history.parts = Parts::of_rows(parts, children, history.names.len())
        .ok_or_else(|| Refusal::contradiction("declared fields with parts that do not exist"))?;
    history.clients = from.rows(kind::CLIENTS)?;
    history.incarnations = from.rows(kind::INCARNATIONS)?;
    history.servers = from.rows(kind::SERVERS)?;
    history.clocks = from.rows(kind::CLOCKS)?;
    history.server_versions = from.rows(kind::SERVER_VERSIONS)?;
    from.each(kind::OPERATIONS, |rows| rows.into_iter().for_each(|operation| history.operations.push(operation)))?;
    history.items = from.rows(kind::ITEMS)?;
    history.streams = from.rows(kind::STREAMS)?;
    history.deliveries = from.rows(kind::DELIVERIES)?;
    history.witness = from.rows(kind::WITNESS)?;
    history.witness_spans = from.rows(kind::WITNESS_SPANS)?;
    history.request_places = from.rows(kind::REQUEST_PLACES)?;
    history.server_records = from.rows(kind::SERVER_RECORDS)?;
    history.cache_reads = from.rows(kind::CACHE_READS)?;
    history.brackets = from.rows(kind::BRACKETS)?;
    history.annotations = from.rows(kind::ANNOTATIONS)?;
    if is_log {
        history.subject = Subject::Operations(Box::new(read_calls(from)?));
    }
    Bounds::of(&history).check(&history)?;
    Ok(history)
}

fn read_calls(from: &mut Container) -> Result<Calls, Refusal> {
    let log: Log = from.row(kind::LOG)?;
    let mut calls = CallRows::default();
    from.each(kind::CALLS, |rows| rows.into_iter().for_each(|call| calls.push(call)))?;
    let texts = read_names(from)?;
    let values = Values::of_rows(from.rows(kind::VALUES)?, texts)
        .ok_or_else(|| Refusal::contradiction("values with parts that do not exist"))?;
    let functions = from.rows(kind::FUNCTIONS)?;
    let keys: Vec<(ValueId, KeyId)> = from.rows(kind::CALL_KEYS)?;
    let Log { model, others, falls_back, is_timeless, lost } = log;
    Ok(Calls {
        calls,
        values,
        model,
        functions,
        others,
        falls_back,
        is_timeless,
        lost,
        keys: keys.into_iter().collect(),
    })
}

pub(super) fn names<W: Write>(to: &mut Writer<W>, names: &Interner) -> io::Result<()> {
    let lengths: Vec<u32> = names.iter().map(|name| name.len() as u32).collect();
    to.rows(kind::NAME_LENGTHS, &lengths)?;
    to.text(kind::NAMES, names.text())
}

pub(super) fn read_names(from: &mut Container) -> Result<Interner, Refusal> {
    let lengths: Vec<u32> = from.rows(kind::NAME_LENGTHS)?;
    Interner::of_texts(from.text(kind::NAMES)?, &lengths)
        .ok_or_else(|| Refusal::contradiction("a name that occurs twice"))
}
