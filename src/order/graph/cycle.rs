//! Short cycles by breadth-first search with a budget. [`Search::shortest`] finds a cycle if there is one; the budget only limits
//! how short it gets.

use super::component::Components;
use super::edge::{EdgeKind, EdgeKinds};
use super::sparse::{Graph, Node};

/// One step of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The earlier node.
    pub from: Node,
    /// The kind of order between them.
    pub kind: EdgeKind,
    /// The later node.
    pub to: Node,
}

/// A cycle. Each step begins where the previous one ends, and the last ends where the first begins. If there is an
/// anti-dependency, it is the last step, because the other steps contradict it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cycle {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Cycle {
    /// The nodes, each once, in the order of the steps.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + '_ {
        self.steps.iter().map(|step| step.from)
    }

    /// The number of its steps of a kind.
    pub fn count(&self, kind: EdgeKind) -> usize {
        self.steps.iter().filter(|step| step.kind == kind).count()
    }

    /// The cycle along some nodes. Each step has the first kind within `kinds`, preferably not the anti-dependency.
    fn along(graph: &Graph, nodes: &[Node], kinds: EdgeKinds) -> Cycle {
        let anti = EdgeKinds::from(EdgeKind::AntiDependency);
        let mut steps: Vec<Step> = Vec::with_capacity(nodes.len());
        for (at, &from) in nodes.iter().enumerate() {
            let to = nodes[(at + 1) % nodes.len()];
            let all = graph.between(from, to).within(kinds);
            let kind = all.iter().find(|kind| *kind != EdgeKind::AntiDependency);
            let kind = kind.or_else(|| all.within(anti).iter().next()).unwrap_or(EdgeKind::RealTime);
            steps.push(Step { from, kind, to });
        }
        let of_kind = |kind| move |step: &Step| (step.kind == kind).then_some(step.to);
        let first = steps.iter().filter_map(of_kind(EdgeKind::AntiDependency)).min();
        let first = first.or_else(|| steps.iter().map(|step| step.from).min());
        let turn = steps.iter().position(|step| Some(step.from) == first).unwrap_or(0);
        steps.rotate_left(turn);
        Cycle { steps }
    }
}

/// The result of a search with a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found<T> {
    /// A result.
    One(T),
    /// There is none.
    None,
    /// The budget was spent before the search was complete.
    Undecided,
}

/// A search for short cycles of one graph.
pub(crate) struct Search<'g> {
    graph: &'g Graph,
    /// The number of edges that may still be visited.
    budget: u64,
    /// By node: the round that reached it last, and its predecessor in that round.
    reached: Vec<(u32, Node)>,
    round: u32,
    queue: Vec<Node>,
}

