//! One chunk of a container: header, checksum, compression.

use super::{Codec, LARGEST, MOST_DENSE, Refusal};
use std::borrow::Cow;
use std::io::Read;

/// Length of a chunk's header in bytes.
pub(super) const HEAD: usize = 20;

/// The kind of the chunk that ends a container.
pub(super) const END: u16 = u16::MAX;

/// Codings of a chunk's bytes.
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// A chunk as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// The kind of its table.
    pub kind: u16,
    /// Whether it is the last one of its table.
    pub last: bool,
    coding: u8,
    raw_length: u32,
    bytes: Vec<u8>,
}

impl Chunk {
    /// Packs bytes; `None` if they are longer than [`LARGEST`].
    pub fn pack(kind: u16, last: bool, raw: Vec<u8>, compress: bool) -> Option<Chunk> {
        let raw_length = u32::try_from(raw.len()).ok().filter(|length| *length as usize <= LARGEST)?;
        let packed = if compress { compressed(&raw) } else { None };
        let worth = |packed: &Vec<u8>| packed.len() < raw.len() && raw.len() / MOST_DENSE < packed.len();
        Some(match packed.filter(worth) {
            Some(bytes) => Chunk { kind, last, coding: ZSTD, raw_length, bytes },
            None => Chunk { kind, last, coding: PLAIN, raw_length, bytes: raw },
        })
    }

    /// Header and bytes of the chunk with this number.
    pub fn stored(&self, number: u32) -> ([u8; HEAD], &[u8]) {
        let mut head = [0; HEAD];
        head[..2].copy_from_slice(&self.kind.to_le_bytes());
        head[2] = self.coding;
        head[3] = u8::from(self.last);
        head[4..8].copy_from_slice(&number.to_le_bytes());
        head[8..12].copy_from_slice(&self.raw_length.to_le_bytes());
        // Not longer than the raw bytes, whose length fits into 32 bits.
        head[12..16].copy_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&head[..16]), &self.bytes);
        head[16..].copy_from_slice(&sum.to_le_bytes());
        (head, &self.bytes)
    }

    /// Reads the chunk that must have this number.
    pub fn read(from: &mut dyn Read, number: u32) -> Result<Chunk, Refusal> {
        let mut head = [0; HEAD];
        from.read_exact(&mut head).map_err(cut_off)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (raw_length, length) = (word(8), word(12));
        let mut bytes = Vec::new();
        // The buffer grows as bytes arrive, whatever length the header claims.
        from.take(u64::from(length)).read_to_end(&mut bytes)?;
        if bytes.len() != length as usize {
            return Err(Refusal::CutOff);
        }
        let damaged = |what: &str| Refusal::Damaged(format!("chunk {number} has {what}"));
        if crc32c::crc32c_append(crc32c::crc32c(&head[..16]), &bytes) != word(16) {
            return Err(damaged("a wrong checksum"));
        }
        if word(4) != number {
            return Err(damaged(&format!("the number {}", word(4))));
        }
        let fits = match head[2] {
            PLAIN => raw_length == length,
            ZSTD => raw_length as usize <= LARGEST && raw_length as usize / MOST_DENSE < bytes.len(),
            other => return Err(Refusal::Version(format!("compression {other}"))),
        };
        if !fits {
            return Err(damaged("an impossible length"));
        }
        let last = match head[3] {
            0 => false,
            1 => true,
            _ => return Err(damaged("an unknown mark")),
        };
        Ok(Chunk { kind: u16::from_le_bytes([head[0], head[1]]), last, coding: head[2], raw_length, bytes })
    }

    /// The raw bytes, decompressed if needed.
    pub fn raw(&self) -> Result<Cow<'_, [u8]>, Refusal> {
        if self.coding == PLAIN {
            return Ok(Cow::Borrowed(&self.bytes));
        }
        let raw = decompressed(&self.bytes, self.raw_length as usize)?;
        if raw.len() != self.raw_length as usize {
            return Err(Refusal::Damaged("a compressed chunk with a wrong length".to_owned()));
        }
        Ok(Cow::Owned(raw))
    }

    /// Decodes the value.
    pub fn value<T: serde::de::DeserializeOwned>(&self, codec: Codec) -> Result<T, Refusal> {
        codec.decode(&self.raw()?)
    }

    /// The offset after a chunk that begins at `begin`.
    pub fn end(&self, begin: u64) -> u64 {
        begin + (HEAD + self.bytes.len()) as u64
    }
}

/// Maps the end of the file inside a chunk to [`Refusal::CutOff`].
pub(super) fn cut_off(error: std::io::Error) -> Refusal {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Refusal::CutOff,
        _ => Refusal::Unreadable(error),
    }
}

/// Compresses at a fast level, since a container is often read only once or twice.
#[cfg(feature = "compress")]
fn compressed(raw: &[u8]) -> Option<Vec<u8>> {
    const LEVEL: i32 = 3;
    zstd::bulk::compress(raw, LEVEL).ok()
}

#[cfg(not(feature = "compress"))]
fn compressed(_: &[u8]) -> Option<Vec<u8>> {
    None
}

#[cfg(feature = "compress")]
fn decompressed(bytes: &[u8], length: usize) -> Result<Vec<u8>, Refusal> {
    zstd::bulk::decompress(bytes, length)
        .map_err(|error| Refusal::Damaged(format!("a compressed chunk that cannot be decompressed ({error})")))
}

#[cfg(not(feature = "compress"))]
fn decompressed(_: &[u8], _: usize) -> Result<Vec<u8>, Refusal> {
    Err(Refusal::Unfit("is compressed, and this build has no feature `compress`".to_owned()))
}
