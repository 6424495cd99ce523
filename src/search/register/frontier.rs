//! The frontier search: decides from return to return whether a register has a linearization. Input: a [`Problem`]. Output:
//! [`Reached`]. It is the search of Wing and Gong (1993), with dominance where Lowe (2017) remembers visited states.
//!
//! A *layer* holds the configurations that got past one return, as *nodes*. No node dominates an open one, so the open nodes of a
//! layer are an antichain; nothing is refuted twice. With [`Width::Everything`] the search is breadth first. With [`Width::Beam`]
//! it expands some nodes and leaves the others open. When all that it expanded have ended, it backtracks to open nodes, on the
//! nearer layers first. If no node is open, no linearization exists, unless open nodes were dropped for want of memory
//! (`incomplete`). Layers far back are replaced by checkpoints: see [`checkpoint`].

use super::Problem;
use super::automaton::{DONT_CARE, Kind};
use super::configuration::Configuration;
use super::event_schedule::NEVER;
use super::parent_links::{BEGIN, ParentLinks, Step};
use super::pending::{Passed, PendingOps};
use super::pruning::{Reductions, Width};
use super::successors::{Generator, Successors};
use super::thresholds::Thresholds;
use super::witness::{PartialWitness, SegmentBoundary};
use crate::search::budget::BudgetGuard;
use crate::search::crashed_uses::{CrashedUseSets, UNUSED};
use crate::search::mask::Mask;
use crate::search::portfolio::{Outcome, Runner};
use crate::search::schedule::{DeadEnd, initial_budget};
use crate::search::tight_vec;
use crate::search::verdict::Limit;
use checkpoint::{Checkpoint, CheckpointLog};
use speculation::SpliceCandidates;
use std::mem::take;
use std::sync::Arc;

mod checkpoint;
mod expansion;
mod speculation;
#[cfg(test)]
mod tests;

pub(super) use speculation::SpeculativeSearch;

/// How a search up to a goal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reached<M> {
    /// The steps of a linearization of every answer before the goal. Segment boundaries and the partial witness before the first
    /// one let it be built faster.
    Goal(Vec<Step>, Vec<SegmentBoundary<M>>, Option<PartialWitness<M>>),
    /// No linearization exists.
    Nothing(DeadEnd, Furthest),
}

/// What a search without a linearization knows about how far one gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Furthest {
    /// By these steps to [`DeadEnd::reached`]; none gets further.
    Steps(Vec<Step>),
    /// Perhaps further: last-producer pruning dropped a branch for what was still to come.
    Doubtful,
    /// Not known: another search might find another value.
    Unknown,
}

impl<M: Send> Outcome for Reached<M> {
    fn is_decisive(&self) -> bool {
        matches!(self, Reached::Nothing(..))
    }
}

/// Rounds of the portfolio that it is worth to find out how far a linearization gets.
pub(super) const ROUNDS: u32 = 2;

/// A configuration on a layer.
#[derive(Debug)]
struct Node<M> {
    at: Configuration<M>,
    /// How many crashed operations its next successors use at least; see [`most_optional`].
    optional: u32,
    is_open: bool,
}

/// The most crashed operations of the successors that are generated together with those that use `least`. The ranges are 0, 1 and
/// so on to 7, 8 to 15, 16 to 31 and so on. With one crashed operation more there may be ten times as many successors. Histories
/// that use many have few successors for each number.
fn most_optional(least: u32) -> u32 {
    if least < 8 { least } else { 2 * least - 1 }
}

/// The configurations that got past a return.
#[derive(Debug)]
struct Layer<M> {
    /// The event after the return.
    event: u32,
    nodes: Vec<Node<M>>,
    open_count: u32,
    /// A checkpoint in place of several layers: `open_count` counts all of their open nodes, and there are no nodes.
    checkpoint: Option<Box<Checkpoint<M>>>,
}

impl<M> Layer<M> {
    fn new(event: u32, nodes: Vec<Node<M>>) -> Self {
        Layer { event, nodes, open_count: 0, checkpoint: None }
    }

    /// The configurations that it keeps, in nodes and in its checkpoint.
    fn configurations(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        let replaced = self.checkpoint.iter_mut().flat_map(|checkpoint| checkpoint.begins());
        self.nodes.iter_mut().map(|node| &mut node.at).chain(replaced)
    }
}

