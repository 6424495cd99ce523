//! ## What it proves
//! A watch from revision N delivered an event at or below N. A client that asked for the changes after N has their state
//! already: replayed changes take it back. A watch without version and with `sendInitialEvents=false` begins with the most recent
//! state: an event of a revision that was complete before it was sent is a suspect. Of etcd, where N is the first revision asked for, an
//! event below N; and from whatever revision on, an event at revision 1, at which a store is empty.
//!
//! ## Example
//! ```text
//! client   WATCH pods resourceVersion=20 ........ MODIFIED default/web-0 at 17
//!                                      20 is where the client already stood
//! ```
//!
//! ## Evidence
//! The events of a watch as its client received them, and the request with its `resourceVersion`.
//!
//! ## What it cannot see
//! Watches in audit logs (they hold no event), and streams that bring their own state: for these no start is asked for.
//!
//! ## Traps
//! The synthetic ADDED events of `resourceVersion=0`, of a watch without version and of `sendInitialEvents=true` are below any
//! revision that the stream reaches, and are no replay. Bookmarks are judged by `false-progress`. A DELETED event with the
//! version that its object had before is judged by `delete-version`.
//!
//! ## Sources
//! API concepts, "Semantics for watch" (Start at Exact); kubernetes#24004; etcd#20221; etcd `tests/robustness/validate/watch.go`.
use super::course::Course;
use super::etcd::{self, Recorded};
use super::{BrokenBy, Draft, Evidence, Group, Kind, Rule, Ruling};
use crate::history::{Asked, Marks, Revision};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-prehistory",
    title: "a watch delivers nothing at or below the revision that it was asked to start after",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch with a resourceVersion",
    causes: &["delete-version"],
    source: include_str!("watch_prehistory.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        return etcd::watches::prehistory(&recorded, ruling);
    }
    for course in Course::all(evidence) {
        let Some(start) = course.start else {
            from_now(evidence, &course, ruling);
            continue;
        };
        for (index, d) in course.changes(course.live.clone()) {
            ruling.checked(course.operation.incarnation);
            if d.revision > start {
                continue;
            }
            let event = evidence.delivery_words(index);
            let draft = Draft {
                summary: format!(
                    "{} asked {} for the changes after revision {start} and received {event}",
                    evidence.observer_words(&course.operation),
                    evidence.server_words(&course.operation),
                ),
                facts: vec![
                    evidence.request(course.watch, start, format!("asked for every change after revision {start}")),
                    evidence.delivery(index, course.watch, format!("received {event}")),
                ],
                reason: format!(
                    "A watch from revision {start} starts after it: an event at {} is history that the client already had.",
                    d.revision
                ),
                refuted_by: "a record of the request that shows another resourceVersion".to_owned(),
                consequence: "a client that applies the event goes back to a state that was replaced".to_owned(),
                ..course.draft(d.key)
            };
            ruling.found(course.settle(draft));
        }
    }
}

/// A watch without version and without initial events, which is documented to begin with the most recent state.
fn from_now(evidence: &Evidence<'_>, course: &Course<'_>, ruling: &mut Ruling<'_>) {
    let o = course.operation;
    if o.asked != Asked::Unset || !o.marks.has(Marks::NO_INITIAL_EVENTS) || !o.invoke.is_known() {
        return;
    }
    let resource = evidence.history.scopes[o.scope.index()].resource;
    let head = evidence.order.heads.before(evidence.history, &evidence.order.clocks, resource, o.clock, o.invoke);
    let Some(head) = head else { return };
    for (index, d) in course.changes(course.live.clone()) {
        ruling.checked(o.incarnation);
        if d.revision > head.revision {
            continue;
        }
        let event = evidence.delivery_words(index);
        let reached = format!("revision {} had been reached", head.revision);
        let draft = Draft {
            kind: Kind::Suspect,
            summary: format!(
                "{} asked {} for the changes from now on and received {event}, although revision {} was complete before",
                evidence.observer_words(&o),
                evidence.server_words(&o),
                head.revision
            ),
            facts: vec![
                evidence.showing(head.showing, head.revision, reached),
                evidence.request(course.watch, Revision::NONE, format!("{} was sent", course.words())),
                evidence.delivery(index, course.watch, format!("received {event}")),
            ],
            reason: "A watch without resourceVersion and without initial events is documented to start at the most recent state. Not proved: \
                     servers start such a watch from their cache, which may lag."
                .to_owned(),
            refuted_by: "a promise of the server's release to start such a watch from its cache".to_owned(),
            consequence: "a client that applies the event goes back to a state that was replaced".to_owned(),
            ..course.draft(d.key)
        };
        ruling.found(draft);
    }
}

#[cfg(test)]
mod tests {
    use super::super::specimen::Specimen;
    use super::RULE;

    #[test]
    fn finds_a_replayed_event_and_nothing_after_the_start() {
        for (version, violated) in [(17, true), (20, true), (21, false)] {
            let mut s = Specimen::new();
            let w = s.watch("&resourceVersion=20");
            s.event(w, "MODIFIED", ("web-0", "u1", version));
            assert_eq!(s.violates(&RULE), violated, "{version}");
            assert!(violated || s.keeps(&RULE));
        }
    }

    #[test]
    fn initial_events_are_no_replay() {
        for query in
            ["&resourceVersion=0", "", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=20"]
        {
            let mut s = Specimen::new();
            let w = s.watch(query);
            s.event(w, "ADDED", ("web-1", "u2", 9)).event(w, "ADDED", ("web-0", "u1", 7)).bookmark(w, 21, true);
            assert!(s.kinds(&RULE).is_empty(), "{query}");
        }
    }
}
