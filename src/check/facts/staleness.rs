//! Proofs that a state was stale at its request. Input: the state's revision or version and the time of the request. Output: a
//! change that was complete before, and the clock offset that would explain it away if the times are of two clocks.

use crate::check::{Draft, Evidence, Fact, Kind};
use crate::history::{Operation, OperationId, ResourceId, Revision};
use crate::order::{Relation, Version, Watermark};

/// A change that was complete before a read was sent, and that the read's answer excludes.
#[derive(Clone, Copy, Debug)]
pub struct Staleness {
    /// The change.
    pub version: Version,
    /// The watermark that shows the change complete before the request.
    pub watermark: Watermark,
    /// The smallest clock offset that would explain it away, in nanoseconds; `None` if nothing would.
    pub offset: Option<i64>,
}

impl Staleness {
    /// The first known change of a request's scope above a revision that was complete before the request was sent.
    pub fn of_scope(evidence: &Evidence<'_>, above: Revision, request: &Operation) -> Option<Staleness> {
        let resource = evidence.history.scopes[request.scope.index()].resource;
        let bound = bound(evidence, resource, request).filter(|b| *b > above)?;
        Staleness::of_interval(evidence, (above, bound), request)
    }

    /// As [`Staleness::of_scope`], with the bound from the caller.
    pub fn of_interval(
        evidence: &Evidence<'_>,
        (above, bound): (Revision, Revision),
        request: &Operation,
    ) -> Option<Staleness> {
        let (history, scope) = (evidence.history, request.scope);
        let resource = history.scopes[scope.index()].resource;
        let (timeline, near_changes) = (&evidence.order.timeline, evidence.facts.sizes.near_changes);
        let inside = |v: &Version| {
            history.covers_key(scope, v.key) && history.selects(scope, v.key, v.attributes) != Some(false)
        };
        let mut changes = timeline.of_resource(resource, above, bound);
        let near = changes.by_ref().take(near_changes).find(inside);
        let first = near.or_else(|| {
            // Many selectors and many changes would cost their product, so only objects that the selector may select are
            // examined.
            let selective = history.is_selective(scope) && changes.by_ref().peekable().peek().is_some();
            match selective.then(|| evidence.selectable(resource).keys(evidence, scope)).flatten() {
                Some(keys) => {
                    let first = |key| timeline.between(key, above, bound).iter().find(inside);
                    keys.into_iter().filter_map(first).min_by_key(|v| (v.revision, v.key))
                }
                None => timeline.of_resource(resource, above, bound).skip(near_changes).find(inside),
            }
        })?;
        Staleness::by(evidence, first, request)
    }

    /// A change, if it was complete before a request was sent.
    pub fn by(evidence: &Evidence<'_>, version: Version, request: &Operation) -> Option<Staleness> {
        let clocks = &evidence.order.clocks;
        let resource = evidence.history.resource_of(version.key);
        let mut weaker: Option<Staleness> = None;
        for watermark in evidence.order.watermarks.reached(evidence.history, resource, version.revision) {
            for sent in clocks.sent(request) {
                match clocks.relation((watermark.time, watermark.clock), sent) {
                    Relation::Before => return Some(Staleness { version, watermark, offset: None }),
                    // Every pair of times has to be explained away, so the largest offset counts.
                    Relation::BeforeUnless(offset) if weaker.is_none_or(|w| w.offset < Some(offset)) => {
                        weaker = Some(Staleness { version, watermark, offset: Some(offset) });
                    }
                    _ => {}
                }
            }
        }
        weaker
    }

    /// The facts: the change, and the watermark that shows it complete (unless that is the same record).
    pub fn facts(&self, evidence: &Evidence<'_>) -> Vec<Fact> {
        let change = evidence.version(&self.version, evidence.change_words(&self.version));
        let shown = evidence.showing(
            self.watermark.showing,
            self.watermark.revision,
            format!("revision {} had been reached", self.watermark.revision),
        );
        if (change.position, change.operation) == (shown.position, shown.operation) {
            vec![change]
        } else {
            vec![change, shown]
        }
    }

    /// A finding that rests on this staleness. It becomes a suspect if a clock offset would explain it away.
    pub fn settle(&self, draft: Draft) -> Draft {
        unless_clocks_differ(draft, self.offset, "the write was not complete before")
    }
}

/// A finding that rests on two times. It becomes a suspect if a clock offset would explain it away; `otherwise` is the clause
/// for that case.
pub fn unless_clocks_differ(mut draft: Draft, offset: Option<i64>, otherwise: &str) -> Draft {
    if let Some(offset) = offset {
        draft.kind = Kind::Suspect;
        let milliseconds = offset as f64 / 1e6;
        draft.reason = format!(
            "{} Not proved: the two times are of two clocks (or of one that stepped). If these differ by \
            {milliseconds:.3} ms or more, {otherwise}.",
            draft.reason
        );
    }
    draft
}

/// The doubt of a finding that rests on two times of one clock whose times fall from one line to a later one.
pub fn set_back(gap: i64) -> String {
    format!(
        "Not proved: times of the clock fall from one line to a later one. If the clock was set back by {:.3} ms or \
        more in between, the write was sent first.",
        gap as f64 / 1e6
    )
}

/// The highest revision that may have been complete before a request was sent, by proof or by unrelated times.
pub fn bound(evidence: &Evidence<'_>, resource: ResourceId, request: &Operation) -> Option<Revision> {
    let (watermarks, clocks) = (&evidence.order.watermarks, &evidence.order.clocks);
    let bare = |(time, _)| watermarks.before_by_the_clock(evidence.history, resource, time);
    let proved = watermarks.before_request(evidence.history, clocks, resource, request);
    let all = proved.into_iter().chain(clocks.sent(request).filter_map(bare));
    all.map(|watermark| watermark.revision).max()
}

/// A read as a fact: its request and its answer.
pub fn answer(evidence: &Evidence<'_>, id: OperationId, revision: Revision, answered: &str) -> Fact {
    let request = evidence.history.request_name(&evidence.history.operation(id));
    evidence.operation(id, revision, format!("{request}, sent later, returned {answered}"))
}
