//! Texts as JSON has them: borrowed where escapes allow it, and tolerant where Go is.

use serde::Deserialize;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The visitor methods of values that carry nothing here, whatever their JSON type.
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
pub(super) use visit_scalars_as;

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
pub(super) fn list_or_null<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: de::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// A map or object that may be `null`.
pub(super) fn default_or_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: de::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Whether a value is a list that holds something; anything else holds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Filled(pub bool);

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
            visit_scalars_as!(Loose(None));
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
