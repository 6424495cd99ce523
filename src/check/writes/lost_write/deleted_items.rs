//! Input: items of answered DELETECOLLECTIONs. Output: findings for objects that later evidence shows without a deletionTimestamp.
//! Lists, reads and streams that show such an object have rules of their own.

use super::draft;
use crate::check::facts::removals::{self, Ended};
use crate::check::{Draft, Evidence, Fact, RuleResult};
use crate::history::{Asked, Item, KeyId, Marks, OperationId, Verb};
use crate::order::Version;
use rustc_hash::{FxHashMap, FxHashSet};

/// Judges every deleted item by the evidence that came after the answer.
pub(super) fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let items = &evidence.order.deleted_items;
    if items.all().is_empty() {
        return;
    }
    let (versions, requests) = (later_versions(evidence), later_requests(evidence));
    for item in items.all() {
        result.checked(evidence.history.operation(item.operation).incarnation);
        let of = (item.operation, item.key);
        let fact = match (versions.get(&of), requests.get(&of)) {
            (Some(version), _) => evidence.version(version, evidence.change_words(version)),
            (None, Some(&request)) => accepted(evidence, request, item.into()),
            (None, None) => continue,
        };
        lived_on(evidence, item.into(), fact, result);
    }
}

/// By item of a DELETECOLLECTION.
type OfItem<T> = FxHashMap<(OperationId, KeyId), T>;

/// The versions without deletionTimestamp at or above the upper bound of the deletion. A version that was shown before the answer
/// proves only that revisions went back (`revision-rewind`).
fn later_versions(evidence: &Evidence<'_>) -> OfItem<Version> {
    let (history, order) = (evidence.history, evidence.order);
    let keys: FxHashSet<_> = order.deleted_items.all().iter().map(|item| item.key).collect();
    let mut found = OfItem::default();
    for key in keys {
        for version in order.timeline.versions(key).iter().filter(|version| version.change.lives() == Some(true)) {
            for item in order.deleted_items.ending(history, &order.timeline, &version.item()) {
                let o = history.operation(item.operation);
                let is_later = item.before.is_some_and(|before| before <= version.revision)
                    && !removals::was_shown_before_answer(evidence, &version, &o);
                if is_later {
                    found.entry((item.operation, key)).or_insert(version);
                }
            }
        }
    }
    found
}

/// The first accepted request that was sent after the answer and needed the object without deletionTimestamp.
fn later_requests(evidence: &Evidence<'_>) -> OfItem<OperationId> {
    let mut found = OfItem::default();
    let order = evidence.order;
    let mut add = |id: OperationId, shown: &Item| {
        let o = evidence.history.operation(id);
        let ended = order.deleted_items.ending(evidence.history, &order.timeline, shown);
        for item in ended.filter(|item| item.operation != id) {
            if removals::is_answered_before(evidence, item.operation, &o) {
                found.entry((item.operation, item.key)).or_insert(id);
            }
        }
    };
    for (id, o) in evidence.of_verbs(&[Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection]) {
        if !o.is_answered() || o.marks.has(Marks::DRY_RUN) {
            continue;
        }
        if o.verb == Verb::DeleteCollection {
            // Without a resourceVersion, the server lists the most recent state.
            let items = evidence.history.items_of(&o).iter().filter(|_| o.asked == Asked::Unset);
            items.for_each(|item| add(id, item));
        } else if o.key.is_some() && o.subresource.answers_parent() {
            let shown = o.answered_item();
            add(id, &shown);
            // An update that creates its object does not compare its base (apiserver `store.go`, `Update`).
            if o.status != 201 {
                add(id, &Item { revision: o.asked_revision, ..shown });
            }
        }
    }
    found
}

fn accepted(evidence: &Evidence<'_>, id: OperationId, item: Ended) -> Fact {
    let o = evidence.history.operation(id);
    let name = evidence.history.key_name(item.key);
    let (says, revision) = if o.verb == Verb::DeleteCollection {
        (format!("{} that was sent after that listed {name} as not under deletion", o.verb.with_article()), item.after)
    } else {
        (
            format!("{} of {name} that was sent after that found it not under deletion", o.verb.with_article()),
            o.answered,
        )
    };
    Fact { key: item.key, uid: item.uid, ..evidence.operation(id, revision, says) }
}

fn lived_on(evidence: &Evidence<'_>, item: Ended, lives: Fact, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let o = history.operation(item.operation);
    let name = history.key_name(item.key);
    let mut facts = removals::facts(evidence, item);
    facts.push(lives);
    result.found(Draft {
        summary: format!(
            "{} was answered with {name} at version {}, but that object still exists and is not under deletion",
            o.verb.name(),
            item.after
        ),
        reason:
            "A DELETECOLLECTION is answered with success only if each object is gone or has a deletionTimestamp, and a \
            deletionTimestamp is never taken back."
                .to_owned(),
        refuted_by: "evidence that the answer belongs to another request, or that the request was a dry run".to_owned(),
        consequence: "a client that trusts the answer gives away what the object still holds".to_owned(),
        ..draft(evidence, &o, item.key, facts)
    });
}
