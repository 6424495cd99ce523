//! The narrow view of a Kubernetes object, list, table, status, patch or options body: identity and versions only.
//!
//! The parser skips everything else, so Secret data never enters memory as a value. A new field here must keep that
//! promise. Declared fields pass through the sieve (`fields::field_capture`).

use super::digest::Digest;
use crate::ingest::fields::field_capture::{self, Found, Sieve, Sieved};
use crate::ingest::fields::{Own, Place, Seen};
use crate::ingest::json::text::{Filled, default_or_null, list_or_null, visit_scalars_as};
use crate::ingest::limits::{LONGEST_ADDRESS, UNLIMITED};
use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

pub use crate::ingest::json::text::{Loose, Text};

/// Implements reading of a narrow type through the sieve of wanted members.
macro_rules! read_through_the_sieve {
    ($type:ident at $place:ident knows [$($known:literal),*] sieved [$($sieved:literal),*]) => {
        impl<'de: 'a, 'a> Sieved<'de> for $type<'a> {
            const PLACE: Place = Place::$place;
            const KNOWN: &'static [&'static str] = &[$($known),*];
            const SIEVED: &'static [&'static str] = &[$($sieved),*];

            fn narrow<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::deserialize(deserializer)
            }

            fn take(&mut self, found: Vec<Found<'de>>, has_more: bool) {
                self.kept.found = found;
                self.kept.has_more = has_more;
            }
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $type<'a> {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                field_capture::sieved(deserializer)
            }
        }
    };
}
pub(in crate::ingest) use read_through_the_sieve;

/// Declared fields of an object that its narrow type does not read itself.
#[derive(Clone, Debug, Default)]
pub struct Kept<'a> {
    /// The wanted members of the object.
    pub found: Vec<Found<'a>>,
    /// Whether the object has members beyond its identity.
    pub has_more: bool,
}

/// `metadata` of an object or a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, remote = "Self")]
pub struct Metadata<'a> {
    /// Object name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Namespace, empty for cluster-scoped objects.
    #[serde(borrow)]
    pub namespace: Text<'a>,
    /// Uid of the object; one per lifetime.
    #[serde(borrow)]
    pub uid: Text<'a>,
    /// resourceVersion of an object, or revision of a list.
    #[serde(borrow, rename = "resourceVersion")]
    pub resource_version: Text<'a>,
    /// Creation time. Every stored object has it, so a body without it was reduced to its identity.
    #[serde(borrow, rename = "creationTimestamp")]
    pub creation_timestamp: Text<'a>,
    /// Time at which deletion began, if it did.
    #[serde(borrow, rename = "deletionTimestamp")]
    pub deletion_timestamp: Text<'a>,
    /// Seconds that a deletion still waits.
    #[serde(rename = "deletionGracePeriodSeconds")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Finalizers that hold a deletion back; only their number counts.
    #[serde(deserialize_with = "list_or_null")]
    pub finalizers: Vec<IgnoredAny>,
    /// Labels as raw JSON text, parsed only if a selector needs them.
    #[serde(borrow)]
    pub labels: Option<&'a serde_json::value::RawValue>,
    /// Annotations of a bookmark, and declared ones.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub annotations: Annotations<'a>,
    /// Continue token of a list page.
    #[serde(borrow, rename = "continue")]
    pub continue_token: Text<'a, LONGEST_ADDRESS>,
    /// Declared fields.
    #[serde(skip)]
    pub kept: Kept<'a>,
}

read_through_the_sieve!(Metadata at Metadata knows [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "labels",
    "annotations",
    "continue"
] sieved ["annotations"]);

impl Metadata<'_> {
    /// The member's value here. Texts that are absent or empty are `None`; an apiserver treats both alike.
    pub fn own(&self, member: Own) -> Option<Seen<'_>> {
        let text = match member {
            Own::Name => &self.name,
            Own::Namespace => &self.namespace,
            Own::Uid => &self.uid,
            Own::ResourceVersion => &self.resource_version,
            Own::CreationTimestamp => &self.creation_timestamp,
            Own::DeletionTimestamp => &self.deletion_timestamp,
            Own::Labels => return self.labels.map(Seen::Json),
        };
        (!text.is_empty()).then(|| Seen::Text(text))
    }
}

/// The one annotation that ingest reads itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, remote = "Self")]
pub struct Annotations<'a> {
    /// `"true"` on the bookmark that ends the initial events (KEP-3157).
    #[serde(borrow, rename = "k8s.io/initial-events-end")]
    pub initial_events_end: Text<'a>,
    /// Declared annotations.
    #[serde(skip)]
    pub kept: Kept<'a>,
}

