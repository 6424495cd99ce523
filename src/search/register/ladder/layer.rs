//! Where many configurations go on at a time, several threads look for what they come to.
//!
//! What one of them comes to past a return does not depend on the others, but for what is kept of it: a configuration that another
//! one stands for is not. So those of a layer are shared out among threads, a few to each at a time. A thread looks for their moves,
//! with a table of its own for the sets of what they use, and leaves out what one that was kept before stands for. Then, in the
//! order of those that go on, what is left is kept as if it had just been found. That is the same as one after the other: who stood
//! for something then may since have made way for another one, and that one stands for it as well (standing for others is
//! transitive). Work is counted as if there were one thread, so a race ends the same way.

use super::{Entry, Ladder, forget_state, most_optional};
use crate::search::budget::Watch;
use crate::search::mask::Mask;
use crate::search::register::configuration::Configuration;
use crate::search::register::moves::{Finder, Moves};
use crate::search::register::open::Open;
use crate::search::register::path::Step;
use crate::search::register::reductions::Reductions;
use crate::search::register::reductions::Width;
use crate::search::register::used::Uses;
use crate::search::verdict::Limit;
use rayon::prelude::*;

#[cfg(test)]
mod tests;

/// Fewer that go on than this are not worth waking another thread for.
const WIDE: usize = if cfg!(test) { 3 } else { 256 };

/// So many are a thread's at a time.
const SHARE: usize = if cfg!(test) { 1 } else { 16 };

/// So many shares for each thread before what came of them is kept: what comes of more is not held against each other by threads.
const SHARES: usize = 4;

/// So many are held against one another between two looks at the limits.
const MOST: usize = 1 << 14;

/// Of the memory that is left this part is for what threads hold beside the search.
const BESIDE: usize = 4;

/// What a thread needs to know of the search.
struct Layer<'l, 'p, M> {
    open: &'l Open<'p, M>,
    reductions: Reductions,
    width: Width,
    /// The slot that returns.
    slot: u32,
    /// Those on the rung of those that go on.
    here: &'l [Entry<M>],
    /// Those that are kept on the next rung, and the sets that they name.
    next: &'l [Entry<M>],
    uses: &'l Uses,
    /// Bytes for each share, and what each configuration holds beyond its own size.
    memory: usize,
    heap: usize,
}

/// What a share of those that go on comes to.
struct Share<M> {
    moves: Moves<M>,
    uses: Uses,
    steps: Vec<Step>,
    /// In order.
    found: Vec<Found<M>>,
    /// For each that goes on: the end of its part of `found`, and where its next moves begin, if there may be more.
    ends: Vec<(usize, Option<u32>)>,
}

/// A configuration past the return.
struct Found<M> {
    /// `None`: one that was kept before stands for it.
    at: Option<Fresh<M>>,
    /// The end of its part of the steps.
    steps: usize,
}

/// One that none of those kept before stands for.
struct Fresh<M> {
    at: Configuration<M>,
    /// Whether it stands for any of those that wait.
    stands: bool,
}

