//! Linearizability of a register: reads, writes, compare-and-sets and appends. Input: a part of a history and the register forms
//! of its operations. Output: a linearization, or the dead end of the search. The problem is NP-complete (Gibbons and Korach
//! 1997, *Testing shared memories*), so every search has a budget.
//!
//! Three searches compete in a portfolio: a speculative one with beam width 1, a beam, and breadth first. No pruning and no
//! thread changes the verdict. The search is not trusted: [`is_valid_linearization`] checks every linearization without its code.

mod append_trie;
mod automaton;
mod by_value;
mod configuration;
mod dominance;
mod event_schedule;
mod forms;
mod frontier;
mod parent_links;
mod pending;
mod pruning;
mod successors;
mod thresholds;
mod validation;
mod witness;

pub(super) use forms::{Forms, RegisterOp};
pub use pruning::{Reductions, Width};
pub use thresholds::Thresholds;
pub(super) use validation::is_valid_linearization;

use super::budget::BudgetGuard;
use super::config::SearchConfig;
use super::mask::{Mask, SharedBlocks};
use super::partition::Part;
use super::portfolio::{Portfolio, Runner};
use super::schedule::{DeadEnd, Found, Known, Search, initial_budget, is_for_two};
use super::verdict::Limit;
use automaton::{Automaton, Kind};
use event_schedule::EventSchedule;
use frontier::{FrontierSearch, Furthest, ROUNDS, Reached, SpeculativeSearch};
use parent_links::{MAX_OPERATIONS, Step};
use std::borrow::Cow;
use std::sync::Arc;
use witness::WitnessBuilder;

/// The state machine of one register, the operations of a part in the order of their events, and the thresholds of its search.
#[derive(Debug)]
struct Problem<'p> {
    thresholds: Thresholds,
    automaton: Automaton,
    schedule: EventSchedule<'p>,
}

impl<'p> Problem<'p> {
    /// The operations of a part up to event `goal`. `None` if the register forms do not suffice (see [`Automaton::new`]), if a
    /// [`Step`] cannot number all operations, or if a limit is reached.
    fn new(
        part: &'p Part,
        forms: &Forms<'_>,
        goal: usize,
        thresholds: Thresholds,
        guard: &BudgetGuard<'_>,
    ) -> Option<Self> {
        // Operations are numbered by invocation, so those after the goal are the last ones.
        let invoked = match part.events.len() {
            all if all == goal => part.calls.len(),
            _ => part.events[..goal].iter().filter(|event| !event.is_return()).count(),
        };
        let calls = &part.calls[..invoked];
        let register_ops: Cow<'_, [RegisterOp]> = match (0..).zip(calls).all(|(at, &call)| at == call) {
            // The part has the first calls of the history: nearly all are of this register.
            true => Cow::Borrowed(&forms.operation[..invoked]),
            false => calls.iter().map(|&call| forms.operation[call as usize]).collect(),
        };
        if register_ops.len() > MAX_OPERATIONS {
            return None;
        }
        let content = part.calls.first().map(|&call| forms.content[forms.register(call) as usize])?;
        let (automaton, schedule) =
            (|| Automaton::new(&register_ops, content, forms, guard), || EventSchedule::new(part, &register_ops, goal));
        let (automaton, mut schedule) = match is_for_two(register_ops.len()) {
            true => rayon::join(automaton, schedule),
            false => (automaton(), schedule()),
        };
        let (automaton, class) = automaton?;
        let optional = |class: u32| !matches!(automaton.kinds[class as usize], Kind::Read(_) | Kind::FailedCas(_));
        schedule.classify(&class, automaton.kinds.len(), optional);
        Some(Problem { thresholds, automaton, schedule })
    }
}

/// Returns a search for a linearization of every answer before event `goal`, or of the whole part. A search of the whole part
/// also reports how far a linearization gets if there is none. `None` if the register forms do not suffice, or if a limit is
/// reached.
pub(super) fn search<'p>(
    part: &'p Part,
    forms: &Forms<'_>,
    goal: Option<usize>,
    switches: SearchConfig,
    guard: &BudgetGuard<'_>,
) -> Option<Search<'p>> {
    let whole = goal.is_none();
    if whole
        && switches.width.is_none()
        && let Some(order) = sequential_order(part, forms)
    {
        return Some(Box::new(Known(order)));
    }
    let problem = Arc::new(Problem::new(part, forms, goal.unwrap_or(part.events.len()), switches.thresholds, guard)?);
    Some(match problem.schedule.slots {
        0..=64 => within::<[u64; 1]>(problem, switches, whole),
        65..=128 => within::<[u64; 2]>(problem, switches, whole),
        129..=256 => within::<[u64; 4]>(problem, switches, whole),
        257..=512 => within::<[u64; 8]>(problem, switches, whole),
        513..=1024 => within::<[u64; 16]>(problem, switches, whole),
        _ => within::<SharedBlocks>(problem, switches, whole),
    })
}

