//! A linearization of a FIFO queue whose elements differ, without a search. Input: the operations of a part as
//! [`QueueForm`]s. Output: an order that was validated, or none; then the search decides.
//!
//! An order of the elements decides everything: they are enqueued and dequeued in it. If one enqueue, or one dequeue,
//! returned before another was invoked, the element of the first comes first. Such orders exist for every linearizable
//! history (Henzinger, Sezgin and Vafeiadis, CONCUR 2013; Bouajjani, Emmi, Enea and Hamza, ICALP 2015). A dequeue that
//! found the queue empty gets a point at which no element must be in the queue. It takes O(n log n) steps for n operations.
//!
//! Limits: elements that repeat, and drains. A dequeue of unknown outcome takes an element that must leave the queue and
//! that no other dequeue took, in the order of their invocations; another assignment is left to the search.

use super::partition::Part;
use crate::model::{QueueForm, Value};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Events are four places apart. In the gap behind an event, a dequeue can find the queue empty: the last place before that
/// dequeue, its own place, and the first one after it.
const EVENT: u64 = 4;
const BEFORE: u64 = 1;
const EMPTY: u64 = 2;
const AFTER: u64 = 3;

/// Bytes that this method holds for each operation, at most.
pub(super) const BYTES: usize = 256;

/// Later than every event.
const NEVER: u64 = u64::MAX;

/// Later than every event, and before [`NEVER`].
const AT_THE_END: u64 = NEVER - 1;

/// The first and the last place at which an operation can be linearized.
#[derive(Clone, Copy, Debug)]
struct Interval {
    first: u64,
    last: u64,
}

/// The two operations of an element. An element that stays in the queue has no dequeue.
#[derive(Clone, Copy, Debug)]
struct Element {
    enqueued: (u32, Interval),
    dequeued: Option<(u32, Interval)>,
}

/// The place of a dequeue that found the queue empty, and the operation.
type Empty = (u64, u32);

impl Element {
    fn taken(&self) -> Interval {
        self.dequeued.map_or(Interval { first: NEVER, last: NEVER }, |(_, interval)| interval)
    }
}

