#![doc = include_str!("../../../docs/rules/dead-binding.md")]

use crate::check::facts::catalog::ScanBudget;
use crate::check::facts::cross_counter::{Place, end, had_ended, was_before, when};
use crate::check::facts::references::{Directory, keys};
use crate::check::facts::version_validity::VersionValidity;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{IncarnationId, KeyId, Marks, OperationId, ResourceId, Revision, Symbol, Verb};
use crate::model::declaration::Reference;
use crate::order::{Change, Version};
use rustc_hash::FxHashMap;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "dead-binding",
    title: "an object is bound only to a target that exists",
    group: Group::Invariants,
    promise: BrokenBy::Client,
    needs: "bindings, and the deletions of their targets",
    causes: &["monotonic-reads", "stale-consistent-read", "watch-gap", "torn-snapshot"],
    page: include_str!("../../../docs/rules/dead-binding.md"),
    checks: Checks::kubernetes(check),
};

/// A version that first shows its object bound.
struct Binding {
    version: Version,
    /// The version before it, of the same object.
    before: Option<Version>,
    target: KeyId,
    /// The write that bound it, if known.
    operation: OperationId,
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let (directory, validity) = (Directory::of(evidence), VersionValidity::derive(evidence));
    let mut requests: FxHashMap<KeyId, Vec<OperationId>> = FxHashMap::default();
    for (id, o) in evidence.of_verbs(&[Verb::Create]) {
        if o.marks.has(Marks::BINDING) && evidence.committed(&o) && o.key.is_some() {
            requests.entry(o.key).or_default().push(id);
        }
    }
    let mut scan_budget = ScanBudget::of(evidence);
    for reference in evidence.options.declarations.references.iter().filter(|reference| reference.binds) {
        for key in keys(evidence, &directory.referring(reference), &mut scan_budget, result) {
            for mut binding in bindings(evidence, &directory, reference, key, &requests) {
                // If nothing can lie between the two versions, the writer of the second one bound the object.
                let next = binding.before.map(|before| validity.through(&before).0.next());
                let exact = next.is_some_and(|next| next >= binding.version.revision);
                if exact && !binding.operation.is_some() {
                    binding.operation = binding.version.writer;
                }
                let by = match binding.operation.is_some() {
                    true => history.operation(binding.operation).incarnation,
                    false => IncarnationId::NONE,
                };
                result.checked(by);
                judge(evidence, result, &validity, reference, &binding, by);
            }
        }
    }
}

fn bindings(
    evidence: &Evidence<'_>,
    directory: &Directory<'_>,
    reference: &Reference,
    key: KeyId,
    requests: &FxHashMap<KeyId, Vec<OperationId>>,
) -> Vec<Binding> {
    let mut found = Vec::new();
    let mut before: Option<(Version, bool)> = None;
    let mut uid = Symbol::NONE;
    for version in evidence.order.timeline.versions(key).iter() {
        if version.uid != uid {
            before = None;
            uid = version.uid;
        }
        // Most versions have the same value as the one before.
        if let Some((last, bound)) = before
            && last.attributes == version.attributes
            && version.change.lives() == Some(true)
        {
            before = Some((version, bound));
            continue;
        }
        let mentions = match version.change.lives() {
            Some(true) => directory.mentions(reference, &version),
            _ => None,
        };
        let Some(mentions) = mentions else {
            before = None;
            continue;
        };
        let target = mentions.iter().find_map(|mention| directory.key(reference, key, mention));
        let bound = mentions.iter().any(|mention| mention.target.is_some());
        let made = match before {
            None => version.change == Change::Created,
            Some((_, was_bound)) => !was_bound,
        };
        if let Some(target) = target.filter(|_| made) {
            let operation = match version.change {
                Change::Created => version.writer,
                _ => requested(evidence, &version, requests.get(&key).map_or(&[], |all| all)),
            };
            found.push(Binding { version, before: before.map(|(v, _)| v), target, operation });
        }
        before = Some((version, bound));
    }
    found
}

/// The request that bound a version's object. An object is bound once, so the server accepts one such request for each uid.
fn requested(evidence: &Evidence<'_>, version: &Version, requests: &[OperationId]) -> OperationId {
    let (history, clocks) = (evidence.history, &evidence.order.clocks);
    let lives = evidence.order.lifetimes(history).of_key(version.key);
    // A request without uid binds the object of the name: this one, if the name never had another and it existed before.
    let only = lives.first().filter(|life| lives.len() == 1 && life.is_born);
    let creation = only.and_then(|life| evidence.order.timeline.version_at(life.key, life.from));
    let was_there = |id: OperationId| creation.is_some_and(|creation| was_before(evidence, &creation, id));
    let can = |id: &&OperationId| {
        let o = history.operation(**id);
        let same = match o.request_uid.is_some() {
            true => o.request_uid == version.uid,
            false => was_there(**id),
        };
        same && !clocks.before(version.moment(history), (o.invoke, o.clock))
    };
    let mut able = requests.iter().filter(can);
    able.next().copied().filter(|_| able.next().is_none()).unwrap_or(OperationId::NONE)
}

