//! The narrow view of a Kubernetes object, list, table, status, patch or options body: identity and versions only.
//!
//! Everything else is skipped by the parser. Secret data never enters memory as a value.

use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Text that borrows from the line where JSON escapes allow it; `null` reads as empty (Go writes nil as `null`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(v.to_owned())))
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// A sequence that may be `null`.
fn list_or_null<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: de::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// A map or object that may be `null`.
fn default_or_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: de::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// `metadata` of an object or a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Metadata<'a> {
    /// Object name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Namespace, empty for cluster-scoped objects.
    #[serde(borrow)]
    pub namespace: Text<'a>,
    /// Object uid.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// Version of the object, or revision of a list.
    #[serde(borrow, rename = "resourceVersion")]
    pub resource_version: Text<'a>,
    /// Present in every stored object: its absence marks a body reduced to identity.
    #[serde(borrow, rename = "creationTimestamp")]
    pub creation_timestamp: Text<'a>,
    /// Present once deletion began.
    #[serde(borrow, rename = "deletionTimestamp")]
    pub deletion_timestamp: Text<'a>,
    /// Seconds that deletion still waits for.
    #[serde(rename = "deletionGracePeriodSeconds")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Finalizers that hold a deletion back.
    #[serde(deserialize_with = "list_or_null")]
    pub finalizers: Vec<IgnoredAny>,
    /// Labels, as raw JSON text (parsed only where a selector needs them).
    #[serde(borrow)]
    pub labels: Option<&'a serde_json::value::RawValue>,
    /// Marks of a bookmark: whether the initial events ended here.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub annotations: Annotations<'a>,
    /// Continue token of a list page.
    #[serde(borrow, rename = "continue")]
    pub continue_token: Text<'a>,
}

/// The one annotation that ingest reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Annotations<'a> {
    /// `"true"` on the bookmark that ends the initial events (KEP-3157).
    #[serde(borrow, rename = "k8s.io/initial-events-end")]
    pub initial_events_end: Text<'a>,
}

/// The part of `spec` that field selectors of built-in kinds read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Spec<'a> {
    /// Node of a pod.
    #[serde(borrow, rename = "nodeName")]
    pub node_name: Text<'a>,
}

/// `status`: an object (its `phase` serves field selectors), or the word `Failure`/`Success` of a `Status`.
#[derive(Clone, Debug, Default)]
pub struct StatusField<'a> {
    /// `status.phase`.
    pub phase: Text<'a>,
    /// The word of a `Status` body.
    pub word: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for StatusField<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldVisitor;
        impl<'de> Visitor<'de> for FieldVisitor {
            type Value = StatusField<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a word")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(StatusField::default())
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(StatusField { word: Text(Cow::Borrowed(v)), ..Default::default() })
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(StatusField { word: Text(Cow::Owned(v.to_owned())), ..Default::default() })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut field = StatusField::default();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    if &*key == "phase" {
                        if let Loose(Some(text)) = map.next_value::<Loose<'de>>()? {
                            field.phase = text;
                        }
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(field)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(StatusField::default())
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(StatusField::default())
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(StatusField::default())
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(StatusField::default())
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(StatusField::default())
            }
        }
        deserializer.deserialize_any(FieldVisitor)
    }
}

/// A string, or anything else (which is skipped): custom resources may use a known name with another type.
#[derive(Clone, Debug, Default)]
pub struct Loose<'a>(pub Option<Text<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LooseVisitor;
        impl<'de> Visitor<'de> for LooseVisitor {
            type Value = Loose<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(Loose(None))
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Loose(Some(Text(Cow::Borrowed(v)))))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Loose(Some(Text(Cow::Owned(v.to_owned())))))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Loose(None))
            }
        }
        deserializer.deserialize_any(LooseVisitor)
    }
}

/// One element of `items`, or a whole object inside a watch event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Item<'a> {
    /// `kind`; lists of typed resources may leave it out of their items.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// `apiVersion`; as `kind`.
    #[serde(borrow, rename = "apiVersion")]
    pub api_version: Text<'a>,
    /// Identity and version.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub metadata: Metadata<'a>,
    /// `None` where the body has no `spec` (a partial object).
    #[serde(borrow)]
    pub spec: Option<Spec<'a>>,
    /// Phase.
    #[serde(borrow)]
    pub status: StatusField<'a>,
}

/// One row of a `Table` answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Row<'a> {
    /// `PartialObjectMetadata`, the full object, or `null` (`includeObject=None`).
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub object: Item<'a>,
}

/// `details` of a `Status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Details<'a> {
    /// The uid of a deleted object (answer to a DELETE).
    #[serde(borrow)]
    pub uid: Text<'a>,
}

/// `preconditions` of `DeleteOptions`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Preconditions<'a> {
    /// Required uid.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// Required version.
    #[serde(borrow, rename = "resourceVersion")]
    pub resource_version: Text<'a>,
}

/// Any body: an object, a list, a `Table`, a `Status`, `DeleteOptions`, or a watch event's object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
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
    /// Phase of an object, word of a `Status`.
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
    pub message: Text<'a>,
    /// Reason of a `Status`.
    #[serde(borrow)]
    pub reason: Text<'a>,
    /// Details of a `Status`.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub details: Details<'a>,
    /// Preconditions of `DeleteOptions`.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub preconditions: Preconditions<'a>,
    /// `dryRun` of an options body: any element means that nothing is committed.
    #[serde(rename = "dryRun", deserialize_with = "list_or_null")]
    pub dry_run: Vec<IgnoredAny>,
}

/// `null` counts as present and empty: Go writes an empty list so.
fn present_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: de::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Some(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default()))
}

/// One operation of a JSON patch; only its `test`s on identity and version are conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PatchStep<'a> {
    /// `test`, `add`, `remove`, `replace`...
    #[serde(borrow)]
    pub op: Text<'a>,
    /// JSON pointer.
    #[serde(borrow)]
    pub path: Text<'a>,
    /// Text values only.
    #[serde(borrow)]
    pub value: Loose<'a>,
}

/// A request or response body as found: an object, a JSON patch, or something without identity.
#[derive(Clone, Debug, Default)]
pub enum AnyBody<'a> {
    /// No body was recorded.
    #[default]
    Absent,
    /// A JSON object.
    Object(Box<Body<'a>>),
    /// A JSON patch.
    Patch(Vec<PatchStep<'a>>),
    /// Recorded, but of no use here: a string (an exporter's "skipped-too-big-size-object"), a number.
    Other,
}

impl<'a> AnyBody<'a> {
    /// The object, when it is one.
    pub fn object(&self) -> Option<&Body<'a>> {
        match self {
            AnyBody::Object(body) => Some(body),
            _ => None,
        }
    }

    /// Whether the evidence has a body here.
    pub fn is_recorded(&self) -> bool {
        !matches!(self, AnyBody::Absent)
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
            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(AnyBody::Other)
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(AnyBody::Other)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(AnyBody::Other)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(AnyBody::Other)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(AnyBody::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Body::deserialize(de::value::MapAccessDeserializer::new(map)).map(|b| AnyBody::Object(Box::new(b)))
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
