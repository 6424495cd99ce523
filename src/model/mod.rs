//! Definitions of correct behaviour: sequential specifications of objects, and what Kubernetes promises for each request, as
//! data. Input: operations of a [`crate::history::History`]. Nothing here does input or output, or depends on time.
//!
//! ```
//! use retrograde::model::Spec;
//!
//! /// A stock of items that clients take from.
//! struct Stock(u32);
//!
//! impl Spec for Stock {
//!     type State = u32;
//!     type Operation = ();
//!     type Answer = bool;
//!
//!     fn initial(&self) -> u32 {
//!         self.0
//!     }
//!
//!     fn step(&self, left: &u32, _take: &(), taken: Option<&bool>) -> Option<u32> {
//!         // A call without an answer may have had any.
//!         let fits = taken.is_none_or(|taken| *taken == (*left > 0));
//!         fits.then_some(left.saturating_sub(1))
//!     }
//! }
//!
//! assert_eq!(Stock(1).step(&1, &(), Some(&true)), Some(0));
//! assert_eq!(Stock(1).step(&0, &(), Some(&true)), None);
//! ```

mod appended;
pub mod cas_register;
pub(crate) mod contract;
pub mod counter;
mod datum;
pub(crate) mod declaration;
#[doc(hidden)]
pub mod expression;
mod form;
pub(crate) mod keyed;
pub mod kv;
pub mod list_append;
pub mod multi_register;
pub mod mutex;
mod parts;
pub mod pool;
mod provided;
pub mod queue;
mod recorded;
pub mod register;
pub mod set;
mod sorted;
mod spec;
pub mod unordered_queue;

pub use appended::Appended;
pub use cas_register::CasRegister;
pub use counter::Counter;
pub use datum::Datum;
pub use declaration::Declarations;
pub use form::{Action, QueueForm, RegisterForm, Value};
pub use keyed::{Keyed, On};
pub use kv::Kv;
pub use list_append::ListAppend;
pub use multi_register::MultiRegister;
pub use mutex::Mutex;
pub use parts::Parts;
pub use pool::Pool;
pub use queue::Queue;
pub use register::Register;
pub use set::Set;
pub(crate) use spec::Touch;
pub use spec::{Effect, Spec};
pub use unordered_queue::UnorderedQueue;

#[doc(hidden)]
pub use self::{
    contract::{CONTRACT, Promise, Row, promise},
    declaration::Mistake,
    provided::{Model, Visitor},
    recorded::{Beginnings, Event, Log, Meaning, Mismatch, Recorded, Recording, Typed, TypedLog},
};

use std::hash::{BuildHasher, Hash};

/// The number of a key of an object ([`Spec::keys`]).
fn number(key: &impl Hash) -> u64 {
    rustc_hash::FxBuildHasher.hash_one(key)
}

/// A well mixed hash: sums of it differ for different sets of elements, except by accident.
fn spread(element: &impl Hash) -> u64 {
    let mut z = number(element).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
pub(crate) mod committed_schema;
#[cfg(test)]
mod tests;
