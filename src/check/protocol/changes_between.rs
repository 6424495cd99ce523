//! Changes of a scope between two revisions. Input: the revision order, a scope and an interval. Output: [`Stretch`]. A change
//! counts if the object is selected after it or was selected before it.

use crate::check::Evidence;
use crate::history::{Revision, ScopeId};
use crate::order::Version;

/// The state of a scope over an interval of revisions.
#[derive(Clone, Copy, Debug)]
pub enum Stretch {
    /// This change certainly touched an object of the scope.
    Changed(Version),
    /// The evidence does not show whether the selectors select the object of this change.
    Open(Version),
    /// No change of the scope is known.
    Quiet,
}

/// The first change of a scope in (after, through] for which `counts` holds.
pub fn changes(
    evidence: &Evidence<'_>,
    scope: ScopeId,
    after: Revision,
    through: Revision,
    counts: impl Fn(&Version) -> bool,
) -> Stretch {
    let history = evidence.history;
    let resource = history.scopes[scope.index()].resource;
    let mut open = None;
    for version in evidence.order.timeline.of_resource(resource, after, through) {
        if !history.covers_key(scope, version.key) || !counts(&version) {
            continue;
        }
        match touches(evidence, scope, &version) {
            Some(true) => return Stretch::Changed(version),
            Some(false) => {}
            None => open = open.or(Some(version)),
        }
    }
    open.map_or(Stretch::Quiet, Stretch::Open)
}

/// Whether a change touches the scope: the object is selected after it, or was before.
fn touches(evidence: &Evidence<'_>, scope: ScopeId, version: &Version) -> Option<bool> {
    let history = evidence.history;
    if !history.is_selective(scope) {
        return Some(true);
    }
    let after = match version.change.lives() {
        Some(true) => history.selects(scope, version.key, version.attributes),
        Some(false) => Some(false),
        None => None,
    };
    if after == Some(true) {
        return Some(true);
    }
    let below = version.revision.previous();
    let before = match evidence.order.timeline.at_or_before(version.key, below) {
        Some(v) if v.change.lives() == Some(true) => history.selects(scope, v.key, v.attributes),
        Some(v) if v.change.lives() == Some(false) => Some(false),
        // Before a certain creation there was no object.
        None if version.change == crate::order::Change::Created => Some(false),
        _ => None,
    };
    match (before, after) {
        (Some(true), _) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}
