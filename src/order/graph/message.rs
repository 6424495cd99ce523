//! Order by what requests carry: a request that names what an answer said comes after that answer.

use super::cycle::Step;
use super::edge::EdgeKind;
use super::in_time::unit_words;
use super::source::{EdgeSource, Reason};
use super::sparse::{Edges, Node};
use super::unit::{Record, Touch, Units, What};
use crate::history::{History, OperationId, Verb};
use crate::order::{Order, Start};
use rustc_hash::FxHashMap;

/// Messages that a process sent itself through its requests: the base of a write names the version that a read showed, the start
/// of a watch the revision of the list or stream before it. They hold where the process did both at once in different threads,
/// and program order says nothing.
pub struct Messages<'h> {
    history: &'h History,
    units: &'h Units,
    /// (what said it, what named it).
    sent: Vec<(Node, Node)>,
}

impl<'h> Messages<'h> {
    /// Between these units.
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
                // The first to show a version may be any of several; the one that is over first is the least assumption.
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
            // What was over later than the request was sent did not tell it.
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
        let says = format!("{who} sent {named}, naming the revision that it had from {said}");
        Some(Reason { kind: step.kind, says, at, key: o.key, revision: o.asked_revision })
    }
}
