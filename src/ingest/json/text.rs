//! Texts in JSON: borrowed if they have no escapes, and as tolerant of `null` as Go.

use crate::ingest::limits::LONGEST_NAME;
use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Visitor methods that return one value for any scalar.
macro_rules! visit_scalars_as {
    ($value:expr; $($method:ident: $type:ty),*) => {
        $(fn $method<E>(self, _: $type) -> Result<Self::Value, E> {
            Ok($value)
        })*
    };
    ($value:expr) => {
        visit_scalars_as!($value; visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);
    };
}
pub(in crate::ingest) use visit_scalars_as;

/// A text that borrows from its line if it has no escapes. `null` reads as empty, since Go writes nil as `null`. A
/// text of more than `MAX_BYTES` bytes is refused: names are kept for the whole run, and every output shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a, const MAX_BYTES: usize = LONGEST_NAME>(pub Cow<'a, str>);

impl<'a, const MAX_BYTES: usize> Text<'a, MAX_BYTES> {
    pub(in crate::ingest) fn new<E: de::Error>(text: Cow<'a, str>) -> Result<Self, E> {
        within(text, MAX_BYTES).map(Text)
    }
}

/// The text, if it has no more than `most` bytes.
fn within<E: de::Error>(text: Cow<'_, str>, most: usize) -> Result<Cow<'_, str>, E> {
    struct Most(usize);
    impl de::Expected for Most {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a text of at most {} bytes", self.0)
        }
    }
    if text.len() > most { Err(E::invalid_length(text.len(), &Most(most))) } else { Ok(text) }
}

impl<const MAX_BYTES: usize> std::ops::Deref for Text<'_, MAX_BYTES> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a, const MAX_BYTES: usize> Deserialize<'de> for Text<'a, MAX_BYTES> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The bound is a value, so that all bounds share one copy of the parser's code.
        struct TextVisitor {
            most: usize,
        }
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Cow<'de, str>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Self::Value, E> {
                within(Cow::Borrowed(v), self.most)
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                within(Cow::Owned(v.to_owned()), self.most)
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Cow::default())
            }
        }
        deserializer.deserialize_any(TextVisitor { most: MAX_BYTES }).map(Text)
    }
}

/// Reads a list; `null` is an empty one.
pub(in crate::ingest) fn list_or_null<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: de::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a map or object; `null` is the default.
pub(in crate::ingest) fn default_or_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: de::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a value is a list with an element.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::ingest) struct Filled(pub bool);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FilledVisitor;
        impl<'de> Visitor<'de> for FilledVisitor {
            type Value = Filled;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Filled(false))
            }
            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Filled(false))
            }
            visit_scalars_as!(Filled(false));
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Filled(false))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut filled = false;
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    filled = true;
                }
                Ok(Filled(filled))
            }
        }
        deserializer.deserialize_any(FilledVisitor)
    }
}

/// A string; any other value is skipped. Custom resources may use a known name with another type.
#[derive(Clone, Debug, Default)]
pub struct Loose<'a, const MAX_BYTES: usize = LONGEST_NAME>(pub Option<Text<'a, MAX_BYTES>>);

impl<'de: 'a, 'a, const MAX_BYTES: usize> Deserialize<'de> for Loose<'a, MAX_BYTES> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LooseVisitor {
            most: usize,
        }
        impl<'de> Visitor<'de> for LooseVisitor {
            type Value = Option<Cow<'de, str>>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(None)
            }
            visit_scalars_as!(None);
            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Self::Value, E> {
                within(Cow::Borrowed(v), self.most).map(Some)
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                within(Cow::Owned(v.to_owned()), self.most).map(Some)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(None)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(None)
            }
        }
        deserializer.deserialize_any(LooseVisitor { most: MAX_BYTES }).map(|text| Loose(text.map(Text)))
    }
}
