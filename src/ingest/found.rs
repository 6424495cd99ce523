//! What was found where something else stood to reason: the kind and the place of it, never its content.
//!
//! A line that cannot be read may begin inside a Secret, because logs are rotated and cut anywhere. So a message about it is made of
//! words of this program, numbers, and the kinds of bytes and values.

use std::fmt;
use std::fmt::Write;
use std::ops::Deref;

/// What was found. A text of the evidence has no way into it but [`Found::told`].
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
    /// Words with numbers, sizes or names in them. The caller vouches that no other text of the evidence is among them.
    pub fn told(words: impl Into<String>) -> Found {
        Found(words.into())
    }

    /// A text that was recorded for `what`: only its length is told, `a resourceVersion of 7 characters`.
    pub fn text(what: &str, text: &str) -> Found {
        Found(match text.chars().count() {
            0 => format!("{what} without characters"),
            1 => format!("{what} of 1 character"),
            length => format!("{what} of {length} characters"),
        })
    }

    /// The byte at a place of a text, from 0: `the byte 0x22 at column 7`.
    pub fn byte(bytes: &[u8], at: usize) -> Found {
        let column = at + 1;
        Found(match bytes.get(at) {
            None | Some(b'\n') => format!("the end of the line at column {column}"),
            Some(byte) => format!("the byte 0x{byte:02x} at column {column}"),
        })
    }

    /// A value that ends before it is whole.
    pub fn cut_off(what: &str, length: usize) -> Found {
        Found(format!("{what} cut off after {}", size(length as u64)))
    }

    /// What the parser of JSON refused.
    pub fn json(error: &serde_json::Error) -> Found {
        let what = words(error);
        match error.line() {
            0 => Found(what),
            1 => Found(format!("{what} at column {}", error.column())),
            line => Found(format!("{what} at column {} of its line {line}", error.column())),
        }
    }
}

/// The message of an error of serde_json without what it repeats of the text.
///
/// Messages about syntax are fixed. Messages about data are those of `serde::de::Error`, which repeat strings, numbers and names of
/// variants between words that are fixed.
fn words(error: &serde_json::Error) -> String {
    let message = error.to_string();
    // Where it has no place, the words could stand in a text that it repeats.
    let place = message.rsplit_once(" at line ").filter(|_| error.line() > 0);
    let message = place.map_or(&*message, |(message, _)| message);
    if !error.is_data() {
        return message.to_owned();
    }
    for (beginning, what) in [("invalid type: ", ""), ("invalid value: ", "another value: ")] {
        if let Some(rest) = message.strip_prefix(beginning) {
            // What was expected are words of this program, and stands last.
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
    // Only fields that this program declares are missing or stand twice.
    if message.starts_with("missing field `") || message.starts_with("duplicate field `") {
        return message.to_owned();
    }
    "a value that does not fit".to_owned()
}

/// The kind of a value, by the beginning of how `serde::de::Unexpected` shows it.
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
pub(super) fn size(bytes: u64) -> String {
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
    use crate::ingest::audit::Event;
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
        assert_eq!(Found::json(&error).to_string(), "a value that does not fit at column 8");
    }
}
