#![doc = include_str!("../../../docs/rules/overlapping-lives.md")]

use crate::check::facts::commit_evidence;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{IncarnationId, Revision};
use crate::order::{Lifetime, Provenance, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "overlapping-lives",
    title: "one object has a name at a time",
    group: Group::Invariants,
    promise: BrokenBy::Server,
    needs: "a name that two objects had, with their uids",
    causes: &["revision-reuse", "revision-rewind", "identity-break", "torn-snapshot", "stale-consistent-read"],
    page: include_str!("../../../docs/rules/overlapping-lives.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let lives = evidence.order.lifetimes(evidence.history);
    for of_key in lives.all().chunk_by(|a, b| a.key == b.key) {
        // The earlier life that lasts longest.
        let mut before: Option<&Lifetime> = None;
        for life in of_key.iter().filter(|life| life.from.is_some()) {
            if let Some(before) = before {
                result.checked(IncarnationId::NONE);
                if before.through >= life.from {
                    found(evidence, result, before, life);
                }
            }
            if before.is_none_or(|before| before.through < life.through) {
                before = Some(life);
            }
        }
    }
}

fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, one: &Lifetime, other: &Lifetime) {
    let history = evidence.history;
    let name = history.key_name(one.key);
    let versions = evidence.order.timeline.versions(one.key);
    let of = |life: &Lifetime| {
        let uid = life.uid;
        versions.iter().filter(move |v| v.uid == uid && v.provenance != Provenance::Base)
    };
    let says = |life: &Lifetime| format!("{name} had uid {}", evidence.short_uid(life.uid));
    let Some(first) = of(one).find(|v| v.change.lives() != Some(false)) else { return };
    let Some(second) = of(other).find(|v| v.revision == other.from) else { return };
    let later = shown_later(evidence, of(one), other.from, &says(one));
    let mut facts = vec![evidence.version(&first, says(one)), evidence.version(&second, says(other))];
    let Some((fact, revision)) = later else { return };
    if [&first, &second].into_iter().any(|version| commit_evidence::went_back(evidence, version)) {
        return result.undecided("names with objects on both sides of a revision rewind of the store");
    }
    facts.push(fact);
    let observer = facts[2].incarnation;
    result.found(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: observer,
        key: one.key,
        cause: history.resource_name(history.resource_of(one.key)),
        summary: format!(
            "{name} had uid {} from revision {} on, and uid {} still had that name at revision {revision}",
            evidence.short_uid(other.uid),
            other.from,
            evidence.short_uid(one.uid)
        ),
        facts,
        reason: "an object is created only if no other has its name, and no later object gets a uid again".to_owned(),
        refuted_by: "evidence that the two were read from different stores".to_owned(),
        consequence: "two processes act for one name, each as the only one".to_owned(),
    });
}

/// Evidence of a life at or after a revision: a version of it, or a list that still has one.
fn shown_later(
    evidence: &Evidence<'_>,
    versions: impl Iterator<Item = Version>,
    revision: Revision,
    says: &str,
) -> Option<(Fact, Revision)> {
    for version in versions.filter(|v| v.change.lives() != Some(false)) {
        if version.revision >= revision {
            return Some((evidence.version(&version, says), version.revision));
        }
        let shown = evidence.order.timeline.present_through(&version);
        if shown >= revision
            && let Some(list) = evidence.order.presence(evidence.history).list_showing(shown, version.key, version.uid)
        {
            let says = format!("{says} in a list of revision {shown}");
            return Some((evidence.item(list, version.key, version.uid, shown, says), shown));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn a_list_shows_the_dead_beside_the_living() {
        let text = "o@A CREATE w => w:u1@20\no@A CREATE w => w:u2@30\nc@B LIST => 40 {w:u1@20}\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert!(holds(&RULE, &text.replace("40 {w:u1@20}", "29 {w:u1@20}")));
        assert!(holds(&RULE, &text.replace("{w:u1@20}", "{w:u2@30}")));
    }

    #[test]
    fn a_life_does_not_go_on_after_the_next_one_began() {
        let text = "a@A WATCH from 19 +w:u1@20 -w:u1@25 +w:u2@30\nb@B WATCH from 19 +w:u1@20 ~w:u1@35\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert!(holds(&RULE, &text.replace("~w:u1@35", "~w:u1@22")));
    }

    #[test]
    fn a_uid_that_only_a_request_claims_is_nobody_s() {
        let text = "o@A CREATE w => w:u1@20\no@A DELETE w:u1 => ok\no@A CREATE w => w:u2@30\nc@A PUT status w:u1@30 => w:u2@31\n";
        assert!(holds(&RULE, text));
    }

    #[test]
    fn many_lives_of_one_name_are_looked_at_once() {
        let mut text = String::new();
        for n in 0..300 {
            text += &format!("o@A CREATE w => w:u{n}@{}\n", 20 + 2 * n);
        }
        assert!(holds(&RULE, &text));
    }
}
