#![doc = include_str!("../../../docs/rules/inconsistent-continue.md")]

use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, IncarnationId, OperationId, ScopeId, Verb};
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "inconsistent-continue",
    title: "a client that lists in pages takes all pages from one revision",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "continue pages",
    causes: &[],
    page: include_str!("../../../docs/rules/inconsistent-continue.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    // Per reader, the last page of a named revision, answered or refused.
    let mut before: FxHashMap<(IncarnationId, ScopeId), OperationId> = FxHashMap::default();
    for (id, o) in evidence.of_verbs(&[Verb::List]) {
        let reader = (o.incarnation, o.scope);
        if o.asked != Asked::ContinueInconsistent {
            if matches!(o.asked, Asked::Continue) {
                result.checked(o.incarnation);
                before.insert(reader, id);
            }
            continue;
        }
        result.checked(o.incarnation);
        if !o.is_answered() {
            continue;
        }
        let mut facts = Vec::new();
        if let Some(&page) = before.get(&reader) {
            let asked = evidence.history.operation(page);
            let words = if asked.status == 410 { "was refused: its revision was gone" } else { "was answered" };
            let says = format!("the page of revision {} {words}", asked.asked_revision);
            facts.push(evidence.operation(page, asked.asked_revision, says));
        }
        facts.push(evidence.operation(id, o.answered, "the server read the remaining keys at a newer revision"));
        result.found(Draft {
            kind: Kind::Hazard,
            broken_by: BrokenBy::Client,
            incarnation: o.incarnation,
            key: Default::default(),
            cause: evidence.history.scope_name(o.scope),
            summary: format!(
                "{} continued with the token of a 410 answer, so its pages of {} are of two states",
                evidence.observer_words(&o),
                evidence.history.scope_name(o.scope)
            ),
            facts,
            reason: "The continue token of a 410 answer names no revision, so the server continues at a newer one."
                .to_owned(),
            refuted_by: "evidence that the client uses each page on its own".to_owned(),
            consequence: "an object that was replaced in between may be on no page, or on two".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;

    #[test]
    fn a_page_after_410_is_a_hazard_and_an_ordinary_one_is_not() {
        let mut s = Specimen::new();
        s.list(
            "?limit=5&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMiwic3RhcnQiOiIvd2ViLTM5XHUwMDAwIn0",
            1002,
            &[],
        );
        assert!(s.keeps(&RULE));
        s.list("?limit=5&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0Ijoid2ViLTM4XHUwMDAwIn0", 2000, &[]);
        assert_eq!(s.kinds(&RULE), [Kind::Hazard]);
    }
}
