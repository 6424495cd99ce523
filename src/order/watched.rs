//! Intervals of the revision order in which watches delivered every change of a scope. A change that they do not show did not
//! happen, or the watch is wrong. Only watches of more than one name count.

use super::timeline::{Span, Timeline};
use super::version::{Provenance, Version};
use crate::history::{History, KeyId, OperationId, ResourceId, Revision, Stream, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

/// (after, through]: every change in it is delivered.
type Stretch = (Revision, Revision);

/// The intervals of every scope.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// By resource and namespace (none: all), sorted and disjoint.
    of: FxHashMap<(ResourceId, Symbol), Vec<Stretch>>,
    /// Keys with a misdated DELETED event.
    undated: FxHashSet<KeyId>,
}

impl Watched {
    pub(super) fn of(history: &History, timeline: &Timeline) -> Watched {
        let mut watched = Watched::default();
        for span in timeline.spans().iter().filter(|span| is_wide(history, span)) {
            let scope = history.scopes[span.scope.index()];
            let namespace = if history.name(scope.namespace).is_empty() { Symbol::NONE } else { scope.namespace };
            watched.of.entry((scope.resource, namespace)).or_default().push((span.after, span.through));
        }
        for stretches in watched.of.values_mut() {
            stretches.sort_unstable();
            // Merge intervals that touch.
            stretches.dedup_by(|next, last| {
                let meets = next.0 <= last.1;
                if meets {
                    last.1 = last.1.max(next.1);
                }
                meets
            });
        }
        watched.undated = timeline.misdated.iter().map(|&index| history.deliveries[index as usize].key).collect();
        watched
    }

    /// The revision through which watches show no change of a version that is known to be current through another revision.
    pub(super) fn past(
        &self,
        history: &History,
        timeline: &Timeline,
        version: &Version,
        through: Revision,
    ) -> Option<Revision> {
        let key = history.keys[version.key.index()];
        let around = |namespace: Symbol| {
            let stretches = self.of.get(&(key.resource, namespace))?;
            let at = stretches.partition_point(|stretch| stretch.0 <= through).checked_sub(1)?;
            Some(stretches[at].1).filter(|end| *end > through)
        };
        let end = around(Symbol::NONE).max(around(key.namespace))?;
        // A removal of unknown revision may have ended it.
        let removed = !version.uid.is_some() && !timeline.removals(version.key).is_empty();
        let ended = removed || timeline.may_be_removed(version.key, version.uid);
        (!ended && !self.undated.contains(&version.key)).then_some(end)
    }

    /// A watch that delivers every change of a key up to a revision and beyond.
    pub(super) fn by(history: &History, timeline: &Timeline, key: KeyId, revision: Revision) -> Option<OperationId> {
        let past = |span: &&Span| {
            is_wide(history, span)
                && history.covers_key(span.scope, key)
                && span.after < revision
                && revision <= span.through
        };
        let span = timeline.spans().iter().find(past)?;
        let of = |stream: &&Stream| history.operation(stream.operation).position == span.position;
        history.streams.iter().find(of).map(|stream| stream.operation)
    }
}

/// Whether an interval comes from a watch of more than one name.
fn is_wide(history: &History, span: &Span) -> bool {
    span.provenance == Provenance::Event
        && span.scope.is_some()
        && history.name(history.scopes[span.scope.index()].name).is_empty()
}
