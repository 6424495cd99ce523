//! `etcdctl watch --prefix / --rev N -w json`: the witness of the total order.

use super::limits::UNLIMITED;
use super::object::Text;
use serde::Deserialize;
use serde::de::{self, Visitor};
use std::fmt;

/// One printed watch response.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Response<'a> {
    /// Response header.
    #[serde(rename = "Header")]
    pub header: Header,
    /// Events, in revision order.
    #[serde(borrow, rename = "Events")]
    pub events: Option<Vec<Event<'a>>>,
    /// Above zero when the watch was cancelled because this revision was compacted.
    #[serde(rename = "CompactRevision")]
    pub compact_revision: i64,
    /// Whether the watch was cancelled.
    #[serde(rename = "Canceled")]
    pub canceled: bool,
}

/// Response header.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Cluster.
    pub cluster_id: u64,
    /// Member that answered.
    pub member_id: u64,
    /// Revision of the store when it answered.
    pub revision: i64,
}

/// One event.
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

/// Put or delete, written as a number by etcdctl 3.4 to 3.6 and as a word by some wrappers.
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

/// mvccpb.KeyValue in etcd's JSON: bytes as base64.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct KeyValue<'a> {
    /// Key, base64.
    #[serde(borrow)]
    pub key: Text<'a>,
    /// Revision at which the key's present life began; 0 on a tombstone.
    pub create_revision: i64,
    /// Revision of this change.
    pub mod_revision: i64,
    /// Count of changes in this life.
    pub version: i64,
    /// Value, base64; JSON for custom resources, protobuf for built-in kinds.
    #[serde(borrow)]
    pub value: Text<'a, UNLIMITED>,
    /// Lease.
    pub lease: i64,
}
