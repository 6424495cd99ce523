#![doc = include_str!("../../../../docs/rules/watch-gap.md")]

mod changes;
mod name_reuse;
mod removals;

use self::changes::Changes;
use crate::check::etcd;
use crate::check::facts::state_check::{BEYOND, unless_open};
use crate::check::facts::stream_view::StreamView;
use crate::check::watches::scope_membership::{MemberState, Membership, ScopeEvidence};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Rule, RuleResult};
use crate::history::{Asked, DeliveryKind, KeyId, Revision, Symbol};
use crate::order::{Change, Version, stream_base};
use rustc_hash::{FxHashMap, FxHashSet};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-gap",
    title: "a watch delivers every change of its scope before it goes past it, or says that it cannot",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch, and other evidence of a change in its scope",
    causes: &["false-progress", "watch-reorder", "bad-initial-state", "revision-rewind", "split-timeline"],
    page: include_str!("../../../../docs/rules/watch-gap.md"),
    checks: Checks::kubernetes(check).and_etcd(etcd::watches::gap),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let mut changes = Changes::new(evidence);
    let mut membership = LazyMembership { evidence, built: None };
    let (mut removals, mut reused) = (None, None);
    for view in StreamView::all(evidence) {
        let Some(end) = identified(evidence, &view) else { continue };
        if result.is_full() {
            result.undecided("streams that were not examined, because the report has reached its limit of violations");
            continue;
        }
        if let Some(coverage) = Coverage::open(evidence, &view, end) {
            coverage.audit(&mut changes, &mut membership, result);
            removals.get_or_insert_with(|| removals::Removals::of(evidence)).audit(&coverage, result);
        }
        let reused = reused.get_or_insert_with(|| name_reuse::reused_names(evidence.history));
        name_reuse::audit(evidence, &view, end, reused, &mut membership, result);
    }
    if removals.is_some_and(|removals| removals.skipped) {
        result.undecided("removals of unknown revision that were not compared with every stream");
    }
}

/// The known past of all streams, built for the first question. Complete streams of distinct objects ask none.
struct LazyMembership<'e, 'h> {
    evidence: &'e Evidence<'h>,
    built: Option<Membership<'h>>,
}

impl<'h> LazyMembership<'_, 'h> {
    fn at_start(&mut self, view: &StreamView<'h>, key: KeyId) -> Option<MemberState> {
        self.built.get_or_insert_with(|| Membership::of(self.evidence)).at_start(view, key)
    }
}

/// The delivery up to which a stream accounts for changes: the first error, or its end. `None` if an event's object is
/// unknown.
fn identified(evidence: &Evidence<'_>, view: &StreamView<'_>) -> Option<usize> {
    let deliveries = &evidence.history.deliveries;
    let mut all = view.initial.start..view.live.end;
    if deliveries[all.clone()].iter().any(|d| d.kind == DeliveryKind::Unidentified) {
        return None;
    }
    Some(all.find(|&d| deliveries[d].kind == DeliveryKind::Error).unwrap_or(view.live.end))
}

/// The range of revisions that a stream accounts for.
struct Coverage<'c, 'h> {
    evidence: &'c Evidence<'h>,
    view: &'c StreamView<'h>,
    /// Exclusive lower bound.
    after: Revision,
    /// The delivery that shows `after`; `None` if the request does.
    opened_by: Option<usize>,
    /// Inclusive upper bound.
    through: Revision,
    /// Deliveries below this index count: it is the first error, or the end.
    end: usize,
    /// Whether the request, and so the scope, is recorded.
    scoped: bool,
}

/// The events of a stream, by key. Built when a change is not among its events.
struct StreamEvents {
    /// Per key: (revision, delivery, whether the object was in the scope after it), by revision.
    of: FxHashMap<KeyId, Vec<(Revision, usize, bool)>>,
    /// Keys with a DELETED event of unknown date.
    undated: FxHashSet<KeyId>,
    /// (highest revision so far, delivery), at each rise.
    reached: Vec<(Revision, usize)>,
}

