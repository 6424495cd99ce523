#![doc = include_str!("../../../docs/rules/split-timeline.md")]

use crate::check::etcd::writes;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::Difference;
use crate::history::resource::is_built_in;
use crate::order::{Contradiction, Fragment, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "split-timeline",
    title: "a revision has one content, in every answer and on every member",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "two pieces of evidence of one revision",
    causes: &["revision-reuse"],
    page: include_str!("../../../docs/rules/split-timeline.md"),
    checks: Checks::kubernetes(check).and_etcd(writes::split),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let timeline = &evidence.order.timeline;
    for (version, process) in timeline.all().iter().zip(timeline.processes(evidence.history)) {
        if version.attributes.is_some() {
            result.checked(*process);
        }
    }
    for contradiction in timeline.contradictions() {
        if let Contradiction::TwoContents(key, revision, other, difference) = contradiction
            && let Some(version) = timeline.version_at(*key, *revision)
        {
            two_contents(evidence, result, &version, other, *difference);
        }
    }
}

fn two_contents(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    version: &Version,
    other: &Fragment,
    difference: Difference,
) {
    let history = evidence.history;
    let (key, revision) = (history.key_name(version.key), version.revision);
    let first = evidence.version(version, format!("{key} was shown at version {revision}"));
    let says = format!("it was shown at version {revision} with another content");
    let second = evidence.shown(version, other.origin, other.uid, says);
    let resource = history.resources[history.resource_of(version.key).index()];
    let mut draft = Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: second.incarnation,
        key: version.key,
        cause: history.resource_name(history.resource_of(version.key)),
        summary: format!("{key} was shown at version {revision} with two contents: {} differs", difference.field()),
        facts: vec![first, second],
        reason: "A version of an object is one write, so every answer shows the content of that write.".into(),
        refuted_by: "evidence that one of the two was altered in transit, or belongs to another cluster".into(),
        consequence:
            "two timelines exist: decisions of selectors, schedulers and caches depend on the server that answered"
                .into(),
    };
    let innocent = if difference == Difference::Data {
        Some("a recorder or a log collector may have hidden the data of the ConfigMap")
    } else {
        let converted = !is_built_in(history.name(resource.group));
        converted.then_some("a conversion webhook of a custom resource may rewrite labels")
    };
    if let Some(innocent) = innocent {
        draft.kind = Kind::Suspect;
        draft.reason = format!("{} Not proved: {innocent}.", draft.reason);
    }
    result.found(draft);
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn a_version_has_one_content() {
        let twice = |one: &str, other: &str| format!("a@A GET x => x:u1@20[{one}]\nb@B GET x => x:u1@20[{other}]\n");
        assert_eq!(kinds(&RULE, &twice("tier=gold", "tier=iron")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &twice("node=n1", "node=n2")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &twice("phase=Running", "phase=Failed")), [Kind::Violation]);
        assert!(holds(&RULE, &twice("tier=gold node=n1", "tier=gold node=n1")));
        // A recorder may have cut one of them down.
        assert!(holds(&RULE, &twice("tier=gold", "")));
        assert!(holds(&RULE, &twice("node=n1", "tier=gold")));
        assert!(holds(&RULE, &twice("tier=gold", "?")));
    }

    #[test]
    fn other_versions_and_what_was_never_committed_may_differ() {
        assert!(holds(&RULE, "a@A GET x => x:u1@20[tier=gold]\nb@B GET x => x:u1@21[tier=iron]\n"));
        assert!(holds(&RULE, "a@A GET x => x:u1@20[tier=gold]\na@A PUT x:u1@20 dry-run => x:u1@20[tier=iron]\n"));
    }

    #[test]
    fn a_config_map_holds_one_thing_at_one_version() {
        let kinds_of = |resource: &str, kind: &str, one: &str, other: &str| {
            let text = format!(
                "resource {resource} kind={kind}\na@A GET {resource}/x => {resource}/x:u1@20[{one}]\nb@B GET {resource}/x => {resource}/x:u1@20[{other}]\n"
            );
            kinds(&RULE, &text)
        };
        let maps = |one, other| kinds_of("configmaps", "ConfigMap", one, other);
        assert_eq!(maps(".data.k=one", ".data.k=two"), [Kind::Suspect]);
        assert_eq!(maps(".binaryData.k=MQ==", ".binaryData.k=Mg=="), [Kind::Suspect]);
        assert_eq!(maps(".data.k=one", ".data.k=one"), []);
        assert_eq!(maps(".data.a=one .data.b=two", ".data.b=two .data.a=one"), []);
        // A recorder may have cut one of them down, and the data of a Secret is never compared.
        assert_eq!(maps(".data.k=one", ""), []);
        assert_eq!(maps(".data.k=one", "?"), []);
        assert_eq!(kinds_of("secrets", "Secret", ".data.k=MQ==", ".data.k=Mg=="), []);
    }

    #[test]
    fn custom_resources_may_be_converted() {
        let text = "resource gadgets.example.com kind=Gadget\na@A GET gadgets.example.com/x => gadgets.example.com/x:u1@20[tier=gold]\nb@B GET gadgets.example.com/x => gadgets.example.com/x:u1@20[tier=iron]\n";
        assert_eq!(kinds(&RULE, text), [Kind::Suspect]);
    }

    #[test]
    fn an_event_that_takes_an_object_away_shows_what_it_was() {
        let text = "a@A GET x => x:u1@25[tier=iron]\nb@B |-WATCH labels(tier=gold) from 19 +x:u1@20[tier=gold] -x:u1@25[tier=gold] ^30 ..\n";
        assert!(holds(&RULE, text));
    }
}
