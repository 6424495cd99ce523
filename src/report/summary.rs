//! The extent of a history: its times, and the revisions of each domain.

use crate::history::{ClockId, DomainId, History, ResourceId, Revision};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// The extent of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Each used clock, with its first and last time.
    pub clocks: Vec<(ClockId, Time, Time)>,
    /// Each domain, in the history's order.
    pub domains: Vec<DomainExtent>,
}

/// The extent of one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainExtent {
    /// The domain.
    pub domain: DomainId,
    /// Its resources in the evidence.
    pub resources: Vec<ResourceId>,
    /// The lowest revision in the evidence; zero: none.
    pub first: Revision,
    /// The highest revision in the evidence; zero: none.
    pub last: Revision,
}

impl Extent {
    /// Measures a history.
    pub fn of(history: &History) -> Extent {
        let mut extent = Extent::default();
        for index in 0..history.domains.len() as u32 {
            let domain = DomainId(index);
            let resources = (0..history.resources.len() as u32)
                .map(ResourceId)
                .filter(|&r| history.placements.get(r.index()).is_some_and(|p| p.domain == domain))
                .collect();
            extent.domains.push(DomainExtent { domain, resources, ..DomainExtent::default() });
        }
        let mut places = FxHashMap::default();
        for operation in history.operations.iter() {
            extent.clock(&mut places, operation.clock, operation.invoke);
            extent.clock(&mut places, operation.clock, operation.ret);
            if operation.scope.is_some() && operation.is_answered() {
                let resource = history.scopes[operation.scope.index()].resource;
                extent.revision(history, resource, operation.answered);
            }
        }
        for call in history.calls().calls.iter() {
            extent.clock(&mut places, ClockId(0), call.invoke.time);
            extent.clock(&mut places, ClockId(0), call.ret.time);
        }
        for stream in &history.streams {
            let operation = history.operation(stream.operation);
            let resource = operation.scope.is_some().then(|| history.scopes[operation.scope.index()].resource);
            for delivery in history.deliveries_of(stream) {
                extent.clock(&mut places, operation.clock, delivery.at);
                if let Some(resource) = resource {
                    extent.revision(history, resource, delivery.revision);
                }
            }
        }
        for event in history.witness.iter().filter(|event| event.key.is_some()) {
            extent.revision(history, history.resource_of(event.key), event.revision);
        }
        extent
    }

    /// First and last time over all clocks; `None` without any time.
    pub fn span(&self) -> Option<(Time, Time)> {
        let first = self.clocks.iter().map(|c| c.1).min()?;
        let last = self.clocks.iter().map(|c| c.2).max()?;
        Some((first, last))
    }

    /// Adds a time. `places` has the index of each clock met so far.
    fn clock(&mut self, places: &mut FxHashMap<ClockId, usize>, clock: ClockId, time: Time) {
        if !time.is_known() {
            return;
        }
        let place = *places.entry(clock).or_insert(self.clocks.len());
        match self.clocks.get_mut(place) {
            Some((_, first, last)) => {
                *first = (*first).min(time);
                *last = (*last).max(time);
            }
            None => self.clocks.push((clock, time, time)),
        }
    }

    fn revision(&mut self, history: &History, resource: ResourceId, revision: Revision) {
        if !revision.is_some() || !resource.is_some() {
            return;
        }
        let Some(domain) = self.domains.get_mut(history.domain_of(resource).index()) else { return };
        if !domain.first.is_some() || revision < domain.first {
            domain.first = revision;
        }
        domain.last = domain.last.max(revision);
    }
}
