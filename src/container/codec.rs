//! Encodes rows to bytes and back. This is the only file that uses bincode.
//!
//! bincode 2.0.1 is its last usable release, and its format is documented (`docs/spec.md` of the crate); wincode could replace it
//! with the same bytes. Through serde, collections grow as elements arrive, whatever length is claimed. Text and bytes are
//! allocated by their claimed length, so every decoding has a limit.

use super::Refusal;
use bincode::config::{self, Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The encoding of rows. Its number is in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// bincode 2 through serde: little endian, integers of varying length.
    Bincode2,
}

/// Chunk lengths in bytes that select one of three limits.
const SMALL_CHUNK_BYTES: usize = 128 << 10;
const LARGE_CHUNK_BYTES: usize = 32 << 20;

/// The limit for chunks of this length. A number counts by its width: up to eight bytes for one stored byte.
const fn limit(length: usize) -> usize {
    length.saturating_mul(16)
}

const fn limited<const N: usize>() -> Configuration<LittleEndian, Varint, Limit<N>> {
    config::standard().with_limit::<N>()
}

impl Codec {
    /// The number in the header.
    pub fn number(self) -> u8 {
        match self {
            Codec::Bincode2 => 1,
        }
    }

    /// Encodes a value.
    pub(super) fn encode<T: Serialize + ?Sized>(self, value: &T) -> Result<Vec<u8>, String> {
        bincode::serde::encode_to_vec(value, config::standard()).map_err(|error| error.to_string())
    }

    /// Decodes a value from all bytes. Of three fixed limits the least sufficient one applies, which bounds the allocations that
    /// a hostile length can cause.
    pub(super) fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, Refusal> {
        use bincode::serde::decode_from_slice;
        let decoded = if bytes.len() <= SMALL_CHUNK_BYTES {
            decode_from_slice(bytes, limited::<{ limit(SMALL_CHUNK_BYTES) }>())
        } else if bytes.len() <= LARGE_CHUNK_BYTES {
            decode_from_slice(bytes, limited::<{ limit(LARGE_CHUNK_BYTES) }>())
        } else {
            decode_from_slice(bytes, limited::<{ limit(super::LARGEST) }>())
        };
        match decoded {
            Ok((value, used)) if used == bytes.len() => Ok(value),
            Ok((_, used)) => Err(Refusal::Damaged(format!("a chunk of {} bytes with {used} used", bytes.len()))),
            Err(error) => Err(Refusal::Damaged(format!("a chunk that cannot be decoded ({error})"))),
        }
    }
}
