//! How it is shown that a state was old when it was asked for.

use crate::check::{Draft, Evidence, Fact, Kind};
use crate::history::{ClockId, OperationId, ResourceId, Revision, ScopeId};
use crate::ingest::Time;
use crate::order::{Relation, Version, Watermark};

/// A change that was complete before a read was sent, and that the read's answer excludes.
#[derive(Clone, Copy, Debug)]
pub struct Staleness {
    /// The change.
    pub version: Version,
    /// What shows that it was complete before.
    pub head: Watermark,
    /// The smallest difference between two clocks that would explain it away, where nothing rules that out.
    pub offset: Option<i64>,
}

/// The rule looks at this number of changes one by one, and then at the objects that the selector names.
const NEAR: usize = if cfg!(test) { 1 } else { 64 };

impl Staleness {
    /// The first known change of a scope above a revision that was complete before a moment.
    pub fn of_scope(
        evidence: &Evidence<'_>,
        scope: ScopeId,
        above: Revision,
        clock: ClockId,
        time: Time,
    ) -> Option<Staleness> {
        let history = evidence.history;
        let resource = history.scopes[scope.index()].resource;
        let bound = bound(evidence, resource, clock, time).filter(|b| *b > above)?;
        let timeline = &evidence.order.timeline;
        let inside = |v: &Version| {
            history.covers_key(scope, v.key) && history.selects(scope, v.key, v.attributes) != Some(false)
        };
        let mut changes = timeline.of_resource(resource, above, bound);
        let near = changes.by_ref().take(NEAR).find(inside);
        let first = near.or_else(|| {
            // Where many selectors are each held against many changes, only objects that one may select are looked at.
            let selective = history.is_selective(scope) && changes.by_ref().peekable().peek().is_some();
            match selective.then(|| evidence.selectable(resource).keys(evidence, scope)).flatten() {
                Some(keys) => {
                    let first = |key| timeline.between(key, above, bound).iter().find(inside);
                    keys.into_iter().filter_map(first).min_by_key(|v| (v.revision, v.key))
                }
                None => timeline.of_resource(resource, above, bound).skip(NEAR).find(inside),
            }
        })?;
        Staleness::by(evidence, first, clock, time)
    }

    /// A change, if it was complete before a moment.
    pub fn by(evidence: &Evidence<'_>, version: Version, clock: ClockId, time: Time) -> Option<Staleness> {
        let resource = evidence.history.resource_of(version.key);
        let mut weaker: Option<Staleness> = None;
        for head in evidence.order.heads.reached(evidence.history, resource, version.revision) {
            match evidence.order.clocks.relation((head.time, head.clock), (time, clock)) {
                Relation::Before => return Some(Staleness { version, head, offset: None }),
                // All that speaks for it has to be explained away, so the largest offset counts.
                Relation::BeforeUnless(offset) if weaker.is_none_or(|w| w.offset < Some(offset)) => {
                    weaker = Some(Staleness { version, head, offset: Some(offset) });
                }
                _ => {}
            }
        }
        weaker
    }

    /// The facts: the change, and what shows it complete (unless that is the same record).
    pub fn facts(&self, evidence: &Evidence<'_>) -> Vec<Fact> {
        let change = evidence.version(&self.version, evidence.change_words(&self.version));
        let shown = evidence.showing(
            self.head.showing,
            self.head.revision,
            format!("revision {} had been reached", self.head.revision),
        );
        if (change.position, change.operation) == (shown.position, shown.operation) {
            vec![change]
        } else {
            vec![change, shown]
        }
    }

    /// A finding that rests on this: a suspect where clocks could explain it away.
    pub fn settle(&self, draft: Draft) -> Draft {
        unless_clocks_differ(draft, self.offset, "the write was not complete before")
    }
}

/// A finding that rests on two times: a suspect where clocks that differ by an offset explain it away, in that something else is true.
pub fn unless_clocks_differ(mut draft: Draft, offset: Option<i64>, otherwise: &str) -> Draft {
    if let Some(offset) = offset {
        draft.kind = Kind::Suspect;
        let milliseconds = offset as f64 / 1e6;
        draft.reason = format!(
            "{} Not proved: the two times are of two clocks (or of one that stepped), and if these differ by {milliseconds:.3} ms or more {otherwise}.",
            draft.reason
        );
    }
    draft
}

/// Why a finding that rests on two times of one clock is open, where times of that clock fall from one line to a later one.
pub fn set_back(gap: i64) -> String {
    format!(
        "Not proved: times of the clock fall from one line to a later one, and if it was set back by {:.3} ms or more in between, the \
         write was sent first.",
        gap as f64 / 1e6
    )
}

/// The highest revision that may have been complete before a moment, by proof or by bare times.
pub fn bound(evidence: &Evidence<'_>, resource: ResourceId, clock: ClockId, time: Time) -> Option<Revision> {
    if !time.is_known() {
        return None;
    }
    let (heads, clocks) = (&evidence.order.heads, &evidence.order.clocks);
    let proved = heads.before(evidence.history, clocks, resource, clock, time).map(|h| h.revision);
    let bare = heads.before_by_the_clock(evidence.history, resource, time).map(|h| h.revision);
    proved.max(bare)
}

/// A read in facts: what was asked and what was answered.
pub fn answer(evidence: &Evidence<'_>, id: OperationId, revision: Revision, answered: &str) -> Fact {
    let request = evidence.history.request_name(&evidence.history.operation(id));
    evidence.operation(id, revision, format!("{request}, sent later, answered {answered}"))
}
