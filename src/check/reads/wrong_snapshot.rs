#![doc = include_str!("../../../docs/rules/wrong-snapshot.md")]

use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::Verb;
use crate::model::{Promise, promise};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "wrong-snapshot",
    title: "an exact list, or a page of a list, is the state of the revision that the request names",
    group: Group::Reads,
    promise: BrokenBy::Server,
    needs: "an exact list or a continue page, and the revision of its answer",
    causes: &["revision-rewind", "split-timeline"],
    page: include_str!("../../../docs/rules/wrong-snapshot.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for (id, o) in evidence.of_verbs(&[Verb::List]) {
        if !o.is_answered() || !o.answered.is_some() {
            continue;
        }
        let (Promise::Exact(asked), row) = promise(evidence.history, &o, None) else { continue };
        result.checked(o.incarnation);
        if o.answered == asked {
            continue;
        }
        result.found(Draft {
            kind: Kind::Violation,
            broken_by: BrokenBy::Server,
            incarnation: o.incarnation,
            key: Default::default(),
            cause: evidence.cause(&o),
            summary: format!(
                "{} asked {} for exactly revision {asked} and received the state of revision {}",
                evidence.observer_words(&o),
                evidence.server_words(&o),
                o.answered
            ),
            facts: vec![
                evidence.request(id, asked, format!("asked for exactly revision {asked}")),
                evidence.operation(id, o.answered, format!("the answer was the state of revision {}", o.answered)),
            ],
            reason: format!("With {}, the server promises {}.", row.condition, row.promise),
            refuted_by: "a record of the request that shows another revision".to_owned(),
            consequence: "the client treats as one snapshot what never was one state".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;

    /// `{"v":"meta.k8s.io/v1","rv":1002,"start":"/web-39\u0000"}` and the same with -1.
    const TOKEN: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTAwMiwic3RhcnQiOiIvd2ViLTM5XHUwMDAwIn0";
    const FRESH: &str = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0Ijoid2ViLTM4XHUwMDAwIn0";

    #[test]
    fn finds_an_answer_of_another_revision() {
        for query in [
            "?resourceVersion=1002&resourceVersionMatch=Exact".to_owned(),
            "?resourceVersion=1002&limit=5".to_owned(),
            format!("?limit=5&continue={TOKEN}"),
        ] {
            for (revision, found) in [(1002, 0), (1003, 1), (1001, 1)] {
                let mut s = Specimen::new();
                s.list(&query, revision, &[]);
                assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found], "{query}");
                assert!(found > 0 || s.keeps(&RULE));
            }
        }
    }

    #[test]
    fn what_is_not_exact_may_be_of_any_revision() {
        let mut s = Specimen::new();
        s.list("?resourceVersion=0&limit=5", 9, &[]).list(&format!("?limit=5&continue={FRESH}"), 2000, &[]);
        assert!(s.kinds(&RULE).is_empty());
    }
}
