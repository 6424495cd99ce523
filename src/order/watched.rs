//! Stretches of T of which watches delivered everything: what they did not mention did not happen, or the watch is wrong.

use super::claims::{may_select, stream_base};
use super::timeline::{Timeline, Version};
use crate::history::{DeliveryKind, History, KeyId, OperationId, ResourceId, Revision, Stream, Symbol};
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
        for stream in &history.streams {
            let Some(stretch) = stretch(history, timeline, stream) else { continue };
            let scope = history.scopes[history.operation(stream.operation).scope.index()];
            let namespace = if history.name(scope.namespace).is_empty() { Symbol::NONE } else { scope.namespace };
            watched.of.entry((scope.resource, namespace)).or_default().push(stretch);
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
        let removals = timeline.removals(version.key);
        let ended = removals.iter().any(|r| !r.uid.is_some() || !version.uid.is_some() || r.uid == version.uid);
        (!ended && !self.undated.contains(&version.key)).then_some(end)
    }

    /// A watch that went past a revision of a key.
    pub(super) fn by(history: &History, timeline: &Timeline, key: KeyId, revision: Revision) -> Option<OperationId> {
        let past = |stream: &&Stream| {
            history.covers_key(history.operation(stream.operation).scope, key)
                && stretch(history, timeline, stream)
                    .is_some_and(|(after, through)| after < revision && revision <= through)
        };
        history.streams.iter().find(past).map(|stream| stream.operation)
    }
}

/// What a stream delivers everything of: all that is in its scope, as far as its client recorded it without loss.
fn stretch(history: &History, timeline: &Timeline, stream: &Stream) -> Option<Stretch> {
    let watch = history.operation(stream.operation);
    if !watch.scope.is_some() || may_select(history, &watch) {
        return None;
    }
    let named = !history.name(history.scopes[watch.scope.index()].name).is_empty();
    let lossy = history.files.get(watch.position.file.0 as usize).is_some_and(|file| file.problems > 0);
    if named || lossy {
        return None;
    }
    let after = stream_base(history, stream.id)?;
    let mut through = Revision::NONE;
    for index in stream.deliveries() {
        let d = &history.deliveries[index];
        match d.kind {
            DeliveryKind::Unidentified => return None,
            DeliveryKind::Error => break,
            _ if timeline.is_misdated(index) => {}
            _ => through = through.max(d.revision),
        }
    }
    (through > after).then_some((after, through))
}
