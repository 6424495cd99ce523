//! Opens an input as a stream of decompressed bytes.
//!
//! Limits bound decompression by the stored size. A file that grows during reading is read up to its length at
//! opening; one that shrinks is a problem. Damaged content must decode to the same bytes for every reader, whatever
//! its buffer.

use super::InputFile;
use crate::ingest::Progress;
#[cfg(feature = "compress")]
use crate::ingest::limits::LARGEST_WINDOW_LOG;
use crate::ingest::limits::{FREE_INFLATION, MOST_INFLATION};
use crate::ingest::problem::{Fault, Found, size};
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A decompressed stream.
pub(in crate::ingest) struct Stream<'a> {
    reader: Box<dyn Read + Send + 'a>,
    /// `gzip` or `zstd`.
    pub compression: Option<&'static str>,
    /// Whether it is a member of an archive.
    pub is_part: bool,
    /// Expected length in bytes, if it is known.
    pub length: Option<u64>,
    flow: Arc<Flow>,
}

impl Stream<'_> {
    /// Whether its offsets are those of the file on disk, so that they can be sought.
    pub fn is_plain(&self) -> bool {
        self.compression.is_none() && !self.is_part
    }

    /// Buffer size for the sample, at most `most` bytes. Clearing an unused buffer would take longer than reading a small
    /// file.
    pub fn sample_size(&self, most: usize) -> usize {
        self.length.and_then(|length| usize::try_from(length).ok()).map_or(most, |length| most.min(length + 1))
    }

    /// Whether the file is longer now than at its opening.
    pub fn has_grown(&self) -> bool {
        self.flow.grown.load(Ordering::Relaxed)
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

/// Byte counts of one stored file, shared by everything packed inside it.
#[derive(Debug, Default)]
struct Flow {
    /// Stored bytes read so far.
    stored: AtomicU64,
    /// Decoded bytes so far, of all layers.
    #[cfg(feature = "compress")]
    inflated: AtomicU64,
    grown: AtomicBool,
}

impl Flow {
    /// Counts decoded bytes against the limit. A few stored bytes can decode to any number, and nested compression
    /// multiplies.
    #[cfg(feature = "compress")]
    fn inflate(&self, bytes: usize) -> io::Result<()> {
        let inflated = self.inflated.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        let most = self.stored.load(Ordering::Relaxed).saturating_mul(MOST_INFLATION);
        if inflated > most.max(FREE_INFLATION) { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
    }
}

/// Counts the bytes read from disk.
struct Counted<'a, R> {
    inner: R,
    progress: &'a dyn Progress,
    /// Bytes left of the length at opening. A file that shrinks loses lines, so its early end is an error. Bytes
    /// appended later are not read: the writer may be faster than the reader.
    left: Option<u64>,
    flow: Arc<Flow>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let n = match &mut self.left {
            None => self.inner.read(buffer)?,
            Some(0) => {
                if !self.flow.grown.load(Ordering::Relaxed) && self.inner.read(&mut [0])? > 0 {
                    self.flow.grown.store(true, Ordering::Relaxed);
                }
                0
            }
            Some(left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                let n = self.inner.read(&mut buffer[..most])?;
                if n == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *left -= n as u64;
                n
            }
        };
        self.flow.stored.fetch_add(n as u64, Ordering::Relaxed);
        self.progress.bytes(n as u64);
        Ok(n)
    }
}

/// Fills the buffer unless the stream ends, so that short reads of a pipe do not decide block boundaries.
pub(in crate::ingest) fn fill(stream: &mut dyn Read, buffer: &mut [u8]) -> (usize, io::Result<()>) {
    let mut filled = 0;
    while filled < buffer.len() {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}

/// Opens inputs one after the other. The members of an archive are read in one pass over it.
#[derive(Default)]
pub struct Opener<'a> {
    archive: Option<(&'a Path, Shared<'a>)>,
}

/// An archive, and the number of bytes read of it.
type Shared<'a> = Arc<Mutex<(Stream<'a>, u64)>>;

