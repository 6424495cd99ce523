//! Binary files, of which any part can be read: logs and stores of etcd members.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

/// Where the bytes of a binary file are.
#[derive(Debug)]
pub(super) enum Content {
    /// In a file.
    File(PathBuf),
    /// In memory, because they came out of a stream that cannot be sought. Zeros at the end are not kept.
    Memory(Kept),
    /// In memory since before they were read.
    Shared(Arc<[u8]>),
}

/// What a stream held.
#[derive(Debug, Default)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    length: u64,
}

impl Kept {
    /// Appends bytes. False when more than `most` bytes would have to be kept.
    ///
    /// etcd allocates its files long before it fills them, so the zeros at the end are most of a young file.
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
    /// Opens the bytes for reading.
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

/// Bytes that can be read from any offset.
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
    /// How many bytes there are.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Fills the buffer from an offset; less only where the content ends.
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
