//! The witness builder. Input: the steps of a search. Output: a linearization of all operations, or `None` if the steps do not
//! fit. Reads and failed compare-and-sets have no steps; each is put where it first can be. A long witness is built in parts
//! between segment boundaries, and must come out the same.

use super::Problem;
use super::automaton::{DONT_CARE, Kind};
use super::by_value::NONE;
use super::event_schedule;
use super::parent_links::{Place, Step};
use super::pending::{Passed, PendingOps};
use crate::search::mask::Mask;
use rayon::prelude::*;
use std::sync::Arc;

/// Puts each operation in its place, given the steps of a search.
pub(super) struct WitnessBuilder<'p, M> {
    open: PendingOps<'p, M>,
    witness: PartialWitness<M>,
    /// Slots that [`Self::serve`] linearizes at one time: its memory is used again.
    served: Vec<u32>,
}

/// The places of the operations that a part of the steps linearizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartialWitness<M> {
    linearized: M,
    state: u32,
    /// The event of the last overwrite.
    last_overwrite_at: u32,
    /// The operations, in the order in which the search linearized them.
    items: Vec<Item>,
    /// The item of the last overwrite.
    last_overwrite: u32,
    /// The state after the last block before the last overwrite.
    gap_state: u32,
    /// By slot: the item that an absorbable write goes right before.
    insert_before: Vec<u32>,
    /// Lower item numbers are items before the boundary at which this part began: 0 is the last overwrite there, then by slot
    /// what `insert_before` has there.
    first_item: u32,
}

/// A place in the steps of a search at which the linearized operations are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentBoundary<M> {
    /// The next event.
    pub(super) event: u32,
    /// How many steps precede it.
    pub(super) steps: usize,
    /// The event of the last overwrite.
    pub(super) last_overwrite_at: u32,
    /// The slots that are linearized and have not returned.
    pub(super) linearized: M,
}

/// The state of a block that began before the boundary, which no step after it may need.
const UNKNOWN: u32 = DONT_CARE - 1;

/// An operation and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Item {
    operation: u32,
    /// The item that it goes right before, after others that do; [`LAST`]: after all items so far.
    before: u32,
}

/// From here on, `before` is not an item but a count of the items that go right before this one. Items that go before another
/// have none before themselves.
const LAST: u32 = 1 << 31;

impl<'p, M: Mask> WitnessBuilder<'p, M> {
    pub(super) fn new(problem: Arc<Problem<'p>>) -> Self {
        let (automaton, schedule) = (&problem.automaton, &problem.schedule);
        let witness = PartialWitness {
            linearized: M::none(schedule.slots),
            state: automaton.initial,
            last_overwrite_at: 0,
            items: Vec::with_capacity(schedule.operations.len()),
            last_overwrite: NONE,
            gap_state: DONT_CARE,
            insert_before: vec![NONE; schedule.slots],
            first_item: 0,
        };
        WitnessBuilder { witness, open: PendingOps::new(problem, 0), served: Vec::new() }
    }

    /// The builder after a boundary, on the way to event `to`. `steps` led to the boundary.
    fn after(problem: Arc<Problem<'p>>, boundary: &SegmentBoundary<M>, steps: &[Step], to: usize) -> Option<Self> {
        let slots = problem.schedule.slots as u32;
        let witness = PartialWitness {
            linearized: boundary.linearized.clone(),
            state: problem.automaton.initial,
            last_overwrite_at: boundary.last_overwrite_at,
            // Capacity: an item for each return, and some crashed operations.
            items: Vec::with_capacity(to.saturating_sub(boundary.event as usize) * 5 / 8),
            last_overwrite: 0,
            gap_state: UNKNOWN,
            insert_before: (1..=slots).collect(),
            first_item: 1 + slots,
        };
        let mut builder =
            WitnessBuilder { witness, open: PendingOps::new(problem, boundary.event), served: Vec::new() };
        let (automaton, schedule) = (builder.open.automaton(), builder.open.schedule());
        let class = |step: &Step| schedule.operation(step.operation()).class;
        let (mut state, mut since) = (builder.witness.state, 0);
        for (at, step) in steps.iter().enumerate().rev().filter(|(_, step)| step.place() == Place::Present) {
            if let Kind::Write(written) = automaton.kinds[class(step) as usize] {
                (state, since) = (written, at + 1);
                break;
            }
        }
        for step in steps[since..].iter().filter(|step| step.place() == Place::Present) {
            state = builder.follow(state, class(step))?;
        }
        builder.witness.state = state;
        Some(builder)
    }

