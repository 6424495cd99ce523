//! Blocks: whole lines or documents of one file, the unit of work of a parser thread.

pub(super) mod ordered_parallel;
pub(super) mod read_totals;
pub(super) mod reader;

use super::detection::SAMPLE;
use super::detection::format::Format;
use super::input::content::Content;
use super::json::framing::Span;
use super::problem::Fault;
use std::sync::{Arc, Mutex};

/// One item from the reader to a worker.
pub(super) enum Piece {
    /// Whole lines or documents.
    Block(Block),
    /// A binary file, which is read as a whole.
    Whole(Whole),
    /// The end of a file.
    Closed(Closed),
}

/// A binary file whose parts depend on each other.
pub(super) struct Whole {
    pub file: usize,
    pub format: Format,
    pub content: Content,
}

/// Boundaries of the values in a block.
pub(super) enum Layout {
    /// One value a line.
    Lines,
    /// The documents at these places.
    Documents(Vec<Span>),
    /// Documents, each with `{` alone on its first line.
    Indented,
    /// The bytes are skipped. The number counts the line ends in front of the remaining bytes.
    Skipped(u32),
}

/// Whole lines or documents of one file.
pub(super) struct Block {
    pub file: usize,
    pub format: Format,
    /// Offset of the first byte in the decompressed content.
    pub offset: u64,
    /// Buffer that holds the bytes; it may hold more behind them.
    pub storage: Storage,
    /// Bytes of the buffer that belong to the block.
    pub length: usize,
    /// Boundaries of its values.
    pub layout: Layout,
    /// NUL bytes that were dropped in front of the block.
    pub nuls: u64,
    /// Problem of a value too long to be kept.
    pub fault: Option<Fault>,
}

/// Storage of a block's bytes.
pub(super) enum Storage {
    /// A buffer from [`Buffers`].
    Buffer(Vec<u8>),
    /// The input itself, and the offset at which the block begins.
    Memory(Arc<[u8]>, usize),
}

impl Block {
    /// The bytes of the block.
    pub fn bytes(&self) -> &[u8] {
        match &self.storage {
            Storage::Buffer(buffer) => &buffer[..self.length],
            Storage::Memory(bytes, start) => &bytes[*start..start + self.length],
        }
    }
}

/// Summary of one file after its last block.
pub(super) struct Closed {
    pub file: usize,
    /// Format, if the file is evidence.
    pub format: Option<Format>,
    /// Reason why the file is ignored.
    pub ignored: Option<String>,
    /// Decompressed bytes read.
    pub bytes: u64,
    /// Whether the file grew during reading.
    pub has_grown: bool,
    /// Problems of the file as a whole.
    pub faults: Vec<Fault>,
}

/// Used buffers for reuse: a new one would be cleared first.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// A buffer of at least `length` bytes.
    pub fn take(&self, length: usize) -> Vec<u8> {
        let kept = self.0.lock().ok().and_then(|mut kept| kept.pop());
        let mut buffer = kept.unwrap_or_default();
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        buffer
    }

    /// Keeps a buffer for reuse. Buffers smaller than a block, or made huge by a long line, are dropped.
    pub fn give_back(&self, storage: Storage, block_bytes: usize) {
        if let Storage::Buffer(buffer) = storage
            && let Ok(mut kept) = self.0.lock()
            && buffer.len() >= block_bytes
            && buffer.len() <= block_bytes.saturating_mul(4).max(SAMPLE)
            && kept.len() < 64
        {
            kept.push(buffer);
        }
    }
}
