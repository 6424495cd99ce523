//! A write committed at a revision below one that was already complete.
//!
//! ## What it proves
//! etcd's revision only grows. A write that was sent after an answer showed revision r2 must commit above r2; here one certainly
//! committed at r1 below it. The store went back: a restored backup under running API servers, or a member that lost its log.
//!
//! An accepted update that names no base may have changed nothing. Its answer then shows the last version of its object, which the server
//! reads from etcd before it leaves an update out. So no such answer is below a version of that object that was complete before.
//!
//! ## Why it matters
//! Everything between r1 and r2 is gone or will be given out again with other contents; clients that stand at r2 miss what is
//! written until the counter passes them, and no error tells them.
//!
//! ## Example
//! ```text
//! client 1   LIST pods -> revision 1200
//! operator   restores a backup of revision 1000
//! client 2   CREATE pods a -> 201 at revision 1003     below 1200, which was complete before
//! ```
//!
//! ## Evidence
//! Answers with versions: a creation, an update that names its base and is answered above it, or a deletion whose revision an
//! event or a witness dates; and any earlier answer of the same resource, or of one that certainly shares its counter.
//!
//! ## What it cannot see
//! A rewind in which nobody read before or wrote after. Watches and lists that go on in the lost timeline leave no falling
//! commits; `revision-reuse` and `split-timeline` see those.
//!
//! ## Traps it avoids
//! - A PUT or PATCH that changes nothing answers with an old version and commits nothing: it is compared with its own object only.
//! - A write that takes the last finalizer away answers with its base although it commits a deletion above it.
//! - Times of different clocks prove an order only where the evidence bounds the offset. A gap of a second or more between
//!   clocks is a suspect that names the offset; less than that is taken for skew (etcd itself warns of a second).
//! - Built-in resources may each have an etcd of their own, so they are compared with themselves only.
//!
//! ## Sources
//! kubernetes#107457, #118501; etcd#16028 (`--bump-revision --mark-compacted`), #13766, #17780.

use super::alone;
use super::etcd::{self, Recorded};
use super::lag::{self, Lag};
use super::{BrokenBy, Draft, Evidence, Group, Kind, Rule, Ruling, commit};
use crate::history::{Operation, OperationId, Revision};
use crate::order::{Head, Relation};

/// Less of an offset between clocks is usual.
const SKEW: i64 = 1_000_000_000;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "revision-rewind",
    title: "a write commits above everything that was complete before it was sent",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "a write whose answer proves its revision, and an answer before it",
    causes: &["revision-reuse", "torn-snapshot"],
    source: include_str!("revision_rewind.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        return etcd::writes::rewind(&recorded, ruling);
    }
    let removals = commit::removals(evidence);
    for (id, o) in evidence.operations() {
        let removed = || removals.get(&id).map(|v| v.revision);
        let Some(revision) = commit::proven(evidence, &o).or_else(removed) else {
            if commit::shown(evidence, &o).is_some() && o.invoke.is_known() {
                fallen(evidence, ruling, id, &o);
            }
            continue;
        };
        if !o.invoke.is_known() {
            continue;
        }
        let resource = evidence.history.resource_of(o.key);
        ruling.checked(o.incarnation);
        if o.answered == revision && commit::is_above_all(evidence, id, &o) {
            continue;
        }
        let order = evidence.order;
        let rewound = |head: &Head| head.revision > revision;
        let proved = order.heads.before(evidence.history, &order.clocks, resource, o.clock, o.invoke);
        if let Some(head) = proved.filter(rewound) {
            ruling.found(draft(evidence, id, revision, head, None));
            continue;
        }
        if let Some(head) = order.heads.against(evidence.history, id).filter(rewound) {
            if !alone::is_told(evidence, head.showing) {
                let gap = order.clocks.step(o.clock).map(|_| o.invoke.since(head.time));
                let mut draft = draft(evidence, id, revision, head, gap);
                if let Some(doubt) = alone::doubt(evidence, head.showing) {
                    (draft.kind, draft.reason) = (Kind::Suspect, doubt);
                }
                ruling.found(draft);
            }
            continue;
        }
        let bare = order.heads.before_by_the_clock(evidence.history, resource, o.invoke);
        if let Some(head) = bare.filter(rewound) {
            let gap = o.invoke.since(head.time);
            let stepped = order.clocks.step(o.clock).or(order.clocks.step(head.clock)).is_some();
            let proved = order.clocks.relation((head.time, head.clock), (o.invoke, o.clock));
            if stepped || (matches!(proved, Relation::BeforeUnless(_)) && gap >= SKEW) {
                ruling.found(draft(evidence, id, revision, head, Some(gap)));
            }
        }
    }
}

/// An accepted update shows the last version of its object, whether it changed anything or not.
fn fallen(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>, id: OperationId, o: &Operation) {
    let history = evidence.history;
    ruling.checked(o.incarnation);
    let Some(bound) = lag::bound(evidence, history.resource_of(o.key), o.clock, o.invoke) else { return };
    let Some(later) = evidence.order.timeline.between(o.key, o.answered, bound).first() else { return };
    let Some(lag) = Lag::by(evidence, later, o.clock, o.invoke) else { return };
    let (what, key) = (history.request_name(o), history.key_name(o.key));
    let mut facts = lag.facts(evidence);
    facts.push(lag::answer(evidence, id, o.answered, &format!("version {}", o.answered)));
    ruling.found(lag.settle(Draft {
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
        reason: "an accepted update answers with the version that it made, or with the last one where it changes nothing".to_owned(),
        refuted_by: "evidence that the two answers came from different etcd clusters, or a clock offset that puts the write first"
            .to_owned(),
        consequence: "versions of the object are lost, and writes that name them as their base are refused or undo others"
            .to_owned(),
    }));
}

fn draft(evidence: &Evidence<'_>, id: OperationId, revision: Revision, head: Head, unless: Option<i64>) -> Draft {
    let history = evidence.history;
    let o = history.operation(id);
    let resource = history.resource_name(history.resource_of(o.key));
    let what = history.request_name(&o);
    let reason = match unless {
        None => "etcd's revision only grows: a write that is sent after an answer showed a revision commits above it"
            .to_owned(),
        Some(offset) if o.clock == head.clock => lag::set_back(offset),
        Some(offset) => format!(
            "the two times are not proved to be of one clock: an offset of {} ms explains it away",
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
            head.revision
        ),
        facts: vec![
            evidence.showing(head.showing, head.revision, format!("an answer showed revision {}", head.revision)),
            evidence.request(id, Revision::NONE, format!("{what} was sent")),
            evidence.operation(id, revision, format!("it was answered as committed at revision {revision}")),
        ],
        reason,
        refuted_by:
            "evidence that the two answers came from different etcd clusters, or a clock offset that puts the write \
                     first"
                .into(),
        consequence:
            "writes between the two revisions are lost, and clients that stand above miss what comes until the \
                      counter passes them"
                .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{holds, kinds};
    use super::{Kind, RULE};

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
        // Nor is it one that shows less than the object had become.
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
        // Two lists agree.
        let two = text.replace("\na@A  PUT x:u1@38", "\nc@A  LIST => 43 {x:u1@38}\na@A  PUT x:u1@38");
        assert_eq!(kinds(&RULE, &two), [Kind::Violation]);
    }
}
