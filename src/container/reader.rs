//! Reads a container into tables.

use super::chunk::{Chunk, END, cut_off};
use super::{Codec, FRAMING, MAGIC, Refusal};
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::io::Read;

/// Number of chunks that are unpacked together.
const AT_A_TIME: usize = 64;

/// A whole container in stored form, with all checksums verified and nothing missing. Tables must be taken in the order in which
/// they were written.
#[derive(Debug)]
pub struct Container {
    chunks: VecDeque<Chunk>,
    codec: Codec,
}

impl Container {
    /// Reads a container with this version of contents.
    pub fn read(from: &mut dyn Read, content: u16) -> Result<Container, Refusal> {
        let mut header = [0; 16];
        from.read_exact(&mut header[..8]).map_err(cut_off)?;
        if header[..8] != MAGIC {
            return Err(Refusal::Foreign);
        }
        from.read_exact(&mut header[8..]).map_err(cut_off)?;
        // A later framing may have another header; only its first byte is certain.
        if header[8] != FRAMING {
            return Err(Refusal::Version(format!("framing {}", header[8])));
        }
        if crc32c::crc32c(&header[..12]).to_le_bytes() != header[12..] {
            return Err(Refusal::Damaged("the header has a wrong checksum".to_owned()));
        }
        if header[9] != Codec::Bincode2.number() {
            return Err(Refusal::Version(format!("codec {}", header[9])));
        }
        let version = u16::from_le_bytes([header[10], header[11]]);
        if version != content {
            let which = if version < content { "an older" } else { "a later" };
            return Err(Refusal::Version(format!("contents {version}, {which} one than {content}")));
        }
        let (mut at, mut chunks) = (header.len() as u64, VecDeque::new());
        for number in 0..u32::MAX {
            let chunk = Chunk::read(from, number)?;
            if chunk.kind == END {
                if chunk.raw()?[..] != at.to_le_bytes() {
                    return Err(Refusal::Damaged("the stated length is wrong".to_owned()));
                }
                break;
            }
            at = chunk.end(at);
            chunks.push_back(chunk);
        }
        if from.read(&mut [0])? != 0 {
            return Err(Refusal::Damaged("bytes follow its end".to_owned()));
        }
        Ok(Container { chunks, codec: Codec::Bincode2 })
    }

    /// Takes the next table, which must have this kind. `take` receives its rows in order, in pieces.
    pub fn each<T: DeserializeOwned + Send>(&mut self, kind: u16, mut take: impl FnMut(Vec<T>)) -> Result<(), Refusal> {
        let codec = self.codec;
        let chunks = self.chunks_of(kind)?;
        for some in chunks.chunks(AT_A_TIME) {
            let rows: Vec<Vec<T>> = some.par_iter().map(|chunk| chunk.value(codec)).collect::<Result<_, _>>()?;
            rows.into_iter().for_each(&mut take);
        }
        Ok(())
    }

    /// The rows of the next table.
    pub fn rows<T: DeserializeOwned + Send>(&mut self, kind: u16) -> Result<Vec<T>, Refusal> {
        let mut all = Vec::new();
        self.each(kind, |mut rows: Vec<T>| {
            if all.is_empty() {
                all = rows;
            } else {
                all.append(&mut rows);
            }
        })?;
        Ok(all)
    }

    /// The only row of the next table.
    pub fn row<T: DeserializeOwned + Send>(&mut self, kind: u16) -> Result<T, Refusal> {
        let mut rows = self.rows(kind)?;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            _ => Err(Refusal::contradiction(format!("table {kind} does not have exactly one row"))),
        }
    }

    /// The text of the next table.
    pub fn text(&mut self, kind: u16) -> Result<String, Refusal> {
        let mut all = Vec::new();
        for chunk in self.chunks_of(kind)? {
            all.extend_from_slice(&chunk.raw()?);
        }
        String::from_utf8(all).map_err(|_| Refusal::contradiction("names that are not UTF-8"))
    }

    /// Checks that every table was taken.
    pub fn end(&self) -> Result<(), Refusal> {
        match self.chunks.front() {
            Some(chunk) => Err(Refusal::contradiction(format!("table {} where none is expected", chunk.kind))),
            None => Ok(()),
        }
    }

    fn chunks_of(&mut self, kind: u16) -> Result<Vec<Chunk>, Refusal> {
        let mut found = Vec::new();
        while let Some(chunk) = self.chunks.pop_front() {
            if chunk.kind != kind {
                break;
            }
            let last = chunk.last;
            found.push(chunk);
            if last {
                return Ok(found);
            }
        }
        Err(Refusal::contradiction(format!("table {kind} is missing or incomplete at its place")))
    }
}
