//! Rows to bytes and back. The only file that names bincode.
//!
//! bincode 2.0.1 is the last release that works, and its format is written down (`docs/spec.md` of the crate); wincode writes the same
//! bytes, should it have to be replaced. The path through serde is used, whose collections grow as elements arrive, whatever a
//! length claims; text and bytes are allocated by their claimed length, so every decoding has a limit.

use super::Refusal;
use bincode::config::{self, Configuration, Limit, LittleEndian, Varint};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How the rows of a chunk become bytes; its number stands in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// bincode 2 through serde: little endian, integers of varying length.
    Bincode2,
}

/// Chunks up to here have a limit of their own, and so have those up to [`LONG`].
const SHORT: usize = 128 << 10;
const LONG: usize = 32 << 20;

/// Numbers count against a limit by their width: up to eight bytes for one that is stored.
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

    /// The bytes of a value.
    pub(super) fn encode<T: Serialize + ?Sized>(self, value: &T) -> Result<Vec<u8>, String> {
        bincode::serde::encode_to_vec(value, config::standard()).map_err(|error| error.to_string())
    }

    /// The value of all these bytes. The limit is the least of a few that a chunk of this length can need: what a hostile length can
    /// make it allocate is bounded by it.
    pub(super) fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, Refusal> {
        use bincode::serde::decode_from_slice;
        let decoded = if bytes.len() <= SHORT {
            decode_from_slice(bytes, limited::<{ limit(SHORT) }>())
        } else if bytes.len() <= LONG {
            decode_from_slice(bytes, limited::<{ limit(LONG) }>())
        } else {
            decode_from_slice(bytes, limited::<{ limit(super::LARGEST) }>())
        };
        match decoded {
            Ok((value, used)) if used == bytes.len() => Ok(value),
            Ok((_, used)) => Err(Refusal::Damaged(format!("a chunk of {} bytes with {used} in use", bytes.len()))),
            Err(error) => Err(Refusal::Damaged(format!("a chunk without sense ({error})"))),
        }
    }
}
