#![doc = include_str!("../../../docs/rules/watch-duplicate.md")]

use crate::check::etcd;
use crate::check::facts::stream_view::StreamView;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Rule, RuleResult};
use crate::history::Revision;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-duplicate",
    title: "one watch delivers each change once",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch",
    causes: &["watch-prehistory"],
    page: include_str!("../../../docs/rules/watch-duplicate.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::watches::duplicate),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for view in StreamView::all(evidence) {
        let mut reached = Revision::NONE;
        // Only an event at or below the highest revision can be a repeat. The lookup table is built at the first one.
        let mut first = None;
        let unmarked = if view.marker.is_some() { view.live.clone() } else { view.initial.start..view.live.end };
        if view.marker.is_some() {
            reached = view.changes(view.initial.clone()).map(|(_, d)| d.revision).max().unwrap_or_default();
        }
        for (index, d) in view.changes(unmarked) {
            result.checked(view.operation.incarnation);
            if d.revision > reached {
                reached = d.revision;
                continue;
            }
            let first = first.get_or_insert_with(|| view.first_deliveries());
            let Some(&earlier) = first.get(&(d.key, d.revision)).filter(|&&e| e < index) else { continue };
            let (event, before) = (evidence.delivery_words(index), evidence.delivery_words(earlier));
            let draft = Draft {
                summary: format!(
                    "{} received the change of {} at revision {} twice on one stream",
                    evidence.observer_words(&view.operation),
                    evidence.history.key_name(d.key),
                    d.revision
                ),
                facts: vec![
                    evidence.delivery(earlier, view.watch, format!("received {before}")),
                    evidence.delivery(index, view.watch, format!("received {event} again on the same stream")),
                ],
                reason: "A watch delivers each change once: one revision of one key is one change.".to_owned(),
                refuted_by: "a record that shows two streams here".to_owned(),
                consequence: "a client that counts events, or reacts to each, acts twice on one change".to_owned(),
                ..view.draft(d.key)
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
    fn finds_a_change_that_comes_twice() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20");
        s.event(w, "MODIFIED", ("web-0", "u1", 23)).event(w, "MODIFIED", ("web-1", "u2", 24));
        assert!(s.keeps(&RULE));
        s.event(w, "MODIFIED", ("web-0", "u1", 23));
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }

    #[test]
    fn two_streams_and_bookmarks_may_repeat() {
        let mut s = Specimen::new();
        for _ in 0..2 {
            let w = s.watch("&resourceVersion=20");
            s.event(w, "MODIFIED", ("web-0", "u1", 23)).bookmark(w, 23, false).bookmark(w, 23, false);
        }
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_saved_file_may_hold_two_streams() {
        let object = r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"d","name":"a","uid":"u","resourceVersion":"5"}}}"#;
        let mut s = Specimen::new();
        s.file("w.json", &[object, object].join("\n"));
        assert_eq!(s.kinds(&RULE), [Kind::Suspect]);
    }
}