/// Replaces the state of a configuration past a return, if no remaining operation can distinguish it from others.
fn project_dont_care<M: Mask>(
    at: &mut Configuration<M>,
    reductions: Reductions,
    open: &PendingOps<'_, M>,
    uses: &CrashedUseSets,
) {
    if reductions.forgotten_states
        && at.state != DONT_CARE
        && !open.is_useful(at.state, at, uses)
        && !open.is_shunned(at.state, at)
    {
        at.state = DONT_CARE;
    }
}

/// One search with one width.
pub(super) struct FrontierSearch<'p, M> {
    open: PendingOps<'p, M>,
    reductions: Reductions,
    thresholds: Thresholds,
    width: Width,
    uses: CrashedUseSets,
    paths: ParentLinks,
    layers: Vec<Layer<M>>,
    checkpoints: CheckpointLog<M>,
    /// Memory for the nodes of new layers.
    free_layers: Vec<Vec<Node<M>>>,
    /// The layer of the active configurations.
    current_layer: usize,
    /// The nodes that are expanded, by index on the current layer, and what their configurations are by now.
    active: Vec<(usize, Configuration<M>)>,
    successors: Successors<M>,
    open_total: usize,
    /// The number of nodes on all layers, and the bytes that each holds beyond its own size.
    node_count: usize,
    heap: usize,
    /// Capacity for nodes, of all layers.
    node_capacity: usize,
    /// The furthest return that any configuration reached, its path, and the dead ends since.
    furthest: u32,
    longest: u32,
    failures: u32,
    /// Open nodes were dropped: that none is left proves nothing.
    incomplete: bool,
    work: u64,
    /// The work at the last check of the limits.
    last_check: u64,
    /// The event at which it stops, to be continued.
    pause: u32,
    splice_candidates: SpliceCandidates<M>,
}

impl<'p, M: Mask> FrontierSearch<'p, M> {
    pub(super) fn new(problem: Arc<Problem<'p>>, reductions: Reductions, width: Width) -> Self {
        FrontierSearch::before(0, problem, reductions, width)
    }

    /// A search whose pending operations are those before an event. Its first node is still the initial one.
    fn before(event: u32, problem: Arc<Problem<'p>>, reductions: Reductions, width: Width) -> Self {
        let (automaton, schedule) = (&problem.automaton, &problem.schedule);
        let first = Configuration {
            state: automaton.initial,
            used: UNUSED,
            last_overwrite_at: 0,
            path: BEGIN,
            linearized: M::none(schedule.slots),
            absorbable: M::none(schedule.slots),
        };
        FrontierSearch {
            open: PendingOps::new(problem.clone(), event),
            reductions,
            thresholds: problem.thresholds,
            width,
            uses: CrashedUseSets::new(),
            paths: ParentLinks::default(),
            layers: vec![Layer::new(0, vec![Node { at: first.clone(), optional: 0, is_open: false }])],
            checkpoints: CheckpointLog::new(&problem.thresholds),
            free_layers: Vec::new(),
            current_layer: 0,
            active: vec![(0, first)],
            successors: Successors::default(),
            open_total: 0,
            node_count: 1,
            node_capacity: 1,
            heap: 2 * M::none(schedule.slots).heap_bytes(),
            furthest: 0,
            longest: BEGIN,
            failures: 0,
            incomplete: false,
            work: 0,
            last_check: 0,
            pause: NEVER,
            splice_candidates: SpliceCandidates::none(),
        }
    }

    /// Configurations and partial moves looked at so far.
    fn work(&self) -> u64 {
        self.work + self.successors.work
    }

    /// Linearizes an invoked read or failed compare-and-set at once in the active configurations where it is possible.
    fn invoke(&mut self, slot: u32) {
        let kind = self.open.kind(slot);
        for (_, at) in &mut self.active {
            let happens = match kind {
                Kind::Read(state) => at.state == state,
                Kind::FailedCas(state) => at.state != state,
                Kind::Write(_) | Kind::Cas(..) | Kind::Append => false,
            };
            if happens {
                at.linearized.add(slot);
            }
        }
        self.work += self.active.len() as u64 / 4;
    }

