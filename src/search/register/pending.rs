//! The operations that are pending at an event, and those still to come. All configurations at the event share them. The search
//! moves this table forward and back with its own event. The pending operations of a class form a list in the order of their
//! returns.

use super::Problem;
use super::automaton::{Automaton, DONT_CARE, Kind};
use super::by_value::NONE;
use super::configuration::Configuration;
use super::event_schedule::{EventSchedule, NEVER, Operation};
use crate::search::crashed_uses::CrashedUseSets;
use crate::search::mask::Mask;
use crate::search::tight_vec;
use std::sync::Arc;

/// The returning operations of a class.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// The slot of the pending one that returns first, or `NONE`; the others follow by return.
    head: u32,
    /// The slot of the pending one that returns last, or `NONE`.
    tail: u32,
    /// How many return before the goal and are not yet invoked.
    future: u32,
}

/// A pending operation. Its class and its invocation are copied from the schedule, because each step of the search reads them.
#[derive(Clone, Copy, Debug)]
struct Slot {
    operation: u32,
    class: u32,
    invoked: u32,
    /// The slot of the operation of its class that returns before it, or `NONE`.
    before: u32,
    /// The slot of the operation of its class that returns next, or `NONE`.
    next: u32,
}

/// What all configurations at an event have in common.
#[derive(Debug)]
pub(super) struct PendingOps<'p, M> {
    problem: Arc<Problem<'p>>,
    /// The next event.
    pub(super) at: u32,
    classes: Vec<Class>,
    slots: Vec<Slot>,
    /// Pending failed compare-and-sets, and how many they are.
    failed: M,
    failed_pending: u32,
    /// Pending reads and failed compare-and-sets.
    pub(super) observers: M,
    /// Pending writes.
    pub(super) writes: M,
    /// Failed compare-and-sets that are not yet invoked.
    failing: u32,
    /// By crashed class: how many of its operations were invoked.
    pub(super) available: Vec<u32>,
}

impl<'p, M: Mask> PendingOps<'p, M> {
    /// The operations at an event, which is next.
    pub(super) fn new(problem: Arc<Problem<'p>>, at: u32) -> Self {
        let (automaton, schedule) = (&problem.automaton, &problem.schedule);
        let mut open = PendingOps {
            at,
            classes: vec![Class { head: NONE, tail: NONE, future: 0 }; automaton.kinds.len()],
            slots: vec![
                Slot { operation: NONE, class: NONE, invoked: NEVER, before: NONE, next: NONE };
                schedule.slots
            ],
            failed: M::none(schedule.slots),
            failed_pending: 0,
            observers: M::none(schedule.slots),
            writes: M::none(schedule.slots),
            failing: 0,
            available: vec![0; schedule.crashed_classes.len()],
            problem: problem.clone(),
        };
        let relevant = (0..).zip(&schedule.operations).filter(|(_, operation)| operation.slot != NONE);
        for (number, &Operation { class, slot, invoked, returned }) in relevant {
            match (invoked < at, returned) {
                (true, NEVER) => open.available[slot as usize] += 1,
                (true, _) if returned >= at => open.enter(number),
                (false, _) if returned != NEVER => {
                    open.classes[class as usize].future += 1;
                    open.failing += u32::from(matches!(automaton.kinds[class as usize], Kind::FailedCas(_)));
                }
                _ => {}
            }
        }
        open
    }

