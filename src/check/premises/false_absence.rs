#![doc = include_str!("../../../docs/rules/false-absence.md")]

use crate::check::facts::commit_evidence;
use crate::check::premises::premise_index::{ENDLESS, PremiseIndex, Used};
use crate::check::premises::presumed_absence;
use crate::check::premises::presumed_absence::{Counterevidence, ExistenceProof, PresumedAbsence};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{OperationId, Revision};
use crate::order::{Life, Reading, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "false-absence",
    title: "an object that a write takes to be absent is absent",
    group: Group::Premises,
    promise: BrokenBy::Nobody,
    needs: "declared decisions that read an absence, or writes that presume one by a declaration",
    causes: &[
        "torn-snapshot",
        "stale-consistent-read",
        "delete-version",
        "resume-backwards",
        "monotonic-reads",
        "read-skew",
    ],
    page: include_str!("../../../docs/rules/false-absence.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    if let Some(basis) = PremiseIndex::declared(evidence) {
        declared(evidence, &basis, result);
    }
    for case in presumed_absence::presumed(evidence) {
        result.checked(evidence.history.operation(case.write).incarnation);
        presumption(evidence, result, case);
    }
}

/// The states in which the revision order has the object.
#[derive(Clone, Copy)]
enum Had {
    /// In every state that the read can have shown.
    Read,
    /// At the time of the read, from this revision.
    Then(Revision),
    /// At the commit of the write.
    Commit(Revision),
}

fn declared(evidence: &Evidence<'_>, basis: &PremiseIndex<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    for (write, decided) in basis.decided() {
        let o = history.operation(write);
        if !commit_evidence::took_effect(evidence, write, &o) {
            continue;
        }
        let Some(decided) = decided else {
            result.undecided(ENDLESS);
            continue;
        };
        for used in decided.used.iter().filter(|used| used.premise.reading == Reading::Absent) {
            if used.premise.key == o.key {
                continue;
            }
            result.checked(o.incarnation);
            if let Some((life, had)) = had(evidence, basis, used, write) {
                found(evidence, basis, result, write, used, &life, had);
            }
        }
    }
}

/// The life that an absence contradicts.
fn had(evidence: &Evidence<'_>, basis: &PremiseIndex<'_>, used: &Used, write: OperationId) -> Option<(Life, Had)> {
    let (history, order) = (evidence.history, evidence.order);
    let (key, presence) = (used.premise.key, basis.validity.presence());
    let resource = history.resource_of(key);
    let seen = used.premise.seen(history, &basis.validity);
    if used.truth.is_empty() && seen.from.is_some() {
        return presence.at(key, seen.from).map(|life| (*life, Had::Read));
    }
    // The states between the revision that was complete before the read and the first one that was sent after it.
    let (time, clock) = used.premise.moment;
    let watermark = order.watermarks.before(history, &order.clocks, resource, clock, time);
    if let (Some(watermark), Some(through)) = (watermark, seen.through)
        && let Some(life) = presence.at(key, watermark.revision)
        && life.through >= through
    {
        return Some((*life, Had::Then(watermark.revision)));
    }
    let o = history.operation(write);
    let shared = o.key.is_some() && history.share_counter(resource, history.resource_of(o.key));
    let commit = basis.committed_at(write).filter(|_| shared)?;
    presence.at(key, commit).map(|life| (*life, Had::Commit(commit)))
}