    /// Takes the active configurations past a return.
    fn pass(&mut self, slot: u32, memory: usize, guard: &BudgetGuard<'_>) -> Result<(), Limit> {
        self.work += self.active.len() as u64 / 4;
        let first = self.open.at > self.furthest;
        if first {
            self.furthest = self.open.at;
            self.longest = self.active[0].1.path;
            self.failures = 0;
            self.successors.suspicion.clear();
        }
        if self.active.iter().all(|(_, at)| at.linearized.has(slot)) {
            self.active.iter_mut().for_each(|(_, at)| at.linearized.remove(slot));
            return Ok(());
        }
        self.next_layer(guard)?;
        let expanded = if self.is_wide() { self.expand_parallel(slot, memory, guard)? } else { 0 };
        let others = self.bytes() - self.successors.bytes() - self.uses.bytes();
        for index in expanded..self.active.len() {
            let (node, mut from) = self.active[index].clone();
            if from.linearized.has(slot) {
                from.linearized.remove(slot);
                self.insert_if_undominated(self.current_layer + 1, from, &[]);
            } else {
                self.expand(node, &from, slot, memory.saturating_sub(others), guard)?;
            }
            self.check_limits(memory, guard)?;
        }
        let next = self.current_layer + 1;
        self.current_layer = next;
        if self.open_total == self.layers[next].open_count as usize {
            self.checkpoints.forget(next);
            for mut layer in self.layers.drain(..next) {
                self.node_count -= layer.nodes.len();
                self.checkpoints.recomputed(layer.checkpoint.take());
                layer.nodes.clear();
                match self.free_layers.len() {
                    0..2 if layer.nodes.capacity() <= 64 => self.free_layers.push(layer.nodes),
                    _ => self.node_capacity -= layer.nodes.capacity(),
                }
            }
            self.current_layer = 0;
        } else {
            // It stays, perhaps to the end: a long history has half a million such layers.
            let nodes = &mut self.layers[next - 1].nodes;
            self.node_capacity -= nodes.capacity();
            nodes.shrink_to_fit();
            self.node_capacity += nodes.capacity();
        }
        self.choose();
        if first {
            self.splice_candidates.note(self.layers[self.current_layer].event, &self.active);
            self.mark();
        }
        Ok(())
    }

    /// Inserts the successors of a configuration past the return of a slot into the next layer.
    fn expand(
        &mut self,
        node: usize,
        from: &Configuration<M>,
        slot: u32,
        memory: usize,
        guard: &BudgetGuard<'_>,
    ) -> Result<(), Limit> {
        let mut least = self.layers[self.current_layer].nodes[node].optional;
        loop {
            let generator = Generator {
                open: &self.open,
                uses: &mut self.uses,
                successors: &mut self.successors,
                reductions: self.reductions,
                compared_moves: self.thresholds.compared_moves,
                from,
                slot,
                optional: (least, most_optional(least)),
            };
            let more = generator.find(memory, guard)?;
            let (found, steps) = (take(&mut self.successors.found), take(&mut self.successors.steps));
            let (mut kept, mut looked) = (Ok(()), self.work);
            for each in &found {
                self.insert_if_undominated(self.current_layer + 1, each.to.clone(), each.steps(&steps));
                // Comparing thousands with thousands takes seconds.
                if self.work - looked > 1024 {
                    looked = self.work;
                    kept = guard.reached().map_or(Ok(()), Err);
                    if kept.is_err() {
                        break;
                    }
                }
            }
            (self.successors.found, self.successors.steps) = (found, steps);
            kept?;
            if !more {
                return Ok(());
            }
            least = most_optional(least) + 1;
            if self.width != Width::Everything {
                self.set_open(node, least);
                return Ok(());
            }
        }
    }

    /// Opens an expanded node again: its next successors use at least `least` crashed operations.
    fn set_open(&mut self, node: usize, least: u32) {
        let layer = &mut self.layers[self.current_layer];
        layer.nodes[node].optional = least;
        layer.nodes[node].is_open = true;
        layer.open_count += 1;
        self.open_total += 1;
    }

    /// Makes sure that there is a layer for this return.
    fn next_layer(&mut self, guard: &BudgetGuard<'_>) -> Result<(), Limit> {
        let (next, event) = (self.current_layer + 1, self.open.at + 1);
        if self.layers.get(next).is_none_or(|layer| layer.event != event) {
            let nodes = self.free_layers.pop().unwrap_or_default();
            self.layers.insert(next, Layer::new(event, nodes));
        }
        self.recompute(next, guard).map(|_| ())
    }

    /// Adds a configuration to a layer, unless a node there dominates it.
    fn insert_if_undominated(&mut self, layer: usize, mut at: Configuration<M>, steps: &[Step]) {
        project_dont_care(&mut at, self.reductions, &self.open, &self.uses);
        self.insert_after(layer, at, steps, &mut 0, true);
    }

