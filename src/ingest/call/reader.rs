//! Reads values from text without recursion: EDN (edn-format, with what Clojure prints beyond it) and JSON.
//!
//! Output: nodes in postfix order. Open forms are on a stack of its own, and the number of parts is bounded, so no
//! input can exhaust memory. Equal numbers must yield equal nodes, since models compare values by their nodes.

use super::datum::Node;
use crate::ingest::limits::MOST_PARTS;
use crate::ingest::problem::{Fault, Found};
use std::borrow::Cow;

/// The language of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Clojure's data notation (EDN).
    Edn,
    /// JSON that is known to be well-formed.
    Json,
}

/// Reads forms one after the other.
pub(super) struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    dialect: Dialect,
    open: Vec<Frame<'a>>,
}

/// A form that is not complete.
enum Frame<'a> {
    /// Open brackets: the byte that closes them, and the forms in them so far.
    Brackets { close: u8, kind: Brackets, count: u32 },
    /// A tag in front of its form.
    Tag(&'a str),
    /// A discarded form (`#_`), or metadata for the next one (`^`). Its nodes are dropped.
    Dropped { nodes: usize },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Brackets {
    Sequence,
    Set,
    Map,
}

/// The next token.
pub(super) enum Next {
    /// A form.
    Form,
    /// A closing bracket.
    Close(u8),
    /// The end of the text.
    End,
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str, dialect: Dialect) -> Reader<'a> {
        Reader { text, bytes: text.as_bytes(), at: 0, dialect, open: Vec::new() }
    }

    /// Reads one value.
    #[inline]
    pub fn value(&mut self, nodes: &mut Vec<Node<'a>>) -> Result<(), Fault> {
        match self.plain() {
            Some(node) => {
                nodes.push(node);
                Ok(())
            }
            None => self.any(nodes),
        }
    }

    /// The next value, if it is a keyword, a short number, a text without escapes, or `nil`, as most are. Otherwise
    /// nothing is read.
    #[inline]
    pub fn plain(&mut self) -> Option<Node<'a>> {
        while let Some(b' ' | b',' | b'\n' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        let start = self.at;
        let node = match self.bytes.get(start)? {
            b':' if self.dialect == Dialect::Edn && self.bytes.get(start + 1) != Some(&b':') => {
                self.at += 1;
                Some(Node::Keyword(self.token())).filter(|_| self.at > start + 1)
            }
            b'"' => {
                let rest = &self.bytes[start + 1..];
                let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
                (rest[end] == b'"').then(|| {
                    self.at += end + 2;
                    Node::Text(Cow::Borrowed(&self.text[start + 1..start + 1 + end]))
                })
            }
            b'0'..=b'9' => short(self.token()).map(Node::Int),
            b'n' => (self.token() == "nil").then_some(Node::Nil),
            _ => None,
        };
        if node.is_none() {
            self.at = start;
        }
        node
    }

    /// Reads one value of any form.
    fn any(&mut self, nodes: &mut Vec<Node<'a>>) -> Result<(), Fault> {
        self.open.clear();
        loop {
            if nodes.len() + self.open.len() > MOST_PARTS {
                return Err(Fault::new(format!("a value of at most {MOST_PARTS} parts"), "more"));
            }
            match self.next()? {
                Next::End => return Err(self.cut_off()),
                Next::Close(byte) => {
                    self.at += 1;
                    let Some(Frame::Brackets { close, kind, count }) = self.open.pop() else {
                        return Err(self.unexpected(byte));
                    };
                    if close != byte {
                        return Err(self.unexpected(byte));
                    }
                    nodes.push(match kind {
                        Brackets::Sequence => Node::Sequence(count),
                        Brackets::Set => Node::Set(count),
                        Brackets::Map if count % 2 == 1 => {
                            return Err(Fault::new("a map with a value for each key", "a key without a value"));
                        }
                        Brackets::Map => Node::Map(count / 2),
                    });
                }
                Next::Form => match self.form()? {
                    Some(node) => nodes.push(node),
                    None => {
                        if let Some(Frame::Dropped { nodes: before }) = self.open.last_mut() {
                            *before = nodes.len();
                        }
                        continue;
                    }
                },
            }
            if self.completed(nodes) {
                return Ok(());
            }
        }
    }

    /// Whether the node just read completes the value.
    fn completed(&mut self, nodes: &mut Vec<Node<'a>>) -> bool {
        loop {
            match self.open.last_mut() {
                None => return true,
                Some(Frame::Brackets { count, .. }) => {
                    *count += 1;
                    return false;
                }
                Some(Frame::Tag(tag)) => {
                    nodes.push(Node::Tagged(tag));
                    self.open.pop();
                }
                Some(Frame::Dropped { nodes: before }) => {
                    nodes.truncate(*before);
                    self.open.pop();
                    return false;
                }
            }
        }
    }

    /// The next token behind spaces and comments.
    pub fn next(&mut self) -> Result<Next, Fault> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b',' | b'\n' | b'\r' | b'\t' | 0x0b | 0x0c => self.at += 1,
                b':' if self.dialect == Dialect::Json => self.at += 1,
                b';' if self.dialect == Dialect::Edn => {
                    self.at = memchr::memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |n| self.at + n);
                }
                b')' | b']' | b'}' => return Ok(Next::Close(byte)),
                _ => return Ok(Next::Form),
            }
        }
        Ok(Next::End)
    }

    /// Checks that no value follows.
    pub fn end(&mut self) -> Result<(), Fault> {
        loop {
            match self.next()? {
                Next::End => return Ok(()),
                Next::Form if self.discards() => self.discarded()?,
                _ => return Err(Fault::new("one value", Found::described(format!("more after it: {}", self.here())))),
            }
        }
    }

    /// Whether the next form is a discard (`#_`).
    pub fn discards(&self) -> bool {
        matches!(self.bytes.get(self.at..), Some([b'#', b'_', ..]))
    }

    /// Skips a discarded form.
    pub fn discarded(&mut self) -> Result<(), Fault> {
        self.at += 2;
        self.value(&mut Vec::new())
    }

    pub fn skip(&mut self) {
        self.at += 1;
    }

    /// The text that is not read yet.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The last `bytes` bytes, which must be part of a word.
    pub fn last(&self, bytes: usize) -> &'a str {
        &self.text[self.at - bytes..self.at]
    }

    /// A symbol or keyword up to the next delimiter.
    pub fn token(&mut self) -> &'a str {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|&byte| !is_delimiter(byte)) {
            self.at += 1;
        }
        // Delimiters are ASCII, so both offsets are character boundaries.
        &self.text[start..self.at]
    }

    /// Reads the form that begins here. `None`: it only opened brackets, a tag or a discard.
    fn form(&mut self) -> Result<Option<Node<'a>>, Fault> {
        let opened = |open: &mut Vec<Frame<'a>>, close, kind| {
            open.push(Frame::Brackets { close, kind, count: 0 });
            Ok(None)
        };
        let byte = self.bytes[self.at];
        match byte {
            b'"' => self.string().map(|text| Some(Node::Text(text))),
            b'[' | b'(' | b'{' => {
                self.at += 1;
                match byte {
                    b'[' => opened(&mut self.open, b']', Brackets::Sequence),
                    b'(' => opened(&mut self.open, b')', Brackets::Sequence),
                    _ => opened(&mut self.open, b'}', Brackets::Map),
                }
            }
            b'#' => self.dispatch(),
            b'^' => {
                self.at += 1;
                self.open.push(Frame::Dropped { nodes: 0 });
                Ok(None)
            }
            b'\\' => self.character().map(Some),
            b':' => {
                self.at += 1;
                if self.bytes.get(self.at) == Some(&b':') {
                    self.at += 1;
                }
                match self.token() {
                    "" => Err(Fault::new("a keyword", "a colon without a name")),
                    name => Ok(Some(Node::Keyword(name))),
                }
            }
            b'0'..=b'9' => self.number().map(Some),
            b'+' | b'-' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.number().map(Some),
            // A quoted symbol reads as the symbol.
            b'\'' if self.bytes.get(self.at + 1).is_some_and(|byte| byte.is_ascii_alphabetic()) => {
                self.at += 1;
                Ok(Some(Node::Symbol(self.token())))
            }
            b'\'' | b'`' | b'~' | b'@' => Err(self.unexpected(byte)),
            _ => Ok(Some(match self.token() {
                "nil" | "null" => Node::Nil,
                "true" => Node::Bool(true),
                "false" => Node::Bool(false),
                name => Node::Symbol(name),
            })),
        }
    }

    /// Reads a form that begins with `#`.
    fn dispatch(&mut self) -> Result<Option<Node<'a>>, Fault> {
        self.at += 1;
        match self.bytes.get(self.at) {
            Some(b'{') => {
                self.at += 1;
                self.open.push(Frame::Brackets { close: b'}', kind: Brackets::Set, count: 0 });
                Ok(None)
            }
            Some(b'_') => {
                self.at += 1;
                self.open.push(Frame::Dropped { nodes: 0 });
                Ok(None)
            }
            Some(b'"') => self.string().map(|text| Some(Node::Text(text))),
            // `##Inf`, `##-Inf`, `##NaN`.
            Some(b'#') => {
                self.at += 1;
                Ok(Some(Node::Number(Cow::Borrowed(self.token()))))
            }
            // `#'name`: Clojure's print of a variable.
            Some(b'\'') => {
                self.at += 1;
                match self.token() {
                    "" => Err(self.unexpected(b'\'')),
                    name => Ok(Some(Node::Symbol(name))),
                }
            }
            Some(&byte) if !is_delimiter(byte) => {
                let tag = self.token();
                self.open.push(Frame::Tag(tag));
                Ok(None)
            }
            _ => Err(Fault::new("a tag", Found::described(format!("a # without a name, then {}", self.here())))),
        }
    }

    fn character(&mut self) -> Result<Node<'a>, Fault> {
        self.at += 1;
        let Some(first) = self.rest().chars().next() else { return Err(self.cut_off()) };
        let start = self.at;
        self.at += first.len_utf8();
        if !first.is_alphanumeric() {
            return Ok(Node::Char(first));
        }
        self.token();
        let name = &self.text[start..self.at];
        let code = |digits: Option<&str>, radix| {
            digits.filter(|digits| !digits.is_empty()).and_then(|d| u32::from_str_radix(d, radix).ok())
        };
        let known = match name {
            "newline" => Some('\n'),
            "space" => Some(' '),
            "tab" => Some('\t'),
            "return" => Some('\r'),
            "backspace" => Some('\u{8}'),
            "formfeed" => Some('\u{c}'),
            _ if name.chars().nth(1).is_none() => Some(first),
            _ => {
                let hexadecimal = code(name.strip_prefix('u').filter(|digits| digits.len() == 4), 16);
                let code = hexadecimal.or_else(|| code(name.strip_prefix('o'), 8));
                // Half of a surrogate pair is a character in Java, not in Unicode.
                code.map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        };
        known.map(Node::Char).ok_or_else(|| Fault::new("a character", Found::text("a name", name)))
    }

    fn number(&mut self) -> Result<Node<'a>, Fault> {
        let token = self.token();
        let number = match self.dialect {
            Dialect::Edn => canonical(token).or_else(|| hexadecimal(token)),
            Dialect::Json => canonical(token).map(|number| match number {
                Node::Number(number) => whole(token).unwrap_or(Node::Number(number)),
                number => number,
            }),
        };
        number.ok_or_else(|| Fault::new("a number", Found::text("a text that begins as one,", token)))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.at += 1;
        let start = self.at;
        let Some(n) = memchr::memchr2(b'"', b'\\', &self.bytes[start..]) else { return Err(self.cut_off()) };
        self.at += n;
        if self.bytes[self.at] == b'"' {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        let mut text = self.text[start..self.at].to_owned();
        loop {
            let from = self.at;
            let Some(n) = memchr::memchr2(b'"', b'\\', &self.bytes[from..]) else { return Err(self.cut_off()) };
            self.at += n;
            text.push_str(&self.text[from..self.at]);
            self.at += 1;
            if self.bytes[self.at - 1] == b'"' {
                return Ok(Cow::Owned(text));
            }
            text.push(self.escape()?);
        }
    }

    /// Reads an escape behind its backslash.
    fn escape(&mut self) -> Result<char, Fault> {
        let Some(c) = self.rest().chars().next() else { return Err(self.cut_off()) };
        self.at += c.len_utf8();
        Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\\' | '/' => c,
            'u' => {
                let high = self.unit()?;
                let pair = matches!(high, 0xd800..0xdc00) && self.rest().starts_with("\\u");
                let low = if pair {
                    let before = self.at;
                    self.at += 2;
                    let low = self.unit()?;
                    if !matches!(low, 0xdc00..0xe000) {
                        self.at = before;
                    }
                    low
                } else {
                    0
                };
                match low {
                    0xdc00..0xe000 => char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
                    _ => char::from_u32(high),
                }
                .unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            '0'..='7' => {
                let digits = self.bytes[self.at - 1..].iter().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let text = &self.text[self.at - 1..self.at - 1 + digits];
                self.at += digits - 1;
                let code = u32::from_str_radix(text, 8).unwrap_or(0);
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(Fault::new("an escape of a string", Found::byte(self.bytes, self.at - c.len_utf8()))),
        })
    }

    /// Reads four hexadecimal digits.
    fn unit(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        unit.ok_or_else(|| Fault::new("four hexadecimal digits after \\u", "other text"))
    }

    fn unexpected(&self, byte: u8) -> Fault {
        Fault::new("a value", Found::described(format!("the byte 0x{byte:02x} at column {}", self.at.max(1))))
    }

    fn cut_off(&self) -> Fault {
        Fault::new("a whole value", Found::cut_off("a value", self.bytes.len()))
    }

    fn here(&self) -> Found {
        Found::byte(self.bytes, self.at)
    }
}

