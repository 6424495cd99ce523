//! Problems: evidence that could not be used, with its place.
//!
//! A problem is never fatal and is always counted. Reports print "expected {expected}, found {found}", so both texts
//! are noun phrases.

pub(super) mod found;

pub use self::found::Found;
pub(super) use self::found::size;
use super::detection::format::Format;
use super::export::Export;
use super::position::FileId;
use serde::{Deserialize, Serialize};

/// One piece of evidence that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The file; `None` if the path could not be opened.
    #[doc(hidden)]
    pub file: Option<FileId>,
    /// The path as the user typed it.
    pub path: String,
    /// Number of the line, from 1; 0: the whole file.
    pub line: u32,
    /// Description of valid evidence at this place.
    pub expected: String,
    /// Kind and place of what was found, as [`Found`] describes it; never its content.
    pub found: String,
}

/// The name of a [`Format`]. It is a type of its own, so that serde does not borrow it from the input.
pub type FormatName = &'static str;

/// Totals of one input file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FileSummary {
    /// The path as the user typed it.
    pub path: String,
    /// The format, as `retrograde show` names it; `None`: no evidence.
    #[serde(deserialize_with = "known_format")]
    pub format: Option<FormatName>,
    /// Reason for the list of ignored files, if the file is no evidence.
    pub ignored: Option<String>,
    /// Lines or documents; of a binary file, records.
    pub lines: u64,
    /// Records passed on.
    pub records: u64,
    /// Lines that could not be used.
    pub problems: u64,
    /// Lines or fields of a kind that this version does not know. They are ignored by contract, yet counted.
    pub unknown: u64,
    /// What its envelopes say, if it is an export.
    pub export: Export,
    /// Bytes after decompression.
    pub bytes: u64,
    /// Whether the file grew during reading. Only the bytes present at its opening are read.
    #[serde(skip)]
    pub has_grown: bool,
}

impl FileSummary {
    /// The unit of [`FileSummary::lines`]: a binary file has records, not lines.
    pub fn unit(&self) -> &'static str {
        let is_binary = self.format.and_then(Format::from_name).is_some_and(Format::is_of_member);
        if is_binary { "record" } else { "line" }
    }

    /// Whether more than 0.1 % of the lines are unusable, so that the file cannot prove that a rule holds
    /// (`rules.md`, Kinds and verdicts).
    pub fn too_many_problems(&self) -> bool {
        self.problems > 0 && self.problems * 1000 > self.lines
    }
}

/// Reads the name of a known format.
fn known_format<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'static str>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let known =
        Format::from_name(&name).ok_or_else(|| serde::de::Error::custom("expected a known format, found another"))?;
    Ok(Some(known.name()))
}

/// A problem without its place.
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

pub(super) fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
