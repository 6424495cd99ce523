//! Order by values in requests: a request that names a value from an answer comes after that answer.

use super::cycle::Step;
use super::edge::EdgeKind;
use super::in_time::unit_words;
use super::source::{EdgeSource, Reason};
use super::sparse::{Edges, Node};
use super::unit::{Record, Touch, Units, What};
use crate::history::{History, OperationId, Verb};
use crate::order::{Order, Start};
use rustc_hash::FxHashMap;

/// Values that a process carried from an answer to a request. A write names as base the version that a read showed; a watch
/// starts at the revision of the list or stream before it. They order units even where a process ran both concurrently and
/// program order does not.
pub struct Messages<'h> {
    history: &'h History,
    units: &'h Units,
    /// Pairs (unit that showed the value, unit that named it), sorted.
    sent: Vec<(Node, Node)>,
}

impl<'h> Messages<'h> {
    /// Collects the messages between these units.
    pub fn of(history: &'h History, order: &'h Order, units: &'h Units) -> Messages<'h> {
        let mut by_operation: FxHashMap<OperationId, Node> = FxHashMap::default();
        for (node, unit) in units.units.iter().enumerate() {
            if let What::Record(Record::Operation(id)) = unit.what {
                by_operation.insert(id, node as Node);
            }
        }
        let life = |node: Node| units.units[node as usize].incarnation;
        let mut shown = FxHashMap::default();
        for access in units.accesses.iter().filter(|a| a.touch == Touch::Saw) {
            let is_base = matches!(access.at, Record::Operation(id) if history.operation(id).verb.is_write());
            if !is_base {
                // Any unit that showed the version may be the source; the one that ended first assumes the least.
                let first = shown.entry((life(access.unit), access.key, access.revision)).or_insert(access.unit);
                let end = |node: Node| (units.units[node as usize].end, node);
                if end(access.unit) < end(*first) {
                    *first = access.unit;
                }
            }
        }
        let mut sent = Vec::new();
        for (&id, &node) in &by_operation {
            let o = history.operation(id);
            let said = match o.verb {
                Verb::Update => shown.get(&(o.incarnation, o.key, o.asked_revision)).copied(),
                Verb::Watch => match order.chains.start_of(id) {
                    Some(
                        Start::List(before) | Start::Pair(before) | Start::Continues(before) | Start::Item(before),
                    ) => by_operation.get(&before).copied(),
                    _ => None,
                },
                _ => None,
            };
            // A unit that ended after the request was sent is not its source.
            let unit = |node: Node| &units.units[node as usize];
            let in_time = |said: &Node| {
                order.clocks.before((unit(*said).end, unit(*said).clock), (unit(node).begin, unit(node).clock))
            };
            sent.extend(said.filter(in_time).map(|said| (said, node)));
        }
        sent.sort_unstable();
        Messages { history, units, sent }
    }
}

impl EdgeSource for Messages<'_> {
    fn add_to(&self, edges: &mut Edges) {
        self.sent.iter().for_each(|&(from, to)| edges.add(from, to, EdgeKind::Message));
    }

    fn explain(&self, step: Step) -> Option<Reason> {
        if step.kind != EdgeKind::Message || self.sent.binary_search(&(step.from, step.to)).is_err() {
            return None;
        }
        let unit = |node: Node| &self.units.units[node as usize];
        let What::Record(at @ Record::Operation(id)) = unit(step.to).what else { return None };
        let o = self.history.operation(id);
        let who = self.history.short_client(o.incarnation);
        let (named, said) = (unit_words(self.history, unit(step.to)), unit_words(self.history, unit(step.from)));
        let says = format!("{who} sent {named}, with the revision that it had from {said}");
        Some(Reason { kind: step.kind, says, at, key: o.key, revision: o.asked_revision })
    }
}
