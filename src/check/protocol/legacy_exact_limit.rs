#![doc = include_str!("../../../docs/rules/legacy-exact-limit.md")]

use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, Verb};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "legacy-exact-limit",
    title: "a list with a limit and a resourceVersion says with resourceVersionMatch how the version is meant",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a list with a resourceVersion",
    causes: &[],
    page: include_str!("../../../docs/rules/legacy-exact-limit.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    for (id, o) in evidence.of_verbs(&[Verb::List]) {
        if matches!(o.asked, Asked::From | Asked::Exact | Asked::LegacyExact) {
            result.checked(o.incarnation);
        }
        if o.asked != Asked::LegacyExact {
            continue;
        }
        let (client, scope) = (evidence.short_client(&o), history.scope_name(o.scope));
        let version = o.asked_revision;
        let outcome = if o.status == 410 { ", and it was gone" } else { "" };
        result.found(Draft {
            kind: Kind::Hazard,
            broken_by: BrokenBy::Client,
            incarnation: o.incarnation,
            key: o.key,
            cause: scope.clone(),
            summary: format!(
                "{client} listed {scope} with a limit and resourceVersion={version}, which means exactly revision {version}"
            ),
            facts: vec![evidence.request(id, version, format!("{client} asked for {scope} at exactly revision {version}{outcome}"))],
            reason: "with a limit and without resourceVersionMatch the server treats the version as exact, for \
                    historical reasons".to_owned(),
            refuted_by: "a resourceVersionMatch in the request".to_owned(),
            consequence: "the client reads an old state, and receives 410 once that revision is compacted".to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn a_limit_makes_the_version_exact() {
        assert_eq!(kinds(&RULE, "c@A LIST rv=7 limit=5 => 7 {}\nc@A LIST rv=9 limit=5 => !410\n"), [Kind::Hazard]);
        assert!(holds(
            &RULE,
            "c@A LIST atleast=7 limit=5 => 9 {}\nc@A LIST exact=7 limit=5 => 7 {}\nc@A LIST rv=7 => 9 {}\n"
        ));
        assert_eq!(kinds(&RULE, "c@A LIST rv=0 limit=5 => 9 {}\n"), []);
    }
}
