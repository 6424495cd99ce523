//! A list, a bookmark or an event that alone contradicts a write's revision. Either it names a revision that did not exist
//! yet, or the store went back. Output: the rule that reports it, or the doubt that makes a finding a suspect.

use crate::check::Evidence;
use crate::history::{Delivery, DeliveryKind, KeyId, Marks, OperationId, Revision};
use crate::order::EvidenceRef;

/// Whether a list or a watch would have had to show a change.
fn is_inside(evidence: &Evidence<'_>, showing: EvidenceRef, key: KeyId, revision: Revision) -> bool {
    let history = evidence.history;
    let (EvidenceRef::Answer(id) | EvidenceRef::Delivery(_, id)) = showing;
    let scope = history.operations.scope(id.index());
    let attributes = evidence.order.timeline.version_at(key, revision).map(|version| version.attributes);
    let selected = attributes.is_some_and(|attributes| history.selects(scope, key, attributes) == Some(true));
    scope.is_some() && history.covers_key(scope, key) && selected
}

/// The most writes that are examined for one inside a watch.
const LOOKED_AT: usize = 1_000;

/// A write of its own scope that contradicts a list or a bookmark. No stream may go past a change of its scope.
pub fn inside(evidence: &Evidence<'_>, showing: EvidenceRef) -> Option<OperationId> {
    let writes = evidence.order.watermarks.alone_against(showing).iter().take(LOOKED_AT);
    writes.copied().find(|write| {
        let o = evidence.history.operation(*write);
        o.answered.is_some() && is_inside(evidence, showing, o.key, o.answered)
    })
}

/// Whether a rule about watches reports the delivery that alone shows a revision: `watch-before-write` an event, and
/// `false-progress` a bookmark with a later change at or below it.
pub fn is_told(evidence: &Evidence<'_>, showing: EvidenceRef) -> bool {
    let EvidenceRef::Delivery(index, watch) = showing else { return false };
    let history = evidence.history;
    let bookmark = &history.deliveries[index as usize];
    if !matches!(bookmark.kind, DeliveryKind::Bookmark | DeliveryKind::InitialEventsEnd) {
        return true;
    }
    let is_change = |d: &Delivery| {
        matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted)
            && d.revision.is_some()
            && d.revision <= bookmark.revision
    };
    let stream = history.stream_of(watch).map(|stream| stream.deliveries());
    let mut later = stream.into_iter().flatten().skip_while(|at| *at <= index as usize);
    later.any(|at| is_change(&history.deliveries[at]) && !evidence.order.timeline.is_misdated(at))
        || inside(evidence, showing).is_some()
}

/// The doubt of a finding that rests only on a list, if several writes contradict it and one of them lies in its scope. Then
/// the list is more likely wrong, and `torn-snapshot` examines its content.
pub fn doubt(evidence: &Evidence<'_>, showing: EvidenceRef) -> Option<String> {
    let writes = evidence.order.watermarks.alone_against(showing).len();
    let EvidenceRef::Answer(list) = showing else { return None };
    let shows = evidence.history.operation(list).marks.has(Marks::ANSWER_BODY);
    (writes > 1 && shows && inside(evidence, showing).is_some()).then(|| {
        format!(
            "Not proved: only that list shows the revision, and {writes} writes contradict it, so the list may be wrong."
        )
    })
}
