#![doc = include_str!("../../../docs/rules/write-skew.md")]

use crate::check::facts::provenance;
use crate::check::facts::three_way_diff::is_same;
use crate::check::premises::premise_index::{Decided, ENDLESS, PremiseIndex, Used};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{ClockId, Document, Revision, Subresource};
use crate::ingest::Time;
use crate::order::graph::{Access, Components, EdgeKind, HappensBefore, Node, Record, Touch, Unit, Units, What};
use crate::order::{Change, Reading, Source, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "write-skew",
    title: "no two concurrent decisions each end the premise of the other",
    group: Group::Premises,
    promise: BrokenBy::Nobody,
    needs: "two declared decisions with reads of single objects and committed writes",
    causes: &["monotonic-reads", "read-your-writes", "lost-update"],
    page: include_str!("../../../docs/rules/write-skew.md"),
    checks: Checks::kubernetes(check),
};

/// A committed write of a decision, with its premises.
struct Commit<'b> {
    decided: Decided<'b>,
    /// The time of the first of its reads, and the time of its answer.
    began: (Time, ClockId),
    over: (Time, ClockId),
}

/// A premise of one write that another write ended.
struct Ended<'c> {
    used: &'c Used,
    by: Version,
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let Some(basis) = PremiseIndex::declared(evidence) else { return };
    let (units, commits) = collect(evidence, &basis, result);
    let graph = HappensBefore::by_data(evidence.history, &units).graph;
    let anti = EdgeKind::AntiDependency;
    for component in Components::find(&graph, anti.into()).cyclic() {
        for a in component {
            let mut others: Vec<Node> =
                graph.from(a).filter(|(b, kinds)| *b > a && kinds.has(anti)).map(|(b, _)| b).collect();
            others.sort_unstable();
            others.dedup();
            for b in others.into_iter().filter(|b| graph.between(*b, a).has(anti)) {
                skewed(evidence, result, &basis, &commits[a as usize], &commits[b as usize]);
            }
        }
    }
}

/// One unit for each committed write with a known revision.
fn collect<'b, 'h>(
    evidence: &Evidence<'h>,
    basis: &'b PremiseIndex<'h>,
    result: &mut RuleResult<'_>,
) -> (Units, Vec<Commit<'b>>) {
    let history = evidence.history;
    let (mut units, mut commits) = (Units::default(), Vec::new());
    for (write, decided) in basis.decided() {
        let o = history.operation(write);
        let Some(revision) = basis.committed_at(write).filter(|_| evidence.committed(&o)) else { continue };
        let Some(mut decided) = decided else {
            result.undecided(ENDLESS);
            continue;
        };
        // A later list may have shown it a newer version.
        let (pass, nth) = (decided.pass, decided.nth);
        decided.used.retain(|used| pass.is_last(history, nth, &used.premise));
        let Some(began) = decided.used.first().map(|used| used.premise.moment) else { continue };
        result.checked(o.incarnation);
        let what = What::Decision(decided.pass.decision);
        let unit = units.add(Unit { what, incarnation: o.incarnation, begin: began.0, end: o.ret, clock: o.clock });
        let at = Record::Operation(write);
        units.accesses.push(Access { key: o.key, revision, touch: Touch::Wrote, unit, at });
        let seen = |used: &Used| {
            let at = match used.premise.source {
                Source::Answer(id) | Source::List(id) | Source::Request(id) => Record::Operation(id),
                Source::Event(index, watch) => Record::Delivery(index, watch),
                Source::Cache(index) => Record::Cache(index),
            };
            let (revision, touch) = position(used)?;
            Some(Access { key: used.premise.key, revision, touch, unit, at })
        };
        units.accesses.extend(decided.used.iter().filter_map(seen));
        commits.push(Commit { decided, began, over: (o.ret, o.clock) });
    }
    (units, commits)
}