    /// Drops all but the problem.
    pub(super) fn close(self) -> Arc<Problem<'p>> {
        self.problem
    }

    pub(super) fn problem(&self) -> &Arc<Problem<'p>> {
        &self.problem
    }

    pub(super) fn automaton(&self) -> &Automaton {
        &self.problem.automaton
    }

    pub(super) fn schedule(&self) -> &EventSchedule<'p> {
        &self.problem.schedule
    }

    /// Passes the next event, except a return of an operation that has a slot: that slot is only named.
    pub(super) fn forward(&mut self) -> Passed {
        let event = self.schedule().events[self.at as usize];
        let operation = event.of();
        let Operation { class, slot, returned, .. } = *self.schedule().operation(operation);
        if slot == NONE {
            self.at += 1;
            return Passed::Nothing;
        }
        if event.is_return() {
            return Passed::Return(slot);
        }
        self.at += 1;
        if returned == NEVER {
            self.available[slot as usize] += 1;
            return Passed::Nothing;
        }
        self.classes[class as usize].future -= 1;
        self.enter(operation);
        if let Kind::FailedCas(_) = self.kind(slot) {
            self.failing -= 1;
        }
        Passed::Invocation(slot)
    }

    /// Passes the return of a slot.
    pub(super) fn leave(&mut self, slot: u32) {
        let class = self.class(slot) as usize;
        let Slot { before, next, .. } = self.slots[slot as usize];
        self.set_next(class, before, next);
        self.set_before(class, next, before);
        self.failed_pending -= u32::from(self.failed.has(slot));
        self.failed.remove(slot);
        self.observers.remove(slot);
        self.writes.remove(slot);
        self.at += 1;
    }

    /// Moves to another event, forward or back.
    pub(super) fn go(&mut self, to: u32) {
        while self.at < to {
            if let Passed::Return(slot) = self.forward() {
                self.leave(slot);
            }
        }
        while self.at > to {
            self.at -= 1;
            let event = self.schedule().events[self.at as usize];
            let operation = event.of();
            let Operation { class, slot, returned, .. } = *self.schedule().operation(operation);
            if slot == NONE {
                continue;
            }
            if event.is_return() {
                self.enter(operation);
            } else if returned == NEVER {
                self.available[slot as usize] -= 1;
            } else {
                if let Kind::FailedCas(_) = self.kind(slot) {
                    self.failing += 1;
                }
                self.leave(slot);
                self.at -= 1;
                self.classes[class as usize].future += 1;
            }
        }
    }

    fn enter(&mut self, operation: u32) {
        let Operation { class, slot, invoked, returned } = *self.schedule().operation(operation);
        let tail = self.classes[class as usize].tail;
        // The usual case: it returns after all that are pending.
        let (before, next) =
            if tail == NONE || self.returned(tail) < returned { (tail, NONE) } else { self.place(class, returned) };
        self.slots[slot as usize] = Slot { operation, class, invoked, before, next };
        self.set_next(class as usize, before, slot);
        self.set_before(class as usize, next, slot);
        match self.automaton().kinds[class as usize] {
            Kind::Read(_) => self.observers.add(slot),
            Kind::FailedCas(_) => {
                self.observers.add(slot);
                self.failed.add(slot);
                self.failed_pending += 1;
            }
            Kind::Write(_) => self.writes.add(slot),
            Kind::Cas(..) | Kind::Append => {}
        }
    }

    /// The neighbours, by return, of an operation among the pending ones of its class.
    ///
    /// The walk goes from both ends at once. Most operations return after all that are pending when they are invoked, and a
    /// search that backtracks meets returns before all of them.
    fn place(&self, class: u32, returned: u32) -> (u32, u32) {
        let Class { head, tail, .. } = self.classes[class as usize];
        let (mut next, mut before) = (head, tail);
        loop {
            if before == NONE || self.returned(before) < returned {
                return (before, if before == NONE { head } else { self.next(before) });
            }
            if next == NONE || self.returned(next) > returned {
                return (if next == NONE { tail } else { self.slots[next as usize].before }, next);
            }
            (next, before) = (self.next(next), self.slots[before as usize].before);
        }
    }

    /// Sets the slot that follows another one by return. After `NONE` comes the first of the class.
    fn set_next(&mut self, class: usize, of: u32, next: u32) {
        match of {
            NONE => self.classes[class].head = next,
            of => self.slots[of as usize].next = next,
        }
    }

    /// Sets the slot that precedes another one by return. Before `NONE` comes the last of the class.
    fn set_before(&mut self, class: usize, of: u32, before: u32) {
        match of {
            NONE => self.classes[class].tail = before,
            of => self.slots[of as usize].before = before,
        }
    }

    /// The operation of a slot.
    pub(super) fn operation(&self, slot: u32) -> u32 {
        self.slots[slot as usize].operation
    }

    pub(super) fn class(&self, slot: u32) -> u32 {
        self.slots[slot as usize].class
    }

    pub(super) fn kind(&self, slot: u32) -> Kind {
        self.automaton().kinds[self.class(slot) as usize]
    }

    /// The event at which the operation of a slot was invoked.
    pub(super) fn invoked(&self, slot: u32) -> u32 {
        self.slots[slot as usize].invoked
    }

    /// The event at which the operation of a slot returns.
    pub(super) fn returned(&self, slot: u32) -> u32 {
        self.schedule().operation(self.operation(slot)).returned
    }

    /// The slot of the pending operation of a class that returns first, or `NONE`.
    pub(super) fn first(&self, class: u32) -> u32 {
        if class == NONE { NONE } else { self.classes[class as usize].head }
    }

    /// The slot of the operation of the same class that returns next, or `NONE`.
    pub(super) fn next(&self, slot: u32) -> u32 {
        self.slots[slot as usize].next
    }

    /// The first slot from this one on, by return, whose operation is not linearized; or `NONE`.
    fn first_undone(&self, mut slot: u32, done: &M) -> u32 {
        while slot != NONE && done.has(slot) {
            slot = self.next(slot);
        }
        slot
    }

    /// The pending operations of a class that are not linearized, by return.
    pub(super) fn undone<'o>(&'o self, class: u32, done: &'o M) -> impl Iterator<Item = u32> + use<'o, 'p, M> {
        let mut slot = self.first(class);
        std::iter::from_fn(move || {
            let found = Some(self.first_undone(slot, done)).filter(|&found| found != NONE)?;
            slot = self.next(found);
            Some(found)
        })
    }

    /// The states that writes lead to: pending ones that are not linearized and were invoked before an event, and available
    /// crashed ones.
    pub(super) fn written(&self, done: &M, before: u32) -> Vec<u32> {
        let mut states: Vec<u32> = Vec::new();
        for slot in self.writes.minus(done) {
            if let Kind::Write(state) = self.kind(slot)
                && self.invoked(slot) < before
            {
                states.push(state);
            }
        }
        for (optional, &offered) in self.schedule().crashed_classes.iter().zip(&self.available) {
            if let Kind::Write(state) = self.automaton().kinds[optional.class as usize]
                && offered > 0
            {
                states.push(state);
            }
        }
        states.sort_unstable();
        states.dedup();
        states
    }

    /// Linearizes the pending reads and failed compare-and-sets that a state explains and that were invoked before an event.
    /// Whether there was any.
    pub(super) fn serve(&self, done: &mut M, state: u32, before: u32) -> bool {
        let mut any = false;
        self.serve_each(done, state, before, |_| any = true);
        any
    }

    /// Does what [`PendingOps::serve`] does, and tells each slot.
    pub(super) fn serve_each(&self, done: &mut M, state: u32, before: u32, mut served: impl FnMut(u32)) {
        let mut serve = |done: &mut M, slot| {
            done.add(slot);
            served(slot);
        };
        let mut slot = self.first(self.automaton().reads(state));
        while slot != NONE {
            if !done.has(slot) && self.invoked(slot) < before {
                serve(done, slot);
            }
            slot = self.next(slot);
        }
        let words = if self.failed_pending > 0 { self.failed.len() } else { 0 };
        for word in 0..words {
            let mut failed = self.failed.word(word) & !done.word(word);
            while failed != 0 {
                let slot = word as u32 * 64 + failed.trailing_zeros();
                if self.kind(slot) != Kind::FailedCas(state) && self.invoked(slot) < before {
                    serve(done, slot);
                }
                failed &= failed - 1;
            }
        }
    }

    /// The pending failed compare-and-sets that are not linearized. Looks at the masks only if there are any pending.
    fn failed_undone<'o>(&'o self, done: &'o M) -> impl Iterator<Item = u32> + use<'o, 'p, M> {
        (self.failed_pending > 0).then(|| self.failed.minus(done)).into_iter().flatten()
    }

    /// Whether an operation of a class must still be linearized.
    pub(super) fn is_required(&self, class: u32, done: &M) -> bool {
        class != NONE && (self.classes[class as usize].future > 0 || self.first_undone(self.first(class), done) != NONE)
    }

    /// How many operations of a class must still be linearized.
    pub(super) fn obligations(&self, class: u32, done: &M) -> u32 {
        if class == NONE { 0 } else { self.classes[class as usize].future + self.undone(class, done).count() as u32 }
    }

    /// Whether an operation of a class may still be linearized.
    pub(super) fn is_possible(&self, class: u32, at: &Configuration<M>, uses: &CrashedUseSets) -> bool {
        if class == NONE {
            return false;
        }
        if self.is_required(class, &at.linearized) {
            return true;
        }
        let optional = self.schedule().crashed_class_of(class);
        optional != NONE
            && (self.schedule().crashed_classes[optional as usize].operations.len() as u32)
                > uses.count(at.used, optional)
    }

    /// Whether an operation needs a state and must still be linearized.
    pub(super) fn is_needed(&self, state: u32, at: &Configuration<M>) -> bool {
        self.is_required(self.automaton().reads(state), &at.linearized)
            || self.automaton().out(state).iter().any(|&(class, _)| {
                matches!(self.automaton().kinds[class as usize], Kind::Cas(..))
                    && self.is_required(class, &at.linearized)
            })
    }

    /// Whether the register can hold a state again.
    pub(super) fn can_return(&self, state: u32, at: &Configuration<M>, uses: &CrashedUseSets) -> bool {
        self.is_possible(self.automaton().writes(state), at, uses)
            || self.automaton().into(state).iter().any(|&(class, _)| self.is_possible(class, at, uses))
    }

    /// Whether a remaining operation is possible in this state and not in all others.
    pub(super) fn is_useful(&self, state: u32, at: &Configuration<M>, uses: &CrashedUseSets) -> bool {
        state != DONT_CARE
            && (self.is_required(self.automaton().reads(state), &at.linearized)
                || self.automaton().out(state).iter().any(|&(class, _)| self.is_possible(class, at, uses)))
    }

    /// Whether another use of a crashed class cannot matter, however many operations of it are left.
    pub(super) fn is_spent(&self, optional: u32, at: &Configuration<M>, uses: &CrashedUseSets) -> bool {
        match self.automaton().kinds[self.schedule().crashed_classes[optional as usize].class as usize] {
            Kind::Write(state) | Kind::Cas(_, state) => {
                state != DONT_CARE && !self.is_useful(state, at, uses) && !self.any_failing(&at.linearized)
            }
            _ => false,
        }
    }

    /// Whether a compare-and-set must still fail because the register does not hold this state.
    pub(super) fn is_shunned(&self, state: u32, at: &Configuration<M>) -> bool {
        self.is_required(self.automaton().failures(state), &at.linearized)
    }

    /// Whether any compare-and-set must still fail.
    pub(super) fn any_failing(&self, done: &M) -> bool {
        self.failing > 0 || self.failed_undone(done).next().is_some()
    }

    /// Whether an operation still needs a state that cannot come back.
    pub(super) fn is_lost(&self, state: u32, at: &Configuration<M>, uses: &CrashedUseSets) -> bool {
        state != DONT_CARE && self.is_needed(state, at) && !self.can_return(state, at, uses)
    }

    /// How many operations may still want a state, at most: more visits of the state are of no use.
    pub(super) fn wanted(&self, state: u32, at: &Configuration<M>, uses: &CrashedUseSets) -> u32 {
        let mut wanted = self.obligations(self.automaton().reads(state), &at.linearized);
        for &(class, _) in self.automaton().out(state) {
            wanted += self.obligations(class, &at.linearized);
            let optional = self.schedule().crashed_class_of(class);
            if optional != NONE {
                wanted += self.schedule().crashed_classes[optional as usize].operations.len() as u32
                    - uses.count(at.used, optional);
            }
        }
        wanted + self.failing + self.failed_undone(&at.linearized).count() as u32
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        tight_vec::bytes(&self.classes) + tight_vec::bytes(&self.slots) + tight_vec::bytes(&self.available)
    }

    /// How many crashed operations of a class were invoked before an event.
    pub(super) fn available_before(&self, optional: u32, event: u32) -> u32 {
        let offered = self.available[optional as usize];
        let operations = &self.schedule().crashed_classes[optional as usize].operations[..offered as usize];
        if event == NEVER {
            return offered;
        }
        operations.partition_point(|&operation| self.schedule().operation(operation).invoked < event) as u32
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// Configurations do not depend on it.
    Nothing,
    /// The operation of this slot is pending now.
    Invocation(u32),
    /// The operation of this slot returns: it must be linearized. The event is not passed yet.
    Return(u32),
}
