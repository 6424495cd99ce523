#![doc = include_str!("../../../docs/rules/resume-from-item.md")]

use crate::check::protocol::changes_between::{Stretch, changes};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{DeliveryKind, OperationId, Revision, Verb};
use crate::order::{EvidenceRef, Start, Step, remembers};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "resume-from-item",
    title: "a watch after a list starts from the list's revision, and not from the version of an item",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a list with its body and a watch after it by the same process",
    causes: &[],
    page: include_str!("../../../docs/rules/resume-from-item.md"),
    checks: Checks::kubernetes(check),
};

/// The revision that a watch should have started from, and the item whose version it used.
pub(in crate::check) struct Mistaken {
    /// Revision of the list, or of the bookmark that ends the initial events.
    right: Revision,
    /// The evidence of `right`.
    showing: EvidenceRef,
    /// The item with the version from which the watch started.
    item: Item,
}

enum Item {
    Listed(OperationId, usize),
    Delivered(usize, OperationId),
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    for chain in &evidence.order.chains.chains {
        if !remembers(history, chain.incarnation) {
            continue;
        }
        for step in chain.steps.iter().filter(|s| history.operation(s.operation).verb == Verb::Watch) {
            if matches!(step.start, Start::List(_) | Start::Item(_) | Start::Continues(_)) {
                result.checked(chain.incarnation);
            }
            let Some(mistaken) = mistaken(evidence, step) else { continue };
            let o = history.operation(step.operation);
            let (start, right) = (o.asked_revision, mistaken.right);
            let (client, scope) = (evidence.short_client(&o), history.scope_name(chain.scope));
            let mut facts = vec![
                evidence.showing(
                    mistaken.showing,
                    right,
                    format!("{client} had the state of {scope} at revision {right}"),
                ),
                item_fact(evidence, &mistaken.item),
                evidence.request(step.operation, start, format!("it asked to watch {scope} from revision {start}")),
            ];
            let (kind, reason) = match changes(evidence, chain.scope, start, right, |_| true) {
                Stretch::Changed(version) => {
                    facts.push(evidence.version(&version, evidence.change_words(&version)));
                    let reason = "the watch delivers this change again, although the list already shows its outcome";
                    (Kind::Violation, reason)
                }
                _ => (
                    Kind::Hazard,
                    "no change in between is known to be in the scope, so the evidence shows no repeated event",
                ),
            };
            result.found(evidence.unless_lost(Draft {
                kind,
                broken_by: BrokenBy::Client,
                incarnation: chain.incarnation,
                key: facts[1].key,
                cause: scope.clone(),
                summary: format!(
                    "{client} began its watch on {scope} at {start}, the version of an item, instead of {right}, the revision of the list"
                ),
                facts,
                reason: reason.to_owned(),
                refuted_by: "another list or watch of this process that explains the start".to_owned(),
                consequence: "objects that were deleted before the list come back, or the watch fails with 410 again \
                             and again"
                    .to_owned(),
            }));
        }
    }
}

fn item_fact(evidence: &Evidence<'_>, item: &Item) -> Fact {
    let history = evidence.history;
    match *item {
        Item::Listed(list, index) => {
            let item = history.items[index];
            let says = format!("{} was listed at its version {}", history.key_name(item.key), item.revision);
            evidence.item(list, item.key, item.uid, item.revision, says)
        }
        Item::Delivered(index, watch) => {
            let d = history.deliveries[index];
            let says = format!("the initial events showed {} at its version {}", history.key_name(d.key), d.revision);
            evidence.delivery(index, watch, says)
        }
    }
}

/// Whether a watch started from an item's version instead of the revision of the state before it.
pub(in crate::check) fn mistaken(evidence: &Evidence<'_>, step: &Step) -> Option<Mistaken> {
    let history = evidence.history;
    let start = history.operation(step.operation).asked_revision;
    match step.start {
        // Another consumer may have reached this very version.
        _ if step.has_concurrent_consumers => None,
        Start::Item(list) => {
            let listed = history.operation(list);
            let index = listed.items().find(|&i| history.items[i].revision == start)?;
            Some(Mistaken {
                right: listed.answered,
                showing: EvidenceRef::Answer(list),
                item: Item::Listed(list, index),
            })
        }
        // The stream before it delivered its initial state and nothing else.
        Start::Continues(previous) => {
            let stream = history.stream_of(previous)?;
            let end = stream.deliveries().find(|&i| history.deliveries[i].kind == DeliveryKind::InitialEventsEnd)?;
            let right = history.deliveries[end].revision;
            let later = (end + 1..stream.deliveries().end).any(|i| history.deliveries[i].key.is_some());
            let item = (stream.deliveries().start..end).find(|&i| history.deliveries[i].revision == start)?;
            (!later && start < right).then_some(Mistaken {
                right,
                showing: EvidenceRef::Delivery(end as u32, previous),
                item: Item::Delivered(item, previous),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::protocol::resume_backwards;
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn an_item_s_version_is_not_the_list_s() {
        let text = "c@A LIST => 31 {a:u1@20}\nc@A WATCH from 20 +b:u2@25 -b:u2@31\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert_eq!(kinds(&resume_backwards::RULE, text), []);
        assert!(holds(&RULE, "c@A LIST => 31 {a:u1@20}\nc@A WATCH from 31\n"));
        assert_eq!(kinds(&RULE, "c@A LIST => 31 {a:u1@20}\nc@A WATCH from 20\n"), [Kind::Hazard]);
    }

    #[test]
    fn a_relist_does_not_hide_it() {
        let text = "c@A WATCH from 22 +z:u9@23 !410 eof\nc@A LIST => 31 {a:u1@20}\nc@A WATCH from 20 +b:u2@25\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert_eq!(kinds(&resume_backwards::RULE, text), []);
    }

    #[test]
    fn the_end_of_the_initial_events_is_the_list_s_revision() {
        let text = "c@A WATCH initial +a:u1@20 ^^31 eof\nc@A WATCH from 20 +b:u2@25\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert_eq!(kinds(&resume_backwards::RULE, text), []);
        assert!(holds(&RULE, "c@A WATCH initial +a:u1@20 ^^31 eof\nc@A WATCH from 31\n"));
    }
}
