//! ## What it proves
//! The type of an event contradicts what the same stream said before: ADDED for an object that it had added and not removed,
//! or MODIFIED or DELETED for an object that it had removed. Or, on a watch without selectors, it contradicts T: ADDED at a
//! revision that is proved to be an update or whose object was there before, or MODIFIED at one that is proved to be a creation.
//!
//! Of etcd: an event says wrongly whether it creates its key, a removal has a value or creates, or a creation has a previous value.
//!
//! ## Example
//! ```text
//! client   WATCH pods resourceVersion=20 .. ADDED web-0 (uid 1) at 23 .. ADDED web-0 (uid 1) at 25
//! ```
//!
//! ## Evidence
//! The events of a watch as its client received them; for the contradiction with T, the answer of the write itself (a
//! creation's 201, an update above its base) or an etcd witness. Of etcd: its robustness suite's events, and T below them where they do
//! not contradict themselves.
//!
//! ## What it cannot see
//! Reports of etcd from before its suite wrote down which events create their key. With selectors, objects of which neither the stream has spoken nor a list of the same selector at the revision from which it goes on.
//!
//! ## Traps
//! With a selector, ADDED and DELETED mean entering and leaving the selection, not creation and deletion; membership follows
//! them all the same. ADDED with another uid means that the DELETED of the first was lost (`watch-gap`). Events that are
//! repeated or out of order are left to the rules for these. A DELETED event with an old version leaves membership open.
//!
//! ## Sources
//! API concepts, "Efficient detection of changes"; apiserver `pkg/storage/cacher/cache_watcher.go`, `convertToWatchEvent`.
use super::course::Course;
use super::etcd::{self, Recorded};
use super::{BrokenBy, Draft, Evidence, Fact, Group, Rule, Ruling, commit};
use crate::history::{DeliveryKind, KeyId, Marks, OperationId, Revision, ScopeId, Symbol, Verb};
use crate::order::{Change, Provenance};
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-type",
    title: "ADDED, MODIFIED and DELETED fit what the stream said before, and T",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "two events about one object on one watch",
    causes: &["watch-gap", "watch-reorder", "watch-duplicate", "watch-prehistory", "delete-version"],
    source: include_str!("watch_type.rs"),
    check,
};

/// What the stream, or a list of the state from which it goes on, said last of a key: the uid, and whether the object is in the scope.
#[derive(Clone, Copy)]
struct Said {
    by: By,
    uid: Symbol,
    member: bool,
}

#[derive(Clone, Copy)]
enum By {
    /// A delivery.
    Event(usize),
    /// A list that showed the object at a version.
    List(OperationId, Revision),
}

/// Lists by scope with a selector and revision: a watch of the same scope that starts after that revision goes on from what they show.
/// Without a selector T itself tells what was there.
struct Lists(FxHashMap<(ScopeId, Revision), Vec<OperationId>>);

impl Lists {
    fn of(evidence: &Evidence<'_>) -> Lists {
        let mut lists: FxHashMap<_, Vec<OperationId>> = FxHashMap::default();
        for (id, o) in evidence.of_verbs(&[Verb::List]) {
            let is_list = o.is_answered() && o.marks.has(Marks::LIST_ANSWER) && !o.marks.has(Marks::SAVED);
            if is_list && o.answered.is_some() && o.scope.is_some() && evidence.history.is_selective(o.scope) {
                lists.entry((o.scope, o.answered)).or_default().push(id);
            }
        }
        Lists(lists)
    }

