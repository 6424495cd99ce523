#![doc = include_str!("../../../docs/rules/watch-prehistory.md")]

use crate::check::etcd;
use crate::check::facts::stream_view::StreamView;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, Marks, Revision};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-prehistory",
    title: "a watch from revision N delivers only changes after N",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch with a resourceVersion",
    causes: &["delete-version"],
    page: include_str!("../../../docs/rules/watch-prehistory.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::watches::prehistory),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for view in StreamView::all(evidence) {
        let Some(start) = view.start else {
            from_now(evidence, &view, result);
            continue;
        };
        for (index, d) in view.changes(view.live.clone()) {
            result.checked(view.operation.incarnation);
            if d.revision > start {
                continue;
            }
            let event = evidence.delivery_words(index);
            let draft = Draft {
                summary: format!(
                    "{} asked {} for the changes after revision {start} and received {event}",
                    evidence.observer_words(&view.operation),
                    evidence.server_words(&view.operation),
                ),
                facts: vec![
                    evidence.request(view.watch, start, format!("asked for every change after revision {start}")),
                    evidence.delivery(index, view.watch, format!("received {event}")),
                ],
                reason: format!(
                    "A watch from revision {start} starts after it, and an event at {} lies before that start.",
                    d.revision
                ),
                refuted_by: "a record of the request that shows another resourceVersion".to_owned(),
                consequence: "a client that applies the event goes back to an older state".to_owned(),
                ..view.draft(d.key)
            };
            result.found(view.settle(draft));
        }
    }
}

/// A watch without version and without initial events. The API documents that it starts at the most recent state.
fn from_now(evidence: &Evidence<'_>, view: &StreamView<'_>, result: &mut RuleResult<'_>) {
    let o = view.operation;
    if o.asked != Asked::Unset || !o.marks.has(Marks::NO_INITIAL_EVENTS) || !o.invoke.is_known() {
        return;
    }
    let resource = evidence.history.scopes[o.scope.index()].resource;
    let watermark = evidence.order.watermarks.before_request(evidence.history, &evidence.order.clocks, resource, &o);
    let Some(watermark) = watermark else { return };
    for (index, d) in view.changes(view.live.clone()) {
        result.checked(o.incarnation);
        if d.revision > watermark.revision {
            continue;
        }
        let event = evidence.delivery_words(index);
        let reached = format!("revision {} had been reached", watermark.revision);
        let draft = Draft {
            kind: Kind::Suspect,
            summary: format!(
                "{} asked {} for the changes from now on and received {event}, although revision {} was complete before",
                evidence.observer_words(&o),
                evidence.server_words(&o),
                watermark.revision
            ),
            facts: vec![
                evidence.showing(watermark.showing, watermark.revision, reached),
                evidence.request(view.watch, Revision::NONE, format!("{} was sent", view.words())),
                evidence.delivery(index, view.watch, format!("received {event}")),
            ],
            reason: "A watch without resourceVersion and without initial events is documented to start at the most recent state. Not proved: \
                     servers start such a watch from their cache, which may be stale."
                .to_owned(),
            refuted_by: "a promise of the server's release to start such a watch from its cache".to_owned(),
            consequence: "a client that applies the event goes back to an older state".to_owned(),
            ..view.draft(d.key)
        };
        result.found(draft);
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::testing::specimen::Specimen;

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
