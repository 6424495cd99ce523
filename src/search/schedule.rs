//! The schedule of the parts of a history. Input: the parts and a search for each. Output: an order of every part, one refuted
//! part, or the undecided parts. All undecided parts are searched in rounds of growing work, the shortest part first. Which part
//! is refuted must not depend on threads.

use super::budget::{BudgetGuard, NOBODY};
use super::partition::Part;
use super::portfolio::{Outcome, Runner};
use super::verdict::Limit;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The result of a search over the events of a part before a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The operations in an order that explains every answer before the goal.
    Order(Vec<u32>),
    /// No order explains them.
    Impossible(DeadEnd),
}

impl Outcome for Found {
    fn is_decisive(&self) -> bool {
        matches!(self, Found::Impossible(_))
    }
}

/// How far a search without a linearization got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeadEnd {
    /// A linearization gets to this event.
    pub(super) reached: usize,
    /// The return that perhaps none gets past: a search that looks ahead gives up before it.
    pub(super) suspect: usize,
    /// The operations of a linearization that gets to `reached`, if it is certain that none gets further.
    pub(super) longest: Option<Vec<u32>>,
}

/// The results of the parts of a history.
#[derive(Clone, Debug)]
pub(super) enum Parts {
    /// An order of each part.
    Orders(Vec<Vec<u32>>),
    /// This part has no linearization.
    Refuted(usize, DeadEnd),
    /// These parts are not decided. The others have a linearization.
    Undecided(Limit, Vec<usize>),
}

/// A search of a part.
pub(super) type Search<'p> = Box<dyn Runner<Found = Found> + 'p>;

/// An order that needed no search.
pub(super) struct Known(pub(super) Vec<u32>);

impl Runner for Known {
    type Found = Found;

    fn run(&mut self, _until: u64, _memory: usize, _watch: &BudgetGuard<'_>) -> Result<Option<Found>, Limit> {
        Ok(Some(Found::Order(std::mem::take(&mut self.0))))
    }
}

struct Running<'p> {
    part: usize,
    search: Option<Search<'p>>,
    result: Result<Option<Found>, Limit>,
}

/// Decides all parts, or finds one without a linearization. Which one does not depend on threads: the first round that refutes a
/// part counts, and the shortest of the refuted parts.
pub(super) fn decide<'p>(
    parts: &'p [Part],
    begin: impl Fn(&'p Part) -> Search<'p> + Sync,
    guard: &BudgetGuard<'_>,
) -> Parts {
    let mut running: Vec<Running<'p>> =
        (0..parts.len()).map(|part| Running { part, search: None, result: Ok(None) }).collect();
    running.sort_by_key(|running| parts[running.part].events.len());
    let mut orders = vec![Vec::new(); parts.len()];
    let mut undecided: Vec<usize> = Vec::new();
    let mut limit = None;
    for round in 0.. {
        let won = AtomicUsize::new(NOBODY);
        let memory = guard.memory()
            / running.len().min(rayon::current_num_threads()).max(if round == 0 { 1 } else { running.len() }).max(1);
        // No other part waits for its turn.
        let alone = running.len() == 1;
        let all: u64 = running.iter().map(|running| work(&parts[running.part], round)).fold(0, u64::saturating_add);
        let step = |(rank, running): (usize, &mut Running<'p>)| {
            let guard = guard.competing(&won, rank);
            if let Some(limit) = guard.reached() {
                running.result = Err(limit);
                return;
            }
            let part = &parts[running.part];
            let until = if alone { u64::MAX } else { work(part, round) };
            let search = running.search.get_or_insert_with(|| begin(part));
            running.result = search.run(until, memory, &guard);
            if matches!(running.result, Ok(Some(Found::Impossible(_)))) {
                won.fetch_min(rank, Ordering::Relaxed);
            }
            if !matches!(running.result, Ok(None)) {
                running.search = None;
            }
        };
        match running.len() {
            _ if alone || all < LITTLE => running.iter_mut().enumerate().for_each(step),
            _ => running.par_iter_mut().enumerate().for_each(step),
        }
        let mut left = Vec::new();
        for mut running in running {
            match std::mem::replace(&mut running.result, Ok(None)) {
                Ok(Some(Found::Impossible(dead))) => return Parts::Refuted(running.part, dead),
                Ok(Some(Found::Order(order))) => orders[running.part] = order,
                Ok(None) => left.push(running),
                Err(reached) => {
                    limit = limit.or(Some(reached));
                    undecided.push(running.part);
                }
            }
        }
        running = left;
        if running.is_empty() {
            break;
        }
    }
    match limit {
        None => Parts::Orders(orders),
        Some(limit) => {
            undecided.sort_unstable();
            Parts::Undecided(limit, undecided)
        }
    }
}

/// Runs a search of a part to its end.
///
/// # Errors
/// The limit that ended it.
pub(super) fn finish(mut search: Search<'_>, guard: &BudgetGuard<'_>) -> Result<Found, Limit> {
    loop {
        if let Some(found) = search.run(u64::MAX, guard.memory(), guard)? {
            return Ok(found);
        }
    }
}

/// Work that is done before another thread would be awake.
const LITTLE: u64 = 20_000;

/// The work of a part up to a round. Most parts need a few units for each event.
fn work(part: &Part, round: u32) -> u64 {
    initial_budget(part.events.len()) << round.min(40)
}

/// The work of a first round for `events` events.
pub(super) fn initial_budget(events: usize) -> u64 {
    events as u64 * 4 + 256
}

/// Numbers of calls that two threads prepare. Fewer take less time than to wake a thread; with more, the memory that both hold at
/// once matters.
const PARALLEL_CALLS: Range<usize> = 1 << 13..1 << 19;

/// Whether two halves of preparing `calls` calls run at once: another thread may be idle.
pub(super) fn is_for_two(calls: usize) -> bool {
    PARALLEL_CALLS.contains(&calls) && rayon::current_num_threads() > 1
}
