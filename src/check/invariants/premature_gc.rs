#![doc = include_str!("../../../docs/rules/premature-gc.md")]

use crate::check::facts::catalog::ScanBudget;
use crate::check::facts::cross_counter::Place;
use crate::check::facts::references::{Directory, is_collector};
use crate::check::facts::version_validity::VersionValidity;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{OperationId, ResourceId, Revision};
use crate::ingest::fields::Path;
use crate::model::declaration::Reference;
use crate::order::{Death, Lifetime, Version};
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "premature-gc",
    title: "the garbage collector removes an object only after the last of its owners is gone",
    group: Group::Invariants,
    promise: BrokenBy::Client,
    needs: "removals by the garbage collector, with the owner references of the removed objects",
    causes: &["stale-consistent-read", "monotonic-reads", "torn-snapshot"],
    page: include_str!("../../../docs/rules/premature-gc.md"),
    checks: Checks::kubernetes(check),
};

/// A removal by the garbage collector.
struct Collected<'h> {
    life: &'h Lifetime,
    operation: OperationId,
    /// Its revision lies between these two; no upper bound: `None`.
    span: (Revision, Option<Revision>),
    /// The last known version of the object.
    last: Version,
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let references = &evidence.options.declarations.references;
    let removed: Vec<Collected<'_>> =
        evidence.order.lifetimes(evidence.history).all().iter().filter_map(|life| collected(evidence, life)).collect();
    if removed.is_empty() || !references.iter().any(|reference| reference.owns) {
        return;
    }
    let (directory, validity) = (Directory::of(evidence), VersionValidity::derive(evidence));
    let lives = evidence.order.lifetimes(evidence.history);
    let mut owning: FxHashMap<ResourceId, Vec<&Reference>> = FxHashMap::default();
    for reference in references.iter().filter(|reference| reference.owns) {
        for resource in directory.referring(reference) {
            owning.entry(resource).or_default().push(reference);
        }
    }
    let mut scan_budget = ScanBudget::of(evidence);
    for removal in &removed {
        let mut owned = false;
        let resource = evidence.history.resource_of(removal.life.key);
        for reference in owning.get(&resource).into_iter().flatten() {
            if !scan_budget.take_many(1) {
                result.crowded();
                break;
            }
            for mention in directory.mentions(reference, &removal.last).unwrap_or_default() {
                owned = true;
                let uid = mention.uid.as_deref().and_then(|uid| evidence.history.names.find(uid));
                let owner = uid.and_then(|uid| lives.of(uid));
                let Some(owner) = owner else { continue };
                if directory.key(reference, removal.life.key, &mention) == Some(owner.key) {
                    judge(evidence, result, &validity, removal, owner);
                }
            }
        }
        match owned {
            true => result.checked(evidence.history.operation(removal.operation).incarnation),
            false => result.undecided("collected objects without owner references in the evidence"),
        }
    }
}

fn collected<'h>(evidence: &Evidence<'h>, life: &'h Lifetime) -> Option<Collected<'h>> {
    let timeline = &evidence.order.timeline;
    let (operation, span) = match life.death {
        Death::At(_) => {
            let end = life.last(timeline)?;
            (end.writer, (end.revision, Some(end.revision)))
        }
        Death::Removed => {
            let removal = life.removal(timeline)?;
            (removal.operation, (removal.after, removal.before))
        }
        Death::Open | Death::Before(_) => return None,
    };
    let by = operation.is_some().then(|| evidence.history.operation(operation).incarnation)?;
    if !is_collector(evidence, by) {
        return None;
    }
    let mut known = timeline.versions(life.key).iter().rev();
    let last = known.find(|v| v.uid == life.uid && v.change.lives() == Some(true))?;
    Some(Collected { life, operation, span, last })
}

