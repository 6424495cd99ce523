//! Strongly connected components, by Pearce's algorithm. Nodes of one component contradict each other, because each would have to
//! come before all others.

use super::edge::EdgeKinds;
use super::sparse::{Graph, Node};

/// The component of every node.
///
/// Components are numbered in topological order: an edge between two components leads to the higher number.
#[derive(Clone, Debug)]
pub struct Components {
    of: Vec<u32>,
    count: u32,
}

/// A node on the current path: its next edge, and whether it reaches no node that was visited before it.
struct Visit {
    node: Node,
    next: usize,
    is_root: bool,
}

impl Components {
    /// Finds the components by edges of some kinds, in one pass. It is not recursive, because a history is one long chain.
    ///
    /// D. J. Pearce, "A space-efficient algorithm for finding strongly connected components", Information Processing Letters 116
    /// (2016): one number per node serves as visiting order, lowest reachable node and result.
    pub fn find(graph: &Graph, kinds: EdgeKinds) -> Components {
        let nodes = graph.nodes();
        // 0: not visited. Below `open`: visited, without component yet. Above `component`: finished.
        let mut low = vec![0u32; nodes as usize];
        let (mut open, mut component) = (1u32, nodes);
        let mut finished_below: Vec<Node> = Vec::new();
        let mut path: Vec<Visit> = Vec::new();
        for start in 0..nodes {
            if low[start as usize] != 0 {
                continue;
            }
            low[start as usize] = open;
            open += 1;
            path.push(Visit { node: start, next: graph.range(start).start, is_root: true });
            while let Some(visit) = path.last_mut() {
                let node = visit.node;
                if visit.next == graph.range(node).end {
                    let is_root = visit.is_root;
                    path.pop();
                    if is_root {
                        open -= 1;
                        while finished_below.last().is_some_and(|top| low[*top as usize] >= low[node as usize]) {
                            let member = finished_below.pop().unwrap_or(node);
                            low[member as usize] = component;
                            open -= 1;
                        }
                        low[node as usize] = component;
                        component -= 1;
                    } else {
                        finished_below.push(node);
                    }
                    if let Some(above) = path.last_mut() {
                        take_over(&mut low, above, node);
                    }
                    continue;
                }
                let (to, edge) = graph.edge(visit.next);
                visit.next += 1;
                if edge.within(kinds).is_empty() {
                    continue;
                }
                if low[to as usize] == 0 {
                    low[to as usize] = open;
                    open += 1;
                    path.push(Visit { node: to, next: graph.range(to).start, is_root: true });
                } else {
                    take_over(&mut low, visit, to);
                }
            }
        }
        // Components finish in reverse topological order and are numbered from the highest down.
        for number in &mut low {
            *number -= component + 1;
        }
        Components { of: low, count: nodes - component }
    }

    /// The number of a node's component.
    pub fn of(&self, node: Node) -> u32 {
        self.of[node as usize]
    }

    /// The number of components.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Components with more than one node, in topological order, each with its nodes in order.
    pub fn cyclic(&self) -> Vec<Vec<Node>> {
        let mut sizes = vec![0u32; self.count as usize];
        for &component in &self.of {
            sizes[component as usize] += 1;
        }
        let mut members: Vec<(u32, Node)> = (0..self.of.len() as Node)
            .map(|node| (self.of(node), node))
            .filter(|(component, _)| sizes[*component as usize] > 1)
            .collect();
        members.sort_unstable();
        let nodes = |group: &[(u32, Node)]| group.iter().map(|(_, node)| *node).collect();
        members.chunk_by(|a, b| a.0 == b.0).map(nodes).collect()
    }
}

fn take_over(low: &mut [u32], above: &mut Visit, below: Node) {
    if low[below as usize] < low[above.node as usize] {
        low[above.node as usize] = low[below as usize];
        above.is_root = false;
    }
}
