#![doc = include_str!("../../../docs/rules/stale-consistent-read.md")]

use crate::check::etcd;
use crate::check::facts::removals::{AnsweredDeletions, Ended};
use crate::check::facts::staleness;
use crate::check::facts::staleness::Staleness;
use crate::check::facts::{absence, removals};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{Operation, OperationId, Verb};
use crate::model::{Promise, promise};
use crate::order::ListRevision;
use std::cell::OnceCell;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "stale-consistent-read",
    title: "a read without resourceVersion returns a state that includes every write complete before it was sent",
    group: Group::Reads,
    promise: BrokenBy::Server,
    needs: "a list or read without resourceVersion, the revision of its answer, and an earlier answer of the same resource",
    causes: &["revision-rewind", "split-timeline", "revision-reuse"],
    page: include_str!("../../../docs/rules/stale-consistent-read.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::reads::stale),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let deletions = OnceCell::new();
    for (id, o) in evidence.of_verbs(&[Verb::Get, Verb::List, Verb::DeleteCollection]) {
        if promise(evidence.history, &o, None).0 != Promise::MostRecent || !o.invoke.is_known() {
            continue;
        }
        match o.verb {
            Verb::List | Verb::DeleteCollection => list(evidence, result, id, &o, &deletions),
            _ if o.is_answered() && o.key.is_some() && o.answered.is_some() => object(evidence, result, id, &o),
            _ if absence::is_absence(&o) => absent(evidence, result, id, &o),
            _ => {}
        }
    }
}

fn list(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    id: OperationId,
    o: &Operation,
    deletions: &OnceCell<AnsweredDeletions>,
) {
    let Some((revision, known)) = evidence.order.list_revision(evidence.history, id) else { return };
    result.checked(o.incarnation);
    let resource = evidence.history.scopes[o.scope.index()].resource;
    let bound = staleness::bound(evidence, resource, o).filter(|bound| *bound > revision);
    let lag = bound.and_then(|bound| {
        let interval = (revision, bound);
        Staleness::of_interval(evidence, interval, o).or_else(|| {
            let deletions = deletions.get_or_init(|| AnsweredDeletions::collect(evidence));
            let deletion = deletions.first(evidence, o.scope, interval).unwrap_or_else(|_| {
                result.undecided("deletions that were not compared with a list, because its selector leaves many open");
                None
            });
            Staleness::by(evidence, deletion?, o)
        })
    });
    let Some(lag) = lag else {
        let items = evidence.history.items_of(o).iter();
        let shown = items.filter_map(|item| Some((item, removals::answered_before(evidence, item, o)?))).next();
        if let Some((item, removal)) = shown {
            let fact = evidence.item(id, item.key, item.uid, revision, "the list showed it".to_owned());
            still_there(evidence, result, o, removal, fact);
        }
        return;
    };
    let mut facts = lag.facts(evidence);
    facts.push(staleness::answer(evidence, id, revision, &format!("the state of revision {revision}")));
    let mut draft = draft(evidence, o, facts, format!("the state of revision {revision}"), &lag);
    if let ListRevision::Pair(watch) = known {
        draft.kind = Kind::Suspect;
        draft.facts.push(evidence.request(
            watch,
            revision,
            format!("the same client then watched from revision {revision}"),
        ));
        draft.reason = format!(
            "{} Not proved: the list's own answer is not recorded, and only the start of the watch after it names its \
            revision.",
            draft.reason
        );
    }
    result.found(lag.settle(draft));
}

fn object(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId, o: &Operation) {
    result.checked(o.incarnation);
    let timeline = &evidence.order.timeline;
    let answered = format!("version {}", o.answered);
    let fact = || staleness::answer(evidence, id, o.answered, &answered);
    let resource = evidence.history.resource_of(o.key);
    let is_current = evidence.order.frontiers.is_current(id);
    let bound = if is_current { None } else { staleness::bound(evidence, resource, o) };
    if let Some(later) = bound.and_then(|bound| timeline.between(o.key, o.answered, bound).first()) {
        if let Some(lag) = Staleness::by(evidence, later, o) {
            let mut facts = lag.facts(evidence);
            facts.push(fact());
            result.found(lag.settle(draft(evidence, o, facts, answered.clone(), &lag)));
        }
        return;
    }
    if let Some(removal) = removals::answered_before(evidence, &o.answered_item(), o) {
        still_there(evidence, result, o, removal, fact());
    }
}

