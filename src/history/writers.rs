//! Decides whether one API server wrote all lines of an audit log without a declared server.
//!
//! A file is not a server: cloud exports, log stores and `cat` join the lines of several. Every API server renews its identity
//! lease (`apiserver-*` in `kube-system`) every ten seconds by a request that it audits itself. Two servers therefore show two
//! renewals in that time. The answer is "one" only if one lease is renewed without a pause from begin to end.

use super::ids::{ClockId, KeyId, ResourceId};
use super::interner::Interner;
use super::operation::Operation;
use super::operations::Operations;
use super::request::Verb;
use super::resource::{Key, Resource};
use super::store::History;
use crate::ingest::{InputFile, Time};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Minimal distance of one server's renewals: it renews every ten seconds, plus up to 4 %.
const PERIOD: i64 = 9_000_000_000;

/// Maximal distance of one server's renewals, with room for requests that wait.
const LATE: i64 = 20_000_000_000;

/// The evidence about the servers behind one audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writers {
    /// Times of identity lease renewals, sorted.
    pub renewals: Vec<Time>,
    /// The renewed leases.
    leases: BTreeSet<KeyId>,
    /// The first and the last time in the log.
    pub span: Option<(Time, Time)>,
}

impl Writers {
    /// Whether one server certainly wrote all lines: only one lease was renewed, and it was renewed throughout.
    pub fn are_one(&self) -> bool {
        let Some((first, last)) = self.span else { return true };
        let [begin, .., end] = self.renewals.as_slice() else { return false };
        let apart = self.renewals.windows(2).map(|pair| pair[1].since(pair[0]));
        self.leases.len() == 1 && begin.since(first) <= LATE && last.since(*end) <= LATE && { apart }
            .all(|apart| (PERIOD..=LATE).contains(&apart))
    }

    /// Presumed number of servers: the number of leases, at least three, the usual number of a highly available cluster.
    pub fn count(&self) -> usize {
        self.leases.len().max(3)
    }

    fn add(&mut self, operation: &Operation, is_lease: bool) {
        for time in [operation.invoke, operation.ret].into_iter().filter(|time| time.is_known()) {
            let span = self.span.get_or_insert((time, time));
            *span = (span.0.min(time), span.1.max(time));
        }
        if is_lease && operation.verb == Verb::Update && operation.is_answered() && operation.invoke.is_known() {
            self.leases.insert(operation.key);
            self.renewals.push(operation.invoke);
        }
    }
}

/// Lookups of names while the history is built.
#[derive(Clone, Copy)]
pub(super) struct Names<'n> {
    pub(super) keys: &'n [Key],
    pub(super) resources: &'n [Resource],
    pub(super) names: &'n Interner,
}

impl Names<'_> {
    fn is_lease(self, resource: ResourceId) -> bool {
        let text = |symbol| self.names.get(symbol);
        let resource = self.resources.get(resource.index());
        resource.is_some_and(|r| (text(r.group), text(r.plural)) == ("coordination.k8s.io", "leases"))
    }

    fn is_identity_lease(self, key: &Key) -> bool {
        let text = |symbol| self.names.get(symbol);
        self.is_lease(key.resource)
            && text(key.namespace) == "kube-system"
            && ["apiserver-", "kube-apiserver-"].iter().any(|begin| text(key.name).starts_with(begin))
    }
}

/// The evidence about each clock's servers; `None` for the clocks of declared servers.
pub(super) fn collect(
    operations: &Operations,
    unknown: impl Iterator<Item = ClockId>,
    clocks: usize,
    names: Names<'_>,
) -> Vec<Option<Writers>> {
    let mut writers: Vec<Option<Writers>> = vec![None; clocks];
    unknown.for_each(|clock| writers[clock.index()] = Some(Writers::default()));
    if writers.iter().all(Option::is_none) {
        return writers;
    }
    let leases: Vec<bool> = names.keys.iter().map(|key| names.is_identity_lease(key)).collect();
    for operation in operations.iter().filter(|o| o.clock.is_some()) {
        let is_lease = || leases.get(operation.key.index()).is_some_and(|&is_lease| is_lease);
        if let Some(writers) = &mut writers[operation.clock.index()] {
            writers.add(&operation, is_lease());
        }
    }
    writers.iter_mut().flatten().for_each(|writers| writers.renewals.sort_unstable());
    writers
}

/// Whether neither server nor clock of an input was declared.
pub(super) fn is_unknown(input: &InputFile) -> bool {
    input.source.server.is_none() && input.source.clock.is_none()
}

impl History {
    /// The resource `leases`, which holds the identity leases.
    #[doc(hidden)]
    pub fn identity_leases(&self) -> Option<ResourceId> {
        let names = Names { keys: &self.keys, resources: &self.resources, names: &self.names };
        (0..self.resources.len() as u32).map(ResourceId).find(|resource| names.is_lease(*resource))
    }

    /// The evidence about audit logs that several undeclared servers may have written, by clock; `None` if all times of a clock
    /// compare.
    #[doc(hidden)]
    pub fn unknown_writers(&self) -> Vec<Option<Writers>> {
        let audits = self.inputs.iter().zip(&self.files).filter(|(_, file)| file.format == Some("audit"));
        let unknown: FxHashSet<&str> =
            audits.filter(|(input, _)| is_unknown(input)).map(|(input, _)| &*input.shown).collect();
        let of_file = |clock: &ClockId| unknown.contains(self.clock_name(*clock));
        let clocks = (0..self.clocks.len() as u32).map(ClockId).filter(of_file);
        let names = Names { keys: &self.keys, resources: &self.resources, names: &self.names };
        let mut writers = collect(&self.operations, clocks, self.clocks.len(), names);
        for known in &mut writers {
            *known = known.take().filter(|writers| !writers.are_one());
        }
        writers
    }
}
