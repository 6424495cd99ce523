#![doc = include_str!("../../../docs/rules/watch-reorder.md")]

use crate::check::etcd;
use crate::check::facts::stream_view::StreamView;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::Revision;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-reorder",
    title: "a watch delivers changes in the order of their revisions",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch",
    causes: &["watch-prehistory", "watch-duplicate"],
    page: include_str!("../../../docs/rules/watch-reorder.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::watches::reorder),
};

/// Larger versions come from stores other than etcd, for which no contract says that a version is one change.
const MAX_ETCD_REVISION: Revision = Revision::new(1_000_000_000_000_000);

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for view in StreamView::all(evidence) {
        let mut last: Option<(usize, Revision)> = None;
        let mut first = None;
        for (index, d) in view.changes(view.live.clone()) {
            if view.start.is_some_and(|start| d.revision <= start) {
                continue;
            }
            let Some((before, reached)) = last else {
                last = Some((index, d.revision));
                continue;
            };
            result.checked(view.operation.incarnation);
            if d.revision > reached {
                last = Some((index, d.revision));
                continue;
            }
            let first = first.get_or_insert_with(|| view.first_deliveries());
            if first.get(&(d.key, d.revision)).is_some_and(|&earlier| earlier < index) {
                continue;
            }
            let (event, earlier) = (evidence.delivery_words(index), evidence.delivery_words(before));
            let tied = d.revision == reached;
            let draft = Draft {
                kind: if tied && d.revision > MAX_ETCD_REVISION { Kind::Suspect } else { Kind::Violation },
                broken_by: BrokenBy::Server,
                incarnation: view.operation.incarnation,
                key: d.key,
                cause: view.cause(),
                summary: format!(
                    "{} received {event} after {earlier} on one stream",
                    evidence.observer_words(&view.operation)
                ),
                facts: vec![
                    evidence.delivery(before, view.watch, format!("received {earlier}")),
                    evidence.delivery(index, view.watch, format!("received {event} later on the same stream")),
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
                consequence: "a client that keeps the last event of an object keeps an older state as the current one"
                    .to_owned(),
            };
            result.found(view.settle(draft));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;

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
