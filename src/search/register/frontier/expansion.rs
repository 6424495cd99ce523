//! Where many configurations go on at a time, several threads look for what they come to.
//!
//! What one of them comes to past a return does not depend on the others, but for what is kept of it: a configuration that another
//! one stands for is not. So those of a layer are shared out among threads, a few to each at a time. A thread looks for their moves,
//! with a table of its own for the sets of what they use, and leaves out what one that was kept before stands for. Then, in the
//! order of those that go on, what is left is kept as if it had just been found. That is the same as one after the other: who stood
//! for something then may since have made way for another one, and that one stands for it as well (standing for others is
//! transitive). Work is counted as if there were one thread, so a race ends the same way.

use super::{FrontierSearch, Node, most_optional, project_dont_care};
use crate::search::budget::BudgetGuard;
use crate::search::mask::Mask;
use crate::search::register::configuration::Configuration;
use crate::search::register::crashed_uses::CrashedUseSets;
use crate::search::register::parent_links::Step;
use crate::search::register::pending::PendingOps;
use crate::search::register::pruning::Reductions;
use crate::search::register::pruning::Width;
use crate::search::register::successors::{Generator, Successors};
use crate::search::verdict::Limit;
use rayon::prelude::*;

#[cfg(test)]
mod tests;

/// Fewer that go on than this are not worth waking another thread for.
const MIN_PARALLEL_CONFIGURATIONS: usize = if cfg!(test) { 3 } else { 256 };

/// So many are a thread's at a time.
const CHUNK_CONFIGURATIONS: usize = if cfg!(test) { 1 } else { 16 };

/// So many shares for each thread before what came of them is kept: what comes of more is not held against each other by threads.
const CHUNKS_PER_THREAD: usize = 4;

/// So many are held against one another between two looks at the limits.
const MOST: usize = 1 << 14;

/// Of the memory that is left this part is for what threads hold beside the search.
const BESIDE: usize = 4;

/// What a thread needs to know of the search.
struct Expansion<'l, 'p, M> {
    open: &'l PendingOps<'p, M>,
    reductions: Reductions,
    width: Width,
    /// The slot that returns.
    slot: u32,
    /// Those on the rung of those that go on.
    current: &'l [Node<M>],
    /// Those that are kept on the next rung, and the sets that they name.
    next: &'l [Node<M>],
    uses: &'l CrashedUseSets,
    /// Bytes for each share, and what each configuration holds beyond its own size.
    memory: usize,
    heap: usize,
}

/// What a share of those that go on comes to.
struct Chunk<M> {
    moves: Successors<M>,
    uses: CrashedUseSets,
    steps: Vec<Step>,
    /// In order.
    found: Vec<Found<M>>,
    /// For each that goes on: the end of its part of `found`, and where its next moves begin, if there may be more.
    ends: Vec<(usize, Option<u32>)>,
}

/// A configuration past the return.
struct Found<M> {
    /// `None`: one that was kept before stands for it.
    at: Option<Successor<M>>,
    /// The end of its part of the steps.
    steps: usize,
}

/// One that none of those kept before stands for.
struct Successor<M> {
    at: Configuration<M>,
    /// Whether it stands for any of those that wait.
    is_open: bool,
}

impl<M: Mask> FrontierSearch<'_, M> {
    /// Whether several threads are to look for moves of those that go on.
    pub(super) fn is_wide(&self) -> bool {
        self.active.len() >= MIN_PARALLEL_CONFIGURATIONS
            && self.reductions.dominance
            // Who waits for a guess must not be given work of somebody who waits for the same.
            && !self.splice_candidates.is_guess()
            && rayon::current_num_threads() > 1
    }

    /// Takes those that go on past a return, all of them, by several threads; fewer where there is too little memory: how many.
    pub(super) fn expand_parallel(
        &mut self,
        slot: u32,
        memory: usize,
        watch: &BudgetGuard<'_>,
    ) -> Result<usize, Limit> {
        let mut turn = 0;
        while turn < self.active.len() {
            let left = memory.saturating_sub(self.bytes());
            if left < memory / 2 {
                break;
            }
            let share = CHUNK_CONFIGURATIONS * CHUNKS_PER_THREAD * rayon::current_num_threads();
            let end = self.active.len().min(turn + share);
            let layer = Expansion {
                open: &self.open,
                reductions: self.reductions,
                width: self.width,
                slot,
                current: &self.layers[self.current_layer].entries,
                next: &self.layers[self.current_layer + 1].entries,
                uses: &self.uses,
                heap: self.heap,
                memory: left / BESIDE / (end - turn).div_ceil(CHUNK_CONFIGURATIONS),
            };
            let shares =
                self.active[turn..end].par_chunks(CHUNK_CONFIGURATIONS).map(|going| layer.expand_chunk(going, watch));
            let shares: Vec<Chunk<M>> = match shares.collect::<Result<_, Limit>>() {
                Ok(shares) => shares,
                Err(Limit::Memory) => break,
                Err(limit) => return Err(limit),
            };
            let mut seen = layer.next.len();
            for share in shares {
                self.insert_chunk(share, &mut turn, &mut seen, memory, watch)?;
            }
        }
        Ok(turn)
    }

    /// Keeps what a share came to, where so many were on the rung when it was looked for.
    fn insert_chunk(
        &mut self,
        share: Chunk<M>,
        turn: &mut usize,
        seen: &mut usize,
        memory: usize,
        watch: &BudgetGuard<'_>,
    ) -> Result<(), Limit> {
        let Chunk { moves, uses, steps, found, ends } = share;
        self.moves.join(moves);
        let (mut found, mut at, mut begin) = (found.into_iter(), 0, 0);
        for (end, more) in ends {
            for Found { at: fresh, steps: end } in found.by_ref().take(end - at) {
                let next = self.current_layer + 1;
                match fresh {
                    Some(Successor { at: mut fresh, is_open: stands }) => {
                        // What was numbered before may have another number since.
                        fresh.path = self.active[*turn].1.path;
                        fresh.used = self.uses.adopt(&uses, fresh.used);
                        self.insert_after(next, fresh, &steps[begin..end], seen, stands);
                    }
                    None => self.count_insertion(next),
                }
                begin = end;
                self.check_limits(memory, watch)?;
            }
            at = end;
            if let Some(least) = more {
                self.set_open(self.active[*turn].0, least);
            }
            *turn += 1;
        }
        Ok(())
    }
}