read_through_the_sieve!(Annotations at Annotations knows ["k8s.io/initial-events-end"] sieved []);

/// The part of `spec` that field selectors and deletions of built-in kinds read. A custom resource may have any other
/// `spec`.
#[derive(Clone, Debug, Default)]
pub struct Spec<'a> {
    /// Node of a pod.
    pub node_name: Text<'a>,
    /// Whether the `spec` of a namespace has finalizers.
    pub has_finalizers: bool,
    /// Declared fields.
    pub found: Vec<Found<'a>>,
}

/// `status` as an object, whose `phase` serves field selectors, or as the word `Failure` or `Success` of a `Status`.
#[derive(Clone, Debug, Default)]
pub struct StatusField<'a> {
    /// `status.phase`.
    pub phase: Text<'a>,
    /// The word of a `Status` body.
    pub word: Text<'a, UNLIMITED>,
    /// Declared fields.
    pub found: Vec<Found<'a>>,
}

/// One text field of an object, or a text in place of the object. Anything else reads as empty.
#[derive(Default)]
struct OneField<'a> {
    field: Text<'a>,
    word: Text<'a, UNLIMITED>,
    has_finalizers: bool,
    found: Vec<Found<'a>>,
}

/// Reads one field of the member at a place.
struct OneFieldVisitor {
    place: Place,
    field: &'static str,
}

impl<'de> Visitor<'de> for OneFieldVisitor {
    type Value = OneField<'de>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    visit_scalars_as!(OneField::default());
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(OneField::default())
    }
    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(OneField { word: Text(Cow::Borrowed(v)), ..OneField::default() })
    }
    fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
        Ok(OneField { word: Text(Cow::Owned(v.to_owned())), ..OneField::default() })
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        field_capture::wanted(|tree| {
            let mut sieve = Sieve::new(map, tree, self.place, &["nodeName", "phase", "finalizers"], &[]);
            let mut map = &mut sieve;
            let (mut read, mut has_finalizers) = (None, false);
            while let Some(key) = map.next_key::<Text<'de, UNLIMITED>>()? {
                if &*key == "finalizers" {
                    has_finalizers |= map.next_value::<Filled>()?.0;
                } else if &*key != self.field {
                    map.next_value::<IgnoredAny>()?;
                } else if read.replace(map.next_value::<Loose<'de>>()?).is_some() {
                    return Err(de::Error::duplicate_field(self.field));
                }
            }
            let field = read.and_then(|loose| loose.0).unwrap_or_default();
            Ok(OneField { field, has_finalizers, found: sieve.found, ..OneField::default() })
        })
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(OneField::default())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Spec<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = OneFieldVisitor { place: Place::Spec, field: "nodeName" };
        let OneField { field: node_name, has_finalizers, found, .. } = deserializer.deserialize_any(visitor)?;
        Ok(Spec { node_name, has_finalizers, found })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for StatusField<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = OneFieldVisitor { place: Place::Status, field: "phase" };
        let OneField { field: phase, word, found, .. } = deserializer.deserialize_any(visitor)?;
        Ok(StatusField { phase, word, found })
    }
}

/// One element of `items`, or a whole object inside a watch event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, remote = "Self")]
pub struct Item<'a> {
    /// `kind`; lists of typed resources may omit it in their items.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// `apiVersion`; may be absent like `kind`.
    #[serde(borrow, rename = "apiVersion")]
    pub api_version: Text<'a>,
    /// Identity and version.
    #[serde(borrow, deserialize_with = "default_or_null")]
    pub metadata: Metadata<'a>,
    /// `None` where the body has no `spec` (a partial object).
    #[serde(borrow)]
    pub spec: Option<Spec<'a>>,
    /// Phase of the object.
    #[serde(borrow)]
    pub status: StatusField<'a>,
    /// Paths, separated by spaces, to which a recorder cut this object beside its identity. `None`: the object is
    /// complete.
    #[serde(borrow, rename = "recordedFields")]
    pub recorded_fields: Option<Text<'a, LONGEST_ADDRESS>>,
    /// Digest of `data`.
    pub data: Digest,
    /// Digest of `binaryData`.
    #[serde(rename = "binaryData")]
    pub binary_data: Digest,
    /// Declared fields outside `metadata`, `spec` and `status`.
    #[serde(skip)]
    pub kept: Kept<'a>,
}

read_through_the_sieve!(Item at Object knows [
    "kind",
    "apiVersion",
    "metadata",
    "spec",
    "status",
    "recordedFields",
    "data",
    "binaryData"
] sieved ["metadata", "spec", "status"]);
