#![doc = include_str!("../../../docs/rules/ignored-gone.md")]

use crate::check::protocol::changes_between::{Stretch, changes};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, DeliveryKind, IncarnationId, Marks, OperationId, Revision, ScopeId, Verb};
use crate::order::{Chain, Start, Step, remembers};
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "ignored-gone",
    title: "after 410 Gone a client lists the state before it watches on",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a stream or list that ended with 410, and the watch after it",
    causes: &[],
    page: include_str!("../../../docs/rules/ignored-gone.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let mut gone: FxHashMap<(IncarnationId, ScopeId), Vec<OperationId>> = FxHashMap::default();
    let mut lists: FxHashMap<IncarnationId, Vec<OperationId>> = FxHashMap::default();
    for (id, o) in evidence.of_verbs(&[Verb::List]) {
        if o.status == 410 && matches!(o.asked, Asked::From | Asked::Unset | Asked::Any) {
            gone.entry((o.incarnation, o.scope)).or_default().push(id);
        }
        // A list without a recorded answer may have shown the state too.
        if o.is_answered() || o.marks.has(Marks::OPEN) {
            lists.entry(o.incarnation).or_default().push(id);
        }
    }
    for chain in &evidence.order.chains.chains {
        if !remembers(history, chain.incarnation) {
            continue;
        }
        let refused = gone.get(&(chain.incarnation, chain.scope)).map_or(&[][..], |l| l);
        let listed = lists.get(&chain.incarnation).map_or(&[][..], |l| l);
        for step in &chain.steps {
            let o = history.operation(step.operation);
            if o.verb != Verb::Watch {
                continue;
            }
            let Some(error) = error_before(evidence, step, refused) else { continue };
            result.checked(chain.incarnation);
            let Start::Continues(previous) = step.start else { continue };
            if step.has_concurrent_consumers {
                continue;
            }
            let since = history.operation(previous).invoke;
            let reads = listed.iter().any(|&list| {
                let list = history.operation(list);
                list.invoke >= since && list.invoke <= o.invoke && history.scopes_may_overlap(list.scope, chain.scope)
            });
            if !reads {
                skipped(evidence, result, chain, step, error);
            }
        }
    }
}

/// The record that reported to the client that its revision is gone.
fn error_before(evidence: &Evidence<'_>, step: &Step, refused: &[OperationId]) -> Option<Fact> {
    let history = evidence.history;
    let Start::Continues(previous) = step.start else {
        return (step.error == 410).then(|| evidence.operation(step.operation, Revision::NONE, ""));
    };
    if step.error == 410 {
        let stream = history.stream_of(previous)?;
        let error = stream.deliveries().rev().find(|&i| history.deliveries[i].kind == DeliveryKind::Error)?;
        return Some(evidence.delivery(error, previous, "the stream ended with the error 410: its revision was gone"));
    }
    let (since, until) = (history.operation(previous).invoke, history.operation(step.operation).invoke);
    let id = *refused.iter().find(|&&id| {
        let at = history.operation(id).ret;
        at >= since && at <= until
    })?;
    Some(evidence.operation(id, Revision::NONE, "a list was refused with 410: its revision was gone"))
}

fn skipped(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, chain: &Chain, step: &Step, error: Fact) {
    let history = evidence.history;
    let o = history.operation(step.operation);
    let (start, Some((frontier, showing))) = (o.asked_revision, step.frontier) else { return };
    if start <= frontier {
        return;
    }
    let (client, scope) = (evidence.short_client(&o), history.scope_name(chain.scope));
    let mut facts = vec![
        evidence.showing(showing, frontier, format!("{client} had reached revision {frontier} of {scope}")),
        error,
        evidence.request(
            step.operation,
            start,
            format!("it asked to watch {scope} from revision {start} without a list"),
        ),
    ];
    let (kind, reason) = match changes(evidence, chain.scope, frontier, start, |_| true) {
        Stretch::Changed(version) => {
            facts.push(evidence.version(&version, evidence.change_words(&version)));
            (
                Kind::Violation,
                "after 410 only a list shows the changes in between, so this change never reached the client",
            )
        }
        _ => (Kind::Hazard, "no change in between is known to be in the scope, so the evidence shows no missed change"),
    };
    result.found(evidence.unless_lost(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: chain.incarnation,
        key: facts.get(3).map_or_else(Default::default, |f| f.key),
        cause: scope.clone(),
        summary: format!(
            "{client} watched {scope} from revision {start} after 410 at {frontier}, without a list in between"
        ),
        facts,
        reason: reason.to_owned(),
        refuted_by: "a list of this process between the error and the watch".to_owned(),
        consequence:
            "deleted objects stay in the client's view and created ones are missing until they change again".to_owned(),
    }));
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn after_410_only_a_list_tells_what_happened() {
        let gone = "c@A WATCH from 38 +a:u1@40 !410 eof\no@A DELETE b:u2@39 => b:u2@44 deleting\n";
        assert_eq!(kinds(&RULE, &format!("{gone}c@A WATCH from 60\n")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &format!("{gone}c@A LIST => 60 {{}}\nc@A WATCH from 60\n")), []);
        assert_eq!(kinds(&RULE, &format!("{gone}c@A WATCH initial ^^60\n")), []);
        // A retry from the old revision misses nothing.
        assert!(holds(&RULE, &format!("{gone}c@A WATCH from 40\n")));
    }

    #[test]
    fn without_a_known_change_it_is_a_hazard() {
        assert_eq!(kinds(&RULE, "c@A WATCH from 38 +a:u1@40 !410 eof\nc@A WATCH from 60\n"), [Kind::Hazard]);
    }

    #[test]
    fn a_refused_list_is_as_good_as_an_event() {
        let text = "c@A WATCH from 38 +a:u1@40 eof\no@A PUT b:u2@39 => b:u2@44\n\
                    c@A LIST rv=40 => !410\nc@A WATCH from 60\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
    }

    #[test]
    fn a_list_of_another_scope_may_be_the_state_that_it_goes_on_from() {
        let text = "c@A WATCH in prod from 38 +prod/a:u1@40 !410 eof\nc@A LIST => 60 {}\nc@A WATCH in prod from 60\n";
        assert_eq!(kinds(&RULE, text), []);
    }

    #[test]
    fn a_line_that_could_not_be_used_may_have_been_the_list() {
        for (damaged, found) in [(false, Kind::Violation), (true, Kind::Suspect)] {
            let mut s = crate::check::testing::specimen::Specimen::new();
            let w = s.watch("&resourceVersion=38");
            s.event(w, "ADDED", ("a", "u1", 40)).error(w, 410);
            s.line(format!(r#"{{"kind":"end","id":{w},"at":1700000000005000000,"reason":"eof"}}"#));
            if damaged {
                s.line(r#"{"kind":"request","id":9,"method":"GET"}"#.to_owned());
                s.cut();
            }
            s.update("b", "u2", 39, 44).watch("&resourceVersion=60");
            assert_eq!(s.kinds(&RULE), [found]);
        }
    }
}
