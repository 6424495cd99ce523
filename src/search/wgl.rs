//! The search of Wing and Gong (1993), depth first, with the visited states of Lowe (2017): for any specification. Input: a part,
//! its slots and transitions. Output: a linearization, or the furthest return. A visited state is known by the next return, the
//! state of the object, and the linearized operations. If memory is short, visited states are forgotten and refuted again, so the
//! verdict does not depend on it.

use super::budget::BudgetGuard;
use super::crashed_uses::{CrashedUseSets, UNUSED};
use super::partition::Part;
use super::portfolio::Runner;
use super::schedule::{DeadEnd, Found};
use super::slots::SlotAllocation;
use super::tight_vec;
use super::transitions::Transitions;
use super::verdict::Limit;
use super::visited::VisitedSet;
use crate::model::Spec;

/// A choice, and what it takes to undo it.
struct Frame {
    /// The next event, the state and the used crashed operations before the choice.
    at: u32,
    state: u32,
    used: u32,
    /// Where its alternatives among the pending operations begin in `choices`.
    choices: usize,
    /// The operation that was chosen. Alternatives among the crashed operations have a later kind.
    chosen: u32,
}

/// Searches for a linearization of every answer before event `goal`.
///
/// Only states at which an unlinearized operation returns are visited. The next operation is one of those invoked before that
/// return. Linearized operations are known by slots, of which there are as many as operations were pending at once.
pub(super) struct WglSearch<'p, S: Spec> {
    part: &'p Part,
    slots: SlotAllocation,
    transitions: Transitions<'p, S>,
    class: Vec<u32>,
    goal: usize,
    /// The next event: a return of an operation that is not linearized.
    at: u32,
    /// The key of the visited states: the return and the state, then the linearized operations in slots, then those among the
    /// crashed ones: a byte for each kind if `has_bytes`, else `used`.
    now: Box<[u64]>,
    /// Whether the key has a byte for each kind.
    has_bytes: bool,
    state: u32,
    /// Pending operations that have slots.
    open: Vec<u32>,
    /// How many crashed operations of each kind are linearized.
    uses: Vec<u32>,
    /// The same as a number of `sets`; not kept if `has_bytes`.
    used: u32,
    sets: CrashedUseSets,
    /// Crashed operations invoked so far, by kind.
    supply: Vec<Vec<u32>>,
    /// A bit for each kind that has an unused one among them.
    left: Box<[u64]>,
    frames: Vec<Frame>,
    choices: Vec<u32>,
    visited: VisitedSet,
    memory: usize,
    furthest: usize,
    work: u64,
}

/// Index of the first word about linearized operations.
const DONE: usize = 1;

