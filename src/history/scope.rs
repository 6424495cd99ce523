//! Scopes, and what is known of a version beside its identity.

use super::ids::{AttributesId, PartId, ResourceId, Symbol};
use serde::{Deserialize, Serialize};

/// What a request covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    /// Resource.
    pub resource: ResourceId,
    /// Namespace; the empty text covers all.
    pub namespace: Symbol,
    /// Name; the empty text covers all.
    pub name: Symbol,
    /// `labelSelector`; empty for none.
    pub labels: Symbol,
    /// `fieldSelector` without name and namespace; empty for none.
    pub fields: Symbol,
    /// `shardSelector`; empty for none. Never decidable here: it hashes uids (KEP-5866).
    pub shard: Symbol,
}

/// Whether the deletion of an object had begun.
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

/// What is known of a version beside its identity. `NONE` anywhere: the evidence does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attributes {
    /// Labels as raw JSON.
    pub labels: Symbol,
    /// `spec.nodeName`.
    pub node: Symbol,
    /// `status.phase`.
    pub phase: Symbol,
    /// `metadata.creationTimestamp`, which an object keeps for life: seconds since 1970, 0 where the evidence does not say.
    pub created: u32,
    /// Whether deletion had begun.
    pub deletion: Deletion,
    /// Digest of what a ConfigMap holds (`ingest::digest`), 0 where the evidence does not say or it is no ConfigMap.
    pub data: u32,
    /// Declared fields, cut down to what is declared.
    pub fields: PartId,
    /// Whether the evidence shows more than metadata: without it, a declared field outside `metadata` may be there all the same.
    pub whole: bool,
}

impl Attributes {
    /// How much one of several says, where `id` has any: the more, the greater.
    pub(super) fn extent(all: &[Attributes], id: AttributesId) -> Option<(bool, bool, bool)> {
        let shown = id.is_some().then(|| &all[id.index()]);
        shown.map(|a| (a.node.is_some(), a.whole, a.fields.is_some()))
    }
}

/// What two pieces of evidence of one version say differently.
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
    /// `data` or `binaryData` of a ConfigMap. No selector sees it.
    Data,
}

impl Difference {
    /// The field.
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
