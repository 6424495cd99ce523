//! A list, a bookmark or an event that alone stands against a write: either it names a revision that was not there yet, or the store
//! went back.

use crate::check::Evidence;
use crate::history::{Delivery, DeliveryKind, KeyId, Marks, OperationId, Revision};
use crate::order::EvidenceRef;

/// Whether a change lies inside what a list or a watch was about: it would have had to show it.
fn is_inside(evidence: &Evidence<'_>, showing: EvidenceRef, key: KeyId, revision: Revision) -> bool {
    let history = evidence.history;
    let (EvidenceRef::Answer(id) | EvidenceRef::Delivery(_, id)) = showing;
    let scope = history.operations.scope(id.index());
    let attributes = evidence.order.timeline.version_at(key, revision).map(|version| version.attributes);
    let selected = attributes.is_some_and(|attributes| history.selects(scope, key, attributes) == Some(true));
    scope.is_some() && history.covers_key(scope, key) && selected
}

/// Writes that are looked at for one inside a watch.
const LOOKED_AT: usize = 1_000;

/// A write of its own scope that stands against a list, or a bookmark: no stream may go past a change of its own.
pub fn inside(evidence: &Evidence<'_>, showing: EvidenceRef) -> Option<OperationId> {
    let writes = evidence.order.heads.alone_against(showing).iter().take(LOOKED_AT);
    writes.copied().find(|write| {
        let o = evidence.history.operation(*write);
        o.answered.is_some() && is_inside(evidence, showing, o.key, o.answered)
    })
}

/// Whether a rule about watches tells of what a delivery says alone: `watch-before-write` of an event, and `false-progress` of a
/// bookmark after which a change at or below it came, or was made.
pub fn is_told(evidence: &Evidence<'_>, showing: EvidenceRef) -> bool {
    let EvidenceRef::Delivery(index, watch) = showing else { return false };
    let history = evidence.history;
    let told = &history.deliveries[index as usize];
    if !matches!(told.kind, DeliveryKind::Bookmark | DeliveryKind::InitialEventsEnd) {
        return true;
    }
    let is_change = |d: &Delivery| {
        matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted)
            && d.revision.is_some()
            && d.revision <= told.revision
    };
    let stream = history.stream_of(watch).map(|stream| stream.deliveries());
    let mut later = stream.into_iter().flatten().skip_while(|at| *at <= index as usize);
    later.any(|at| is_change(&history.deliveries[at]) && !evidence.order.timeline.is_misdated(at))
        || inside(evidence, showing).is_some()
}

/// Why a finding that rests on nothing but a list is open: several writes stand against it, one of them on what it was about, so it is
/// likelier that the list is wrong. `torn-snapshot` looks at what it showed.
pub fn doubt(evidence: &Evidence<'_>, showing: EvidenceRef) -> Option<String> {
    let writes = evidence.order.heads.alone_against(showing).len();
    let EvidenceRef::Answer(list) = showing else { return None };
    let shows = evidence.history.operation(list).marks.has(Marks::ANSWER_BODY);
    (writes > 1 && shows && inside(evidence, showing).is_some()).then(|| {
        format!(
            "only that list shows the revision, and {writes} writes stand against it: it may be the list that is wrong"
        )
    })
}
