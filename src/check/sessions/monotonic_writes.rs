#![doc = include_str!("../../../docs/rules/monotonic-writes.md")]

use crate::check::facts::commit_evidence;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::order::EvidenceRef;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "monotonic-writes",
    title: "the writes of one process commit in the order in which the process made them",
    group: Group::Sessions,
    promise: BrokenBy::Server,
    needs: "two completed writes of one resource by one process",
    causes: &["revision-rewind", "revision-reuse"],
    page: include_str!("../../../docs/rules/monotonic-writes.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, order) = (evidence.history, evidence.order);
    let mut fallen = Vec::new();
    for commit in commit_evidence::commits(evidence) {
        let (o, resource) = (&commit.operation, history.resource_of(commit.key));
        let Some(frontier) = order.frontiers.of(evidence.history, order, o.incarnation, resource) else { continue };
        if commit.is_above_all(evidence) {
            if frontier.commits.begins().is_some_and(|first| first < o.invoke) {
                result.checked(o.incarnation);
            }
            continue;
        }
        let Some(before) = frontier.commits.before(&order.clocks, o.clock, o.invoke) else { continue };
        result.checked(o.incarnation);
        let EvidenceRef::Answer(earlier) = before.evidence else { continue };
        if before.revision > commit.revision {
            fallen.push((commit.key, commit.revision, commit.id, earlier, before.revision));
        }
    }
    for (id, o) in commit_evidence::unproven(evidence) {
        let Some(frontier) = order.frontiers.of(history, order, o.incarnation, history.resource_of(o.key)) else {
            continue;
        };
        let own = frontier.commits_of.get(&o.key).and_then(|own| own.before(&order.clocks, o.clock, o.invoke));
        let Some(before) = own else { continue };
        result.checked(o.incarnation);
        let EvidenceRef::Answer(earlier) = before.evidence else { continue };
        if before.revision > o.answered {
            fallen.push((o.key, o.answered, id, earlier, before.revision));
        }
    }
    // Findings follow the order of key and revision.
    fallen.sort_unstable();
    for (key, revision, id, earlier, before) in fallen {
        let o = history.operation(id);
        let outcome =
            if commit_evidence::shown(evidence, &o).is_some() { "was answered with version" } else { "committed at" };
        let resource = history.resource_of(key);
        let names = [earlier, id].map(|id| history.request_name(&history.operation(id)));
        result.found(Draft {
            kind: Kind::Violation,
            broken_by: BrokenBy::Server,
            incarnation: o.incarnation,
            key,
            cause: history.resource_name(resource),
            summary: format!(
                "{} wrote at revision {} after its earlier write had committed at {}: revisions fell",
                evidence.short_client(&o),
                revision,
                before
            ),
            facts: vec![
                evidence.operation(earlier, before, format!("{} committed at {}", names[0], before)),
                evidence.operation(id, revision, format!("{} {outcome} {}", names[1], revision)),
            ],
            reason: "The second write was sent after the first was answered, so etcd orders it later and gives it a \
                    higher revision."
                .to_owned(),
            refuted_by: "evidence that the two resources live in different etcd clusters (--domain)".to_owned(),
            consequence: "the store went back, and clients may lose the writes committed in between".to_owned(),
        });
    }
}
