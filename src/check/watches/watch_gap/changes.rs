//! Input: the revision order and a scope. Output: the changes of that scope between two revisions. Indices by resource,
//! namespace and name are built at their first use, so a lookup does not visit changes of other scopes.

use crate::check::Evidence;
use crate::check::facts::selectable::Selectable;
use crate::history::{AttributesId, Difference, DomainId, KeyId, ResourceId, Revision, ScopeId, Symbol};
use crate::order::{Contradiction, Version};
use rustc_hash::{FxHashMap, FxHashSet};

/// Changes by resource and namespace, and keys by name. Each index is built at its first use.
#[derive(Debug)]
pub struct Changes<'h> {
    evidence: Evidence<'h>,
    /// Per resource, the changes of each namespace by revision.
    namespaces: FxHashMap<ResourceId, FxHashMap<Symbol, Vec<Version>>>,
    names: Option<FxHashMap<(ResourceId, Symbol), Vec<KeyId>>>,
    /// Cached results of selectors. The key is set only if the selector names metadata fields.
    selected: FxHashMap<(ScopeId, KeyId, AttributesId), Option<bool>>,
    contradicted: Option<FxHashSet<(DomainId, Revision)>>,
    selectable: FxHashMap<ResourceId, Selectable>,
}

impl<'h> Changes<'h> {
    /// Empty indices for one history.
    pub fn new(evidence: &Evidence<'h>) -> Changes<'h> {
        Changes {
            evidence: *evidence,
            namespaces: FxHashMap::default(),
            names: None,
            selected: FxHashMap::default(),
            contradicted: None,
            selectable: FxHashMap::default(),
        }
    }

    /// The known changes in (after, through] of keys of a scope, by revision. Selectors are ignored.
    pub fn of(&mut self, scope: ScopeId, after: Revision, through: Revision) -> Vec<Version> {
        let (history, timeline) = (self.evidence.history, &self.evidence.order.timeline);
        let wanted = history.scopes[scope.index()];
        let (namespace, name) = (history.name(wanted.namespace), history.name(wanted.name));
        if !name.is_empty() {
            let names = self.names.get_or_insert_with(|| {
                let mut names: FxHashMap<(ResourceId, Symbol), Vec<KeyId>> = FxHashMap::default();
                for (index, key) in history.keys.iter().enumerate() {
                    names.entry((key.resource, key.name)).or_default().push(KeyId(index as u32));
                }
                names
            });
            let keys = names.get(&(wanted.resource, wanted.name)).map_or(&[][..], |k| k);
            let keys = keys.iter().filter(|&&k| history.covers_key(scope, k));
            let mut changes: Vec<_> = keys.flat_map(|&k| timeline.between(k, after, through).iter()).collect();
            changes.sort_by_key(|v| v.revision);
            return changes;
        }
        if namespace.is_empty() {
            return timeline.of_resource(wanted.resource, after, through).collect();
        }
        let by_namespace = self.namespaces.entry(wanted.resource).or_insert_with(|| {
            let mut split: FxHashMap<Symbol, Vec<Version>> = FxHashMap::default();
            for version in timeline.of_resource(wanted.resource, Revision::NONE, Revision::new(u128::MAX)) {
                split.entry(history.keys[version.key.index()].namespace).or_default().push(version);
            }
            split
        });
        let list = by_namespace.get(&wanted.namespace).map_or(&[][..], |l| l);
        let from = list.partition_point(|v| v.revision <= after);
        let to = list.partition_point(|v| v.revision <= through).max(from);
        list[from..to].to_vec()
    }

    /// The known changes in (after, through], by revision, of objects that may be in a scope's selection at some time, and of
    /// the keys in `more`. Returns the changes of all objects if the selector does not narrow them down.
    pub fn of_selection(
        &mut self,
        scope: ScopeId,
        after: Revision,
        through: Revision,
        more: impl Iterator<Item = KeyId>,
    ) -> Vec<Version> {
        let (evidence, history) = (self.evidence, self.evidence.history);
        let resource = history.scopes[scope.index()].resource;
        let selectable = self.selectable.entry(resource).or_insert_with(|| Selectable::of(&evidence, resource));
        let Some(mut keys) = selectable.keys(&evidence, scope) else { return self.of(scope, after, through) };
        keys.extend(more);
        keys.sort_unstable();
        keys.dedup();
        let keys = keys.into_iter().filter(|key| history.covers_key(scope, *key));
        let timeline = &evidence.order.timeline;
        let mut changes: Vec<_> = keys.flat_map(|key| timeline.between(key, after, through).iter()).collect();
        changes.sort_unstable_by_key(|version| (version.revision, version.key));
        changes
    }

    /// Whether a version is in a selection; `None` without evidence.
    pub fn selects(&mut self, scope: ScopeId, version: &Version) -> Option<bool> {
        let history = self.evidence.history;
        let names_key = history.name(history.scopes[scope.index()].fields).contains("metadata.");
        let seen = (scope, if names_key { version.key } else { KeyId::NONE }, version.attributes);
        *self.selected.entry(seen).or_insert_with(|| history.selects(scope, version.key, version.attributes))
    }

    /// Whether the revision order has two writes at a change's revision, so that one of them belongs to another history.
    pub fn is_contradicted(&mut self, version: &Version) -> bool {
        let (history, timeline) = (self.evidence.history, &self.evidence.order.timeline);
        let domain = |key| history.domain_of(history.resource_of(key));
        let contradicted = self.contradicted.get_or_insert_with(|| {
            let pair = |contradiction: &Contradiction| match contradiction {
                Contradiction::TwoKeys(a, b) => {
                    [a, b].map(|v| Some((domain(timeline.version(*v).key), timeline.version(*v).revision)))
                }
                Contradiction::TwoUids(key, revision, ..) | Contradiction::ShownDeleted(key, revision, _) => {
                    [Some((domain(*key), *revision)), None]
                }
                // A selector yields the same for both contents, and a recorder may have hidden the data of a ConfigMap.
                Contradiction::TwoContents(.., Difference::Data) | Contradiction::TwoWrites(..) => [None, None],
                Contradiction::TwoContents(key, revision, ..) => [Some((domain(*key), *revision)), None],
            };
            timeline.contradictions().iter().flat_map(pair).flatten().collect()
        });
        contradicted.contains(&(domain(version.key), version.revision))
    }
}
