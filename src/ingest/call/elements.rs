//! Finds the boundaries of operations in a log that is one long vector, list or array, or one value after the other.
//!
//! The scan continues with more bytes; its result does not depend on how they are split. An element that is cut off
//! must not swallow those behind it.

use super::reader::is_delimiter;
use crate::ingest::json::framing::Span;
use crate::ingest::json::string::{self, Stop};

/// Finds the ends of elements; more bytes continue the scan.
///
/// An element is a value at the top, or in one bracket `[` or `(` at the top. A line that begins with `{` or a tag in
/// its first column starts a new element, even inside an open string. Writers of EDN and JSON escape line ends in
/// strings.
#[derive(Debug)]
pub(in crate::ingest) struct Elements {
    json: bool,
    state: State,
    /// Number of open brackets of the element.
    depth: usize,
    /// Number of forms that the element still needs.
    needed: usize,
    /// Whether nothing of the element is read yet.
    fresh: bool,
    /// Whether the bracket around all elements is open.
    inside: bool,
    start: usize,
    start_line: u32,
    at: usize,
    line: u32,
    line_begins: bool,
    /// Whether the open element was abandoned: it becomes no span.
    abandoned: bool,
    /// Whether what follows the bracket around all elements is none.
    is_part: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between elements.
    Between,
    /// In an element, in front of a form or bracket.
    Form,
    /// In a symbol, keyword or number.
    Atom,
    /// In the name of a tag.
    Tag,
    /// Behind `#`.
    Hash,
    String,
    Escape,
    /// Behind a backslash outside of strings.
    Character,
    Comment {
        between: bool,
    },
    /// In an abandoned element.
    Lost,
}

impl Elements {
    pub fn new(json: bool) -> Elements {
        Elements {
            json,
            state: State::Between,
            depth: 0,
            needed: 0,
            fresh: false,
            inside: false,
            start: 0,
            start_line: 0,
            at: 0,
            line: 0,
            line_begins: true,
            abandoned: false,
            is_part: false,
        }
    }

    /// The elements of a list of JSON inside an object. `before` is the text up to the first element.
    pub fn of_member(before: &[u8]) -> Elements {
        let line = memchr::memchr_iter(b'\n', before).count();
        let line = u32::try_from(line).unwrap_or(u32::MAX);
        Elements { at: before.len(), line, inside: true, line_begins: false, is_part: true, ..Elements::new(true) }
    }

    /// Scans the new bytes. `bytes` begins at the offset that [`Elements::shift`] left.
    pub fn scan(&mut self, bytes: &[u8], found: &mut Vec<Span>) {
        while let Some(&byte) = bytes.get(self.at) {
            if std::mem::take(&mut self.line_begins) && self.begins_anew(byte) {
                self.close(self.at, found);
            }
            match self.state {
                State::Between => {
                    if self.between(byte) {
                        continue;
                    }
                }
                State::Form if self.depth > 0 && is_plain(byte) => {
                    self.pass(bytes);
                    continue;
                }
                State::Form => self.form(byte, found),
                State::Hash => self.hash(byte, found),
                State::Tag if is_delimiter(byte) => {
                    self.state = State::Form;
                    continue;
                }
                State::Atom if is_delimiter(byte) => {
                    self.state = State::Form;
                    self.completed(self.at, found);
                    continue;
                }
                State::Atom | State::Tag => {
                    self.at = end_of_word(bytes, self.at);
                    continue;
                }
                State::Character => self.state = State::Atom,
                State::String if self.json => {
                    let (at, why) = string::pass(bytes, self.at);
                    self.at = at;
                    match why {
                        Stop::End => {
                            self.state = State::Form;
                            self.completed(at + 1, found);
                        }
                        Stop::Escape => self.state = State::Escape,
                        Stop::Line | Stop::Inside => {}
                    }
                }
                State::String => match memchr::memchr3(b'"', b'\\', b'\n', &bytes[self.at..]) {
                    None => self.at = bytes.len() - 1,
                    Some(n) => {
                        self.at += n;
                        match bytes[self.at] {
                            b'"' => {
                                self.state = State::Form;
                                self.completed(self.at + 1, found);
                            }
                            b'\\' => self.state = State::Escape,
                            _ => {}
                        }
                    }
                },
                State::Escape => self.state = State::String,
                State::Comment { between } => {
                    self.at = memchr::memchr(b'\n', &bytes[self.at..]).map_or(bytes.len() - 1, |n| self.at + n);
                    if bytes[self.at] == b'\n' {
                        self.state = if between { State::Between } else { State::Form };
                    }
                }
                State::Lost => {
                    self.at = memchr::memchr(b'\n', &bytes[self.at..]).map_or(bytes.len() - 1, |n| self.at + n);
                }
            }
            if bytes[self.at] == b'\n' {
                self.line += 1;
                self.line_begins = true;
            }
            self.at += 1;
        }
    }

