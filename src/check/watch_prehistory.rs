//! ## What it proves
//! A watch from revision N delivered an event at or below N. A client that asked for the changes after N has their state
//! already: replayed changes take it back. Of etcd, where N is the first revision asked for, an event below N; and from whatever revision
//! on, an event at revision 1, at which a store is empty.
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
use super::{BrokenBy, Draft, Evidence, Group, Rule, Ruling};

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
        let Some(start) = course.start else { continue };
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