fn judge(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    validity: &VersionValidity<'_>,
    removal: &Collected<'_>,
    owner: &Lifetime,
) {
    let timeline = &evidence.order.timeline;
    let (from, through) = removal.span;
    // A revision in the owner's counter by which the removal was done. An owner that exists then existed before.
    let resource = evidence.history.resource_of(owner.key);
    let done = match evidence.history.share_counter(resource, evidence.history.resource_of(removal.life.key)) {
        true => through,
        false => Place::of_operation(evidence, removal.operation, resource).through,
    };
    let Some(done) = done else {
        return result.undecided("removals without a bound in the counter of the owner's resource");
    };
    let lived = owner.lives_at(timeline, done);
    let is_born_later = owner.is_born && owner.from > done;
    if lived == Some(false) || is_born_later {
        return;
    }
    // The reference shows that the owner existed before the removal, since only a server assigns uids. A later version, or
    // evidence that a version was still current, shows that it had not ended. A deletion that has begun never ends without a
    // removal, so a version without the mark proves all versions before it unmarked.
    let Ok(ending) = Path::parse("metadata.deletionTimestamp") else { return };
    let unmarked = timeline.versions(owner.key).iter().rev().find(|&v| {
        let shown = evidence.history.declared(v.key, v.uid, v.attributes);
        v.uid == owner.uid
            && v.change.lives() == Some(true)
            && shown.is_some_and(|declared| declared.text(&ending).is_none())
            && validity.through(&v).0 >= done
    });
    let Some(unmarked) = unmarked else {
        if lived.is_some() {
            result.undecided("owners that may have had a deletion begun");
        }
        return;
    };
    let history = evidence.history;
    let o = history.operation(removal.operation);
    let (child, parent) = (history.key_name(removal.life.key), history.key_name(owner.key));
    let uid = evidence.short_uid(owner.uid);
    // Only its precondition ties a removal at an unknown revision to the object's version.
    let named = o.asked_revision == removal.last.revision;
    let (current_through, proof) = validity.through(&removal.last);
    let certain = named || (through == Some(from) && current_through.next() >= from);
    let mut facts = vec![
        evidence.version(&removal.last, format!("{child} named {parent} with uid {uid} as its owner")),
        Fact {
            key: removal.life.key,
            uid: removal.life.uid,
            ..evidence.operation(removal.operation, from, format!("the garbage collector removed {child}"))
        },
        evidence.version(&unmarked, format!("{parent} with uid {uid} existed, and its deletion had not begun")),
    ];
    let (_, shown) = validity.through(&unmarked);
    facts.extend(validity.fact(&unmarked, shown).filter(|_| unmarked.revision < done));
    if certain && !named {
        facts.extend(validity.fact(&removal.last, proof));
    }
    facts.truncate(5);
    let reason =
        "the garbage collector removes an object only after the last of its owners is gone, and this owner existed";
    result.found(Draft {
        kind: if certain { Kind::Violation } else { Kind::Suspect },
        broken_by: BrokenBy::Client,
        incarnation: o.incarnation,
        key: removal.life.key,
        cause: history.resource_name(history.resource_of(removal.life.key)),
        summary: format!("the garbage collector removed {child} while its owner {parent} (uid {uid}) existed"),
        facts,
        reason: match certain {
            true => reason.to_owned(),
            false => format!(
                "{reason}. Not proved: nothing shows that the object still named this owner when it was removed."
            ),
        },
        refuted_by: "a version of the object without this owner before its removal".to_owned(),
        consequence: "an object that the owner needs is gone, and is created again or lost with its data".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    const COLLECTOR: &str = "client gc user=system:serviceaccount:kube-system:generic-garbage-collector\n";

    fn story(middle: &str) -> String {
        format!(
            "{COLLECTOR}o@A CREATE replicasets/r => replicasets/r:o@20\n\
             o@A CREATE p => p:u1@22[owner=ReplicaSet/r:o]\n{middle}gc@A DELETE p:u1@22 => ok:u1\n\
             o@A CREATE replicasets/z => replicasets/z:z@28\n"
        )
    }

    #[test]
    fn an_object_of_a_living_owner_stays() {
        let lives = "o@A LIST replicasets => 40 {replicasets/r:o@20}\n";
        assert_eq!(kinds(&RULE, &(story("") + "o@A CREATE q => q:u9@30\n" + lives)), [Kind::Violation]);
        let gone = story("o@A DELETE replicasets/r:o => ok\no@A CREATE q => q:u9@30\n");
        assert!(holds(&RULE, &gone));
    }

    #[test]
    fn an_owner_that_goes_in_the_foreground_lets_its_objects_go_first() {
        let ending = "o@A DELETE replicasets/r => replicasets/r:o@26[deleting finalizer=foregroundDeletion]\n";
        let lives = "o@A CREATE q => q:u9@30\no@A LIST replicasets => 40 {replicasets/r:o@26[deleting finalizer=foregroundDeletion]}\n";
        assert_eq!(kinds(&RULE, &(story(ending) + lives)), []);
    }

    #[test]
    fn a_reference_to_another_namespace_is_one_to_nothing() {
        let text = (story("") + "o@A CREATE q => q:u9@30\no@A LIST replicasets => 40 {replicasets/r:o@20}\n")
            .replace("replicasets/r:o@20", "replicasets/other/r:o@20")
            .replace("CREATE replicasets/r ", "CREATE replicasets/other/r ");
        assert!(holds(&RULE, &text));
    }

    #[test]
    fn only_the_collector_is_bound_by_owners() {
        let lives = "o@A CREATE q => q:u9@30\no@A LIST replicasets => 40 {replicasets/r:o@20}\n";
        let text = (story("") + lives).replace("generic-garbage-collector", "somebody");
        assert_eq!(kinds(&RULE, &text), []);
    }

    #[test]
    fn owners_that_may_have_changed_leave_it_open() {
        let lives = "o@A CREATE q => q:u9@30\no@A LIST replicasets => 40 {replicasets/r:o@20}\n";
        assert_eq!(kinds(&RULE, &(story("") + lives).replace("p:u1@22 =>", "p:u1 =>")), [Kind::Suspect]);
    }
}
