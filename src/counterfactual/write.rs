//! Alternative writes: preconditions that a write could have had, and a live read before it.

use crate::check::{Effect, Evidence, Finding, Prevention};
use crate::history::{OperationId, Revision, Symbol};
use crate::order::Change;

/// The preventions of a write that named an object by its name only.
pub fn preventions(evidence: &Evidence<'_>, finding: &Finding, fault: OperationId) -> Vec<Prevention> {
    let (history, order) = (evidence.history, evidence.order);
    // The write at fault: that of the last fact about a write.
    let writes = finding.certificate.facts.iter().rev().map(|f| f.operation);
    let write = writes.into_iter().find(|id| id.is_some() && history.operation(*id).verb.is_write()).unwrap_or(fault);
    let o = history.operation(write);
    if !o.verb.is_write() || !o.key.is_some() {
        return Vec::new();
    }
    let object = history.key_name(o.key);
    let watermark = order.watermarks.before_request(history, &order.clocks, history.resource_of(o.key), &o);
    let current = watermark.and_then(|watermark| order.timeline.at_or_before(o.key, watermark.revision));
    // Answers to evictions and bindings show no object, so the object that had the name at the send time counts.
    let current_uid =
        current.filter(|current| current.change.lives() == Some(true)).map_or(Symbol::NONE, |current| current.uid);
    let live = if o.answer_uid.is_some() { o.answer_uid } else { current_uid };
    let believed = believed(finding, live, o.request_uid);
    let mut list = Vec::new();
    let uids = (evidence.short_uid(believed), evidence.short_uid(live));
    if believed.is_some() && live.is_some() && believed != live {
        list.push(Prevention {
            request: format!("a precondition on uid {}", uids.0),
            effect: Effect::Impossible,
            smallest_revision: Revision::NONE,
            because: format!("the live object is uid {}: the server refuses (409)", uids.1),
        });
    } else {
        let (effect, because) = match live.is_some() {
            true => (Effect::None, "the object is the same incarnation"),
            false => (Effect::Narrowed, "the evidence does not show which object the request reached"),
        };
        list.push(Prevention {
            request: "a precondition on uid".to_owned(),
            effect,
            smallest_revision: Revision::NONE,
            because: because.to_owned(),
        });
    }
    let committed = o.answered;
    let predecessor = committed.known().and_then(|at| {
        let below = at.previous();
        order.timeline.at_or_before(o.key, below)
    });
    let held =
        finding.certificate.facts.iter().filter(|f| f.operation != write && f.key == o.key).map(|f| f.revision).max();
    if let Some(held) = held.filter(|r| r.is_some()) {
        let changed = predecessor.is_some_and(|p| p.revision > held && p.change != Change::Deleted);
        list.push(Prevention {
            request: format!("a precondition on resourceVersion {held}"),
            effect: if changed { Effect::Impossible } else { Effect::Narrowed },
            smallest_revision: Revision::NONE,
            because: match predecessor {
                Some(p) if changed => format!("the object was at version {}: the server refuses (409)", p.revision),
                _ => "the evidence does not show which version the write reached".to_owned(),
            },
        });
    }
    if let Some(watermark) = watermark {
        let seen = match current {
            Some(v) if v.change == Change::Deleted => format!("it answers 404 (deleted at {})", v.revision),
            Some(v) => format!("it answers {}", evidence.version_words(o.key, v.uid, v.revision)),
            None => "the evidence does not show its answer".to_owned(),
        };
        list.push(Prevention {
            request: format!("a live GET of {object} right before the write"),
            effect: Effect::Narrowed,
            smallest_revision: watermark.revision,
            because: format!("{seen}; a window between the check and the write remains"),
        });
    }
    list
}

/// The uid that the writer presumed: the one in its request, else another one in the facts; none if only the live uid appears.
fn believed(finding: &Finding, live: Symbol, named: Symbol) -> Symbol {
    if named.is_some() && named != live {
        return named;
    }
    let uids = finding.certificate.facts.iter().map(|f| f.uid);
    uids.into_iter().find(|u| u.is_some() && *u != live).unwrap_or(Symbol::NONE)
}
