//! Deletions that a stream passed over: it shows a later object of a name that it had shown another object of.

use crate::check::course::Course;
use crate::check::{Draft, Evidence, Ruling};
use crate::history::{DeliveryKind, KeyId, Revision, Symbol};
use crate::order::{Change, Version};
use rustc_hash::FxHashMap;

/// The deletions of objects that a stream held, where no evidence but this stream's next event of the name speaks of them. Deletions that
/// T knows are changes like others.
pub(super) fn audit(evidence: &Evidence<'_>, course: &Course<'_>, end: usize, ruling: &mut Ruling<'_>) {
    // What the stream holds of each name: the delivery, its uid, its revision.
    let mut held: FxHashMap<KeyId, (usize, Symbol, Revision)> = FxHashMap::default();
    let mut reached = Revision::NONE;
    for index in course.initial.start..end {
        let d = &evidence.history.deliveries[index];
        if !d.key.is_some() {
            continue;
        }
        let live = index >= course.live.start;
        // What is out of order, or of no date, leaves open what the stream holds.
        let ordered = !live || d.revision > reached;
        let shows = matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted);
        let before = held.remove(&d.key);
        if ordered && shows && d.uid.is_some() && d.revision.is_some() {
            if let Some(before) = before.filter(|before| live && before.1 != d.uid && before.2 < d.revision) {
                deletion(evidence, course, before, index, ruling);
            }
            if d.kind != DeliveryKind::Deleted {
                held.insert(d.key, (index, d.uid, d.revision));
            }
        }
        if live && d.revision.is_some() {
            reached = reached.max(d.revision);
        }
    }
}

fn deletion(
    evidence: &Evidence<'_>,
    course: &Course<'_>,
    (held, uid, since): (usize, Symbol, Revision),
    index: usize,
    ruling: &mut Ruling<'_>,
) {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let d = &history.deliveries[index];
    ruling.checked(course.operation.incarnation);
    // One that T knows is named with its revision; one object of two uids is `identity-break`.
    let of_it =
        |v: &Version| v.change == Change::Deleted && v.revision < d.revision && (v.uid == uid || !v.uid.is_some());
    let mut between = timeline.between(d.key, since, d.revision).iter();
    let known = between.any(|v| of_it(&v) || (v.revision == d.revision && v.change == Change::Updated));
    if known {
        return;
    }
    let name = history.key_name(d.key);
    let draft = Draft {
        summary: format!(
            "{} never sent {} the deletion of {name} with uid {}: the stream ({}) went on with another object of that name",
            evidence.server_words(&course.operation),
            evidence.observer_words(&course.operation),
            evidence.short_uid(uid),
            course.words()
        ),
        facts: vec![
            evidence.delivery(held, course.watch, format!("received {}", evidence.delivery_words(held))),
            evidence.delivery(
                index,
                course.watch,
                format!("received {} with another uid, next about that name", evidence.delivery_words(index)),
            ),
        ],
        reason: "A uid is of one object: before another can have the name, the first is deleted, and a watch delivers every change of its scope or says that it cannot."
            .to_owned(),
        refuted_by: "a fuller record of the stream that holds the DELETED event".to_owned(),
        consequence: "a client that acts on the end of objects (finalizers, addresses, volumes) never hears of this one's".to_owned(),
        ..course.draft(d.key)
    };
    ruling.found(evidence.unless_lost(course.settle(draft)));
}
