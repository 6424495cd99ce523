//! Order by time: inside a process, from one incarnation of a session to the next, and between sessions by comparable clocks.
//! Edges are the transitive reduction from `precedence`.

use super::cycle::Step;
use super::edge::EdgeKind;
use super::precedence::{Interval, reduction};
use super::source::{EdgeSource, Reason};
use super::sparse::{Edges, Node};
use super::unit::{Record, Unit, Units, What};
use crate::history::{History, KeyId, OperationId, Revision};
use crate::order::{Clocks, Order, remembers};
use rustc_hash::FxHashMap;

/// The order of what each process did.
///
/// A process acts concurrently, so a unit comes first only if it ended before the other began. Command-line tools and saved files
/// have no such order.
pub struct ProcessOrder<'h> {
    history: &'h History,
    order: &'h Order,
    units: &'h Units,
}

/// The order of units that ended before others began, by comparable clocks.
pub struct RealTime<'h> {
    history: &'h History,
    clocks: &'h Clocks,
    units: &'h Units,
}

impl<'h> ProcessOrder<'h> {
    /// The order inside the sessions of these units.
    pub fn of(history: &'h History, order: &'h Order, units: &'h Units) -> ProcessOrder<'h> {
        ProcessOrder { history, order, units }
    }
}

impl<'h> RealTime<'h> {
    /// The order in time of these units.
    pub fn of(history: &'h History, order: &'h Order, units: &'h Units) -> RealTime<'h> {
        RealTime { history, clocks: &order.clocks, units }
    }
}

fn interval(node: Node, unit: &Unit) -> Interval {
    Interval { node, begin: unit.begin, end: unit.end, clock: unit.clock }
}

impl EdgeSource for ProcessOrder<'_> {
    fn add_to(&self, edges: &mut Edges) {
        let mut sessions: FxHashMap<u32, Vec<Interval>> = FxHashMap::default();
        for (node, unit) in self.units.units.iter().enumerate() {
            if remembers(self.history, unit.incarnation) {
                let session = self.order.sessions.index_of(unit.incarnation);
                sessions.entry(session).or_default().push(interval(node as Node, unit));
            }
        }
        let mut sessions: Vec<_> = sessions.into_iter().collect();
        sessions.sort_unstable_by_key(|(session, _)| *session);
        let life = |node: Node| self.units.units[node as usize].incarnation;
        for (_, intervals) in sessions {
            reduction(&intervals, &self.order.clocks, |from, to| {
                let kind = if life(from) == life(to) { EdgeKind::Program } else { EdgeKind::Session };
                edges.add(from, to, kind);
            });
        }
    }

    fn explain(&self, step: Step) -> Option<Reason> {
        let what = |node| unit_words(self.history, &self.units.units[node as usize]);
        let to = &self.units.units[step.to as usize];
        let who = self.history.short_client(to.incarnation);
        let says = match step.kind {
            EdgeKind::Program => format!("{who} did {} after {}", what(step.to), what(step.from)),
            EdgeKind::Session => format!("{who} did {} in a later incarnation than {}", what(step.to), what(step.from)),
            _ => return None,
        };
        Some(in_time(step.kind, says, self.units, step.to))
    }
}

impl EdgeSource for RealTime<'_> {
    fn add_to(&self, edges: &mut Edges) {
        let all = self.units.units.iter().enumerate();
        let intervals: Vec<Interval> = all.map(|(node, unit)| interval(node as Node, unit)).collect();
        reduction(&intervals, self.clocks, |from, to| edges.add(from, to, EdgeKind::RealTime));
    }

    fn explain(&self, step: Step) -> Option<Reason> {
        let words = |node: Node| {
            let unit = &self.units.units[node as usize];
            format!("{} of {}", unit_words(self.history, unit), self.history.short_client(unit.incarnation))
        };
        let says = format!("{} began after the end of {}", words(step.to), words(step.from));
        (step.kind == EdgeKind::RealTime).then(|| in_time(step.kind, says, self.units, step.to))
    }
}

/// A reason without a key, which cites the later unit.
fn in_time(kind: EdgeKind, says: String, units: &Units, later: Node) -> Reason {
    let at = match units.units[later as usize].what {
        What::Record(record) => record,
        What::Decision(_) => units
            .accesses
            .iter()
            .filter(|a| a.unit == later)
            .map(|a| a.at)
            .min()
            .unwrap_or(Record::Operation(OperationId::NONE)),
    };
    Reason { kind, says, at, key: KeyId::NONE, revision: Revision::NONE }
}

/// The description of a unit: "GET pods d/a", "the decision reconcile-42".
pub(super) fn unit_words(history: &History, unit: &Unit) -> String {
    match unit.what {
        What::Record(Record::Operation(id)) => history.request_name(&history.operation(id)),
        What::Record(Record::Delivery(index, _)) => {
            let d = history.deliveries[index as usize];
            format!("the receipt of {} at version {}", history.key_name(d.key), d.revision)
        }
        What::Record(Record::Cache(index)) => {
            format!("a read of {} from its cache", history.key_name(history.cache_reads[index as usize].key))
        }
        What::Decision(name) => format!("the decision {}", history.name(name)),
    }
}
