//! The successors of a configuration past a return, by a normal form of linearizations. Input: a configuration, and a returning
//! operation that is not linearized. Output: configurations in which it is, and the steps to them.
//!
//! A write does not need the state before it, so a linearization is a sequence of *blocks*: a write, then the compare-and-sets
//! and appends up to the next write. A block has the same effect wherever it is. At the return, a linearization in normal form
//! continues in one of three ways, and then the operation is linearized:
//!
//! 1. **Chain**: compare-and-sets and appends from the present state, then the operation.
//! 2. **Block**: a chain (what is still possible before the state is lost), then one write, then a chain to the operation.
//! 3. **Gap**: a whole block with the operation in it is put right before the last overwrite, if all of it was pending then. The
//!    block may be longer than the operation needs. The present state stays.
//!
//! *Why that is enough.* Take any linearization, and what it has between the linearized operations and the returning one: `C0 W1
//! C1 ... Wj Cj`, a chain and blocks. `C0 Wj Cj` is way 2. The blocks `W1 C1` to `Wj-1 Cj-1` are right before `Wj`, where all
//! their operations are pending. Each block waits until the first of its operations returns, and way 3 then puts it there: the
//! gap is right before `Wj`, or before a later write, and all of the block is still pending there. A write of the present value
//! changes no state, but moves the gap. A write that was pending while the register held its value can be put there
//! (*absorbable*).
//!
//! Reads and failed compare-and-sets change nothing and are linearized as soon as they can be: no linearization is worse for it.
//!
//! A crashed operation is used only if an operation waits for the state that it leads to. A linearization that uses one for
//! nothing can do without it: the state that it overwrote, or the one that it led on to, can be reached without it.

mod gap;
mod present;
mod suspicion;

use super::automaton::{DONT_CARE, Kind};
use super::by_value::NONE;
use super::configuration::Configuration;
use super::event_schedule::NEVER;
use super::parent_links::Step;
use super::pending::PendingOps;
use super::pruning::Reductions;
use crate::search::budget::BudgetGuard;
use crate::search::crashed_uses::{CrashedUseSets, UNUSED};
use crate::search::mask::Mask;
use crate::search::tight_vec;
use crate::search::verdict::Limit;
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use suspicion::Suspicion;

/// The way that a partial move takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// In a chain from the present state.
    Chain,
    /// In a new block.
    Block,
    /// In a block before the last overwrite, at a state of its own.
    Gap(u32),
}

/// A partial move.
#[derive(Clone, Debug)]
struct Partial<M> {
    at: Configuration<M>,
    phase: Phase,
    /// Crashed operations used.
    optional: u32,
    /// How many steps precede the last one.
    depth: u32,
    /// The last step.
    last: Applied,
}

/// What the continuation of a partial move depends on, unless its last step is `owing`. Two with equal keys continue alike.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PartialKey<M> {
    state: u32,
    used: u32,
    /// The last overwrite is the same for all in one phase.
    phase: Phase,
    optional: u32,
    done: M,
    idle: M,
}

/// A step of a partial move.
#[derive(Clone, Copy, Debug)]
struct Applied {
    step: Step,
    /// The state before it, in its block.
    from: u32,
    /// It used a crashed operation, and no operation has needed that yet.
    owing: bool,
}

/// A finished move: the successor and the steps to it.
#[derive(Clone, Debug)]
pub(super) struct Move<M> {
    pub(super) to: Configuration<M>,
    /// Begin and end in [`Successors::steps`].
    steps: (u32, u32),
}

impl<M> Move<M> {
    /// Its steps among those of all moves.
    pub(super) fn steps<'s>(&self, all: &'s [Step]) -> &'s [Step] {
        &all[self.steps.0 as usize..self.steps.1 as usize]
    }
}

/// The moves of one configuration. Their memory is used again for the next one.
#[derive(Debug)]
pub(super) struct Successors<M> {
    pub(super) found: Vec<Move<M>>,
    pub(super) steps: Vec<Step>,
    /// Partial moves looked at: a measure of the work.
    pub(super) work: u64,
    /// Partial moves of one configuration, at most: there can be millions.
    pub(super) most: u64,
    drafts: Vec<Partial<M>>,
    trail: Vec<Applied>,
    /// States from which the returning operation can be reached: now, and before the last overwrite.
    reach: Vec<u32>,
    reach_in_gap: Vec<u32>,
    /// The keys of this configuration's partial moves.
    seen: HashSet<PartialKey<M>, FxBuildHasher>,
    /// The states that pruned moves lost.
    pub(super) suspicion: Suspicion,
}