/// White space, commas, brackets, quotes and semicolons.
const DELIMITERS: [bool; 256] = {
    let mut delimiters = [false; 256];
    let (all, mut at) = (b" ,\n\r\t\x0b\x0c;\"()[]{}", 0);
    while at < all.len() {
        delimiters[all[at] as usize] = true;
        at += 1;
    }
    delimiters
};

pub(super) fn is_delimiter(byte: u8) -> bool {
    DELIMITERS[byte as usize]
}

/// The value of a short number: few digits and nothing else.
#[inline]
fn short(token: &str) -> Option<i64> {
    let next = |number, byte: u8| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'));
    if matches!(token.len(), 1..=18) { token.bytes().try_fold(0, next) } else { None }
}

/// A number in canonical text: equal numbers of one sort yield equal nodes.
fn canonical(token: &str) -> Option<Node<'_>> {
    if let Some(number) = short(token) {
        return Some(Node::Int(number));
    }
    let unsigned = token.strip_prefix(['+', '-']).unwrap_or(token);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let whole = unsigned.strip_suffix('N').unwrap_or(unsigned);
    if digits(whole) {
        let sign = if token.starts_with('-') { "-" } else { "" };
        let plain = token.strip_suffix('N').unwrap_or(token);
        return Some(match plain.parse() {
            Ok(number) => Node::Int(number),
            Err(_) => match (sign, whole.trim_start_matches('0')) {
                ("", digits) if !plain.starts_with('+') => Node::Number(Cow::Borrowed(digits)),
                (sign, digits) => Node::Number(Cow::Owned(format!("{sign}{digits}"))),
            },
        });
    }
    if let Some((numerator, denominator)) = unsigned.split_once('/') {
        // Clojure prints ratios in lowest terms, and never a whole number as a ratio.
        return (digits(numerator) && digits(denominator)).then_some(Node::Number(Cow::Borrowed(token)));
    }
    let decimal = unsigned.strip_suffix('M');
    let mantissa = decimal.unwrap_or(unsigned);
    let plain = mantissa.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    let number: f64 = plain.then(|| mantissa.parse().ok())??;
    Some(Node::Number(match decimal {
        // To Clojure's `=`, decimals of another scale are other numbers.
        Some(_) => Cow::Borrowed(token),
        // Negative zero equals zero.
        None if token.starts_with('-') && number != 0.0 => Cow::Owned(format!("{:?}", -number)),
        None => Cow::Owned(format!("{number:?}")),
    }))
}