    /// The linearization of the operations before an event, without crashed operations that never took effect. `None` if `steps`
    /// are not the steps of a search up to there.
    pub(super) fn order(mut self, steps: &[Step], end: usize) -> Option<Vec<u32>> {
        self.apply_all(steps, end)?;
        // Frees memory for the order, which is as long as the history.
        Some(self.witness.into_order(&self.open.close()))
    }

    /// Bytes of the items of all operations.
    pub(super) fn bytes(problem: &Problem<'p>) -> usize {
        problem.schedule.operations.len() * size_of::<Item>()
    }

    /// The partial witness of the steps of a search up to an event.
    pub(super) fn up_to(problem: Arc<Problem<'p>>, steps: &[Step], event: u32) -> Option<PartialWitness<M>> {
        let mut builder = WitnessBuilder::new(problem);
        builder.apply_all(steps, event as usize)?;
        Some(builder.witness)
    }

    /// The order that [`Self::order`] returns, built in parts between boundaries at once. The first part may be built already.
    /// Also `None` if the steps do not lead to what a boundary says.
    pub(super) fn in_parts(
        problem: &Arc<Problem<'p>>,
        steps: &[Step],
        boundaries: &[SegmentBoundary<M>],
        first: Option<PartialWitness<M>>,
        end: usize,
    ) -> Option<Vec<u32>> {
        // A part, and the state at the boundary where it begins.
        let make = |at: usize| {
            let (to, event) =
                boundaries.get(at).map_or((steps.len(), end), |boundary| (boundary.steps, boundary.event as usize));
            let (from, mut builder) = match at.checked_sub(1).map(|before| &boundaries[before]) {
                Some(boundary) => (
                    boundary.steps,
                    WitnessBuilder::after(problem.clone(), boundary, steps.get(..boundary.steps)?, event)?,
                ),
                None => (0, WitnessBuilder::new(problem.clone())),
            };
            let state = builder.witness.state;
            builder.apply_all(steps.get(from..to)?, event)?;
            Some((state, builder.witness))
        };
        let known = usize::from(first.is_some());
        let parts = (known..boundaries.len() + 1).into_par_iter().map(make).collect::<Option<Vec<_>>>()?;
        let mut parts = parts.into_iter();
        let mut whole = first.or_else(|| Some(parts.next()?.1))?;
        for (boundary, (state, part)) in boundaries.iter().zip(parts) {
            let meets = (whole.state, whole.last_overwrite_at, &whole.linearized)
                == (state, boundary.last_overwrite_at, &boundary.linearized);
            whole.append(meets.then_some(part)?)?;
        }
        Some(whole.into_order(problem))
    }

    /// Applies all steps of a search up to an event. `None` if they do not fit.
    fn apply_all(&mut self, steps: &[Step], end: usize) -> Option<()> {
        let mut steps = steps.iter().copied().peekable();
        while (self.open.at as usize) < end {
            match self.open.forward() {
                Passed::Nothing => {}
                Passed::Invocation(slot) => match self.open.kind(slot) {
                    Kind::Read(state) if state == self.witness.state => self.linearize(slot, NONE),
                    Kind::FailedCas(state) if state != self.witness.state => self.linearize(slot, NONE),
                    _ => {}
                },
                Passed::Return(slot) => {
                    while !self.witness.linearized.has(slot) {
                        self.apply(steps.next()?)?;
                    }
                    while let Some(step) = steps.next_if(|step| step.place() == Place::More) {
                        self.apply(step)?;
                    }
                    self.witness.linearized.remove(slot);
                    self.open.leave(slot);
                }
            }
        }
        steps.next().is_none().then_some(())
    }

