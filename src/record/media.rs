//! Media types of bodies that the layer reads, JSON and CBOR, and the ends of the events in a stream.
//!
//! Kubernetes writes CBOR in its own way (KEP-4222): texts and names of members are byte strings, and bytes have the tag
//! for base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

/// The deepest nesting that is read. A deeper line of a capture could not be read back.
const DEEPEST: usize = 120;

/// Tag of bytes that are base64 in JSON (RFC 8949, section 3.4.5.2).
const BASE64: u64 = 22;

/// A media type that the layer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Cbor,
}

impl Media {
    /// The media type in the header `Content-Type`. A body without the header is JSON.
    pub(super) fn of(header: &str) -> Option<Media> {
        let header = header.to_ascii_lowercase();
        match () {
            () if header.contains("cbor") => Some(Media::Cbor),
            () if header.is_empty() || header.contains("json") => Some(Media::Json),
            () => None,
        }
    }

    /// The value of a body. `None`: the body is malformed.
    pub(super) fn value(self, body: &[u8]) -> Option<Value> {
        match self {
            Media::Json => serde_json::from_slice(body).ok(),
            Media::Cbor => {
                let mut reader = Reader { rest: body, depth: 0 };
                reader.value().filter(|_| reader.rest.is_empty())
            }
        }
    }

    /// The events of a stream: lines of JSON, or a sequence of CBOR items.
    pub(super) fn events(self) -> Events {
        match self {
            Media::Json => Events::Lines { searched: 0 },
            Media::Cbor => Events::Items(Items::default()),
        }
    }
}

/// Reads items of CBOR as the values that JSON has for them.
struct Reader<'b> {
    rest: &'b [u8],
    /// Items that are open.
    depth: usize,
}

impl<'b> Reader<'b> {
    fn head(&mut self) -> Option<Head> {
        let head = Head::of(self.rest)?;
        self.rest = &self.rest[head.length..];
        Some(head)
    }

    fn value(&mut self) -> Option<Value> {
        let head = self.head()?;
        Some(match (head.major, head.argument) {
            (0, Argument::Number(number)) => Value::Number(number.into()),
            (1, Argument::Number(number)) => Value::Number(Number::from_i128(-1 - i128::from(number))?),
            (2, length) => Value::String(String::from_utf8_lossy(&self.bytes(2, length)?).into_owned()),
            (3, length) => Value::String(String::from_utf8(self.bytes(3, length)?).ok()?),
            (4, length) => Value::Array(self.inside(length, Reader::value)?),
            (5, length) => {
                let mut object = Map::new();
                for (name, value) in self.inside(length, Reader::member)? {
                    if object.insert(name, value).is_some() {
                        return None;
                    }
                }
                Value::Object(object)
            }
            (6, Argument::Number(tag)) => self.tagged(tag)?,
            (7, Argument::Number(number)) => simple(head.length, number)?,
            _ => return None,
        })
    }

    fn member(&mut self) -> Option<(String, Value)> {
        let Value::String(name) = self.value()? else { return None };
        Some((name, self.value()?))
    }

    fn tagged(&mut self, tag: u64) -> Option<Value> {
        if tag == BASE64 && self.rest.first().is_some_and(|first| first >> 5 == 2) {
            let head = self.head()?;
            return Some(Value::String(STANDARD.encode(self.bytes(2, head.argument)?)));
        }
        self.inside(Argument::Number(1), Reader::value)?.pop()
    }