fn found(
    evidence: &Evidence<'_>,
    basis: &PremiseIndex<'_>,
    result: &mut RuleResult<'_>,
    write: OperationId,
    used: &Used,
    life: &Life,
    had: Had,
) {
    let history = evidence.history;
    let o = history.operation(write);
    let (client, object) = (evidence.short_client(&o), history.key_name(used.premise.key));
    let when = match had {
        Had::Read => "the revision order has the object in every state that the read can have shown".to_owned(),
        Had::Then(revision) => format!(
            "the store had reached revision {revision}, and the revision order has the object from there until after \
            the read"
        ),
        Had::Commit(revision) => format!("the write took effect at {revision}, and the object existed then"),
    };
    let mut facts = vec![basis.fact(&used.premise, format!("{client} read for its decision that {object} is absent"))];
    facts.extend(lifetime(evidence, life));
    facts.push(written(evidence, write));
    result.found(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Nobody,
        incarnation: o.incarnation,
        key: used.premise.key,
        cause: history.resource_name(history.resource_of(used.premise.key)),
        summary: format!("{client} wrote {} on the premise that {object} is absent, but it \
                         existed", history.key_name(o.key)),
        facts,
        reason: format!("{when} (certainly from {} through {}).", life.from, life.through),
        refuted_by: "evidence that the object was deleted and created again in between, or that the decision did not use the read"
            .to_owned(),
        consequence: CONSEQUENCE.to_owned(),
    });
}

/// The versions that prove a life: its first one, and its last one or its deletion.
fn lifetime(evidence: &Evidence<'_>, life: &Life) -> Vec<Fact> {
    let timeline = &evidence.order.timeline;
    let first = timeline.at_or_before(life.key, life.from);
    let next = life.through.next();
    let last = timeline.at_or_before(life.key, next).filter(|last| first.is_none_or(|f| f.revision != last.revision));
    let fact = |version: Version| evidence.version(&version, evidence.change_words(&version));
    first.into_iter().chain(last).map(fact).collect()
}

fn written(evidence: &Evidence<'_>, write: OperationId) -> Fact {
    let o = evidence.history.operation(write);
    let request = evidence.history.request_name(&o);
    evidence.operation(write, o.answered, format!("{request} was answered with success"))
}

fn presumption(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, case: PresumedAbsence) {
    let history = evidence.history;
    let o = history.operation(case.write);
    let (client, target, object) = (evidence.short_client(&o), history.key_name(case.target), history.key_name(o.key));
    let (kind, mut facts, reason) = match case.counterevidence {
        Counterevidence::Present(version, existence) => {
            let when = match existence {
                ExistenceProof::Revision(revision) => {
                    format!("it existed at {revision}, at which the deletion took effect")
                }
                ExistenceProof::Later(later) => {
                    format!(
                        "it existed before, and the same object was changed afterwards at revision {}",
                        later.revision
                    )
                }
            };
            (
                Kind::Violation,
                presumed_absence::existence(evidence, &version, existence),
                format!("{PRESUMES}: {when}."),
            )
        }
        Counterevidence::Open(version) => (
            Kind::Suspect,
            vec![evidence.version(&version, evidence.change_words(&version))],
            format!(
                "{PRESUMES}. Not proved: nothing shows that {target} still existed then, nor what the process saw of \
                it (a record of its watches, or an etcd witness, would show that)."
            ),
        ),
        Counterevidence::Outlived(..) | Counterevidence::Nothing => return,
    };
    facts.push(written(evidence, case.write));
    result.found(Draft {
        kind,
        broken_by: BrokenBy::Nobody,
        incarnation: o.incarnation,
        key: case.target,
        cause: history.resource_name(history.resource_of(case.target)),
        summary: format!(
            "{client} deleted {object}, which presumes the absence of {target}, although that object existed"
        ),
        facts,
        reason,
        refuted_by: format!(
            "evidence that {target} was absent at that moment, or that the deletion had another reason"
        ),
        consequence: CONSEQUENCE.to_owned(),
    });
}

const PRESUMES: &str = "Such a deletion presumes that the other object is absent";

