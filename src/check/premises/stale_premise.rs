#![doc = include_str!("../../../docs/rules/stale-premise.md")]

use crate::check::facts::authorship::{Author, author};
use crate::check::facts::commit_evidence;
use crate::check::premises::premise_index::{Decided, ENDLESS, PremiseIndex, Used};
use crate::check::premises::presumed_absence;
use crate::check::premises::presumed_absence::{Counterevidence, PossibleDeletions};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::OperationId;
use crate::order::{Reading, Version};
use rustc_hash::FxHashSet;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "stale-premise",
    title: "no write takes away an object that is newer than the premises of the write",
    group: Group::Premises,
    promise: BrokenBy::Nobody,
    needs: "declared decisions with reads of single objects, or writes that presume an absence by a declaration",
    causes: &[
        "delete-version",
        "resume-backwards",
        "monotonic-reads",
        "read-your-writes",
        "read-skew",
        "false-absence",
    ],
    page: include_str!("../../../docs/rules/stale-premise.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let mut violated: FxHashSet<OperationId> = FxHashSet::default();
    for case in presumed_absence::presumed(evidence) {
        result.checked(evidence.history.operation(case.write).incarnation);
        if let Counterevidence::Outlived(last_read, end, creation) = case.counterevidence {
            violated.insert(case.write);
            let o = evidence.history.operation(case.write);
            let (client, target) = (evidence.short_client(&o), evidence.history.key_name(case.target));
            let seen = last_read.fact(evidence, case.target, format!("{client} last saw that {target} was absent"));
            let belief = format!("no {target}");
            state(
                evidence,
                result,
                case.write,
                Kind::Violation,
                Outdated { belief: &belief, seen, end, creation: Some(creation) },
            );
        }
    }
    if let Some(basis) = PremiseIndex::declared(evidence) {
        declared(evidence, &basis, &violated, result);
    }
}

/// Declared decisions. `violated`: the writes that are violations already.
fn declared(
    evidence: &Evidence<'_>,
    basis: &PremiseIndex<'_>,
    violated: &FxHashSet<OperationId>,
    result: &mut RuleResult<'_>,
) {
    let history = evidence.history;
    let mut cases: Vec<Case> = Vec::new();
    for (write, decided) in basis.decided() {
        let o = history.operation(write);
        if !commit_evidence::took_effect(evidence, write, &o) {
            continue;
        }
        let Some(decided) = decided else {
            result.undecided(ENDLESS);
            continue;
        };
        let creation = basis.birth_of_deleted(write).filter(|creation| is_unknown(evidence, &decided, creation));
        let mut outdated: Vec<(Used, Version)> = Vec::new();
        for used in decided.used.iter().filter(|used| used.premise.key != o.key) {
            result.checked(o.incarnation);
            outdated.extend(basis.ended_before_commit(used, write).map(|end| (*used, end)));
        }
        if !outdated.is_empty() {
            cases.push(Case { write, outdated, creation });
        }
    }
    let is_absence = |(used, _): &&(Used, Version)| used.premise.reading == Reading::Absent;
    let absences = cases.iter().flat_map(|case| &case.outdated).filter(is_absence);
    let deletions = PossibleDeletions::collect(history, absences.map(|(used, _)| used.premise.key).collect());
    for Case { write, mut outdated, creation } in cases {
        let o = history.operation(write);
        // An object that ended again is absent again.
        outdated
            .retain(|one| !is_absence(&one) || deletions.unended(evidence, basis, one.0.premise.key, write).is_some());
        let older = |(_, end): &&(Used, Version)| creation.is_some_and(|creation| basis.before(end, &creation));
        let worst = outdated.iter().find(older).copied();
        let Some((used, end)) = worst.or(outdated.first().copied()) else { continue };
        if worst.is_none() && violated.contains(&write) {
            continue;
        }
        let kind = if worst.is_some() { Kind::Violation } else { Kind::Hazard };
        let belief = basis.words(&used.premise);
        let client = evidence.short_client(&o);
        let seen = basis.fact(&used.premise, format!("{client} read {belief} for its decision"));
        let creation = creation.filter(|_| worst.is_some());
        state(evidence, result, write, kind, Outdated { belief: &belief, seen, end, creation });
    }
}

/// Whether nothing shows that the process knew the object that its decision deletes: the decision had not read it, and the
/// process had not created it.
fn is_unknown(evidence: &Evidence<'_>, decided: &Decided<'_>, creation: &Version) -> bool {
    let o = evidence.history.operation(decided.write);
    let made = creation.writer.is_some() && author(evidence, creation, o.incarnation) != Author::Another;
    let history = evidence.history;
    !made && decided.pass.last_of(history, decided.nth, o.key).is_none()
}

/// A write of a declared decision after some of its premises had ended.
struct Case {
    write: OperationId,
    outdated: Vec<(Used, Version)>,
    /// The first version of the deleted object, if nothing shows that the process knew that object.
    creation: Option<Version>,
}

/// A premise that had ended, with the evidence of its end.
struct Outdated<'o> {
    belief: &'o str,
    seen: Fact,
    end: Version,
    creation: Option<Version>,
}