    /// Closes the open element at the end of the file.
    pub fn finish(&mut self, found: &mut Vec<Span>) {
        if self.is_open() {
            self.close(self.at, found);
        }
    }

    fn is_open(&self) -> bool {
        !matches!(self.state, State::Between | State::Comment { between: true })
    }

    /// Offset and line from which the buffer is still needed.
    pub fn resume(&self) -> (usize, u32) {
        if self.is_open() && !self.abandoned { (self.start, self.start_line) } else { (self.at, self.line) }
    }

    /// Drops the bytes in front of [`Elements::resume`].
    pub fn shift(&mut self) {
        let (bytes, lines) = self.resume();
        self.at -= bytes;
        self.line -= lines;
        (self.start, self.start_line) = (0, 0);
    }

    /// Abandons the open element. The text up to the next line that begins one is skipped.
    pub fn abandon(&mut self) {
        self.state = State::Lost;
        self.abandoned = true;
    }

    /// Whether the first byte of a line begins a new element although one is open.
    fn begins_anew(&self, byte: u8) -> bool {
        match self.state {
            State::Lost => matches!(byte, b'{' | b'#'),
            State::String => byte == b'{' || (byte == b'#' && !self.json),
            State::Form if self.depth > 0 => byte == b'{' || (byte == b'#' && !self.json),
            _ => false,
        }
    }

    /// Whether an element begins here; then the byte is scanned again.
    fn between(&mut self, byte: u8) -> bool {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' | 0x0b | 0x0c | 0 => {}
            b';' if !self.json => self.state = State::Comment { between: true },
            b'[' | b'(' if !self.inside => self.inside = true,
            b']' if self.inside && self.is_part => self.abandon(),
            b']' | b')' if self.inside => self.inside = false,
            _ => {
                (self.start, self.start_line) = (self.at, self.line);
                (self.depth, self.needed, self.fresh) = (0, 1, true);
                self.state = State::Form;
                return true;
            }
        }
        false
    }

    /// Skips words and what is between them on a line: inside brackets they end nothing.
    fn pass(&mut self, bytes: &[u8]) {
        while let Some(&byte) = bytes.get(self.at).filter(|byte| is_plain(**byte)) {
            self.at += 1;
            if !is_delimiter(byte) {
                self.at = end_of_word(bytes, self.at);
                if self.at == bytes.len() {
                    self.state = State::Atom;
                }
            }
        }
    }

    fn form(&mut self, byte: u8, found: &mut Vec<Span>) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' | 0x0b | 0x0c => {}
            b'"' => self.state = State::String,
            b'{' | b'[' | b'(' => self.depth += 1,
            b'}' | b']' | b')' => {
                self.depth = self.depth.saturating_sub(1);
                self.completed(self.at + 1, found);
            }
            b';' if !self.json => self.state = State::Comment { between: false },
            b'#' if !self.json => self.state = State::Hash,
            b'\\' if !self.json => self.state = State::Character,
            b'^' if !self.json => self.prefix(1),
            _ => self.state = State::Atom,
        }
    }

    fn hash(&mut self, byte: u8, found: &mut Vec<Span>) {
        self.state = State::Form;
        match byte {
            // An element that begins with a discard consists of what it discards. Any other discard precedes a form
            // that is still needed.
            b'_' if self.fresh => self.prefix(0),
            b'_' => self.prefix(1),
            b'{' | b'"' => self.form(byte, found),
            b'#' => self.state = State::Atom,
            _ if is_delimiter(byte) => self.form(byte, found),
            _ => {
                self.prefix(0);
                self.state = State::Tag;
            }
        }
    }

    /// A prefix in front of the element's form. It adds `more` forms to it.
    fn prefix(&mut self, more: usize) {
        if self.depth == 0 {
            self.needed += more;
            self.fresh = false;
        }
    }

    /// Ends a form; at the top it may end the element.
    fn completed(&mut self, end: usize, found: &mut Vec<Span>) {
        if self.depth == 0 {
            self.needed = self.needed.saturating_sub(1);
            if self.needed == 0 {
                self.close(end, found);
            }
        }
    }

    fn close(&mut self, end: usize, found: &mut Vec<Span>) {
        if !std::mem::take(&mut self.abandoned) {
            found.push(Span { start: self.start, end, line: self.start_line });
        }
        self.state = State::Between;
    }
}