/// The place of a binding in the counter of its target: by the version that shows it, by the version before it, and by the
/// request, which may have been answered long before a client was shown the version.
fn place(evidence: &Evidence<'_>, validity: &VersionValidity<'_>, binding: &Binding, resource: ResourceId) -> Place {
    let shown = Place::of_version(evidence, &binding.version, resource);
    let unseen = binding.before.filter(|before| validity.through(before).0.next() < binding.version.revision);
    let from = unseen.map_or(shown.from, |before| Place::of_version(evidence, &before, resource).from);
    if !binding.operation.is_some() {
        return Place { from, ..shown };
    }
    let request = Place::of_operation(evidence, binding.operation, resource);
    let through = shown.through.into_iter().chain(request.through).min();
    Place { from: from.max(request.from), through }
}

fn judge(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    validity: &VersionValidity<'_>,
    reference: &Reference,
    binding: &Binding,
    by: IncarnationId,
) {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let resource = history.resource_of(binding.target);
    let made = place(evidence, validity, binding, resource);
    let lives = evidence.order.lifetimes(history).of_key(binding.target);
    let Some(life) = lives.iter().rev().find(|life| life.from.is_some() && made.through.is_none_or(|t| life.from <= t))
    else {
        return;
    };
    // A binder has seen its object. If the object was created after the target's end, it was bound after that end.
    let object = evidence.order.lifetimes(history).of(binding.version.uid);
    let creation =
        object.filter(|object| object.is_born).and_then(|object| timeline.version_at(object.key, object.from));
    let known = had_ended(evidence, life, binding.operation)
        || creation.is_some_and(|creation| binding.before.is_some() && had_ended(evidence, life, creation.writer));
    let over = life.over(timeline);
    let before = over.is_some_and(|over| over <= made.from);
    if !known && !before {
        return;
    }
    let gone = over.or_else(|| life.removal(timeline).map(|removal| removal.after)).unwrap_or(life.through);
    // Another object had the name in between.
    let until = made.through.unwrap_or(Revision::new(u128::MAX)).max(gone);
    if timeline.between(binding.target, gone, until).iter().any(|v| v.change.lives() != Some(false)) {
        return;
    }
    let covered = made.through.and_then(|through| validity.covers(binding.target, gone, through.max(gone)));
    let (name, target) = (history.key_name(binding.version.key), history.key_name(binding.target));
    let mut facts: Vec<Fact> = end(evidence, life, &target, binding.operation).into_iter().collect();
    if let Some(before) = binding.before {
        facts.push(evidence.version(&before, format!("{name} was not bound yet")));
    }
    facts.extend(covered.map(|covering| validity.covering_fact(binding.target, covering)));
    if binding.operation.is_some() && binding.operation != binding.version.writer {
        facts.push(Fact {
            key: binding.version.key,
            ..evidence.request(binding.operation, Revision::NONE, format!("{name} was bound"))
        });
    }
    facts.push(evidence.version(&binding.version, format!("{name} was bound to {target}")));
    let doubt = covered.is_none().then(|| format!("nothing shows that {target} was not created again in between"));
    let kind = match (&doubt, known) {
        (_, false) => Kind::Hazard,
        (Some(_), true) => Kind::Suspect,
        (None, true) => Kind::Violation,
    };
    let reason = match known {
        true => format!("{target} was gone before {name} was bound to it, and no new object had its name"),
        false => format!("{target} was deleted while {name} was being bound, so the writer could not know"),
    };
    result.found(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: by,
        key: binding.version.key,
        cause: reference.name.clone(),
        summary: format!("{name} was bound to {target}, which was deleted {}", when(evidence, life)),
        facts,
        reason: match doubt.filter(|_| known) {
            Some(doubt) => format!("{reason}. Not proved: {doubt}."),
            None => reason,
        },
        refuted_by: format!("a creation of {target} before the binding"),
        consequence: "the object waits for a target that never takes it".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    const NODE: &str = "o@A CREATE nodes/n1 => nodes/n1:n@20\n";
    const GONE: &str = "o@A DELETE nodes/n1:n => ok\n";
    /// A client watches nodes, and another node is created after everything else: earlier changes have a lower revision.
    const WATCHED: &str =
        "o@A CREATE nodes/n2 => nodes/n2:x@50\nw@A WATCH nodes from 19 +nodes/n1:n@20 -nodes/n1:n@30 +nodes/n2:x@50\n";

    fn bound(version: u64) -> String {
        format!("o@A CREATE a => a:u1@40\ns@A PUT a:u1@40 => a:u1@{version}[node=n1]\n")
    }

    #[test]
    fn a_tombstone_that_names_no_uid_ends_a_life_as_well() {
        let text = format!(
            "{NODE}{GONE}o@A CREATE a => a:u1@40\no@A PUT a:u1@40 => a:u1@42[node=n1]\no@A CREATE nodes/n2 => nodes/n2:x@50\n\
             etcd +nodes/n1:n@20 -nodes/n1:-@30 +a:u1@40 ~a:u1@42 +nodes/n2:x@50\n"
        );
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        let back = text.replace("-nodes/n1:-@30", "-nodes/n1:-@30 +nodes/n1:m@35");
        assert_eq!(kinds(&RULE, &back), []);
    }

    #[test]
    fn a_pod_is_bound_to_a_node_that_lives() {
        assert_eq!(kinds(&RULE, &format!("{NODE}{GONE}{}{WATCHED}", bound(42))), [Kind::Violation]);
        assert!(holds(&RULE, &format!("{NODE}{}{GONE}{}", bound(42), WATCHED.replace("@30", "@45"))));
    }

    #[test]
    fn a_node_of_the_same_name_may_have_come_back() {
        // No client watched nodes.
        assert_eq!(kinds(&RULE, &format!("{NODE}{GONE}{}", bound(42))), [Kind::Suspect]);
        let back = "o@A CREATE nodes/n1 => nodes/n1:m@35\n";
        let watched = WATCHED.replace("+nodes/n2", "+nodes/n1:m@35 +nodes/n2");
        assert!(holds(&RULE, &format!("{NODE}{GONE}{back}{}{watched}", bound(42))));
    }

    #[test]
    fn who_was_binding_when_the_node_went_could_not_know() {
        // Custom resources certainly share one counter.
        let text = "resource pods.lab.example.com kind=Pod\nresource nodes.lab.example.com kind=Node cluster\n\
                    default pods.lab.example.com\no@A CREATE nodes.lab.example.com/n1 => nodes.lab.example.com/n1:n@20\n\
                    o@A CREATE a => a:u1@25\n---\n\
                    s@A |------PUT a:u1@25 => a:u1@42[node=n1]------|\n\
                    o@A    |-DELETE nodes.lab.example.com/n1:n => ok-|\n---\n\
                    w@A WATCH nodes.lab.example.com from 19 +nodes.lab.example.com/n1:n@20 -nodes.lab.example.com/n1:n@30 ^60\n";
        assert_eq!(kinds(&RULE, text), [Kind::Hazard]);
    }

    #[test]
    fn a_binding_has_its_answer_before_anybody_is_shown_it() {
        let text = format!(
            "{NODE}{GONE}o@A CREATE a => a:u1@40\ns@A CREATE a:u1[node=n1] binding => ok\n{WATCHED}w@A WATCH from 39 +a:u1@40 ~a:u1@42[node=n1] ^45\n"
        );
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        // The node was created again before.
        let back = text.replace(GONE, &format!("{GONE}o@A CREATE nodes/n1 => nodes/n1:m@35\n"));
        assert!(holds(&RULE, &back.replace("+nodes/n2", "+nodes/n1:m@35 +nodes/n2")));
        // An eviction does not bind the object. The writer of the binding and its time are unknown.
        assert_eq!(kinds(&RULE, &text.replace("binding", "eviction")), [Kind::Suspect]);
        // Nor is the life known that a request without uid meant.
        let unnamed = text.replace("a:u1[node=n1] binding", "a[node=n1] binding");
        assert_eq!(kinds(&RULE, &unnamed), [Kind::Violation]);
        let two = format!("{unnamed}o@A DELETE a:u1 => ok\no@A CREATE a => a:u2@60\n");
        assert_eq!(kinds(&RULE, &two), [Kind::Suspect]);
    }

    #[test]
    fn a_mirror_pod_stands_for_what_its_kubelet_runs_anyway() {
        let mirror = "k@A CREATE a => a:u1@42[node=n1 .metadata.annotations[\"kubernetes.io/config.mirror\"]=x]\n";
        assert_eq!(kinds(&RULE, &format!("{NODE}{GONE}{mirror}{WATCHED}")), []);
    }
}
