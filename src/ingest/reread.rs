//! Reads single lines or documents again by position, so that no text is kept in memory.

use super::envelope::{self, Quoted, runtime_line};
use super::input::InputFile;
use super::input::stream::Opener;
use super::json::framing::Framer;
use super::limits::LONGEST_LINE;
use super::position::Position;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of one read.
const STEP: usize = 16 * 1024;

/// Returns the JSON object at each position of a file, in the order of `positions`. An object or a text that holds an
/// audit event in an envelope is returned as that event; one that holds several, as an `EventList`.
///
/// The file is sought, or passed once if it is compressed or in an archive. `None`: the text cannot be read again.
/// That holds for standard input, for files removed or shortened since, and for positions without an object.
pub fn reread(file: &InputFile, positions: &[Position]) -> Vec<Option<String>> {
    reread_by(&mut Opener::default(), file, positions)
}

/// As [`reread`], with an opener. Members of an archive are read in one pass if they follow in archive order.
pub fn reread_by<'a>(opener: &mut Opener<'a>, file: &'a InputFile, positions: &[Position]) -> Vec<Option<String>> {
    let mut found = vec![None; positions.len()];
    let mut order: Vec<usize> = (0..positions.len()).collect();
    order.sort_by_key(|n| positions[*n].offset);
    let Some(mut source) = Source::open(opener, file) else { return found };
    let mut previous: Option<(u64, Option<String>)> = None;
    for n in order {
        let offset = positions[n].offset;
        if let Some((same, text)) = &previous
            && *same == offset
        {
            found[n].clone_from(text);
            continue;
        }
        found[n] = source.document(offset).and_then(envelope::without_envelope);
        previous = Some((offset, found[n].clone()));
    }
    found
}

enum Source<'a> {
    Memory(&'a [u8]),
    File(File),
    /// The stream, the bytes passed, and the bytes read but not passed.
    Stream(Box<dyn Read + 'a>, u64, Vec<u8>),
}

impl<'a> Source<'a> {
    fn open(opener: &mut Opener<'a>, file: &'a InputFile) -> Option<Source<'a>> {
        if file.gone || file.beginning.unread().is_some() {
            return None;
        }
        let regular = file.bytes.is_some() || std::fs::metadata(&file.path).is_ok_and(|data| data.is_file());
        // Standard input and pipes cannot be read twice.
        if !regular {
            return None;
        }
        let stream = opener.open(file, &()).ok()?;
        if !stream.is_plain() {
            return Some(Source::Stream(Box::new(stream), 0, Vec::new()));
        }
        match &file.bytes {
            Some(bytes) => Some(Source::Memory(bytes)),
            None => File::open(&file.path).ok().map(Source::File),
        }
    }

    /// Returns the object, or the quoted text, that begins at the offset. Offsets must not decrease between calls.
    fn document(&mut self, offset: u64) -> Option<String> {
        let mut framer = Framer::default();
        let mut spans = Vec::new();
        let mut quoted = Quoted::default();
        let mut bytes = Vec::new();
        // Joining parts again at each step would take quadratic time.
        let mut joined_at = 0;
        self.go_to(offset).ok()?;
        loop {
            let before = bytes.len();
            // Damage further on does not affect the text in front of it.
            self.more(offset, &mut bytes).ok();
            let at_end = bytes.len() == before;
            let may_have_parts = bytes.first().is_some_and(u8::is_ascii_digit) || bytes.starts_with(b"{\"log\":");
            if may_have_parts && !at_end && bytes.len() < 2 * joined_at {
                continue;
            }
            if may_have_parts {
                joined_at = bytes.len();
                match runtime_line::joined(&bytes, LONGEST_LINE) {
                    Ok(joined) => return Some(joined.text.trim_end().to_owned()),
                    Err(_) if at_end || bytes.len() > 4 * LONGEST_LINE || !runtime_line::may_go_on(&bytes) => {}
                    Err(_) => continue,
                }
            }
            if bytes.first() == Some(&b'"') {
                if let Some(end) = quoted.end(&bytes).or(at_end.then_some(bytes.len())) {
                    bytes.truncate(end);
                    return String::from_utf8(bytes).ok();
                }
            } else {
                framer.scan(&bytes, &mut spans);
                if at_end {
                    framer.finish(&mut spans);
                }
                if let Some(span) = spans.first() {
                    let text = (span.start == 0 && bytes[0] == b'{').then(|| bytes[..span.end].to_vec());
                    return String::from_utf8(text?).ok();
                }
            }
            if at_end || bytes.len() > LONGEST_LINE {
                return None;
            }
        }
    }

    fn go_to(&mut self, offset: u64) -> io::Result<()> {
        match self {
            Source::Memory(_) => Ok(()),
            Source::File(file) => file.seek(SeekFrom::Start(offset)).map(|_| ()),
            Source::Stream(reader, passed, kept) => {
                let inside = usize::try_from(offset.saturating_sub(*passed)).unwrap_or(usize::MAX).min(kept.len());
                kept.drain(..inside);
                *passed += inside as u64;
                *passed += io::copy(&mut reader.take(offset.saturating_sub(*passed)), &mut io::sink())?;
                Ok(())
            }
        }
    }

    /// Appends the next bytes behind those of the document read so far.
    fn more(&mut self, offset: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Source::Memory(all) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(bytes.len()).min(all.len());
                let end = start.saturating_add(STEP).min(all.len());
                bytes.extend_from_slice(&all[start..end]);
            }
            Source::File(file) => {
                file.take(STEP as u64).read_to_end(bytes)?;
            }
            Source::Stream(reader, passed, kept) => {
                if *passed != offset {
                    return Ok(());
                }
                let read = match kept.len() == bytes.len() {
                    true => reader.take(STEP as u64).read_to_end(kept).map(|_| ()),
                    false => Ok(()),
                };
                bytes.extend_from_slice(&kept[bytes.len()..]);
                return read;
            }
        }
        Ok(())
    }
}