impl<M: Mask> Expansion<'_, '_, M> {
    /// What some of those that go on come to.
    fn expand_chunk(&self, going: &[(usize, Configuration<M>)], watch: &BudgetGuard<'_>) -> Result<Chunk<M>, Limit> {
        let mut share = Chunk {
            moves: Successors::default(),
            uses: CrashedUseSets::new(),
            steps: Vec::new(),
            found: Vec::new(),
            ends: Vec::with_capacity(going.len()),
        };
        for (entry, from) in going {
            let mut from = Configuration { used: share.uses.adopt(self.uses, from.used), ..from.clone() };
            let more = if from.linearized.has(self.slot) {
                from.linearized.remove(self.slot);
                self.add(&mut share, from, &[]);
                None
            } else {
                self.find(&mut share, &from, self.current[*entry].optional, watch)?
            };
            share.ends.push((share.found.len(), more));
        }
        Ok(share)
    }

    /// Adds what a configuration comes to whose moves use at least so many optional operations. Where its next moves begin, if there
    /// may be more.
    fn find(
        &self,
        share: &mut Chunk<M>,
        from: &Configuration<M>,
        mut least: u32,
        watch: &BudgetGuard<'_>,
    ) -> Result<Option<u32>, Limit> {
        loop {
            let finder = Generator {
                open: self.open,
                uses: &mut share.uses,
                moves: &mut share.moves,
                reductions: self.reductions,
                from,
                slot: self.slot,
                optional: (least, most_optional(least)),
            };
            let more = finder.find(self.memory, watch)?;
            let moves = std::mem::take(&mut share.moves);
            // Thousands that are held against thousands take seconds.
            let at_a_time = MOST / (self.next.len() + 1) + 1;
            for some in moves.found.chunks(at_a_time) {
                if let Some(limit) = watch.reached() {
                    return Err(limit);
                }
                some.iter().for_each(|found| self.add(share, found.to.clone(), moves.steps(found)));
            }
            share.moves = moves;
            if share.bytes(self.heap) > self.memory {
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

    /// Adds one, unless one that is kept stands for it.
    fn add(&self, share: &mut Chunk<M>, mut at: Configuration<M>, steps: &[Step]) {
        project_dont_care(&mut at, self.reductions, self.open, &share.uses);
        let uses = &share.uses;
        let within = |less: u32, more: u32| self.uses.is_within_of(less, uses, more);
        let at = match self.next.iter().any(|kept| kept.at.dominates(&at, self.open, within)) {
            true => None,
            false => {
                let within = |less: u32, more: u32| uses.is_within_of(less, self.uses, more);
                let stands = self.next.iter().any(|kept| kept.is_open && at.dominates(&kept.at, self.open, within));
                share.steps.extend_from_slice(steps);
                Some(Successor { at, is_open: stands })
            }
        };
        share.found.push(Found { at, steps: share.steps.len() });
    }
}

impl<M: Mask> Chunk<M> {
    /// Bytes held, where each configuration holds so many beyond its own size.
    fn bytes(&self, heap: usize) -> usize {
        let found = self.found.capacity() * size_of::<Found<M>>() + self.found.len() * heap;
        found + self.moves.bytes() + self.uses.bytes() + self.steps.capacity() * size_of::<Step>()
    }
}