    /// The bytes of a string, which may be in pieces.
    fn bytes(&mut self, major: u8, length: Argument) -> Option<Vec<u8>> {
        match length {
            Argument::Number(length) => {
                let (bytes, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
                self.rest = rest;
                Some(bytes.to_vec())
            }
            Argument::Indefinite => {
                let mut all = Vec::new();
                while !self.breaks() {
                    let head = self.head().filter(|head| head.major == major)?;
                    let Argument::Number(_) = head.argument else { return None };
                    all.extend(self.bytes(major, head.argument)?);
                }
                Some(all)
            }
            Argument::Reserved => None,
        }
    }

    /// The items inside an item.
    fn inside<I>(&mut self, length: Argument, mut item: impl FnMut(&mut Reader<'b>) -> Option<I>) -> Option<Vec<I>> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut items = Vec::new();
        match length {
            // A length that is not true reserves nothing.
            Argument::Number(length) => {
                for _ in 0..length {
                    items.push(item(self)?);
                }
            }
            Argument::Indefinite => {
                while !self.breaks() {
                    items.push(item(self)?);
                }
            }
            Argument::Reserved => return None,
        }
        self.depth -= 1;
        Some(items)
    }

    /// Passes a break.
    fn breaks(&mut self) -> bool {
        let is_break = self.rest.first() == Some(&0xff);
        self.rest = &self.rest[usize::from(is_break)..];
        is_break
    }
}

/// A number with a fraction, a truth value or null, by the length of its head.
fn simple(length: usize, bits: u64) -> Option<Value> {
    let float = match length {
        1 => {
            return match bits {
                20 => Some(Value::Bool(false)),
                21 => Some(Value::Bool(true)),
                22 | 23 => Some(Value::Null),
                _ => None,
            };
        }
        3 => half(bits as u16),
        5 => f64::from(f32::from_bits(bits as u32)),
        9 => f64::from_bits(bits),
        _ => return None,
    };
    Some(Value::Number(Number::from_f64(float)?))
}

/// A number of 16 bits (IEEE 754 binary16).
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 0 { size } else { -size }
}

/// Finds the ends of events in a stream that arrives in pieces. It reads each byte once.
#[derive(Debug)]
pub(super) enum Events {
    /// An event is a line.
    Lines {
        /// Bytes without a line end.
        searched: usize,
    },
    /// An event is an item of CBOR.
    Items(Items),
}

/// The stream is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Events {
    /// The length of the first event, if it is complete. After that, the next call is about the next event. Until then,
    /// each call gets the bytes of the call before and more.
    pub(super) fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let end = match self {
            Events::Lines { searched } => {
                let line = memchr::memchr(b'\n', &bytes[*searched..]).map(|at| *searched + at + 1);
                *searched = bytes.len();
                line
            }
            Events::Items(items) => items.end(bytes)?,
        };
        if end.is_some() {
            *self = match self {
                Events::Lines { .. } => Events::Lines { searched: 0 },
                Events::Items(_) => Events::Items(Items::default()),
            };
        }
        Ok(end)
    }
}

/// The place in an item of CBOR.
#[derive(Debug)]
pub(super) struct Items {
    /// Offset of the next head, which may be behind the bytes.
    at: usize,
    /// The arrays, maps, tags and strings that are open, outermost first: the number of items left in each. `None`: it
    /// ends at a break.
    open: Vec<Option<u64>>,
}

impl Default for Items {
    fn default() -> Items {
        Items { at: 0, open: vec![Some(1)] }
    }
}

impl Items {
    fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        loop {
            while self.open.last() == Some(&Some(0)) {
                self.open.pop();
            }
            if self.open.is_empty() {
                return Ok(Some(self.at).filter(|end| *end <= bytes.len()));
            }
            let Some(head) = bytes.get(self.at..).and_then(Head::of) else { return Ok(None) };
            self.pass(head)?;
        }
    }

    /// Passes the head of an item, and its text if it has one.
    fn pass(&mut self, head: Head) -> Result<(), Malformed> {
        self.at += head.length;
        let enclosing = self.open.last_mut().ok_or(Malformed)?;
        let inside = match (head.major, head.argument) {
            (_, Argument::Reserved) => return Err(Malformed),
            (7, Argument::Indefinite) => {
                let is_break = enclosing.is_none();
                self.open.pop();
                return if is_break { Ok(()) } else { Err(Malformed) };
            }
            (0 | 1 | 7, Argument::Number(_)) => Some(0),
            (2 | 3, Argument::Number(length)) => {
                let length = usize::try_from(length).map_err(|_| Malformed)?;
                self.at = self.at.checked_add(length).ok_or(Malformed)?;
                Some(0)
            }
            (4, Argument::Number(items)) => Some(items),
            (5, Argument::Number(members)) => Some(members.checked_mul(2).ok_or(Malformed)?),
            (6, Argument::Number(_)) => Some(1),
            (2..=5, Argument::Indefinite) => None,
            _ => return Err(Malformed),
        };
        if let Some(left) = enclosing {
            *left -= 1;
        }
        if self.open.len() > 2 * DEEPEST {
            return Err(Malformed);
        }
        self.open.push(inside);
        Ok(())
    }
}

/// The head of an item (RFC 8949, section 3).
struct Head {
    major: u8,
    argument: Argument,
    length: usize,
}

enum Argument {
    Number(u64),
    Indefinite,
    Reserved,
}

