//! Depth first: Wing and Gong's search with the memo of Lowe (*Testing for linearizability*, 2017).

use super::budget::Watch;
use super::mask::Mask;
use super::partition::Part;
use super::race::Runner;
use super::room::{self, OVERHEAD};
use super::schedule::{Dead, Found};
use super::slots::Slots;
use super::transitions::Transitions;
use super::verdict::Limit;
use crate::model::Spec;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

/// What tells two situations at the same return apart.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Configuration<M> {
    /// The event that comes next: a return of an operation that is not done.
    at: u32,
    state: u32,
    /// Operations in slots that are done.
    done: M,
    /// How often each class of unknown outcome was used.
    used: Box<[u32]>,
}

/// A choice that was made.
struct Frame<M> {
    before: Configuration<M>,
    /// Where its alternatives begin.
    choices: usize,
    /// The operation that was chosen.
    chosen: u32,
}

/// Searches for an order of the operations of a part that explains every answer before event `goal`.
///
/// Only states at which some operation must come next because it returns are remembered. An operation is chosen among those that
/// were invoked before that return; those done are known by slots, of which there are as many as operations were open at a time.
pub(super) struct Depth<'p, S: Spec, M> {
    part: &'p Part,
    slots: Slots,
    transitions: Transitions<'p, S>,
    class: Vec<u32>,
    goal: usize,
    now: Configuration<M>,
    /// Open operations that have slots.
    open: Vec<u32>,
    /// Operations of unknown outcome invoked so far, by class that has them.
    supply: Vec<Vec<u32>>,
    frames: Vec<Frame<M>>,
    choices: Vec<u32>,
    visited: HashSet<Configuration<M>, FxBuildHasher>,
    memory: usize,
    furthest: usize,
    work: u64,
}

impl<'p, S: Spec, M: Mask> Depth<'p, S, M> {
    pub(super) fn new(
        part: &'p Part,
        slots: Slots,
        transitions: Transitions<'p, S>,
        class: Vec<u32>,
        goal: usize,
    ) -> Self {
        let mut depth = Depth {
            part,
            goal,
            now: Configuration {
                at: 0,
                state: Transitions::<S>::INITIAL,
                done: M::none(slots.count),
                used: vec![0; slots.kinds.len()].into_boxed_slice(),
            },
            open: Vec::new(),
            supply: vec![Vec::new(); slots.kinds.len()],
            frames: Vec::new(),
            choices: Vec::new(),
            visited: HashSet::default(),
            memory: usize::MAX,
            furthest: 0,
            work: 0,
            slots,
            transitions,
            class,
        };
        depth.advance();
        depth
    }

    /// Whether the configuration is new.
    fn remember(&mut self) -> Result<bool, Limit> {
        let heap = self.now.done.heap_bytes() + self.now.used.len() * 4 + OVERHEAD;
        let chosen = room::bytes(&self.frames) + self.frames.len() * heap + room::bytes(&self.choices);
        let others = self.transitions.bytes() + chosen;
        if others > self.memory {
            return Err(Limit::Memory);
        }
        if self.visited.len() == self.visited.capacity() {
            // A table grows to twice its size beside the old one.
            let slots = self.visited.capacity() * 8 / 7;
            let grown = 3 * slots.max(4) * (size_of::<Configuration<M>>() + 1) + self.visited.len() * heap;
            if grown.saturating_add(others) > self.memory {
                // What was refuted is forgotten, and may have to be refuted again.
                self.visited.clear();
            }
        }
        Ok(self.visited.insert(self.now.clone()))
    }

    /// Puts what could come next on the pile; the best last.
    fn offer(&mut self) {
        for kind in (0..self.supply.len()).rev() {
            if let Some(&operation) = self.supply[kind].get(self.now.used[kind] as usize) {
                self.choices.push(operation);
            }
        }
        let first = self.choices.len();
        let done = &self.now.done;
        self.choices.extend(self.open.iter().copied().filter(|&o| !done.has(self.slots.of[o as usize])));
        self.choices[first..].sort_unstable_by_key(|&o| std::cmp::Reverse(self.slots.returns[o as usize]));
    }

    /// Takes the best choice left above `first` that is possible.
    fn take(&mut self, first: usize, watch: &Watch<'_>) -> Result<bool, Limit> {
        while self.choices.len() > first {
            let Some(operation) = self.choices.pop() else { break };
            let Some(state) = self.transitions.step(self.now.state, self.class[operation as usize], watch)? else {
                continue;
            };
            room::push(&mut self.frames, Frame { before: self.now.clone(), choices: first, chosen: operation });
            self.now.state = state;
            match self.slots.kind(operation) {
                Some(kind) => self.now.used[kind] += 1,
                None => self.now.done.add(self.slots.of[operation as usize]),
            }
            self.advance();
            return Ok(true);
        }
        Ok(false)
    }

    /// Goes back to the last choice that has an alternative, and takes that.
    fn back(&mut self, watch: &Watch<'_>) -> Result<bool, Limit> {
        while let Some(frame) = self.frames.pop() {
            self.rewind(frame.before.at as usize);
            self.now = frame.before;
            if self.take(frame.choices, watch)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes on to the next return of an operation that is not done, or to the goal.
    fn advance(&mut self) {
        while (self.now.at as usize) < self.goal {
            let event = self.part.events[self.now.at as usize];
            let operation = event.of();
            match (self.slots.kind(operation), event.is_return()) {
                (Some(kind), _) => self.supply[kind].push(operation),
                (None, false) => self.open.push(operation),
                (None, true) => {
                    let slot = self.slots.of[operation as usize];
                    if !self.now.done.has(slot) {
                        return;
                    }
                    self.now.done.remove(slot);
                    self.open.retain(|&o| o != operation);
                }
            }
            self.now.at += 1;
        }
    }

    /// Makes the events from `to` on not have happened.
    fn rewind(&mut self, to: usize) {
        for event in self.part.events[to..self.now.at as usize].iter().rev() {
            let operation = event.of();
            match (self.slots.kind(operation), event.is_return()) {
                (Some(kind), _) => {
                    self.supply[kind].pop();
                }
                (None, false) => self.open.retain(|&o| o != operation),
                (None, true) => self.open.push(operation),
            }
        }
    }
}

impl<S: Spec, M: Mask> Runner for Depth<'_, S, M> {
    type Found = Found;

    fn run(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Found>, Limit> {
        self.memory = memory;
        while self.work < until {
            if self.now.at as usize == self.goal {
                return Ok(Some(Found::Order(self.frames.iter().map(|frame| frame.chosen).collect())));
            }
            self.work += 1;
            if self.work.is_multiple_of(256)
                && let Some(limit) = watch.reached()
            {
                return Err(limit);
            }
            self.furthest = self.furthest.max(self.now.at as usize);
            let first = self.choices.len();
            if self.remember()? {
                self.offer();
            }
            if !self.take(first, watch)? && !self.back(watch)? {
                // It does not look ahead.
                return Ok(Some(Found::Impossible(Dead {
                    reached: self.furthest,
                    suspect: self.furthest,
                    longest: None,
                })));
            }
        }
        Ok(None)
    }
}
