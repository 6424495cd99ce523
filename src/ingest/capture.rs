//! Lines of the capture format, version 1 (`docs/formats.md`).

use super::body::{AnyBody, Body};
use super::limits::LONGEST_ADDRESS;
use super::object::Text;
use super::position::Time;
use serde::Deserialize;
use serde::de::{self, Visitor};
use std::borrow::Cow;
use std::fmt;

/// One line of a capture. `kind` decides which of the other fields mean something.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Line<'a> {
    /// `capture`, `request`, `response`, `event`, `end`, `mark`, `decision`, `read`; others are ignored and counted.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// Version of the format on a `capture` line.
    pub version: Option<u32>,
    /// Client identity as the audit log would name it.
    #[serde(borrow)]
    pub client: Text<'a>,
    /// Process life.
    #[serde(borrow)]
    pub incarnation: Text<'a>,
    /// Server that the client talks to.
    #[serde(borrow)]
    pub server: Text<'a>,
    /// Clock of the times.
    #[serde(borrow)]
    pub clock: Text<'a>,
    /// Request id (a number, or a text), unique in its file; the name of a decision.
    #[serde(borrow)]
    pub id: Option<Id<'a>>,
    /// Time of the line.
    #[serde(borrow)]
    pub at: Moment<'a>,
    /// Where the time that a `mark` is about ends.
    #[serde(borrow)]
    pub until: Moment<'a>,
    /// HTTP method.
    #[serde(borrow)]
    pub method: Text<'a>,
    /// Path and query.
    #[serde(borrow)]
    pub uri: Text<'a, LONGEST_ADDRESS>,
    /// User agent.
    #[serde(borrow)]
    pub user_agent: Text<'a>,
    /// Body of a request or response.
    #[serde(borrow)]
    pub body: AnyBody<'a>,
    /// HTTP status of a response.
    pub status: Option<u16>,
    /// Audit id that the server answered with.
    #[serde(borrow)]
    pub audit_id: Text<'a>,
    /// A watch event.
    #[serde(borrow)]
    pub event: Option<WatchEvent<'a>>,
    /// How a stream ended: eof, closed, timeout, error.
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
    /// Uid that a `read` saw; empty: it saw absence.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// Version that a `read` saw.
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

// By hand, because serde buffers the whole value of an untagged enum.
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

/// A time as written: RFC 3339 text, integer nanoseconds, or absent.
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
                // The largest value stands for "unknown"; a recorder that writes it means no time of this kind.
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
    /// The time; `Err` holds the text that is no time. Absent is [`Time::UNKNOWN`].
    pub fn time(&self) -> Result<Time, String> {
        match self {
            Moment::Absent => Ok(Time::UNKNOWN),
            Moment::Nanoseconds(n) => Ok(Time(*n)),
            Moment::Text(t) if t.is_empty() => Ok(Time::UNKNOWN),
            Moment::Text(t) => super::timestamp::parse(t).ok_or_else(|| t.0.clone().into_owned()),
        }
    }
}

/// One watch event: what a watch answers line by line.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WatchEvent<'a> {
    /// ADDED, MODIFIED, DELETED, BOOKMARK, ERROR.
    #[serde(borrow, rename = "type")]
    pub kind: Text<'a>,
    /// The object, a bookmark, a `Status`; a whole list in the first events that `kubectl get -w` prints.
    #[serde(borrow)]
    pub object: Body<'a>,
}