/// Offset behind the word that continues at `at`.
fn end_of_word(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| is_delimiter(*byte)).map_or(bytes.len(), |n| at + n)
}

/// Whether a byte only begins a word or separates words.
fn is_plain(byte: u8) -> bool {
    !is_delimiter(byte) && !matches!(byte, b'#' | b'\\' | b'^') || matches!(byte, b' ' | b',' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str, json: bool, step: usize) -> Vec<(u32, &str)> {
        let mut elements = Elements::new(json);
        let mut found = Vec::new();
        for end in (0..text.len()).step_by(step).skip(1).chain([text.len()]) {
            elements.scan(&text.as_bytes()[..end], &mut found);
        }
        elements.finish(&mut found);
        found.into_iter().map(|span| (span.line, text[span.start..span.end].trim_end())).collect()
    }

    fn assert_spans(text: &str, expected: &[(u32, &str)]) {
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(spans(text, false, step), expected, "{text:?} in steps of {step}");
        }
    }

    #[test]
    fn elements_stand_alone_or_in_one_bracket() {
        for (open, close) in [("", ""), ("[", "]"), ("(", ")"), ("\n [ ", " ] ; end\n")] {
            let line = u32::from(open.starts_with('\n'));
            let text = format!("{open}{{:a [1 {{2 3}}]}}, {{:b \"}}\\\"{{\"}}\n#foo.Bar{{:c \\}}}}{close}");
            assert_spans(&text, &[(line, "{:a [1 {2 3}]}"), (line, "{:b \"}\\\"{\"}"), (line + 1, "#foo.Bar{:c \\}}")]);
        }
        assert_spans("[{1 2}] [{3 4}]", &[(0, "{1 2}"), (0, "{3 4}")]);
    }

    #[test]
    fn comments_are_between_elements_or_inside_them() {
        assert_spans("; {:a 1}\n{:b 2 ; }\n} ; {", &[(1, "{:b 2 ; }\n}")]);
    }

    #[test]
    fn a_discard_and_what_it_discards_are_one_span() {
        assert_spans("#_{:a 1} {:b 2}", &[(0, "#_{:a 1}"), (0, "{:b 2}")]);
        assert_spans("#_ #_ {:a 1} x {:b 2}", &[(0, "#_ #_ {:a 1} x"), (0, "{:b 2}")]);
        assert_spans("{:b #_} 2}", &[(0, "{:b #_}"), (0, "2"), (0, "}")]);
        assert_spans("^{:m 1} #t #_0 {:b 2} {}", &[(0, "^{:m 1} #t #_0 {:b 2}"), (0, "{}")]);
    }

    #[test]
    fn what_is_cut_off_does_not_swallow_the_next_line() {
        assert_spans("{:a 1\n{:b 2}\n", &[(0, "{:a 1"), (1, "{:b 2}")]);
        assert_spans("[{:a \"x\n{:b 2}]\n", &[(0, "{:a \"x"), (1, "{:b 2}")]);
        assert_spans("{:a [1 2)\n#t{:b 2}", &[(0, "{:a [1 2)"), (1, "#t{:b 2}")]);
        assert_spans("{:a 1\n :b {\n  :c 2}}\n{}", &[(0, "{:a 1\n :b {\n  :c 2}}"), (3, "{}")]);
    }

    #[test]
    fn other_forms_are_elements_too() {
        assert_spans(
            "[1 :a \"b\" ##Inf #{} \\c nil]",
            &[(0, "1"), (0, ":a"), (0, "\"b\""), (0, "##Inf"), (0, "#{}"), (0, "\\c"), (0, "nil")],
        );
        assert_spans(" ]) ", &[(0, "]"), (0, ")")]);
    }

    #[test]
    fn json_has_neither_comments_nor_tags() {
        let text = "[\n {\"a\": \";#_\\\\\"},\n {\"b\": [1, {}]}\n]\n";
        for step in [1, 2, 3, 1000] {
            assert_eq!(spans(text, true, step), [(1, "{\"a\": \";#_\\\\\"}"), (2, "{\"b\": [1, {}]}")]);
        }
    }

    #[test]
    fn a_hundred_thousand_open_brackets_need_no_stack() {
        let text = "[".repeat(100_000);
        assert_eq!(spans(&text, false, 4096).len(), 1);
    }
}
