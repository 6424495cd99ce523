#![doc = include_str!("../../../docs/rules/below-minimum.md")]

use crate::check::facts::absence;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{Operation, Revision, Verb};
use crate::model::{Promise, promise};
use crate::order::ListRevision;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "below-minimum",
    title: "a read for a state not older than revision N returns the state of N or a later one",
    group: Group::Reads,
    promise: BrokenBy::Server,
    needs: "a list or read with resourceVersion=N and a known revision of its answer",
    causes: &["revision-rewind", "split-timeline", "revision-reuse"],
    page: include_str!("../../../docs/rules/below-minimum.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for (id, o) in evidence.of_verbs(&[Verb::Get, Verb::List]) {
        let is_absence = o.verb == Verb::Get && absence::is_absence(&o);
        if !o.is_answered() && !is_absence {
            continue;
        }
        let Promise::NotOlderThan(minimum) = promise(evidence.history, &o, None).0 else { continue };
        if o.verb == Verb::List {
            let Some((revision, ListRevision::Answer)) = evidence.order.list_revision(evidence.history, id) else {
                continue;
            };
            result.checked(o.incarnation);
            if revision < minimum {
                let facts = vec![
                    evidence.request(id, minimum, format!("asked for the state of revision {minimum} or later")),
                    evidence.operation(id, revision, format!("the answer was the state of revision {revision}")),
                ];
                found(evidence, result, &o, minimum, format!("the state of revision {revision}"), facts);
            }
        } else if is_absence && absence::certainly_existed(evidence, o.key, minimum) {
            result.checked(o.incarnation);
            if let Some(facts) = absence::refuted(evidence, id, &o, minimum) {
                found(evidence, result, &o, minimum, "404 (not found)".to_owned(), facts);
            }
        } else if o.key.is_some() && o.answered.is_some() {
            result.checked(o.incarnation);
            if let Some(later) = evidence.order.timeline.between(o.key, o.answered, minimum).first() {
                let facts = vec![
                    evidence.version(&later, evidence.change_words(&later)),
                    evidence.request(id, minimum, format!("asked for the object as of revision {minimum} or later")),
                    evidence.operation(id, o.answered, format!("the answer was version {}", o.answered)),
                ];
                found(evidence, result, &o, minimum, format!("version {}", o.answered), facts);
            }
        }
    }
}

fn found(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    o: &Operation,
    minimum: Revision,
    answered: String,
    facts: Vec<Fact>,
) {
    let (_, row) = promise(evidence.history, o, None);
    result.found(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key: o.key,
        cause: evidence.cause(o),
        summary: format!(
            "{} asked {} for nothing older than revision {minimum} and received {answered}",
            evidence.observer_words(o),
            evidence.server_words(o)
        ),
        facts,
        reason: format!("With {}, the server promises {}.", row.condition, row.promise),
        refuted_by: "a record of the request that shows another resourceVersion".to_owned(),
        consequence: "a client that names a minimum to avoid old states acts on an old state".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;

    #[test]
    fn finds_a_list_below_its_minimum() {
        for (revision, found) in [(37, 1), (39, 0), (52, 0)] {
            let mut s = Specimen::new();
            s.list("?resourceVersion=39&resourceVersionMatch=NotOlderThan", revision, &[]);
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
            assert!(found > 0 || s.keeps(&RULE));
        }
    }

    #[test]
    fn an_object_may_be_older_than_the_minimum_if_it_did_not_change() {
        let mut s = Specimen::new();
        s.get("web-0", "?resourceVersion=39", Some(("u", 30)));
        assert!(s.keeps(&RULE));
        s.update("web-0", "u", 30, 38);
        assert_eq!(s.kinds(&RULE), [Kind::Violation]);
    }
}
