//! Input: removals at unknown revisions, and streams. Output: findings for streams that went past such a removal without a
//! DELETED event. An item of a DELETECOLLECTION may also be marked for deletion, with a MODIFIED event. A removal lies between
//! two known revisions; a stream must reach the upper one to have passed it.

use crate::check::facts::removals::{self, Ended};
use crate::check::watches::watch_gap::Coverage;
use crate::check::{Draft, Evidence, RuleResult};
use crate::history::{DeliveryKind, KeyId, ResourceId, Revision};
use crate::order::Change;
use rustc_hash::{FxHashMap, FxHashSet};

/// Upper bound on the pairs of a stream and a removal that are examined in one history.
const MAX_PAIRS: usize = 50_000_000;

/// Removals bounded on both sides, by resource. The rule on changes handles those for which the revision order may know the
/// deletion.
pub(super) struct Removals {
    of: FxHashMap<ResourceId, Vec<Ended>>,
    pairs: usize,
    pub(super) skipped: bool,
}

impl Removals {
    pub(super) fn of(evidence: &Evidence<'_>) -> Removals {
        let timeline = &evidence.order.timeline;
        let mut of: FxHashMap<_, Vec<Ended>> = FxHashMap::default();
        let removed = timeline.open_removals().iter().filter(|r| r.uid.is_some()).map(Ended::from);
        let deleted = evidence.order.deleted_items.all().iter().map(Ended::from);
        for removal in removed.chain(deleted).filter(Ended::is_bounded) {
            let ends = |change| matches!(change, Change::Deleted | Change::Left);
            let through = removal.before.unwrap_or_default();
            if !timeline.between(removal.key, removal.after, through).iter().any(|v| ends(v.change)) {
                of.entry(evidence.history.resource_of(removal.key)).or_default().push(removal);
            }
        }
        Removals { of, pairs: 0, skipped: false }
    }

    /// States the removals that a stream went past without an event.
    pub(super) fn audit(&mut self, coverage: &Coverage<'_, '_>, result: &mut RuleResult<'_>) {
        let (evidence, view) = (coverage.evidence, coverage.view);
        let (history, scope) = (evidence.history, view.operation.scope);
        let Some(removals) = self.of.get(&history.scopes[scope.index()].resource) else { return };
        self.pairs += removals.len();
        if self.pairs > MAX_PAIRS {
            self.skipped = true;
            return;
        }
        let passed = |r: &&Ended| r.before.is_some_and(|before| before <= coverage.through.next());
        let mut shown: Option<ShownObjects> = None;
        for removal in removals.iter().filter(passed).filter(|r| history.covers_key(scope, r.key)) {
            let shown = shown.get_or_insert_with(|| ShownObjects::of(coverage));
            let last = shown.held.get(&removal.key);
            let held = last.filter(|(_, revision)| Some(*revision) < removal.before);
            let held = held.filter(|(index, _)| history.deliveries[*index].uid == removal.uid);
            let whole = coverage.scoped && !history.is_selective(scope) && coverage.after <= removal.after;
            let may_be_marked = |(index, _): &(usize, Revision)| {
                removals::through(evidence, &history.deliveries[*index].item(), coverage.through).is_none()
            };
            let is_open = !removal.is_gone && last.is_some_and(may_be_marked);
            if shown.ended.contains(&removal.key) || !(held.is_some() || whole) || is_open {
                continue;
            }
            result.checked(view.operation.incarnation);
            lost(coverage, *removal, held.map(|(index, _)| *index), result);
        }
    }
}

/// The events of a stream, by name.
struct ShownObjects {
    /// The last delivery that shows the object, and its revision.
    held: FxHashMap<KeyId, (usize, Revision)>,
    /// Names with a DELETED event, whatever its date.
    ended: FxHashSet<KeyId>,
}

impl ShownObjects {
    fn of(coverage: &Coverage<'_, '_>) -> ShownObjects {
        let mut shown = ShownObjects { held: FxHashMap::default(), ended: FxHashSet::default() };
        for index in coverage.view.initial.start..coverage.end {
            let d = &coverage.evidence.history.deliveries[index];
            match d.kind {
                DeliveryKind::Deleted => {
                    shown.ended.insert(d.key);
                }
                _ if d.key.is_some() => {
                    shown.held.insert(d.key, (index, d.revision));
                }
                _ => {}
            }
        }
        shown
    }
}

fn lost(coverage: &Coverage<'_, '_>, removal: Ended, held: Option<usize>, result: &mut RuleResult<'_>) {
    let (evidence, view, o) = (coverage.evidence, coverage.view, coverage.view.operation);
    let name = evidence.history.key_name(removal.key);
    let through = removal.before.map_or(Revision::NONE, Revision::previous);
    let reached = view.progress().find(|(index, d)| *index < coverage.end && d.revision >= through);
    let Some((reached, d)) = reached else { return };
    let mut facts = vec![match held {
        Some(index) => evidence.delivery(index, view.watch, format!("received {}", evidence.delivery_words(index))),
        None => evidence.request(view.watch, coverage.after, format!("{} was sent", view.words())),
    }];
    facts.extend(removals::facts(evidence, removal));
    let says = format!("received {} and no end of {name}", evidence.delivery_words(reached));
    facts.push(evidence.delivery(reached, view.watch, says));
    let draft = Draft {
        summary: format!(
            "{} never sent {} the {} of {name}: the stream ({}) went past it to {}",
            evidence.server_words(&o),
            evidence.observer_words(&o),
            if removal.is_gone { "deletion" } else { "deletion or the deletionTimestamp" },
            view.words(),
            d.revision
        ),
        facts,
        reason: format!(
            "The {} was answered before the write of revision {} was sent, so it lies below that revision. A \
            watch delivers every change of its scope before it goes past it.",
            if removal.is_gone { "removal" } else { "deletion" },
            removal.before.unwrap_or_default()
        ),
        refuted_by: "a more complete record of the stream with the DELETED event".to_owned(),
        consequence: "the client keeps an object that is gone, until it lists again".to_owned(),
        ..view.draft(removal.key)
    };
    result.found(evidence.unless_lost(view.settle(draft)));
}
