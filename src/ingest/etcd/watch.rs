//! `client-N/watch.json` of a robustness report: the watches of one client and their responses.
//!
//! Each watch is one object with all its responses, and may be most of the file. So responses are passed on one by
//! one, and those in front of a truncation are kept.
//!
//! Sources: etcd `tests/robustness/model/watch.go` and `report/client.go`.

use super::super::limits::UNLIMITED;
use super::operation::Value;
use crate::ingest::json::text::Text;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A part of a watch.
#[derive(Clone, Debug)]
pub enum Part<'a> {
    /// A watch begins. All parts up to the next `Begin` belong to it.
    Begin,
    /// Number of the watch: objects of one file with one number are one watch. Recorders that may be killed write a
    /// watch in parts; the suite writes it whole, without a number.
    Number(u64),
    /// The request for the watch.
    Request(Request<'a>),
    /// One response of the server.
    Response(Response<'a>),
}

/// The request for a watch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Request<'a> {
    /// Key, or first key.
    #[serde(rename = "Key", borrow)]
    pub key: Text<'a>,
    /// First revision; 0: the next change.
    #[serde(rename = "Revision")]
    pub revision: i64,
    /// One past the last key. Empty: `key`, or its prefix. Only other recorders than the suite write it.
    #[serde(rename = "End", borrow)]
    pub end: Text<'a>,
    /// Whether all keys with the prefix `key` are watched.
    #[serde(rename = "WithPrefix")]
    pub prefix: bool,
    /// Whether progress notifications are requested.
    #[serde(rename = "WithProgressNotify")]
    pub progress: bool,
    /// Whether events have the previous value. Absent before 2024-02-13, as is `IsCreate` of events.
    #[serde(rename = "WithPrevKV")]
    pub previous: Option<bool>,
}

/// One response of a watch.
#[derive(Clone, Debug, Default)]
pub struct Response<'a> {
    /// Events, in the order of the response.
    pub events: Vec<Event<'a>>,
    /// Whether it is a progress notification.
    pub progress: bool,
    /// Revision of the store; of a notification, the revision through which the watch is complete.
    pub revision: i64,
    /// Time of receipt, in nanoseconds since the suite began; `None`: not recorded.
    pub time: Option<i64>,
    /// Reason for the end of the watch.
    pub error: Text<'a, UNLIMITED>,
}

/// One event.
#[derive(Clone, Debug, Default)]
pub struct Event<'a> {
    /// Line and byte, counted like those of the response.
    pub place: (u32, u64),
    /// `put-operation` or `delete-operation`.
    pub kind: Text<'a>,
    /// Key.
    pub key: Text<'a>,
    /// Value.
    pub value: Value<'a>,
    /// Revision of the change.
    pub revision: i64,
    /// Whether the key was absent before. Since 2025-05-13 false is not written.
    pub create: Option<bool>,
    /// The key before the event.
    pub previous: Option<Previous<'a>>,
}

/// State of a key before an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Previous<'a> {
    /// Value.
    #[serde(rename = "Value", borrow)]
    pub value: Value<'a>,
    /// Revision of its last change.
    #[serde(rename = "ModRevision")]
    pub revision: i64,
    /// Number of changes since the key was created.
    #[serde(rename = "Version")]
    pub version: i64,
}

/// Reads the watch at the start of the text. `take` gets each part with its offset; places of events hold offsets
/// only. Returns the offset of the next watch, if more follows.
pub(in super::super) fn read<'a>(
    text: &'a str,
    mut take: impl FnMut(usize, Part<'a>),
) -> Result<Option<usize>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    take(0, Part::Begin);
    deserializer.deserialize_map(Watch { text, take: &mut take })?;
    Ok(deserializer.end().err().map(|error| super::byte(text, &error)))
}

/// The name of a field.
type Key<'a> = Text<'a, UNLIMITED>;

