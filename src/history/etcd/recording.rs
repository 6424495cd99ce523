//! The recording of one etcd cluster.

use super::member::Member;
use super::operation::{Operation, Pair, Requests, StepResult};
use super::value::Values;
use super::watch::{Event, Response, Watch};
use crate::history::interner::Interner;
use crate::ingest::{FileId, FileSummary, InputFile, Problem};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// All that was recorded of one cluster.
#[derive(Debug, Default)]
pub struct Recording {
    /// The directory it was read from.
    pub name: String,
    /// Inputs, for re-reading.
    pub inputs: Vec<InputFile>,
    /// The summary of reading each input.
    pub files: Vec<FileSummary>,
    /// Lines that could not be used, with the reason.
    pub problems: Vec<Problem>,
    /// Keys, and texts of errors. Invalid UTF-8 in a key becomes U+FFFD, as in reports.
    pub texts: Interner,
    /// Values.
    pub values: Values,
    /// Clients, in the order of their numbers.
    pub clients: Vec<Client>,
    /// Operations by client; those of one client in the order in which they were sent.
    pub operations: Vec<Operation>,
    /// The parts of all requests.
    pub requests: Requests,
    /// Results of steps and reads.
    pub results: Vec<StepResult>,
    /// Keys in results.
    pub pairs: Vec<Pair>,
    /// Watches by client, in the order of the files.
    pub watches: Vec<Watch>,
    /// Responses of watches.
    pub responses: Vec<Response>,
    /// Events.
    pub events: Vec<Event>,
    /// Members with a recorded log or store, by name.
    pub members: Vec<Member>,
    /// Whether the traffic promised one change per revision. Not every report says so.
    pub unique_revisions: bool,
    /// Whether events mark the creation of their key.
    pub creation_marks: CreationMarks,
}

/// Whether the events of a report mark the creation of their key. Reports before 2024-02-13 have no such field, and those since
/// 2025-05-13 omit it if it is false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CreationMarks {
    /// No evidence of the mark.
    #[default]
    Unknown,
    /// Requests have a field that the suite added in the same commit. Another recorder may have only one of the two.
    Likely,
    /// The mark is written: an event has it, or the report has a file that the suite added later.
    Written,
}

/// A client: one process with one operation at a time, beside its watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The name of its directory.
    pub name: String,
    /// Its operations.
    pub operations: Range<u32>,
    /// Its watches.
    pub watches: Range<u32>,
}

impl Recording {
    /// The operations of a client.
    pub fn operations_of(&self, client: &Client) -> &[Operation] {
        &self.operations[client.operations.start as usize..client.operations.end as usize]
    }

    /// The watches of a client.
    pub fn watches_of(&self, client: &Client) -> &[Watch] {
        &self.watches[client.watches.start as usize..client.watches.end as usize]
    }

    /// The path of a file as the caller named it.
    pub fn file_name(&self, id: FileId) -> &str {
        self.files.get(id.0 as usize).map_or("", |file| file.path.as_str())
    }

    /// Whether events mark the creation of their key.
    pub fn marks_creation(&self) -> CreationMarks {
        match self.events.iter().any(|event| event.create) {
            true => CreationMarks::Written,
            false => self.creation_marks,
        }
    }

    /// Whether there is nothing to check.
    pub fn is_empty(&self) -> bool {
        let logged = |member: &Member| member.log.is_some() || member.store.is_some();
        self.operations.is_empty() && self.watches.is_empty() && !self.members.iter().any(logged)
    }
}
