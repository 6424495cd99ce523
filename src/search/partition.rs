//! P-compositionality: a history is linearizable if each of its parts is, where no call touches two parts (Herlihy and Wing 1990
//! for objects, Horn and Kroening 2015 for keys). Input: a history. Output: its parts, ordered by first invocation. A call whose
//! keys are unknown connects everything of its object; a failed call is in no part.

use super::events::{self, Event};
use super::history::{History, Outcome};
use super::register::{Forms, RegisterOp};
use super::tight_vec;
use crate::model::{Spec, Touch};
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashMap;

/// Calls that are decided together, as operations. An operation without a return is crashed.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The calls, by invocation; their indices here are the operations.
    pub(super) calls: Vec<u32>,
    /// The events, in order.
    pub(super) events: Vec<Event>,
    /// By operation: the place of its invocation among the events of all parts. Empty if there is one part.
    pub(super) invoked: Vec<u32>,
}

impl Part {
    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        tight_vec::bytes(&self.calls) + tight_vec::bytes(&self.events) + tight_vec::bytes(&self.invoked)
    }

    /// The answered calls invoked before event `end`. Only an answer is evidence.
    pub(super) fn answered_before(&self, end: usize) -> Vec<u32> {
        let mut answered = vec![false; self.calls.len()];
        self.events.iter().filter(|event| event.is_return()).for_each(|event| answered[event.of() as usize] = true);
        let invoked = self.events[..end].iter().filter(|event| !event.is_return()).map(|event| event.of() as usize);
        invoked.filter(|&operation| answered[operation]).map(|operation| self.calls[operation]).collect()
    }
}

/// The parts of a history by shared keys.
pub(super) fn parts<S: Spec>(spec: &S, history: &History<S::Operation, S::Answer>) -> Vec<Part> {
    let calls = history.calls();
    let events = events::events(calls);
    let mut sets = UnionFind::<u32>::new_empty();
    let mut owner: FxHashMap<u64, u32> = FxHashMap::default();
    let mut set_of = vec![0; calls.len()];
    let not_failed = calls.iter().filter(|call| !matches!(call.outcome, Outcome::Failed));
    let touch = Touch::of(spec, not_failed.map(|call| &call.operation));
    for event in events.iter().filter(|e| !e.is_return()) {
        let call = event.of();
        let mut set = None;
        for key in touch.parts(&calls[call as usize].operation) {
            let of_key = *owner.entry(key).or_insert_with(|| sets.new_set());
            sets.union(*set.get_or_insert(of_key), of_key);
        }
        set_of[call as usize] = set.unwrap_or_else(|| sets.new_set());
    }
    split(calls.len(), &events, |call| Some(sets.find_mut(set_of[call as usize])))
}

/// In place of a register: operations that can be linearized anywhere.
const FREE: u32 = u32::MAX;

/// The registers of a history with these events, and a part with the operations that can be linearized anywhere.
pub(super) fn registers<O, A>(history: &History<O, A>, events: Vec<Event>, forms: &Forms<'_>) -> Vec<Part> {
    let calls = history.calls();
    let register_of = |call: u32| match (forms.operation[call as usize], &calls[call as usize].outcome) {
        (RegisterOp::Nothing, Outcome::Completed { .. }) => Some(FREE),
        (RegisterOp::Nothing, _) => None,
        _ => Some(forms.register(call)),
    };
    one_part(calls.len(), events, register_of)
        .map_or_else(|events| split(calls.len(), &events, register_of), |part| vec![part])
}

/// The only part of a history whose calls are in the order of their invocations, as most are: events of no part are removed in
/// place. `Err` returns the events of any other history.
fn one_part(calls: usize, mut events: Vec<Event>, part_of: impl Fn(u32) -> Option<u32>) -> Result<Part, Vec<Event>> {
    let mut parts = (0..calls as u32).filter_map(&part_of);
    let one = parts.next().is_some_and(|first| parts.all(|part| part == first));
    let (in_order, _) = events.iter().fold((true, 0), |(in_order, last), event| match event.is_return() {
        true => (in_order, last),
        false => (in_order & (event.of() >= last), event.of()),
    });
    if !one || !in_order {
        return Err(events);
    }
    let of_part: Vec<u32> = (0..calls as u32).filter(|&call| part_of(call).is_some()).collect();
    if of_part.len() < calls {
        let mut operation = vec![NOWHERE; calls];
        (0..).zip(&of_part).for_each(|(at, &call)| operation[call as usize] = at);
        events.retain_mut(|event| {
            let at = operation[event.of() as usize];
            *event = if event.is_return() { Event::ret(at) } else { Event::invoke(at) };
            at != NOWHERE
        });
    }
    Ok(Part { calls: of_part, events, invoked: Vec::new() })
}

/// The part, and the operation, of a call that is in no part.
const NOWHERE: u32 = u32::MAX;

/// Distributes events to the parts of their calls.
fn split(calls: usize, events: &[Event], mut part_of: impl FnMut(u32) -> Option<u32>) -> Vec<Part> {
    // By part: its numbers of calls and of events. By call: its part, and its operation there.
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    let mut place = vec![(NOWHERE, 0); calls];
    let mut index: FxHashMap<u32, u32> = FxHashMap::default();
    let mut last = None;
    for event in events {
        let place = &mut place[event.of() as usize];
        if event.is_return() {
            sizes[place.0 as usize].1 += 1;
            continue;
        }
        let Some(owner) = part_of(event.of()) else { continue };
        let part = match last {
            Some((of, part)) if of == owner => part,
            _ => *index.entry(owner).or_insert_with(|| {
                sizes.push((0, 0));
                sizes.len() as u32 - 1
            }),
        };
        last = Some((owner, part));
        let size = &mut sizes[part as usize];
        *place = (part, size.0);
        *size = (size.0 + 1, size.1 + 1);
    }
    let several = sizes.len() > 1;
    let room = |&(calls, events): &(u32, u32)| Part {
        calls: Vec::with_capacity(calls as usize),
        events: Vec::with_capacity(events as usize),
        invoked: Vec::with_capacity(if several { calls as usize } else { 0 }),
    };
    let mut parts: Vec<Part> = sizes.iter().map(room).collect();
    for (rank, event) in (0..).zip(events) {
        let (part, operation) = place[event.of() as usize];
        let Some(part) = parts.get_mut(part as usize) else { continue };
        if event.is_return() {
            part.events.push(Event::ret(operation));
        } else {
            part.calls.push(event.of());
            part.events.push(Event::invoke(operation));
            if several {
                part.invoked.push(rank);
            }
        }
    }
    parts
}
