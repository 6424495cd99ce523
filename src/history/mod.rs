//! Stage 2 of 5: from records to a history. Input: [`crate::ingest::Record`]s. Output: [`History`], the recorded facts in rows
//! with interned names. Invariant: this stage decides nothing; it only reads, joins and names.

pub(crate) mod batch;
pub(crate) mod builder;
pub mod calls;
pub(crate) mod client;
mod clusters;
pub(crate) mod declared;
mod deduplication;
pub(crate) mod document;
pub mod etcd;
pub(crate) mod ids;
mod incarnations;
pub(crate) mod interner;
pub(crate) mod json_parts;
mod load;
pub(crate) mod nature;
pub(crate) mod operation;
pub(crate) mod operations;
mod recording;
pub(crate) mod request;
pub(crate) mod resource;
pub(crate) mod revision;
mod rows;
pub(crate) mod scope;
pub(crate) mod selector;
pub mod sketch;
#[cfg(feature = "container")]
pub mod snapshot;
pub(crate) mod store;
mod witness_coverage;
pub(crate) mod writers;

pub use builder::{Builder, Domains};
pub use client::{Incarnation, Served, ToldBy};
pub use declared::Declared;
pub use document::{Document, recorded_fields};
pub use ids::*;
pub use interner::Interner;
pub use json_parts::{Part, Parts};
pub use load::{load, load_each};
pub use nature::{Nature, Subject};
pub use operation::{
    Annotation, AuditId, Bracket, CacheRead, Delivery, DeliveryKind, Item, Marks, Operation, Outcome, Stream,
    StreamEnd, Subresource, WitnessEvent, WitnessSpan,
};
pub use operations::Operations;
pub use request::{Asked, Verb};
pub use resource::{Key, Placement, Resource};
pub use revision::{Revision, RevisionError};
pub use scope::{Attributes, Deletion, Difference, Scope};
pub use store::History;
