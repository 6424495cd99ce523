//! Items of answered DELETECOLLECTIONs. The server lists the objects, deletes each by its name, and answers with that list. An
//! error of a deletion fails the request, unless the object was already gone (apiserver `registry/generic/registry/store.go`,
//! `DeleteCollection`). So when the answer is sent, each object is gone or has a deletionTimestamp.

use super::{Clocks, Timeline, Watermarks};
use crate::history::{
    AttributesId, ClockId, Deletion, History, Item, KeyId, Marks, OperationId, Revision, Symbol, Verb,
};
use crate::ingest::Time;

/// An object that an answered DELETECOLLECTION removed or marked for deletion, at a revision that its answer does not show.
#[derive(Clone, Copy, Debug)]
pub struct DeletedItem {
    /// The key.
    pub key: KeyId,
    /// The uid; none if the answer does not show it.
    pub uid: Symbol,
    /// The version in the answer. It had no deletionTimestamp, and the deletion lies above it.
    pub listed: Revision,
    /// The request.
    pub operation: OperationId,
    /// The deletion lies below this revision of a write that was sent after the answer; `None` if there is no such write.
    pub before: Option<Revision>,
    clock: ClockId,
    ret: Time,
}

impl DeletedItem {
    /// Whether a version cannot be the current one after the deletion: it is the listed version, or a later one of the same
    /// object that certainly has no deletionTimestamp.
    fn ends(&self, history: &History, timeline: &Timeline, shown: &Item) -> bool {
        let is_later = self.uid.is_some() && shown.uid == self.uid && shown.revision > self.listed;
        shown.revision == self.listed || (is_later && is_unmarked(history, timeline, shown))
    }

    /// Whether this one was deleted no later than another item of the same object and clock that was listed at the same version
    /// or a later one. It then ends all that the other one ends.
    fn covers(&self, other: &DeletedItem) -> bool {
        let is_same = (self.key, self.uid, self.clock) == (other.key, other.uid, other.clock);
        is_same && self.ret <= other.ret && (self.uid.is_some() || self.listed == other.listed)
    }
}

/// The deleted items, by key, uid, clock and listed version. Of one object and clock, a later listed version was deleted earlier:
/// the others end no more than one of these.
#[derive(Debug, Default)]
pub struct DeletedItems(Vec<DeletedItem>);

impl DeletedItems {
    /// Collects them in one pass over the DELETECOLLECTIONs.
    pub fn collect(history: &History, timeline: &Timeline, clocks: &Clocks, watermarks: &Watermarks) -> DeletedItems {
        let mut all = Vec::new();
        for (operation, o) in history.operations.of_verbs(&[Verb::DeleteCollection]) {
            if !o.is_answered() || o.marks.has(Marks::DRY_RUN) {
                continue;
            }
            let resource = history.scopes[o.scope.index()].resource;
            let sent = watermarks.after_answer(history, clocks, resource, &o);
            let before = sent.map(|(revision, _)| revision);
            let items = history.items_of(&o).iter().filter(|item| item.key.is_some() && item.revision.is_some());
            all.extend(items.filter(|item| is_unmarked(history, timeline, item)).map(|item| DeletedItem {
                key: item.key,
                uid: item.uid,
                listed: item.revision,
                operation,
                before,
                clock: o.clock,
                ret: o.ret,
            }));
        }
        DeletedItems::of(all)
    }

    fn of(mut all: Vec<DeletedItem>) -> DeletedItems {
        all.sort_by_key(|item| (item.key, item.uid, item.clock, item.listed, item.ret));
        all.dedup_by(|later, kept| kept.covers(later));
        DeletedItems(all)
    }

    /// All of them.
    pub fn all(&self) -> &[DeletedItem] {
        &self.0
    }

    /// Those of a key.
    pub fn of_key(&self, key: KeyId) -> &[DeletedItem] {
        let from = self.0.partition_point(|item| item.key < key);
        let to = self.0.partition_point(|item| item.key <= key);
        &self.0[from..to]
    }

