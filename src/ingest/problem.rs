//! What could not be used: never fatal, always counted, always with its place.

use super::position::FileId;

/// One piece of evidence that could not be used as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, or `None` for a path that could not be opened at all.
    pub file: Option<FileId>,
    /// The path as the user named it.
    pub path: String,
    /// The line from 1, 0 where the problem is the file's.
    pub line: u32,
    /// What stood to reason here.
    pub expected: String,
    /// What was found instead, at most 120 characters.
    pub found: String,
}

/// How many problems of one file are kept word for word; all are counted.
pub const KEPT_PROBLEMS_PER_FILE: usize = 20;

/// What reading one file came to.
#[derive(Clone, Debug, Default)]
pub struct FileSummary {
    /// The path as the user named it.
    pub path: String,
    /// The format, as `retrograde show` names it, or `None` for a file that is no evidence.
    pub format: Option<&'static str>,
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
}

impl FileSummary {
    /// Whether so much of the file was unusable that nothing may be said to hold on its account: more than 0.1 % of the
    /// lines (`rules.md`, Kinds and verdicts).
    pub fn too_many_problems(&self) -> bool {
        self.problems > 0 && self.problems * 1000 > self.lines
    }
}
