//! Bodies of requests and answers, and the objects of watch events, as identity and versions.
//!
//! The types are narrow: serde skips every other member. `null` reads as empty, since Go writes nil so. A body that
//! does not fit them goes through `lenient_body`.

use super::digest::Digest;
use super::object::{Item, Kept, Metadata, Spec, StatusField, read_through_the_sieve};
use crate::ingest::fields::Place;
use crate::ingest::fields::field_capture::{self, Found, Sieved};
use crate::ingest::json::text::{Loose, Text, default_or_null, list_or_null, visit_scalars_as};
use crate::ingest::limits::{LONGEST_ADDRESS, UNLIMITED};
use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// One row of a `Table` answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Row<'a> {
    /// `PartialObjectMetadata`, the full object, or `null` (`includeObject=None`).
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub object: Item<'a>,
}

/// The members of `Status.details` that ingest reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Details<'a> {
    /// The uid of a deleted object (answer to a DELETE).
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// Name of the object that the status is about.
    #[serde(borrow)]
    pub name: Text<'a>,
}

/// `preconditions` of `DeleteOptions`: the server refuses the deletion if one does not match.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Preconditions<'a> {
    /// Required uid; empty: none.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// Required resourceVersion; empty: none.
    #[serde(borrow, rename = "resourceVersion")]
    pub resource_version: Text<'a>,
}

/// `deleteOptions` of an `Eviction`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DeleteOptions<'a> {
    /// Preconditions of the deletion.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub preconditions: Preconditions<'a>,
    /// See [`Body::dry_run`].
    #[serde(rename = "dryRun", deserialize_with = "list_or_null")]
    pub dry_run: Vec<IgnoredAny>,
}

/// Any body: an object, a list, a `Table`, a `Status`, `DeleteOptions`, or a watch event's object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, remote = "Self")]
pub struct Body<'a> {
    /// `kind`.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// `apiVersion`.
    #[serde(borrow, rename = "apiVersion")]
    pub api_version: Text<'a>,
    /// Identity and version of an object; revision and continue token of a list.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub metadata: Metadata<'a>,
    /// `None` where the body has no `spec`.
    #[serde(borrow)]
    pub spec: Option<Spec<'a>>,
    /// Phase of an object, or the word of a `Status`.
    #[serde(borrow)]
    pub status: StatusField<'a>,
    /// Items of a list; `None` where the body has no such field (an empty list has `Some`).
    #[serde(borrow, deserialize_with = "present_list")]
    pub items: Option<Vec<Item<'a>>>,
    /// Rows of a `Table`.
    #[serde(borrow, deserialize_with = "present_list")]
    pub rows: Option<Vec<Row<'a>>>,
    /// HTTP code of a `Status`.
    pub code: Option<u16>,
    /// Message of a `Status`.
    #[serde(borrow)]
    pub message: Text<'a, UNLIMITED>,
    /// Reason of a `Status`.
    #[serde(borrow)]
    pub reason: Text<'a>,
    /// Details of a `Status`.
    #[serde(borrow)]
    pub details: Option<Details<'a>>,
    /// Preconditions of `DeleteOptions`.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub preconditions: Preconditions<'a>,
    /// `deleteOptions` of an `Eviction`.
    #[serde(borrow, rename = "deleteOptions")]
    pub delete_options: Option<DeleteOptions<'a>>,
    /// `dryRun` of an options body: any element means that nothing is committed.
    #[serde(rename = "dryRun", deserialize_with = "list_or_null")]
    pub dry_run: Vec<IgnoredAny>,
    /// See [`Item::recorded_fields`].
    #[serde(borrow, rename = "recordedFields")]
    pub recorded_fields: Option<Text<'a, LONGEST_ADDRESS>>,
    /// See [`Item::data`].
    pub data: Digest,
    /// See [`Item::binary_data`].
    #[serde(rename = "binaryData")]
    pub binary_data: Digest,
    /// Declared fields outside `metadata`, `spec` and `status`.
    #[serde(skip)]
    pub kept: Kept<'a>,
}

read_through_the_sieve!(Body at Object knows [
    "kind",
    "apiVersion",
    "metadata",
    "spec",
    "status",
    "items",
    "rows",
    "code",
    "message",
    "reason",
    "details",
    "preconditions",
    "deleteOptions",
    "dryRun",
    "recordedFields",
    "data",
    "binaryData"
] sieved ["metadata", "spec", "status"]);

/// `null` counts as present and empty: Go writes an empty list as `null`.
fn present_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: de::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Some(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default()))
}

/// One operation of a JSON patch. Only `test`s of uid and resourceVersion are conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PatchStep<'a> {
    /// `test`, `add`, `remove`, `replace`...
    #[serde(borrow)]
    pub op: Text<'a>,
    /// JSON pointer.
    #[serde(borrow)]
    pub path: Text<'a, UNLIMITED>,
    /// The value if it is a text.
    #[serde(borrow)]
    pub value: Loose<'a, UNLIMITED>,
}

/// A request or response body.
#[derive(Clone, Debug, Default)]
pub enum AnyBody<'a> {
    /// No body was recorded.
    #[default]
    Absent,
    /// A JSON object.
    Object(Box<Body<'a>>),
    /// A JSON patch.
    Patch(Vec<PatchStep<'a>>),
    /// A text in the place of a body that was too large: an exporter's `skipped-too-big-size-object`.
    Replaced,
    /// A recorded value without use here, such as a number.
    Other,
}

impl<'a> AnyBody<'a> {
    /// The body if it is an object.
    pub fn object(&self) -> Option<&Body<'a>> {
        match self {
            AnyBody::Object(body) => Some(body),
            _ => None,
        }
    }

    /// Whether a body was recorded.
    pub fn is_recorded(&self) -> bool {
        !matches!(self, AnyBody::Absent | AnyBody::Replaced)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for AnyBody<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BodyVisitor;
        impl<'de> Visitor<'de> for BodyVisitor {
            type Value = AnyBody<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a body")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(AnyBody::Absent)
            }
            visit_scalars_as!(AnyBody::Other);
            visit_scalars_as!(AnyBody::Replaced; visit_str: &str);
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                // `Body::deserialize` would be the derived function, which bypasses the sieve.
                field_capture::sieved(de::value::MapAccessDeserializer::new(map))
                    .map(|body| AnyBody::Object(Box::new(body)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = seq.next_element()? {
                    steps.push(step);
                }
                Ok(AnyBody::Patch(steps))
            }
        }
        deserializer.deserialize_any(BodyVisitor)
    }
}