impl<M> Default for Successors<M> {
    fn default() -> Self {
        Successors {
            found: Vec::new(),
            steps: Vec::new(),
            work: 0,
            most: u64::MAX,
            drafts: Vec::new(),
            trail: Vec::new(),
            reach: Vec::new(),
            reach_in_gap: Vec::new(),
            seen: HashSet::default(),
            suspicion: Suspicion::default(),
        }
    }
}

impl<M: Mask> Successors<M> {
    /// Adds the work and the suspicion of moves that another thread generated.
    pub(super) fn join(&mut self, others: Successors<M>) {
        self.work += others.work;
        self.suspicion.join(others.suspicion);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let heap = 2 * self.drafts.first().map_or(0, |draft| draft.at.linearized.heap_bytes());
        tight_vec::bytes(&self.found)
            + tight_vec::bytes(&self.drafts)
            + tight_vec::bytes(&self.steps)
            + tight_vec::bytes(&self.trail)
            + self.seen.capacity() * 8 / 7 * (size_of::<PartialKey<M>>() + 1)
            + heap * (self.found.len() + self.drafts.len() + self.seen.len())
    }
}

/// Generates the successors of a configuration past the return of an operation that is not linearized.
pub(super) struct Generator<'f, 'p, M> {
    pub(super) open: &'f PendingOps<'p, M>,
    pub(super) uses: &'f mut CrashedUseSets,
    pub(super) successors: &'f mut Successors<M>,
    pub(super) reductions: Reductions,
    /// [`Thresholds::compared_moves`](super::thresholds::Thresholds::compared_moves).
    pub(super) compared_moves: u64,
    pub(super) from: &'f Configuration<M>,
    /// The slot that returns.
    pub(super) slot: u32,
    /// How many crashed operations a move uses: at least, and at most.
    pub(super) optional: (u32, u32),
}

/// The returning operation.
#[derive(Clone, Copy)]
struct Task {
    class: u32,
    kind: Kind,
    /// It can be put where no operation depends on it.
    hideable: bool,
}

impl<M: Mask> Generator<'_, '_, M> {
    /// Generates the moves. Whether there may be moves with more crashed operations.
    ///
    /// # Errors
    /// The limit that was reached.
    pub(super) fn find(mut self, memory: usize, watch: &BudgetGuard<'_>) -> Result<bool, Limit> {
        let (open, from, slot) = (self.open, self.from, self.slot);
        let in_gap = open.invoked(slot) < from.last_overwrite_at;
        let task =
            Task { class: open.class(slot), kind: open.kind(slot), hideable: in_gap || from.absorbable.has(slot) };
        self.successors.found.clear();
        self.successors.steps.clear();
        self.successors.drafts.clear();
        self.successors.trail.clear();
        self.successors.seen.clear();
        let (begun, compared_moves) = (self.successors.work, self.compared_moves);
        let mut more = false;
        self.find_reach(task, NEVER);
        let root = Applied { step: Step::change(0), from: DONT_CARE, owing: false };
        self.chain(
            task,
            &Partial { at: from.clone(), phase: Phase::Chain, optional: 0, depth: 0, last: root },
            0,
            &mut more,
        );
        match task.kind {
            Kind::Write(state) if state == from.state => self.keep_state(slot, state),
            Kind::Write(_) if !in_gap && task.hideable => {
                let mut at = from.clone();
                at.linearized.add(slot);
                self.finish(at, 0, Step::idle(open.operation(slot)));
            }
            _ if in_gap => self.enter_gap(task, &mut more),
            _ => {}
        }
        while let Some(draft) = self.successors.drafts.pop() {
            self.successors.work += 1;
            if self.successors.work.is_multiple_of(256) {
                match watch.reached() {
                    Some(limit) => return Err(limit),
                    None if self.successors.work - begun > self.successors.most => return Err(Limit::Cancelled),
                    None if self.successors.bytes() + self.uses.bytes() > memory => return Err(Limit::Memory),
                    None => {}
                }
            }
            if self.successors.work - begun > compared_moves && !draft.last.owing && !self.is_new(&draft) {
                continue;
            }
            self.successors.trail.truncate(draft.depth as usize);
            self.successors.trail.push(draft.last);
            match draft.phase {
                Phase::Gap(state) => self.gap(task, &draft, state, &mut more),
                _ if draft.at.linearized.has(slot) => self.finish_draft(&draft),
                Phase::Chain => self.chain(task, &draft, draft.depth + 1, &mut more),
                Phase::Block => self.block(task, &draft, &mut more),
            }
        }
        Ok(more)
    }

