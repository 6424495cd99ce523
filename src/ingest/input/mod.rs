//! One input with the user's options and what detection found before reading.

pub(super) mod archive;
mod collected;
pub(super) mod content;
pub(super) mod identity;
pub(crate) mod source;
pub(super) mod source_rule;
pub(super) mod stream;

use self::source_rule::SourceRule;
use super::detection::format::Format;
use super::detection::sniff::Beginning;
use super::position::FileId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One input: a file, a pipe, standard input (`-`), or bytes in memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputFile {
    /// Index in the list of inputs.
    #[doc(hidden)]
    pub id: FileId,
    /// Path for opening it.
    #[serde(serialize_with = "as_text")]
    #[doc(hidden)]
    pub path: PathBuf,
    /// The path as reports show it: as the user typed it, plus names from the directory walk.
    #[doc(hidden)]
    pub shown: String,
    /// Merged `--source` rules; a later rule wins field by field.
    #[doc(hidden)]
    pub source: SourceRule,
    /// Format that `--format` gives for this path.
    #[doc(hidden)]
    pub format: Option<Format>,
    /// Content in memory; `path` is then only a name.
    #[serde(skip)]
    #[doc(hidden)]
    pub bytes: Option<Arc<[u8]>>,
    /// The member of the archive at `path`, if it is one.
    #[doc(hidden)]
    pub member: Option<Member>,
    /// Result of detection, if the walk looked at the file.
    #[serde(skip)]
    #[doc(hidden)]
    pub beginning: Beginning,
    /// State of the file when it was read, if later commands must compare it.
    #[doc(hidden)]
    pub identity: Option<Identity>,
    /// Whether the input of a packed history has changed or is gone, so that its lines cannot be read again.
    #[serde(skip)]
    #[doc(hidden)]
    pub gone: bool,
}

/// A path that is no text is stored with replacement characters, and will not be found again.
fn as_text<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl InputFile {
    /// Whether its content can be read twice: it is in memory, or a regular file.
    #[doc(hidden)]
    pub fn can_be_read_again(&self) -> bool {
        self.bytes.is_some() || std::fs::metadata(&self.path).is_ok_and(|data| data.is_file())
    }

    /// An input with its content in memory.
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

/// One file of a tar archive.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Path without `./` or `/` in front.
    pub name: String,
    /// Offset of its content in the decompressed archive, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// State of a file for comparison. At most 1 MiB of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Stored size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970; 0 if unknown.
    pub modified: i64,
    /// CRC-32C of 64 pieces of 16 KiB, evenly spread, or of the whole file if it is shorter.
    pub digest: u32,
}
