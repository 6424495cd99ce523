//! Texts inside quotes: strings of JSON, and fields of CSV.

use crate::ingest::json::string;
use std::borrow::Cow;

/// The text of a JSON string, given what is between its quotes. An escape that is none stays as it is written, since
/// the string may be cut off.
pub fn unescaped(inner: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', inner.as_bytes()) else { return Cow::Borrowed(inner) };
    if let Some(text) = string::without_escapes(inner) {
        return Cow::Owned(text);
    }
    let mut text = String::with_capacity(inner.len());
    text.push_str(&inner[..first]);
    let mut rest = &inner[first..];
    while let Some(escaped) = rest.strip_prefix('\\') {
        let (character, length) = character(escaped);
        text.push(character);
        rest = &escaped[length..];
        let plain = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        text.push_str(&rest[..plain]);
        rest = &rest[plain..];
    }
    Cow::Owned(text)
}

/// The character that an escape stands for, and the bytes behind the backslash that belong to it.
fn character(escaped: &str) -> (char, usize) {
    match escaped.as_bytes().first() {
        Some(b'"') => ('"', 1),
        Some(b'\\') => ('\\', 1),
        Some(b'/') => ('/', 1),
        Some(b'n') => ('\n', 1),
        Some(b't') => ('\t', 1),
        Some(b'r') => ('\r', 1),
        Some(b'b') => ('\u{8}', 1),
        Some(b'f') => ('\u{c}', 1),
        Some(b'u') => unicode(escaped).unwrap_or(('\\', 0)),
        _ => ('\\', 0),
    }
}

/// The character of an escape: `u` with four hexadecimal digits, or two such escapes of a surrogate pair.
fn unicode(escaped: &str) -> Option<(char, usize)> {
    let unit = |from: usize| u32::from_str_radix(escaped.get(from..from + 4)?, 16).ok();
    let first = unit(1)?;
    if let 0xd800..=0xdbff = first {
        let second = escaped.get(5..7).filter(|between| *between == "\\u").and_then(|_| unit(7))?;
        let joined = 0x10000 + ((first - 0xd800) << 10) + second.checked_sub(0xdc00)?;
        return char::from_u32(joined).map(|character| (character, 11));
    }
    char::from_u32(first).map(|character| (character, 5))
}

/// The text of a quoted field of CSV, which begins with its quote, and its length with the quotes. A quote is written
/// twice. `None`: the field is cut off.
pub(super) fn field(quoted: &str) -> Option<(Cow<'_, str>, usize)> {
    let inner = quoted.strip_prefix('"')?;
    let first = memchr::memchr(b'"', inner.as_bytes())?;
    if inner.as_bytes().get(first + 1) != Some(&b'"') {
        return Some((Cow::Borrowed(&inner[..first]), first + 2));
    }
    let (text, end) = string::without_doubled_quotes(inner.as_bytes());
    // Only the end of the text is the end of a field that is cut off.
    (end < inner.len()).then_some(())?;
    Some((Cow::Owned(String::from_utf8(text).ok()?), end + 2))
}

/// Finds the end of a quoted text, of which more bytes may come.
#[derive(Debug, Default)]
pub struct Quoted {
    /// Bytes that were searched.
    passed: usize,
}

impl Quoted {
    /// Offset behind the quote that ends the text, if it is among the bytes. The text is a field of CSV if its first
    /// quote inside is written twice, else a string of JSON.
    pub fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        self.passed = self.passed.max(1);
        let is_csv = bytes.get(1..4)? == b"{\"\"";
        loop {
            let rest = bytes.get(self.passed..)?;
            let at = self.passed + memchr::memchr2(b'"', if is_csv { b'"' } else { b'\\' }, rest)?;
            match (bytes[at], is_csv, bytes.get(at + 1)) {
                (b'"', false, _) => return Some(at + 1),
                // The next byte decides.
                (_, true, None) => {
                    self.passed = at;
                    return None;
                }
                (_, true, Some(next)) if *next != b'"' => return Some(at + 1),
                _ => self.passed = at + 2,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_serde_json_reads_them() {
        for text in ["", "a", "{\"a\":\"b\\\\\"}", "é\n\t\r\u{8}\u{c}/\\", "\u{1f600}\u{0}x", "\\u0041"] {
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(unescaped(&json[1..json.len() - 1]), text, "{json}");
        }
        assert_eq!(unescaped(r"\ud83d\ude00\u00e9\/"), "\u{1f600}é/");
    }

    #[test]
    fn an_escape_that_is_none_stays() {
        for text in [r"\", r"\u", r"\u00", r"\ud83d", r"\ud83dx", r"\q", "\\ué12"] {
            assert_eq!(unescaped(text), text);
        }
    }

    #[test]
    fn the_end_of_a_quoted_text_does_not_depend_on_how_it_arrives() {
        for (text, end) in [
            (r#""{\"a\":\"x\\\\\"}" , ""#, Some(19)),
            (r#""{""a"":1}","b""#, Some(11)),
            (r#""{""a"":1}"#, None),
            (r#""{\"a"#, None),
            (r#""H4sI" "#, Some(6)),
        ] {
            let mut quoted = Quoted::default();
            let found = (0..=text.len()).find_map(|length| quoted.end(&text.as_bytes()[..length]));
            assert_eq!((found, Quoted::default().end(text.as_bytes())), (end, end), "{text}");
        }
    }

    #[test]
    fn a_field_ends_at_its_single_quote() {
        assert_eq!(field(r#""a""b""""#), Some(("a\"b\"".into(), 8)));
        assert_eq!(field(r#""",x"#), Some(("".into(), 2)));
        assert_eq!(field(r#""{""a"":1}",2"#), Some((r#"{"a":1}"#.into(), 11)));
        for text in ["", "a", "\"", "\"a", "\"\"\""] {
            assert_eq!(field(text), None, "{text}");
        }
    }
}