    /// Whether no partial move had the same key.
    fn is_new(&mut self, draft: &Partial<M>) -> bool {
        let at = &draft.at;
        self.successors.seen.insert(PartialKey {
            state: at.state,
            used: at.used,
            phase: draft.phase,
            optional: draft.optional,
            done: at.linearized.clone(),
            idle: at.absorbable.clone(),
        })
    }

    /// A write of the present value: pending operations can now be put before it.
    fn keep_state(&mut self, slot: u32, state: u32) {
        let mut at = self.from.clone();
        at.linearized.add(slot);
        self.overwrite(&mut at, state);
        self.finish(at, 0, Step::change(self.open.operation(slot)));
    }

    /// Linearizes a write.
    fn overwrite(&mut self, at: &mut Configuration<M>, to: u32) {
        at.last_overwrite_at = self.open.at;
        at.used = self.uses.seal(at.used);
        at.absorbable.clear();
        at.state = to;
        self.open.serve(&mut at.linearized, to, NEVER);
    }

    /// Linearizes a compare-and-set or an append. Whether an operation waited for the state.
    fn change(&self, at: &mut Configuration<M>, to: u32) -> bool {
        let open = self.open;
        if at.state != to {
            for slot in open.undone(open.automaton().writes(at.state), &at.linearized) {
                at.absorbable.add(slot);
            }
        }
        at.state = to;
        open.serve(&mut at.linearized, to, NEVER)
    }

