//! Small graphs for reports. Petgraph reduces them and draws them as DOT.

use super::edge::EdgeKinds;
use super::sparse::{Graph, Node};
use petgraph::algo::tred::{dag_to_toposorted_adjacency_list, dag_transitive_reduction_closure};
use petgraph::algo::{condensation, toposort};
use petgraph::graph::DiGraph;

/// A small graph. Each node has its number in the large graph.
pub type Picture = DiGraph<Node, EdgeKinds>;

impl Graph {
    /// The subgraph of some nodes.
    pub fn picture(&self, nodes: &[Node]) -> Picture {
        let part = self.part(nodes, &mut vec![u32::MAX; self.nodes() as usize]);
        let mut picture = Picture::new();
        let indices: Vec<_> = nodes.iter().map(|node| picture.add_node(*node)).collect();
        for from in 0..part.nodes() {
            for (to, kinds) in part.from(from) {
                let (from, to) = (indices[from as usize], indices[to as usize]);
                match picture.find_edge(from, to) {
                    Some(edge) => picture[edge] = picture[edge].and(kinds),
                    None => drop(picture.add_edge(from, to, kinds)),
                }
            }
        }
        picture
    }
}

/// Removes the edges that follow from others. All edges inside a cycle stay, because none of them follows.
pub fn reduced<N: Clone, E: Clone>(picture: &DiGraph<N, E>) -> DiGraph<N, E> {
    let groups = condensation(picture.map(|at, _| at, |_, _| ()), true);
    let mut group_of = vec![0; picture.node_count()];
    for group in groups.node_indices() {
        groups[group].iter().for_each(|node| group_of[node.index()] = group.index());
    }
    let Ok(order) = toposort(&groups, None) else { return picture.clone() };
    let (sorted, places) = dag_to_toposorted_adjacency_list::<_, u32>(&groups, &order);
    let (reduction, _) = dag_transitive_reduction_closure(&sorted);
    let kept = |from: usize, to: usize| from == to || reduction.contains_edge(places[from], places[to]);
    picture.filter_map(
        |_, node| Some(node.clone()),
        |edge, kinds| {
            let (from, to) = picture.edge_endpoints(edge)?;
            kept(group_of[from.index()], group_of[to.index()]).then(|| kinds.clone())
        },
    )
}
