//! Finds the boundaries of JSON documents that span lines, without parsing them.
//!
//! Input: bytes in pieces. Output: one [`Span`] a document. The result must not depend on how the bytes are split. A
//! document that is cut off must not swallow those behind it, so a new document may begin before the open one ends.

use super::string::{self, Stop};

/// One document, or one interval of text that is no document, in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ingest) struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Number of line ends between the start of the buffer and the first byte.
    pub line: u32,
}

/// Finds the ends of documents; more bytes continue the scan.
///
/// A line that begins with `{` in its first column starts a new document in two cases. The open one is indented, so
/// its inner lines are not in the first column; or no value can follow where the open one broke off. A line end
/// inside a string breaks the document off, since JSON forbids it.
#[derive(Debug, Default)]
pub(in crate::ingest) struct Framer {
    state: State,
    /// Open brackets.
    open: Vec<u8>,
    /// Offset and line of the open document.
    start: usize,
    start_line: u32,
    /// Offset and line of the next byte.
    at: usize,
    line: u32,
    /// Whether the next byte begins a line.
    line_begins: bool,
    indented: bool,
    /// Whether the open text was abandoned: it becomes no span.
    abandoned: bool,
    /// Last byte of the open document that is no white space.
    last: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Between,
    Inside,
    String,
    Escape,
    /// Text that is no JSON, up to the next line that begins a document.
    Broken,
}

impl Framer {
    /// Scans the new bytes. `bytes` begins at the offset that [`Framer::shift`] left.
    pub fn scan(&mut self, bytes: &[u8], found: &mut Vec<Span>) {
        while let Some(&byte) = bytes.get(self.at) {
            if self.line_begins {
                self.line_begins = false;
                self.begin_line(byte, found);
            }
            match self.state {
                State::Between => match byte {
                    b' ' | b'\t' | b'\r' | b'\n' | 0 => {}
                    _ => self.begin(byte),
                },
                State::Inside => self.inside(byte, found),
                State::String => {
                    let (at, why) = string::pass(bytes, self.at);
                    self.at = at;
                    self.state = match why {
                        Stop::End => State::Inside,
                        Stop::Escape => State::Escape,
                        Stop::Line => State::Broken,
                        Stop::Inside => State::String,
                    };
                }
                State::Escape => self.state = if byte == b'\n' { State::Broken } else { State::String },
                State::Broken => {
                    self.at = memchr::memchr(b'\n', &bytes[self.at..]).map_or(bytes.len() - 1, |n| self.at + n)
                }
            }
            if bytes[self.at] == b'\n' {
                self.line += 1;
                self.line_begins = true;
            }
            self.at += 1;
        }
    }

    /// Closes the open document at the end of the file.
    pub fn finish(&mut self, found: &mut Vec<Span>) {
        if self.is_open() {
            self.close(self.at, found);
        }
    }

    /// Whether a document or broken text is open.
    fn is_open(&self) -> bool {
        self.state != State::Between
    }

    /// Offset and line from which the buffer is still needed.
    pub fn resume(&self) -> (usize, u32) {
        if self.is_open() && !self.abandoned { (self.start, self.start_line) } else { (self.at, self.line) }
    }

    /// Drops the bytes in front of [`Framer::resume`].
    pub fn shift(&mut self) {
        let (bytes, lines) = self.resume();
        self.at -= bytes;
        self.line -= lines;
        (self.start, self.start_line) = (0, 0);
    }

    /// Abandons the open document. The text up to the next line that begins one is skipped.
    pub fn abandon(&mut self) {
        self.state = State::Broken;
        self.abandoned = true;
        self.open.clear();
    }

    fn begin(&mut self, byte: u8) {
        self.state = State::Broken;
        self.start = self.at;
        self.start_line = self.line;
        self.open.clear();
        self.indented = false;
        self.last = byte;
        if matches!(byte, b'{' | b'[') {
            self.state = State::Inside;
            self.open.push(byte);
        }
    }

    /// Decides at the first byte of a line whether the open document continues.
    fn begin_line(&mut self, byte: u8, found: &mut Vec<Span>) {
        match self.state {
            State::Inside if matches!(byte, b' ' | b'\t') => self.indented = true,
            State::Inside if byte == b'{' && (self.indented || !matches!(self.last, b'[' | b',' | b':')) => {
                self.close(self.at, found);
            }
            State::Broken if byte == b'{' => self.close(self.at, found),
            _ => {}
        }
    }

    fn inside(&mut self, byte: u8, found: &mut Vec<Span>) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => return,
            b'"' => self.state = State::String,
            b'{' | b'[' => self.open.push(byte),
            b'}' | b']' => {
                // In ASCII a closing bracket is its opening bracket plus two.
                if self.open.pop().map(|opened| opened + 2) != Some(byte) {
                    self.state = State::Broken;
                } else if self.open.is_empty() {
                    self.close(self.at + 1, found);
                }
            }
            _ => {}
        }
        self.last = byte;
    }

    fn close(&mut self, end: usize, found: &mut Vec<Span>) {
        if !std::mem::take(&mut self.abandoned) {
            found.push(Span { start: self.start, end, line: self.start_line });
        }
        self.state = State::Between;
        self.open = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scans in pieces of `step` bytes, as blocks arrive.
    fn spans(text: &str, step: usize) -> Vec<(u32, &str)> {
        let mut framer = Framer::default();
        let mut found = Vec::new();
        for end in (0..text.len()).step_by(step).skip(1).chain([text.len()]) {
            framer.scan(&text.as_bytes()[..end], &mut found);
        }
        framer.finish(&mut found);
        found.into_iter().map(|span| (span.line, text[span.start..span.end].trim_end())).collect()
    }

    fn assert_spans(text: &str, expected: &[(u32, &str)]) {
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(spans(text, step), expected, "{text:?} in steps of {step}");
        }
    }

    #[test]
    fn documents_end_where_their_brackets_close() {
        assert_spans(
            "{\n \"a\": \"}\\\"{\",\n \"b\": [{}, {}]\n}\n{}{ } [1]\n\n{\n}",
            &[(0, "{\n \"a\": \"}\\\"{\",\n \"b\": [{}, {}]\n}"), (4, "{}"), (4, "{ }"), (4, "[1]"), (6, "{\n}")],
        );
    }

    #[test]
    fn a_document_that_is_cut_off_does_not_swallow_the_next_one() {
        assert_spans("{\n \"a\": 1,\n{\n \"b\": 2\n}\n", &[(0, "{\n \"a\": 1,"), (2, "{\n \"b\": 2\n}")]);
        assert_spans("{\n \"a\": \"x\n{\"b\": 2}\n", &[(0, "{\n \"a\": \"x"), (2, "{\"b\": 2}")]);
        assert_spans("{\"a\": {\"b\"\n{\"b\": 2}\n", &[(0, "{\"a\": {\"b\""), (1, "{\"b\": 2}")]);
        assert_spans("{]\nrest\n{}\n", &[(0, "{]\nrest"), (2, "{}")]);
        assert_spans("{\"a\": [\n{},\n{}\n]}\n", &[(0, "{\"a\": [\n{},\n{}\n]}")]);
    }

    #[test]
    fn text_between_documents_is_a_span_of_its_own() {
        assert_spans("$ get\n$ get\n{}\nend", &[(0, "$ get\n$ get"), (2, "{}"), (3, "end")]);
        assert_spans(" \n\0\0\n", &[]);
    }
}
