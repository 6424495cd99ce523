//! What could not be used: never fatal, always counted, always with its place.

use super::format::Format;
pub use super::found::Found;
pub(super) use super::found::size;
use super::position::FileId;
use serde::{Deserialize, Serialize};

/// One piece of evidence that could not be used as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The file, or `None` for a path that could not be opened at all.
    pub file: Option<FileId>,
    /// The path as the user named it.
    pub path: String,
    /// The line from 1, 0 where the problem is the file's.
    pub line: u32,
    /// What stood to reason here.
    pub expected: String,
    /// What was found instead, as [`Found`] tells it: its kind and its place, never its content.
    pub found: String,
}

/// The name of a [`Format`] (with a name of its own, so that serde does not take it for text borrowed from what is read).
pub type FormatName = &'static str;

/// What reading one file came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileSummary {
    /// The path as the user named it.
    pub path: String,
    /// The format, as `retrograde show` names it, or `None` for a file that is no evidence.
    #[serde(deserialize_with = "known_format")]
    pub format: Option<FormatName>,
    /// Why a file without format is not evidence (shown in the list of ignored files).
    pub ignored: Option<String>,
    /// Lines (or documents) met.
    pub lines: u64,
    /// Records handed on.
    pub records: u64,
    /// Lines that could not be used.
    pub problems: u64,
    /// Lines or fields of a kind this version does not know (ignored by contract, yet counted).
    pub unknown: u64,
    /// Bytes after decompression.
    pub bytes: u64,
    /// Whether it was written to while it was read, which ended where its end was when it was opened.
    #[serde(skip)]
    pub has_grown: bool,
}

impl FileSummary {
    /// What [`FileSummary::lines`] counts: a binary file has records and no lines.
    pub fn unit(&self) -> &'static str {
        let is_binary = self.format.and_then(Format::from_name).is_some_and(Format::is_of_member);
        if is_binary { "record" } else { "line" }
    }

    /// Whether so much of the file was unusable that nothing may be said to hold on its account: more than 0.1 % of the
    /// lines (`rules.md`, Kinds and verdicts).
    pub fn too_many_problems(&self) -> bool {
        self.problems > 0 && self.problems * 1000 > self.lines
    }
}

/// The name of a format that there is.
fn known_format<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'static str>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let known = Format::from_name(&name).ok_or_else(|| serde::de::Error::custom("a format that nobody knows"))?;
    Ok(Some(known.name()))
}

/// A problem before its place is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// As in [`Problem`].
    pub expected: String,
    /// As in [`Problem`].
    pub found: Found,
}

impl Fault {
    pub fn new(expected: impl Into<String>, found: impl Into<Found>) -> Fault {
        Fault { expected: expected.into(), found: found.into() }
    }
}

/// `1 file`, `12 files`.
pub(super) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