    /// The same for a configuration whose state is forgotten if it can be. None of the first `seen` nodes dominates it.
    /// `may_dominate`: whether it may dominate one of them. Removed nodes are subtracted from `seen`.
    fn insert_after(
        &mut self,
        layer: usize,
        mut at: Configuration<M>,
        steps: &[Step],
        seen: &mut usize,
        may_dominate: bool,
    ) {
        self.count_insertion(layer);
        let (open, uses) = (&self.open, &self.uses);
        let layer = &mut self.layers[layer];
        let within = |less: u32, more: u32| uses.is_within(less, more);
        let dominates_it = |kept: &Node<M>| match self.reductions.dominance {
            true => kept.at.dominates(&at, open, within),
            false => kept.at.is_same(&at),
        };
        if layer.nodes[*seen..].iter().any(dominates_it) {
            return;
        }
        if self.reductions.dominance && layer.open_count > 0 {
            let before = layer.nodes.len();
            let is_dominated = |kept: &mut Node<M>| kept.is_open && at.dominates(&kept.at, open, within);
            if may_dominate {
                *seen -= layer.nodes.extract_if(..*seen, is_dominated).count();
            }
            layer.nodes.extract_if(*seen.., is_dominated).for_each(drop);
            layer.open_count -= (before - layer.nodes.len()) as u32;
            self.node_count -= before - layer.nodes.len();
            self.open_total -= before - layer.nodes.len();
        }
        at.path = self.paths.extend(at.path, steps);
        // Most layers hold one node.
        let full = layer.nodes.len() == layer.nodes.capacity() && layer.nodes.len() < 8;
        let added = if full { layer.nodes.len().max(1) } else { 0 };
        layer.nodes.reserve_exact(added);
        self.node_capacity += added + tight_vec::push(&mut layer.nodes, Node { at, optional: 0, is_open: true });
        self.node_count += 1;
        layer.open_count += 1;
        self.open_total += 1;
    }

    /// Counts the comparisons of an insertion as work: about one unit for each cache line.
    fn count_insertion(&mut self, layer: usize) {
        self.work += (size_of_val(&*self.layers[layer].nodes) / 64) as u64 + 1;
    }

    /// Activates open nodes of the current layer, those with the fewest crashed operations first.
    fn choose(&mut self) {
        let width = match self.width {
            Width::Everything => usize::MAX,
            Width::Beam(width) => width << (self.failures / 2).min(20),
        };
        let layer = &mut self.layers[self.current_layer];
        self.active.clear();
        if layer.open_count as usize <= width {
            for (at, node) in layer.nodes.iter_mut().enumerate().filter(|(_, node)| node.is_open) {
                node.is_open = false;
                self.active.push((at, node.at.clone()));
            }
            self.open_total -= take(&mut layer.open_count) as usize;
            return;
        }
        let mut open_nodes: Vec<usize> = (0..layer.nodes.len()).filter(|&at| layer.nodes[at].is_open).collect();
        let uses = &self.uses;
        open_nodes.sort_by_key(|&at| {
            let node = &layer.nodes[at];
            uses.total(node.at.used) + node.optional
        });
        open_nodes.truncate(width);
        for at in open_nodes {
            let node = &mut layer.nodes[at];
            node.is_open = false;
            layer.open_count -= 1;
            self.open_total -= 1;
            self.active.push((at, node.at.clone()));
        }
    }

    /// Backtracks to a layer with open nodes. `false` if there is none, or if [`SpliceCandidates::leave`] gives the search up.
    fn backtrack(&mut self, guard: &BudgetGuard<'_>) -> Result<bool, Limit> {
        if self.open_total == 0 {
            return Ok(false);
        }
        self.failures += 1;
        let has_open = |layer: &Layer<M>| layer.open_count > 0;
        let layer = loop {
            let far = self.behind((1 << (self.failures / 4).min(30)) - 1);
            let near = self.layers[..=far].iter().rposition(has_open);
            let Some(layer) = near.or_else(|| self.layers.iter().position(has_open)) else { return Ok(false) };
            // Its open nodes may be on any of the recomputed layers.
            if !self.recompute(layer, guard)? {
                break layer;
            }
        };
        self.checkpoints.touch(layer);
        if !self.splice_candidates.leave(self.layers[layer].event, self.furthest) {
            return Ok(false);
        }
        self.current_layer = layer;
        self.open.go(self.layers[layer].event);
        self.choose();
        Ok(true)
    }

    /// The furthest return, and the one that is suspected to be impossible.
    fn dead_end(&self) -> DeadEnd {
        let reached = self.furthest as usize;
        let suspect = self.successors.suspicion.first_return(&self.open, self.furthest).unwrap_or(0) as usize;
        DeadEnd { reached, suspect: suspect.max(reached), longest: None }
    }

