//! Registers: read, written, compared and set, appended to. By far the most histories are of these, and of the forms of their
//! operations much more can be said than of steps of a specification.

mod audit;
mod automaton;
mod by_value;
mod configuration;
mod course;
mod dominance;
mod forms;
mod ladder;
mod moves;
mod open;
mod path;
mod prefixes;
mod reductions;
mod replay;
mod used;

pub(super) use audit::is_order;
pub(super) use forms::{Deed, Forms};
pub(super) use reductions::LEG;
pub use reductions::{Reductions, Width};

use super::budget::Watch;
use super::mask::Mask;
use super::partition::Part;
use super::race::{Race, Runner};
use super::schedule::{Dead, Found, Known, Search, first_work, is_for_two};
use super::switches::Switches;
use super::verdict::Limit;
use automaton::{Automaton, Kind};
use course::Course;
use ladder::{Furthest, Ladder, ROUNDS, Reached, Relay};
use path::{MOST_OPERATIONS, Step};
use replay::Replay;
use std::borrow::Cow;
use std::sync::Arc;

/// A register, and the operations of a part as operations on it.
#[derive(Debug)]
struct Problem<'p> {
    automaton: Automaton,
    course: Course<'p>,
}

impl<'p> Problem<'p> {
    /// The operations of a part up to an event. `None` where the forms are not enough, or a limit is reached.
    fn new(part: &'p Part, forms: &Forms<'_>, goal: usize, watch: &Watch<'_>) -> Option<Self> {
        // Operations are numbered by invocation: later ones do not matter.
        let invoked = match part.events.len() {
            all if all == goal => part.calls.len(),
            _ => part.events[..goal].iter().filter(|event| !event.is_return()).count(),
        };
        let calls = &part.calls[..invoked];
        let deeds: Cow<'_, [Deed]> = match (0..).zip(calls).all(|(at, &call)| at == call) {
            // Nearly the whole history is of this register.
            true => Cow::Borrowed(&forms.deed[..invoked]),
            false => calls.iter().map(|&call| forms.deed[call as usize]).collect(),
        };
        if deeds.len() > MOST_OPERATIONS {
            return None;
        }
        let content = part.calls.first().map(|&call| forms.content[forms.register(call) as usize])?;
        let (automaton, course) =
            (|| Automaton::new(&deeds, content, forms, watch), || Course::new(part, &deeds, goal));
        let (automaton, mut course) = match is_for_two(deeds.len()) {
            true => rayon::join(automaton, course),
            false => (automaton(), course()),
        };
        let (automaton, class) = automaton?;
        let optional = |class: u32| !matches!(automaton.kinds[class as usize], Kind::Read(_) | Kind::FailedCas(_));
        course.classify(&class, automaton.kinds.len(), optional);
        Some(Problem { automaton, course })
    }
}

/// A search for an order of the operations on one register that explains every answer before event `goal`, or of all where there is
/// none; such a search also says how far an order gets. `None` where the forms are not enough, or a limit is reached.
pub(super) fn search<'p>(
    part: &'p Part,
    forms: &Forms<'_>,
    goal: Option<usize>,
    switches: Switches,
    watch: &Watch<'_>,
) -> Option<Search<'p>> {
    let whole = goal.is_none();
    if whole
        && switches.width.is_none()
        && let Some(order) = in_turn(part, forms)
    {
        return Some(Box::new(Known(order)));
    }
    let problem = Arc::new(Problem::new(part, forms, goal.unwrap_or(part.events.len()), watch)?);
    Some(match problem.course.slots {
        0..=64 => within::<[u64; 1]>(problem, switches, whole),
        65..=128 => within::<[u64; 2]>(problem, switches, whole),
        129..=256 => within::<[u64; 4]>(problem, switches, whole),
        257..=512 => within::<[u64; 8]>(problem, switches, whole),
        513..=1024 => within::<[u64; 16]>(problem, switches, whole),
        _ => within::<Box<[u64]>>(problem, switches, whole),
    })
}

