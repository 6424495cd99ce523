//! The first read of each process life on each scope. A list from the cache counts as a first read if a restart before it
//! would not show.

use super::Evidence;
use crate::history::{Asked, IdentifiedBy, IncarnationId, Marks, OperationId, ScopeId, Verb};
use crate::order::remembers;
use rustc_hash::{FxHashMap, FxHashSet};

impl<'h> Evidence<'h> {
    /// The first answered list or watch of each process life on each scope.
    pub(in crate::check) fn first_reads(&self) -> &'h FirstReads {
        self.facts.first_reads.get_or_init(|| first_reads(self))
    }
}

/// The first reads of process lives, by life and scope.
pub type FirstReads = FxHashMap<(IncarnationId, ScopeId), OperationId>;

fn first_reads(evidence: &Evidence<'_>) -> FirstReads {
    let history = evidence.history;
    let mut first = FxHashMap::default();
    let mut reflects: FxHashSet<(IncarnationId, ScopeId)> = FxHashSet::default();
    for (id, o) in evidence.of_verbs(&[Verb::List, Verb::Watch]) {
        let read = !o.marks.has(Marks::SAVED);
        let began = o.is_answered() || (o.verb == Verb::Watch && o.marks.has(Marks::OPEN));
        if read
            && began
            && remembers(history, o.incarnation)
            && history.client_name(o.incarnation) != "system:apiserver"
        {
            let scope = (o.incarnation, o.scope);
            first.entry(scope).or_insert(id);
            // User and address do not change with a restart. A list from the cache, before any reflector of the scope, may be
            // the first read of a new process.
            let restart_may_hide = history.incarnations[o.incarnation.index()].identified_by == IdentifiedBy::Address;
            if restart_may_hide && o.verb == Verb::List && o.asked == Asked::Any && !reflects.contains(&scope) {
                first.insert(scope, id);
            }
            if o.verb == Verb::Watch || o.asked == Asked::Any {
                reflects.insert(scope);
            }
        }
    }
    first
}
