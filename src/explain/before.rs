//! The order of a certificate's facts, with the reasons. Output: the transitive reduction of all known edges.

use crate::check::Fact;
use crate::order::graph::picture::reduced;
use petgraph::graph::DiGraph;
use petgraph::visit::EdgeRef;

/// An edge: index of the earlier fact, index of the later one, and the reason as a clause.
pub type Edge = (usize, usize, &'static str);

/// The edges between facts, as indices of `facts`. Edges that follow from others are left out.
pub fn edges(facts: &[Fact]) -> Vec<Edge> {
    let graph = reduced(&known(facts));
    let mut edges: Vec<Edge> =
        graph.edge_references().map(|edge| (graph[edge.source()], graph[edge.target()], *edge.weight())).collect();
    edges.sort_unstable();
    edges
}

/// All known edges. They follow the sort by time and revision, so there is no cycle.
fn known(facts: &[Fact]) -> DiGraph<usize, &'static str> {
    let mut order: Vec<usize> = (0..facts.len()).collect();
    order.sort_by_key(|&at| (facts[at].time, facts[at].revision));
    let mut graph = DiGraph::new();
    let nodes: Vec<_> = order.iter().map(|&at| graph.add_node(at)).collect();
    for (n, &earlier) in order.iter().enumerate() {
        for (m, &later) in order.iter().enumerate().skip(n + 1) {
            if let Some(reason) = before(&facts[earlier], &facts[later]) {
                graph.add_edge(nodes[n], nodes[m], reason);
            }
        }
    }
    graph
}

fn before(a: &Fact, b: &Fact) -> Option<&'static str> {
    let timed = a.time.is_known() && b.time.is_known() && a.clock == b.clock && a.time < b.time;
    let versions = a.key == b.key && a.revision.is_some() && a.revision < b.revision;
    match () {
        () if timed && a.incarnation.is_some() && a.incarnation == b.incarnation => Some("same process, earlier"),
        () if timed => Some("earlier on the same clock"),
        () if versions => Some("an earlier version of the same object"),
        () => None,
    }
}
