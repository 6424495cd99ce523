#![doc = include_str!("../../../../docs/rules/identity-break.md")]

mod lives;

use crate::check::facts::commit_evidence;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{IncarnationId, KeyId, OperationId, Revision, Symbol, Verb};
use crate::order::{Contradiction, Fragment, Version};
use rustc_hash::FxHashSet;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "identity-break",
    title: "a key's uid changes only through a deletion and a creation, and one uid has one life",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "two adjacent versions of one key with their uids",
    causes: &["revision-reuse", "revision-rewind", "broken-compare"],
    page: include_str!("../../../../docs/rules/identity-break.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let mut open: FxHashSet<(KeyId, Revision)> = FxHashSet::default();
    for contradiction in timeline.contradictions() {
        let Contradiction::TwoUids(key, revision, shown, certain) = contradiction else { continue };
        let Some(version) = timeline.version_at(*key, *revision) else { continue };
        if shown.iter().any(|one| claims_only(evidence, one.origin.operation(history), *revision, one.uid)) {
            continue;
        }
        if !certain {
            open.insert((*key, *revision));
        }
        found(evidence, result, [(&version, shown[0], *certain), (&version, shown[1], false)]);
    }
    let processes = timeline.processes(history);
    for ((before, after), process) in timeline.all().pairs().zip(processes.iter().skip(1)) {
        let known = before.key == after.key && before.uid.is_some() && after.uid.is_some();
        if !known || !commit_evidence::is_update(evidence, &after) || before.change.lives() != Some(true) {
            continue;
        }
        result.checked(*process);
        if before.uid == after.uid || !adjacent(evidence, &before, &after) {
            continue;
        }
        // The uid of such a version is not known.
        if [&before, &after].iter().any(|version| open.contains(&(version.key, version.revision))) {
            continue;
        }
        if claims_only(evidence, before.shown_by(history), before.revision, before.uid) {
            continue;
        }
        if let (Some((one, stands)), Some((other, also))) = (before.shows_uid(history), after.shows_uid(history)) {
            found(evidence, result, [(&before, one, stands), (&after, other, also)]);
        }
    }
    lives::check(evidence, &open, result);
}

/// Whether nothing can lie between two versions of a key: the second is a write on the first, or a watch covers the range.
pub(in crate::check) fn adjacent(evidence: &Evidence<'_>, before: &Version, after: &Version) -> bool {
    let history = evidence.history;
    if after.writer.is_some() {
        let writer = history.operation(after.writer);
        if writer.asked_revision == before.revision && matches!(writer.verb, Verb::Update | Verb::Patch) {
            return true;
        }
    }
    evidence.order.timeline.spans().iter().any(|span| {
        let domain = history.domain_of(history.resource_of(after.key));
        let covers = match span.scope.is_some() {
            true => history.covers_key(span.scope, after.key),
            false => history.domains[domain.index()] == "default",
        };
        covers && span.after <= before.revision && span.through >= after.revision
    })
}

/// Whether a uid at a version is only a claim about its base by an update's request.
fn claims_only(evidence: &Evidence<'_>, id: OperationId, revision: Revision, uid: Symbol) -> bool {
    if !id.is_some() {
        return false;
    }
    let o = evidence.history.operation(id);
    o.verb == Verb::Update && o.asked_revision == revision && o.request_uid == uid && o.answer_uid != uid
}

