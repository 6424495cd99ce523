//! The happens-before graph of some units, built from all its sources; each edge can be explained by the source that added it.

use super::anomaly::Anomalies;
use super::cycle::Step;
use super::data_flow::DataFlow;
use super::in_time::ProcessOrder;
use super::message::Messages;
use super::source::{EdgeSource, Reason};
use super::sparse::{Edges, Graph};
use super::unit::Units;
use crate::history::History;
use crate::order::Order;

/// Limit on edges, for memory: 12 bytes each during construction, 5 afterwards.
const EDGES: usize = 50_000_000;

/// The happens-before relation of some units.
pub struct HappensBefore<'h> {
    /// The graph; node n is unit n.
    pub graph: Graph,
    sources: Vec<Box<dyn EdgeSource + 'h>>,
}

impl<'h> HappensBefore<'h> {
    /// From reads and writes only; time and processes have no part.
    pub fn by_data(history: &'h History, units: &'h Units) -> HappensBefore<'h> {
        HappensBefore::by(units, vec![Box::new(DataFlow::of(history, units))])
    }

    /// From reads and writes, messages, and the order inside each process.
    pub fn by_sessions(history: &'h History, order: &'h Order, units: &'h Units) -> HappensBefore<'h> {
        let sources: Vec<Box<dyn EdgeSource + 'h>> = vec![
            Box::new(DataFlow::of(history, units)),
            Box::new(Messages::of(history, order, units)),
            Box::new(ProcessOrder::of(history, order, units)),
        ];
        HappensBefore::by(units, sources)
    }

    /// From these sources. With [`super::RealTime`] among them, a unit that ended before another began comes first.
    pub fn by(units: &Units, sources: Vec<Box<dyn EdgeSource + 'h>>) -> HappensBefore<'h> {
        let mut edges = Edges::new(units.units.len() as u32, EDGES);
        sources.iter().for_each(|source| source.add_to(&mut edges));
        HappensBefore { graph: Graph::build(edges), sources }
    }

    /// The anomalies: see [`Anomalies::find`].
    pub fn anomalies(&self, budget: u64) -> Anomalies {
        Anomalies::find(&self.graph, budget)
    }

    /// The reason for a step, from the first source that added such an edge.
    pub fn explain(&self, step: Step) -> Option<Reason> {
        self.sources.iter().find_map(|source| source.explain(step))
    }
}
