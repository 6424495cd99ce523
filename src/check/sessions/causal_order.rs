#![doc = include_str!("../../../docs/rules/causal-order.md")]

use crate::check::sessions::observed_effect;
use crate::check::sessions::observed_effect::{Effect, Link};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "causal-order",
    title: "a process that has seen an effect does not afterwards read a state without its cause",
    group: Group::Sessions,
    promise: BrokenBy::Nobody,
    needs: "a read of one object or collection after observations of others by the same process",
    causes: &["monotonic-reads", "stale-consistent-read", "below-minimum", "read-your-writes"],
    page: include_str!("../../../docs/rules/causal-order.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for observation in observed_effect::observations(evidence) {
        result.checked(observation.incarnation);
        if let Some(effect) = observed_effect::before(evidence, observation, |link| link != Link::Written) {
            found(evidence, result, &effect);
        }
    }
}

fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, effect: &Effect) {
    let history = evidence.history;
    let Some(facts) = effect.facts(evidence) else { return };
    let incarnation = effect.observation.incarnation;
    let client = history.short_client(incarnation);
    let writer = history.short_client(history.operation(effect.effect.writer).incarnation);
    let (cause, seen) = (history.key_name(effect.cause.key), history.key_name(effect.effect.key));
    result.found(Draft {
        kind: Kind::Hazard,
        broken_by: BrokenBy::Nobody,
        incarnation,
        key: effect.cause.key,
        cause: history.resource_name(effect.observation.resource),
        summary: format!(
            "{client} saw {seen} at {}, which {writer} wrote after it had seen {cause} at {}, and then read a state \
            without that change",
            effect.effect.revision, effect.cause.revision
        ),
        facts,
        reason: "Each step comes before the next, and the last before the first, so no one order of events shows the \
                process all of this. The API promises no causal order across collections."
            .to_owned(),
        refuted_by: "evidence that the writer had not seen the change before it wrote".to_owned(),
        consequence: "the client sees a write of another controller without the reason for it".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds, trial};

    const TEXT: &str = "o@A CREATE configmaps/a => configmaps/a:a1@10\no@A PUT configmaps/a:a1@10 => configmaps/a:a1@12\n\
                        deployer@A GET configmaps/a => configmaps/a:a1@12\ndeployer@A CREATE p => p:p1@15\n\
                        auditor@A GET p => p:p1@15\nauditor@B GET configmaps/a rv=0 => configmaps/a:a1@10\n";

    #[test]
    fn an_effect_before_its_cause_is_a_hazard_with_the_whole_cycle() {
        let trial = trial(&RULE, TEXT);
        assert_eq!(trial.kinds(), [Kind::Hazard]);
        let facts: Vec<&str> = trial.findings[0].certificate.facts.iter().map(|f| f.says.as_str()).collect();
        insta::assert_snapshot!(facts.join("\n"), @"
        deployer saw configmaps default/a at version 12, which o had written
        deployer did CREATE pods default/p after GET configmaps default/a
        auditor saw pods default/p at version 15, which deployer had written
        auditor did GET configmaps default/a resourceVersion=0 after GET pods default/p
        o wrote configmaps default/a at revision 12, after version 10 that auditor had seen
        ");
    }

    #[test]
    fn a_list_without_the_cause_is_one_too() {
        let list = TEXT
            .replace("GET configmaps/a rv=0 => configmaps/a:a1@10", "LIST configmaps rv=0 => 11 {configmaps/a:a1@10}");
        assert_eq!(kinds(&RULE, &list), [Kind::Hazard]);
        let other = list
            .replace("LIST configmaps rv=0", "LIST configmaps labels(x=y) rv=0")
            .replace("{configmaps/a:a1@10}", "{}");
        assert!(holds(&RULE, &other));
    }

    #[test]
    fn nothing_is_said_where_the_writer_did_not_know_or_the_reader_had_not_seen() {
        assert!(holds(&RULE, &TEXT.replace("rv=0 => configmaps/a:a1@10", "rv=0 => configmaps/a:a1@12")));
        assert!(holds(&RULE, &TEXT.replace("deployer@A GET configmaps/a => configmaps/a:a1@12\n", "")));
        assert!(holds(&RULE, &TEXT.replace("auditor@A GET p => p:p1@15\n", "")));
        assert!(holds(&RULE, &TEXT.replace("auditor@A GET p", "other@A GET p")));
    }

    #[test]
    fn a_read_from_a_cache_counts_and_an_event_does_not() {
        let read = "auditor@A READ configmaps/a => :a1@10";
        let cached = TEXT.replace("auditor@B GET configmaps/a rv=0 => configmaps/a:a1@10", read);
        assert_eq!(kinds(&RULE, &cached), [Kind::Hazard]);
        let event = "auditor@B WATCH configmaps from 9 +configmaps/a:a1@10";
        assert!(holds(&RULE, &TEXT.replace("auditor@B GET configmaps/a rv=0 => configmaps/a:a1@10", event)));
    }
}