impl<'a> Opener<'a> {
    /// Opens an input and decompresses it if its first bytes say so.
    pub(in crate::ingest) fn open(
        &mut self,
        input: &'a InputFile,
        progress: &'a dyn Progress,
    ) -> Result<Stream<'a>, Fault> {
        let Some(member) = &input.member else {
            self.archive = None;
            return open_file(input, progress);
        };
        let kept = self.archive.take().filter(|(path, archive)| {
            *path == input.path && archive.lock().unwrap_or_else(PoisonError::into_inner).1 <= member.offset
        });
        let (path, archive) = match kept {
            Some(kept) => kept,
            None => (&*input.path, Arc::new(Mutex::new((open_file(input, progress)?, 0)))),
        };
        let flow = archive.lock().unwrap_or_else(PoisonError::into_inner).0.flow.clone();
        let content = Content { archive: archive.clone(), at: member.offset, left: member.length };
        self.archive = Some((path, archive));
        let mut stream = decompressed(content, Some(member.length), flow)?;
        stream.is_part = true;
        Ok(stream)
    }

    /// The decompressed content of an input.
    #[cfg(feature = "container")]
    pub fn content(&mut self, input: &'a InputFile, progress: &'a dyn Progress) -> io::Result<impl Read + use<'a>> {
        self.open(input, progress).map_err(|fault| io::Error::other(String::from(fault.found)))
    }

    /// Whether an input is a container of histories. Pipes cannot be inspected before they are read.
    #[cfg(feature = "container")]
    pub fn is_container(&mut self, input: &'a InputFile) -> bool {
        if input.beginning.unread().is_some() {
            return false;
        }
        if let Some(seen) = input.beginning.seen() {
            return seen.is_container;
        }
        let regular = input.bytes.is_some() || std::fs::metadata(&input.path).is_ok_and(|data| data.is_file());
        let mut beginning = crate::container::MAGIC.map(|byte| !byte);
        if let Some(mut stream) = regular.then(|| self.open(input, &()).ok()).flatten() {
            fill(&mut stream, &mut beginning).1.ok();
        }
        beginning == crate::container::MAGIC
    }
}

/// The content of one archive member.
struct Content<'a> {
    archive: Shared<'a>,
    at: u64,
    left: u64,
}

impl Read for Content<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, at) = &mut *archive;
        if *at < self.at {
            *at += io::copy(&mut stream.take(self.at - *at), &mut io::sink())?;
        }
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let n = if *at == self.at { stream.read(&mut buffer[..wanted])? } else { 0 };
        if n == 0 && wanted > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        *at += n as u64;
        self.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

pub(in crate::ingest) fn open<'a>(input: &'a InputFile, progress: &'a dyn Progress) -> Result<Stream<'a>, Fault> {
    Opener::default().open(input, progress)
}

fn open_file<'a>(input: &'a InputFile, progress: &'a dyn Progress) -> Result<Stream<'a>, Fault> {
    let flow = Arc::<Flow>::default();
    if let Some(bytes) = &input.bytes {
        let counted = Counted { inner: &bytes[..], progress, left: None, flow: flow.clone() };
        return decompressed(counted, Some(bytes.len() as u64), flow);
    }
    if input.path.as_os_str() == "-" {
        let counted = Counted { inner: io::stdin(), progress, left: None, flow: flow.clone() };
        return decompressed(counted, None, flow);
    }
    let file = File::open(&input.path).map_err(|error| unreadable(&error))?;
    let data = file.metadata().map_err(|error| unreadable(&error))?;
    let kind = data.file_type();
    if kind.is_dir() {
        return Err(Fault::new("a regular file or a pipe", "a directory"));
    }
    if is_device(kind) {
        return Err(Fault::new("a regular file or a pipe", "a device"));
    }
    let length = kind.is_file().then_some(data.len());
    decompressed(Counted { inner: file, progress, left: length, flow: flow.clone() }, length, flow)
}

#[cfg(unix)]
fn is_device(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: std::fs::FileType) -> bool {
    false
}

/// The problem of an error of the operating system.
pub(in crate::ingest) fn unreadable(error: &io::Error) -> Fault {
    if error.kind() == io::ErrorKind::FileTooLarge {
        let free = size(FREE_INFLATION);
        let expected = format!("at most {free} or {MOST_INFLATION} times the stored size after decompression");
        return Fault::new(expected, "more");
    }
    Fault::new("a file that can be read", Found::described(error.to_string()))
}

fn decompressed<'a>(mut raw: impl Read + Send + 'a, length: Option<u64>, flow: Arc<Flow>) -> Result<Stream<'a>, Fault> {
    let mut magic = [0u8; 4];
    let (n, result) = fill(&mut raw, &mut magic);
    result.map_err(|error| unreadable(&error))?;
    let whole = Cursor::new(magic).take(n as u64).chain(raw);
    match magic {
        [0x1f, 0x8b, ..] => gunzip(whole, length, flow),
        [0x28, 0xb5, 0x2f, 0xfd] => unzstd(whole, flow),
        _ => Ok(Stream { reader: Box::new(whole), compression: None, is_part: false, length, flow }),
    }
}

/// Reads the decoder in fixed steps, whatever the caller's buffer. At damage a decoder drops what it decoded in the
/// same step. With fixed steps the content of a damaged file is the same for every reader. It ends at the damage.
#[cfg(feature = "compress")]
struct Decoded<R> {
    decoder: R,
    step: Box<[u8]>,
    /// Bytes of the step that are decoded but not read.
    ready: std::ops::Range<usize>,
    ended: Option<io::ErrorKind>,
    flow: Arc<Flow>,
}

