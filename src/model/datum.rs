//! The types of values that the provided models hold. Two values that differ must have different [`Datum::value`]s, or verdicts
//! are wrong.

use super::form::Value;
use crate::history::ValueId;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// A value, a key or an owner of a provided model. A user's type needs only `impl Datum for Mine {}`.
pub trait Datum: Clone + Ord + Hash + Debug + Send + Sync {
    /// The value as a register holds it ([`super::Spec::form`]), if there is such a form. Different values must have different
    /// forms. It only makes the search faster.
    fn value(&self) -> Option<Value<'_>> {
        None
    }
}

/// The content of a register that may have no value.
pub(super) fn held<V: Datum>(value: &Option<V>) -> Option<Value<'_>> {
    value.as_ref().map_or(Some(Value::Absent), V::value)
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Datum for $number {
            fn value(&self) -> Option<Value<'_>> {
                i64::try_from(*self).ok().map(Value::Number)
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

macro_rules! texts {
    ($($text:ty),*) => {$(
        impl Datum for $text {
            fn value(&self) -> Option<Value<'_>> {
                Some(Value::Text(self))
            }
        }
    )*};
}

texts!(&'static str, String, Box<str>, Arc<str>);

impl Datum for bool {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Number(i64::from(*self)))
    }
}

impl Datum for char {}

/// Equal values of a log have one id.
impl Datum for ValueId {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Number(i64::from(self.0)))
    }
}