/// Reads the name of a field. The first one of an object sets `begin` to the object's offset.
fn key<'a, M: MapAccess<'a>>(map: &mut M, text: &str, begin: &mut Option<usize>) -> Result<Option<Key<'a>>, M::Error> {
    let key: Option<Key<'a>> = map.next_key()?;
    if let (None, Some(Text(Cow::Borrowed(key)))) = (&begin, &key) {
        let at = (key.as_ptr().addr()).checked_sub(text.as_ptr().addr()).filter(|at| *at <= text.len());
        *begin = at.and_then(|at| text.as_bytes()[..at].iter().rposition(|byte| *byte == b'{'));
    }
    Ok(key)
}

struct Watch<'t, T> {
    text: &'t str,
    take: &'t mut T,
}

impl<'a, T: FnMut(usize, Part<'a>)> Visitor<'a> for Watch<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<Text<'a, UNLIMITED>>()? {
            match &*key {
                "Watch" => (self.take)(0, Part::Number(map.next_value()?)),
                "Request" => (self.take)(0, Part::Request(map.next_value()?)),
                "Responses" => map.next_value_seed(Responses { text: self.text, take: &mut *self.take })?,
                _ => map.next_value::<IgnoredAny>().map(|_| ())?,
            }
        }
        Ok(())
    }
}

struct Responses<'t, T> {
    text: &'t str,
    take: &'t mut T,
}

impl<'a, T: FnMut(usize, Part<'a>)> DeserializeSeed<'a> for Responses<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a, T: FnMut(usize, Part<'a>)> Visitor<'a> for Responses<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of responses")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut list: S) -> Result<(), S::Error> {
        while let Some((begin, response)) = list.next_element_seed(OneResponse { text: self.text })? {
            (self.take)(begin, Part::Response(response));
        }
        Ok(())
    }
}

struct OneResponse<'t> {
    text: &'t str,
}

impl<'a> DeserializeSeed<'a> for OneResponse<'_> {
    type Value = (usize, Response<'a>);

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for OneResponse<'_> {
    type Value = (usize, Response<'a>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch response")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let (mut begin, mut response) = (None, Response::default());
        while let Some(key) = key(&mut map, self.text, &mut begin)? {
            match &*key {
                "Events" => response.events = map.next_value_seed(Events { text: self.text })?,
                "IsProgressNotify" => response.progress = map.next_value()?,
                "Revision" => response.revision = map.next_value()?,
                "Time" => response.time = Some(map.next_value()?),
                "Error" => response.error = map.next_value()?,
                _ => map.next_value::<IgnoredAny>().map(|_| ())?,
            }
        }
        Ok((begin.unwrap_or(0), response))
    }
}

struct Events<'t> {
    text: &'t str,
}

impl<'a> DeserializeSeed<'a> for Events<'_> {
    type Value = Vec<Event<'a>>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Events<'_> {
    type Value = Vec<Event<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<S: SeqAccess<'a>>(self, mut list: S) -> Result<Self::Value, S::Error> {
        let mut events = Vec::new();
        while let Some(event) = list.next_element_seed(OneEvent { text: self.text })? {
            events.push(event);
        }
        Ok(events)
    }
}

struct OneEvent<'t> {
    text: &'t str,
}

impl<'a> DeserializeSeed<'a> for OneEvent<'_> {
    type Value = Event<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for OneEvent<'_> {
    type Value = Event<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let (mut begin, mut event) = (None, Event::default());
        while let Some(key) = key(&mut map, self.text, &mut begin)? {
            match &*key {
                "Type" => event.kind = map.next_value()?,
                "Key" => event.key = map.next_value()?,
                "Value" => event.value = map.next_value()?,
                "Revision" => event.revision = map.next_value()?,
                "IsCreate" => event.create = Some(map.next_value()?),
                "PrevValue" => event.previous = map.next_value()?,
                _ => map.next_value::<IgnoredAny>().map(|_| ())?,
            }
        }
        event.place = (0, begin.unwrap_or(0) as u64);
        Ok(event)
    }
}
