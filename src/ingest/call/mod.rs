//! Operation logs: what processes asked of an object and were told, event by event.
//!
//! Three formats come to the same [`Event`]s: EDN as Jepsen writes it, lines of Jepsen's text log, and the JSON of
//! `docs/formats.md`. Values are read into [`Datum`]s, since each model has its own idea of them.

pub(crate) mod datum;
pub(super) mod edn;
pub(super) mod elements;
pub(super) mod json;
pub(super) mod log;
mod reader;

pub use datum::{Datum, Node};
pub use edn::parse;

use super::limits::LONGEST_NAME;
use super::problem::{Fault, Found, size};
use super::{Format, Time};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One record of an operation log.
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    /// What the log says about itself.
    Header(Header<'a>),
    /// What a process did.
    Event(Event<'a>),
    /// What somebody else did, such as Jepsen's nemesis: no operation.
    Other,
}

/// The header of an operation log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header<'a> {
    /// The model that the operations are meant for.
    pub model: Option<Cow<'a, str>>,
    /// The name of the clock that the times are of.
    pub clock: Option<Cow<'a, str>>,
}

/// What one process did at one time, or from one time to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    /// Who.
    pub process: Cow<'a, str>,
    /// What happened.
    pub kind: Kind,
    /// The operation, such as `read`.
    pub function: Cow<'a, str>,
    /// The object, where there are several.
    pub key: Option<Datum<'a>>,
    /// What was asked for; in a return also what was answered. `None`: the log has no such field.
    pub value: Option<Datum<'a>>,
    /// What was answered, where the log keeps it apart.
    pub result: Option<Datum<'a>>,
    /// When; of a whole operation, when it was invoked.
    pub at: Time,
    /// Of a whole operation, when it returned.
    pub until: Time,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An operation began.
    Invoke,
    /// The operation of the process ended.
    Return(Ending),
    /// A whole operation.
    Whole(Ending),
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ending {
    /// With an answer.
    Ok,
    /// Without effect, for certain.
    Fail,
    /// Nobody knows whether it had an effect.
    Unknown,
    /// With the answer "no".
    Refused,
}

impl Kind {
    /// The kind of a word as Jepsen has it (`:invoke :ok :fail :info`).
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

/// Reads one element of an operation log; `Ok(None)`: it holds nothing.
pub(super) fn line(format: Format, text: &str) -> Result<Option<Line<'_>>, Fault> {
    let line = match format {
        Format::JepsenLog => log::line(text)?.map(Line::Event),
        Format::Operations => Some(json::line(text)?),
        _ => edn::line(text)?,
    };
    let longest = match &line {
        Some(Line::Event(event)) => {
            let key = event.key.as_ref().map_or(0, Datum::length);
            event.process.len().max(event.function.len()).max(key)
        }
        _ => 0,
    };
    if longest > LONGEST_NAME {
        let expected = format!("a process, a function and a key of at most {} each", size(LONGEST_NAME as u64));
        return Err(Fault::new(expected, Found::told(size(longest as u64))));
    }
    Ok(line)
}

/// Whether an element of an operation log says what a process did.
pub fn is_operation(format: Format, text: &str) -> bool {
    format.is_operation_log() && matches!(line(format, text), Ok(Some(Line::Event(_))))
}

/// Whether the beginning of a file shows operations as EDN or as an array of JSON; `None`: it does not.
pub(super) fn detect(sample: &[u8]) -> Option<Format> {
    // An operation in either is a map.
    let formats: &[(Format, bool)] = match memchr::memchr(b'{', sample) {
        Some(_) => &[(Format::Edn, false), (Format::Operations, true)],
        None => &[],
    };
    for &(format, json) in formats {
        let mut elements = elements::Elements::new(json);
        let mut spans = Vec::new();
        let shown = |span: &super::framing::Span| {
            let text = std::str::from_utf8(&sample[span.start..span.end]).ok()?;
            // In EDN the nemesis has the fields of an operation; in JSON any object may be a note.
            line(format, text).ok().flatten().filter(|line| !json || *line != Line::Other)
        };
        // The first operation may be longer than the sample.
        let begun =
            || [":process", ":type", ":f"].iter().all(|name| memchr::memmem::find(sample, name.as_bytes()).is_some());
        // Most files show what they are in their first line.
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
    is_log.then_some(Format::JepsenLog)
}

/// The problem of an element that could be read, and lacks what an operation has.
fn fault(expected: &str, element: &str) -> Fault {
    Fault::new(expected, Found::text("an element without it,", element))
}
