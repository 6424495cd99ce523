//! A JSON reader for text as programs write it, in about half the time of `serde_json`.
//!
//! Any value it returns, `serde_json` returns too. Names with escapes, fractions, deep nesting and malformed text are
//! a [`Fallback`]; the caller then reads again with `serde_json`, which also gives the error. The tests compare both
//! readers.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt;

/// Reads JSON text from its start. The result equals that of `serde_json`, or is a [`Fallback`].
pub(in crate::ingest) struct Plain<'a> {
    text: &'a str,
    /// Offset of the next byte.
    at: usize,
    /// Number of open lists and objects.
    depth: u8,
}

/// Deeper nesting is a [`Fallback`].
const MAX_NESTING: u8 = 32;

impl<'a> Plain<'a> {
    pub fn new(text: &'a str) -> Plain<'a> {
        Plain { text, at: 0, depth: 0 }
    }

    /// Whether only white space is left.
    pub fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The next byte that is no white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn pass(&mut self, byte: u8) -> Result<(), Fallback> {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        if found { Ok(()) } else { Err(Fallback) }
    }

    #[inline]
    fn word(&mut self, word: &str) -> Result<(), Fallback> {
        let found = self.rest().starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        if found { Ok(()) } else { Err(Fallback) }
    }

    /// A string without escapes.
    #[inline]
    fn string(&mut self) -> Result<&'a str, Fallback> {
        if self.peek() != Some(b'"') {
            return Err(Fallback);
        }
        let start = self.at + 1;
        let inside = &self.text.as_bytes()[start..];
        let stop = inside.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20));
        let length = stop.filter(|stop| inside[*stop] == b'"').ok_or(Fallback)?;
        self.at = start + length + 1;
        Ok(&self.text[start..start + length])
    }

    /// A string with escapes, read by `serde_json`.
    #[cold]
    fn escaped(&mut self) -> Result<String, Fallback> {
        let mut strings = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter();
        let string = strings.next().and_then(Result::ok).ok_or(Fallback)?;
        self.at += strings.byte_offset();
        Ok(string)
    }

    #[inline]
    fn number(&mut self) -> Result<u64, Fallback> {
        let digits = self.rest();
        let (mut number, mut length) = (0u64, 0);
        while let Some(digit @ b'0'..=b'9') = digits.get(length) {
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            length += 1;
        }
        self.at += length;
        match length {
            0 => Err(Fallback),
            2.. if digits[0] == b'0' => Err(Fallback),
            1..=19 => Ok(number),
            // The number may be too large for its type.
            _ => self.text[self.at - length..self.at].parse().map_err(|_| Fallback),
        }
    }

    /// Reads what is between brackets; a value left unread is a [`Fallback`].
    #[inline]
    fn items<T>(
        &mut self,
        end: u8,
        read: impl FnOnce(&mut Items<'_, 'a>) -> Result<T, Fallback>,
    ) -> Result<T, Fallback> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(Fallback);
        }
        let mut items = Items { plain: self, end, first: true, open: true };
        let value = read(&mut items)?;
        if items.open && items.more()? { Err(Fallback) } else { Ok(value) }
    }
}