    /// What was in the scope when a stream began.
    fn begin(&self, evidence: &Evidence<'_>, course: &Course<'_>) -> FxHashMap<KeyId, Said> {
        let lists = course.start.and_then(|start| self.0.get(&(course.operation.scope, start)));
        let items =
            lists.into_iter().flatten().flat_map(|&list| {
                let of = evidence.history.operation(list);
                evidence.history.items_of(&of).iter().map(move |item| {
                    (item.key, Said { by: By::List(list, item.revision), uid: item.uid, member: true })
                })
            });
        items.collect()
    }
}

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        return etcd::watches::kind(&recorded, ruling);
    }
    let history = evidence.history;
    let lists = Lists::of(evidence);
    for course in Course::all(evidence) {
        let mut said = lists.begin(evidence, &course);
        let mut reached = Revision::NONE;
        for index in course.initial.start..course.live.end {
            let d = &history.deliveries[index];
            if d.kind == DeliveryKind::Unidentified {
                // It may have been about any object.
                said.clear();
            }
            if !matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted)
                || !d.key.is_some()
            {
                continue;
            }
            if evidence.order.timeline.is_misdated(index) {
                said.remove(&d.key);
                continue;
            }
            let live = index >= course.live.start;
            if live {
                if d.revision <= reached || course.start.is_some_and(|start| d.revision <= start) {
                    // Where it stood in the order is open, so what holds after it is too.
                    said.remove(&d.key);
                    continue;
                }
                reached = d.revision;
            }
            let before =
                said.insert(d.key, Said { by: By::Event(index), uid: d.uid, member: d.kind != DeliveryKind::Deleted });
            if live && against_order(evidence, ruling, &course, index) {
                continue;
            }
            let Some(before) = before.filter(|_| live) else { continue };
            ruling.checked(course.operation.incarnation);
            let same = before.uid == d.uid && d.uid.is_some();
            let reason = match d.kind {
                DeliveryKind::Added if before.member && same => {
                    "ADDED says that an object enters the scope, and this one was in it."
                }
                DeliveryKind::Modified | DeliveryKind::Deleted if !before.member => {
                    "MODIFIED and DELETED are about objects in the scope, and the stream had said that this name left it."
                }
                _ => continue,
            };
            let event = evidence.delivery_words(index);
            let (fact, earlier) = match before.by {
                By::Event(at) => {
                    let earlier = evidence.delivery_words(at);
                    (
                        evidence.delivery(at, course.watch, format!("received {earlier}")),
                        format!("{earlier} on one stream"),
                    )
                }
                By::List(list, revision) => {
                    let name = history.key_name(d.key);
                    let says = format!("listed {name} at version {revision}, with the same selector");
                    let earlier = format!("a list of the revision from which the watch went on had shown {name}");
                    (evidence.item(list, d.key, before.uid, revision, says), earlier)
                }
            };
            let draft = Draft {
                summary: format!("{} received {event} after {earlier}", evidence.observer_words(&course.operation)),
                facts: vec![
                    fact,
                    evidence.delivery(index, course.watch, format!("received {event} next about that name")),
                ],
                reason: format!("{reason} Either the type is wrong or an event between the two was lost."),
                refuted_by: "a record of the stream that holds an event of this object between the two".to_owned(),
                consequence: "a client that keeps a set of objects by event types keeps a wrong one".to_owned(),
                ..course.draft(d.key)
            };
            ruling.found(evidence.unless_lost(course.settle(draft)));
        }
    }
}

/// Whether T proves the event's type wrong, which is then stated.
fn against_order(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>, course: &Course<'_>, index: usize) -> bool {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let d = &history.deliveries[index];
    let scope = course.operation.scope;
    if course.operation.marks.has(Marks::SAVED) || !scope.is_some() || history.is_selective(scope) {
        return false;
    }
    let Some(version) = timeline.version_at(d.key, d.revision) else { return false };
    let earlier = timeline.at_or_before(d.key, d.revision.previous());
    let lived = earlier.filter(|v| {
        v.uid == d.uid && v.uid.is_some() && v.change.lives() == Some(true) && v.provenance < Provenance::Base
    });
    // What a watch without start brings as its own state is ADDED, however old.
    if let Some(earlier) =
        lived.filter(|_| d.kind == DeliveryKind::Added && (course.start.is_some() || course.marker.is_some()))
    {
        let says = format!("{} was there at revision {} already", history.key_name(d.key), earlier.revision);
        let was = "the change of an object that was there before";
        contradicted(evidence, ruling, course, index, evidence.version(&earlier, says), was);
        return true;
    }
    let proven = version.writer.is_some()
        && commit::proven(evidence, &evidence.history.operation(version.writer)) == Some(d.revision);
    let created = match version.provenance {
        _ if proven => history.operation(version.writer).status == 201,
        Provenance::Witness => version.change == Change::Created,
        _ => return false,
    };
    ruling.checked(course.operation.incarnation);
    let was = match (d.kind, created) {
        (DeliveryKind::Added, false) => "an update of a living object",
        (DeliveryKind::Modified, true) => "a creation",
        _ => return false,
    };
    let shown = evidence.version(&version, format!("the change at revision {} was {was}", d.revision));
    contradicted(evidence, ruling, course, index, shown, was);
    true
}