/// The operations that return, where each does so before the next of them is invoked and no other is needed to explain their answers.
fn in_turn(part: &Part, forms: &Forms<'_>) -> Option<Vec<u32>> {
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
    is_order(part, forms, &order).then_some(order)
}

/// Configurations that go on at a time where one alone goes back and back: some histories take a twentieth of the work so, others
/// five times as much.
const WIDE: usize = 8;

fn within<'p, M: Mask + 'p>(problem: Arc<Problem<'p>>, switches: Switches, whole: bool) -> Search<'p> {
    let begin = |width: Width| Ladder::<M>::new(problem.clone(), switches.reductions, width);
    match switches.width {
        Some(width) => {
            Box::new(Ordered { way: Some(begin(width)), problem, reductions: whole.then_some(switches.reductions) })
        }
        None => {
            let way = |width: Width| {
                let problem = problem.clone();
                move || Ladder::<M>::new(problem, switches.reductions, width)
            };
            let (wide, everything) = (way(Width::Beam(WIDE)), way(Width::Everything));
            let work = first_work(problem.course.events.len());
            let first = Relay::new(begin(Width::Beam(1)), switches.leg);
            let way = Race::new(work, first, move || Race::new(work, wide(), everything));
            let way = way.patient(if whole { ROUNDS } else { 0 });
            Box::new(Ordered { way: Some(way), problem, reductions: whole.then_some(switches.reductions) })
        }
    }
}

/// A search that says its steps as an order.
struct Ordered<'p, W> {
    problem: Arc<Problem<'p>>,
    /// `None`: it has come to an end.
    way: Option<W>,
    /// Those of a search that says how far an order gets.
    reductions: Option<Reductions>,
}

impl<W> Ordered<'_, W> {
    /// The steps of an order that gets as far as any does where none gets to the end, if that is soon known. The same however it
    /// was found out that none does.
    fn longest<M: Mask>(&self, memory: usize, watch: &Watch<'_>) -> Option<(Dead, Vec<Step>)> {
        let reductions = Reductions { last_producer: false, ..self.reductions? };
        let mut ladder = Ladder::<M>::new(self.problem.clone(), reductions, Width::Beam(1));
        match ladder.run(ladder.how_far(), memory, watch) {
            Ok(Some(Reached::Nothing(dead, Furthest::Steps(steps)))) => Some((dead, steps)),
            _ => None,
        }
    }
}

impl<'p, M: Mask, W: Runner<Found = Reached<M>>> Runner for Ordered<'p, W> {
    type Found = Found;

    fn run(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Found>, Limit> {
        let own = self.problem.automaton.bytes() + self.problem.course.bytes();
        let memory = memory.checked_sub(own).ok_or(Limit::Memory)?;
        let Some(way) = &mut self.way else { return Err(Limit::Cancelled) };
        let Some(found) = way.run(until, memory, watch)? else {
            return Ok(None);
        };
        // An order takes as much room as the search for it.
        self.way = None;
        Ok(Some(match found {
            Reached::Nothing(dead, furthest) => {
                let certain = match furthest {
                    Furthest::Steps(steps) => self.reductions.map(|_| (dead.clone(), steps)),
                    Furthest::Doubtful => self.longest::<M>(memory, watch),
                    Furthest::Unknown => None,
                };
                Found::Impossible(match certain {
                    Some((dead, steps)) => {
                        let longest = Replay::<M>::new(self.problem.clone()).order(&steps, dead.reached);
                        Dead { longest, ..dead }
                    }
                    None => dead,
                })
            }
            Reached::Goal(steps, seams, first) => {
                let (problem, end) = (&self.problem, self.problem.course.events.len());
                let in_parts = || Replay::in_parts(problem, &steps, &seams, first, end);
                let order = (!seams.is_empty() && rayon::current_num_threads() > 1).then(in_parts).flatten();
                let order = order.or_else(|| Replay::<M>::new(problem.clone()).order(&steps, end));
                // An order that is none is not believed: see `audit`.
                Found::Order(order.unwrap_or_default())
            }
        }))
    }
}
