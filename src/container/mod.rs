//! The binary container: tables of rows in checksummed chunks. This module does not know the meaning of rows.
//!
//! ```text
//! header    magic 8 bytes | framing u8 | codec u8 | content u16 | crc32c of these u32
//! chunk     kind u16 | coding u8 | last u8 | number u32 | raw length u32 | stored length u32 | crc32c of all u32 | bytes
//! ...
//! end       a chunk of kind 0xffff with the length of everything before it, u64
//! ```
//!
//! Integers are little endian. The chunks of a table are adjacent, the last one marked. Chunks are numbered from 0, so a missing,
//! moved or repeated chunk is detected like a changed one. `content` is the version of the tables' content, which the writer
//! defines. A reader refuses unknown versions. There is no conversion, since a container can be packed again from its source.
//!
//! Limits keep a hostile file as cheap as an honest one. A chunk is unpacked to at most [`LARGEST`] bytes and at most
//! [`MOST_DENSE`] times its stored length. Lengths inside a chunk are bounded by the chunk, and nothing is allocated for bytes
//! that are not there.

mod chunk;
mod codec;
mod reader;
mod writer;

pub use codec::Codec;
pub use reader::Container;
pub use writer::Writer;

use thiserror::Error;

/// The first bytes of a container. No format of evidence begins with a byte above 0x7f, and a transfer in text mode would change
/// them.
pub const MAGIC: [u8; 8] = *b"\x89RGH\r\n\x1a\n";

/// The version of the framing above.
pub const FRAMING: u8 = 1;

/// Maximal length in bytes of an unpacked chunk.
pub const LARGEST: usize = 1 << 30;

/// Maximal ratio of unpacked to stored length. A denser chunk is stored uncompressed.
pub const MOST_DENSE: usize = 128;

/// The reason why a container is refused.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The file does not begin with [`MAGIC`].
    #[error("not a history container")]
    Foreign,
    /// An older or a newer version wrote it.
    #[error("a history container of a version that this retrograde does not read ({0}): pack the evidence again")]
    Version(String),
    /// Bytes are missing at the end.
    #[error("a history container that is cut off")]
    CutOff,
    /// A checksum, a length or a number is wrong.
    #[error("a damaged history container: {0}")]
    Damaged(String),
    /// Its rows cannot be those of a history.
    #[error("a history container that contradicts itself: {0}")]
    Contradictory(String),
    /// It was packed in a way that this build or this command cannot use.
    #[error("a history container that {0}")]
    Unfit(String),
    /// Reading failed.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
}

impl Refusal {
    /// A [`Refusal::Contradictory`].
    pub fn contradiction(what: impl Into<String>) -> Refusal {
        Refusal::Contradictory(what.into())
    }
}

#[cfg(test)]
mod tests;
