//! Cuts inputs into blocks that end at the end of a line or document.
//!
//! Input: the files in their order. Output: [`Piece`]s in the order of their bytes. Every byte belongs to one block,
//! except dropped NUL bytes and values that are too long, which leave a count or a fault. Block boundaries must not
//! depend on how the stream splits its reads; otherwise line numbers and problems would differ from run to run.

use super::{Block, Buffers, Closed, Layout, Piece, Storage, Whole};
use crate::ingest::call::elements::Elements;
use crate::ingest::detection::format::Format;
use crate::ingest::detection::sniff::{Detected, Framing, Unread};
use crate::ingest::detection::{SAMPLE, detect};
use crate::ingest::envelope::runtime_line;
use crate::ingest::etcd::layout;
use crate::ingest::input::InputFile;
use crate::ingest::input::archive;
use crate::ingest::input::content::{Content, Kept};
use crate::ingest::input::stream::{self, Opener, Stream};
use crate::ingest::json::framing::{Framer, Span};
use crate::ingest::problem::{Fault, Found, size};
use crate::ingest::{Progress, ReadOptions};
use memchr::memmem;
use std::io;
use std::sync::Arc;

/// Reads all inputs, one after the other.
pub(in crate::ingest) struct BlockReader<'a> {
    inputs: &'a [InputFile],
    options: &'a ReadOptions,
    progress: &'a dyn Progress,
    buffers: &'a Buffers,
    next: usize,
    opener: Opener<'a>,
    open: Option<OpenFile<'a>>,
}

impl<'a> BlockReader<'a> {
    /// A reader in front of the first input.
    pub fn new(
        inputs: &'a [InputFile],
        options: &'a ReadOptions,
        progress: &'a dyn Progress,
        buffers: &'a Buffers,
    ) -> BlockReader<'a> {
        BlockReader { inputs, options, progress, buffers, next: 0, opener: Opener::default(), open: None }
    }

    /// Enough pieces to keep a worker busy: one block of a long file, or many small files. A single thread gets one
    /// piece.
    pub fn unit(&mut self) -> Option<Vec<Piece>> {
        let most = if self.options.threads == 1 { 1 } else { 512 };
        let mut pieces = Vec::new();
        let mut bytes = 0;
        while bytes < self.options.block_bytes && pieces.len() < most {
            let Some(piece) = self.piece() else { break };
            if let Piece::Block(block) = &piece {
                let share = self.options.block_bytes / self.options.block(block.format);
                bytes += block.length * share.max(1);
            }
            pieces.push(piece);
        }
        (!pieces.is_empty()).then_some(pieces)
    }

    fn piece(&mut self) -> Option<Piece> {
        loop {
            if let Some(open) = &mut self.open {
                if let Some(whole) = open.whole() {
                    return Some(Piece::Whole(whole));
                }
                if let Some(block) = open.block() {
                    return Some(Piece::Block(block));
                }
                let closed = self.open.take()?.close();
                return Some(Piece::Closed(closed));
            }
            let file = self.next;
            let input = self.inputs.get(file)?;
            self.next += 1;
            if let Some(Unread { faults, ignored }) = input.beginning.unread().cloned() {
                return Some(Piece::Closed(Closed { file, format: None, ignored, bytes: 0, has_grown: false, faults }));
            }
            match self.opener.open(input, self.progress) {
                Ok(stream) => {
                    self.open = Some(OpenFile::new(file, input, stream, self.options, self.buffers, self.progress))
                }
                Err(fault) => {
                    let faults = vec![fault];
                    let closed = Closed { file, format: None, ignored: None, bytes: 0, has_grown: false, faults };
                    return Some(Piece::Closed(closed));
                }
            }
        }
    }
}

/// Finds the boundaries of values that span lines.
enum Cutter {
    Documents(Framer),
    Elements(Elements),
}

impl Cutter {
    fn scan(&mut self, bytes: &[u8], found: &mut Vec<Span>) {
        match self {
            Cutter::Documents(framer) => framer.scan(bytes, found),
            Cutter::Elements(elements) => elements.scan(bytes, found),
        }
    }

    fn finish(&mut self, found: &mut Vec<Span>) {
        match self {
            Cutter::Documents(framer) => framer.finish(found),
            Cutter::Elements(elements) => elements.finish(found),
        }
    }

