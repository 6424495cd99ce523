//! Blocks: whole lines or documents of one file, what a worker takes at a time.

use super::content::Content;
use super::detection::SAMPLE;
use super::format::Format;
use super::framing::Span;
use super::problem::Fault;
use std::sync::{Arc, Mutex};

/// What the reader hands to a worker.
pub(super) enum Piece {
    /// Some lines or documents.
    Block(Block),
    /// A whole file of which no part can be read without the others.
    Whole(Whole),
    /// The end of a file.
    Closed(Closed),
}

/// A binary file.
pub(super) struct Whole {
    /// Index of the file.
    pub file: usize,
    /// Format of the file.
    pub format: Format,
    /// Where its bytes are.
    pub content: Content,
}

/// How the values of a block are told apart.
pub(super) enum Layout {
    /// One a line.
    Lines,
    /// Where they are.
    Documents(Vec<Span>),
    /// Each begins with a line that is `{`.
    Indented,
    /// Nobody will look at them; so many lines ended before the bytes that are left.
    Skipped(u32),
}

/// Whole lines or documents of one file.
pub(super) struct Block {
    /// Index of the file.
    pub file: usize,
    /// Format of the file.
    pub format: Format,
    /// Offset of the first byte in the decompressed content.
    pub offset: u64,
    /// Where its bytes are, and perhaps others behind them.
    pub room: Room,
    /// How many of them belong to the block.
    pub length: usize,
    /// How the values in it are told apart.
    pub layout: Layout,
    /// NUL bytes that were dropped in front of it.
    pub nuls: u64,
    /// What is wrong with the first line beyond its bytes (which are then only its beginning).
    pub fault: Option<Fault>,
}

/// Where the bytes of a block are.
pub(super) enum Room {
    /// In a buffer that they were read into.
    Buffer(Vec<u8>),
    /// Where they were all the time, from a place on.
    Memory(Arc<[u8]>, usize),
}

impl Block {
    /// The bytes of the block.
    pub fn bytes(&self) -> &[u8] {
        match &self.room {
            Room::Buffer(buffer) => &buffer[..self.length],
            Room::Memory(bytes, start) => &bytes[*start..start + self.length],
        }
    }
}

/// How reading a file ended.
pub(super) struct Closed {
    /// Index of the file.
    pub file: usize,
    /// Its format.
    pub format: Option<Format>,
    /// Why it has none.
    pub ignored: Option<String>,
    /// Decompressed bytes read.
    pub bytes: u64,
    /// Whether it was written to while it was read.
    pub has_grown: bool,
    /// What is wrong with the file as a whole.
    pub faults: Vec<Fault>,
}

/// Buffers that workers are done with: new ones would have to be cleared first.
#[derive(Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// One of at least so many bytes.
    pub fn take(&self, length: usize) -> Vec<u8> {
        let kept = self.0.lock().ok().and_then(|mut kept| kept.pop());
        let mut buffer = kept.unwrap_or_default();
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        buffer
    }

    /// Takes a buffer back, unless it is the small one of a small file or one that a long line made huge.
    pub fn give_back(&self, room: Room, block_bytes: usize) {
        if let Room::Buffer(buffer) = room
            && let Ok(mut kept) = self.0.lock()
            && buffer.len() >= block_bytes
            && buffer.len() <= block_bytes.saturating_mul(4).max(SAMPLE)
            && kept.len() < 64
        {
            kept.push(buffer);
        }
    }
}
