//! Alternative decisions: reads or conditions that would have kept a decision from a write with a false premise.

use crate::check::{Effect, Evidence, Fact, Finding, Prevention};
use crate::history::{KeyId, Operation, OperationId, Revision};
use crate::order::{Change, Version};

/// The preventions of a write whose premise was false.
pub fn preventions(evidence: &Evidence<'_>, finding: &Finding) -> Vec<Prevention> {
    let Some((write, o)) = decided(evidence, finding) else { return Vec::new() };
    let facts = &finding.certificate.facts;
    let of = |key: KeyId| facts.iter().filter(move |fact| fact.key == key);
    match finding.rule {
        "intermediate-state" => {
            let Some(completed) = facts.last() else { return Vec::new() };
            let mut list = vec![live(evidence, &o, completed.key, completed.revision)];
            list.extend(condition(evidence, &o, finding.key));
            list.extend(named(evidence, write, completed));
            list
        }
        "false-absence" | "stale-premise" => {
            let key = facts.first().map_or(KeyId::NONE, |fact| fact.key);
            let change = of(key).map(|fact| fact.revision).max().unwrap_or(Revision::NONE);
            vec![live(evidence, &o, key, change)]
        }
        "read-skew" => again(evidence, facts).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The write of the decision: the last one by the finding's process.
fn decided(evidence: &Evidence<'_>, finding: &Finding) -> Option<(OperationId, Operation)> {
    let facts = finding.certificate.facts.iter().rev().filter(|fact| fact.operation.is_some());
    let own = facts.map(|fact| (fact.operation, evidence.history.operation(fact.operation)));
    own.into_iter().find(|(_, o)| o.verb.is_write() && o.incarnation == finding.incarnation)
}

/// A live read of the object right before the write, with the answer it would have had.
fn live(evidence: &Evidence<'_>, o: &Operation, key: KeyId, change: Revision) -> Prevention {
    let (history, order) = (evidence.history, evidence.order);
    let watermark = order.watermarks.before_request(history, &order.clocks, history.resource_of(key), o);
    let shown = watermark.and_then(|watermark| order.timeline.at_or_before(key, watermark.revision));
    let answer = match shown {
        Some(version) if version.change == Change::Deleted => {
            format!("it answers 404 (deleted at {})", version.revision)
        }
        Some(version) => format!("it answers {}", evidence.version_words(key, version.uid, version.revision)),
        None => "the evidence does not show its answer".to_owned(),
    };
    let would_show = shown.is_some_and(|version| version.revision >= change);
    Prevention {
        request: format!("a live GET of {} right before the write", history.key_name(key)),
        effect: if would_show { Effect::Narrowed } else { Effect::None },
        smallest_revision: watermark.map_or(Revision::NONE, |watermark| watermark.revision),
        because: match would_show {
            true => format!("{answer}; a window between that check and the write remains"),
            false => format!("{answer}; the change came later, at {change}"),
        },
    }
}

/// A condition on the version of the written object.
fn condition(evidence: &Evidence<'_>, o: &Operation, key: KeyId) -> Option<Prevention> {
    let object = evidence.history.key_name(key);
    (o.key == key && o.asked_revision.is_some()).then(|| Prevention {
        request: format!("a condition on the version of {object}"),
        effect: Effect::None,
        smallest_revision: Revision::NONE,
        because: format!("the write had one ({}), and it held because that object had not changed", o.asked_revision),
    })
}

/// A part that names the uid of its owner, and is freed only after that uid is gone.
fn named(evidence: &Evidence<'_>, write: OperationId, completed: &Fact) -> Option<Prevention> {
    let history = evidence.history;
    let object = history.key_name(completed.key);
    let versions = evidence.order.timeline.versions(completed.key);
    let own = |version: &Version| version.uid == completed.uid && completed.uid.is_some();
    let first = versions.iter().find(own)?;
    let o = history.operation(write);
    let lived = evidence.order.clocks.before(first.moment(history), (o.invoke, o.clock));
    lived.then(|| Prevention {
        request: format!(
            "a part that names the uid of {object}, and is freed only when a list not older than the part lacks that uid"
        ),
        effect: Effect::Impossible,
        smallest_revision: first.revision,
        because: format!(
            "uid {} existed from {} on, so every such list shows it",
            evidence.short_uid(completed.uid),
            first.revision
        ),
    })
}

/// A second read of the first value, after the last one.
fn again(evidence: &Evidence<'_>, facts: &[Fact]) -> Option<Prevention> {
    let first = facts.first()?;
    let ended = facts.iter().skip(1).find(|fact| fact.key == first.key)?;
    Some(Prevention {
        request: format!(
            "a second read of {} after all others, and a comparison",
            evidence.history.key_name(first.key)
        ),
        effect: Effect::Impossible,
        smallest_revision: ended.revision,
        because: format!(
            "its change at {} was committed by then, so the two values would not have been used together",
            ended.revision
        ),
    })
}
