#![doc = include_str!("../../../docs/rules/writes-follow-reads.md")]

use crate::check::facts::commit_evidence;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "writes-follow-reads",
    title: "a write commits above everything that its process had read before",
    group: Group::Sessions,
    promise: BrokenBy::Server,
    needs: "a read and a later completed write of one resource by one process",
    causes: &["revision-rewind", "revision-reuse"],
    page: include_str!("../../../docs/rules/writes-follow-reads.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, order) = (evidence.history, evidence.order);
    let mut fallen = Vec::new();
    for commit in commit_evidence::commits(evidence) {
        let (o, resource) = (&commit.operation, history.resource_of(commit.key));
        let Some(frontier) = order.frontiers.of(evidence.history, order, o.incarnation, resource) else { continue };
        if commit.is_above_all(evidence) {
            let mut begins = [frontier.progress.begins(), frontier.objects.begins()].into_iter().flatten();
            if begins.any(|first| first < o.invoke) {
                result.checked(o.incarnation);
            }
            continue;
        }
        let read = |line: &crate::order::RunningMax<'_>| line.before(&order.clocks, o.clock, o.invoke);
        let observations = [read(&frontier.progress), read(&frontier.objects)];
        let Some(seen) = observations.into_iter().flatten().max_by_key(|s| (s.revision, s.evidence)) else { continue };
        result.checked(o.incarnation);
        if seen.revision > commit.revision {
            fallen.push((commit.key, commit.revision, commit.id, seen.evidence, seen.revision));
        }
    }
    for (id, o) in commit_evidence::unproven(evidence) {
        let Some(frontier) = order.frontiers.of(history, order, o.incarnation, history.resource_of(o.key)) else {
            continue;
        };
        let read = frontier.keys.get(&o.key).and_then(|read| read.before(&order.clocks, o.clock, o.invoke));
        let Some(seen) = read else { continue };
        result.checked(o.incarnation);
        if seen.revision > o.answered {
            fallen.push((o.key, o.answered, id, seen.evidence, seen.revision));
        }
    }
    // Findings follow the order of key and revision.
    fallen.sort_unstable();
    for (key, revision, id, showing, seen) in fallen {
        let o = history.operation(id);
        let outcome =
            if commit_evidence::shown(evidence, &o).is_some() { "was answered with version" } else { "committed at" };
        let resource = history.resource_of(key);
        let request = history.request_name(&o);
        result.found(Draft {
            kind: Kind::Violation,
            broken_by: BrokenBy::Server,
            incarnation: o.incarnation,
            key,
            cause: history.resource_name(resource),
            summary: format!(
                "{} wrote at revision {} after it had read revision {}",
                evidence.short_client(&o),
                revision,
                seen
            ),
            facts: vec![
                evidence.showing(showing, seen, format!("it had read revision {seen}")),
                evidence.operation(id, revision, format!("{request} {outcome} {}", revision)),
            ],
            reason: "The revision that it read was committed before the write was sent, so the write's revision must \
                    be higher."
                .to_owned(),
            refuted_by: "evidence that the read and the write went to different etcd clusters (--domain)".to_owned(),
            consequence:
                "the store went back below what clients had read, so their caches no longer agree with their writes"
                    .to_owned(),
        });
    }
}