    fn apply(&mut self, step: Step) -> Option<()> {
        let operation = step.operation();
        let event_schedule::Operation { class, slot, returned, .. } = *self.open.schedule().operation(operation);
        let kind = self.open.automaton().kinds[class as usize];
        let slot = (returned != event_schedule::NEVER).then_some(slot);
        if let Some(slot) = slot {
            self.witness.linearized.add(slot);
        }
        match step.place() {
            Place::Present => {
                let item = self.witness.put(operation, NONE);
                let state = match kind {
                    Kind::Write(state) => {
                        self.witness.last_overwrite_at = self.open.at;
                        self.witness.last_overwrite = item;
                        state
                    }
                    _ => {
                        let absorbable = self.open.automaton().writes(self.witness.state);
                        for slot in self.open.undone(absorbable, &self.witness.linearized) {
                            self.witness.insert_before[slot as usize] = item;
                        }
                        self.follow(self.witness.state, class)?
                    }
                };
                self.witness.state = state;
                self.serve(state, u32::MAX, NONE);
            }
            Place::Gap | Place::More => {
                let overwrite = (self.witness.last_overwrite != NONE).then_some(self.witness.last_overwrite)?;
                self.witness.put(operation, overwrite);
                self.witness.gap_state = match kind {
                    Kind::Write(state) => state,
                    _ if step.place() == Place::Gap => DONT_CARE,
                    _ if self.witness.gap_state == UNKNOWN => return None,
                    _ => self.follow(self.witness.gap_state, class)?,
                };
                if step.place() == Place::More || matches!(kind, Kind::Write(_)) {
                    self.serve(self.witness.gap_state, self.witness.last_overwrite_at, overwrite);
                }
            }
            Place::Idle => {
                let item = self.witness.insert_before[slot? as usize];
                self.witness.put(operation, (item != NONE).then_some(item)?);
            }
        }
        Some(())
    }

    /// The target of a compare-and-set or append from a state.
    fn follow(&self, from: u32, class: u32) -> Option<u32> {
        match (self.open.automaton().edge(from, class), self.open.automaton().kinds[class as usize]) {
            (Some(to), _) => Some(to),
            (None, Kind::Append) => Some(DONT_CARE),
            (None, _) => None,
        }
    }

    /// Linearizes the pending reads and failed compare-and-sets that a state explains and that were invoked before an event.
    fn serve(&mut self, state: u32, before: u32, place: u32) {
        let served = &mut self.served;
        self.open.serve_each(&mut self.witness.linearized, state, before, |slot| served.push(slot));
        served.sort_unstable();
        for slot in served.drain(..) {
            self.witness.put(self.open.operation(slot), place);
        }
    }

    fn linearize(&mut self, slot: u32, place: u32) {
        self.witness.linearized.add(slot);
        self.witness.put(self.open.operation(slot), place);
    }
}

impl<M: Mask> PartialWitness<M> {
    /// Appends the part after the boundary at which this one ends.
    fn append(&mut self, later: Self) -> Option<()> {
        let offset = self.items.len() as u32 + self.first_item;
        let place = |item: u32| match item {
            LAST.. => item,
            0 => self.last_overwrite,
            _ if item < later.first_item => self.insert_before[item as usize - 1],
            _ => item - later.first_item + offset,
        };
        let insert_before = later.insert_before.iter().map(|&item| place(item)).collect();
        let last_overwrite = place(later.last_overwrite);
        for Item { operation, before } in later.items {
            let before = place(before);
            self.items.push(Item { operation, before: (before != NONE).then_some(before)? });
        }
        *self = PartialWitness {
            items: std::mem::take(&mut self.items),
            first_item: self.first_item,
            last_overwrite,
            insert_before,
            ..later
        };
        Some(())
    }

    /// Puts an operation right before an item, after others that are there, or after all items.
    fn put(&mut self, operation: u32, place: u32) -> u32 {
        let item = self.first_item + self.items.len() as u32;
        self.items.push(Item { operation, before: place.min(LAST) });
        item
    }

    /// The order of the items. Of equal crashed operations, those invoked first come first.
    fn into_order(mut self, problem: &Problem<'_>) -> Vec<u32> {
        let items = &mut self.items;
        for at in 0..items.len() {
            let before = items[at].before;
            if before < LAST {
                items[before as usize].before += 1;
            }
        }
        let mut order = vec![NONE; items.len()];
        let mut end = 0;
        // From here on `before` is the place in the order of the next item that goes before this one.
        for item in items.iter_mut().filter(|item| item.before >= LAST) {
            let count = item.before - LAST;
            item.before = LAST + end;
            end += count + 1;
            order[end as usize - 1] = item.operation;
        }
        for at in 0..items.len() {
            let Item { operation, before } = items[at];
            if before < LAST {
                let next = &mut items[before as usize].before;
                order[(*next - LAST) as usize] = operation;
                *next += 1;
            }
        }
        drop(self.items);
        let schedule = &problem.schedule;
        let mut used = vec![0; schedule.crashed_classes.len()];
        for operation in order.iter_mut().filter(|operation| schedule.is_crashed(**operation)) {
            let class = schedule.operation(*operation).slot as usize;
            used[class] += 1;
            // If the search did not count uses, it knew that there were enough.
            *operation = schedule.crashed_classes[class].operations.get(used[class] - 1).copied().unwrap_or(*operation);
        }
        order
    }
}
