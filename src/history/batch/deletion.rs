//! What holds the deletion of an object back, as far as the object in an answer shows it.

use super::fields::Source;
use crate::ingest::fields;
use crate::ingest::object::{Metadata, Spec};

/// What an object that is being deleted shows of what holds it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Finalizers or a grace period are left: the object is still there.
    Shown,
    /// Nothing is left: the request that was answered so removed the object (apiserver registry/generic/registry/store.go,
    /// deleteWithoutFinalizers).
    Nothing,
    /// The body cannot hold what would decide it.
    Unshown,
}

impl Hold {
    /// Reads it from an object with a deletionTimestamp. `in_spec` tells whether such objects have finalizers in their spec, too; `None`
    /// where nobody says the resource.
    pub fn of(source: &Source<'_, '_>, in_spec: Option<bool>) -> Hold {
        let Source { metadata, spec, recorded_fields, .. } = *source;
        let spec_holds = in_spec == Some(true) && spec.as_ref().is_some_and(|spec| spec.has_finalizers);
        if spec_holds || !metadata.finalizers.is_empty() || metadata.deletion_grace_period_seconds.unwrap_or(0) != 0 {
            return Hold::Shown;
        }
        // Metadata of a scope without namespace may be that of a Namespace.
        let needs_spec = in_spec.unwrap_or(metadata.namespace.is_empty());
        if shows_metadata(metadata, recorded_fields) && (!needs_spec || shows_spec(spec, recorded_fields)) {
            Hold::Nothing
        } else {
            Hold::Unshown
        }
    }
}

/// Whether finalizers and a grace period that are missing in `metadata` were missing in the object. A body without creationTimestamp was
/// cut down to identity. A recorder that names what it kept names the finalizers, or shows by the grace period that it keeps such
/// members: servers write one, be it 0, wherever they mark an object (apiserver registry/generic/registry/store.go, markAsDeleting).
fn shows_metadata(metadata: &Metadata<'_>, recorded: Option<&str>) -> bool {
    let names = |recorded: &str| recorded.split(' ').any(|path| matches!(path, "metadata" | "metadata.finalizers"));
    !metadata.creation_timestamp.is_empty()
        && recorded.is_none_or(|recorded| metadata.deletion_grace_period_seconds.is_some() || names(recorded))
}

/// Whether finalizers that are missing in `spec` were missing in the object.
fn shows_spec(spec: &Option<Spec<'_>>, recorded: Option<&str>) -> bool {
    spec.is_some() && recorded.is_none_or(|recorded| fields::covers(recorded, "spec.finalizers"))
}
