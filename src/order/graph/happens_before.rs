//! All sources together: the graph of some units, its anomalies, and the reason of every edge.

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

/// No graph has more edges: 12 bytes each while it is built, 5 afterwards.
const EDGES: usize = 50_000_000;

/// What happened before what, among some units.
pub struct HappensBefore<'h> {
    /// The graph; node n is unit n.
    pub graph: Graph,
    sources: Vec<Box<dyn EdgeSource + 'h>>,
}

impl<'h> HappensBefore<'h> {
    /// By what was seen and written only: nothing about time and processes takes part.
    pub fn by_data(history: &'h History, units: &'h Units) -> HappensBefore<'h> {
        HappensBefore::by(units, vec![Box::new(DataFlow::of(history, units))])
    }

    /// By what was seen and written, and by the order inside each process.
    pub fn by_sessions(history: &'h History, order: &'h Order, units: &'h Units) -> HappensBefore<'h> {
        let sources: Vec<Box<dyn EdgeSource + 'h>> = vec![
            Box::new(DataFlow::of(history, units)),
            Box::new(Messages::of(history, order, units)),
            Box::new(ProcessOrder::of(history, order, units)),
        ];
        HappensBefore::by(units, sources)
    }

    /// By these sources: with [`super::RealTime`] among them, also by what was over before something else began.
    pub fn by(units: &Units, sources: Vec<Box<dyn EdgeSource + 'h>>) -> HappensBefore<'h> {
        let mut edges = Edges::new(units.units.len() as u32, EDGES);
        sources.iter().for_each(|source| source.add_to(&mut edges));
        HappensBefore { graph: Graph::build(edges), sources }
    }

    /// The anomalies, see [`Anomalies::find`].
    pub fn anomalies(&self, budget: u64) -> Anomalies {
        Anomalies::find(&self.graph, budget)
    }

    /// Why a step holds. The first source that knows says it.
    pub fn explain(&self, step: Step) -> Option<Reason> {
        self.sources.iter().find_map(|source| source.explain(step))
    }
}