impl<'c, 'h> Coverage<'c, 'h> {
    fn open(evidence: &'c Evidence<'h>, view: &'c StreamView<'h>, end: usize) -> Option<Coverage<'c, 'h>> {
        let mut progress = view.progress().filter(|(index, d)| *index < end && d.revision.is_some());
        let scoped = view.operation.asked != Asked::Unrecorded;
        let base = stream_base(evidence.history, view.stream.id).filter(|_| scoped);
        let began_below = view.began_below.filter(|_| scoped && view.initial.start < end);
        let (after, opened_by) = match (base, began_below) {
            (Some(base), _) => (base, view.marker),
            // Or from the first event after the initial part, if that is earlier.
            (None, Some((below, _))) if view.progress().next().is_none_or(|(_, d)| below <= d.revision) => {
                (below.previous(), Some(view.initial.start))
            }
            (None, _) => progress.next().map(|(index, d)| (d.revision, Some(index)))?,
        };
        let through = progress.map(|(_, d)| d.revision).max()?;
        (through > after).then_some(Coverage { evidence, view, after, opened_by, through, end, scoped })
    }

    fn audit(&self, changes: &mut Changes<'h>, membership: &mut LazyMembership<'_, 'h>, result: &mut RuleResult<'_>) {
        let (view, history) = (self.view, self.evidence.history);
        let scope = view.operation.scope;
        let selective = history.is_selective(scope);
        let mut delivered: Vec<(Revision, KeyId)> =
            view.changes(view.live.start..self.end).map(|(_, d)| (d.revision, d.key)).collect();
        // A stream out of order is the only case in which this sort moves anything.
        delivered.sort();
        let (mut next, mut kept) = (0, 0);
        let mut events = selective.then(|| self.events());
        let expected = match &events {
            Some(events) => changes.of_selection(scope, self.after, self.through, events.of.keys().copied()),
            None => changes.of(scope, self.after, self.through),
        };
        for version in expected {
            while delivered.get(next).is_some_and(|d| *d < (version.revision, version.key)) {
                next += 1;
            }
            if delivered.get(next) == Some(&(version.revision, version.key)) {
                kept += 1;
                continue;
            }
            let puts = version.change.lives() == Some(true);
            let selected = if selective { changes.selects(scope, &version) } else { Some(true) };
            let events = events.get_or_insert_with(|| self.events());
            let before = events.before(version.key, version.revision);
            if !puts && events.undated.contains(&version.key) {
                continue;
            }
            let proof = match before {
                // Any change of an object that the stream holds produces an event: the object stays, or it leaves.
                Some((index, true)) => Some(Obligation::Member(index)),
                _ if !self.scoped => None,
                _ if puts && selected == Some(true) => Some(Obligation::Selected),
                Some((_, false)) => None,
                None => {
                    // The list from which the stream continues may have shown the object in the selection.
                    let held = if selective { self.held(membership, version.key) } else { None };
                    held.or_else(|| {
                        if !puts && !selective {
                            return Some(Obligation::Selected);
                        }
                        if puts && selected != Some(false) {
                            return None;
                        }
                        let presence = self.evidence.order.presence(history);
                        let start = presence.version_at(version.key, self.after);
                        start.filter(|v| changes.selects(scope, v) == Some(true)).map(Obligation::Start)
                    })
                }
            };
            match proof {
                Some(_) if changes.is_contradicted(&version) => {
                    result.undecided("a change was not delivered, but its revision answers for two writes");
                }
                Some(proof) => {
                    result.checked(view.operation.incarnation);
                    self.lost(&version, proof, events, result);
                }
                None if self.scoped && puts && selected.is_none() && history.is_beyond_evidence(scope) => {
                    self.lost(&version, Obligation::Perhaps, events, result);
                }
                None if self.scoped && selected.is_none() => {
                    result.undecided("the evidence does not show whether a change concerned the watch's selector");
                }
                None => {}
            }
        }
        result.checked_many(view.operation.incarnation, kept);
    }

    /// Evidence that an object was in the selection when the stream began.
    fn held(&self, membership: &mut LazyMembership<'_, 'h>, key: KeyId) -> Option<Obligation> {
        let held = membership.at_start(self.view, key).filter(|state| state.member)?;
        Some(Obligation::Held(held.source, held.uid))
    }

