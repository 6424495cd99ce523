//! The binary container: tables of rows in checksummed chunks. Knows nothing of what the rows mean.
//!
//! ```text
//! header    magic 8 bytes | framing u8 | codec u8 | content u16 | crc32c of these u32
//! chunk     kind u16 | coding u8 | last u8 | number u32 | raw length u32 | stored length u32 | crc32c of all u32 | bytes
//! ...
//! end       a chunk of kind 0xffff with the length of everything before it, u64
//! ```
//!
//! Integers are little endian. The chunks of a table stand together, the last one marked; chunks are numbered from 0, so that one
//! that is missing, moved or doubled is noticed as well as one that was changed. `content` is the version of what the tables
//! hold: it belongs to who writes them. A reader refuses versions that it does not know; a container is made anew from its source,
//! so none is ever converted.
//!
//! Limits, so that a hostile file costs no more than an honest one: a chunk is unpacked to no more than [`LARGEST`] bytes and to no
//! more than [`MOST_DENSE`] times its stored length, lengths inside a chunk are bounded by the chunk, and nothing is allocated for
//! bytes that are not there.

mod chunk;
mod codec;
mod reader;
mod writer;

pub use codec::Codec;
pub use reader::Container;
pub use writer::Writer;

use thiserror::Error;

/// The first bytes of a container: none of the formats of evidence begins with a byte above 0x7f, and a transfer as text shows.
pub const MAGIC: [u8; 8] = *b"\x89RGH\r\n\x1a\n";

/// The version of the framing above.
pub const FRAMING: u8 = 1;

/// The longest chunk when unpacked.
pub const LARGEST: usize = 1 << 30;

/// How many times longer than stored a chunk may be when unpacked; what is denser is stored as it is.
pub const MOST_DENSE: usize = 128;

/// Why a container is refused.
#[derive(Debug, Error)]
pub enum Refusal {
    /// It begins otherwise.
    #[error("no history container")]
    Foreign,
    /// Another version wrote it: an older one, or a later one.
    #[error("a history container of a version that this retrograde does not read ({0}): pack the evidence again")]
    Version(String),
    /// Bytes are missing at its end.
    #[error("a history container that is cut off")]
    CutOff,
    /// A checksum, a length or a number is not what it must be.
    #[error("a damaged history container: {0}")]
    Damaged(String),
    /// It says what no history says.
    #[error("a history container that contradicts itself: {0}")]
    Contradictory(String),
    /// It was packed so that this build or this command cannot use it.
    #[error("a history container that {0}")]
    Unfit(String),
    /// The system cannot read it.
    #[error("{0}")]
    Unreadable(#[from] std::io::Error),
}

impl Refusal {
    /// A contradiction.
    pub fn contradiction(what: impl Into<String>) -> Refusal {
        Refusal::Contradictory(what.into())
    }
}

#[cfg(test)]
mod tests;
