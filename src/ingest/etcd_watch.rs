//! `etcdctl watch --prefix / --rev N -w json`: every change of the store in revision order.
//!
//! Such a watch witnesses the total order of writes, so its events are trusted most. Keys and values are base64.

use super::kubernetes::object::Text;
use super::limits::UNLIMITED;
use serde::Deserialize;
use serde::de::{self, Visitor};
use std::fmt;

/// One watch response, one line of output.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Response<'a> {
    /// Response header.
    #[serde(rename = "Header")]
    pub header: Header,
    /// Events, in revision order.
    #[serde(borrow, rename = "Events")]
    pub events: Option<Vec<Event<'a>>>,
    /// Above zero if the watch was cancelled because this revision was compacted.
    #[serde(rename = "CompactRevision")]
    pub compact_revision: i64,
    /// Whether the server cancelled the watch.
    #[serde(rename = "Canceled")]
    pub canceled: bool,
}

/// Header of a response.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Cluster id.
    pub cluster_id: u64,
    /// Id of the member that answered.
    pub member_id: u64,
    /// Revision of the store when it answered.
    pub revision: i64,
}

/// One event of a response.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Event<'a> {
    /// 1 (or `DELETE`) for a tombstone; absent for a put.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// Key and version.
    #[serde(borrow)]
    pub kv: KeyValue<'a>,
}

/// Put or delete. etcdctl 3.4 to 3.6 writes a number, some wrappers a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventType {
    /// A put.
    #[default]
    Put,
    /// A tombstone.
    Delete,
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TypeVisitor;
        impl Visitor<'_> for TypeVisitor {
            type Value = EventType;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("0, 1, PUT or DELETE")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Self::Value, E> {
                match v {
                    0 => Ok(EventType::Put),
                    1 => Ok(EventType::Delete),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(v), &self)),
                }
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                match v {
                    _ if v.eq_ignore_ascii_case("put") => Ok(EventType::Put),
                    _ if v.eq_ignore_ascii_case("delete") => Ok(EventType::Delete),
                    _ => Err(E::invalid_value(de::Unexpected::Str(v), &self)),
                }
            }
        }
        deserializer.deserialize_any(TypeVisitor)
    }
}

/// mvccpb.KeyValue in etcd's JSON, with bytes as base64.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeyValue<'a> {
    /// Key, base64.
    #[serde(borrow)]
    pub key: Text<'a>,
    /// Revision at which the key was created; 0 on a tombstone.
    pub create_revision: i64,
    /// Revision of this change.
    pub mod_revision: i64,
    /// Number of changes since the key was created.
    pub version: i64,
    /// Value, base64; JSON for custom resources, protobuf for built-in kinds.
    #[serde(borrow)]
    pub value: Text<'a, UNLIMITED>,
    /// Lease, or 0.
    pub lease: i64,
}
