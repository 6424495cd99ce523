//! The `found` part of a problem: kind and place of the text, never its content.
//!
//! A line that cannot be read may begin inside a Secret, because logs are rotated and cut anywhere. So the message
//! holds only words of this program, numbers, and kinds of bytes and values. A new constructor must not copy text of
//! the evidence.

use std::fmt::{self, Write};
use std::ops::Deref;

/// A description of what was found. Only [`Found::described`] takes other text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found(String);

impl From<&'static str> for Found {
    fn from(words: &'static str) -> Found {
        Found(words.to_owned())
    }
}

impl From<Found> for String {
    fn from(found: Found) -> String {
        found.0
    }
}

impl Deref for Found {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Found {
    /// A description in the program's own words, with numbers, sizes or names. The caller ensures that no other text
    /// of the evidence is in it.
    pub fn described(words: impl Into<String>) -> Found {
        Found(words.into())
    }

    /// A recorded text by its length alone: `a resourceVersion of 7 characters`.
    pub fn text(what: &str, text: &str) -> Found {
        Found(match text.chars().count() {
            0 => format!("{what} without characters"),
            1 => format!("{what} of 1 character"),
            length => format!("{what} of {length} characters"),
        })
    }

    /// The byte at an offset of a line: `the byte 0x22 at column 7`. Columns count from 1.
    pub fn byte(bytes: &[u8], at: usize) -> Found {
        let column = at + 1;
        Found(match bytes.get(at) {
            None | Some(b'\n') => format!("the end of the line at column {column}"),
            Some(byte) => format!("the byte 0x{byte:02x} at column {column}"),
        })
    }

    /// A value that breaks off after `length` bytes.
    pub fn cut_off(what: &str, length: usize) -> Found {
        Found(format!("{what} cut off after {}", size(length as u64)))
    }

    /// The error of the JSON parser, without text of the evidence.
    pub fn json(error: &serde_json::Error) -> Found {
        let what = words(error);
        match error.line() {
            0 => Found(what),
            1 => Found(format!("{what} at column {}", error.column())),
            line => Found(format!("{what} at column {} of its line {line}", error.column())),
        }
    }
}

/// The message of a serde_json error without the text that it quotes.
///
/// Messages about syntax are fixed. Messages about data come from `serde::de::Error`, which puts strings, numbers and
/// variant names between fixed words.
fn words(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // Without a place, " at line " could be part of a quoted text.
    let place = message.rsplit_once(" at line ").filter(|_| error.line() > 0);
    let message = place.map_or(&*message, |(message, _)| message);
    if !error.is_data() {
        return message.to_owned();
    }
    for (beginning, what) in [("invalid type: ", ""), ("invalid value: ", "another value: ")] {
        if let Some(rest) = message.strip_prefix(beginning) {
            // The expected part is in this program's words and comes last.
            let expected = rest.rsplit_once(", expected ").map_or("another type", |(_, expected)| expected);
            return format!("{what}{} where {expected} is expected", kind(rest));
        }
    }
    if let Some((length, expected)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        let expected = expected.split_once(" at line ").map_or(expected, |(expected, _)| expected);
        return format!("a text of {length} bytes where {expected} is expected");
    }
    // Only fields that this program declares can be missing or duplicate.
    if message.starts_with("missing field `") || message.starts_with("duplicate field `") {
        return message.to_owned();
    }
    "a value that does not fit its field".to_owned()
}

/// The kind of a value, from the beginning of what `serde::de::Unexpected` prints.
fn kind(shown: &str) -> &'static str {
    const KINDS: [(&str, &str); 8] = [
        ("string", "a string"),
        ("boolean", "a truth value"),
        ("integer", "a whole number"),
        ("floating point", "a number"),
        ("null", "null"),
        ("map", "an object"),
        ("sequence", "a list"),
        ("character", "a character"),
    ];
    KINDS.iter().find(|(beginning, _)| shown.starts_with(beginning)).map_or("another value", |(_, kind)| kind)
}

/// `1 byte`, `12 bytes`, `3.4 MiB`.
pub(in crate::ingest) fn size(bytes: u64) -> String {
    let mut text = String::new();
    let _ = match bytes {
        1 => write!(text, "1 byte"),
        0..1_048_576 => write!(text, "{bytes} bytes"),
        _ => write!(text, "{:.1} MiB", bytes as f64 / 1_048_576.0),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::kubernetes::audit::Event;
    use serde::Deserialize;

    #[test]
    fn a_byte_is_told_by_its_value_and_its_column() {
        assert_eq!(Found::byte(b"{\"", 1).to_string(), "the byte 0x22 at column 2");
        assert_eq!(Found::byte(b"ab\n", 2).to_string(), "the end of the line at column 3");
        assert_eq!(Found::byte(b"", 0).to_string(), "the end of the line at column 1");
    }

    #[test]
    fn what_the_parser_of_json_repeats_of_a_text_is_left_out() {
        #[derive(Debug, Deserialize)]
        enum Word {
            #[serde(rename = "ok")]
            _Ok,
        }
        let refused = |text: &str| match serde_json::from_str::<Event<'_>>(text) {
            Err(error) => Found::json(&error).to_string(),
            Ok(_) => panic!("{text}"),
        };
        for (text, words) in [
            (r#"{"user":"hidden, expected hidden"}"#, "a string where struct User is expected at column 33"),
            (r#"{"responseStatus":{"code":"hidden"}}"#, "a string where u16 is expected at column 34"),
            (
                r#"{"responseStatus":{"code":-773377}}"#,
                "another value: a whole number where u16 is expected at column 33",
            ),
            (r#"{"level":"hidden""#, "EOF while parsing an object at column 17"),
            (r#"{"level":"hidden" hidden}"#, "expected `,` or `}` at column 19"),
            ("{\n\"level\":\"hidden\" hidden}", "expected `,` or `}` at column 18 of its line 2"),
            (r#"{"level":"a","level":"hidden"}"#, "duplicate field `level` at column 20"),
        ] {
            assert_eq!(refused(text), words, "{text}");
        }
        let error = serde_json::from_str::<Word>(r#""hidden""#).unwrap_err();
        assert_eq!(Found::json(&error).to_string(), "a value that does not fit its field at column 8");
    }
}
