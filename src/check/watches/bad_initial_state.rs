#![doc = include_str!("../../../docs/rules/bad-initial-state.md")]

use crate::check::facts::removals;
use crate::check::facts::staleness::Staleness;
use crate::check::facts::state_check::{Absence, Examiner, Shown, Snapshot, unless_open};
use crate::check::facts::stream_view::StreamView;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{Delivery, DeliveryKind, KeyId, Marks, Revision};
use crate::model::{Promise, promise};
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "bad-initial-state",
    title: "the initial events of a watch are the state of the bookmark `initial-events-end` that ends them",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "a watch whose initial events end with a bookmark",
    causes: &["revision-rewind", "split-timeline", "revision-reuse", "delete-version"],
    page: include_str!("../../../docs/rules/bad-initial-state.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let mut examiner = None;
    for view in StreamView::all(evidence).filter(|c| !c.is_saved()) {
        let Some(marker) = view.marker else {
            missing_marker(evidence, result, &view);
            continue;
        };
        let Delivery { revision, position: end, at, .. } = evidence.history.deliveries[marker];
        if !revision.is_some() {
            continue;
        }
        result.checked(view.operation.incarnation);
        too_old(evidence, result, &view, marker, revision);
        let examiner = examiner.get_or_insert_with(|| Examiner::new(evidence));
        let state = snapshot(evidence, &view, revision);
        phantom(evidence, result, &view, &state);
        for mut flaw in examiner.flaws(&state) {
            // The marker completes the state, so a fact about the whole state cites the marker's line.
            let whole = |fact: &&mut Fact| {
                (fact.operation, fact.position, fact.revision) == (view.watch, view.operation.position, revision)
            };
            for fact in flaw.facts.iter_mut().filter(whole) {
                (fact.position, fact.time) = (end, at);
            }
            let draft = draft(evidence, &view, flaw.key, flaw.says, flaw.facts, flaw.reason);
            result.found(evidence.unless_lost_before(unless_open(draft, flaw.open), Some(end)));
        }
    }
    let Some(examiner) = examiner else { return };
    result.undecided_many("missing objects of unknown labels, in initial states with a selector", examiner.unselected);
    result.undecided_many(
        "initial states that were not searched for missing objects, because the limit of one run was reached",
        examiner.skipped,
    );
    result.undecided_many("initial states with more errors than are reported", examiner.cut);
}

/// The state after the initial events. Its absence is open where an event's effect is unknown.
fn snapshot(evidence: &Evidence<'_>, view: &StreamView<'_>, revision: Revision) -> Snapshot {
    let history = evidence.history;
    let mut absence = Absence::Whole;
    let mut items: Vec<Option<Shown>> = Vec::new();
    let mut live: FxHashMap<KeyId, Vec<usize>> = FxHashMap::default();
    for index in view.initial.clone() {
        let d = &history.deliveries[index];
        let misdated = evidence.order.timeline.is_misdated(index);
        if misdated || d.kind == DeliveryKind::Unidentified {
            // The event's effect on the state is unknown.
            absence = Absence::Open;
        }
        if !d.key.is_some() {
            continue;
        }
        let shown = Some(Shown { version: d.item(), delivery: Some(index) });
        let of_key = live.entry(d.key).or_default();
        if misdated || d.kind == DeliveryKind::Deleted {
            for at in of_key.drain(..) {
                items[at] = None;
            }
        } else if let (DeliveryKind::Modified, Some(&at)) = (d.kind, of_key.last()) {
            items[at] = shown;
        } else {
            // ADDED twice for one key is an error of the state, so both items stay.
            of_key.push(items.len());
            items.push(shown);
        }
    }
    Snapshot {
        scope: view.operation.scope,
        revision,
        operation: view.watch,
        items: items.into_iter().flatten().collect(),
        absence,
        what: "the initial part",
    }
}

fn too_old(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    view: &StreamView<'_>,
    marker: usize,
    revision: Revision,
) {
    let o = view.operation;
    let (promised, row) = promise(evidence.history, &o, Some(view.stream));
    let reason = format!("With {}, the server promises {}.", row.condition, row.promise);
    let ended = || evidence.delivery(marker, view.watch, format!("its initial events ended at revision {revision}"));
    match promised {
        Promise::NotOlderThan(minimum) if revision < minimum => {
            let asked =
                evidence.request(view.watch, minimum, format!("asked for the state of revision {minimum} or later"));
            let says = format!("is of revision {revision}, below the minimum of {minimum}");
            found(evidence, result, view, KeyId::NONE, says, vec![asked, ended()], reason);
        }
        Promise::MostRecent if o.invoke.is_known() => {
            let Some(lag) = Staleness::of_scope(evidence, revision, &o) else { return };
            let mut facts = lag.facts(evidence);
            facts.push(evidence.request(view.watch, Revision::NONE, format!("{} was sent", view.words())));
            facts.push(ended());
            let says =
                format!("is of revision {revision}, although revision {} was complete before", lag.version.revision);
            let draft = draft(evidence, view, KeyId::NONE, says, facts, reason);
            result.found(lag.settle(draft));
        }
        _ => {}
    }
}