    /// Drops the complete values and returns their number of bytes.
    fn shift(&mut self) -> usize {
        let resume = match self {
            Cutter::Documents(framer) => framer.resume(),
            Cutter::Elements(elements) => elements.resume(),
        };
        match self {
            Cutter::Documents(framer) => framer.shift(),
            Cutter::Elements(elements) => elements.shift(),
        }
        resume.0
    }

    fn abandon(&mut self) {
        match self {
            Cutter::Documents(framer) => framer.abandon(),
            Cutter::Elements(elements) => elements.abandon(),
        }
    }
}

struct OpenFile<'a> {
    file: usize,
    input: &'a InputFile,
    progress: &'a dyn Progress,
    stream: Stream<'a>,
    options: &'a ReadOptions,
    buffers: &'a Buffers,
    detected: Result<(Format, Framing), String>,
    framer: Cutter,
    /// Bytes that are read but not yet in a block.
    buffer: Vec<u8>,
    filled: usize,
    /// Offset of the buffer's first byte.
    offset: u64,
    eof: bool,
    fault: Option<Fault>,
    /// NUL bytes dropped in front of the buffer.
    nuls: u64,
}

impl<'a> OpenFile<'a> {
    fn new(
        file: usize,
        input: &'a InputFile,
        stream: Stream<'a>,
        options: &'a ReadOptions,
        buffers: &'a Buffers,
        progress: &'a dyn Progress,
    ) -> OpenFile<'a> {
        let mut open = OpenFile {
            file,
            input,
            progress,
            stream,
            options,
            buffers,
            detected: Err(String::new()),
            framer: Cutter::Documents(Framer::default()),
            buffer: Vec::new(),
            filled: 0,
            offset: 0,
            eof: false,
            fault: None,
            nuls: 0,
        };
        open.fill_to(SAMPLE);
        while !open.eof && open.drop_nuls() {
            open.fill_to(SAMPLE);
        }
        if open.buffer[..open.filled].starts_with(b"\xef\xbb\xbf") {
            open.drop_front(3);
        }
        let sample = &open.buffer[..open.filled];
        open.detected = if sample.is_empty() && open.nuls > 0 {
            Err("nothing but NUL bytes".to_owned())
        } else if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] = sample {
            // Windows PowerShell writes UTF-16 when output is redirected.
            open.fault = Some(Fault::new("UTF-8 text (convert the file)", "UTF-16 text (a byte order mark)"));
            Err(String::new())
        } else {
            // Usually the walk looked at this beginning already.
            let known = input.beginning.detected(sample, open.eof).filter(|_| input.format.is_none());
            match known.unwrap_or_else(|| detect(sample, open.eof, input.format)) {
                Detected::Evidence(format, framing) => Ok((format, framing)),
                Detected::Ignored(reason) => {
                    let is_archive = archive::is_archive(sample);
                    if is_archive {
                        open.fault = open.archive();
                    }
                    Err(reason.to_owned())
                }
            }
        };
        // A file that a member keeps but that cannot be read is missing evidence, not an ignored file.
        if let (Err(reason), None, Some(kept)) = (&open.detected, &open.fault, layout::of_member(&input.shown)) {
            open.fault = Some(Fault::new(kept, Found::described(reason.clone())));
        }
        if let Ok((_, Framing::Elements { json })) = open.detected {
            open.framer = Cutter::Elements(Elements::new(json));
        }
        if let Ok((_, Framing::Entries { from })) = open.detected {
            let before = &open.buffer[..from.min(open.filled)];
            open.framer = Cutter::Elements(Elements::of_member(before));
        }
        open
    }

    /// The problem of an archive whose files did not become inputs.
    fn archive(&mut self) -> Option<Fault> {
        let begin = &self.buffer[..self.filled];
        let fault = archive::list(&mut io::Read::chain(begin, &mut self.stream)).faults.into_iter().next();
        self.eof = true;
        let stream = self.input.bytes.is_some() || self.input.member.is_some() || self.input.path.as_os_str() == "-";
        fault.or_else(|| stream.then(|| Fault::new("the outer input unpacked", "an archive inside another input")))
    }

    /// The binary file, once; `None` for text.
    fn whole(&mut self) -> Option<Whole> {
        let (format, framing) = *self.detected.as_ref().ok()?;
        if framing != Framing::Whole || self.filled == 0 {
            return None;
        }
        let content = match &self.input.bytes {
            Some(bytes) if self.stream.is_plain() => {
                self.offset = bytes.len() as u64;
                Content::Shared(bytes.clone())
            }
            None if self.stream.is_plain() && self.input.path.as_os_str() != "-" => {
                let length = std::fs::metadata(&self.input.path).map_or(0, |data| data.len());
                self.progress.bytes(length.saturating_sub(self.filled as u64));
                self.offset = length;
                Content::File(self.input.path.clone())
            }
            _ => Content::Memory(self.keep()),
        };
        self.filled = 0;
        self.eof = true;
        Some(Whole { file: self.file, format, content })
    }

    /// Reads to the end and keeps the bytes in memory.
    fn keep(&mut self) -> Kept {
        let mut kept = Kept::default();
        let most = self.options.longest(Format::EtcdStore);
        while self.filled > 0 {
            if !kept.append(&self.buffer[..self.filled], most) {
                let found = Found::described(format!("more than {}", size(most as u64)));
                self.fault =
                    Some(Fault::new("a smaller file, or one without compression or archive (unpack it)", found));
                break;
            }
            self.offset += self.filled as u64;
            self.filled = 0;
            self.fill_to(self.options.block_bytes.max(1));
        }
        kept
    }

    fn close(self) -> Closed {
        let OpenFile { file, detected, offset, filled, fault, buffer, stream, .. } = self;
        self.buffers.give_back(Storage::Buffer(buffer), self.options.block_bytes);
        let bytes = offset + filled as u64;
        // An input that cannot be read is a problem; "empty" would be a wrong reason.
        let (format, ignored) = match detected {
            Ok((format, _)) => (Some(format), None),
            Err(_) if fault.is_some() => (None, None),
            Err(reason) => (None, Some(reason)),
        };
        Closed { file, format, ignored, bytes, has_grown: stream.has_grown(), faults: Vec::from_iter(fault) }
    }

    /// Reads until the buffer holds `target` bytes or the stream ends.
    fn fill_to(&mut self, target: usize) {
        if self.eof || self.filled >= target {
            return;
        }
        let block = self.options.block_bytes;
        if self.buffer.is_empty() {
            self.buffer = self.buffers.take(self.stream.sample_size(SAMPLE));
        } else if self.offset > 0 && self.buffer.len() == self.filled && self.filled < block {
            // The buffer holds only the rest of the block before.
            let mut next = self.buffers.take(block);
            next[..self.filled].copy_from_slice(&self.buffer);
            self.buffer = next;
        }
        let result = loop {
            // The buffer grows by steps: most files are small, and clearing a buffer takes longer than reading them.
            let end = target.min(self.buffer.len());
            let (n, result) = stream::fill(&mut self.stream, &mut self.buffer[self.filled..end]);
            self.filled += n;
            self.eof = self.filled < end;
            if self.eof || self.filled >= target {
                break result;
            }
            let more = (4 * self.buffer.len()).max(SAMPLE).min(target.max(block));
            self.buffer.resize(more, 0);
        };
        if let Err(error) = result {
            self.eof = true;
            let mut fault = fault_of(&error);
            if let Some(compression) = self.stream.compression.filter(|_| error.kind() != io::ErrorKind::FileTooLarge) {
                fault.expected = format!("a whole {compression} stream");
            }
            if self.stream.compression.is_some() || error.kind() == io::ErrorKind::UnexpectedEof {
                let bytes = size(self.offset + self.filled as u64);
                fault.found = Found::described(format!("{} after {bytes}", fault.found));
            }
            self.fault = Some(fault);
        }
    }

    fn drop_front(&mut self, n: usize) {
        self.buffer.copy_within(n..self.filled, 0);
        self.filled -= n;
        self.offset += n as u64;
    }

    /// Drops the buffer if it holds only NUL bytes. A log that was truncated while its writer had it open begins with
    /// NUL bytes.
    fn drop_nuls(&mut self) -> bool {
        const NULS: [u8; 4096] = [0; 4096];
        let mut chunks = self.buffer[..self.filled].chunks(NULS.len());
        let only_nuls = self.filled > 0 && chunks.all(|chunk| *chunk == NULS[..chunk.len()]);
        if only_nuls {
            self.nuls += self.filled as u64;
            self.offset += self.filled as u64;
            self.filled = 0;
        }
        only_nuls
    }

    /// The next block, `None` at the end.
    fn block(&mut self) -> Option<Block> {
        let (format, framing) = *self.detected.as_ref().ok()?;
        match framing {
            Framing::Lines => self.lines(format),
            Framing::Documents | Framing::Elements { .. } | Framing::Entries { .. } => self.documents(format),
            Framing::Indented => self.indented(format),
            Framing::Whole => None,
        }
    }

    fn lines(&mut self, format: Format) -> Option<Block> {
        if let Some(bytes) = self.input.bytes.as_ref().filter(|_| self.stream.is_plain() && !self.eof) {
            return self.lines_in_memory(format, bytes);
        }
        let mut searched = 0;
        let mut target = self.options.block(format);
        loop {
            self.fill_to(target);
            if self.eof {
                return self.rest(format, Layout::Lines);
            }
            if let Some(at) = memchr::memrchr(b'\n', &self.buffer[searched..self.filled]) {
                let length = searched + at + 1;
                let whole = whole_lines(format, &self.buffer[..length]);
                // The rest of a line that a container runtime cut into parts may follow.
                if whole > 0 || self.filled > self.options.max_line_bytes {
                    return Some(self.cut(format, if whole > 0 { whole } else { length }, Layout::Lines));
                }
            }
            if self.drop_nuls() {
                (searched, target) = (0, self.options.block(format));
                continue;
            }
            if self.filled > self.options.max_line_bytes {
                return Some(self.skip_line(format));
            }
            searched = self.filled;
            target = self.filled.saturating_add(self.options.block(format));
        }
    }

    /// Cuts lines of an input in memory without a copy, whatever their length. `filled` counts bytes that the sample
    /// already reported.
    fn lines_in_memory(&mut self, format: Format, bytes: &Arc<[u8]>) -> Option<Block> {
        let start = self.offset as usize;
        let left = &bytes[start..];
        let mut least = left.len().min(self.options.block(format));
        let length = loop {
            let lines = match memchr::memrchr(b'\n', &left[..least]) {
                Some(at) => at + 1,
                None => memchr::memchr(b'\n', &left[least..]).map_or(left.len(), |at| least + at + 1),
            };
            match whole_lines(format, &left[..lines]) {
                0 if least == left.len() => break left.len(),
                // The rest of a line that a container runtime cut into parts may follow.
                0 => least = left.len().min(2 * least.max(lines)),
                whole => break whole,
            }
        };
        self.progress.bytes(length.saturating_sub(self.filled) as u64);
        self.filled = self.filled.saturating_sub(length);
        self.offset += length as u64;
        let nuls = std::mem::take(&mut self.nuls);
        let storage = Storage::Memory(bytes.clone(), start);
        let block = Block {
            file: self.file,
            format,
            offset: start as u64,
            storage,
            length,
            layout: Layout::Lines,
            nuls,
            fault: None,
        };
        (length > 0 || nuls > 0).then_some(block)
    }

    fn indented(&mut self, format: Format) -> Option<Block> {
        let mut searched = 0;
        let mut target = self.options.block_bytes.max(1);
        let longest = self.options.longest(format);
        loop {
            self.fill_to(target);
            if self.eof {
                return self.rest(format, Layout::Indented);
            }
            if let Some(at) = memmem::rfind(&self.buffer[searched..self.filled], DOCUMENT) {
                return Some(self.cut(format, searched + at + 1, Layout::Indented));
            }
            if self.filled > longest {
                return Some(self.skip_document(format, longest));
            }
            // The line end in front of the next document may be the last byte read.
            searched = self.filled.saturating_sub(1);
            target = self.filled.saturating_add(self.options.block_bytes.max(1));
        }
    }

    fn documents(&mut self, format: Format) -> Option<Block> {
        let mut spans = Vec::new();
        let mut target = self.options.block_bytes.max(1);
        loop {
            self.fill_to(target);
            self.framer.scan(&self.buffer[..self.filled], &mut spans);
            if self.eof {
                self.framer.finish(&mut spans);
                return self.rest(format, Layout::Documents(spans));
            }
            let resume = self.framer.shift();
            if !spans.is_empty() || resume > 0 {
                return Some(self.cut(format, resume, Layout::Documents(spans)));
            }
            let longest = self.options.longest(format);
            if self.filled > longest {
                let length = self.filled;
                let fault = long_document(longest);
                self.framer.abandon();
                self.framer.shift();
                return Some(Block { fault: Some(fault), ..self.cut(format, length, Layout::Documents(Vec::new())) });
            }
            target = self.filled.saturating_add(self.options.block_bytes.max(1));
        }
    }

    /// The last block, if bytes or dropped NUL bytes are left.
    fn rest(&mut self, format: Format, layout: Layout) -> Option<Block> {
        (self.filled > 0 || self.nuls > 0).then(|| self.cut(format, self.filled, layout))
    }

    /// Moves the first `length` bytes into a block.
    fn cut(&mut self, format: Format, length: usize, layout: Layout) -> Block {
        let rest = self.filled - length;
        let buffer = if rest == 0 && length * 3 <= self.buffer.len() {
            // Many small files may wait for a worker at once; a whole buffer each would be too much memory.
            self.buffer[..length].to_vec()
        } else if rest == 0 && self.eof {
            std::mem::take(&mut self.buffer)
        } else {
            // The next block takes a buffer when it is read; by then a worker may have returned this one.
            let rest = self.buffer[length..self.filled].to_vec();
            std::mem::replace(&mut self.buffer, rest)
        };
        self.filled = rest;
        let offset = self.offset;
        self.offset += length as u64;
        let nuls = std::mem::take(&mut self.nuls);
        Block { file: self.file, format, offset, storage: Storage::Buffer(buffer), length, layout, nuls, fault: None }
    }

    /// Skips a line that is too long. The block holds only its line end.
    fn skip_line(&mut self, format: Format) -> Block {
        let start = self.offset;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[..self.filled]) {
                self.drop_front(at);
                break;
            }
            self.offset += self.filled as u64;
            self.filled = 0;
            self.fill_to(self.options.block_bytes.max(1));
            if self.filled == 0 {
                break;
            }
        }
        let fault = too_long(self.offset - start, self.options.max_line_bytes);
        Block { fault: Some(fault), ..self.cut(format, self.filled.min(1), Layout::Documents(Vec::new())) }
    }

    /// Skips a document that is too long. The block holds only the number of its line ends.
    fn skip_document(&mut self, format: Format, longest: usize) -> Block {
        let fault = long_document(longest);
        let mut line_ends = 0;
        loop {
            let next = memmem::find(&self.buffer[..self.filled], DOCUMENT).map(|at| at + 1);
            // The line end in front of the next document may be the last byte read.
            let passed = next.unwrap_or(self.filled.saturating_sub(1));
            line_ends += memchr::memchr_iter(b'\n', &self.buffer[..passed]).count();
            self.drop_front(passed);
            if next.is_some() || (self.eof && self.filled <= 1) {
                break;
            }
            self.fill_to(self.options.block_bytes.max(2));
        }
        let rest = if self.eof && self.filled <= 1 { self.filled } else { 0 };
        let block = self.cut(format, rest, Layout::Skipped(u32::try_from(line_ends).unwrap_or(u32::MAX)));
        Block { fault: Some(fault), ..block }
    }
}

/// A line end and the bracket that may begin a document.
const DOCUMENT: &[u8] = b"\n{";

/// The length of the leading lines that lack no parts. Input: lines with their ends.
fn whole_lines(format: Format, lines: &[u8]) -> usize {
    let has_parts = format == Format::Audit && runtime_line::is_runtime(lines);
    if has_parts { runtime_line::closed(lines) } else { lines.len() }
}

fn long_document(longest: usize) -> Fault {
    Fault::new(format!("a document of at most {} (split it)", size(longest as u64)), "a longer one")
}

/// The problem of a line longer than `most` bytes.
pub(in crate::ingest) fn too_long(length: u64, most: usize) -> Fault {
    Fault::new(format!("a line of at most {}", size(most as u64)), Found::described(size(length)))
}

fn fault_of(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::new("a whole file", "a file that is cut off"),
        _ => stream::unreadable(error),
    }
}
