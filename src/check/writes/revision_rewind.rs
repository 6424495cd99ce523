#![doc = include_str!("../../../docs/rules/revision-rewind.md")]

use crate::check::etcd;
use crate::check::facts::commit_evidence;
use crate::check::facts::lone_witness;
use crate::check::facts::staleness;
use crate::check::facts::staleness::Staleness;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{Operation, OperationId, Revision};
use crate::order::{Relation, Watermark};

/// A smaller offset between clocks is usual.
const SKEW: i64 = 1_000_000_000;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "revision-rewind",
    title: "a write commits above every revision that was complete before the write was sent",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "a write with a revision that its answer proves, and an earlier answer",
    causes: &["revision-reuse", "torn-snapshot"],
    page: include_str!("../../../docs/rules/revision-rewind.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::writes::rewind),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let removals = commit_evidence::removals(evidence);
    for (id, o) in evidence.operations() {
        let removed = || removals.get(&id).map(|v| v.revision);
        let Some(revision) = commit_evidence::proven(evidence, &o).or_else(removed) else {
            if commit_evidence::shown(evidence, &o).is_some() && o.invoke.is_known() {
                fallen(evidence, result, id, &o);
            }
            continue;
        };
        if !o.invoke.is_known() {
            continue;
        }
        let resource = evidence.history.resource_of(o.key);
        result.checked(o.incarnation);
        if o.answered == revision && commit_evidence::is_above_all(evidence, id, &o) {
            continue;
        }
        let order = evidence.order;
        let rewound = |watermark: &Watermark| watermark.revision > revision;
        let proved = order.watermarks.before_request(evidence.history, &order.clocks, resource, &o);
        if let Some(watermark) = proved.filter(rewound) {
            result.found(draft(evidence, id, revision, watermark, None));
            continue;
        }
        if let Some(watermark) = order.watermarks.against(evidence.history, id).filter(rewound) {
            if !lone_witness::is_told(evidence, watermark.showing) {
                let gap = order.clocks.step(o.clock).map(|_| o.invoke.since(watermark.time));
                let mut draft = draft(evidence, id, revision, watermark, gap);
                if let Some(doubt) = lone_witness::doubt(evidence, watermark.showing) {
                    (draft.kind, draft.reason) = (Kind::Suspect, doubt);
                }
                result.found(draft);
            }
            continue;
        }
        let bare = order.watermarks.before_by_the_clock(evidence.history, resource, o.invoke);
        if let Some(watermark) = bare.filter(rewound) {
            let gap = o.invoke.since(watermark.time);
            let stepped = order.clocks.step(o.clock).or(order.clocks.step(watermark.clock)).is_some();
            let proved = order.clocks.relation((watermark.time, watermark.clock), (o.invoke, o.clock));
            if stepped || (matches!(proved, Relation::BeforeUnless(_)) && gap >= SKEW) {
                result.found(draft(evidence, id, revision, watermark, Some(gap)));
            }
        }
    }
}

/// An accepted update is answered with the last version of its object, whether it changed the object or not.
fn fallen(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId, o: &Operation) {
    let history = evidence.history;
    result.checked(o.incarnation);
    let Some(bound) = staleness::bound(evidence, history.resource_of(o.key), o) else { return };
    let Some(later) = evidence.order.timeline.between(o.key, o.answered, bound).first() else { return };
    let Some(lag) = Staleness::by(evidence, later, o) else { return };
    let (what, key) = (history.request_name(o), history.key_name(o.key));
    let mut facts = lag.facts(evidence);
    facts.push(staleness::answer(evidence, id, o.answered, &format!("version {}", o.answered)));
    result.found(lag.settle(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary: format!(
            "{what} was answered with version {} although version {} of {key} was complete before it was sent: the store went back",
            o.answered, later.revision
        ),
        facts,
        reason: "An accepted update is answered with the version that it made, or with the current one if it changed \
                nothing.".to_owned(),
        refuted_by: "evidence that the two answers came from different etcd clusters, or a clock offset that puts the write first"
            .to_owned(),
        consequence: "versions of the object are lost, and writes on those versions are refused or undo other writes"
            .to_owned(),
    }));
}