/// Reports objects in a most recent state although their removal, at an unknown revision, was answered before the watch was
/// sent.
fn phantom(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, view: &StreamView<'_>, state: &Snapshot) {
    let o = view.operation;
    let (promised, row) = promise(evidence.history, &o, Some(view.stream));
    if promised != Promise::MostRecent || !o.invoke.is_known() {
        return;
    }
    for item in &state.items {
        let Some(removal) = removals::answered_before(evidence, &item.version, &o) else { continue };
        // A removal at or below the marker makes the state itself wrong, which the examiner reports.
        if removals::through(evidence, &item.version, state.revision).is_some() {
            continue;
        }
        let name = evidence.history.key_name(item.version.key);
        let removed = evidence.operation(removal.operation, removal.after, removal.says(evidence));
        let mut facts = vec![Fact { key: item.version.key, uid: item.version.uid, ..removed }];
        facts.push(evidence.request(view.watch, Revision::NONE, format!("{} was sent", view.words())));
        let shown =
            |index| evidence.delivery(index, view.watch, format!("received {}", evidence.delivery_words(index)));
        facts.extend(item.delivery.map(shown));
        let reason = format!("With {}, the server promises {}.", row.condition, row.promise);
        found(
            evidence,
            result,
            view,
            item.version.key,
            format!("shows {name}, which {} before", removal.had_been()),
            facts,
            reason,
        );
    }
}

fn missing_marker(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, view: &StreamView<'_>) {
    let o = view.operation;
    if !o.marks.has(Marks::INITIAL_EVENTS) || !o.marks.has(Marks::BOOKMARKS) {
        return;
    }
    result.checked(o.incarnation);
    let all = view.initial.start..view.live.end;
    let mut on = None;
    for index in all {
        match evidence.history.deliveries[index].kind {
            DeliveryKind::Error => return,
            DeliveryKind::Bookmark => {
                on = Some((index, Kind::Violation));
                break;
            }
            DeliveryKind::Modified | DeliveryKind::Deleted if on.is_none() => on = Some((index, Kind::Suspect)),
            _ => {}
        }
    }
    let Some((index, kind)) = on else { return };
    let facts = vec![
        evidence.request(
            view.watch,
            o.asked_revision,
            format!("asked for initial events and bookmarks: {}", view.words()),
        ),
        evidence.delivery(
            index,
            view.watch,
            format!("received {}, and no end of the initial events before it", evidence.delivery_words(index)),
        ),
    ];
    let reason =
        "Initial events end with the bookmark initial-events-end, before any other bookmark (KEP-3157).".to_owned();
    let mut draft =
        draft(evidence, view, KeyId::NONE, "had no end, although the stream continued".to_owned(), facts, reason);
    draft.kind = kind;
    if kind == Kind::Suspect {
        draft.reason += " Not proved: releases before 1.30 may deliver changes before that bookmark.";
    }
    result.found(evidence.unless_lost(draft));
}

fn found(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    view: &StreamView<'_>,
    key: KeyId,
    says: String,
    facts: Vec<Fact>,
    reason: String,
) {
    result.found(draft(evidence, view, key, says, facts, reason));
}