impl<'g> Search<'g> {
    pub(crate) fn new(graph: &'g Graph, budget: u64) -> Search<'g> {
        let reached = vec![(0, 0); graph.nodes() as usize];
        Search { graph, budget, reached, round: 0, queue: Vec::new() }
    }

    /// Whether the budget is spent.
    pub(super) fn is_spent(&self) -> bool {
        self.budget == 0
    }

    /// The shortest path, of at most `longest` steps and at least one, from a node to a node that `is_end`, through nodes that
    /// are `inside`. Returns its nodes, both ends included.
    fn way(
        &mut self,
        from: Node,
        kinds: EdgeKinds,
        longest: usize,
        inside: impl Fn(Node) -> bool,
        is_end: impl Fn(Node) -> bool,
    ) -> Option<Vec<Node>> {
        self.round += 1;
        self.queue.clear();
        self.queue.push(from);
        self.reached[from as usize] = (self.round, from);
        let (mut at, mut level_end, mut steps) = (0, 1, 0);
        while at < self.queue.len() && steps < longest {
            let node = self.queue[at];
            at += 1;
            self.budget = self.budget.saturating_sub(self.graph.range(node).len() as u64);
            for (to, edge) in self.graph.from(node) {
                if edge.within(kinds).is_empty() {
                    continue;
                }
                if is_end(to) {
                    let mut way = vec![to, node];
                    while way[way.len() - 1] != from {
                        way.push(self.reached[way[way.len() - 1] as usize].1);
                    }
                    way.reverse();
                    return Some(way);
                }
                if self.reached[to as usize].0 != self.round && inside(to) {
                    self.reached[to as usize] = (self.round, node);
                    self.queue.push(to);
                }
            }
            if at == level_end {
                level_end = self.queue.len();
                steps += 1;
            }
        }
        None
    }

    /// A cycle by these kinds, if there is one: the shortest, unless the budget ends before all were compared.
    pub(crate) fn shortest(&mut self, kinds: EdgeKinds) -> Option<Cycle> {
        let components = Components::find(self.graph, kinds);
        let mut best: Option<Vec<Node>> = None;
        for component in components.cyclic() {
            let number = components.of(component[0]);
            for start in component {
                let longest = best.as_ref().map_or(usize::MAX, |best| best.len() - 1);
                // The first search in a component always finds a cycle.
                if longest < 2 || (best.is_some() && self.budget == 0) {
                    break;
                }
                let way = self.way(start, kinds, longest, |node| components.of(node) == number, |node| node == start);
                if let Some(mut way) = way {
                    way.pop();
                    best = Some(way);
                }
            }
        }
        best.map(|nodes| Cycle::along(self.graph, &nodes, kinds))
    }

    /// A cycle with exactly one anti-dependency and otherwise only these kinds: the shortest, unless the budget ends before all
    /// were compared.
    pub(crate) fn with_one_anti_dependency(&mut self, kinds: EdgeKinds) -> Found<Cycle> {
        let components = Components::find(self.graph, kinds);
        // Pairs (replacing node, seeing node). A cycle leads from the first back to the second, so never up the topological
        // order.
        let mut closing: Vec<(Node, Node)> = Vec::new();
        for seer in 0..self.graph.nodes() {
            let replaced = self.graph.from(seer).filter(|(_, edge)| edge.has(EdgeKind::AntiDependency));
            let back = replaced.filter(|(to, _)| components.of(*to) <= components.of(seer));
            closing.extend(back.map(|(to, _)| (to, seer)));
        }
        closing.sort_unstable();
        closing.dedup();
        let mut best: Option<Vec<Node>> = None;
        for group in closing.chunk_by(|a, b| a.0 == b.0) {
            let longest = best.as_ref().map_or(usize::MAX, |best| best.len() - 2);
            if longest == 0 || (best.is_some() && self.budget == 0) {
                break;
            }
            if self.budget == 0 {
                return Found::Undecided;
            }
            let from = group[0].0;
            let highest = group.iter().map(|(_, seer)| components.of(*seer)).max().unwrap_or(0);
            let is_seer = |node| group.binary_search(&(from, node)).is_ok();
            best = self.way(from, kinds, longest, |node| components.of(node) <= highest, is_seer).or(best);
        }
        match best {
            Some(nodes) => Found::One(self.closed_by_anti_dependency(&nodes, kinds)),
            None => Found::None,
        }
    }

    /// The cycle along a path by `kinds` that an anti-dependency closes.
    fn closed_by_anti_dependency(&self, nodes: &[Node], kinds: EdgeKinds) -> Cycle {
        let mut steps = Vec::with_capacity(nodes.len());
        for pair in nodes.windows(2) {
            let kind = self.graph.between(pair[0], pair[1]).within(kinds).iter().next();
            steps.push(Step { from: pair[0], kind: kind.unwrap_or(EdgeKind::RealTime), to: pair[1] });
        }
        steps.push(Step { from: nodes[nodes.len() - 1], kind: EdgeKind::AntiDependency, to: nodes[0] });
        Cycle { steps }
    }
}