fn still_there(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, o: &Operation, removal: Ended, fact: Fact) {
    let name = evidence.history.key_name(removal.key);
    let says = removal.says(evidence);
    let facts = vec![Fact { key: removal.key, ..evidence.operation(removal.operation, removal.after, says) }, fact];
    result.found(Draft {
        summary: format!(
            "{} asked for the most recent state ({}) and received {name}, which {} before",
            evidence.observer_words(o),
            evidence.history.request_name(o),
            removal.had_been()
        ),
        ..bare(evidence, o, facts)
    });
}

/// A 404 for an object that existed from before the request until after the answer.
fn absent(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId, o: &Operation) {
    let order = evidence.order;
    let resource = evidence.history.resource_of(o.key);
    let Some(watermark) = order.watermarks.before_request(evidence.history, &order.clocks, resource, o) else {
        return;
    };
    if !absence::certainly_existed(evidence, o.key, watermark.revision) {
        return;
    }
    result.checked(o.incarnation);
    let Some(facts) = absence::refuted(evidence, id, o, watermark.revision) else { return };
    result.found(Draft {
        summary: format!(
            "{} read {} without resourceVersion and received 404, although the object existed the whole time",
            evidence.observer_words(o),
            evidence.history.key_name(o.key)
        ),
        ..bare(evidence, o, facts)
    });
}

fn draft(evidence: &Evidence<'_>, o: &Operation, facts: Vec<Fact>, answered: String, lag: &Staleness) -> Draft {
    Draft {
        summary: format!(
            "{} asked {} for the most recent state ({}) and received {answered}, although revision {} was complete before",
            evidence.observer_words(o),
            evidence.server_words(o),
            evidence.history.request_name(o),
            lag.version.revision
        ),
        ..bare(evidence, o, facts)
    }
}

