//! Operation logs: invocations and answers of processes, event by event.
//!
//! Four formats yield the same [`Event`]s: Jepsen's EDN, lines of Jepsen's text log, the JSON of `docs/formats.md`, and
//! steps of transactions. Values become [`Datum`]s, which each model interprets.

pub(crate) mod datum;
pub(super) mod edn;
pub(super) mod elements;
pub(super) mod json;
pub(super) mod log;
mod reader;
mod steps;

pub use datum::{Datum, Node};
pub use edn::parse;

use super::limits::LONGEST_NAME;
use super::problem::{Fault, Found, size};
use super::{Format, Time};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One element of an operation log.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    /// Properties of the whole log.
    Header(Header<'a>),
    /// An event of a process.
    Event(Event<'a>),
    /// An event of another actor, such as Jepsen's nemesis: no operation.
    Other,
}

/// The header of an operation log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header<'a> {
    /// Name of the model for the operations.
    pub model: Option<Cow<'a, str>>,
    /// Name of the clock of the times.
    pub clock: Option<Cow<'a, str>>,
}

/// One event of a process: at one time, or a whole operation with both times.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    /// Name or number of the process, if the event has one.
    pub process: Option<Cow<'a, str>>,
    /// Invocation, return or whole operation.
    pub kind: Kind,
    /// Name of the operation, such as `read`.
    pub function: Cow<'a, str>,
    /// The object, if the log has several.
    pub key: Option<Datum<'a>>,
    /// Arguments; in a return also the answer. `None`: the log has no such field.
    pub value: Option<Datum<'a>>,
    /// The answer, if the log has a field of its own for it.
    pub result: Option<Datum<'a>>,
    /// Time of the event; of a whole operation, its invocation.
    pub at: Time,
    /// Return of a whole operation.
    pub until: Time,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An invocation.
    Invoke,
    /// A return of the process's open operation.
    Return(Ending),
    /// A whole operation, invocation and return.
    Whole(Ending),
    /// One step of a transaction: its value. The process is the session and the key the transaction, if the log names them.
    Step,
    /// The end of a transaction, or of a session.
    Boundary {
        /// Whether the session ends too.
        of_session: bool,
    },
}

/// Outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ending {
    /// Completed with an answer.
    Ok,
    /// Certainly without effect.
    Fail,
    /// Unknown outcome (a crashed operation): it may have had an effect.
    Unknown,
    /// Completed, and its condition was false.
    Refused,
}

impl Kind {
    /// The kind for a word of Jepsen (`:invoke :ok :fail :info`).
    fn of(word: &str) -> Option<Kind> {
        Some(match word {
            "invoke" => Kind::Invoke,
            "ok" => Kind::Return(Ending::Ok),
            "fail" => Kind::Return(Ending::Fail),
            "info" | "unknown" => Kind::Return(Ending::Unknown),
            _ => return None,
        })
    }
}

/// Reads one element of an operation log; `Ok(None)`: it is no element.
pub(super) fn line(format: Format, text: &str) -> Result<Option<Line<'_>>, Fault> {
    let line = match format {
        Format::JepsenLog => log::line(text)?.map(Line::Event),
        Format::Operations => Some(json::line(text)?),
        Format::Transactions => steps::line(text)?.map(Line::Event),
        _ => edn::line(text)?,
    };
    let longest = match &line {
        Some(Line::Event(event)) => {
            let key = event.key.as_ref().map_or(0, Datum::length);
            event.process.as_ref().map_or(0, |name| name.len()).max(event.function.len()).max(key)
        }
        _ => 0,
    };
    if longest > LONGEST_NAME {
        let expected = format!("a process, a function and a key of at most {} each", size(LONGEST_NAME as u64));
        return Err(Fault::new(expected, Found::described(size(longest as u64))));
    }
    Ok(line)
}

/// Whether an element is an event of a process.
pub fn is_operation(format: Format, text: &str) -> bool {
    format.is_operation_log() && matches!(line(format, text), Ok(Some(Line::Event(_))))
}

/// Detects operations in EDN, in an array of JSON, or in Jepsen's text log; `None`: there are none.
pub(super) fn detect(sample: &[u8]) -> Option<Format> {
    // In EDN and JSON an operation is a map.
    let formats: &[(Format, bool)] = match memchr::memchr(b'{', sample) {
        Some(_) => &[(Format::Edn, false), (Format::Operations, true)],
        None => &[],
    };
    for &(format, json) in formats {
        let mut elements = elements::Elements::new(json);
        let mut spans = Vec::new();
        let shown = |span: &super::json::framing::Span| {
            let text = std::str::from_utf8(&sample[span.start..span.end]).ok()?;
            // In EDN the nemesis has the fields of an operation; in JSON any object may be a note.
            line(format, text).ok().flatten().filter(|line| !json || *line != Line::Other)
        };
        // The first operation may be longer than the sample.
        let begun =
            || [":process", ":type", ":f"].iter().all(|name| memchr::memmem::find(sample, name.as_bytes()).is_some());
        // Most files show their format in the first line, so the scan begins with 512 bytes.
        let (mut end, mut seen) = (0, 0);
        while seen < 64 && end < sample.len() {
            end = (end.max(256) * 2).min(sample.len());
            elements.scan(&sample[..end], &mut spans);
            if spans[seen..].iter().take(64 - seen).any(|span| shown(span).is_some()) {
                return Some(format);
            }
            seen = spans.len();
        }
        if !json && spans.is_empty() && begun() {
            return Some(format);
        }
    }
    let mut lines = sample.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    let is_log = lines.any(|line| matches!(log::line(&line), Ok(Some(_))));
    if is_log {
        return Some(Format::JepsenLog);
    }
    let first =
        sample.split(|byte| *byte == b'\n').map(String::from_utf8_lossy).find(|line| !line.trim().is_empty())?;
    steps::is_step(&first).then_some(Format::Transactions)
}

/// The problem of an element without a field that operations have.
fn fault(expected: &str, element: &str) -> Fault {
    Fault::new(expected, Found::text("an element without that,", element))
}