    fn events(&self) -> StreamEvents {
        let (view, history) = (self.view, self.evidence.history);
        let mut events = StreamEvents { of: FxHashMap::default(), undated: FxHashSet::default(), reached: Vec::new() };
        for (index, d) in view.changes(view.initial.start..self.end) {
            events.of.entry(d.key).or_default().push((d.revision, index, d.kind != DeliveryKind::Deleted));
        }
        for of_key in events.of.values_mut() {
            of_key.sort();
        }
        for index in view.initial.start..self.end {
            if self.evidence.order.timeline.is_misdated(index) {
                events.undated.insert(history.deliveries[index].key);
            }
        }
        for (index, d) in view.progress().filter(|(index, _)| *index < self.end) {
            if events.reached.last().is_none_or(|(reached, _)| d.revision > *reached) {
                events.reached.push((d.revision, index));
            }
        }
        events
    }

    fn lost(&self, version: &Version, obligation: Obligation, events: &StreamEvents, result: &mut RuleResult<'_>) {
        let (evidence, view, o) = (self.evidence, self.view, self.view.operation);
        let name = evidence.history.key_name(version.key);
        let mut facts = vec![match self.opened_by {
            None => evidence.request(view.watch, self.after, format!("{} was sent", view.words())),
            Some(index) => evidence.delivery(index, view.watch, format!("received {}", evidence.delivery_words(index))),
        }];
        let mut because = match view.began_below.filter(|_| self.opened_by == Some(view.initial.start)) {
            Some((below, _)) => format!(
                "The write of revision {below} was sent after the first event had come, so the stream's own state \
                lies below it. "
            ),
            None => String::new(),
        };
        match obligation {
            Obligation::Selected | Obligation::Perhaps => {}
            Obligation::Held(source, uid) => {
                facts.push(source.fact(evidence, version.key, uid));
                because +=
                    "The object was in the selection when the stream began, so any change of it produces an event. ";
            }
            Obligation::Member(index) => {
                facts.push(evidence.delivery(
                    index,
                    view.watch,
                    format!("received {}", evidence.delivery_words(index)),
                ));
                because += "The stream held the object, so any change of it produces an event. ";
            }
            Obligation::Start(start) => {
                facts.push(
                    evidence.version(&start, format!("{name} was in the selection at revision {}", start.revision)),
                );
                because += "The change took the object out of the selection, which produces a DELETED event. ";
            }
        }
        facts.push(evidence.version(version, evidence.change_words(version)));
        let passed = events.reached.partition_point(|(reached, _)| *reached < version.revision);
        let Some(&(reached, index)) = events.reached.get(passed) else { return };
        facts.push(evidence.delivery(
            index,
            view.watch,
            format!(
                "received {} and nothing of {name} at revision {}",
                evidence.delivery_words(index),
                version.revision
            ),
        ));
        let words = match version.change {
            Change::Deleted => "deletion",
            _ => "change",
        };
        let draft = Draft {
            summary: format!(
                "{} never sent {} the {words} of {name} at revision {}: the stream ({}) went past it to {reached}",
                evidence.server_words(&o),
                evidence.observer_words(&o),
                version.revision,
                view.words()
            ),
            facts,
            reason: format!(
                "A watch delivers every change of its scope before it goes past the revision of that change, or says \
                that it cannot. {because}Nothing at revision {} came, and {reached} did.",
                version.revision
            ),
            refuted_by: "a more complete record of the stream with the event".to_owned(),
            consequence:
                "the client keeps the old state of the object until the object changes again or the client lists again"
                    .to_owned(),
            ..view.draft(version.key)
        };
        let draft = if let Obligation::Perhaps = obligation { unless_open(draft, Some(BEYOND)) } else { draft };
        result.found(evidence.unless_lost(view.settle(draft)));
    }
}

/// The reason why the stream had to deliver a change.
#[derive(Clone, Copy)]
enum Obligation {
    /// The change lies in the scope.
    Selected,
    /// The stream had delivered the object.
    Member(usize),
    /// The object was in the selection when the stream began.
    Start(Version),
    /// A list or stream from which this one continues shows the object in the selection.
    Held(ScopeEvidence, Symbol),
    /// It may lie in the scope: the evidence keeps nothing of the field that the selector names.
    Perhaps,
}

impl StreamEvents {
    /// The stream's last event of a key below a revision: the delivery, and whether the object was in the scope after it.
    fn before(&self, key: KeyId, revision: Revision) -> Option<(usize, bool)> {
        let events = self.of.get(&key)?;
        let at = events.partition_point(|event| event.0 < revision).checked_sub(1)?;
        Some((events[at].1, events[at].2))
    }
}

#[cfg(test)]
mod tests;