/// `0x7f`, as in Clojure's print of an object's identity.
fn hexadecimal(token: &str) -> Option<Node<'_>> {
    let digits = token.strip_prefix("0x").or_else(|| token.strip_prefix("0X"))?;
    match i64::from_str_radix(digits, 16) {
        Ok(number) => Some(Node::Int(number)),
        Err(_) if digits.is_empty() => None,
        Err(_) => digits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(Node::Number(Cow::Borrowed(token))),
    }
}

/// A JSON number without a fraction, in the canonical text of integers: JSON has one sort of number, so `1`, `1.0`
/// and `1e0` are equal. `None`: it has a fraction, or more than 400 digits.
fn whole(token: &str) -> Option<Node<'static>> {
    const MOST_DIGITS: i64 = 400;
    let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let exponent: i64 = exponent.parse().ok()?;
    let digits = format!("{integer}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(Node::Int(0));
    }
    let zeros = exponent.checked_sub(fraction.len() as i64).filter(|zeros| *zeros <= MOST_DIGITS)?;
    let digits = match usize::try_from(zeros) {
        Ok(zeros) => format!("{digits}{}", "0".repeat(zeros)),
        Err(_) => {
            let cut = digits.len().checked_sub(usize::try_from(-zeros).ok()?)?;
            let (kept, zeros) = digits.split_at(cut);
            zeros.bytes().all(|b| b == b'0').then(|| kept.to_owned())?
        }
    };
    let text = format!("{sign}{digits}");
    Some(text.parse().map_or_else(|_| Node::Number(Cow::Owned(text)), Node::Int))
}