/// The revision of a premise in the order of versions.
fn position(used: &Used) -> Option<(Revision, Touch)> {
    match used.premise.reading {
        Reading::Present { revision, .. } => Some((revision.known()?, Touch::Saw)),
        Reading::Absent => Some((used.truth.through?, Touch::SawNothing)),
    }
}

/// The premises of one write that another write ended, each with the version right after the one that was read.
fn ended<'c>(evidence: &Evidence<'_>, of: &'c Commit<'_>, by: &Commit<'_>) -> Vec<Ended<'c>> {
    let next = |used: &'c Used| {
        let versions = evidence.order.timeline.versions(used.premise.key);
        let next = versions.get(versions.through(position(used)?.0))?;
        (next.writer == by.decided.write).then_some(Ended { used, by: next })
    };
    of.decided.used.iter().filter_map(next).collect()
}

fn skewed(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    basis: &PremiseIndex<'_>,
    first: &Commit<'_>,
    second: &Commit<'_>,
) {
    let (history, clocks) = (evidence.history, &evidence.order.clocks);
    let apart = clocks.before(first.over, second.began) || clocks.before(second.over, first.began);
    if apart || std::ptr::eq(first.decided.pass, second.decided.pass) {
        return;
    }
    let mut pair = Vec::new();
    for (of, by) in [(first, second), (second, first)] {
        let ended = ended(evidence, of, by);
        let substance = ended.iter().position(|ended| is_of_substance(evidence, ended));
        let Some(chosen) = ended.into_iter().nth(substance.unwrap_or(0)) else { return };
        pair.push((of, by, chosen, substance.is_some()));
    }
    let sure = pair.iter().all(|(.., is_of_substance)| *is_of_substance);
    let name = |commit: &Commit<'_>| {
        let pass = commit.decided.pass;
        format!("{} in {}", history.short_client(pass.incarnation), history.name(pass.decision))
    };
    let mut facts = Vec::new();
    for (of, by, ended, _) in &pair {
        let read = format!("{} read {}", name(of), basis.words(&ended.used.premise));
        facts.push(basis.fact(&ended.used.premise, read));
        let change = evidence.change_words(&ended.by);
        facts.push(evidence.version(&ended.by, format!("{change} by {}", name(by))));
    }
    // The later of the two writes had a premise that had ended.
    let later = if pair[0].2.by.revision > pair[1].2.by.revision { pair[0].1 } else { pair[1].1 };
    let o = history.operation(later.decided.write);
    result.found(Draft {
        kind: if sure { Kind::Violation } else { Kind::Hazard },
        broken_by: BrokenBy::Nobody,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary: format!("{} and {} each ended the premise of the other, and both committed", name(first), name(second)),
        facts,
        reason: match sure {
            true => "each read a value that the other replaced, so each would have to come before the other: if one came first, \
                     the other would have seen another state",
            false => "each read a value that the other replaced, so each would have to come before the other; nothing shows that \
                     both changes had substance",
        }
        .to_owned(),
        refuted_by: "evidence that one of the decisions did not rest on its read".to_owned(),
        consequence: "two steps that are safe one at a time are both taken, and neither gets a conflict".to_owned(),
    });
}