/// A linearization of a part whose operations have these forms, or none if this method finds none.
pub(super) fn linearization(part: &Part, forms: &[QueueForm<'_>]) -> Option<Vec<u32>> {
    let intervals = intervals(part);
    let (mut elements, mut empty) = elements(forms, &intervals)?;
    let forms = give_to_unknown(&mut elements, &empty, forms, &intervals);
    let gaps = gaps(&elements, &mut empty, &intervals)?;
    elements.iter_mut().for_each(|element| keep_between(element, &gaps));
    let order = in_order(&elements)?;
    let order = operations(&elements, &order, &empty);
    is_linearization(&forms, &intervals, &order).then_some(order)
}

fn intervals(part: &Part) -> Vec<Interval> {
    let mut intervals = vec![Interval { first: NEVER, last: NEVER }; part.calls.len()];
    for (place, event) in (0..).step_by(EVENT as usize).zip(&part.events) {
        let interval = &mut intervals[event.of() as usize];
        if event.is_return() { interval.last = place } else { interval.first = place }
    }
    intervals
}

/// The elements, and the dequeues that found the queue empty, whose places [`gaps`] sets. `None`: an element repeats, was
/// dequeued and never enqueued, or was dequeued before its enqueue.
fn elements(forms: &[QueueForm<'_>], intervals: &[Interval]) -> Option<(Vec<Element>, Vec<Empty>)> {
    let mut of_value: FxHashMap<Value<'_>, (Option<u32>, Option<u32>)> = FxHashMap::default();
    let mut empty = Vec::new();
    for (operation, form) in (0..).zip(forms) {
        let place = match form {
            QueueForm::Enqueue(value) => &mut of_value.entry(*value).or_default().0,
            QueueForm::Dequeue(Some(value)) => &mut of_value.entry(*value).or_default().1,
            QueueForm::Dequeue(None) => {
                empty.push((0, operation));
                continue;
            }
            // It is left out.
            QueueForm::Unknown => continue,
        };
        if place.replace(operation).is_some() {
            return None;
        }
    }
    let mut elements = Vec::with_capacity(of_value.len());
    for (enqueued, dequeued) in of_value.into_values() {
        let enqueued = enqueued?;
        let (mut put, taken) = (intervals[enqueued as usize], dequeued.map(|taken| (taken, intervals[taken as usize])));
        let Some((operation, mut taken)) = taken else {
            // An enqueue of unknown outcome had perhaps no effect.
            if put.last != NEVER {
                elements.push(Element { enqueued: (enqueued, put), dequeued: None });
            }
            continue;
        };
        put.last = put.last.min(taken.last);
        taken.first = taken.first.max(put.first);
        if taken.first > taken.last {
            return None;
        }
        elements.push(Element { enqueued: (enqueued, put), dequeued: Some((operation, taken)) });
    }
    // The order must not depend on the hashes.
    elements.sort_unstable_by_key(|element| element.enqueued.1.first);
    Some((elements, empty))
}

/// Gives the elements that must leave the queue, and that no dequeue is known to have taken, to dequeues of unknown
/// outcome. Returns the forms with these elements.
fn give_to_unknown<'f>(
    elements: &mut [Element],
    empty: &[Empty],
    forms: &[QueueForm<'f>],
    intervals: &[Interval],
) -> Vec<QueueForm<'f>> {
    let mut given = forms.to_vec();
    let mut unknown: Vec<u32> = (0..forms.len() as u32).collect();
    unknown.retain(|operation| forms[*operation as usize] == QueueForm::Unknown);
    unknown.sort_unstable_by_key(|operation| intervals[*operation as usize].first);
    let taken = elements.iter().filter(|element| element.dequeued.is_some());
    let after_others = taken.map(|element| element.enqueued.1.first);
    let when_empty = empty.iter().map(|(_, operation)| intervals[*operation as usize].first);
    let needed = after_others.chain(when_empty).max().unwrap_or_default();
    let mut left: Vec<&mut Element> = elements.iter_mut().filter(|element| element.dequeued.is_none()).collect();
    left.retain(|element| element.enqueued.1.last < needed);
    left.sort_unstable_by_key(|element| element.enqueued.1.last);
    for (element, operation) in left.into_iter().zip(unknown) {
        let (enqueue, put) = element.enqueued;
        let first = intervals[operation as usize].first.max(put.first);
        element.dequeued = Some((operation, Interval { first, last: AT_THE_END }));
        if let QueueForm::Enqueue(value) = forms[enqueue as usize] {
            given[operation as usize] = QueueForm::Dequeue(Some(value));
        }
    }
    given
}

/// Gives each dequeue that found the queue empty the first gap in which no element must be in the queue. Returns the gaps,
/// ascending. `None`: there is none for some dequeue.
fn gaps(elements: &[Element], empty: &mut [Empty], intervals: &[Interval]) -> Option<Vec<u64>> {
    // An element is in the queue from the return of its enqueue to the invocation of its dequeue.
    let held = |element: &Element| (element.enqueued.1.last, element.taken().first);
    let mut held: Vec<(u64, u64)> = elements.iter().map(held).filter(|(from, to)| from < to).collect();
    held.sort_unstable();
    empty.sort_unstable_by_key(|(_, operation)| intervals[*operation as usize].first);
    let (mut next, mut free) = (0, 0);
    for (place, operation) in empty.iter_mut() {
        let Interval { first, last } = intervals[*operation as usize];
        free = free.max(first);
        while let Some((_, to)) = held.get(next).filter(|(from, _)| *from <= free) {
            free = free.max(*to);
            next += 1;
        }
        if free >= last {
            return None;
        }
        *place = free + EMPTY;
    }
    let mut gaps: Vec<u64> = empty.iter().map(|(place, _)| place - EMPTY).collect();
    gaps.dedup();
    Some(gaps)
}

/// Keeps both operations of an element between two neighbouring gaps, as late as the last place of its enqueue allows.
fn keep_between(element: &mut Element, gaps: &[u64]) {
    let put = &mut element.enqueued.1;
    let at = gaps.partition_point(|gap| *gap < put.last);
    if let Some(gap) = at.checked_sub(1).map(|before| gaps[before]) {
        put.first = put.first.max(gap + AFTER);
    }
    if let Some((_, taken)) = &mut element.dequeued {
        if let Some(gap) = gaps.get(at) {
            taken.last = taken.last.min(gap + BEFORE);
        }
        taken.first = taken.first.max(put.first);
    }
}

/// An order of the elements in which no operation has to be before one of an earlier element. `None`: there is none.
fn in_order(elements: &[Element]) -> Option<Vec<u32>> {
    let of = |element: u32| {
        let element = &elements[element as usize];
        [element.enqueued.1, element.taken()]
    };
    let by = |kind: usize, key: fn(Interval) -> u64| {
        let mut sorted: Vec<u32> = (0..elements.len() as u32).collect();
        sorted.sort_by_key(|element| key(of(*element)[kind]));
        sorted
    };
    let first = [by(0, |interval| interval.first), by(1, |interval| interval.first)];
    let last = [by(0, |interval| interval.last), by(1, |interval| interval.last)];
    let (mut waiting, mut ending) = ([0, 0], [0, 0]);
    // For each element, how many of its operations no operation of another one has to precede.
    let mut free = vec![0; elements.len()];
    let mut is_done = vec![false; elements.len()];
    let mut ready: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let mut order = Vec::with_capacity(elements.len());
    while order.len() < elements.len() {
        for kind in 0..2 {
            while last[kind].get(ending[kind]).is_some_and(|element| is_done[*element as usize]) {
                ending[kind] += 1;
            }
            let Some(deadline) = last[kind].get(ending[kind]).map(|element| of(*element)[kind].last) else { continue };
            while let Some(element) = first[kind].get(waiting[kind]).filter(|at| of(**at)[kind].first <= deadline) {
                waiting[kind] += 1;
                free[*element as usize] += 1;
                if free[*element as usize] == 2 {
                    ready.push(Reverse((of(*element)[0].last, *element)));
                }
            }
        }
        let Reverse((_, element)) = ready.pop()?;
        is_done[element as usize] = true;
        order.push(element);
    }
    Some(order)
}

/// The operations in an order: each at the last place of one that needs it.
fn operations(elements: &[Element], order: &[u32], empty: &[Empty]) -> Vec<u32> {
    let mut deadlines: Vec<(u64, usize, bool)> = Vec::new();
    for (nth, element) in order.iter().enumerate() {
        let Element { enqueued, dequeued } = elements[*element as usize];
        deadlines.push((enqueued.1.last, nth, false));
        deadlines.extend(dequeued.map(|(_, taken)| (taken.last, nth, true)));
    }
    deadlines.sort_unstable();
    let mut operations = Vec::with_capacity(deadlines.len() + empty.len());
    let (mut put, mut taken) = (0, 0);
    let mut empty = empty.iter().peekable();
    for (place, nth, is_dequeue) in deadlines {
        while let Some((_, operation)) = empty.next_if(|(gap, _)| *gap < place) {
            operations.push(*operation);
        }
        let needed = |done: &mut usize| std::mem::replace(done, (*done).max(nth + 1))..nth + 1;
        operations.extend(needed(&mut put).map(|at| elements[order[at] as usize].enqueued.0));
        if is_dequeue {
            let dequeue = |at: usize| elements[order[at] as usize].dequeued.map(|(operation, _)| operation);
            operations.extend(needed(&mut taken).filter_map(dequeue));
        }
    }
    operations.extend(empty.map(|(_, operation)| *operation));
    operations
}

/// Whether an order is a linearization: it has every answered operation once, none behind one that was invoked after its
/// return, and a queue answers as they were answered.
fn is_linearization(forms: &[QueueForm<'_>], intervals: &[Interval], order: &[u32]) -> bool {
    let mut is_missing: Vec<bool> = intervals.iter().map(|interval| interval.last != NEVER).collect();
    let mut is_new = vec![true; forms.len()];
    let mut queue: VecDeque<Value<'_>> = VecDeque::new();
    let mut latest = 0;
    for &operation in order {
        let at = operation as usize;
        let answers = match forms[at] {
            QueueForm::Enqueue(value) => {
                queue.push_back(value);
                true
            }
            QueueForm::Dequeue(answer) => queue.pop_front() == answer,
            QueueForm::Unknown => false,
        };
        latest = latest.max(intervals[at].first);
        if !answers || intervals[at].last < latest || !std::mem::replace(&mut is_new[at], false) {
            return false;
        }
        is_missing[at] = false;
    }
    !is_missing.contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Queue;
    use crate::model::Spec as _;
    use crate::model::queue::{Answer, Operation};
    use crate::search::check::by_steps_within;
    use crate::search::partition;
    use crate::search::{Call, History, Outcome};

    type Calls = Vec<Call<Operation<u32>, Answer<u32>>>;

    fn found(calls: &Calls) -> Option<Vec<u32>> {
        let (queue, history) = (Queue::default(), History::new(calls.clone()).expect("each process calls once"));
        let parts = partition::parts(&queue, &history);
        let [part] = &parts[..] else { return Some(Vec::new()) };
        let form = |call: &u32| {
            let Call { operation, outcome, .. } = &calls[*call as usize];
            let answer = if let Outcome::Completed { answer, .. } = outcome { Some(answer) } else { None };
            queue.queue_form(operation, answer)
        };
        let forms: Option<Vec<_>> = part.calls.iter().map(form).collect();
        linearization(part, &forms.expect("every operation has a form"))
    }

    /// Calls on a queue, each around the moment at which it took effect, of which some are then changed.
    fn drawn(random: &mut fastrand::Rng) -> Calls {
        let (mut queue, mut operations, mut answers) = (VecDeque::new(), Vec::new(), Vec::new());
        let (count, far) = (random.usize(1..10), random.i64(1..30));
        for at in 0..count as u32 {
            let is_enqueue = random.u8(..5) < 3;
            operations.push(if is_enqueue { Operation::Enqueue(at) } else { Operation::Dequeue });
            answers.push(if is_enqueue { Answer::Done } else { Answer::Element(queue.pop_front()) });
            queue.extend(is_enqueue.then_some(at));
        }
        let moments = || (0..count as i64).map(|at| 10 * at);
        let mut invoked: Vec<i64> = moments().map(|moment| moment - random.i64(0..far)).collect();
        let mut returned: Vec<i64> = moments().map(|moment| moment + random.i64(0..far)).collect();
        let dequeues: Vec<usize> = (0..count).filter(|at| operations[*at] == Operation::Dequeue).collect();
        for _ in 0..random.usize(..4) {
            let at = random.usize(..count);
            match (random.u8(..4), random.choice(&dequeues), random.choice(&dequeues)) {
                (0, ..) => invoked[at] -= random.i64(0..20),
                (1, ..) => returned[at] += random.i64(0..20),
                (2, Some(one), Some(other)) => answers.swap(*one, *other),
                (_, Some(one), _) => answers[*one] = Answer::Element(None),
                _ => {}
            }
        }
        let outcome = |at: usize, answer| Outcome::Completed { returned: returned[at], answer };
        let calls = operations.into_iter().zip(answers).enumerate().map(|(at, (operation, answer))| Call {
            process: at as u32,
            operation,
            invoke: invoked[at],
            outcome: if random.u8(..30) == 0 { Outcome::Unknown } else { outcome(at, answer) },
        });
        calls.collect()
    }

    /// Counts of histories that are explained, refuted, and not decided without a search.
    fn compared(histories: u64, seed: u64) -> [u64; 3] {
        let mut random = fastrand::Rng::with_seed(seed);
        let [mut explained, mut refuted, mut open] = [0; 3];
        for _ in 0..histories {
            let calls = drawn(&mut random);
            let history = History::new(calls.clone()).expect("each process calls once");
            let expected = by_steps_within(&Queue::default(), &history, u64::MAX).expect("no limit");
            let is_found = found(&calls).is_some();
            let is_open = |call: &Call<Operation<u32>, Answer<u32>>| {
                matches!((&call.operation, &call.outcome), (Operation::Dequeue, Outcome::Unknown))
            };
            match (expected, is_found) {
                (false, true) => panic!("{calls:#?}"),
                (true, false) if calls.iter().any(is_open) => open += 1,
                (true, false) => panic!("{calls:#?}"),
                (true, true) => explained += 1,
                (false, false) => refuted += 1,
            }
        }
        [explained, refuted, open]
    }

    #[test]
    fn a_linearization_is_found_if_a_search_finds_one() {
        let [explained, refuted, open] = compared(20_000, 5);
        assert!(explained > 10_000 && refuted > 2_000 && open < 200, "{explained} {refuted} {open}");
    }

    /// `HISTORIES=5000000 SEED=1 cargo test --release --lib millions -- --ignored`
    #[test]
    #[ignore = "takes minutes"]
    fn a_linearization_is_found_in_millions_of_histories() {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        println!("{:?}", compared(number("HISTORIES").unwrap_or(1_000_000), number("SEED").unwrap_or(1)));
    }

    #[test]
    fn an_element_that_repeats_is_left_to_the_search() {
        let call = |at: u32, operation, answer| Call {
            process: at,
            operation,
            invoke: i64::from(2 * at),
            outcome: Outcome::Completed { returned: i64::from(2 * at + 1), answer },
        };
        let calls = vec![
            call(0, Operation::Enqueue(1), Answer::Done),
            call(1, Operation::Dequeue, Answer::Element(Some(1))),
            call(2, Operation::Enqueue(1), Answer::Done),
        ];
        assert_eq!(found(&calls), None);
        assert!(found(&calls[..2].to_vec()).is_some());
    }
}
