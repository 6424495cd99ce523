//! Writes and reads the tables of a recorded etcd cluster.

use super::facts::{names, read_names};
use super::kind;
use super::validity;
use crate::container::{Container, Refusal, Writer};
use crate::history::etcd::{CreationMarks, Log, Member, Note, Recording, Requests, Store, Values};
use crate::history::store::History;
use crate::ingest::{InputFile, Problem};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// The fields of a recording outside its tables.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    name: String,
    unique_revisions: bool,
    creation_marks: CreationMarks,
    members: u32,
}

/// The fields of a member outside its tables.
#[derive(Debug, Serialize, Deserialize)]
struct MemberHead {
    name: String,
    log: Option<LogHead>,
    store: Option<StoreHead>,
}

#[derive(Debug, Serialize, Deserialize)]
struct LogHead {
    node: u64,
    cluster: u64,
    commit: u64,
    after: u64,
    torn: bool,
    broken: bool,
    notes: Vec<(u64, Note)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoreHead {
    consistent_index: u64,
    term: u64,
    compaction_begun: i64,
    compaction_done: i64,
}

pub(super) fn write<W: Write>(to: &mut Writer<W>, recording: &Recording) -> io::Result<()> {
    // Every field by name, so that the compiler reports a new one.
    let Recording {
        inputs: _,
        problems: _,
        name,
        files,
        texts,
        values,
        clients,
        operations,
        requests: Requests { conditions, steps },
        results,
        pairs,
        watches,
        responses,
        events,
        members,
        unique_revisions,
        creation_marks,
    } = recording;
    let head = Head {
        name: name.clone(),
        unique_revisions: *unique_revisions,
        creation_marks: *creation_marks,
        members: u32::try_from(members.len()).map_err(io::Error::other)?,
    };
    to.rows(kind::RECORDING, &[head])?;
    to.rows(kind::FILES, files)?;
    names(to, texts)?;
    names(to, values.rows().0)?;
    to.rows(kind::VALUES, values.rows().1)?;
    to.rows(kind::ETCD_CLIENTS, clients)?;
    to.rows(kind::ETCD_OPERATIONS, operations)?;
    to.rows(kind::CONDITIONS, conditions)?;
    to.rows(kind::STEPS, steps)?;
    to.rows(kind::RESULTS, results)?;
    to.rows(kind::PAIRS, pairs)?;
    to.rows(kind::WATCHES, watches)?;
    to.rows(kind::RESPONSES, responses)?;
    to.rows(kind::EVENTS, events)?;
    members.iter().try_for_each(|member| write_member(to, member))
}

fn write_member<W: Write>(to: &mut Writer<W>, member: &Member) -> io::Result<()> {
    let Member { name, log, store } = member;
    let log_head = log.as_ref().map(|log| {
        let Log { entries: _, overwritten: _, notes, node, cluster, commit, after, torn, broken } = log;
        let (node, cluster, commit, after) = (*node, *cluster, *commit, *after);
        LogHead { node, cluster, commit, after, torn: *torn, broken: *broken, notes: notes.clone() }
    });
    let store_head = store.as_ref().map(|store| {
        let &Store { revisions: _, leases: _, consistent_index, term, compaction_begun, compaction_done } = store;
        StoreHead { consistent_index, term, compaction_begun, compaction_done }
    });
    to.rows(kind::MEMBERS, &[MemberHead { name: name.clone(), log: log_head, store: store_head }])?;
    if let Some(log) = log {
        to.rows(kind::LOG_ENTRIES, &log.entries)?;
        to.rows(kind::OVERWRITTEN, &log.overwritten)?;
    }
    if let Some(store) = store {
        to.rows(kind::STORED, &store.revisions)?;
        to.rows(kind::LEASES, &store.leases)?;
    }
    Ok(())
}

pub(super) fn read(from: &mut Container, inputs: Vec<InputFile>, problems: Vec<Problem>) -> Result<History, Refusal> {
    let head: Head = from.row(kind::RECORDING)?;
    let mut recording = Recording {
        name: head.name,
        unique_revisions: head.unique_revisions,
        creation_marks: head.creation_marks,
        inputs,
        problems,
        files: from.rows(kind::FILES)?,
        texts: read_names(from)?,
        ..Recording::default()
    };
    let texts = read_names(from)?;
    recording.values = Values::of_rows(texts, from.rows(kind::VALUES)?)
        .ok_or_else(|| Refusal::contradiction("a value that occurs twice"))?;
    recording.clients = from.rows(kind::ETCD_CLIENTS)?;
    recording.operations = from.rows(kind::ETCD_OPERATIONS)?;
    recording.requests = Requests { conditions: from.rows(kind::CONDITIONS)?, steps: from.rows(kind::STEPS)? };
    recording.results = from.rows(kind::RESULTS)?;
    recording.pairs = from.rows(kind::PAIRS)?;
    recording.watches = from.rows(kind::WATCHES)?;
    recording.responses = from.rows(kind::RESPONSES)?;
    recording.events = from.rows(kind::EVENTS)?;
    for _ in 0..head.members {
        recording.members.push(read_member(from)?);
    }
    validity::check_recording(&recording)?;
    Ok(History::of_etcd(recording))
}

fn read_member(from: &mut Container) -> Result<Member, Refusal> {
    let head: MemberHead = from.row(kind::MEMBERS)?;
    let mut member = Member { name: head.name, log: None, store: None };
    if let Some(LogHead { node, cluster, commit, after, torn, broken, notes }) = head.log {
        let (entries, overwritten) = (from.rows(kind::LOG_ENTRIES)?, from.rows(kind::OVERWRITTEN)?);
        member.log = Some(Log { node, cluster, entries, notes, overwritten, commit, after, torn, broken });
    }
    if let Some(StoreHead { consistent_index, term, compaction_begun, compaction_done }) = head.store {
        let (revisions, leases) = (from.rows(kind::STORED)?, from.rows(kind::LEASES)?);
        member.store = Some(Store { revisions, consistent_index, term, compaction_begun, compaction_done, leases });
    }
    Ok(member)
}