impl<'p, S: Spec> WglSearch<'p, S> {
    pub(super) fn new(
        part: &'p Part,
        slots: SlotAllocation,
        transitions: Transitions<'p, S>,
        class: Vec<u32>,
        goal: usize,
        kinds_in_key: usize,
    ) -> Self {
        let has_bytes = slots.kinds <= kinds_in_key && slots.largest_kind <= u32::from(u8::MAX);
        let width = match has_bytes {
            true => DONE + (slots.count.div_ceil(8) + slots.kinds).div_ceil(8),
            false => DONE + slots.count.div_ceil(64) + 1,
        };
        let mut depth = WglSearch {
            part,
            goal,
            at: 0,
            now: vec![0; width].into_boxed_slice(),
            has_bytes,
            state: Transitions::<S>::INITIAL,
            open: Vec::new(),
            uses: vec![0; slots.kinds],
            used: UNUSED,
            sets: CrashedUseSets::new(),
            supply: vec![Vec::new(); slots.kinds],
            left: vec![0; slots.kinds.div_ceil(64)].into_boxed_slice(),
            frames: Vec::new(),
            choices: Vec::new(),
            visited: VisitedSet::new(width),
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

    /// Whether the configuration was not visited before.
    fn remember(&mut self) -> Result<bool, Limit> {
        self.now[0] = u64::from(self.at) << 32 | u64::from(self.state);
        if !self.has_bytes {
            self.now[DONE + self.slots.count.div_ceil(64)] = u64::from(self.used);
        }
        let hash = VisitedSet::hash(&self.now);
        if self.visited.has(hash, &self.now) {
            return Ok(false);
        }
        if !self.visited.is_empty() && (self.needed(hash) > self.memory || self.visited.is_full()) {
            // What was refuted is forgotten, and may be refuted again.
            self.visited = VisitedSet::new(self.now.len());
            self.sets.retain(self.frames.iter_mut().map(|frame| &mut frame.used).chain([&mut self.used]));
            return self.remember();
        }
        if self.needed(hash) > self.memory {
            return Err(Limit::Memory);
        }
        self.visited.insert(hash, &self.now);
        Ok(true)
    }

    /// Bytes held once a configuration with this hash is remembered.
    fn needed(&self, hash: u32) -> usize {
        let visited = self.visited.bytes() + self.visited.growth(hash);
        let others = self.transitions.bytes() + tight_vec::bytes(&self.frames) + tight_vec::bytes(&self.choices);
        visited.saturating_add(others).saturating_add(self.sets.bytes())
    }

    /// Whether the operation in a slot is linearized.
    fn is_done(&self, slot: u32) -> bool {
        self.now[DONE + slot as usize / 64] >> (slot % 64) & 1 == 1
    }

    /// Adds the operation in a slot to the linearized ones, or removes it.
    fn toggle(&mut self, slot: u32) {
        self.now[DONE + slot as usize / 64] ^= 1 << (slot % 64);
    }

    /// The word of the key with the count of linearized operations of a kind, which is one byte; and the number that adds one
    /// to this byte.
    fn byte_of(&self, kind: usize) -> (usize, u64) {
        let byte = self.slots.count.div_ceil(8) + kind;
        (DONE + byte / 8, 1 << (byte % 8 * 8))
    }

    /// Notes whether an operation of a kind is left, after a change of the supply or of the linearized operations.
    fn note_left(&mut self, kind: usize) {
        let is_left = u64::from((self.uses[kind] as usize) < self.supply[kind].len());
        let word = &mut self.left[kind / 64];
        *word = *word & !(1 << (kind % 64)) | is_left << (kind % 64);
    }

    /// The first kind from `from` on with an operation left.
    fn left_from(&self, from: usize) -> Option<usize> {
        let mut at = from / 64;
        let mut word = self.left.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.left.get(at)?;
        }
        Some(at * 64 + word.trailing_zeros() as usize)
    }

    /// Pushes the pending operations that can be next; the one that returns first is last. A crashed operation can be next too,
    /// but a history can have thousands of kinds, so [`Self::take`] looks for one when it needs one.
    fn offer(&mut self) {
        let first = self.choices.len();
        for &operation in &self.open {
            if !self.is_done(self.slots.of[operation as usize]) {
                self.choices.push(operation);
            }
        }
        self.choices[first..].sort_unstable_by_key(|&o| std::cmp::Reverse(self.slots.returns[o as usize]));
    }

    /// Takes the last choice above `first` that is possible, else a crashed operation of the first kind from `kind` on.
    fn take(&mut self, first: usize, mut kind: usize, guard: &BudgetGuard<'_>) -> Result<bool, Limit> {
        loop {
            let operation = match (self.choices.len() > first).then(|| self.choices.pop()).flatten() {
                Some(operation) => operation,
                None => {
                    let Some(left) = self.left_from(kind) else { return Ok(false) };
                    kind = left + 1;
                    self.supply[left][self.uses[left] as usize]
                }
            };
            let Some(state) = self.transitions.step(self.state, self.class[operation as usize], guard)? else {
                continue;
            };
            let frame = Frame { at: self.at, state: self.state, used: self.used, choices: first, chosen: operation };
            tight_vec::push(&mut self.frames, frame);
            self.state = state;
            match self.slots.kind(operation) {
                Some(kind) => {
                    self.uses[kind] += 1;
                    if self.has_bytes {
                        let (word, one) = self.byte_of(kind);
                        self.now[word] += one;
                    } else {
                        self.used = self.sets.add(self.used, kind as u32, false);
                    }
                    self.note_left(kind);
                }
                None => self.toggle(self.slots.of[operation as usize]),
            }
            self.advance();
            return Ok(true);
        }
    }

    /// Backtracks to the last choice with a possible alternative, and takes that.
    fn back(&mut self, guard: &BudgetGuard<'_>) -> Result<bool, Limit> {
        while let Some(frame) = self.frames.pop() {
            self.rewind(frame.at);
            (self.state, self.used) = (frame.state, frame.used);
            let next_kind = match self.slots.kind(frame.chosen) {
                Some(kind) => {
                    self.uses[kind] -= 1;
                    if self.has_bytes {
                        let (word, one) = self.byte_of(kind);
                        self.now[word] -= one;
                    }
                    self.note_left(kind);
                    kind + 1
                }
                None => {
                    self.toggle(self.slots.of[frame.chosen as usize]);
                    0
                }
            };
            if self.take(frame.choices, next_kind, guard)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Continues to the next return of an operation that is not linearized, or to the goal.
    fn advance(&mut self) {
        while (self.at as usize) < self.goal {
            let event = self.part.events[self.at as usize];
            let operation = event.of();
            match (self.slots.kind(operation), event.is_return()) {
                (Some(kind), _) => {
                    self.supply[kind].push(operation);
                    self.note_left(kind);
                }
                (None, false) => self.open.push(operation),
                (None, true) => {
                    let slot = self.slots.of[operation as usize];
                    if !self.is_done(slot) {
                        return;
                    }
                    self.toggle(slot);
                    self.open.retain(|&o| o != operation);
                }
            }
            self.at += 1;
        }
    }

    /// Goes back to event `to`.
    fn rewind(&mut self, to: u32) {
        for event in self.part.events[to as usize..self.at as usize].iter().rev() {
            let operation = event.of();
            match (self.slots.kind(operation), event.is_return()) {
                (Some(kind), _) => {
                    self.supply[kind].pop();
                    self.note_left(kind);
                }
                (None, false) => self.open.retain(|&o| o != operation),
                (None, true) => {
                    self.open.push(operation);
                    self.toggle(self.slots.of[operation as usize]);
                }
            }
        }
        self.at = to;
    }
}

impl<S: Spec> Runner for WglSearch<'_, S> {
    type Found = Found;

    fn run(&mut self, until: u64, memory: usize, guard: &BudgetGuard<'_>) -> Result<Option<Found>, Limit> {
        self.memory = memory;
        while self.work < until {
            if self.at as usize == self.goal {
                return Ok(Some(Found::Order(self.frames.iter().map(|frame| frame.chosen).collect())));
            }
            self.work += 1;
            if self.work.is_multiple_of(256)
                && let Some(limit) = guard.reached()
            {
                return Err(limit);
            }
            self.furthest = self.furthest.max(self.at as usize);
            let first = self.choices.len();
            let is_new = self.remember()?;
            if is_new {
                self.offer();
            }
            let goes_on = (is_new && self.take(first, 0, guard)?) || self.back(guard)?;
            if !goes_on {
                // This search does not look ahead.
                return Ok(Some(Found::Impossible(DeadEnd {
                    reached: self.furthest,
                    suspect: self.furthest,
                    longest: None,
                })));
            }
        }
        Ok(None)
    }
}