/// Whether an object was created, deleted, or changed in more than bookkeeping, times and status. A status reports the state,
/// and the next report replaces it.
fn is_of_substance(evidence: &Evidence<'_>, ended: &Ended<'_>) -> bool {
    if evidence.history.operation(ended.by.writer).subresource == Subresource::Status {
        return false;
    }
    let gone = matches!(ended.by.change, Change::Deleted | Change::Created);
    gone || {
        let Some((revision, Touch::Saw)) = position(ended.used) else { return true };
        let read = evidence.order.timeline.version_at(ended.used.premise.key, revision);
        let documents: Option<Vec<Document>> =
            [read, Some(ended.by)].into_iter().map(|version| provenance::document(evidence, &version?)).collect();
        let Some(documents) = documents else { return false };
        let bodies = evidence.history.documents(&documents);
        let [old, new] = [0, 1].map(|at| bodies.get(&documents[at]));
        old.zip(new).is_some_and(|(old, new)| !is_same(old, new))
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    const BOTH: &str = "o@A CREATE a[ready=yes] => a:u1@10[ready=yes]\no@A CREATE b[ready=yes] => b:u2@11[ready=yes]\n\
                        one@A GET b for d1 => b:u2@11\ntwo@A GET a for d2 => a:u1@10\n";

    #[test]
    fn two_drains_that_each_rely_on_the_other_one_s_victim_are_a_violation() {
        let etcd = "etcd +a:u1@10 +b:u2@11 -a@15 -b@16\n";
        let text = format!("{etcd}{BOTH}one@A DELETE a:u1 for d1 => ok\ntwo@A DELETE b:u2 for d2 => ok\n");
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        // The second decision reads after the first one has finished.
        let late = text
            .replace("two@A GET a for d2 => a:u1@10\n", "")
            .replace("two@A DELETE", "two@A GET a for d2 => !404\ntwo@A DELETE");
        assert_eq!(kinds(&RULE, &late), []);
    }

    #[test]
    fn what_a_watch_shows_of_the_two_deletions_is_enough() {
        let story = |answers: [&str; 2]| {
            let [a, b] = answers;
            format!("{BOTH}one@A DELETE a:u1 for d1 => {a}\ntwo@A DELETE b:u2 for d2 => {b}\n")
        };
        let watch = "w@A WATCH from 9 +a:u1@10 +b:u2@11 -a:u1@15 -b:u2@16\n";
        assert_eq!(kinds(&RULE, &(story(["ok", "ok"]) + watch)), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &(story(["a:u1@15", "b:u2@16"]) + watch)), [Kind::Violation]);
        // A watch that began later may carry versions of the living objects.
        let late = "w@A WATCH rv=0 -a:u1@15 -b:u2@16\n";
        assert_eq!(kinds(&RULE, &(story(["ok", "ok"]) + late)), []);
    }

    #[test]
    fn changes_of_substance_on_both_sides_are_a_violation_and_others_a_hazard() {
        let write = |a: &str, b: &str| {
            format!(
                "{BOTH}one@A PUT a:u1@10[{a}] for d1 => a:u1@15[{a}]\ntwo@A PUT b:u2@11[{b}] for d2 => b:u2@16[{b}]\n"
            )
        };
        assert_eq!(kinds(&RULE, &write("ready=no", "ready=no")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &write("ready=no", "ready=yes")), [Kind::Hazard]);
        assert_eq!(kinds(&RULE, &write("ready=no", "ready=no").replace("for d2", "")), []);
    }

    #[test]
    fn one_premise_that_was_over_is_no_skew() {
        let text = format!(
            "{BOTH}one@A PUT a:u1@10[ready=no] for d1 => a:u1@15[ready=no]\ntwo@A PUT c[x=y] for d2 => c:u3@16[x=y]\n"
        );
        assert!(holds(&RULE, &text));
    }

    #[test]
    fn two_names_taken_because_the_other_was_free_are_a_violation() {
        let text = "one@A GET b for d1 => !404\ntwo@A GET a for d2 => !404\none@A CREATE a for d1 => a:u1@15\n\
                    two@A CREATE b for d2 => b:u2@16\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
    }

    #[test]
    fn what_a_third_one_wrote_in_between_ended_the_premise_first() {
        let text = format!(
            "{BOTH}o@A PUT b:u2@11[ready=no] => b:u2@13[ready=no]\none@A PUT a:u1@10[ready=no] for d1 => a:u1@15[ready=no]\n\
             two@A PATCH b[ready=gone] for d2 => b:u2@16[ready=gone]\n"
        );
        assert_eq!(kinds(&RULE, &text), []);
    }
}