#[cfg(feature = "compress")]
impl<R> Decoded<R> {
    /// Bytes of one step.
    const STEP: usize = 64 << 10;

    fn new(decoder: R, flow: Arc<Flow>) -> Decoded<R> {
        Decoded { decoder, step: vec![0; Self::STEP].into(), ready: 0..0, ended: None, flow }
    }
}

#[cfg(feature = "compress")]
impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.ready.is_empty() {
            if let Some(kind) = self.ended {
                return Err(kind.into());
            }
            let decoded = self.decoder.read(&mut self.step).and_then(|n| self.flow.inflate(n).map(|()| n));
            self.ready = 0..decoded.inspect_err(|error| {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.ended = Some(error.kind());
                }
            })?;
        }
        let n = buffer.len().min(self.ready.len());
        buffer[..n].copy_from_slice(&self.step[self.ready.start..][..n]);
        self.ready.start += n;
        Ok(n)
    }
}

#[cfg(feature = "compress")]
fn gunzip<'a>(raw: impl Read + Send + 'a, length: Option<u64>, flow: Arc<Flow>) -> Result<Stream<'a>, Fault> {
    // Small, since an archive may hold many small files.
    let capacity = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(usize::MAX).clamp(512, 256 << 10);
    let raw = io::BufReader::with_capacity(capacity, raw);
    let reader = Decoded::new(flate2::bufread::MultiGzDecoder::new(raw), flow.clone());
    Ok(Stream { reader: Box::new(reader), compression: Some("gzip"), is_part: false, length: None, flow })
}

#[cfg(feature = "compress")]
fn unzstd<'a>(raw: impl Read + Send + 'a, flow: Arc<Flow>) -> Result<Stream<'a>, Fault> {
    let mut decoder = zstd::Decoder::new(raw).map_err(|error| unreadable(&error))?;
    decoder.window_log_max(LARGEST_WINDOW_LOG).map_err(|error| unreadable(&error))?;
    let reader = Decoded::new(decoder, flow.clone());
    Ok(Stream { reader: Box::new(reader), compression: Some("zstd"), is_part: false, length: None, flow })
}

#[cfg(not(feature = "compress"))]
fn gunzip<'a>(_: impl Read + Send + 'a, _: Option<u64>, _: Arc<Flow>) -> Result<Stream<'a>, Fault> {
    Err(Fault::new("evidence without compression (decompress it; this build has no feature `compress`)", "gzip"))
}

#[cfg(not(feature = "compress"))]
fn unzstd<'a>(_: impl Read + Send + 'a, _: Arc<Flow>) -> Result<Stream<'a>, Fault> {
    Err(Fault::new("evidence without compression (decompress it; this build has no feature `compress`)", "zstd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "compress")]
    #[test]
    fn what_is_read_of_damaged_packed_content_does_not_depend_on_how_it_is_read() {
        use std::io::Write;
        let text: Vec<u8> =
            (0..60_000u32).flat_map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761)).into_bytes()).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        for whole in [gzip.finish().unwrap(), zstd::encode_all(&text[..], 1).unwrap()] {
            for part in 1..8 {
                let at = whole.len() * part / 8;
                let mut flipped = whole.clone();
                flipped[at] ^= 16;
                for damaged in [whole[..at].to_vec(), flipped] {
                    let input = InputFile { bytes: Some(damaged.into()), ..InputFile::default() };
                    let content = |size: usize| {
                        let (mut stream, mut content) = (open(&input, &()).unwrap(), Vec::new());
                        let mut buffer = vec![0; size];
                        loop {
                            let (n, result) = fill(&mut stream, &mut buffer);
                            content.extend_from_slice(&buffer[..n]);
                            if n < size || result.is_err() {
                                return content;
                            }
                        }
                    };
                    let read = content(1 << 20);
                    assert!(read == content(1000) && read == content(70_000), "{part}: {} bytes", read.len());
                }
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_read_is_cut_off() {
        let path = std::env::temp_dir().join(format!("retrograde-shrinks-{}", std::process::id()));
        std::fs::write(&path, "12345\n".repeat(1000)).unwrap();
        let input = InputFile { path: path.clone(), ..InputFile::default() };
        let mut whole = Vec::new();
        open(&input, &()).unwrap().read_to_end(&mut whole).unwrap();
        let mut stream = open(&input, &()).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(600).unwrap();
        let mut rest = vec![0; 10_000];
        let (read, result) = fill(&mut stream, &mut rest);
        std::fs::remove_file(&path).unwrap();
        assert_eq!((whole.len(), read), (6000, 600));
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