impl<M: Mask> Ladder<'_, M> {
    /// Whether several threads are to look for moves of those that go on.
    pub(super) fn is_wide(&self) -> bool {
        self.going.len() >= WIDE
            && self.reductions.dominance
            // Who waits for a guess must not be given work of somebody who waits for the same.
            && !self.places.is_guess()
            && rayon::current_num_threads() > 1
    }

    /// Takes those that go on past a return, all of them, by several threads; fewer where there is too little memory: how many.
    pub(super) fn pass_side_by_side(&mut self, slot: u32, memory: usize, watch: &Watch<'_>) -> Result<usize, Limit> {
        let mut turn = 0;
        while turn < self.going.len() {
            let left = memory.saturating_sub(self.bytes());
            if left < memory / 2 {
                break;
            }
            let share = SHARE * SHARES * rayon::current_num_threads();
            let end = self.going.len().min(turn + share);
            let layer = Layer {
                open: &self.open,
                reductions: self.reductions,
                width: self.width,
                slot,
                here: &self.rungs[self.here].entries,
                next: &self.rungs[self.here + 1].entries,
                uses: &self.uses,
                heap: self.heap,
                memory: left / BESIDE / (end - turn).div_ceil(SHARE),
            };
            let shares = self.going[turn..end].par_chunks(SHARE).map(|going| layer.share(going, watch));
            let shares: Vec<Share<M>> = match shares.collect::<Result<_, Limit>>() {
                Ok(shares) => shares,
                Err(Limit::Memory) => break,
                Err(limit) => return Err(limit),
            };
            let mut seen = layer.next.len();
            for share in shares {
                self.keep_share(share, &mut turn, &mut seen, memory, watch)?;
            }
        }
        Ok(turn)
    }

    /// Keeps what a share came to, where so many were on the rung when it was looked for.
    fn keep_share(
        &mut self,
        share: Share<M>,
        turn: &mut usize,
        seen: &mut usize,
        memory: usize,
        watch: &Watch<'_>,
    ) -> Result<(), Limit> {
        let Share { moves, uses, steps, found, ends } = share;
        self.moves.join(moves);
        let (mut found, mut at, mut begin) = (found.into_iter(), 0, 0);
        for (end, more) in ends {
            for Found { at: fresh, steps: end } in found.by_ref().take(end - at) {
                let next = self.here + 1;
                match fresh {
                    Some(Fresh { at: mut fresh, stands }) => {
                        // What was numbered before may have another number since.
                        fresh.path = self.going[*turn].1.path;
                        fresh.used = self.uses.adopt(&uses, fresh.used);
                        self.keep_beside(next, fresh, &steps[begin..end], seen, stands);
                    }
                    None => self.count_keeping(next),
                }
                begin = end;
                self.look(memory, watch)?;
            }
            at = end;
            if let Some(least) = more {
                self.wait(self.going[*turn].0, least);
            }
            *turn += 1;
        }
        Ok(())
    }
}

impl<M: Mask> Layer<'_, '_, M> {
    /// What some of those that go on come to.
    fn share(&self, going: &[(usize, Configuration<M>)], watch: &Watch<'_>) -> Result<Share<M>, Limit> {
        let mut share = Share {
            moves: Moves::default(),
            uses: Uses::new(),
            steps: Vec::new(),
            found: Vec::new(),
            ends: Vec::with_capacity(going.len()),
        };
        for (entry, from) in going {
            let mut from = Configuration { used: share.uses.adopt(self.uses, from.used), ..from.clone() };
            let more = if from.done.has(self.slot) {
                from.done.remove(self.slot);
                self.add(&mut share, from, &[]);
                None
            } else {
                self.find(&mut share, &from, self.here[*entry].optional, watch)?
            };
            share.ends.push((share.found.len(), more));
        }
        Ok(share)
    }

    /// Adds what a configuration comes to whose moves use at least so many optional operations. Where its next moves begin, if there
    /// may be more.
    fn find(
        &self,
        share: &mut Share<M>,
        from: &Configuration<M>,
        mut least: u32,
        watch: &Watch<'_>,
    ) -> Result<Option<u32>, Limit> {
        loop {
            let finder = Finder {
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
    fn add(&self, share: &mut Share<M>, mut at: Configuration<M>, steps: &[Step]) {
        forget_state(&mut at, self.reductions, self.open, &share.uses);
        let uses = &share.uses;
        let within = |less: u32, more: u32| self.uses.is_within_of(less, uses, more);
        let at = match self.next.iter().any(|kept| kept.at.dominates(&at, self.open, within)) {
            true => None,
            false => {
                let within = |less: u32, more: u32| uses.is_within_of(less, self.uses, more);
                let stands = self.next.iter().any(|kept| kept.waits && at.dominates(&kept.at, self.open, within));
                share.steps.extend_from_slice(steps);
                Some(Fresh { at, stands })
            }
        };
        share.found.push(Found { at, steps: share.steps.len() });
    }
}

impl<M: Mask> Share<M> {
    /// Bytes held, where each configuration holds so many beyond its own size.
    fn bytes(&self, heap: usize) -> usize {
        let found = self.found.capacity() * size_of::<Found<M>>() + self.found.len() * heap;
        found + self.moves.bytes() + self.uses.bytes() + self.steps.capacity() * size_of::<Step>()
    }
}