fn state(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, write: OperationId, kind: Kind, outdated: Outdated<'_>) {
    let history = evidence.history;
    let o = history.operation(write);
    let (client, object) = (evidence.short_client(&o), history.key_name(o.key));
    let Outdated { belief, seen, end, creation } = outdated;
    let request = history.request_name(&o);
    let mut facts =
        vec![seen, evidence.version(&end, format!("{}: the premise had ended", evidence.change_words(&end)))];
    if let Some(creation) = creation {
        facts.push(
            evidence.version(&creation, format!("{}, after the end of the premise", evidence.change_words(&creation))),
        );
    }
    facts.push(evidence.operation(write, o.answered, format!("{request} was answered with success")));
    let (summary, reason, consequence) = match creation {
        Some(creation) => (
            format!(
                "{client} deleted {object}, created at {}, on the premise of {belief}, which had ended at {}",
                creation.revision, end.revision
            ),
            "the deleted object is newer than the end of the premise, so nothing that the process knew was about this \
            object",
            "an object that the newer state needs is gone",
        ),
        None => (
            format!("{client} wrote {object} on the premise of {belief}, which had ended at {}", end.revision),
            "the premise was overwritten before the write took effect; the evidence does not show whether the process \
            would have written something else",
            "the decision may be wrong for the state at its commit",
        ),
    };
    result.found(Draft {
        kind,
        broken_by: BrokenBy::Nobody,
        incarnation: o.incarnation,
        key: o.key,
        cause: format!(
            "{} {}",
            history.resource_name(history.resource_of(o.key)),
            history.resource_name(history.resource_of(end.key))
        ),
        summary,
        facts,
        reason: reason.to_owned(),
        refuted_by: "evidence that the process had seen the newer state, or that the write had another reason"
            .to_owned(),
        consequence: consequence.to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    const DELETED: &str = "default widgets\no@A CREATE a => a:u1@10\nc@A READ a => :u1@10 for d\no@A PUT a:u1@10 => a:u1@20\n\
                           o@A CREATE b => b:u2@25\nc@A DELETE b for d => ok:u2\n";

    #[test]
    fn what_the_process_made_itself_it_knew() {
        let made = DELETED.replace("o@A CREATE b => b:u2@25", "c@A CREATE b for d => b:u2@25");
        assert!(!kinds(&RULE, &made).contains(&Kind::Violation));
    }

    #[test]
    fn what_was_deleted_is_newer_than_the_premise() {
        assert_eq!(kinds(&RULE, DELETED), [Kind::Violation]);
        // The object is older than the end of the premise, or the decision knew it.
        let older = DELETED
            .replace("o@A CREATE b => b:u2@25\n", "")
            .replace("o@A CREATE a", "o@A CREATE b => b:u2@5\no@A CREATE a");
        assert_eq!(kinds(&RULE, &older), [Kind::Hazard]);
        let known = DELETED.replace("c@A DELETE", "c@A GET b for d => b:u2@25\nc@A DELETE");
        assert_eq!(kinds(&RULE, &known), [Kind::Hazard]);
    }

    #[test]
    fn a_premise_that_held_until_the_write_took_effect() {
        assert!(holds(&RULE, &DELETED.replace("o@A PUT a:u1@10 => a:u1@20\n", "")));
        let after = DELETED.replace("o@A PUT a:u1@10 => a:u1@20\n", "") + "o@A PUT a:u1@10 => a:u1@30\n";
        assert!(holds(&RULE, &after));
        assert_eq!(kinds(&RULE, &DELETED.replace("=> ok:u2", "=> !404")), []);
    }

    /// The controller of Endpoints receives an old deletion again.
    const REPLAY: &str = "default services\nclient c user=system:serviceaccount:kube-system:endpoint-controller\n\
                          user@A CREATE x => x:x1@22\nuser@A DELETE x:x1 => ok:x1\nuser@A CREATE x => x:x2@35\n\
                          c@A LIST => 36 {x:x2@35}\nc@A CREATE endpoints/x => endpoints/x:e1@37\n\
                          c@A WATCH from 21 as s\nc@A ..s +x:x1@22 -x:x1@30\nc@A DELETE endpoints/x => ok:e1\n";

    #[test]
    fn an_absence_taken_for_granted_that_was_over_before_the_object_was_made() {
        assert_eq!(kinds(&RULE, REPLAY), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &REPLAY.replace("endpoint-controller", "x")), []);
    }

    #[test]
    fn an_end_that_only_an_event_with_an_old_version_tells() {
        let text = "default services\nclient c user=system:serviceaccount:kube-system:endpoint-controller\n\
                    c@A LIST => 28 {x:x1@27}\nc@A CREATE endpoints/x => endpoints/x:e1@29\n\
                    c@A WATCH from 28 as s\nc@A ..s -x:x1@27\nc@A DELETE endpoints/x => ok:e1\n";
        assert_eq!(kinds(&RULE, text), []);
    }

    #[test]
    fn an_absence_that_may_hold_still() {
        let gone = REPLAY.replace("c@A DELETE", "user@A DELETE x:x2 => ok:x2\nc@A ..s +x:x2@35 -x:x2@39\nc@A DELETE");
        assert!(holds(&RULE, &gone));
    }
}