    /// For each clock the item that ends a version and was deleted first.
    pub fn ending<'t>(
        &'t self,
        history: &'t History,
        timeline: &'t Timeline,
        shown: &Item,
    ) -> impl Iterator<Item = &'t DeletedItem> + use<'t> {
        let known = || timeline.version_at(shown.key, shown.revision).map_or(Symbol::NONE, |version| version.uid);
        let shown = Item { uid: if shown.uid.is_some() { shown.uid } else { known() }, ..*shown };
        let named = [Some(shown.uid), shown.uid.is_some().then_some(Symbol::NONE)];
        let of_object = named.into_iter().flatten().flat_map(move |uid| {
            let of_key = self.of_key(shown.key);
            let from = of_key.partition_point(|item| item.uid < uid);
            let to = of_key.partition_point(|item| item.uid <= uid);
            of_key[from..to].chunk_by(|a, b| a.clock == b.clock)
        });
        let last =
            move |items: &'t [DeletedItem]| items[..items.partition_point(|item| item.listed <= shown.revision)].last();
        of_object.filter_map(last).filter(move |item| item.ends(history, timeline, &shown))
    }
}

/// Whether a version certainly had no deletionTimestamp, by the item itself or by other evidence of the version.
pub(super) fn is_unmarked(history: &History, timeline: &Timeline, item: &Item) -> bool {
    let deletion = |of: AttributesId| of.is_some().then(|| history.attributes[of.index()].deletion);
    let shown = deletion(item.attributes).filter(|deletion| *deletion != Deletion::Unknown);
    let known = shown.or_else(|| deletion(timeline.version_at(item.key, item.revision)?.attributes));
    known == Some(Deletion::NotBegun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::sketch::sketch_with;
    use crate::model::Declarations;

    /// For random items and versions: an item that ends the version and was answered before a moment is found if there is one.
    #[test]
    fn the_first_deletions_end_what_all_deletions_end() {
        let history = sketch_with("w@A CREATE x => x:u1@1", &Declarations::shipped().fields()).unwrap();
        let (timeline, unmarked) = (Timeline::default(), history.operations.get(0).attributes);
        assert_eq!(history.attributes[unmarked.index()].deletion, Deletion::NotBegun);
        let mut random = fastrand::Rng::with_seed(7);
        let mut found = [0; 2];
        for _ in 0..2_000 {
            let mut below = |end: u32| random.u32(..end);
            let all: Vec<DeletedItem> = (0..below(12))
                .map(|n| DeletedItem {
                    key: KeyId(below(2)),
                    uid: if below(4) == 0 { Symbol::NONE } else { Symbol(1 + below(2)) },
                    listed: Revision::new(u128::from(1 + below(6))),
                    operation: OperationId(n),
                    before: None,
                    clock: ClockId(below(2)),
                    ret: Time(i64::from(below(10))),
                })
                .collect();
            let (key, uid, revision) = (KeyId(below(2)), Symbol(1 + below(2)), Revision::new(u128::from(1 + below(6))));
            let is_listed = all.iter().any(|item| (item.key, item.uid, item.listed) == (key, uid, revision));
            let attributes = if is_listed || below(2) == 0 { unmarked } else { AttributesId::NONE };
            let shown = Item { key, uid, revision, attributes };
            let (clock, moment) = (ClockId(below(2)), Time(i64::from(below(10))));
            let is_before = |item: &DeletedItem| item.clock == clock && item.ret < moment;
            let of_object = |item: &&DeletedItem| {
                item.key == shown.key
                    && (item.uid == shown.uid || !item.uid.is_some())
                    && item.ends(&history, &timeline, &shown)
            };
            let expected = all.iter().filter(of_object).any(is_before);
            let items = DeletedItems::of(all.clone());
            assert_eq!(items.ending(&history, &timeline, &shown).any(is_before), expected, "{shown:?} {all:?}");
            found[usize::from(expected)] += 1;
        }
        assert!(found.iter().all(|n| *n > 200), "{found:?}");
    }
}
