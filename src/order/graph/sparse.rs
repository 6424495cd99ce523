//! The graph in compressed sparse rows: five bytes per edge.

use super::edge::EdgeKinds;

/// A node. Its meaning is up to the builder of the graph.
pub type Node = u32;

/// Edges in order of insertion.
#[derive(Clone, Debug)]
pub struct Edges {
    list: Vec<(Node, Node, EdgeKinds)>,
    nodes: u32,
    limit: usize,
    left_out: bool,
}

impl Edges {
    /// Without edges, for this number of nodes. Edges beyond `limit` are left out.
    pub fn new(nodes: u32, limit: usize) -> Edges {
        Edges { list: Vec::new(), nodes, limit: limit.min(u32::MAX as usize), left_out: false }
    }

    /// Adds an edge. An edge from a node to itself is ignored.
    pub fn add(&mut self, from: Node, to: Node, kinds: impl Into<EdgeKinds>) {
        debug_assert!(from < self.nodes && to < self.nodes, "{from} -> {to} of {}", self.nodes);
        if from == to || from.max(to) >= self.nodes {
            return;
        }
        match self.list.len() < self.limit {
            true => self.list.push((from, to, kinds.into())),
            false => self.left_out = true,
        }
    }

    /// The number of edges.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no edges.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// A directed graph with kinds on its edges. Two nodes may have several edges.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The first edge of each node, with one more element at the end.
    starts: Vec<u32>,
    targets: Vec<Node>,
    kinds: Vec<EdgeKinds>,
    partial: bool,
}

impl Graph {
    /// Sorts edges by their start in one pass; edges of one node keep their order.
    pub fn build(edges: Edges) -> Graph {
        let mut starts = vec![0u32; edges.nodes as usize + 1];
        for &(from, ..) in &edges.list {
            starts[from as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut graph = Graph {
            starts,
            targets: vec![0; edges.list.len()],
            kinds: vec![EdgeKinds::NONE; edges.list.len()],
            partial: edges.left_out,
        };
        for (from, to, kinds) in edges.list {
            let place = next[from as usize] as usize;
            next[from as usize] += 1;
            (graph.targets[place], graph.kinds[place]) = (to, kinds);
        }
        graph
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.starts.len().saturating_sub(1) as u32
    }

    /// The number of edges.
    pub fn edges(&self) -> usize {
        self.targets.len()
    }

    /// Whether edges were left out. Cycles are still cycles, but some may be missing.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    pub(super) fn range(&self, node: Node) -> std::ops::Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    pub(super) fn edge(&self, at: usize) -> (Node, EdgeKinds) {
        (self.targets[at], self.kinds[at])
    }

    /// The outgoing edges of a node.
    pub fn from(&self, node: Node) -> impl Iterator<Item = (Node, EdgeKinds)> + '_ {
        self.range(node).map(|at| self.edge(at))
    }

    /// All kinds of the edges from one node to another.
    pub fn between(&self, from: Node, to: Node) -> EdgeKinds {
        self.from(from).filter(|(target, _)| *target == to).fold(EdgeKinds::NONE, |all, (_, kinds)| all.and(kinds))
    }

    /// The subgraph of some nodes, which become 0, 1, 2 ... in their order. `places` is scratch space with a row for each node of
    /// the whole graph, each `u32::MAX` before and after the call.
    pub(super) fn part(&self, nodes: &[Node], places: &mut [u32]) -> Graph {
        for (place, &node) in nodes.iter().enumerate() {
            places[node as usize] = place as u32;
        }
        let mut edges = Edges::new(nodes.len() as u32, self.targets.len());
        for (place, &node) in nodes.iter().enumerate() {
            for (to, kinds) in self.from(node).filter(|(to, _)| places[*to as usize] != u32::MAX) {
                edges.add(place as u32, places[to as usize], kinds);
            }
        }
        for &node in nodes {
            places[node as usize] = u32::MAX;
        }
        Graph::build(edges)
    }
}