fn contradicted(
    evidence: &Evidence<'_>,
    ruling: &mut Ruling<'_>,
    course: &Course<'_>,
    index: usize,
    shown: Fact,
    was: &str,
) {
    let d = &evidence.history.deliveries[index];
    let event = evidence.delivery_words(index);
    let draft = Draft {
        summary: format!("{} received {event}, which was {was}", evidence.observer_words(&course.operation)),
        facts: vec![shown, evidence.delivery(index, course.watch, format!("received {event}"))],
        reason: "Without selectors an event's type follows the object's life: creations are ADDED and updates MODIFIED, so this type is wrong."
            .to_owned(),
        refuted_by: "evidence that the write at that revision was of the other kind".to_owned(),
        consequence: "a client that keeps a set of objects by event types keeps a wrong one".to_owned(),
        ..course.draft(d.key)
    };
    ruling.found(course.settle(draft));
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::specimen::Specimen;
    use super::RULE;

    #[test]
    fn finds_types_that_contradict_the_stream() {
        for (first, second, found) in [
            ("ADDED", "ADDED", 1),
            ("ADDED", "MODIFIED", 0),
            ("DELETED", "MODIFIED", 1),
            ("DELETED", "DELETED", 1),
            ("DELETED", "ADDED", 0),
        ] {
            let mut s = Specimen::new();
            let w = s.watch("&resourceVersion=20");
            s.event(w, first, ("a", "u", 23)).event(w, second, ("a", "u", 25));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{first} {second}");
        }
    }

    #[test]
    fn finds_types_that_contradict_the_write_itself() {
        let text = |event: &str| {
            format!(
                "
ctrl   |-CREATE a => a:u1@23-|  |-PUT a:u1@23 => a:u1@25-|
view   |-WATCH from 20 +a:u1@23 {event}a:u1@25 ..
"
            )
        };
        let kinds = |event: &str| {
            let history = crate::history::sketch::sketch(&text(event)).unwrap();
            let order = crate::order::Order::derive(&history, &Default::default());
            let only = crate::check::Options { only: vec![RULE.slug.to_owned()], ..Default::default() };
            crate::check::judge(&history, &order, &only).findings.len()
        };
        assert_eq!((kinds("~"), kinds("+")), (0, 1));
        let fresh = "
ctrl   |-CREATE a => a:u1@23-|
view   |-WATCH from 20 ~a:u1@23 ..
";
        let history = crate::history::sketch::sketch(fresh).unwrap();
        let order = crate::order::Order::derive(&history, &Default::default());
        let found = crate::check::judge(&history, &order, &Default::default()).findings;
        assert!(found.iter().any(|f| f.rule == RULE.slug), "{found:?}");
    }

    #[test]
    fn what_was_there_before_is_not_added() {
        for (query, uid, found) in
            [("&resourceVersion=20", "u1", 1), ("&resourceVersion=20", "u2", 0), ("&resourceVersion=0", "u1", 0)]
        {
            let mut s = Specimen::new();
            s.list("", 20, &[("a", "u1", 15)]);
            let w = s.watch(query);
            s.event(w, "ADDED", ("a", uid, 25));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{query} {uid}");
        }
    }

    #[test]
    fn another_life_of_the_name_is_not_a_wrong_type() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.event(w, "ADDED", ("a", "u1", 23)).event(w, "ADDED", ("a", "u2", 25));
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_deletion_with_an_old_version_leaves_membership_open() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.event(w, "ADDED", ("a", "u1", 23)).event(w, "DELETED", ("a", "u1", 23)).event(w, "ADDED", ("a", "u2", 29));
        assert!(s.kinds(&RULE).is_empty());
    }

    #[test]
    fn what_the_list_of_the_same_selector_showed_is_in_it() {
        let selected = "labelSelector=a%3Db";
        for (listed, uid, from, first, found) in [
            (selected, "u1", 20, "ADDED", 1),
            (selected, "u1", 20, "MODIFIED", 0),
            (selected, "u2", 20, "ADDED", 0),
            // It may have left in between, and another selector says nothing.
            (selected, "u1", 21, "ADDED", 0),
            ("labelSelector=a%3Dc", "u1", 20, "ADDED", 0),
        ] {
            let mut s = Specimen::new();
            s.list(&format!("?{listed}"), 20, &[("a", "u1", 15)]);
            let w = s.watch(&format!("&resourceVersion={from}&{selected}"));
            s.event(w, first, ("a", uid, 25));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{listed} {uid} {from} {first}");
        }
        // It left and came back.
        let mut s = Specimen::new();
        s.list(&format!("?{selected}"), 20, &[("a", "u1", 15)]);
        let w = s.watch(&format!("&resourceVersion=20&{selected}"));
        s.event(w, "DELETED", ("a", "u1", 24)).event(w, "ADDED", ("a", "u1", 25));
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_line_that_could_not_be_used_may_have_told_that_it_left() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20&labelSelector=a%3Db");
        s.event(w, "ADDED", ("a", "u", 23)).event(w, "DELETED", ("a", "u", 24)).cut().event(w, "ADDED", ("a", "u", 25));
        assert_eq!(s.kinds(&RULE), [Kind::Suspect]);
    }
}
