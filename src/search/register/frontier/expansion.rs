//! Parallel expansion of a wide layer. Input: the active configurations. Output: the next layer, with the same nodes in the same
//! order and the same counted work as one thread would give.
//!
//! The successors of one configuration do not depend on the others; only dominance does. A thread generates the successors of a
//! chunk, with its own table of sets. It drops those that a node of the next layer dominates already. Then one thread inserts the
//! rest in the order of the active configurations. If a node that dominated something has since been replaced, the new node
//! dominates it too, because dominance is transitive. Work must be counted as on one thread, or the portfolio would end
//! differently.

use super::{FrontierSearch, Node, most_optional, project_dont_care};
use crate::search::budget::BudgetGuard;
use crate::search::crashed_uses::CrashedUseSets;
use crate::search::mask::Mask;
use crate::search::register::configuration::Configuration;
use crate::search::register::parent_links::Step;
use crate::search::register::pending::PendingOps;
use crate::search::register::pruning::Reductions;
use crate::search::register::pruning::Width;
use crate::search::register::successors::{Generator, Successors};
use crate::search::verdict::Limit;
use rayon::prelude::*;
use std::mem::take;

#[cfg(test)]
mod tests;

/// Chunks for each thread between two insertions. The successors of these chunks are not compared with each other by several
/// threads.
const CHUNKS_PER_THREAD: usize = 4;

/// Upper bound on comparisons between two checks of the limits.
const MAX_COMPARISONS: usize = 1 << 14;

/// The chunks of one round may hold the free memory divided by this: a quarter.
const MEMORY_DIVISOR: usize = 4;

/// What the threads read of the search.
struct Expansion<'l, 'p, M> {
    open: &'l PendingOps<'p, M>,
    reductions: Reductions,
    compared_moves: u64,
    width: Width,
    /// The slot that returns.
    slot: u32,
    /// The nodes of the current layer.
    current: &'l [Node<M>],
    /// The nodes of the next layer, and the table of their sets.
    next: &'l [Node<M>],
    uses: &'l CrashedUseSets,
    /// Bytes for each chunk, and the bytes that each configuration holds beyond its own size.
    memory: usize,
    heap: usize,
}

/// The successors of a chunk.
struct Chunk<M> {
    successors: Successors<M>,
    uses: CrashedUseSets,
    steps: Vec<Step>,
    /// In the order of the active configurations.
    found: Vec<Found<M>>,
    /// For each active configuration: the end of its part of `found`, and the least number of crashed operations of its next
    /// successors, if there may be more.
    ends: Vec<(usize, Option<u32>)>,
}

/// A configuration past the return.
struct Found<M> {
    /// `None`: a node of the next layer dominates it.
    at: Option<Successor<M>>,
    /// The end of its part of [`Chunk::steps`].
    steps: usize,
}

/// A successor that no node of the next layer dominates.
struct Successor<M> {
    at: Configuration<M>,
    /// Whether it dominates an open node of the next layer.
    dominates_open: bool,
}

impl<M: Mask> FrontierSearch<'_, M> {
    /// Whether several threads expand the layer.
    pub(super) fn is_wide(&self) -> bool {
        self.active.len() >= self.thresholds.parallel_configurations
            && self.reductions.dominance
            // A thread that waits for a guess must not pick up work that waits for the same guess.
            && !self.splice_candidates.is_guess()
            && rayon::current_num_threads() > 1
    }

    /// Expands the active configurations on several threads. Returns how many: fewer than all if there is too little memory.
    pub(super) fn expand_parallel(
        &mut self,
        slot: u32,
        memory: usize,
        guard: &BudgetGuard<'_>,
    ) -> Result<usize, Limit> {
        let mut expanded = 0;
        while expanded < self.active.len() {
            let left = memory.saturating_sub(self.bytes());
            if left < memory / 2 {
                break;
            }
            let chunk_size = self.thresholds.chunk_configurations;
            let round = chunk_size * CHUNKS_PER_THREAD * rayon::current_num_threads();
            let end = self.active.len().min(expanded + round);
            let expansion = Expansion {
                open: &self.open,
                reductions: self.reductions,
                compared_moves: self.thresholds.compared_moves,
                width: self.width,
                slot,
                current: &self.layers[self.current_layer].nodes,
                next: &self.layers[self.current_layer + 1].nodes,
                uses: &self.uses,
                heap: self.heap,
                memory: left / MEMORY_DIVISOR / (end - expanded).div_ceil(chunk_size),
            };
            let chunks =
                self.active[expanded..end].par_chunks(chunk_size).map(|active| expansion.expand_chunk(active, guard));
            let chunks: Vec<Chunk<M>> = match chunks.collect::<Result<_, Limit>>() {
                Ok(chunks) => chunks,
                Err(Limit::Memory) => break,
                Err(limit) => return Err(limit),
            };
            let mut seen = expansion.next.len();
            for chunk in chunks {
                self.insert_chunk(chunk, &mut expanded, &mut seen, memory, guard)?;
            }
        }
        Ok(expanded)
    }

    /// Inserts the successors of a chunk. When they were generated, the next layer had `seen` nodes.
    fn insert_chunk(
        &mut self,
        chunk: Chunk<M>,
        expanded: &mut usize,
        seen: &mut usize,
        memory: usize,
        guard: &BudgetGuard<'_>,
    ) -> Result<(), Limit> {
        let Chunk { successors, uses, steps, found, ends } = chunk;
        self.successors.join(successors);
        let (mut found, mut at, mut begin) = (found.into_iter(), 0, 0);
        for (end, more) in ends {
            for Found { at: fresh, steps: end } in found.by_ref().take(end - at) {
                let next = self.current_layer + 1;
                match fresh {
                    Some(Successor { at: mut fresh, dominates_open }) => {
                        // Collections since then may have renumbered paths and sets.
                        fresh.path = self.active[*expanded].1.path;
                        fresh.used = self.uses.adopt(&uses, fresh.used);
                        self.insert_after(next, fresh, &steps[begin..end], seen, dominates_open);
                    }
                    None => self.count_insertion(next),
                }
                begin = end;
                self.check_limits(memory, guard)?;
            }
            at = end;
            if let Some(least) = more {
                self.set_open(self.active[*expanded].0, least);
            }
            *expanded += 1;
        }
        Ok(())
    }
}

