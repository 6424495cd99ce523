//! One input, and what was found out about it before it is read.

use super::format::Format;
use super::position::FileId;
use super::sniff::Beginning;
use super::source_rule::SourceRule;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One input with what the user said about it: a file, a pipe, standard input (`-`), or bytes in memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputFile {
    /// Index in the list of inputs.
    pub id: FileId,
    /// Where it is.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The path as it is shown: as the user typed it, plus what a directory walk added.
    pub shown: String,
    /// The merged `--source` rules (a later rule wins field by field).
    pub source: SourceRule,
    /// `--format`, where one matched.
    pub format: Option<Format>,
    /// The content, where it is already in memory; the path is then only a name.
    #[serde(skip)]
    pub bytes: Option<Arc<[u8]>>,
    /// Which file of the archive at `path` it is, where it is one.
    pub member: Option<Member>,
    /// What it showed when it was found, where it was looked at.
    #[serde(skip)]
    pub beginning: Beginning,
    /// What it was when it was read, where somebody wants to know later whether it still is.
    pub identity: Option<Identity>,
    /// Whether it can no longer be read as it was: it belongs to a history that was packed, and has changed or is gone since.
    #[serde(skip)]
    pub gone: bool,
}

/// A path that is no text is stored as what comes nearest, where no file will be found.
fn as_text<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl InputFile {
    /// An input whose content is in memory.
    pub fn in_memory(id: FileId, name: &str, bytes: impl Into<Arc<[u8]>>) -> InputFile {
        InputFile {
            id,
            path: PathBuf::from(name),
            shown: name.to_owned(),
            bytes: Some(bytes.into()),
            ..InputFile::default()
        }
    }
}

/// One file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Its path, without `./` or `/` in front.
    pub name: String,
    /// Where its content begins in the decompressed archive.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
}

/// What tells one content of a file from another, cheaply: no more than 1 MiB of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Bytes, as they are stored.
    pub size: u64,
    /// When it was last changed, in nanoseconds since 1970; 0 where nobody knows.
    pub modified: i64,
    /// crc32c of 64 pieces of 16 KiB, evenly spread, or of all of it.
    pub digest: u32,
}
