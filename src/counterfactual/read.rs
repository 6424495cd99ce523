//! Alternative reads: other resource versions, live reads, and clients that check what they get.

use super::subject;
use crate::check::{BrokenBy, Effect, Evidence, Finding, Prevention};
use crate::history::{Asked, KeyId, OperationId, Revision, Verb};
use crate::order::{Change, Version};

/// The requests that a read with a stale answer could have made instead.
pub fn preventions(evidence: &Evidence<'_>, finding: &Finding, fault: OperationId) -> Vec<Prevention> {
    let (history, order) = (evidence.history, evidence.order);
    let o = history.operation(fault);
    if o.verb.is_write() {
        return super::write::preventions(evidence, finding, fault);
    }
    // The events of a stream follow from its start revision.
    let reached = finding.certificate.facts.iter().map(|f| f.revision).max().unwrap_or(Revision::NONE);
    if o.verb == Verb::Watch && o.asked == Asked::From && o.asked_revision < reached {
        return resumptions(evidence, finding, fault);
    }
    let resource = history.scopes[o.scope.index()].resource;
    // The highest revision that the session had seen or the contract guaranteed.
    let facts = &finding.certificate.facts;
    // A removal of unknown revision is cited with the version that it ended, which the object had while it existed.
    let removed = facts.iter().find(|f| {
        f.key.is_some()
            && f.operation.is_some()
            && order.timeline.removals(f.key).iter().any(|r| r.operation == f.operation)
    });
    let versions = facts[..facts.len() - 1].iter().filter(|f| removed.is_none_or(|r| r.operation != f.operation));
    let frontier = versions.map(|f| f.revision).max().unwrap_or(Revision::NONE);
    let answered = facts.last().map_or(Revision::NONE, |f| f.revision);
    let watermark = order.watermarks.before_request(history, &order.clocks, resource, &o);
    let mut list = Vec::new();
    let mut say = |request: String, effect, smallest_revision, because: String| {
        list.push(Prevention { request, effect, smallest_revision, because });
    };
    if o.asked != Asked::Unset {
        match watermark {
            Some(watermark) if watermark.revision > answered => say(
                "resourceVersion unset (the most recent state)".to_owned(),
                Effect::Impossible,
                watermark.revision,
                format!(
                    "revision {} was committed before the request was sent, so no older state is an answer",
                    watermark.revision
                ),
            ),
            _ => say(
                "resourceVersion unset (the most recent state)".to_owned(),
                Effect::Narrowed,
                Revision::NONE,
                "the evidence does not prove that anything newer was committed before the request was sent".to_owned(),
            ),
        }
    }
    if frontier.is_some() && !(o.asked == Asked::From && o.asked_revision >= frontier) {
        say(
            format!("resourceVersion={frontier}&resourceVersionMatch=NotOlderThan"),
            Effect::Impossible,
            frontier,
            "the server waits until it has this revision, or refuses (504 Too large resource version)".to_owned(),
        );
        if o.verb == Verb::List {
            say(
                format!("resourceVersion={frontier}&resourceVersionMatch=Exact"),
                Effect::Impossible,
                frontier,
                "the server answers with exactly this state, or refuses (410, 504); used later, it shows the past"
                    .to_owned(),
            );
        }
    }
    let key = removed.map_or_else(|| subject(finding), |removed| removed.key);
    if o.verb != Verb::Get && key.is_some() {
        let found = watermark.and_then(|h| order.timeline.at_or_before(key, h.revision));
        // Another object may have taken the name since.
        let gone = removed.filter(|removal| {
            let is_other = |v: Version| removal.uid.is_some() && v.uid.is_some() && v.uid != removal.uid;
            !found.is_some_and(|v| is_other(v) && v.change.lives() == Some(true))
        });
        say(
            format!("a live GET of {} before acting", history.key_name(key)),
            Effect::Narrowed,
            watermark.map_or(Revision::NONE, |watermark| watermark.revision),
            format!(
                "{}; the list stays stale, and a window between that check and the act remains",
                match gone {
                    Some(_) => "it answers 404: the removal had been answered".to_owned(),
                    None => would_show(evidence, key, found),
                }
            ),
        );
        let held = history.item(&o, key).map(|item| (item.uid, item.revision));
        if let Some((uid, version)) = held {
            let live = found.filter(|v| v.change != Change::Deleted);
            let same = removed.is_none() && live.is_some_and(|v| v.uid == uid && v.revision == version);
            say(
                "preconditions on uid and resourceVersion in the writes that follow".to_owned(),
                if same { Effect::None } else { Effect::Narrowed },
                Revision::NONE,
                if same {
                    "the revision order has exactly this object and version, so the conditions hold".to_owned()
                } else {
                    "the read stays stale; a write based on it is refused, because the object had changed or was gone"
                        .to_owned()
                },
            );
        }
    }
    if frontier.is_some() && finding.broken_by != BrokenBy::Client {
        say(
            format!("a client that refuses answers below {frontier}"),
            Effect::Impossible,
            frontier,
            format!(
                "the answer ({answered}) is below what the client had seen; Kubernetes defines this comparison since 1.35"
            ),
        );
    }
    list
}

/// The start revisions that a watch could have used instead.
pub fn resumptions(evidence: &Evidence<'_>, finding: &Finding, fault: OperationId) -> Vec<Prevention> {
    let o = evidence.history.operation(fault);
    let frontier = finding.certificate.facts.iter().map(|f| f.revision).max().unwrap_or(Revision::NONE);
    let started = o.asked_revision;
    vec![
        Prevention {
            request: format!(
                "watch from resourceVersion={frontier}, the highest revision that the stream or list had reached"
            ),
            effect: Effect::Impossible,
            smallest_revision: frontier,
            because: format!(
                "the server replays only events above the start, so nothing in ({started}, {frontier}] arrives again"
            ),
        },
        Prevention {
            request: "a client that ignores events below its frontier".to_owned(),
            effect: Effect::Impossible,
            smallest_revision: frontier,
            because:
                "the replayed events are recognized as old and dropped; Kubernetes defines this comparison since 1.35"
                    .to_owned(),
        },
        Prevention {
            request: "list again (resourceVersion unset) and watch from the list's revision".to_owned(),
            effect: Effect::Impossible,
            smallest_revision: frontier,
            because: "the list shows the state, not the changes that led to it".to_owned(),
        },
    ]
}

fn would_show(evidence: &Evidence<'_>, key: KeyId, found: Option<Version>) -> String {
    match found {
        Some(v) if v.change == Change::Deleted => format!("it answers 404: deleted at {}", v.revision),
        Some(v) => format!("it answers {} or later", evidence.version_words(key, v.uid, v.revision)),
        None => "the evidence does not show its answer".to_owned(),
    }
}
