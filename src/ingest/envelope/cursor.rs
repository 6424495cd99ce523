//! Passes over JSON text once and hands out the raw text of values, without building any.
//!
//! The text may be cut off or malformed. The cursor then stops: every later call finds nothing, and what it passed so
//! far stays found. It checks no more than it needs to find the end of a value, since a wanted value is parsed later.

use crate::ingest::json::string;

/// A place in JSON text.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// Whether the text ended inside a value, or a byte was found that JSON forbids there.
    broken: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, at: 0, broken: false }
    }

    /// Whether the text ended early or is no JSON.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied().filter(|_| !self.broken)
    }

    /// Passes one byte.
    fn pass(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1
        } else {
            self.broken = true
        }
        found
    }

    /// Passes an object. `member` gets each key, as it is written between its quotes, in front of its value. A value
    /// that it leaves is skipped. Another value than an object is skipped.
    pub fn object(&mut self, mut member: impl FnMut(&mut Self, &'a str)) {
        if self.peek() != Some(b'{') {
            self.value();
            return;
        }
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return;
        }
        while self.peek() == Some(b'"') {
            let key = self.value();
            if !self.pass(b':') {
                return;
            }
            let start = self.at;
            member(self, unquoted(key));
            if self.at == start {
                self.value();
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => return self.at += 1,
                _ => break,
            }
        }
        self.broken = true;
    }

    /// Passes a list. `element` gets the cursor in front of each element. Another value than a list is skipped.
    pub fn list(&mut self, mut element: impl FnMut(&mut Self)) {
        if self.peek() != Some(b'[') {
            self.value();
            return;
        }
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return;
        }
        while self.peek().is_some() {
            let start = self.at;
            element(self);
            if self.at == start {
                self.value();
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => return self.at += 1,
                _ => break,
            }
        }
        self.broken = true;
    }

    /// The offset behind the bracket of a list that is cut off. The cursor passes the list.
    pub fn begin_of_list(&mut self) -> Option<usize> {
        let is_list = self.peek() == Some(b'[');
        let begin = self.at + 1;
        self.value();
        (is_list && self.broken).then_some(begin)
    }

    /// Passes one value and returns its text. A value that is cut off is returned up to the cut.
    pub fn value(&mut self) -> &'a str {
        let Some(first) = self.peek() else {
            self.broken = true;
            return "";
        };
        let start = self.at;
        match first {
            b'"' => self.string(),
            b'{' | b'[' => self.brackets(),
            b'}' | b']' | b',' | b':' => self.broken = true,
            _ => {
                let rest = &self.text.as_bytes()[start..];
                let end = rest.iter().position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
                self.at = end.map_or(self.text.len(), |end| start + end);
            }
        }
        // All places are those of ASCII characters, or the end.
        self.text.get(start..self.at).unwrap_or("")
    }

    /// The value if it is a text: what is between its quotes, with escapes. Any other value is skipped, and a text that
    /// is cut off is none: names must be whole.
    pub fn text(&mut self) -> &'a str {
        let is_text = self.peek() == Some(b'"');
        let value = self.value();
        if is_text && !self.broken { unquoted(value) } else { "" }
    }

    /// Passes the string that begins here.
    fn string(&mut self) {
        match string::end(self.text.as_bytes(), self.at + 1) {
            Some(end) => self.at = end + 1,
            None => {
                self.at = self.text.len();
                self.broken = true;
            }
        }
    }

    /// Passes the object or list that begins here. Its brackets are counted, not compared.
    fn brackets(&mut self) {
        let bytes = self.text.as_bytes();
        let mut depth = 0usize;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
        self.broken = true;
    }
}

/// The text between the quotes of a string, which may lack the last one.
pub(super) fn unquoted(value: &str) -> &str {
    let inner = value.strip_prefix('"').unwrap_or(value);
    inner.strip_suffix('"').unwrap_or(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        r#" {"a": [1, {"b":"}\"]\\"}, "x"], "c" : {"d" : -1.5e3 }, "e":null,"f":"é\\" , "g":{},"h":[] } rest"#;

    fn members(text: &str) -> (Vec<(String, String)>, bool) {
        let mut found = Vec::new();
        let mut cursor = Cursor::new(text);
        cursor.object(|cursor, key| found.push((key.to_owned(), cursor.value().to_owned())));
        (found, cursor.is_broken())
    }

    #[test]
    fn members_have_the_texts_of_their_values() {
        let (found, broken) = members(TEXT);
        let found: Vec<(&str, &str)> = found.iter().map(|(key, value)| (&**key, &**value)).collect();
        let expected = [
            ("a", r#"[1, {"b":"}\"]\\"}, "x"]"#),
            ("c", r#"{"d" : -1.5e3 }"#),
            ("e", "null"),
            ("f", r#""é\\""#),
            ("g", "{}"),
            ("h", "[]"),
        ];
        assert_eq!((found.as_slice(), broken), (&expected[..], false));
    }

    #[test]
    fn what_is_left_is_skipped_and_what_is_entered_is_passed() {
        let mut found = Vec::new();
        let mut cursor = Cursor::new(TEXT);
        cursor.object(|cursor, key| match key {
            "a" => cursor.list(|cursor| cursor.object(|cursor, key| found.push((key, cursor.text())))),
            "c" => cursor.list(|_| {}),
            "e" => found.push((key, cursor.text())),
            "f" => found.push((key, cursor.text())),
            _ => {}
        });
        assert_eq!(found, [("b", r#"}\"]\\"#), ("e", ""), ("f", r"é\\")]);
        assert!(!cursor.is_broken());
    }

    #[test]
    fn a_text_that_is_cut_off_shows_what_is_in_front_of_the_cut() {
        let end = TEXT.rfind('}').unwrap() + 1;
        let (whole, _) = members(TEXT);
        for at in (0..end).filter(|at| TEXT.is_char_boundary(*at)) {
            let (found, broken) = members(&TEXT[..at]);
            assert!(broken || at == 0 || !TEXT[..at].contains('{'), "{at}");
            assert!(found.len() <= whole.len(), "{at}");
            for (found, whole) in found.iter().zip(&whole) {
                assert!(found.0 == whole.0 && whole.1.starts_with(found.1.trim_end()), "{at}: {found:?}");
            }
        }
    }

    #[test]
    fn what_is_no_json_stops_the_cursor() {
        for text in ["", "x", "{a:1}", r#"{"a" 1}"#, r#"{"a":1 2}"#, r#"{"a":}"#, r#"{"a":1,"#, r#"{"a":]}"#, "]", "{]"]
        {
            let mut cursor = Cursor::new(text);
            cursor.object(|cursor, _| cursor.list(|_| {}));
            let stopped = cursor.is_broken() || text == "x";
            assert!(stopped, "{text}");
        }
        let deep = "[".repeat(1_000_000);
        let mut cursor = Cursor::new(&deep);
        assert_eq!((cursor.value().len(), cursor.is_broken()), (1_000_000, true));
    }
}
