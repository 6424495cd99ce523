//! The operations of a part up to a goal, as the search wants them.

use super::automaton::NONE;
use crate::search::partition::Part;
use crate::search::ranks::Event;
use crate::search::room;

/// An operation that nobody waits for returns here.
pub(super) const NEVER: u32 = u32::MAX;

/// Operations that may have happened or not: of unknown outcome, or returning beyond the goal.
#[derive(Debug)]
pub(super) struct Optional {
    /// Their class.
    pub(super) class: u32,
    /// They, by invocation.
    pub(super) operations: Vec<u32>,
}

/// The operations of a part, and what happens when.
///
/// What returns beyond the goal need not have happened before it: it is one of [`Course::optionals`].
#[derive(Debug)]
pub(super) struct Course<'p> {
    /// Invocations and returns, the goal being the end.
    pub(super) events: &'p [Event],
    /// By operation: its class, or `NONE`.
    pub(super) class: Vec<u32>,
    /// By operation: its slot while it is open, or for an option the place of its class in `optionals`.
    pub(super) slot: Vec<u32>,
    /// By operation: the event of its invocation.
    pub(super) invoked: Vec<u32>,
    /// By operation: the event of its return, or [`NEVER`].
    pub(super) returned: Vec<u32>,
    /// How many slots are needed.
    pub(super) slots: usize,
    /// The optional operations, by class.
    pub(super) optionals: Vec<Optional>,
    /// By class: its place in `optionals`, or `NONE`.
    pub(super) option_of: Vec<u32>,
}

impl<'p> Course<'p> {
    pub(super) fn new(
        part: &'p Part,
        class: Vec<u32>,
        classes: usize,
        optional: impl Fn(u32) -> bool,
        goal: usize,
    ) -> Self {
        let events = &part.events[..goal];
        let operations = class.len();
        let mut course = Course {
            events,
            slot: vec![NONE; operations],
            invoked: vec![NEVER; operations],
            returned: vec![NEVER; operations],
            slots: 0,
            optionals: Vec::new(),
            option_of: vec![NONE; classes],
            class,
        };
        for (at, event) in (0..).zip(events) {
            let place = if event.is_return() { &mut course.returned } else { &mut course.invoked };
            place[event.of() as usize] = at;
        }
        let mut free: Vec<u32> = Vec::new();
        for event in events {
            let operation = event.of();
            let of = course.class[operation as usize];
            if of == NONE {
                continue;
            }
            let slot = &mut course.slot[operation as usize];
            if event.is_return() {
                free.push(*slot);
            } else if course.returned[operation as usize] != NEVER {
                *slot = free.pop().unwrap_or(course.slots as u32);
                course.slots = course.slots.max(*slot as usize + 1);
            } else if optional(of) {
                let place = &mut course.option_of[of as usize];
                if *place == NONE {
                    *place = course.optionals.len() as u32;
                    course.optionals.push(Optional { class: of, operations: Vec::new() });
                }
                *slot = *place;
                course.optionals[*place as usize].operations.push(operation);
            }
        }
        course
    }

    /// Whether an operation may be left out.
    pub(super) fn is_option(&self, operation: u32) -> bool {
        self.returned[operation as usize] == NEVER
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let optionals = self.optionals.iter().map(|optional| room::bytes(&optional.operations) + size_of::<Optional>());
        room::bytes(&self.class) + 3 * room::bytes(&self.slot) + room::bytes(&self.option_of) + optionals.sum::<usize>()
    }
}
