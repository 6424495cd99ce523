//! Decides from the object in an answer whether anything holds back its deletion.

use super::fields::Source;
use crate::ingest::fields;
use crate::ingest::kubernetes::object::{Metadata, Spec};

/// The evidence about what holds back an object under deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Finalizers or a grace period are left: the object is still there.
    Shown,
    /// Nothing is left: the answered request removed the object (apiserver registry/generic/registry/store.go,
    /// deleteWithoutFinalizers).
    Nothing,
    /// The body lacks the fields that would decide it.
    Unshown,
}

impl Hold {
    /// Reads it from an object with a deletionTimestamp. `in_spec`: whether such objects have finalizers in their spec too;
    /// `None` if the resource is unknown.
    pub fn of(source: &Source<'_, '_>, in_spec: Option<bool>) -> Hold {
        let Source { metadata, spec, recorded_fields, .. } = *source;
        let spec_holds = in_spec == Some(true) && spec.as_ref().is_some_and(|spec| spec.has_finalizers);
        if spec_holds || !metadata.finalizers.is_empty() || metadata.deletion_grace_period_seconds.unwrap_or(0) != 0 {
            return Hold::Shown;
        }
        // Metadata without namespace may belong to a Namespace.
        let needs_spec = in_spec.unwrap_or(metadata.namespace.is_empty());
        if shows_metadata(metadata, recorded_fields) && (!needs_spec || shows_spec(spec, recorded_fields)) {
            Hold::Nothing
        } else {
            Hold::Unshown
        }
    }
}

/// Whether an object would show a deletionTimestamp. A recorder that cuts bodies may omit it, unless it lists it among the kept
/// fields. `whole`: whether the body shows more than metadata.
pub(super) fn shows_deletion(source: &Source<'_, '_>, whole: bool) -> bool {
    match source.recorded_fields {
        Some(recorded) => names_any(recorded, &["metadata", "metadata.deletionTimestamp"]),
        None => whole,
    }
}

fn names_any(recorded: &str, paths: &[&str]) -> bool {
    recorded.split(' ').any(|path| paths.contains(&path))
}

/// Whether `metadata` would show finalizers and a grace period. A body without creationTimestamp was cut to identity. A recorder
/// that lists the kept fields must list the finalizers, or show by the grace period that it keeps such fields: servers always set
/// one, perhaps 0, when they mark an object (apiserver registry/generic/registry/store.go, markAsDeleting).
fn shows_metadata(metadata: &Metadata<'_>, recorded: Option<&str>) -> bool {
    let names = |recorded: &str| names_any(recorded, &["metadata", "metadata.finalizers"]);
    !metadata.creation_timestamp.is_empty()
        && recorded.is_none_or(|recorded| metadata.deletion_grace_period_seconds.is_some() || names(recorded))
}

/// Whether `spec` would show finalizers.
fn shows_spec(spec: &Option<Spec<'_>>, recorded: Option<&str>) -> bool {
    spec.is_some() && recorded.is_none_or(|recorded| fields::covers(recorded, "spec.finalizers"))
}
