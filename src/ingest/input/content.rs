//! Binary files with random access: logs and stores of etcd members.
//!
//! A file on disk is sought. Content from a stream is kept in memory without the zeros at its end, and reads as if
//! they were there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

/// Storage of a binary file.
#[derive(Debug)]
pub(in crate::ingest) enum Content {
    /// A regular file.
    File(PathBuf),
    /// Bytes from a stream that cannot be sought, without the zeros at the end.
    Memory(Kept),
    /// Bytes that the caller already held.
    Shared(Arc<[u8]>),
}

/// Content of a stream.
#[derive(Debug, Default)]
pub(in crate::ingest) struct Kept {
    bytes: Vec<u8>,
    length: u64,
}

impl Kept {
    /// Appends bytes. False if more than `most` bytes would have to be kept.
    ///
    /// etcd allocates files long before it fills them, so zeros at the end make up most of a young file.
    pub fn append(&mut self, bytes: &[u8], most: usize) -> bool {
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if used > 0 {
            let start = usize::try_from(self.length).unwrap_or(usize::MAX);
            if start.saturating_add(used) > most {
                return false;
            }
            self.bytes.resize(start, 0);
            self.bytes.extend_from_slice(&bytes[..used]);
        }
        self.length += bytes.len() as u64;
        true
    }
}

impl Content {
    /// Opens the content for reading.
    pub fn open(&self) -> io::Result<Opened<'_>> {
        Ok(match self {
            Content::File(path) => {
                let file = File::open(path)?;
                let length = file.metadata()?.len();
                Opened { bytes: Bytes::File(file), length }
            }
            Content::Memory(kept) => Opened { bytes: Bytes::Memory(&kept.bytes), length: kept.length },
            Content::Shared(bytes) => Opened { bytes: Bytes::Memory(bytes), length: bytes.len() as u64 },
        })
    }
}

/// Content that can be read from any offset.
#[derive(Debug)]
pub struct Opened<'a> {
    bytes: Bytes<'a>,
    length: u64,
}

#[derive(Debug)]
enum Bytes<'a> {
    File(File),
    Memory(&'a [u8]),
}

impl Opened<'_> {
    /// Length in bytes, with the zeros at the end.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Fills the buffer from an offset and returns the number of bytes; fewer only at the end of the content.
    pub fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let buffer = &mut buffer[..wanted];
        match &mut self.bytes {
            Bytes::File(file) => {
                file.seek(SeekFrom::Start(offset))?;
                let mut filled = 0;
                while filled < wanted {
                    match file.read(&mut buffer[filled..]) {
                        Ok(0) => break,
                        Ok(n) => filled += n,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(filled)
            }
            Bytes::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let kept = &bytes[start..bytes.len().min(start.saturating_add(wanted))];
                buffer[..kept.len()].copy_from_slice(kept);
                buffer[kept.len()..].fill(0);
                Ok(wanted)
            }
        }
    }
}
