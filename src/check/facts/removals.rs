//! Removals at unknown revisions. Input: answered requests that removed an object, or marked it for deletion. Output: the
//! interval that bounds each removal, by the writes that were sent after its answer or by the next object of the name.

use crate::check::{Evidence, Fact};
use crate::history::{
    Item, KeyId, Marks, Operation, OperationId, ResourceId, Revision, Scope, ScopeId, Subresource, Symbol, Verb,
};
use crate::order::{Change, DeletedItem, Origin, Provenance, Removal, Timeline, Version};
use rustc_hash::FxHashMap;

/// A request whose answer proves that a version is no longer the current one: the object is gone, or marked for deletion.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The key of the object.
    pub key: KeyId,
    /// Its uid.
    pub uid: Symbol,
    /// The request.
    pub operation: OperationId,
    /// The change lies above this revision.
    pub after: Revision,
    /// The change lies below this revision, if evidence bounds it.
    pub before: Option<Revision>,
    /// Whether the object is certainly gone.
    pub is_gone: bool,
}

impl From<&Removal> for Ended {
    fn from(removal: &Removal) -> Ended {
        let Removal { key, uid, operation, after, before } = *removal;
        Ended { key, uid, operation, after, before, is_gone: true }
    }
}

impl From<&DeletedItem> for Ended {
    fn from(item: &DeletedItem) -> Ended {
        let DeletedItem { key, uid, operation, listed, before, .. } = *item;
        Ended { key, uid, operation, after: listed, before, is_gone: false }
    }
}

impl Ended {
    /// Whether the change lies between two revisions that do not contradict each other.
    pub fn is_bounded(&self) -> bool {
        self.before.is_some_and(|before| self.after < before)
    }

    /// The change of the object in words: "x was removed".
    pub fn says(&self, evidence: &Evidence<'_>) -> String {
        let name = evidence.history.key_name(self.key);
        if self.is_gone { format!("{name} was removed") } else { format!("{name} was removed or marked for deletion") }
    }

    /// The same as the end of a sentence about an earlier moment: "had been removed".
    pub fn had_been(&self) -> &'static str {
        if self.is_gone { "had been removed" } else { "had been removed or marked for deletion" }
    }
}

/// The requests that ended a version.
fn ends<'e>(evidence: &Evidence<'e>, shown: &Item) -> impl Iterator<Item = Ended> + use<'e> {
    let order = evidence.order;
    let removals = order.timeline.removals_of(shown.key, shown.uid).iter().filter(|removal| removal.uid.is_some());
    removals
        .map(Ended::from)
        .chain(order.deleted_items.ending(evidence.history, &order.timeline, shown).map(Ended::from))
}

/// The request that ended a version, certainly at or below a revision.
pub fn through(evidence: &Evidence<'_>, shown: &Item, revision: Revision) -> Option<Ended> {
    let is_done = |ended: &Ended| ended.before.is_some_and(|before| before <= revision.next());
    ends(evidence, shown).filter(Ended::is_bounded).find(is_done)
}

/// The request that ended a version and was answered before another request was sent.
pub fn answered_before(evidence: &Evidence<'_>, shown: &Item, o: &Operation) -> Option<Ended> {
    ends(evidence, shown).find(|ended| is_answered_before(evidence, ended.operation, o))
}

