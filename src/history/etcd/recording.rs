//! One recorded cluster.

use super::member::Member;
use super::operation::{Operation, Pair, Requests, StepResult};
use super::value::Values;
use super::watch::{Event, Response, Watch};
use crate::history::interner::Interner;
use crate::ingest::{FileId, FileSummary, InputFile, Problem};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What was recorded of one cluster.
#[derive(Debug, Default)]
pub struct Recording {
    /// The directory that it was read from.
    pub name: String,
    /// Inputs, for re-reading.
    pub inputs: Vec<InputFile>,
    /// What reading each input came to.
    pub files: Vec<FileSummary>,
    /// What could not be used.
    pub problems: Vec<Problem>,
    /// Keys, and texts of errors. Bytes of a key that are no UTF-8 are U+FFFD, as reports have them.
    pub texts: Interner,
    /// Values.
    pub values: Values,
    /// Clients, in the order of their numbers.
    pub clients: Vec<Client>,
    /// Operations by client, those of a client in the order in which they were sent.
    pub operations: Vec<Operation>,
    /// The parts of all requests.
    pub requests: Requests,
    /// What steps and reads came to.
    pub results: Vec<StepResult>,
    /// What was found.
    pub pairs: Vec<Pair>,
    /// Watches by client, in the order of the files.
    pub watches: Vec<Watch>,
    /// What they delivered.
    pub responses: Vec<Response>,
    /// Events.
    pub events: Vec<Event>,
    /// Members of which something was recorded, by name.
    pub members: Vec<Member>,
    /// Whether the traffic promised that each revision is one change; not every report says so.
    pub unique_revisions: bool,
    /// Whether its events say where they create their key.
    pub creation_marks: CreationMarks,
}

/// Whether the events of a report say where they create their key. Reports from before 2024-02-13 have no field for it, and those since
/// 2025-05-13 leave it out where it is false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CreationMarks {
    /// Nothing shows it.
    #[default]
    Unknown,
    /// Requests have a field that the suite got with the same commit. Another recorder may have only one of the two.
    Likely,
    /// They do: an event has the field, or the report has a file that the suite writes only since later.
    Written,
}

/// A client: one process that does one thing at a time. Watches run beside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its name: that of its directory.
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

    /// The path of a file as the user named it.
    pub fn file_name(&self, id: FileId) -> &str {
        self.files.get(id.0 as usize).map_or("", |file| file.path.as_str())
    }

    /// Whether its events say where they create their key.
    pub fn marks_creation(&self) -> CreationMarks {
        match self.events.iter().any(|event| event.create) {
            true => CreationMarks::Written,
            false => self.creation_marks,
        }
    }

    /// Whether there is nothing to judge.
    pub fn is_empty(&self) -> bool {
        let logged = |member: &Member| member.log.is_some() || member.store.is_some();
        self.operations.is_empty() && self.watches.is_empty() && !self.members.iter().any(logged)
    }
}
