//! Identifiers: `u32` newtypes, so that a key is never passed as a client. The serialized value is one higher than the id:
//! `NONE`, the most frequent value, then takes one byte.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[doc(hidden)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// No id, or not known.
            pub const NONE: $name = $name(u32::MAX);

            /// Whether it is an id, not [`Self::NONE`].
            pub fn is_some(self) -> bool {
                self != Self::NONE
            }

            /// The index in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.wrapping_add(1).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                u32::deserialize(deserializer).map(|stored| $name(stored.wrapping_sub(1)))
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::NONE
            }
        }
    )*};
}

id! {
    /// Interned text.
    Symbol;
    /// A resource: API group and plural name.
    ResourceId;
    /// A revision counter.
    DomainId;
    /// A key of the store: resource, namespace, name.
    KeyId;
    /// The objects that a request covers: resource, namespace, name, selectors.
    ScopeId;
    /// The content of a version that selectors and rules see.
    AttributesId;
    /// A client identity: a user name.
    ClientId;
    /// One process life of a client.
    IncarnationId;
    /// An API server.
    ServerId;
    /// A clock.
    ClockId;
    /// An operation of the history.
    OperationId;
    /// A watch stream of the history.
    StreamId;
    /// A value of an operation log.
    ValueId;
    /// A part of the declared fields of objects.
    PartId;
    /// The evidence about the process behind a request.
    ProcessId;
}

/// Sorts numbers by `word`, then by `rest`. The words are computed once and kept beside the numbers, since looking them up for
/// each comparison is slower.
pub(crate) fn sort_by_word<W: Ord + Copy, R: Ord>(
    numbers: &mut [u32],
    word: impl Fn(u32) -> W,
    rest: impl Fn(u32) -> R,
) {
    let mut keyed: Vec<(W, u32)> = numbers.iter().map(|&number| (word(number), number)).collect();
    keyed.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| rest(a.1).cmp(&rest(b.1))));
    numbers.iter_mut().zip(keyed).for_each(|(number, (_, sorted))| *number = sorted);
}