    /// How far a linearization gets, after a search that found none. Only a search with beam width 1 knows, because it does the
    /// same on any number of threads. It must have needed little work: then either every such search ends within that work, or a
    /// search made for this finds the same.
    fn longest(&self) -> Furthest {
        match self.width == Width::Beam(1) && self.work() < self.how_far() {
            true if self.successors.suspicion.is_any() => Furthest::Doubtful,
            true => Furthest::Steps(self.paths.steps(self.longest)),
            false => Furthest::Unknown,
        }
    }

    /// The work that it is worth to find out how far a linearization gets.
    pub(super) fn how_far(&self) -> u64 {
        initial_budget(self.open.schedule().events.len()) << (ROUNDS - 1)
    }

    /// Checks the limits after every 1024 units of work.
    #[inline]
    fn check_limits(&mut self, memory: usize, guard: &BudgetGuard<'_>) -> Result<(), Limit> {
        if self.work() - self.last_check <= 1024 { Ok(()) } else { self.check_limits_now(memory, guard) }
    }

    fn check_limits_now(&mut self, memory: usize, guard: &BudgetGuard<'_>) -> Result<(), Limit> {
        self.last_check = self.work();
        match guard.reached() {
            Some(limit) => Err(limit),
            None if self.checkpoints.recomputing => Ok(()),
            None => self.free_memory(memory),
        }
    }

    /// Keeps to the memory limit. If collecting is not enough, it drops the first half of the layers, repeatedly.
    fn free_memory(&mut self, memory: usize) -> Result<(), Limit> {
        if self.paths.is_due(self.thresholds.collected_steps) {
            self.collect();
        }
        if self.bytes() <= memory {
            return Ok(());
        }
        self.collect();
        // With less free memory it would soon have to be done again.
        while self.bytes() > memory - memory / 8 {
            if self.current_layer == 0 {
                return Err(Limit::Memory);
            }
            let forgotten = self.current_layer.div_ceil(2);
            self.checkpoints.forget(forgotten);
            for layer in self.layers.drain(..forgotten) {
                self.incomplete |= layer.open_count > 0;
                self.open_total -= layer.open_count as usize;
                self.node_count -= layer.nodes.len();
                self.node_capacity -= layer.nodes.capacity();
                self.checkpoints.recomputed(layer.checkpoint);
            }
            self.current_layer -= forgotten;
            self.collect();
        }
        Ok(())
    }

    /// Drops the paths and sets that no configuration uses.
    fn collect(&mut self) {
        let nodes = self.layers.iter_mut().flat_map(Layer::configurations).chain(self.checkpoints.begins());
        let active = self.active.iter_mut().map(|(_, at)| at).chain(self.splice_candidates.configurations());
        let mut kept: Vec<&mut Configuration<M>> = nodes.chain(active).collect();
        self.paths.retain(kept.iter_mut().map(|at| &mut at.path).chain([&mut self.longest]));
        self.uses.retain(kept.iter_mut().map(|at| &mut at.used));
    }

    fn bytes(&self) -> usize {
        // Each also needs an entry of a list while paths are collected.
        let each = size_of::<usize>() + self.heap;
        (self.node_count + self.active.len()) * each
            + self.node_capacity * size_of::<Node<M>>()
            + self.checkpoints.bytes(each)
            + tight_vec::bytes(&self.active)
            + tight_vec::bytes(&self.layers)
            + self.paths.bytes()
            + self.uses.bytes()
            + self.open.bytes()
            + self.successors.bytes()
    }
}

impl<M: Mask> Runner for FrontierSearch<'_, M> {
    type Found = Reached<M>;

    fn run(&mut self, until: u64, memory: usize, guard: &BudgetGuard<'_>) -> Result<Option<Reached<M>>, Limit> {
        while self.work() < until {
            self.check_limits(memory, guard)?;
            if self.open.at as usize == self.open.schedule().events.len() {
                return Ok(Some(Reached::Goal(self.paths.steps(self.active[0].1.path), Vec::new(), None)));
            }
            if self.open.at >= self.pause {
                return Ok(None);
            }
            self.work += 1;
            match self.open.forward() {
                Passed::Nothing => {}
                Passed::Invocation(slot) => self.invoke(slot),
                Passed::Return(slot) => {
                    self.pass(slot, memory, guard)?;
                    self.open.leave(slot);
                    if self.active.is_empty() && !self.backtrack(guard)? {
                        return match self.incomplete {
                            true => Err(Limit::Memory),
                            false => Ok(Some(Reached::Nothing(self.dead_end(), self.longest()))),
                        };
                    }
                }
            }
        }
        Ok(None)
    }
}
