//! Lines of the capture format, version 1 (`docs/formats.md`), borrowed from their text.
//!
//! One struct reads every kind of line; `kind` decides which fields count. Unknown kinds and fields are ignored and
//! counted, so that later recorders stay readable.

use super::body::{AnyBody, Body};
use super::object::Text;
use crate::ingest::limits::LONGEST_ADDRESS;
use crate::ingest::position::Time;
use serde::Deserialize;
use serde::de::{self, Visitor};
use std::borrow::Cow;
use std::fmt;

/// One line of a capture. `kind` decides which other fields count.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Line<'a> {
    /// `capture`, `request`, `response`, `event`, `end`, `mark`, `decision`, `read`. Others are ignored and counted.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// Version of the format on a `capture` line.
    pub version: Option<u32>,
    /// Client identity as the audit log would name it.
    #[serde(borrow)]
    pub client: Text<'a>,
    /// Incarnation of the client.
    #[serde(borrow)]
    pub incarnation: Text<'a>,
    /// Server that the client is connected to.
    #[serde(borrow)]
    pub server: Text<'a>,
    /// Name of the clock of the times.
    #[serde(borrow)]
    pub clock: Text<'a>,
    /// Request id (a number or a text), unique in its file; on a `decision` line its name.
    #[serde(borrow)]
    pub id: Option<Id<'a>>,
    /// Time of the line.
    #[serde(borrow)]
    pub at: Moment<'a>,
    /// End of the time that a `mark` covers.
    #[serde(borrow)]
    pub until: Moment<'a>,
    /// HTTP method.
    #[serde(borrow)]
    pub method: Text<'a>,
    /// Path and query.
    #[serde(borrow)]
    pub uri: Text<'a, LONGEST_ADDRESS>,
    /// User agent of the request.
    #[serde(borrow)]
    pub user_agent: Text<'a>,
    /// Body of a request or response.
    #[serde(borrow)]
    pub body: AnyBody<'a>,
    /// HTTP status of a response.
    pub status: Option<u16>,
    /// Audit id from the server's answer.
    #[serde(borrow)]
    pub audit_id: Text<'a>,
    /// A watch event.
    #[serde(borrow)]
    pub event: Option<WatchEvent<'a>>,
    /// Reason for the end of a stream: eof, closed, timeout or error.
    #[serde(borrow)]
    pub reason: Text<'a>,
    /// Decision that a request or read belongs to.
    #[serde(borrow)]
    pub decision: Text<'a>,
    /// `begin` or `end` of a decision.
    #[serde(borrow)]
    pub phase: Text<'a>,
    /// Name of a mark or of a decision's kind; object name of a `read`.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Resource of a `read`.
    #[serde(borrow)]
    pub resource: Text<'a>,
    /// Group of a `read`.
    #[serde(borrow)]
    pub group: Text<'a>,
    /// Namespace of a `read`.
    #[serde(borrow)]
    pub namespace: Text<'a>,
    /// Uid that a `read` returned; empty: the object was absent.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// resourceVersion that a `read` returned.
    #[serde(borrow, rename = "resourceVersion")]
    pub resource_version: Text<'a>,
}

/// A number or a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id<'a> {
    /// A number.
    Number(u64),
    /// A text.
    Text(Text<'a>),
}

// By hand: serde buffers the whole value of an untagged enum.
impl<'de: 'a, 'a> Deserialize<'de> for Id<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl<'de> Visitor<'de> for IdVisitor {
            type Value = Id<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }
            fn visit_u64<E>(self, v: u64) -> Result<Self::Value, E> {
                Ok(Id::Number(v))
            }
            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Self::Value, E> {
                Text::new(Cow::Borrowed(v)).map(Id::Text)
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                Text::new(Cow::Owned(v.to_owned())).map(Id::Text)
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

/// A time as written: RFC 3339 text, integer nanoseconds, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Moment<'a> {
    /// No time.
    #[default]
    Absent,
    /// Nanoseconds since 1970.
    Nanoseconds(i64),
    /// RFC 3339.
    Text(Text<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Moment<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MomentVisitor;
        impl<'de> Visitor<'de> for MomentVisitor {
            type Value = Moment<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time (RFC 3339, or nanoseconds as an integer)")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Moment::Absent)
            }
            fn visit_i64<E>(self, v: i64) -> Result<Self::Value, E> {
                Ok(Moment::Nanoseconds(v))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Self::Value, E> {
                // The largest value is the mark of an unknown time, so it is refused as a time.
                match i64::try_from(v) {
                    Ok(n) if n < i64::MAX => Ok(Moment::Nanoseconds(n)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(v), &self)),
                }
            }
            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Self::Value, E> {
                Text::new(Cow::Borrowed(v)).map(Moment::Text)
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                Text::new(Cow::Owned(v.to_owned())).map(Moment::Text)
            }
        }
        deserializer.deserialize_any(MomentVisitor)
    }
}

impl Moment<'_> {
    /// The time; [`Time::UNKNOWN`] if absent. The error is the text that is no RFC 3339 time.
    pub fn time(&self) -> Result<Time, String> {
        match self {
            Moment::Absent => Ok(Time::UNKNOWN),
            Moment::Nanoseconds(n) => Ok(Time(*n)),
            Moment::Text(t) if t.is_empty() => Ok(Time::UNKNOWN),
            Moment::Text(t) => crate::ingest::timestamp::parse(t).ok_or_else(|| t.0.clone().into_owned()),
        }
    }
}

/// One watch event, as the server sends it line by line.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WatchEvent<'a> {
    /// ADDED, MODIFIED, DELETED, BOOKMARK, ERROR.
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    /// The object, a bookmark or a `Status`. The first events of `kubectl get -w` may hold a whole list.
    #[serde(borrow)]
    pub object: Body<'a>,
}