/// Whether a request was answered before another one was sent.
pub fn is_answered_before(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> bool {
    let earlier = evidence.history.operation(id);
    evidence.order.clocks.is_answered_before(&earlier, o)
}

/// Whether a version was certainly shown before a request was answered, by any record of the request and of its writer.
pub fn was_shown_before_answer(evidence: &Evidence<'_>, version: &Version, o: &Operation) -> bool {
    let (history, clocks) = (evidence.history, &evidence.order.clocks);
    let writer = version.writer.is_some().then(|| history.operation(version.writer));
    let moments = writer.iter().flat_map(|writer| clocks.answered(writer)).chain([version.moment(history)]);
    moments.into_iter().any(|shown| clocks.answered(o).any(|answered| clocks.before(shown, answered)))
}

/// The facts that an object was removed or marked for deletion, and by which revision.
pub fn facts(evidence: &Evidence<'_>, removal: Ended) -> Vec<Fact> {
    let (history, order) = (evidence.history, evidence.order);
    let o = history.operation(removal.operation);
    let gone = evidence.operation(removal.operation, Revision::NONE, removal.says(evidence));
    let mut facts = vec![Fact { key: removal.key, uid: removal.uid, ..gone }];
    let Some(before) = removal.before else { return facts };
    let resource = history.resource_of(removal.key);
    let sent = order.watermarks.after_answer(history, &order.clocks, resource, &o);
    if let Some((_, write)) = sent.filter(|(revision, _)| *revision == before) {
        facts.push(evidence.request(write, before, format!("the write of revision {before} was sent after that")));
    } else if let Some(next) = order.timeline.version_at(removal.key, before) {
        facts.push(evidence.version(&next, evidence.change_words(&next)));
    }
    facts
}

/// Changes that only the answers to deletions show. The revision in such an answer is that of the deletion, or that of the last
/// version before it. The revision order has no version there, because the answer does not say which of the two it is.
pub struct AnsweredDeletions {
    /// By resource and namespace, in order of revision. [`Symbol::NONE`] has those of all namespaces.
    of: FxHashMap<(ResourceId, Symbol), Vec<(Revision, OperationId)>>,
}

impl AnsweredDeletions {
    /// Collects them in one pass over the deletions.
    pub fn collect(evidence: &Evidence<'_>) -> AnsweredDeletions {
        let (history, timeline) = (evidence.history, &evidence.order.timeline);
        let mut of: FxHashMap<_, Vec<_>> = FxHashMap::default();
        for (id, o) in evidence.of_verbs(&[Verb::Delete]) {
            let shows = o.is_answered()
                && o.key.is_some()
                && o.answered.is_some()
                && o.subresource == Subresource::None
                && !o.marks.has(Marks::DRY_RUN)
                && !o.marks.has(Marks::LIST_ANSWER);
            if shows && !timeline.has(o.key, o.answered) {
                let key = history.keys[o.key.index()];
                for namespace in [Symbol::NONE, key.namespace] {
                    of.entry((key.resource, namespace)).or_default().push((o.answered, id));
                }
            }
        }
        of.values_mut().for_each(|of| of.sort_unstable());
        AnsweredDeletions { of }
    }

    /// The first one of a scope in (above, through]. The error says that a selector left more of them open than are examined.
    pub fn first(
        &self,
        evidence: &Evidence<'_>,
        scope: ScopeId,
        (above, through): (Revision, Revision),
    ) -> Result<Option<Version>, TooMany> {
        let history = evidence.history;
        let Scope { resource, namespace, .. } = history.scopes[scope.index()];
        let namespace = if history.name(namespace).is_empty() { Symbol::NONE } else { namespace };
        let of = self.of.get(&(resource, namespace)).map_or(&[][..], |of| of);
        let [from, to] = [above, through].map(|end| of.partition_point(|(revision, _)| *revision <= end));
        let near = to.min(from + evidence.facts.sizes.near_changes);
        let inside = of[from..near].iter().find_map(|&(revision, id)| {
            let o = history.operation(id);
            let is_inside =
                history.covers_key(scope, o.key) && history.selects(scope, o.key, o.attributes) == Some(true);
            let origin = Origin { provenance: Provenance::Write, row: id.0 };
            is_inside.then_some(Version {
                revision,
                key: o.key,
                uid: o.answer_uid,
                change: Change::Left,
                attributes: o.attributes,
                writer: OperationId::NONE,
                provenance: origin.provenance,
                row: origin.row,
                dated: origin,
            })
        });
        if inside.is_none() && near < to { Err(TooMany) } else { Ok(inside) }
    }
}

/// There are more deletions than one question examines.
#[derive(Clone, Copy, Debug)]
pub struct TooMany;

/// Living versions of removed objects, by name and uid, at or above the upper bound of the removal.
pub struct Later(FxHashMap<(KeyId, Symbol), Vec<Version>>);

impl Later {
    /// Collects them in one pass over the versions of each name with a removed object.
    pub fn of(timeline: &Timeline) -> Later {
        let mut later: FxHashMap<(KeyId, Symbol), Vec<Version>> = FxHashMap::default();
        for removals in timeline.open_removals().chunk_by(|a, b| a.key == b.key) {
            let key = removals[0].key;
            for version in timeline.versions(key).iter().filter(|v| v.uid.is_some() && v.change.lives() == Some(true)) {
                let of = timeline.removals_of(key, version.uid);
                if of.iter().any(|removal| removal.before.is_some_and(|before| before <= version.revision)) {
                    later.entry((key, version.uid)).or_default().push(version);
                }
            }
        }
        Later(later)
    }
}

/// The last version of a removed object at or above the removal's upper bound. A version that was shown before the removal's
/// answer proves only that revisions went back (`revision-rewind`).
pub fn outlived_by(evidence: &Evidence<'_>, later: &Later, removal: &Removal) -> Option<Version> {
    let before = removal.before?;
    let history = evidence.history;
    let o = history.operation(removal.operation);
    let is_later = |v: &&Version| v.revision >= before && !was_shown_before_answer(evidence, v, &o);
    later.0.get(&(removal.key, removal.uid))?.iter().rev().find(is_later).copied()
}
