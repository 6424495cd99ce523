//! Deletions that a stream passed over: it shows a later object of a name of which it, or what it goes on from, had shown another.

use crate::check::watches::scope_membership::{By, Membership};
use crate::check::watches::stream_view::Course;
use crate::check::{Draft, Evidence, Ruling};
use crate::history::{DeliveryKind, KeyId, Revision, Symbol};
use crate::order::{Change, Version};
use rustc_hash::FxHashMap;

/// The deletions of objects that a stream held, where no evidence but this stream's next event of the name speaks of them. Deletions that
/// T knows are changes like others.
pub(super) fn audit<'h>(
    evidence: &Evidence<'h>,
    course: &Course<'h>,
    end: usize,
    membership: &mut Membership<'h>,
    ruling: &mut Ruling<'_>,
) {
    // What the stream holds of each name: what shows it, its uid, its revision; nothing where that is open.
    let mut held: FxHashMap<KeyId, Option<Held>> = FxHashMap::default();
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
        let before = held.insert(d.key, None);
        if ordered && shows && d.uid.is_some() && d.revision.is_some() {
            // A state that shows a name twice up to its marker is `bad-initial-state`.
            let counts = live || course.marker.is_none();
            let before = before.unwrap_or_else(|| if live { at_start(membership, course, d.key) } else { None });
            if let Some(before) = before.filter(|before| counts && before.1 != d.uid && before.2 < d.revision) {
                deletion(evidence, course, before, index, ruling);
            }
            if d.kind != DeliveryKind::Deleted {
                held.insert(d.key, Some((By::Event(index, course.watch), d.uid, d.revision)));
            }
        }
        if live && d.revision.is_some() {
            reached = reached.max(d.revision);
        }
    }
}

type Held = (By, Symbol, Revision);

/// What the scope held of a name when the stream began.
fn at_start<'h>(membership: &mut Membership<'h>, course: &Course<'h>, key: KeyId) -> Option<Held> {
    let start = course.start?;
    let said = membership.at_start(course, key).filter(|said| said.member && said.uid.is_some())?;
    Some((said.by, said.uid, start))
}

fn deletion(
    evidence: &Evidence<'_>,
    course: &Course<'_>,
    (held, uid, since): Held,
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
            held.fact(evidence, d.key, uid),
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