impl Head {
    /// The head at the beginning of the bytes, if it is complete.
    fn of(bytes: &[u8]) -> Option<Head> {
        let first = *bytes.first()?;
        let (argument, length) = match first & 31 {
            small @ 0..24 => (Argument::Number(small.into()), 1),
            size @ 24..28 => {
                let length = 1 + (1 << (size - 24));
                let number = bytes.get(1..length)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
                (Argument::Number(number), length)
            }
            31 => (Argument::Indefinite, 1),
            _ => (Argument::Reserved, 1),
        };
        Some(Head { major: first >> 5, argument, length })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ciborium::Value as Item;
    use serde_json::json;

    /// A body as an API server writes it.
    pub(in crate::record) fn cbor(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        ciborium::into_writer(&Item::Tag(55799, Box::new(item(value))), &mut bytes).expect("memory takes it");
        bytes
    }

    fn item(value: &Value) -> Item {
        let text = |text: &str| Item::Bytes(text.as_bytes().to_vec());
        match value {
            Value::String(value) => text(value),
            Value::Array(elements) => Item::Array(elements.iter().map(item).collect()),
            Value::Object(members) => {
                Item::Map(members.iter().map(|(name, value)| (text(name), item(value))).collect())
            }
            other => Item::serialized(other).expect("a number, a boolean or null"),
        }
    }

    fn some_values() -> Vec<Value> {
        let long = "x".repeat(70_000);
        let nested = (0..100).fold(json!(1), |inner, _| json!([inner]));
        vec![
            json!({"type": "ADDED", "object": {"kind": "Pod", "metadata": {"name": "a", "labels": {}}}}),
            json!([null, true, false, 0, -1, 23, 24, 256, 65_536, u64::MAX, i64::MIN, ""]),
            json!([1.5, -0.1, 6.1e-5, 5.960_464_477_539_063e-8, 65_504.0, 1e300, -2.5e-7, 0.333_251_953_125]),
            json!({ long.clone(): [long] }),
            nested,
        ]
    }

    #[test]
    fn a_body_in_cbor_is_the_value_that_json_would_be() {
        for value in some_values() {
            assert_eq!(Media::Cbor.value(&cbor(&value)), Some(value));
        }
        let other = Item::Map(vec![
            (Item::Text("data".to_owned()), Item::Tag(BASE64, Box::new(Item::Bytes(vec![1, 2, 255])))),
            (Item::Text("time".to_owned()), Item::Tag(0, Box::new(Item::Text("2026-01-01T00:00:00Z".to_owned())))),
        ]);
        let mut bytes = Vec::new();
        ciborium::into_writer(&other, &mut bytes).expect("memory takes it");
        assert_eq!(Media::Cbor.value(&bytes), Some(json!({"data": "AQL/", "time": "2026-01-01T00:00:00Z"})));
        let pieces = [0x9f, 0x5f, 0x41, b'a', 0x41, b'b', 0xff, 0xbf, 0x61, b'c', 0xf7, 0xff, 0xff];
        assert_eq!(Media::Cbor.value(&pieces), Some(json!(["ab", {"c": null}])));
    }

    #[test]
    fn a_malformed_body_has_no_value() {
        let twice = [0xa2, 0x41, b'a', 1, 0x41, b'a', 2];
        let numbered = [0xa1, 1, 1];
        let two = [1, 1];
        let deep = [[0x81; 200].as_slice(), &[1]].concat();
        for body in
            [&[][..], &twice, &numbered, &two, &deep, &[0x1c], &[0x82, 1], &[0xf9, 0x7e, 0], &[0x5f, 0x61, b'a', 0xff]]
        {
            assert_eq!(Media::Cbor.value(body), None, "{body:x?}");
        }
    }

    #[test]
    fn an_event_ends_at_the_same_byte_however_it_arrives() {
        // Text and bytes in pieces, a list and a map of unknown length.
        let indefinite = [&[0x5f, 0x41, 1, 0x40, 0xff][..], &[0x9f, 1, 0x80, 0xff], &[0xbf, 0x61, b'a', 1, 0xff]];
        let mut events: Vec<Vec<u8>> = some_values().iter().map(cbor).collect();
        events.extend(indefinite.map(<[u8]>::to_vec));
        let stream = events.concat();
        for size in [1, 2, 7, 100, 4_096, stream.len()] {
            let mut ends = Media::Cbor.events();
            let (mut found, mut start) = (Vec::new(), 0);
            let mut arrived = 0;
            while arrived < stream.len() {
                arrived = stream.len().min(arrived + size);
                while let Some(length) = ends.end(&stream[start..arrived]).expect("the stream is well-formed") {
                    found.push(stream[start..start + length].to_vec());
                    start += length;
                }
            }
            assert!(found == events, "{size}");
        }
    }

    #[test]
    fn a_malformed_stream_is_refused_and_a_length_reserves_nothing() {
        for stream in [&[0xff][..], &[0x1c], &[0x1f], &[0xdf], &[0x82, 0xff], &[0x81; 400]] {
            assert_eq!(Media::Cbor.events().end(stream), Err(Malformed), "{stream:x?}");
        }
        let enormous = [0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(Media::Cbor.events().end(&enormous), Err(Malformed));
        for stream in [&[0x9b, 0xff, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0x5b, 0, 0, 0, 0xff, 0, 0, 0, 0, 1]] {
            assert_eq!(Media::Cbor.events().end(stream), Ok(None), "{stream:x?}");
        }
    }

    #[test]
    fn the_header_names_the_media_type() {
        for (header, media) in [
            ("", Some(Media::Json)),
            ("application/json;stream=watch", Some(Media::Json)),
            ("application/merge-patch+json", Some(Media::Json)),
            ("application/cbor-seq", Some(Media::Cbor)),
            ("application/apply-patch+cbor", Some(Media::Cbor)),
            ("application/vnd.kubernetes.protobuf", None),
        ] {
            assert_eq!(Media::of(header), media, "{header}");
        }
    }
}