fn draft(
    evidence: &Evidence<'_>,
    id: OperationId,
    revision: Revision,
    watermark: Watermark,
    unless: Option<i64>,
) -> Draft {
    let history = evidence.history;
    let o = history.operation(id);
    let resource = history.resource_name(history.resource_of(o.key));
    let what = history.request_name(&o);
    let reason = match unless {
        None => "etcd's revision only grows, so a write that is sent after an answer showed a revision commits above \
                that revision."
            .to_owned(),
        Some(offset) if o.clock == watermark.clock => staleness::set_back(offset),
        Some(offset) => format!(
            "Nothing proves that the two times are of one clock: an offset of {} ms explains the order of the two times.",
            offset as f64 / 1e6
        ),
    };
    Draft {
        kind: if unless.is_none() { Kind::Violation } else { Kind::Suspect },
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key: o.key,
        cause: resource,
        summary: format!(
            "{what} committed at revision {revision} although revision {} was complete before it was sent: the store went back",
            watermark.revision
        ),
        facts: vec![
            evidence.showing(
                watermark.showing,
                watermark.revision,
                format!("an answer showed revision {}", watermark.revision),
            ),
            evidence.request(id, Revision::NONE, format!("{what} was sent")),
            evidence.operation(id, revision, format!("it was answered as committed at revision {revision}")),
        ],
        reason,
        refuted_by:
            "evidence that the two answers came from different etcd clusters, or a clock offset that puts the write \
                     first"
                .into(),
        consequence:
            "writes between the two revisions are lost, and clients at the higher revision miss changes until the \
            counter passes it"
                .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn a_commit_below_what_was_complete_before_is_a_rewind() {
        assert_eq!(kinds(&RULE, "a@A LIST => 1200 {}\na@A CREATE x => x:u1@1003\n"), [Kind::Violation]);
        assert!(holds(&RULE, "a@A LIST => 1200 {}\na@A CREATE x => x:u1@1203\n"));
    }

    #[test]
    fn the_log_of_one_server_needs_no_second_clock() {
        let text = "recorded audit\na@A LIST => 1200 {}\nb@A CREATE x => x:u1@1003\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
    }

    #[test]
    fn requests_that_overlap_have_no_order() {
        assert!(holds(&RULE, "a@A |--LIST => 1200 {}--|\nb@A |--CREATE x => x:u1@1199--|\n"));
    }

    #[test]
    fn what_commits_nothing_is_no_write() {
        let seen = "a@A LIST => 1200 {x:u1@900}\n";
        assert_eq!(kinds(&RULE, &format!("{seen}a@A PUT x:u1@900 => x:u1@900\n")), []);
        assert_eq!(kinds(&RULE, &format!("{seen}a@A PATCH x => x:u1@900\n")), []);
        // Nor is a write whose answer shows less than the object's state at that time.
        assert_eq!(kinds(&RULE, &format!("{seen}a@A PATCH x => x:u1@850\n")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &format!("{seen}a@A PATCH x dry-run => x:u1@850\n")), []);
        assert_eq!(kinds(&RULE, &format!("{seen}a@A PUT x:u1@900 => x:u1@900 gone\n")), []);
        assert_eq!(kinds(&RULE, &format!("{seen}a@A PUT x:u1@900 dry-run => x:u1@901\n")), []);
        assert_eq!(kinds(&RULE, &format!("{seen}a@A PUT x:u1@900 => !504\n")), []);
    }

    #[test]
    fn clocks_that_nothing_ties_together_convict_nobody() {
        let near = "clock b +40ms\nclient b clock=b\na@A LIST => 1200 {}\nb@A CREATE x => x:u1@1003\n";
        assert_eq!(kinds(&RULE, near), []);
        let far = near.replace("+40ms", "+5000ms");
        assert_eq!(kinds(&RULE, &far), [Kind::Suspect]);
    }

    #[test]
    fn where_a_list_stands_alone_against_several_writes_it_may_be_the_list_that_is_wrong() {
        let text = "a@A  CREATE x => x:u1@38\nb@A  LIST => 43 {x:u1@38}\na@A  PUT x:u1@38 => x:u1@39\na@A  PUT x:u1@39 => x:u1@41\n";
        assert_eq!(kinds(&RULE, text), [Kind::Suspect]);
        // Two lists agree on it.
        let two = text.replace("\na@A  PUT x:u1@38", "\nc@A  LIST => 43 {x:u1@38}\na@A  PUT x:u1@38");
        assert_eq!(kinds(&RULE, &two), [Kind::Violation]);
    }
}
