//! What the user says about inputs, and the files that paths stand for.

use super::format::Format;
use super::position::FileId;
use std::path::PathBuf;

/// `--source 'GLOB:server=b,client=x,clock=c'`: what a file does not say about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceRule {
    /// Matched against the end of the path; `*` stays within one name.
    pub glob: String,
    /// Server that wrote or answered.
    pub server: Option<String>,
    /// Client that saw it.
    pub client: Option<String>,
    /// Clock of its times.
    pub clock: Option<String>,
}

/// One input file with what the user said about it.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// Index in the list of inputs.
    pub id: FileId,
    /// Where it is.
    pub path: PathBuf,
    /// The path as it is shown: as the user typed it, plus what a directory walk added.
    pub shown: String,
    /// The merged `--source` rules (a later rule wins field by field).
    pub source: SourceRule,
    /// `--format`, where one matched.
    pub format: Option<Format>,
}
