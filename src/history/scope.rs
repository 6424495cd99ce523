//! Scopes, and what is known of a version beside its identity.

use super::ids::{PartId, ResourceId, Symbol};
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

/// What is known of a version beside its identity. `NONE` anywhere: the evidence does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attributes {
    /// Labels as raw JSON.
    pub labels: Symbol,
    /// `spec.nodeName`.
    pub node: Symbol,
    /// `status.phase`.
    pub phase: Symbol,
    /// Declared fields, cut down to what is declared.
    pub fields: PartId,
    /// Whether the evidence shows more than metadata: without it, a declared field outside `metadata` may be there all the same.
    pub whole: bool,
}
