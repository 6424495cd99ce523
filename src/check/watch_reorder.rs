//! ## What it proves
//! A stream delivered a change that is not above the one before it: the order of events is not the order of writes.
//!
//! ## Example
//! ```text
//! client   WATCH pods resourceVersion=20 .. MODIFIED web-0 at 24 .. MODIFIED web-1 at 23
//! T                                         23 --------> 24
//! ```
//!
//! ## Evidence
//! The events of a watch as its client received them.
//!
//! ## What it cannot see
//! Watches in audit logs: they hold no event.
//!
//! ## Traps
//! Synthetic ADDED events come in the order of keys (kubernetes#49745, #101949): order counts only after the initial part,
//! which ends at the bookmark `initial-events-end`, else at the first event that is not ADDED. A repeated change is
//! `watch-duplicate`'s, an event at or below the start `watch-prehistory`'s, a DELETED event with an old version
//! `delete-version`'s. A saved file may hold two streams: there it is a suspect. Two keys at one revision above 10^15 are a
//! suspect: such versions come from stores that are not etcd.
//!
//! ## Sources
//! etcd's watch guarantee "ordered" (`api_guarantees.md`); kubernetes#73845; apiserver `pkg/storage/cacher/cache_watcher.go`;
//! client-go `tools/cache/reflector.go`.
use super::course::Course;
use super::etcd::{self, Recorded};
use super::{BrokenBy, Draft, Evidence, Group, Kind, Rule, Ruling};
use crate::history::Revision;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-reorder",
    title: "a watch delivers changes in the order of their revisions",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch",
    causes: &["watch-prehistory", "watch-duplicate"],
    source: include_str!("watch_reorder.rs"),
    check,
};

/// Above it, versions come from stores that are not etcd, and nobody promises that they name one change each.
const ETCD: Revision = Revision::new(1_000_000_000_000_000);

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        return etcd::watches::reorder(&recorded, ruling);
    }
    for course in Course::all(evidence) {
        let mut last: Option<(usize, Revision)> = None;
        let mut first = None;
        for (index, d) in course.changes(course.live.clone()) {
            if course.start.is_some_and(|start| d.revision <= start) {
                continue;
            }
            let Some((before, reached)) = last else {
                last = Some((index, d.revision));
                continue;
            };
            ruling.checked(course.operation.incarnation);
            if d.revision > reached {
                last = Some((index, d.revision));
                continue;
            }
            let first = first.get_or_insert_with(|| course.first_deliveries());
            if first.get(&(d.key, d.revision)).is_some_and(|&earlier| earlier < index) {
                continue;
            }
            let (event, earlier) = (evidence.delivery_words(index), evidence.delivery_words(before));
            let tied = d.revision == reached;
            let draft = Draft {
                kind: if tied && d.revision > ETCD { Kind::Suspect } else { Kind::Violation },
                broken_by: BrokenBy::Server,
                incarnation: course.operation.incarnation,
                key: d.key,
                cause: course.cause(),
                summary: format!(
                    "{} received {event} after {earlier} on one stream",
                    evidence.observer_words(&course.operation)
                ),
                facts: vec![
                    evidence.delivery(before, course.watch, format!("received {earlier}")),
                    evidence.delivery(index, course.watch, format!("received {event} later on the same stream")),
                ],
                reason: if tied {
                    format!(
                        "A watch delivers changes in the order of revisions, and revision {reached} is one change of one key."
                    )
                } else {
                    format!(
                        "A watch delivers changes in the order of revisions: {} comes before {reached}.",
                        d.revision
                    )
                },
                refuted_by: "a record that shows two streams here".to_owned(),
                consequence: "a client that keeps the last event of an object keeps an older state for the present one"
                    .to_owned(),
            };
            ruling.found(course.settle(draft));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::super::specimen::Specimen;
    use super::RULE;

    #[test]
    fn finds_a_change_below_the_one_before() {
        for (versions, found) in [([23, 24], 0), ([24, 23], 1)] {
            let mut s = Specimen::new();
            let w = s.watch("&resourceVersion=20");
            s.event(w, "MODIFIED", ("web-0", "u1", versions[0])).event(w, "MODIFIED", ("web-1", "u2", versions[1]));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
            assert!(found > 0 || s.keeps(&RULE));
        }
    }

    #[test]
    fn the_initial_part_has_no_order() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=0");
        s.event(w, "ADDED", ("a", "u1", 9)).event(w, "ADDED", ("b", "u2", 7));
        s.event(w, "MODIFIED", ("b", "u2", 12)).event(w, "ADDED", ("c", "u3", 13));
        assert!(s.keeps(&RULE));
        let mut s = Specimen::new();
        let w = s.watch("");
        s.event(w, "ADDED", ("a", "u1", 9)).event(w, "ADDED", ("b", "u2", 7)).bookmark(w, 11, true);
        s.event(w, "ADDED", ("c", "u3", 13)).event(w, "ADDED", ("d", "u4", 12));
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }

    #[test]
    fn a_deletion_with_an_old_version_is_another_rule_s() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.event(w, "ADDED", ("a", "u1", 21)).event(w, "ADDED", ("b", "u2", 23)).event(w, "DELETED", ("a", "u1", 21));
        assert!(s.keeps(&RULE));
    }
}
