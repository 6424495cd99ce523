#![doc = include_str!("../../../docs/rules/unsafe-first-read.md")]

use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, DeliveryKind, Marks, Operation, OperationId, Revision, Verb};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "unsafe-first-read",
    title: "the first read of a process after its start asks for the present state, and not for any state",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a list or watch at the start of a process",
    causes: &[],
    page: include_str!("../../../docs/rules/unsafe-first-read.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let mut first: Vec<_> = evidence.first_reads().iter().map(|(of, id)| (*of, *id)).collect();
    first.sort_unstable_by_key(|(_, id)| *id);
    for ((incarnation, scope), id) in first {
        let o = history.operation(id);
        result.checked(incarnation);
        if o.asked != Asked::Any && !served_from_cache(evidence, id, &o) {
            continue;
        }
        let of_scope = history.scopes[scope.index()].resource;
        let (client, resource) = (evidence.short_client(&o), history.resource_name(of_scope));
        let request = history.request_name(&o);
        let began = if certainly_first(evidence, id, &o) { "began its life" } else { "(perhaps restarted) began" };
        let mut facts = vec![evidence.request(id, Revision::NONE, format!("{client} {began} with {request}"))];
        let frontiers = &evidence.order.frontiers;
        let earlier = frontiers
            .of(evidence.history, evidence.order, incarnation, of_scope)
            .and_then(|f| f.objects.before(&evidence.order.clocks, o.clock, o.invoke));
        if let Some(observation) = earlier {
            let says = format!("{client} had seen revision {} in an earlier life", observation.revision);
            facts.insert(0, evidence.showing(observation.evidence, observation.revision, says));
        }
        result.found(Draft {
            kind: Kind::Hazard,
            broken_by: BrokenBy::Client,
            incarnation,
            key: o.key,
            cause: resource.clone(),
            summary: format!("{client} {began} with {request}, which any server may answer with a state of any age"),
            facts,
            reason: "with resourceVersion=0 a server answers from its cache, however stale that cache is".to_owned(),
            refuted_by: "an earlier read of this incarnation that asked for the present state".to_owned(),
            consequence: "the process may read an older state than it had seen before its restart".to_owned(),
        });
    }
}

/// Whether the process certainly read nothing of the scope before in this life. Otherwise the read counts as a first one only
/// because the evidence would not show a restart.
fn certainly_first(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> bool {
    let chains = &evidence.order.chains.chains;
    let own = chains.iter().filter(|c| c.incarnation == o.incarnation && c.scope == o.scope);
    own.flat_map(|c| c.steps.first()).all(|step| step.operation >= id)
}

/// Whether a watch without version was certainly served as if it had asked for any state.
fn served_from_cache(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> bool {
    let plain = o.verb == Verb::Watch
        && o.asked == Asked::Unset
        && o.marks.has(Marks::BOOKMARKS)
        && !o.marks.has(Marks::INITIAL_EVENTS)
        && !o.marks.has(Marks::NO_INITIAL_EVENTS);
    let Some(stream) = evidence.history.stream_of(id).filter(|_| plain) else { return false };
    let deliveries = evidence.history.deliveries_of(stream);
    // The initial part has ended if an event other than ADDED came.
    deliveries.iter().any(|d| matches!(d.kind, DeliveryKind::Modified | DeliveryKind::Deleted | DeliveryKind::Bookmark))
        && deliveries.iter().all(|d| d.kind != DeliveryKind::InitialEventsEnd)
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn the_first_read_of_each_life_counts() {
        let text = "c/1@A LIST rv=0 => 9 {}\nc/2@A LIST rv=0 => 12 {}\n";
        let trial = crate::check::testing::trial::trial(&RULE, text);
        assert_eq!(trial.kinds(), [Kind::Hazard], "lives of one client fold");
        assert_eq!(trial.findings[0].occurrences.len(), 2);
        assert!(holds(&RULE, "c/1@A LIST => 9 {}\nc/1@A LIST rv=0 => 12 {}\n"));
        assert!(holds(&RULE, "c/1@A WATCH initial ^^9\n"));
    }

    #[test]
    fn a_watch_without_version_is_unsafe_where_the_cache_served_it() {
        assert_eq!(kinds(&RULE, "c@A WATCH bookmarks +a@7 ~a@9\n"), [Kind::Hazard]);
        assert!(holds(&RULE, "c@A WATCH bookmarks +a@7 ^^8 ~a@9\n"));
        assert!(holds(&RULE, "c@A WATCH +a@7 ~a@9\n"), "without bookmarks nothing shows it");
    }

    #[test]
    fn a_command_line_tool_has_no_life_before() {
        let text = "recorded audit\nclient admin agent=kubectl/v1.34\nadmin@A LIST rv=0 => 9 {}\n";
        assert_eq!(kinds(&RULE, text), []);
    }
}