impl<M: Mask> Expansion<'_, '_, M> {
    /// Generates the successors of a chunk.
    fn expand_chunk(&self, active: &[(usize, Configuration<M>)], guard: &BudgetGuard<'_>) -> Result<Chunk<M>, Limit> {
        let mut chunk = Chunk {
            successors: Successors::default(),
            uses: CrashedUseSets::new(),
            steps: Vec::new(),
            found: Vec::new(),
            ends: Vec::with_capacity(active.len()),
        };
        for (node, from) in active {
            let mut from = Configuration { used: chunk.uses.adopt(self.uses, from.used), ..from.clone() };
            let more = if from.linearized.has(self.slot) {
                from.linearized.remove(self.slot);
                self.add(&mut chunk, from, &[]);
                None
            } else {
                self.find(&mut chunk, &from, self.current[*node].optional, guard)?
            };
            chunk.ends.push((chunk.found.len(), more));
        }
        Ok(chunk)
    }

    /// Adds the successors of a configuration that use at least `least` crashed operations. Returns the least number for the next
    /// ones, if there may be more.
    fn find(
        &self,
        chunk: &mut Chunk<M>,
        from: &Configuration<M>,
        mut least: u32,
        guard: &BudgetGuard<'_>,
    ) -> Result<Option<u32>, Limit> {
        loop {
            let generator = Generator {
                open: self.open,
                uses: &mut chunk.uses,
                successors: &mut chunk.successors,
                reductions: self.reductions,
                compared_moves: self.compared_moves,
                from,
                slot: self.slot,
                optional: (least, most_optional(least)),
            };
            let more = generator.find(self.memory, guard)?;
            let (found, steps) = (take(&mut chunk.successors.found), take(&mut chunk.successors.steps));
            // Comparing thousands with thousands takes seconds.
            let at_a_time = MAX_COMPARISONS / (self.next.len() + 1) + 1;
            for some in found.chunks(at_a_time) {
                if let Some(limit) = guard.reached() {
                    return Err(limit);
                }
                some.iter().for_each(|each| self.add(chunk, each.to.clone(), each.steps(&steps)));
            }
            (chunk.successors.found, chunk.successors.steps) = (found, steps);
            if chunk.bytes(self.heap) > self.memory {
                return Err(Limit::Memory);
            }
            if !more {
                return Ok(None);
            }
            least = most_optional(least) + 1;
            if self.width != Width::Everything {
                return Ok(Some(least));
            }
        }
    }

    /// Adds a successor, unless a node of the next layer dominates it.
    fn add(&self, chunk: &mut Chunk<M>, mut at: Configuration<M>, steps: &[Step]) {
        project_dont_care(&mut at, self.reductions, self.open, &chunk.uses);
        let uses = &chunk.uses;
        let within = |less: u32, more: u32| self.uses.is_within_of(less, uses, more);
        let at = match self.next.iter().any(|kept| kept.at.dominates(&at, self.open, within)) {
            true => None,
            false => {
                let within = |less: u32, more: u32| uses.is_within_of(less, self.uses, more);
                let dominates_open =
                    self.next.iter().any(|kept| kept.is_open && at.dominates(&kept.at, self.open, within));
                chunk.steps.extend_from_slice(steps);
                Some(Successor { at, dominates_open })
            }
        };
        chunk.found.push(Found { at, steps: chunk.steps.len() });
    }
}

impl<M: Mask> Chunk<M> {
    /// Bytes held, where each configuration holds `heap` beyond its own size.
    fn bytes(&self, heap: usize) -> usize {
        let found = self.found.capacity() * size_of::<Found<M>>() + self.found.len() * heap;
        found + self.successors.bytes() + self.uses.bytes() + self.steps.capacity() * size_of::<Step>()
    }
}
