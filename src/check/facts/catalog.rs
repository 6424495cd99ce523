//! Indices of a history's resources and keys, and the budget of declarations.

use crate::check::Evidence;
use crate::history::{KeyId, ResourceId, Symbol};
use crate::ingest::fields::ResourceName;
use rustc_hash::FxHashMap;

/// The resources by plural, and the keys by resource.
#[derive(Debug, Default)]
pub struct Catalog {
    plurals: FxHashMap<Symbol, Vec<ResourceId>>,
    keys: FxHashMap<ResourceId, Vec<KeyId>>,
    /// Per resource, the number of versions in the timeline.
    versions: FxHashMap<ResourceId, u64>,
}

/// The increment of the budget of one rule's declarations for each version and request of the history. A declaration examines
/// each version of its resource, so many declarations of one resource would cost the product.
const SCANS_PER_VERSION: u64 = 64;

/// The reason for declarations beyond the budget.
pub const CROWDED: &str = "there are more declarations, and versions of their objects, than one run looks at";

/// The remaining budget of a rule's declarations.
#[derive(Debug)]
pub struct ScanBudget(u64);

impl ScanBudget {
    /// The budget of one rule.
    pub fn of(evidence: &Evidence<'_>) -> ScanBudget {
        let versions_and_requests = evidence.versions() + evidence.history.operations.len() as u64;
        ScanBudget(evidence.facts.sizes.scan_budget + SCANS_PER_VERSION * versions_and_requests)
    }

    /// Takes an amount. Returns whether the budget had it.
    pub fn take_many(&mut self, wanted: u64) -> bool {
        let rest = self.0.checked_sub(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Takes the amount of one declaration for a resource. Returns whether the budget had it.
    pub fn take(&mut self, evidence: &Evidence<'_>, resource: ResourceId) -> bool {
        self.take_many(evidence.versions_of(resource))
    }
}

impl Catalog {
    pub(in crate::check) fn of(evidence: &Evidence<'_>) -> Catalog {
        let history = evidence.history;
        let mut catalog = Catalog::default();
        for (id, resource) in (0..).map(ResourceId).zip(&history.resources) {
            catalog.plurals.entry(resource.plural).or_default().push(id);
        }
        for (id, key) in (0..).map(KeyId).zip(&history.keys) {
            catalog.keys.entry(key.resource).or_default().push(id);
            *catalog.versions.entry(key.resource).or_default() += evidence.order.timeline.versions(id).len() as u64;
        }
        catalog
    }
}

impl<'h> Evidence<'h> {
    /// The catalog, built at the first use.
    fn catalog(&self) -> &'h Catalog {
        self.facts.catalog.get_or_init(|| Catalog::of(self))
    }
}

impl Evidence<'_> {
    /// The resources of the history that a declaration names, in order.
    pub(in crate::check) fn resources_named(&self, name: &ResourceName) -> Vec<ResourceId> {
        let history = self.history;
        let is = |id: &ResourceId| {
            let resource = history.resources[id.index()];
            name.is(history.name(resource.plural), history.name(resource.group))
        };
        if name.is_every() {
            return (0..history.resources.len() as u32).map(ResourceId).filter(is).collect();
        }
        let plural = history.names.find(&name.plural);
        let of_plural = plural.and_then(|plural| self.catalog().plurals.get(&plural));
        of_plural.into_iter().flatten().copied().filter(is).collect()
    }
}

impl<'h> Evidence<'h> {
    /// The resource with this plural and group.
    pub(in crate::check) fn resource(&self, plural: Symbol, group: Symbol) -> Option<ResourceId> {
        let mut of_plural = self.catalog().plurals.get(&plural)?.iter().copied();
        of_plural.find(|id| self.history.resources[id.index()].group == group)
    }

    /// The number of versions in the history.
    pub(in crate::check) fn versions(&self) -> u64 {
        self.catalog().versions.values().sum()
    }

    /// The number of versions of a resource's objects.
    pub(in crate::check) fn versions_of(&self, resource: ResourceId) -> u64 {
        self.catalog().versions.get(&resource).copied().unwrap_or_default()
    }

    /// The keys of a resource, in order.
    pub(in crate::check) fn keys_of(&self, resource: ResourceId) -> &'h [KeyId] {
        self.catalog().keys.get(&resource).map_or(&[], Vec::as_slice)
    }
}