    /// The pending operations of a class, invoked before an event and not linearized, that are tried: with earliest first, the
    /// one that returns first.
    fn equals<'o>(
        &self,
        open: &'o PendingOps<'_, M>,
        class: u32,
        done: &M,
        before: u32,
    ) -> impl Iterator<Item = u32> + use<'o, M>
    where
        M: 'o,
    {
        let most = if self.reductions.earliest_first { 1 } else { usize::MAX };
        let mut slot = open.first(class);
        let done = done.clone();
        std::iter::from_fn(move || {
            while slot != NONE && (done.has(slot) || open.invoked(slot) >= before) {
                slot = open.next(slot);
            }
            let found = (slot != NONE).then_some(slot)?;
            slot = open.next(slot);
            Some(found)
        })
        .take(most)
    }

    /// Uses a crashed operation of a class that was invoked before an event, if one is left.
    fn optional(&mut self, at: &mut Configuration<M>, class: u32, before: u32) -> Option<u32> {
        let open = self.open;
        let place = open.schedule().crashed_class_of(class);
        if place == NONE || open.available[place as usize] == 0 {
            return None;
        }
        let offered = open.available[place as usize];
        let (count, recent) = (self.uses.count(at.used, place), self.uses.recent(at.used, place));
        let old = if at.last_overwrite_at == 0 { 0 } else { open.available_before(place, at.last_overwrite_at) };
        let (chosen, is_recent) = if before == NEVER {
            if count >= offered {
                return None;
            }
            // The newest first: an older one may be needed before the last overwrite.
            let is_recent = at.last_overwrite_at > 0 && offered - old > recent;
            (if is_recent { offered - 1 - recent } else { count - recent }, is_recent)
        } else {
            if count >= offered || count - recent >= old {
                return None;
            }
            (count - recent, false)
        };
        if !self.is_free(at, class, (if at.last_overwrite_at == 0 { offered } else { old }).saturating_sub(count)) {
            at.used = self.uses.add(at.used, place, is_recent);
        }
        Some(open.schedule().crashed_classes[place as usize].operations[chosen as usize])
    }

    /// Whether [`Self::optional`] finds one for the configuration that is expanded.
    fn has_optional(&self, class: u32, before: u32) -> bool {
        let (open, from) = (self.open, self.from);
        let place = open.schedule().crashed_class_of(class);
        if place == NONE {
            return false;
        }
        let count = self.uses.count(from.used, place);
        count < open.available[place as usize]
            && (before == NEVER
                || from.last_overwrite_at > 0
                    && count - self.uses.recent(from.used, place)
                        < open.available_before(place, from.last_overwrite_at))
    }

    /// Whether `left` crashed operations of a class suffice for all operations that may ever want one.
    fn is_free(&self, at: &Configuration<M>, class: u32, left: u32) -> bool {
        match self.open.automaton().kinds[class as usize] {
            Kind::Write(state) | Kind::Cas(_, state) => {
                self.reductions.supply
                    && state != DONT_CARE
                    && left > 0
                    && left >= self.open.wanted(state, at, self.uses)
            }
            _ => false,
        }
    }

    /// Whether the last crashed operations, which no operation has needed, lead back to an earlier state.
    fn is_round(&self, draft: &Partial<M>, to: u32) -> bool {
        let state = match draft.phase {
            Phase::Gap(state) => state,
            Phase::Chain | Phase::Block => draft.at.state,
        };
        state == to || self.successors.trail.iter().rev().take_while(|taken| taken.owing).any(|taken| taken.from == to)
    }

    fn finish_draft(&mut self, draft: &Partial<M>) {
        let begin = self.successors.steps.len();
        self.successors.steps.extend(self.successors.trail.iter().map(|taken| taken.step));
        self.finish_from(draft.at.clone(), draft.optional, begin);
    }

    fn finish(&mut self, at: Configuration<M>, optional: u32, step: Step) {
        let begin = self.successors.steps.len();
        self.successors.steps.push(step);
        self.finish_from(at, optional, begin);
    }

    /// The returning operation is linearized, by the steps from `begin` on.
    fn finish_from(&mut self, mut at: Configuration<M>, optional: u32, begin: usize) {
        if optional < self.optional.0 || self.loses(&at, begin) {
            self.successors.steps.truncate(begin);
            return;
        }
        if self.reductions.supply && at.used != UNUSED {
            self.forget_uses(&mut at, optional, begin);
        }
        at.linearized.remove(self.slot);
        at.absorbable.remove(self.slot);
        self.successors.found.push(Move { to: at, steps: (begin as u32, self.successors.steps.len() as u32) });
    }

    /// Forgets uses of crashed operations that cannot matter any more: of the `optional` ones in the steps from `begin` on, and
    /// now and then of all. So the sets of a long history stay small.
    fn forget_uses(&mut self, at: &mut Configuration<M>, optional: u32, begin: usize) {
        let (open, uses) = (self.open, &*self.uses);
        // A search on several threads does the same, because this depends only on the configuration and the event.
        let turn = u64::from(open.at).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let of_all = (turn * (u64::from(uses.width(at.used)) / 2)) >> 32 == 0;
        if optional == 0 && !of_all {
            return;
        }
        let mut spent: Vec<u32> = Vec::new();
        let mut check = |optional| {
            if open.is_spent(optional, at, uses) {
                spent.push(optional);
            }
        };
        if of_all {
            uses.classes(at.used).for_each(check);
        } else {
            for step in &self.successors.steps[begin..] {
                let used = open.schedule().operation(step.operation());
                if used.returned == NEVER {
                    check(used.slot);
                }
            }
        }
        if !spent.is_empty() {
            spent.sort_unstable();
            at.used = self.uses.without(at.used, &spent);
        }
    }

    /// Whether a hidden step used the last operation that leads to a state that is still needed.
    fn loses(&mut self, at: &Configuration<M>, begin: usize) -> bool {
        if !self.reductions.last_producer {
            return false;
        }
        for at_step in begin..self.successors.steps.len() {
            let step = self.successors.steps[at_step];
            let class = self.open.schedule().operation(step.operation()).class;
            if step.is_hidden()
                && let Kind::Write(state) | Kind::Cas(_, state) = self.open.automaton().kinds[class as usize]
                && self.open.is_lost(state, at, self.uses)
            {
                self.successors.suspicion.add(self.open, state, &at.linearized);
                return true;
            }
        }
        false
    }

    /// Finds the states from which operations that were invoked before an event lead to the returning one.
    fn find_reach(&mut self, task: Task, before: u32) {
        let open = self.open;
        let mut reach = std::mem::take(if before == NEVER {
            &mut self.successors.reach
        } else {
            &mut self.successors.reach_in_gap
        });
        reach.clear();
        match task.kind {
            Kind::Read(state) | Kind::Cas(state, _) => reach.push(state),
            // A failed compare-and-set is possible in almost every state, and a write in each.
            Kind::FailedCas(_) | Kind::Write(_) => {}
            Kind::Append => {
                reach.extend(open.automaton().transitions(task.class).iter().map(|transition| transition.0))
            }
        }
        let mut at = 0;
        while at < reach.len() {
            for &(class, source) in open.automaton().into(reach[at]) {
                let ready = |finder: &mut Self| {
                    finder.equals(open, class, &finder.from.linearized, before).next().is_some()
                        || finder.has_optional(class, before)
                };
                if !reach.contains(&source) && ready(self) {
                    reach.push(source);
                }
            }
            at += 1;
        }
        *(if before == NEVER { &mut self.successors.reach } else { &mut self.successors.reach_in_gap }) = reach;
    }
}
