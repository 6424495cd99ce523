//! The operations of a part up to a goal, prepared for the search. Input: a part and its register operations. Output: for each
//! operation its class, its events and its slot. A slot is a bit of a mask that an operation has while it is pending. An
//! operation that does not return before the goal is crashed: a linearization may leave it out.

use super::by_value::NONE;
use super::forms::RegisterOp;
use crate::search::events::Event;
use crate::search::partition::Part;
use crate::search::tight_vec;

/// The return of an operation that does not return before the goal.
pub(super) const NEVER: u32 = u32::MAX;

/// The crashed operations of one class: their outcome is unknown, or they return beyond the goal.
#[derive(Debug)]
pub(super) struct CrashedClass {
    /// The class.
    pub(super) class: u32,
    /// The operations, by invocation.
    pub(super) operations: Vec<u32>,
}

/// An operation and its events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// Its class, or `NONE` if it does nothing.
    pub(super) class: u32,
    /// Its slot while it is pending. For a crashed operation, the index of its class in [`EventSchedule::crashed_classes`].
    /// `NONE` if the search ignores it.
    pub(super) slot: u32,
    /// The event of its invocation.
    pub(super) invoked: u32,
    /// The event of its return, or [`NEVER`].
    pub(super) returned: u32,
}

/// The operations of a part and their events.
#[derive(Debug)]
pub(super) struct EventSchedule<'p> {
    /// Invocations and returns before the goal.
    pub(super) events: &'p [Event],
    /// The operations, by invocation.
    pub(super) operations: Vec<Operation>,
    /// How many slots are needed.
    pub(super) slots: usize,
    /// The crashed operations, by class.
    pub(super) crashed_classes: Vec<CrashedClass>,
    /// By class: its index in `crashed_classes`, or `NONE`. Empty if no class has one.
    option_of: Vec<u32>,
}

impl<'p> EventSchedule<'p> {
    /// Orders the events and assigns slots. The operations get their classes from [`Self::classify`].
    pub(super) fn new(part: &'p Part, register_ops: &[RegisterOp], goal: usize) -> Self {
        let events = &part.events[..goal];
        let fresh = Operation { class: NONE, slot: NONE, invoked: NEVER, returned: NEVER };
        let mut operations = vec![fresh; register_ops.len()];
        for (at, event) in (0..).zip(events) {
            let operation = &mut operations[event.of() as usize];
            *(if event.is_return() { &mut operation.returned } else { &mut operation.invoked }) = at;
        }
        let (mut slots, mut free) = (0, Vec::new());
        for event in events.iter().filter(|event| register_ops[event.of() as usize] != RegisterOp::Nothing) {
            let operation = &mut operations[event.of() as usize];
            if event.is_return() {
                free.push(operation.slot);
            } else if operation.returned != NEVER {
                operation.slot = free.pop().unwrap_or(slots);
                slots = slots.max(operation.slot + 1);
            }
        }
        EventSchedule { events, operations, slots: slots as usize, crashed_classes: Vec::new(), option_of: Vec::new() }
    }

    /// Assigns each operation its class, of `classes` in all. `optional`: whether operations of a class can matter if they do not
    /// return.
    pub(super) fn classify(&mut self, class: &[u32], classes: usize, optional: impl Fn(u32) -> bool) {
        for (at, (operation, &class)) in (0..).zip(self.operations.iter_mut().zip(class)) {
            operation.class = class;
            if operation.returned != NEVER || class == NONE || !optional(class) {
                continue;
            }
            if self.option_of.is_empty() {
                self.option_of.resize(classes, NONE);
            }
            let place = &mut self.option_of[class as usize];
            if *place == NONE {
                *place = self.crashed_classes.len() as u32;
                self.crashed_classes.push(CrashedClass { class, operations: Vec::new() });
            }
            operation.slot = *place;
            self.crashed_classes[*place as usize].operations.push(at);
        }
    }

    /// An operation by number.
    pub(super) fn operation(&self, operation: u32) -> &Operation {
        &self.operations[operation as usize]
    }

    /// The index of a class in [`Self::crashed_classes`], or `NONE`.
    pub(super) fn crashed_class_of(&self, class: u32) -> u32 {
        self.option_of.get(class as usize).copied().unwrap_or(NONE)
    }

    /// Whether a linearization may leave the operation out.
    pub(super) fn is_crashed(&self, operation: u32) -> bool {
        self.operation(operation).returned == NEVER
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let optionals = self
            .crashed_classes
            .iter()
            .map(|optional| tight_vec::bytes(&optional.operations) + size_of::<CrashedClass>());
        tight_vec::bytes(&self.operations) + tight_vec::bytes(&self.option_of) + optionals.sum::<usize>()
    }
}
