//! Stage 2 of 5: from records to a history. Input: [`crate::ingest::Record`]s. Output: [`History`], the recorded facts in rows
//! with interned names. Invariant: this stage decides nothing; it only reads, joins and names.
//!
//! ```
//! use retrograde::history::{Domains, load};
//! use retrograde::ingest::{FileId, InputFile};
//!
//! let list = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}"#;
//! let input = InputFile::in_memory(FileId(0), "pods.json", list.as_bytes());
//! let history = load(vec![input], &retrograde::read_options(), &Domains::default(), &());
//! assert!(!history.is_empty() && history.problems.is_empty());
//! ```

pub(crate) mod batch;
pub(crate) mod builder;
#[doc(hidden)]
pub mod calls;
pub(crate) mod client;
mod clusters;
pub(crate) mod declared;
mod deduplication;
pub(crate) mod document;
#[doc(hidden)]
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
#[doc(hidden)]
pub mod snapshot;
pub(crate) mod store;
mod witness_coverage;
pub(crate) mod writers;

pub use builder::Domains;
pub use load::{load, load_each};
pub use store::History;

#[doc(hidden)]
pub use self::{
    builder::Builder,
    client::{IdentifiedBy, Incarnation, Served},
    declared::Declared,
    document::{Document, recorded_fields},
    ids::*,
    interner::Interner,
    json_parts::{Part, Parts},
    nature::{Nature, Subject},
    operation::{
        Annotation, AuditId, Bracket, CacheRead, Delivery, DeliveryKind, Item, Marks, Operation, Outcome, Stream,
        StreamEnd, Subresource, WitnessEvent, WitnessSpan,
    },
    operations::Operations,
    request::{Asked, Verb},
    resource::{Key, Placement, Resource},
    revision::{Revision, RevisionError},
    scope::{Attributes, Deletion, Difference, Scope},
};
