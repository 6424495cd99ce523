#![doc = include_str!("../../../docs/rules/double-bind.md")]

use crate::check::facts::catalog::ScanBudget;
use crate::check::facts::references::{Directory, keys};
use crate::check::invariants::mutual_exclusion;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{IncarnationId, Symbol};
use crate::model::declaration::Reference;
use crate::order::{Provenance, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "double-bind",
    title: "an object that is bound once is bound to one target, and a target to one object",
    group: Group::Invariants,
    promise: BrokenBy::Server,
    needs: "versions of pods, claims and other objects that a declaration binds",
    causes: &["revision-rewind", "revision-reuse", "identity-break", "broken-compare"],
    page: include_str!("../../../docs/rules/double-bind.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    mutual_exclusion::check(evidence, result, true);
    let directory = Directory::of(evidence);
    let mut scan_budget = ScanBudget::of(evidence);
    for reference in evidence.options.declarations.references.iter().filter(|reference| reference.once) {
        for key in keys(evidence, &directory.referring(reference), &mut scan_budget, result) {
            let mut bound: Option<(Symbol, Version, String)> = None;
            for version in evidence.order.timeline.versions(key).iter() {
                let known = version.change.lives() == Some(true) && version.uid.is_some();
                if !known || version.provenance == Provenance::Base {
                    continue;
                }
                // Most versions have the same value as the one before.
                if let Some((uid, before, _)) = &mut bound
                    && (*uid, before.attributes) == (version.uid, version.attributes)
                {
                    result.checked(IncarnationId::NONE);
                    *before = version;
                    continue;
                }
                let mentions = directory.mentions(reference, &version).unwrap_or_default();
                let Some(target) = mentions.into_iter().find_map(|mention| mention.target) else { continue };
                match &bound {
                    Some((uid, before, other)) if *uid == version.uid => {
                        result.checked(IncarnationId::NONE);
                        if *other != target {
                            found(evidence, result, reference, (before, other), (&version, &target));
                        }
                    }
                    _ => {}
                }
                bound = Some((version.uid, version, target));
            }
        }
    }
}

fn found(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    reference: &Reference,
    (before, one): (&Version, &str),
    (after, other): (&Version, &str),
) {
    let history = evidence.history;
    let (name, uid) = (history.key_name(after.key), evidence.short_uid(after.uid));
    let field = reference.target.as_ref().map(ToString::to_string).unwrap_or_default();
    let facts = vec![
        evidence.version(before, format!("{name} with uid {uid} had {field} {one}")),
        evidence.version(after, format!("{name} with uid {uid} had {field} {other}")),
    ];
    result.found(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: facts[1].incarnation,
        key: after.key,
        cause: reference.name.clone(),
        summary: format!("{name} (uid {uid}) was bound to {one} and then to {other}"),
        facts,
        reason: format!("{field} is set once in the life of an object, and the server refuses to change it"),
        refuted_by: "evidence that the two versions are of two objects".to_owned(),
        consequence: "two targets act on one object, each as its only target".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn a_pod_keeps_its_node() {
        let text = "o@A CREATE a => a:u1@20\no@A GET a => a:u1@22[node=n1]\no@A GET a => a:u1@31[node=n2]\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert!(holds(&RULE, &text.replace("n2", "n1")));
        // Another life of the name is another pod.
        assert_eq!(kinds(&RULE, &text.replace("u1@31", "u2@31")), []);
    }

    #[test]
    fn a_volume_is_bound_to_one_claim() {
        let claim = |name: &str, version: u64, phase: &str| {
            format!(
                "o@A CREATE persistentvolumeclaims/{name} => persistentvolumeclaims/{name}:{name}1@{version}[phase={phase} .spec.volumeName=pv-1]\n"
            )
        };
        let list = "o@A LIST persistentvolumeclaims => 40 {a:a1@20, b:b1@30}\n";
        assert_eq!(kinds(&RULE, &(claim("a", 20, "Bound") + &claim("b", 30, "Bound") + list)), [Kind::Violation]);
        // A claim that requests a volume does not have it.
        assert!(holds(&RULE, &(claim("a", 20, "Bound") + &claim("b", 30, "Pending") + list)));
    }
}
