//! Scopes of requests, and the attributes of versions.

use super::ids::{AttributesId, PartId, ResourceId, Symbol};
use serde::{Deserialize, Serialize};

/// The objects that a request covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    /// Resource.
    pub resource: ResourceId,
    /// Namespace; empty for all.
    pub namespace: Symbol,
    /// Name; empty for all.
    pub name: Symbol,
    /// `labelSelector`; empty for none.
    pub labels: Symbol,
    /// `fieldSelector` without name and namespace; empty for none.
    pub fields: Symbol,
    /// `shardSelector`; empty for none. Never decidable here, since it hashes uids (KEP-5866).
    pub shard: Symbol,
}

/// Whether an object was under deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Deletion {
    /// The evidence does not say.
    #[default]
    Unknown,
    /// The whole object was recorded, without deletionTimestamp.
    NotBegun,
    /// It has a deletionTimestamp.
    Begun,
}

/// The recorded content of a version, beside its identity. `NONE` means that the evidence does not show the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attributes {
    /// Labels as raw JSON.
    pub labels: Symbol,
    /// `spec.nodeName`.
    pub node: Symbol,
    /// `status.phase`.
    pub phase: Symbol,
    /// `metadata.creationTimestamp` in seconds since 1970; 0 if not shown. It never changes during an object's life.
    pub created: u32,
    /// Whether the object was under deletion.
    pub deletion: Deletion,
    /// Digest of a ConfigMap's content (`ingest::kubernetes::digest`); 0 if not shown, or for another kind.
    pub data: u32,
    /// The declared fields.
    pub fields: PartId,
    /// Whether the evidence shows more than metadata. If not, a declared field outside `metadata` may exist unseen.
    pub whole: bool,
}

impl Attributes {
    /// The amount of content, comparable between records of one version; more content is greater. `None` for no attributes.
    pub(super) fn extent(all: &[Attributes], id: AttributesId) -> Option<(bool, bool, bool)> {
        let shown = id.is_some().then(|| &all[id.index()]);
        shown.map(|a| (a.node.is_some(), a.whole, a.fields.is_some()))
    }
}

/// A field with different values in two pieces of evidence of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// `metadata.labels`.
    Labels,
    /// `spec.nodeName`.
    Node,
    /// `status.phase`.
    Phase,
    /// `metadata.creationTimestamp`.
    CreationTimestamp,
    /// One has `metadata.deletionTimestamp`, the other has none.
    DeletionTimestamp,
    /// `data` or `binaryData` of a ConfigMap. No selector reads it.
    Data,
}

impl Difference {
    /// The path of the field.
    pub fn field(self) -> &'static str {
        match self {
            Difference::Labels => "labels",
            Difference::Node => "spec.nodeName",
            Difference::Phase => "status.phase",
            Difference::CreationTimestamp => "creationTimestamp",
            Difference::DeletionTimestamp => "deletionTimestamp",
            Difference::Data => "data",
        }
    }
}