const CONSEQUENCE: &str = "resources of an existing object are released, replaced or cleaned up";

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    /// Another client creates a, and the decision of c presumes that a is absent.
    const BEFORE: &str = "default widgets\no@A CREATE a => a:u1@20\no@A CREATE b => b:u2@21\n";

    #[test]
    fn a_write_that_changed_nothing_and_a_conflict_that_told_better_are_no_harm() {
        let read = format!("{BEFORE}c@A READ a => absent for d\n");
        for nothing in ["PUT b:u2@21 for d => b:u2@21", "PATCH b for d => b:u2@21"] {
            assert_eq!(kinds(&RULE, &format!("{read}c@A {nothing}\no@A PUT a:u1@20 => a:u1@40\n")), [], "{nothing}");
        }
        let sketch = format!("{read}c@A CREATE a for d => !409\nc@A PATCH b test(@21) for d => b:u2@30\n");
        assert_eq!(kinds(&RULE, &format!("{sketch}o@A PUT a:u1@20 => a:u1@40\n")), []);
    }

    #[test]
    fn absent_for_the_decision_and_there_in_t() {
        let text = format!(
            "{BEFORE}c@A READ a => absent for d\nc@A PATCH b test(@21) for d => b:u2@30\no@A PUT a:u1@20 => a:u1@40\n"
        );
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        let later = text.replace("o@A CREATE a => a:u1@20\n", "").replace("o@A PUT a:u1@20", "o@A CREATE a");
        assert!(holds(&RULE, &later));
        assert_eq!(kinds(&RULE, &text.replace("=> b:u2@30", "=> !422")), []);
        assert_eq!(kinds(&RULE, &text.replace("test(@21) for d", "test(@21)")), []);
    }

    #[test]
    fn absent_when_read_and_there_when_the_write_took_effect() {
        let text = "default widgets\no@A CREATE b => b:u2@21\nc@A GET a for d => !404\no@A CREATE a => a:u1@25\n\
                    c@A PATCH b test(@21) for d => b:u2@30\no@A PUT a:u1@25 => a:u1@40\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        // Gone before the write, or created by it.
        let gone = text
            .replace("c@A PATCH", "o@A DELETE a:u1 => ok:u1\nc@A PATCH")
            .replace("o@A PUT a:u1@25 =>", "o@A CREATE a =>")
            .replace("a:u1@40", "a:u9@40");
        assert!(holds(&RULE, &gone));
        let guarded =
            "default widgets\nc@A GET a for d => !404\nc@A CREATE a for d => a:u1@30\no@A PUT a:u1@30 => a:u1@40\n";
        assert_eq!(kinds(&RULE, guarded), []);
    }

    #[test]
    fn a_life_that_the_evidence_does_not_prove_convicts_nobody() {
        let text = format!("{BEFORE}c@A READ a => absent for d\nc@A PATCH b test(@21) for d => b:u2@30\n");
        assert!(holds(&RULE, &text));
    }

    const ENDPOINTS: &str = "client c user=system:serviceaccount:kube-system:endpoint-controller\nuser@A CREATE services/x => services/x:s1@20\n";

    #[test]
    fn a_deletion_that_takes_an_absence_for_granted() {
        let gone = "c@A CREATE endpoints/x => endpoints/x:e1@21\nc@A DELETE endpoints/x => ok:e1\n";
        let text = format!(
            "{ENDPOINTS}c@A LIST services => 20 {{services/x:s1@20}}\n{gone}user@A PUT services/x:s1@20 => services/x:s1@40\n"
        );
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &text.replace("endpoint-controller", "anybody")), []);
        let deleted = text
            .replace("c@A DELETE", "user@A DELETE services/x:s1 => ok:s1\nc@A DELETE")
            .replace("user@A PUT services/x:s1@20 => services/x:s1@40", "user@A CREATE services/x => services/x:s2@40");
        assert!(holds(&RULE, &deleted));
    }

    #[test]
    fn a_deletion_by_a_process_whose_watches_nobody_recorded_is_a_suspect() {
        let text = format!(
            "recorded audit\n{ENDPOINTS}c@A LIST services rv=0 => 19 {{}}\nc@A WATCH services from 19\n\
                            c@A CREATE endpoints/x => endpoints/x:e1@21\nc@A DELETE endpoints/x => ok:e1\n"
        );
        assert_eq!(kinds(&RULE, &text), [Kind::Suspect]);
        for end in [
            "user@A DELETE services/x:s1 => ok:s1",
            "user@A DELETE services/x => ?",
            "user@A DELETEALL services in default => 22 {}",
        ] {
            let ended = text.replace("c@A DELETE", &format!("{end}\nc@A DELETE"));
            assert!(holds(&RULE, &ended), "{end}");
        }
    }
}