/// The returning operations, if no two of them overlap and they explain every answer in that order.
fn sequential_order(part: &Part, forms: &Forms<'_>) -> Option<Vec<u32>> {
    // Operations are numbered by invocation.
    let (mut invoked, mut before) = (0, 0);
    for event in &part.events {
        if !event.is_return() {
            invoked += 1;
        } else if event.of() < std::mem::replace(&mut before, invoked) {
            return None;
        }
    }
    let order: Vec<u32> = part.events.iter().filter(|event| event.is_return()).map(|event| event.of()).collect();
    is_valid_linearization(part, forms, &order).then_some(order)
}

/// Beam width of the second search. Compared with beam width 1, some histories take a twentieth of the work, others five times as
/// much.
const SECOND_BEAM_WIDTH: usize = 8;

fn within<'p, M: Mask + 'p>(problem: Arc<Problem<'p>>, switches: SearchConfig, whole: bool) -> Search<'p> {
    let begin = |width: Width| FrontierSearch::<M>::new(problem.clone(), switches.reductions, width);
    match switches.width {
        Some(width) => Box::new(WitnessSearch {
            search: Some(begin(width)),
            problem,
            reductions: whole.then_some(switches.reductions),
        }),
        None => {
            let start = |width: Width| {
                let problem = problem.clone();
                move || FrontierSearch::<M>::new(problem, switches.reductions, width)
            };
            let (wide, everything) = (start(Width::Beam(SECOND_BEAM_WIDTH)), start(Width::Everything));
            let work = initial_budget(problem.schedule.events.len());
            let first = SpeculativeSearch::new(begin(Width::Beam(1)), switches.thresholds.segment_events);
            let portfolio = Portfolio::new(work, first, move || Portfolio::new(work, wide(), everything));
            let portfolio = portfolio.grace_rounds(if whole { ROUNDS } else { 0 });
            Box::new(WitnessSearch {
                search: Some(portfolio),
                problem,
                reductions: whole.then_some(switches.reductions),
            })
        }
    }
}

/// A search whose steps are made into a linearization.
struct WitnessSearch<'p, W> {
    problem: Arc<Problem<'p>>,
    /// `None` once the search has ended.
    search: Option<W>,
    /// Set if the search reports how far a linearization gets.
    reductions: Option<Reductions>,
}

impl<W> WitnessSearch<'_, W> {
    /// Repeats a search without a linearization, to find the steps that get furthest. `None` if it needs more work than
    /// [`FrontierSearch::how_far`]. The steps are the same whichever search of the portfolio ended first.
    fn longest<M: Mask>(&self, memory: usize, guard: &BudgetGuard<'_>) -> Option<(DeadEnd, Vec<Step>)> {
        let reductions = Reductions { last_producer: false, ..self.reductions? };
        let mut search = FrontierSearch::<M>::new(self.problem.clone(), reductions, Width::Beam(1));
        match search.run(search.how_far(), memory, guard) {
            Ok(Some(Reached::Nothing(dead, Furthest::Steps(steps)))) => Some((dead, steps)),
            _ => None,
        }
    }
}

impl<'p, M: Mask, W: Runner<Found = Reached<M>>> Runner for WitnessSearch<'p, W> {
    type Found = Found;

    fn run(&mut self, until: u64, memory: usize, guard: &BudgetGuard<'_>) -> Result<Option<Found>, Limit> {
        let own = self.problem.automaton.bytes() + self.problem.schedule.bytes();
        let memory = memory.checked_sub(own).ok_or(Limit::Memory)?;
        let Some(search) = &mut self.search else { return Err(Limit::Cancelled) };
        let Some(found) = search.run(until, memory, guard)? else {
            return Ok(None);
        };
        // The linearization needs as much memory as the search, which is therefore freed first.
        self.search = None;
        Ok(Some(match found {
            Reached::Nothing(dead, furthest) => {
                let certain = match furthest {
                    Furthest::Steps(steps) => self.reductions.map(|_| (dead.clone(), steps)),
                    Furthest::Doubtful => self.longest::<M>(memory, guard),
                    Furthest::Unknown => None,
                };
                Found::Impossible(match certain {
                    Some((dead, steps)) => {
                        let longest = WitnessBuilder::<M>::new(self.problem.clone()).order(&steps, dead.reached);
                        DeadEnd { longest, ..dead }
                    }
                    None => dead,
                })
            }
            Reached::Goal(steps, boundaries, first) => {
                let (problem, end) = (&self.problem, self.problem.schedule.events.len());
                let in_parts = || WitnessBuilder::in_parts(problem, &steps, &boundaries, first, end);
                let order = (!boundaries.is_empty() && rayon::current_num_threads() > 1).then(in_parts).flatten();
                let order = order.or_else(|| WitnessBuilder::<M>::new(problem.clone()).order(&steps, end));
                // `is_valid_linearization` rejects a wrong order.
                Found::Order(order.unwrap_or_default())
            }
        }))
    }
}
