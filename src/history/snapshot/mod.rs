//! Packs histories into a [container](crate::container) and unpacks them. Checking an unpacked history gives the same result as
//! checking its evidence.
//!
//! Tables hold the rows of a [`History`] unchanged, ids included. Data that can be derived (look-up tables, the names in an etcd
//! cluster's history) is not stored. `validity` checks every id, range and order, and excludes cycles, before a later stage sees
//! the history.
//!
//! Evidence is not copied. Rows keep file, line and offset, and a line is read again from its file, if that file still has the
//! same [`crate::ingest::Identity`]. When a stored type changes, raise [`VERSION`].

pub(crate) mod beside;
mod facts;
mod present;
mod recording;
mod validity;

use super::store::History;
use crate::container::{Container, Refusal, Writer};
use crate::history::{self, Subject};
use crate::ingest::fields::Fields;
use crate::ingest::{self, FileId, FileSummary, InputFile, Opener, Problem, Progress};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::Path;

/// The version of the tables' content. Raise it when a stored type or the set of stored data changes; `tests/snapshot.rs` detects
/// the former.
pub const VERSION: u16 = 10;

/// The kinds of tables. A number is never reused.
mod kind {
    macro_rules! kinds {
        ($($name:ident $number:literal)*) => {$( pub const $name: u16 = $number; )*};
    }
    kinds! {
        MANIFEST 1 NATURE 2 INPUTS 3 FILES 4 PROBLEMS 5 NAME_LENGTHS 6 NAMES 7
        RESOURCES 10 PLACEMENTS 11 DOMAINS 12 KEYS 13 SCOPES 14 ATTRIBUTES 15 PARTS 16 PART_CHILDREN 17
        CLIENTS 20 INCARNATIONS 21 SERVERS 22 CLOCKS 23 SERVER_VERSIONS 24
        OPERATIONS 30 ITEMS 31 STREAMS 32 DELIVERIES 33 WITNESS 34 WITNESS_SPANS 35 REQUEST_PLACES 36
        CACHE_READS 37 BRACKETS 38 ANNOTATIONS 39 SERVER_RECORDS 40
        LOG 50 CALLS 51 VALUES 52 FUNCTIONS 53 CALL_KEYS 54
        RECORDING 60 ETCD_CLIENTS 61 ETCD_OPERATIONS 62 CONDITIONS 63 STEPS 64 RESULTS 65 PAIRS 66 WATCHES 67 RESPONSES 68 EVENTS 69
        MEMBERS 70 LOG_ENTRIES 71 OVERWRITTEN 72 STORED 73 LEASES 74
    }
}

/// The header of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// The version of retrograde that wrote it.
    tool: String,
    /// Fingerprint of the declared fields that were kept: [`Fields::fingerprint`].
    fields: u64,
    /// See [`Packing::request`].
    request: String,
    histories: u32,
}

/// The stored code of a nature, independent of the names of [`history::Nature`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Nature {
    Kubernetes,
    Etcd,
    Operations,
}

/// Options of packing.
#[derive(Clone, Debug)]
pub struct Packing<'p> {
    /// The declared fields with which the evidence was read.
    pub fields: &'p Fields,
    /// Text that the reader gets back; a cache uses it to recognize the request that the container answers.
    pub request: &'p str,
    /// Whether to compress chunks, if the build supports it.
    pub compress: bool,
}

/// The content of a container.
#[derive(Debug)]
pub struct Unpacked {
    /// See [`Packing::request`].
    pub request: String,
    /// The histories.
    pub histories: Vec<History>,
}

/// Packs histories. An input without an identity gets the present one of its file.
pub fn write<W: Write>(out: W, histories: &[History], packing: &Packing<'_>) -> io::Result<W> {
    let mut writer = Writer::new(out, VERSION, packing.compress)?;
    let manifest = Manifest {
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        fields: packing.fields.fingerprint(),
        request: packing.request.to_owned(),
        histories: u32::try_from(histories.len()).map_err(io::Error::other)?,
    };
    writer.rows(kind::MANIFEST, &[manifest])?;
    for history in histories {
        let nature = match history.nature() {
            history::Nature::Kubernetes => Nature::Kubernetes,
            history::Nature::Etcd => Nature::Etcd,
            history::Nature::Operations => Nature::Operations,
        };
        writer.rows(kind::NATURE, &[nature])?;
        let mut inputs = history.inputs.clone();
        ingest::identify(inputs.iter_mut().filter(|input| input.identity.is_none()));
        writer.rows(kind::INPUTS, &inputs)?;
        writer.rows(kind::PROBLEMS, &history.problems)?;
        match &history.subject {
            Subject::Kubernetes => facts::write(&mut writer, history)?,
            Subject::Etcd(cluster) => recording::write(&mut writer, &cluster.recording)?,
            Subject::Operations(calls) => {
                facts::write(&mut writer, history)?;
                facts::write_calls(&mut writer, calls)?;
            }
        }
    }
    writer.finish()
}

/// Unpacks histories, which must have been read with the same fields. Looks for inputs at their old path, then in the folder
/// `beside`.
pub fn read(from: &mut dyn Read, fields: &Fields, beside: Option<&Path>) -> Result<Unpacked, Refusal> {
    let mut container = Container::read(from, VERSION)?;
    let manifest: Manifest = container.row(kind::MANIFEST)?;
    if manifest.fields != fields.fingerprint() {
        let tool = &manifest.tool;
        return Err(Refusal::Unfit(format!(
            "was packed by retrograde {tool} with other fields of objects: pack the evidence again, with the same --rules"
        )));
    }
    let mut histories = Vec::new();
    for _ in 0..manifest.histories {
        let nature = container.row(kind::NATURE)?;
        let mut inputs: Vec<InputFile> = container.rows(kind::INPUTS)?;
        for (at, input) in inputs.iter_mut().enumerate() {
            input.id = FileId(at as u32);
            input.look_for(beside);
        }
        let problems: Vec<Problem> = container.rows(kind::PROBLEMS)?;
        histories.push(match nature {
            Nature::Etcd => recording::read(&mut container, inputs, problems)?,
            Nature::Kubernetes => facts::read(&mut container, inputs, problems, false)?,
            Nature::Operations => facts::read(&mut container, inputs, problems, true)?,
        });
    }
    container.end()?;
    Ok(Unpacked { request: manifest.request, histories })
}

/// Reads the histories of a container. A refused container yields one empty history with the problem.
pub(super) fn load<'a>(
    opener: &mut Opener<'a>,
    input: &'a InputFile,
    fields: &Fields,
    progress: &'a dyn Progress,
) -> Vec<History> {
    let unpacked = opener
        .content(input, progress)
        .map_err(Refusal::from)
        .and_then(|mut content| read(&mut content, fields, input.path.parent()));
    match unpacked {
        Ok(unpacked) => unpacked.histories,
        Err(refusal) => vec![refused(input.clone(), &refusal)],
    }
}

fn refused(input: InputFile, refusal: &Refusal) -> History {
    let id = FileId(0);
    let problem = Problem {
        file: Some(id),
        path: input.shown.clone(),
        line: 0,
        expected: "a readable history container".to_owned(),
        found: refusal.to_string(),
    };
    let file = FileSummary { path: input.shown.clone(), problems: 1, ..FileSummary::default() };
    History {
        inputs: vec![InputFile { id, ..input }],
        files: vec![file],
        problems: vec![problem],
        ..History::default()
    }
}