fn draft(
    evidence: &Evidence<'_>,
    view: &StreamView<'_>,
    key: KeyId,
    says: String,
    facts: Vec<Fact>,
    reason: String,
) -> Draft {
    Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: view.operation.incarnation,
        key,
        cause: view.cause(),
        summary: format!(
            "{} sent {} an initial part ({}) that {says}",
            evidence.server_words(&view.operation),
            evidence.observer_words(&view.operation),
            view.words()
        ),
        facts,
        reason,
        refuted_by: "a record of the stream with other events in its initial part".to_owned(),
        consequence: "a cache that starts from these events stays wrong: the stream after them never repairs it"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;
    use crate::check::testing::trial::{drawn, judged};

    const LIST: &str = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

    #[test]
    fn what_is_missing_is_missing_when_the_marker_comes() {
        let text =
            "web@A  CREATE a => a:u1@10\nctrl@B  WATCH initial rv=0 +b:u2@8 ^^12\nweb@A  PUT a:u1@10 => a:u1@20\n";
        let history = drawn(text);
        let found = judged(&RULE, &history).findings;
        let facts = &found[0].certificate.facts;
        let marker = history.deliveries.last().expect("the marker");
        assert!(facts.iter().any(|fact| (fact.position, fact.time) == (marker.position, marker.at)), "{facts:?}");
    }

    #[test]
    fn an_object_of_unknown_labels_that_a_selected_state_lacks_is_counted() {
        // Only the uid of the update is recorded, so its labels may have changed at 20.
        let text = "web@A  CREATE a[app=web] => a:u1@10[app=web]\nweb@A  PUT a:u1@10[?] => a:u1@20[?]\n\
                    ctrl@B  WATCH initial rv=0 labels(app=web) ^^22\nweb@A  PUT a:u1@20[?] => a:u1@30[?]\n";
        let trial = judged(&RULE, &drawn(text));
        assert_eq!((trial.findings.len(), trial.checked, trial.undecided), (0, 1, 1), "{:?}", trial.findings);
    }

    #[test]
    fn finds_a_missing_object_and_keeps_a_full_state() {
        for (items, found) in [(0, 1), (1, 0)] {
            let mut s = Specimen::new();
            s.create("a", "u1", 30);
            let w = s.watch(LIST);
            if items == 1 {
                s.event(w, "ADDED", ("a", "u1", 30));
            }
            s.bookmark(w, 44, true).update("a", "u1", 30, 52);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
            assert!(found > 0 || s.keeps(&RULE));
        }
    }

    #[test]
    fn finds_wrong_versions_and_a_key_twice() {
        let mut s = Specimen::new();
        let w = s.watch(LIST);
        s.event(w, "ADDED", ("a", "u1", 50)).bookmark(w, 44, true);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=0&allowWatchBookmarks=true");
        s.event(w, "ADDED", ("a", "u1", 30)).event(w, "ADDED", ("a", "u1", 31)).bookmark(w, 44, true);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }

    #[test]
    fn changes_before_the_bookmark_are_part_of_the_state() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=0&allowWatchBookmarks=true");
        s.event(w, "ADDED", ("b", "u2", 31)).event(w, "ADDED", ("a", "u1", 30)).event(w, "MODIFIED", ("a", "u1", 40));
        s.event(w, "DELETED", ("b", "u2", 41)).bookmark(w, 44, true);
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn finds_a_bookmark_that_is_too_old_for_the_request() {
        for (query, revision, found) in [(LIST, 39, 0), (LIST, 38, 1), ("&resourceVersion=0", 38, 0)] {
            let mut s = Specimen::new();
            s.create("a", "u1", 39);
            let w = s.watch(query);
            if revision == 39 {
                s.event(w, "ADDED", ("a", "u1", 39));
            }
            s.bookmark(w, revision, true);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{query}");
        }
        for (revision, found) in [(60, 0), (59, 1)] {
            let mut s = Specimen::new();
            let w = s.watch(&format!("{LIST}&resourceVersion=60"));
            s.bookmark(w, revision, true);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
        }
    }

    #[test]
    fn finds_a_bookmark_left_out_and_forgives_streams_that_end_or_never_asked() {
        for (query, kinds) in [(LIST, vec![Kind::Violation]), ("&resourceVersion=0&allowWatchBookmarks=true", vec![])] {
            let mut s = Specimen::new();
            let w = s.watch(query);
            s.event(w, "ADDED", ("a", "u1", 30)).bookmark(w, 44, false);
            assert_eq!(s.kinds(&RULE), kinds, "{query}");
        }
        let mut s = Specimen::new();
        let w = s.watch(LIST);
        s.event(w, "ADDED", ("a", "u1", 30)).error(w, 504);
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_line_that_could_not_be_used_may_have_been_what_is_missing() {
        for (damaged, found) in [(false, Kind::Violation), (true, Kind::Suspect)] {
            let mut s = Specimen::new();
            s.update("a", "u", 31, 45);
            let w = s.watch("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
            if damaged {
                s.event(w, "ADDED", ("a", "u", 45)).cut();
            }
            s.bookmark(w, 45, true);
            assert_eq!(s.kinds(&RULE), [found]);
        }
    }
}
