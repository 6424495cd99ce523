//! Stage 2 of 5: from records to a history. Input: [`crate::ingest::Record`]s. Output: [`History`], the recorded facts in rows
//! with interned names. Invariant: this stage decides nothing; it only reads, joins and names.

pub mod batch;
pub mod builder;
pub mod calls;
pub mod client;
pub mod declared;
mod deduplication;
pub mod document;
pub mod etcd;
pub mod ids;
mod incarnations;
pub mod interner;
pub mod json_parts;
mod load;
pub mod nature;
pub mod operation;
pub mod operations;
mod recording;
pub mod request;
pub mod resource;
pub mod revision;
mod rows;
pub mod scope;
pub mod selector;
pub mod sketch;
#[cfg(feature = "container")]
pub mod snapshot;
pub mod store;
mod witness_coverage;
pub mod writers;

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
