#![doc = include_str!("../../../docs/rules/unsafe-relist.md")]

use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, Marks, Revision, Verb};
use crate::order::remembers;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "unsafe-relist",
    title: "a client that knows a revision of a resource does not ask for any older state",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a list by a process that had seen the resource before",
    causes: &[],
    page: include_str!("../../../docs/rules/unsafe-relist.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, order) = (evidence.history, evidence.order);
    let first = evidence.first_reads();
    for (id, o) in evidence.of_verbs(&[Verb::List]) {
        let lists = o.is_answered() && !o.marks.has(Marks::SAVED);
        if !lists || !remembers(history, o.incarnation) || history.client_name(o.incarnation) == "system:apiserver" {
            continue;
        }
        let resource = history.scopes[o.scope.index()].resource;
        if first.get(&(o.incarnation, o.scope)) == Some(&id) {
            continue;
        }
        let Some(frontier) = order.frontiers.of(evidence.history, order, o.incarnation, resource) else { continue };
        // Observations of this scope, or of single objects inside it.
        let of_scope = frontier.scopes.get(&o.scope).and_then(|l| l.before(&order.clocks, o.clock, o.invoke));
        let of_objects = frontier.objects.before(&order.clocks, o.clock, o.invoke);
        let inside = of_objects.filter(|s| s.key.is_some() && history.covers_key(o.scope, s.key));
        let Some(observation) = of_scope.into_iter().chain(inside).max_by_key(|s| s.revision) else { continue };
        result.checked(o.incarnation);
        if o.asked != Asked::Any {
            continue;
        }
        let (client, scope) = (evidence.short_client(&o), history.scope_name(o.scope));
        let seen = observation.revision;
        result.found(Draft {
            kind: Kind::Hazard,
            broken_by: BrokenBy::Client,
            incarnation: o.incarnation,
            key: o.key,
            cause: history.resource_name(resource),
            summary: format!(
                "{client} had seen revision {seen} and listed {scope} with resourceVersion=0 all the same"
            ),
            facts: vec![
                evidence.showing(observation.evidence, seen, format!("{client} had seen revision {seen}")),
                evidence.request(id, Revision::NONE, format!("it listed {scope} with resourceVersion=0")),
            ],
            reason: "resourceVersion=0 lets any server answer with a state older than the one that the client knows"
                .to_owned(),
            refuted_by: "evidence that the two requests came from different processes".to_owned(),
            consequence: "the client may go back behind the state that it has already acted on".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn a_known_revision_is_a_minimum() {
        let before = "c@A LIST => 9 {}\nc@A WATCH from 9 +a@12 eof\n";
        assert_eq!(kinds(&RULE, &format!("{before}c@A LIST rv=0 => 12 {{a@12}}\n")), [Kind::Hazard]);
        assert!(holds(&RULE, &format!("{before}c@A LIST rv=12 => 12 {{a@12}}\n")));
        assert!(holds(&RULE, &format!("{before}c@A LIST => 12 {{a@12}}\n")));
    }

    #[test]
    fn the_first_read_of_a_life_is_another_rule_s() {
        assert_eq!(kinds(&RULE, "c/1@A LIST => 9 {}\nc/2@A LIST rv=0 => 9 {}\n"), []);
    }
}
