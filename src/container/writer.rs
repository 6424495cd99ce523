//! Writes tables into a container.

use super::chunk::{Chunk, END};
use super::{Codec, FRAMING, MAGIC};
use rayon::prelude::*;
use serde::Serialize;
use std::io::{self, Write};
use std::ops::Range;

/// Rows per chunk, unless they are long.
const CHUNK_ROWS: usize = 1 << 14;

/// A chunk with more unpacked bytes is split.
const MAX_CHUNK_BYTES: usize = 4 << 20;

/// Number of chunks held in memory.
const AT_A_TIME: usize = 64;

/// Writes tables one after the other. A reader takes them in the same order.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    compress: bool,
    number: u32,
    at: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a container with this version of contents.
    pub fn new(mut out: W, content: u16, compress: bool) -> io::Result<Writer<W>> {
        let mut header = MAGIC.to_vec();
        header.extend([FRAMING, Codec::Bincode2.number()]);
        header.extend(content.to_le_bytes());
        header.extend(crc32c::crc32c(&header).to_le_bytes());
        out.write_all(&header)?;
        Ok(Writer { out, compress, number: 0, at: header.len() as u64 })
    }

    /// Writes a table of `length` rows; `part` returns the rows of a range.
    pub fn table<R: Serialize>(
        &mut self,
        kind: u16,
        rows: usize,
        part: impl Fn(Range<usize>) -> R + Sync,
    ) -> io::Result<()> {
        let compress = self.compress;
        let ranges: Vec<Range<usize>> =
            (0..rows.max(1)).step_by(CHUNK_ROWS).map(|start| start..rows.min(start + CHUNK_ROWS)).collect();
        for some in ranges.chunks(AT_A_TIME) {
            let end = some.last().map_or(0, |range| range.end);
            let chunks: Vec<Vec<Chunk>> = some
                .par_iter()
                .map(|range| {
                    let mut chunks = Vec::new();
                    // A row may be as long as a line of the evidence.
                    let mut open = vec![range.clone()];
                    while let Some(range) = open.pop() {
                        let raw = Codec::Bincode2.encode(&part(range.clone())).map_err(io::Error::other)?;
                        if raw.len() > MAX_CHUNK_BYTES && range.len() > 1 {
                            let middle = range.start + range.len() / 2;
                            open.extend([middle..range.end, range.start..middle]);
                            continue;
                        }
                        let last = range.end == rows;
                        chunks.push(Chunk::pack(kind, last, raw, compress).ok_or_else(too_long)?);
                    }
                    Ok(chunks)
                })
                .collect::<io::Result<_>>()?;
            debug_assert!(end == rows || some.len() == AT_A_TIME);
            for chunk in chunks.iter().flatten() {
                self.chunk(chunk)?;
            }
        }
        Ok(())
    }

    /// Writes a slice of rows as a table.
    pub fn rows<T: Serialize + Sync>(&mut self, kind: u16, rows: &[T]) -> io::Result<()> {
        self.table(kind, rows.len(), |range| &rows[range])
    }

    /// Writes a text as a table.
    pub fn text(&mut self, kind: u16, text: &str) -> io::Result<()> {
        let pieces = text.len().div_ceil(MAX_CHUNK_BYTES).max(1);
        for (at, piece) in text.as_bytes().chunks(MAX_CHUNK_BYTES).chain(text.is_empty().then_some(&[][..])).enumerate()
        {
            let chunk = Chunk::pack(kind, at + 1 == pieces, piece.to_vec(), self.compress).ok_or_else(too_long)?;
            self.chunk(&chunk)?;
        }
        Ok(())
    }

    /// Writes the end chunk.
    pub fn finish(mut self) -> io::Result<W> {
        let end = Chunk::pack(END, true, self.at.to_le_bytes().to_vec(), false).ok_or_else(too_long)?;
        self.chunk(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn chunk(&mut self, chunk: &Chunk) -> io::Result<()> {
        let (head, bytes) = chunk.stored(self.number);
        self.out.write_all(&head)?;
        self.out.write_all(bytes)?;
        self.at = chunk.end(self.at);
        self.number = self.number.checked_add(1).ok_or_else(too_long)?;
        Ok(())
    }
}

fn too_long() -> io::Error {
    io::Error::other("too large for a history container")
}
