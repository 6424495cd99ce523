//! Stretches of T of which watches delivered everything: what they did not mention did not happen, or the watch is wrong.

use super::timeline::{Span, Timeline};
use super::version::{Provenance, Version};
use crate::history::{History, KeyId, OperationId, ResourceId, Revision, Stream, Symbol};
use rustc_hash::{FxHashMap, FxHashSet};

/// (after, through]: every change is delivered.
type Stretch = (Revision, Revision);

/// The stretches of every scope.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// By resource and namespace (none: all), in order; they do not meet.
    of: FxHashMap<(ResourceId, Symbol), Vec<Stretch>>,
    /// Keys with a DELETED event of no date.
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
            // What meets is one.
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

    /// Through which revision watches show no change of a version that was certainly there through another.
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
        // Its end may be one that nobody dates.
        let removed = !version.uid.is_some() && !timeline.removals(version.key).is_empty();
        let ended = removed || timeline.may_be_removed(version.key, version.uid);
        (!ended && !self.undated.contains(&version.key)).then_some(end)
    }

    /// A watch that went past a revision of a key.
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

/// Whether a stretch is of a watch of more than one name.
fn is_wide(history: &History, span: &Span) -> bool {
    span.provenance == Provenance::Event
        && span.scope.is_some()
        && history.name(history.scopes[span.scope.index()].name).is_empty()
}
