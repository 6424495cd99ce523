//! Names of clients, and the captures of clients of Kubernetes.

use crate::assertion::lines::{Clock, lock};
use crate::assertion::{Capture, Subject};
use crate::history::client;
use anyhow::bail;
use http::{HeaderMap, header};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Upper bound on clients with open files. Requests of further ones are counted as missing.
pub(super) const MAX_CLIENTS: usize = 256;

/// The name of a client that sends no User-Agent.
const UNNAMED: &str = "unnamed";

/// Longest name of a client, and of its part in a file's name.
const MAX_NAME: usize = 64;

/// Upper bound on files whose names differ only by a number.
const MAX_NUMBER: u32 = 1_000_000;

/// The User-Agent of a request.
pub(super) fn agent(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).map(|agent| String::from_utf8_lossy(agent.as_bytes()));
    agent.filter(|agent| !agent.is_empty()).map_or_else(|| UNNAMED.to_owned(), Into::into)
}

/// Whether a user may give a client this name.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(plain) && !name.starts_with('.')
}

/// The client of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    /// Its given name, or its User-Agent.
    pub name: String,
    /// The user, as the audit log names it.
    pub user: String,
    /// Whether the user gave it its name.
    pub given: bool,
    /// For a program that runs once per invocation, the number of its connection. One process may have several.
    pub connection: Option<u64>,
}

impl Who {
    /// A client with a name that the user gave it. It is one process.
    pub(super) fn named(name: &str, user: &str) -> Who {
        Who { name: name.to_owned(), user: user.to_owned(), given: true, connection: None }
    }

    /// A client that only its User-Agent tells.
    pub(super) fn by_agent(agent: String, user: &str, connection: u64) -> Who {
        let is_command = client::is_command_line(client::program(&agent));
        Who { name: agent, user: user.to_owned(), given: false, connection: is_command.then_some(connection) }
    }
}

/// The captures of one run, in one folder.
pub(super) struct Captures {
    folder: PathBuf,
    clock: Clock,
    /// The name of the clock.
    clock_name: String,
    /// A number that separates the run from other runs.
    run: u64,
    open: Mutex<BTreeMap<Who, Capture>>,
    /// The first error of a capture that is closed, or could not be made.
    error: Mutex<Option<String>>,
}

impl Captures {
    pub(super) fn new(folder: PathBuf, clock_name: Option<String>) -> io::Result<Captures> {
        fs::create_dir_all(&folder)?;
        let run = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let clock_name = clock_name.unwrap_or_else(|| format!("recorder-{run}-{}", process::id()));
        let (open, error) = (Mutex::default(), Mutex::default());
        Ok(Captures { folder, clock: Clock::new(), clock_name, run, open, error })
    }

    /// The capture of a client. `None`: there are too many clients, or the file cannot be made.
    pub(super) fn of(&self, who: &Who) -> Option<Capture> {
        let mut open = lock(&self.open);
        if let Some(capture) = open.get(who) {
            return Some(capture.clone());
        }
        if open.len() >= MAX_CLIENTS {
            return None;
        }
        match self.create(who) {
            Ok(capture) => {
                open.insert(who.clone(), capture.clone());
                Some(capture)
            }
            Err(error) => {
                lock(&self.error).get_or_insert(error.to_string());
                None
            }
        }
    }

    /// Closes the captures of a connection.
    pub(super) fn close(&self, connection: u64) {
        lock(&self.open).retain(|who, capture| {
            let stays = who.connection != Some(connection);
            if let Some(error) = capture.error().filter(|_| !stays) {
                lock(&self.error).get_or_insert(error);
            }
            stays
        });
    }

    /// The first reason why a capture is incomplete.
    pub(super) fn error(&self) -> Option<String> {
        lock(&self.error).clone().or_else(|| lock(&self.open).values().find_map(Capture::error))
    }

    fn create(&self, who: &Who) -> anyhow::Result<Capture> {
        // A label is a place and a number, which tells the lives at this place apart. A given name may have the number
        // already. A connection has no place.
        let is_numbered = client::label_stem(&who.name) != who.name;
        let incarnation = match who.connection {
            None if who.given && is_numbered => who.name.clone(),
            None => format!("{}#{}", who.name, self.run),
            Some(number) => format!("{}, connection {number} of run {}", who.name, self.run),
        };
        let (client, clock) = (who.user.clone(), self.clock_name.clone());
        let subject = Subject { client, incarnation, clock, ..Subject::default() };
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' };
        let stem: String = who.name.chars().map(plain).take(MAX_NAME).collect();
        let stem = stem.trim_matches('.');
        let first = who.connection.unwrap_or(1).try_into().unwrap_or(1);
        for number in first..MAX_NUMBER {
            let name = if number == 1 { format!("{stem}.jsonl") } else { format!("{stem}-{number}.jsonl") };
            match Capture::create_on(self.clock, self.folder.join(name), &subject) {
                // Another client, or an earlier run, has this name.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return Ok(made?),
            }
        }
        bail!("{} has too many captures of one name", self.folder.display())
    }
}
