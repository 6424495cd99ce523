//! Input: one stream and the state from which it continues. Output: findings for deletions that the stream never delivered,
//! although it shows a later object of the same name. Only names of several objects matter, and most evidence has none.

use super::LazyMembership;
use crate::check::facts::commit_evidence;
use crate::check::facts::stream_view::StreamView;
use crate::check::watches::scope_membership::ScopeEvidence;
use crate::check::{Draft, Evidence, RuleResult};
use crate::history::{DeliveryKind, History, KeyId, Revision, Symbol};
use crate::order::{Change, Version};
use rustc_hash::{FxHashMap, FxHashSet};

/// The names under which events and lists show several objects.
pub(super) fn reused_names(history: &History) -> FxHashSet<KeyId> {
    let mut first = vec![Symbol::NONE; history.keys.len()];
    let mut reused = FxHashSet::default();
    let events = history.deliveries.iter().map(|d| (d.key, d.uid));
    let items = history.items.iter().map(|item| (item.key, item.uid));
    for (key, uid) in events.chain(items).filter(|(key, uid)| key.is_some() && uid.is_some()) {
        match &mut first[key.index()] {
            known if !known.is_some() => *known = uid,
            known if *known != uid => drop(reused.insert(key)),
            _ => {}
        }
    }
    reused
}

/// Reports deletions of objects that a stream held, if only the stream's next event of the name shows that they ended.
/// Deletions in the revision order are changes like others and belong to `watch-gap` itself.
pub(super) fn audit<'h>(
    evidence: &Evidence<'h>,
    view: &StreamView<'h>,
    end: usize,
    reused: &FxHashSet<KeyId>,
    membership: &mut LazyMembership<'_, 'h>,
    result: &mut RuleResult<'_>,
) {
    if reused.is_empty() {
        return;
    }
    // Per name, what the stream holds: evidence, uid and revision. `None` means that this is open.
    let mut held: FxHashMap<KeyId, Option<HeldObject>> = FxHashMap::default();
    let mut reached = Revision::NONE;
    for index in view.initial.start..end {
        let d = &evidence.history.deliveries[index];
        if !d.key.is_some() {
            continue;
        }
        let live = index >= view.live.start;
        // An event that is out of order, or without a date, leaves open what the stream holds.
        let ordered = !live || d.revision > reached;
        if live && d.revision.is_some() {
            reached = reached.max(d.revision);
        }
        if !reused.contains(&d.key) {
            continue;
        }
        let shows = matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted);
        let placed = ordered && shows && d.uid.is_some() && d.revision.is_some();
        let holds = placed && d.kind != DeliveryKind::Deleted;
        let now = holds.then_some((ScopeEvidence::Event(index, view.watch), d.uid, d.revision));
        let before = held.insert(d.key, now);
        // A state that shows a name twice before its marker belongs to `bad-initial-state`.
        if placed && (live || view.marker.is_none()) {
            let before = before.unwrap_or_else(|| if live { at_start(membership, view, d.key) } else { None });
            if let Some(before) = before.filter(|before| before.1 != d.uid && before.2 < d.revision) {
                deletion(evidence, view, before, index, result);
            }
        }
    }
}

type HeldObject = (ScopeEvidence, Symbol, Revision);

/// The object that the scope held under a name when the stream began.
fn at_start<'h>(membership: &mut LazyMembership<'_, 'h>, view: &StreamView<'h>, key: KeyId) -> Option<HeldObject> {
    let start = view.start?;
    let state = membership.at_start(view, key).filter(|state| state.member && state.uid.is_some())?;
    Some((state.source, state.uid, start))
}

fn deletion(
    evidence: &Evidence<'_>,
    view: &StreamView<'_>,
    (held, uid, since): HeldObject,
    index: usize,
    result: &mut RuleResult<'_>,
) {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let d = &history.deliveries[index];
    result.checked(view.operation.incarnation);
    // A deletion in the revision order is reported with its revision. One object with two uids belongs to `identity-break`.
    let of_it =
        |v: &Version| v.change == Change::Deleted && v.revision < d.revision && (v.uid == uid || !v.uid.is_some());
    let mut between = timeline.between(d.key, since, d.revision).iter();
    let known = between.any(|v| of_it(&v) || (v.revision == d.revision && commit_evidence::is_update(evidence, &v)));
    if known {
        return;
    }
    let name = history.key_name(d.key);
    let draft = Draft {
        summary: format!(
            "{} never sent {} the deletion of {name} with uid {}: the stream ({}) continued with another object of \
            that name",
            evidence.server_words(&view.operation),
            evidence.observer_words(&view.operation),
            evidence.short_uid(uid),
            view.words()
        ),
        facts: vec![
            held.fact(evidence, d.key, uid),
            evidence.delivery(
                index,
                view.watch,
                format!("received {} with another uid as the next event of that name", evidence.delivery_words(index)),
            ),
        ],
        reason: "A uid belongs to one object. The first object was deleted before another got its name, and a watch \
                delivers every change of its scope or says that it cannot."
            .to_owned(),
        refuted_by: "a more complete record of the stream with the DELETED event".to_owned(),
        consequence: "a client that acts on deletions (finalizers, addresses, volumes) misses this one".to_owned(),
        ..view.draft(d.key)
    };
    result.found(evidence.unless_lost(view.settle(draft)));
}