/// Two uids, each with its version, its evidence, and whether it is certain.
fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, shown: [(&Version, Fragment, bool); 2]) {
    let history = evidence.history;
    let version = shown[1].0;
    let key = history.key_name(version.key);
    let [one, other] = shown.map(|(_, fragment, _)| evidence.short_uid(fragment.uid));
    let facts = shown.map(|(version, fragment, _)| {
        let uid = evidence.short_uid(fragment.uid);
        let says = format!("{key} had uid {uid} at {}", version.revision);
        evidence.shown(version, fragment.origin, fragment.uid, says)
    });
    // The finding names the process that was shown the wrong uid. Either may be right unless the other is certain.
    let incarnation = match shown.map(|(.., certain)| certain) {
        [true, false] => facts[1].incarnation,
        [false, true] => facts[0].incarnation,
        _ if facts[0].incarnation == facts[1].incarnation => facts[0].incarnation,
        _ => IncarnationId::NONE,
    };
    result.found(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation,
        key: version.key,
        cause: history.resource_name(history.resource_of(version.key)),
        summary: format!(
            "{key} changed its uid from {one} to {other} at revision {} without a deletion in between",
            version.revision
        ),
        facts: facts.into(),
        reason: "The server gives a uid at creation, and it never changes. Another uid needs a deletion and a \
                creation before it."
            .into(),
        refuted_by: "a deletion and a creation of the name between the two versions".into(),
        consequence: "a client that identifies objects by uid (owners, volumes, leases) mistakes one object for \
                     another"
            .into(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{drawn, holds, judged, kinds};

    /// The clients of the findings, each with the client cited by each fact.
    fn named(text: &str) -> Vec<String> {
        let history = drawn(text);
        let name = |incarnation| match history.client_name(incarnation) {
            "" => "nobody",
            name => name,
        };
        let findings = judged(&RULE, &history).findings.into_iter().map(|finding| {
            let facts = finding.certificate.facts.iter();
            let facts = facts.map(|f| format!("{} {}", name(f.incarnation), f.says.split(' ').nth(4).unwrap_or("")));
            format!("{}: {}", name(finding.incarnation), facts.collect::<Vec<_>>().join(", "))
        });
        findings.collect()
    }

    #[test]
    fn who_received_another_uid_than_the_write_was_answered_is_named() {
        let written = "w@A CREATE x => x:u1@20\nw@A PUT x:u1@20 => x:u1@21\n";
        let seen = |uid: &str| format!("r@A WATCH from 19 +x:u1@20 ~x:{uid}@21\n");
        assert_eq!(named(&format!("{written}{}", seen("u2"))), ["r: w u1, r u2"]);
        assert!(holds(&RULE, &format!("{written}{}", seen("u1"))));
        // The writer's answer is wrong if etcd contradicts it. Between two readers the evidence does not decide.
        assert_eq!(
            named(&format!("etcd  +x:u2@20  ~x:u2@21\n{}", "w@A PUT x:u2@20 => x:u1@21\n")),
            ["w: nobody u2, w u1"]
        );
        // An event at the next version with another uid than the write before it: the finding names the receiver of the event.
        let events = "w@A CREATE x => x:u1@20\nr@A WATCH from 19 +x:u1@20 ~x:u2@22\n";
        assert_eq!(named(events), ["r: w u1, r u2"]);
        assert_eq!(named("r@A GET x => x:u1@20\ns@A GET x => x:u2@20\n"), ["nobody: r u1, s u2"]);
    }

    #[test]
    fn an_update_keeps_the_uid() {
        assert_eq!(kinds(&RULE, "a@A GET x => x:u1@20\na@A PUT x:u2@20 => x:u2@21\n"), [Kind::Violation]);
        assert!(holds(&RULE, "a@A GET x => x:u1@20\na@A PUT x:u1@20 => x:u1@21\n"));
    }

    #[test]
    fn a_change_on_a_covered_stretch_keeps_the_uid() {
        let text = "a@A WATCH from 19 +x:u1@20 ~x:u2@22\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert!(holds(&RULE, "a@A WATCH from 19 +x:u1@20 ~x:u1@21 -x:u1@22 +x:u2@23 ~x:u2@24\n"));
    }

    #[test]
    fn a_stretch_that_nobody_watched_may_hide_a_deletion() {
        assert_eq!(kinds(&RULE, "a@A GET x => x:u1@20\nb@A WATCH from 30 ~x:u2@31\n"), []);
    }

    #[test]
    fn a_uid_that_only_a_request_claims_is_no_object_s() {
        assert_eq!(kinds(&RULE, "a@A GET x => x:u2@20\nb@A PUT status x:u1@20 => x:u2@21\n"), []);
    }

    #[test]
    fn a_line_that_could_not_be_used_may_have_been_the_end_of_a_life() {
        for (damaged, found) in [(false, 1), (true, 0)] {
            let mut s = crate::check::testing::specimen::Specimen::new();
            let w = s.watch("&resourceVersion=20");
            s.event(w, "ADDED", ("a", "u1", 23));
            if damaged {
                s.event(w, "DELETED", ("a", "u1", 24)).cut();
            }
            s.event(w, "MODIFIED", ("a", "u2", 26));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
        }
    }
}