impl<'de> Deserializer<'de> for &mut Plain<'de> {
    type Error = Fallback;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fallback> {
        match self.peek().ok_or(Fallback)? {
            b'"' => match self.string() {
                Ok(string) => visitor.visit_borrowed_str(string),
                Err(Fallback) => visitor.visit_string(self.escaped()?),
            },
            b'0'..=b'9' => visitor.visit_u64(self.number()?),
            b'{' => self.items(b'}', |items| visitor.visit_map(items)),
            b'[' => self.items(b']', |items| visitor.visit_seq(items)),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'-' => {
                self.at += 1;
                match i64::try_from(self.number()?) {
                    Ok(number @ 1..) => visitor.visit_i64(-number),
                    _ => Err(Fallback),
                }
            }
            _ => Err(Fallback),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fallback> {
        match self.peek() {
            Some(b'n') => self.word("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fallback> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fallback> {
        Err(Fallback)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// The rest of a list or an object.
struct Items<'p, 'a> {
    plain: &'p mut Plain<'a>,
    /// The closing bracket.
    end: u8,
    first: bool,
    open: bool,
}

impl Items<'_, '_> {
    /// Moves to the next item; false at the closing bracket.
    #[inline]
    fn more(&mut self) -> Result<bool, Fallback> {
        if self.plain.peek() == Some(self.end) {
            self.plain.at += 1;
            self.plain.depth -= 1;
            self.open = false;
        } else if !std::mem::take(&mut self.first) {
            self.plain.pass(b',')?;
        }
        Ok(self.open)
    }
}

impl<'a> MapAccess<'a> for &mut Items<'_, 'a> {
    type Error = Fallback;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Fallback> {
        if !self.more()? {
            return Ok(None);
        }
        let key = self.plain.string()?;
        self.plain.pass(b':')?;
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, Fallback> {
        seed.deserialize(&mut *self.plain)
    }
}

impl<'a> SeqAccess<'a> for &mut Items<'_, 'a> {
    type Error = Fallback;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<Option<S::Value>, Fallback> {
        if self.more()? { seed.deserialize(&mut *self.plain).map(Some) } else { Ok(None) }
    }
}

/// The text is written in another way, or does not fit the type. `serde_json` reports which.
#[derive(Debug)]
pub(in crate::ingest) struct Fallback;

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text that the fast reader leaves to serde_json")
    }
}

impl std::error::Error for Fallback {}

impl de::Error for Fallback {
    fn custom<T: fmt::Display>(_: T) -> Fallback {
        Fallback
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    /// Whether the fast reader accepts the text. Its value must equal that of `serde_json`.
    fn agrees<'a, T: Deserialize<'a> + PartialEq + fmt::Debug>(text: &'a str) -> bool {
        let mut plain = Plain::new(text);
        let value = T::deserialize(&mut plain).ok().filter(|_| plain.is_at_end());
        let Some(value) = value else { return false };
        assert_eq!(Some(value), serde_json::from_str(text).ok(), "{text}");
        true
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Row<'a> {
        name: &'a str,
        count: i64,
        few: Option<u8>,
        rows: Option<Vec<Row<'a>>>,
        pair: (bool, Number),
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Number(i32);

    const ROWS: &str = r#" { "name" : "é", "count":-12, "few":null, "other":[{"a":[]},-1,true,null,"x"],
        "rows":[{"name":"","few":255,"pair":[true,-7]},{},{"rows":[]}] } "#;

    #[test]
    fn whatever_is_read_is_what_serde_json_reads() {
        assert!(agrees::<Row<'_>>(ROWS) && agrees::<serde_json::Value>(ROWS));
        for at in (0..ROWS.len()).filter(|at| ROWS.is_char_boundary(*at)) {
            let rest = &ROWS[at..];
            let behind = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
            let mut texts = vec![ROWS[..at].to_owned(), format!("{}{behind}", &ROWS[..at])];
            let others = ["{", "}", "[", "]", "\"", ",", ":", "0", "-", "1e", ".5", "\u{85}", "null", "\n", "\\", "\0"];
            for other in others {
                texts.push(format!("{}{other}{behind}", &ROWS[..at]));
                texts.push(format!("{}{other}{rest}", &ROWS[..at]));
            }
            for text in texts {
                agrees::<Row<'_>>(&text);
                agrees::<serde_json::Value>(&text);
            }
        }
    }

    #[test]
    fn numbers_are_read_as_far_as_they_are_whole() {
        for text in ["0", "7", "-1", "9223372036854775807", "-9223372036854775807", "18446744073709551615"] {
            assert!(agrees::<serde_json::Value>(text), "{text}");
        }
        for text in ["-0", "00", "01", "1.0", "1e3", "-", "", "18446744073709551616", "-9223372036854775808", "+1"] {
            assert!(!agrees::<serde_json::Value>(text), "{text}");
        }
        assert!(agrees::<u8>("255") && !agrees::<u8>("256") && !agrees::<u8>("-1") && !agrees::<u64>("\"1\""));
    }

    #[test]
    fn what_is_odd_is_left() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(agrees::<serde_json::Value>(&nested(32)) && !agrees::<serde_json::Value>(&nested(33)));
        assert!(agrees::<String>(r#""a\n\u00e9\"""#) && agrees::<Vec<String>>(r#"["\\", "\ud83d\ude00"]"#));
        assert!(!agrees::<serde_json::Value>(&"[".repeat(1_000_000)));
        for text in
            [r#""\ud83d""#, r#"{"a\u0062":1}"#, "\"\t\"", "[1,]", "[,1]", r#"{"a":1,}"#, "{,}", "1 1", "nul", "[1}"]
        {
            assert!(!agrees::<serde_json::Value>(text), "{text}");
        }
        assert!(agrees::<Vec<(u8, u8)>>("[[1,2]]") && !agrees::<Vec<(u8, u8)>>("[[1,2,3]]"));
        assert!(agrees::<BTreeMap<&str, u8>>(r#"{"a":1,"a":2}"#) && !agrees::<BTreeMap<&str, u8>>(r#"{"a":1 2}"#));
    }
}