fn bare(evidence: &Evidence<'_>, o: &Operation, facts: Vec<Fact>) -> Draft {
    let (_, row) = promise(evidence.history, o, None);
    Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key: o.key,
        cause: evidence.cause(o),
        summary: String::new(),
        facts,
        reason: format!("With {}, the server promises {}.", row.condition, row.promise),
        refuted_by: "a clock step between the write's answer and the read".to_owned(),
        consequence: "a client that reads without a version to be safe acts on an old state".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;
    use crate::check::testing::trial::{judged, kinds, read};
    use crate::history::sketch::evidence;

    #[test]
    fn finds_a_list_below_a_completed_write() {
        for (revision, found) in [(37, 1), (39, 0), (45, 0)] {
            let mut s = Specimen::new();
            s.create("web-0", "u", 39).list("", revision, &[]);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{revision}");
        }
    }

    #[test]
    fn other_ways_of_asking_promise_nothing_of_the_sort() {
        let mut s = Specimen::new();
        s.create("web-0", "u", 39).list("?resourceVersion=0", 37, &[]).list("?resourceVersion=37", 37, &[]);
        s.list("?resourceVersion=0&limit=500", 37, &[]);
        assert!(s.kinds(&RULE).is_empty());
    }

    #[test]
    fn a_write_outside_the_scope_or_still_under_way_does_not_count() {
        let mut s = Specimen::new();
        s.create("other/web-0", "u", 39).list("", 37, &[]);
        assert!(s.keeps(&RULE));
        let mut s = Specimen::new();
        s.list("", 37, &[]).create("web-0", "u", 39);
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn two_clocks_that_nothing_ties_give_a_suspect() {
        let mut s = Specimen::new();
        s.client("writer", "a", "other").create("web-0", "u", 39).client("reader", "a", "wall").list("", 37, &[]);
        assert_eq!(s.kinds(&RULE), [Kind::Suspect]);
    }

    #[test]
    fn finds_an_old_object() {
        for (version, found) in [(37, 1), (39, 0)] {
            let mut s = Specimen::new();
            s.update("web-0", "u", 37, 39).get("web-0", "", Some(("u", version)));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
            assert!(found > 0 || s.keeps(&RULE));
        }
    }

    #[test]
    fn finds_an_object_that_was_removed_and_not_its_successor() {
        for (uid, version, found) in [("u", 37, 1), ("u2", 41, 0)] {
            let mut s = Specimen::new();
            s.create("web-0", "u", 37).delete("web-0", "u").get("web-0", "", Some((uid, version)));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
        }
    }

    #[test]
    fn finds_a_denied_object_only_where_it_was_there_all_along() {
        let mut s = Specimen::new();
        s.create("web-0", "u", 37).get("web-0", "", None);
        assert!(s.kinds(&RULE).is_empty(), "it may have been deleted without a record");
        s.update("web-0", "u", 37, 39);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }

    #[test]
    fn an_object_that_is_read_again_was_not_gone_in_between() {
        let denied = |again: &dyn Fn(&mut Specimen) -> &mut Specimen| {
            let mut s = Specimen::new();
            s.create("web-0", "u", 37).get("web-0", "", None);
            again(&mut s);
            s.kinds(&RULE)
        };
        assert_eq!(denied(&|s| s.get("web-0", "", Some(("u", 37)))), [Kind::Violation]);
        assert_eq!(denied(&|s| s.list("", 45, &[("web-0", "u", 37)])), [Kind::Violation]);
        // A cache may be stale, and another object of the name may exist.
        assert_eq!(denied(&|s| s.get("web-0", "?resourceVersion=0", Some(("u", 37)))), []);
        assert_eq!(denied(&|s| s.list("?resourceVersion=0", 45, &[("web-0", "u", 37)])), []);
        assert_eq!(denied(&|s| s.get("web-0", "", Some(("u2", 41)))), []);
        let mut s = Specimen::new();
        s.create("web-0", "u", 37).get("web-0", "", Some(("u", 37))).get("web-0", "", None);
        assert!(s.kinds(&RULE).is_empty(), "read before, not after");
    }

    #[test]
    fn a_watch_from_the_past_after_a_list_for_the_most_recent_state_convicts_nobody() {
        let story = "recorded audit\nlevel metadata\nb@A PUT y:u2@30 => bare\nb@A PUT y:u2@31 => bare\nc@A PUT x:u1@35 => bare\n--- 1s\n\
                     c@A LIST => bare\nc@A WATCH from 22\n";
        for rule in [crate::check::sessions::monotonic_reads::RULE, crate::check::sessions::read_your_writes::RULE] {
            assert_eq!(kinds(&rule, story), [], "{}", rule.slug);
            assert_eq!(
                kinds(&rule, &story.replace("LIST", "LIST rv=0")).len(),
                usize::from(rule.slug == "monotonic-reads")
            );
        }
        assert!(!kinds(&RULE, story).contains(&Kind::Violation));
    }

    #[test]
    fn a_path_that_is_not_served_is_no_absence() {
        let story = "default widgets\nc@A CREATE a => a:u1@40\nc@A GET a => !404\nc@A PUT a:u1@40 => a:u1@49\n";
        let made = evidence(story).unwrap_or_else(|error| panic!("{error}"));
        let said = |message: &str| {
            let text = |text: &String| text.replace(r#"widgets.example.com \"a\" not found"#, message);
            let files: Vec<_> = made.files.iter().map(|(name, lines)| (name.clone(), text(lines))).collect();
            judged(&RULE, &read(files.iter().map(|(name, lines)| (name.as_str(), lines.as_str())), &[])).kinds()
        };
        assert_eq!(said("not found"), [Kind::Violation]);
        assert_eq!(said("the server could not find the requested resource"), []);
        assert_eq!(said("the server could not find the requested resource (get widgets.example.com a)"), []);
        assert_eq!(said(r#"not found","details":{"name":"a","kind":"widgets"},"x":""#), [Kind::Violation]);
        assert_eq!(said(r#"not found","details":{},"x":""#), []);
    }
}