#[cfg(test)]
mod tests {
    use super::super::datum::Datum;
    use super::super::edn::parse;
    use super::*;

    fn nodes(text: &str) -> Vec<Node<'_>> {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).0
    }

    fn fails(text: &str) -> String {
        let (expected, found) = parse(text).expect_err(text);
        format!("expected {expected}, found {found}")
    }

    #[test]
    fn atoms_of_every_kind_are_read() {
        let number = |text: &'static str| Node::Number(text.into());
        for (text, node) in [
            ("nil", Node::Nil),
            ("true", Node::Bool(true)),
            ("-17", Node::Int(-17)),
            ("+17", Node::Int(17)),
            ("17N", Node::Int(17)),
            ("9223372036854775807", Node::Int(i64::MAX)),
            ("9223372036854775808", number("9223372036854775808")),
            ("-00018446744073709551616N", number("-18446744073709551616")),
            ("+18446744073709551616", number("18446744073709551616")),
            ("1.50", number("1.5")),
            ("-2e3", number("-2000.0")),
            ("-0.0", number("0.0")),
            ("0.0", number("0.0")),
            ("0x7b1e4a2c", Node::Int(0x7b1e_4a2c)),
            ("0xffffffffffffffffff", number("0xffffffffffffffffff")),
            ("#'foo/bar", Node::Symbol("foo/bar")),
            ("'a", Node::Symbol("a")),
            ("3.14M", number("3.14M")),
            ("22/7", number("22/7")),
            ("##Inf", number("Inf")),
            (":a.b/c", Node::Keyword("a.b/c")),
            ("::x", Node::Keyword("x")),
            ("foo/bar?", Node::Symbol("foo/bar?")),
            ("-", Node::Symbol("-")),
            (r"\a", Node::Char('a')),
            (r"\newline", Node::Char('\n')),
            (r"\u00e9", Node::Char('é')),
            (r"\o101", Node::Char('A')),
            (r"\{", Node::Char('{')),
            (r"\é", Node::Char('é')),
            (r#""a\"b\\\n\u00e9\ud83d\ude00\101""#, Node::Text("a\"b\\\n\u{e9}\u{1f600}A".into())),
            ("\"plain, (text\"", Node::Text("plain, (text".into())),
        ] {
            assert_eq!(nodes(text), [node], "{text}");
        }
    }

    #[test]
    fn collections_come_behind_their_elements() {
        use Node::{Int, Keyword, Map, Nil, Sequence, Set, Tagged};
        assert_eq!(nodes("[1, (2)]"), [Int(1), Int(2), Sequence(1), Sequence(2)]);
        assert_eq!(nodes("#{1 nil}"), [Int(1), Nil, Set(2)]);
        assert_eq!(nodes("{:a [] :b {}}"), [Keyword("a"), Sequence(0), Keyword("b"), Map(0), Map(2)]);
        assert_eq!(nodes("#foo.Bar{:a 1}"), [Keyword("a"), Int(1), Map(1), Tagged("foo.Bar")]);
        assert_eq!(nodes("#a #b 1"), [Int(1), Tagged("b"), Tagged("a")]);
    }

    #[test]
    fn comments_commas_discards_and_metadata_leave_no_trace() {
        use Node::{Int, Sequence};
        let expected = [Int(1), Int(2), Sequence(2)];
        for text in [
            "[1 2] ; end",
            "; begin\n[1 ; one\n,,2]",
            "[1 #_3 2]",
            "[1 #_[3 {4 5}] 2 #_6]",
            "[1 #_ #_ 3 4 2]",
            "#_0 [1 2] #_0",
            "^{:line 1} [^String 1 2]",
            "[1 #_#foo {} 2]",
        ] {
            assert_eq!(nodes(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_value_says_what_was_expected() {
        for (text, why) in [
            ("", "cut off"),
            ("[1 2", "cut off"),
            ("\"abc", "cut off"),
            ("\"abc\\", "cut off"),
            ("[1 2)", "found the byte 0x29 at column 5"),
            ("]", "found the byte 0x5d at column 1"),
            ("{:a}", "a key without a value"),
            ("1 2", "more after it: the byte 0x32 at column 3"),
            ("[#_]", "found the byte 0x5d"),
            ("[#foo]", "found the byte 0x5d"),
            ("1x", "a number, found a text that begins as one, of 2 characters"),
            ("1/", "a number"),
            (r"\newlin", "a character"),
            (r#""\q""#, "an escape of a string"),
            (r#""\u12""#, "hexadecimal"),
            ("'(a)", "found the byte 0x27"),
            ("'", "found the byte 0x27"),
            ("#'", "found the byte 0x27"),
            ("0x", "a number"),
            ("0xg", "a number"),
            (":", "a keyword"),
            ("#", "a tag"),
        ] {
            assert!(fails(text).contains(why), "{text}: {}", fails(text));
        }
    }

    #[test]
    fn no_depth_of_nesting_needs_a_stack() {
        for (open, close) in [("[", "]"), ("(", ")"), ("#{", "}"), ("{1 ", "}"), ("#a ", ""), ("#_ ", "")] {
            let depth = 100_000;
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert_eq!(parse(&text).is_ok(), open != "#_ ", "{open}");
            assert!(parse(&open.repeat(depth)).is_err(), "{open}");
        }
        assert!(fails(&"[".repeat(MOST_PARTS + 2)).contains("at most"));
    }

    #[test]
    fn numbers_of_json_are_equal_however_they_are_written() {
        let read = |text: &'static str| {
            let (mut reader, mut nodes) = (Reader::new(text, Dialect::Json), Vec::new());
            assert!(reader.value(&mut nodes).and_then(|()| reader.end()).is_ok(), "{text}");
            nodes.remove(0)
        };
        for (text, node) in [
            ("1.0", Node::Int(1)),
            ("10e-1", Node::Int(1)),
            ("1.50e1", Node::Int(15)),
            ("-0.0", Node::Int(0)),
            ("0e400", Node::Int(0)),
            ("-2E+3", Node::Int(-2000)),
            ("9223372036854775807.0", Node::Int(i64::MAX)),
            ("1e20", Node::Number("100000000000000000000".into())),
            ("100000000000000000000", Node::Number("100000000000000000000".into())),
            ("1e23", Node::Number("100000000000000000000000".into())),
            ("100000000000000000000000", Node::Number("100000000000000000000000".into())),
            ("1.5", Node::Number("1.5".into())),
            ("15e-1", Node::Number("1.5".into())),
            ("1e-3", Node::Number("0.001".into())),
        ] {
            assert_eq!(read(text), node, "{text}");
        }
        assert!(
            matches!(read("1e999999"), Node::Number(_)) && matches!(read("1e99999999999999999999"), Node::Number(_))
        );
    }

    #[test]
    fn objects_that_clojure_prints_are_values() {
        let object = "#object[java.net.SocketTimeoutException 0x7b1e4a2c \"Read timed out\"]";
        assert_eq!(nodes(object).len(), 5);
    }

    #[test]
    fn json_is_read_with_its_own_separators() {
        let text = r#"{"a": [1, -2.5, null, "\/\ud83d\ude00;"], "b": {}}"#;
        let mut reader = Reader::new(text, Dialect::Json);
        let mut nodes = Vec::new();
        assert!(reader.value(&mut nodes).and_then(|()| reader.end()).is_ok());
        use Node::*;
        let text = |text: &'static str| Text(text.into());
        let list = [Int(1), Number("-2.5".into()), Nil, text("/\u{1f600};"), Sequence(4)];
        let expected: Vec<Node<'_>> = [text("a")].into_iter().chain(list).chain([text("b"), Map(0), Map(2)]).collect();
        assert_eq!(Datum(nodes), Datum(expected));
    }
}
