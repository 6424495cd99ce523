//! A long history is searched in legs, side by side: the first from the beginning, the others from guesses.
//!
//! Where a search stands after a few hundred operations hardly depends on where it stood before: what was open then has returned.
//! So a leg that begins somewhere in the middle, at a guess of what the register holds and which open operations are done, soon
//! stands where the leg before it comes to. There the one before takes over its steps, up to the goal.
//!
//! *Why that is an order.* Both stand at one event, in one state and with one gap, and the same open operations are done and idle.
//! The guess was that all optional operations invoked before are used up. Where the one before has used no more of any class than
//! the other, it can do whatever that one can (see `Configuration::dominates`), and by the same steps. What was wrong about the
//! guess concerns what happened before that place, and of that only the steps of the one before count.
//!
//! Where a guess leads to no goal, or the legs do not meet soon, the first leg goes on alone, and another one begins halfway to the
//! end, as long as that is far: the first alone says that there is no order. It goes the same way whatever becomes of the others,
//! and all this depends on the history and on counted work. So where no thread may be idle, a leg is run only when the one before
//! it has come to where this one stood soon after its guess; and where one may, all are run at once, until the first one has missed
//! the second.
//!
//! Most of the work is often at one place. So a leg is held up there, and the thread of another one has nothing to do: it begins a leg
//! halfway to the end of the first, which is used if the half before it was hard.
//!
//! The order is made of the steps in parts, at once, between where legs take over and halfway through long ones; that of the first leg
//! while the others are still on their way.

use super::{Configuration, FrontierSearch, Layer, Node, Reached};
use crate::search::budget::{BudgetGuard, NOBODY};
use crate::search::mask::Mask;
use crate::search::portfolio::Runner;
use crate::search::register::Problem;
use crate::search::register::automaton::Kind;
use crate::search::register::crashed_uses::{CrashedUseSets, UNUSED};
use crate::search::register::event_schedule::NEVER;
use crate::search::register::parent_links::{BEGIN, Step};
use crate::search::register::pending::PendingOps;
use crate::search::register::pruning::Reductions;
use crate::search::register::pruning::Width;
use crate::search::register::witness::{PartialWitness, SegmentBoundary, WitnessBuilder};
use crate::search::schedule::initial_budget;
use crate::search::verdict::Limit;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

#[cfg(test)]
mod tests;

/// Classes of operations for each event of such a leg, at most: each leg has tables of them.
const CLASSES: usize = 4;

/// Legs, at most.
const MAX_SEGMENTS: usize = 4;

/// Two legs meet within so many events, or not at all.
const SPLICE_WINDOW: u32 = 1 << 10;

/// Half of a leg is hard that does more work than this for each event: mostly it is two.
const HARD_WORK_PER_EVENT: u64 = if cfg!(test) { 2 } else { 4 };

/// Halves have so many events, at least.
const MIN_HALF_EVENTS: u32 = if cfg!(test) { 1 << 6 } else { 1 << 11 };

/// A guess after which so many drafts of one move are looked at was no good one.
const MOST_DRAFTS: u64 = 1 << 11;

/// A guess from which there is no way is followed by another one where that ended, or so many events later, within those where legs
/// may meet.
const NEXT_GUESS: u32 = 1 << 5;

/// Where a search that began at a guess stood at first, and once in the middle: all places on the way of those that go on now.
#[derive(Debug)]
pub(super) struct SpliceCandidates<M> {
    /// Those at events before this are noted.
    end: u32,
    /// And one from here on.
    middle: u32,
    /// By event.
    noted: Vec<(u32, Configuration<M>)>,
}

impl<M: Mask> SpliceCandidates<M> {
    /// Of a search from the beginning: nobody takes it over.
    pub(super) fn none() -> Self {
        SpliceCandidates { end: 0, middle: NEVER, noted: Vec::new() }
    }

    /// Whether they are of a search that began at a guess.
    pub(super) fn is_guess(&self) -> bool {
        self.end > 0
    }

    /// Notes who goes on past a return that none had got past before.
    pub(super) fn note(&mut self, event: u32, going: &[(usize, Configuration<M>)]) {
        let is_middle = || event >= self.middle && self.noted.last().is_some_and(|noted| noted.0 < self.middle);
        if let [(_, at)] = going
            && (event < self.end || is_middle())
        {
            self.noted.push((event, at.clone()));
        }
    }

    /// The search, which has got to `furthest`, goes back to an event. Whether it can still be taken over, or need not be.
    pub(super) fn leave(&mut self, event: u32, furthest: u32) -> bool {
        while self.noted.pop_if(|noted| noted.0 >= event).is_some() {}
        !self.is_guess() || furthest < self.end || !self.noted.is_empty()
    }

    /// The place in the middle.
    fn middle(&self) -> Option<&(u32, Configuration<M>)> {
        self.noted.last().filter(|noted| noted.0 >= self.middle)
    }

    /// The configurations that they keep.
    pub(super) fn configurations(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        self.noted.iter_mut().map(|noted| &mut noted.1)
    }
}

/// Where a leg stood soon after its guess.
#[derive(Debug)]
struct SegmentStart<M> {
    begin: u32,
    /// By event.
    places: Vec<(u32, Configuration<M>)>,
    uses: CrashedUseSets,
}

/// How a search comes to where another one stood.
enum Splice<M> {
    /// More work is needed.
    NeedsWork,
    /// It came to an end before.
    Finished(Reached<M>),
    /// It does not, soon enough.
    Diverged,
    /// By these steps, at this event.
    At(Vec<Step>, u32),
}

/// A search from a guess, that has begun or is at its end.
struct Segment<'p, M> {
    start: Arc<SegmentStart<M>>,
    search: FrontierSearch<'p, M>,
    /// Where the next one begins, or the end.
    end: u32,
    /// The steps to the goal, of one that got there.
    goal: Option<Vec<Step>>,
    /// No half of it is another one: it is the second half of one itself, or that one came to nothing.
    is_half: bool,
}

/// What is known of the legs after the first.
enum Segments<'p, M> {
    /// Nothing: the first has not come to where the second begins.
    Unknown,
    /// The second has begun, or all are at their ends.
    Begun(Vec<Segment<'p, M>>),
    /// They come to nothing, or are not needed any more.
    Gone,
}

/// A search with a beam of one, in legs where the history is long.
pub(in crate::search::register) struct SpeculativeSearch<'p, M> {
    first: FrontierSearch<'p, M>,
    /// Where the others begin, and the end.
    bounds: Vec<u32>,
    others: Segments<'p, M>,
    /// What comes of the steps of the first one, up to where it has met the second.
    made: Option<PartialWitness<M>>,
    /// Events of a leg, at least.
    min_events: usize,
    /// Nobody else runs beside it.
    alone: bool,
}

impl<'p, M: Mask> SpeculativeSearch<'p, M> {
    /// In legs of at least so many events.
    pub(in crate::search::register) fn new(first: FrontierSearch<'p, M>, leg: usize) -> Self {
        let (events, classes) = (first.open.schedule().events.len(), first.open.automaton().kinds.len());
        let legs = if classes <= CLASSES * leg { (events / leg).clamp(1, MAX_SEGMENTS) } else { 1 };
        let bounds = (1..legs).map(|leg| (events / legs * leg) as u32).chain([events as u32]).collect();
        let others = if legs > 1 { Segments::Unknown } else { Segments::Gone };
        SpeculativeSearch { first, bounds, others, made: None, min_events: leg, alone: true }
    }

    /// The others came to nothing: another one may begin halfway to the end.
    fn begin_again(&mut self) {
        self.made = None;
        // How far the first one is by now depends on threads; it is not farther than this.
        let (at, end) = (self.bounds[0] + 2 * SPLICE_WINDOW, self.first.open.schedule().events.len() as u32);
        if at as usize + self.min_events / 2 <= end as usize {
            self.bounds = vec![at.midpoint(end), end];
            self.others = Segments::Unknown;
        } else {
            self.others = Segments::Gone;
        }
    }

    /// Runs the first leg to where the second begins and until it has met that one; and the others, where a thread may be idle.
    fn run_first(&mut self, until: u64, memory: usize, watch: &BudgetGuard<'_>) -> Result<Option<Reached<M>>, Limit> {
        let SpeculativeSearch { first, bounds, others, alone, .. } = self;
        let beside = *alone && rayon::current_num_threads() > 1;
        let ended = AtomicUsize::new(NOBODY);
        let legs = SegmentRunner::after(first, bounds, memory, watch.competing(&ended, 1));
        let (begun, second) = (OnceLock::new(), Mutex::new(None));
        let (mut made, are_through) = (None, AtomicBool::new(false));
        // Whoever needs it first runs the second leg to where the first one may meet it.
        let begin = || {
            let begin = || {
                let leg = legs.begin(&bounds[..2])?;
                let beginning = leg.start.clone();
                *second.lock().ok()? = Some(leg);
                Some(beginning)
            };
            begun.get_or_init(begin).as_ref()
        };
        let mut run = || {
            first.pause = bounds[0];
            let found = first.run(until, memory, watch)?;
            if found.is_some() || first.open.at < first.pause {
                return Ok((found, false));
            }
            let Some(beginning) = begin() else { return Ok((None, false)) };
            Ok(match first.splice(beginning, until, memory, watch)? {
                Splice::Finished(found) => (Some(found), false),
                Splice::Diverged => (None, false),
                Splice::NeedsWork => (None, true),
                Splice::At(steps, event) => {
                    let left = memory.saturating_sub(first.bytes());
                    // Who would wait for the others begins to make an order.
                    if beside
                        && !are_through.load(Ordering::Relaxed)
                        && WitnessBuilder::<M>::bytes(first.open.problem()) <= left
                    {
                        made = WitnessBuilder::up_to(first.open.problem().clone(), &steps, event);
                    }
                    (None, true)
                }
            })
        };
        let mut run = || {
            let found = run();
            if !matches!(found, Ok((_, true))) {
                ended.store(0, Ordering::Relaxed);
            }
            found
        };
        let run_others = || {
            let run = |(at, bounds): (usize, &[u32])| {
                let leg = match at {
                    0 => begin().and_then(|_| second.lock().ok()?.take()),
                    _ => legs.begin(bounds),
                };
                let leg = leg.and_then(|leg| legs.end(leg));
                if leg.is_none() {
                    ended.store(0, Ordering::Relaxed);
                }
                leg
            };
            let all = bounds.par_windows(2).enumerate().map(run).collect::<Option<Vec<_>>>();
            are_through.store(true, Ordering::Relaxed);
            all.map(|all| all.into_iter().flatten().collect())
        };
        let (found, all) = match beside {
            true => rayon::join(run, run_others),
            false => (run(), second.lock().ok().and_then(|mut leg| leg.take()).map(|leg| vec![leg])),
        };
        let (found, is_met) = found?;
        if first.open.at >= bounds[0] && found.is_none() {
            match all.filter(|_| is_met) {
                Some(legs) => (*others, self.made) = (Segments::Begun(legs), made),
                None => self.begin_again(),
            }
        }
        Ok(found)
    }

    /// The steps to the goal of the first leg, which came by some steps to where the second one stood at an event; and the places
    /// where one leg takes over from another, and in the middle of long ones.
    fn take_over(
        &self,
        mut steps: Vec<Step>,
        mut event: u32,
        begun: Vec<Segment<'p, M>>,
        memory: usize,
        watch: &BudgetGuard<'_>,
    ) -> Option<(Vec<Step>, Vec<SegmentBoundary<M>>)> {
        // Of two legs, each is as long as what two threads make an order of at once.
        let (mut seams, is_long) = (Vec::new(), self.bounds.len() == 2);
        let legs = SegmentRunner::after(&self.first, &self.bounds, memory.saturating_sub(self.first.bytes()), *watch);
        let mut bounds = self.bounds.windows(2).skip(begun.len());
        let mut begun: Vec<Segment<'p, M>> = begun.into_iter().rev().collect();
        let mut leg = begun.pop()?;
        // One that the other half of it has taken over, and how things stood when it was come to: it may still have to go on itself.
        let mut held: Option<(_, _, (usize, usize))> = None;
        loop {
            begun.extend(legs.end(leg)?.into_iter().rev());
            leg = begun.pop()?;
            let (own, following) = match leg.goal.take() {
                Some(goal) => (goal, None),
                None => {
                    let following = begun.pop().or_else(|| legs.begin(bounds.next()?))?;
                    match leg.search.splice(&following.start, legs.work, legs.memory, watch).ok()? {
                        Splice::At(steps, event) => (steps, Some((following, event))),
                        _ if following.is_half => {
                            leg = leg.alone(following.end);
                            continue;
                        }
                        _ => {
                            begun.push(following);
                            let taken;
                            (leg, event, taken) = held.take()?;
                            steps.truncate(taken.0);
                            seams.truncate(taken.1);
                            continue;
                        }
                    }
                }
            };
            let (entered, taken) = (event, (steps.len(), seams.len()));
            // It may have gone another way in the end.
            let places = &leg.search.splice_candidates.noted;
            let place = places.binary_search_by_key(&event, |place| place.0).ok()?;
            let there = &places[place].1;
            let before = leg.search.paths.steps(there.path).len();
            let seam = |event, there: &Configuration<M>, steps| SegmentBoundary {
                event,
                steps: taken.0 + steps - before,
                gap: there.last_overwrite_at,
                done: there.linearized.clone(),
            };
            seams.push(seam(event, there, before));
            let next = following.as_ref().map_or(NEVER, |following| following.1);
            if let Some((at, there)) =
                leg.search.splice_candidates.middle().filter(|middle| is_long && (event + 1..next).contains(&middle.0))
            {
                seams.push(seam(*at, there, leg.search.paths.steps(there.path).len()));
            }
            steps.extend(&own[before..]);
            match following {
                Some((following, place)) => {
                    held = following.is_half.then(|| (leg.alone(following.end), entered, taken));
                    (leg, event) = (following, place);
                }
                None => return Some((steps, seams)),
            }
        }
    }

    /// Runs the first leg until it, or another one that it has met, is at its end.
    fn run_segments(
        &mut self,
        until: u64,
        memory: usize,
        watch: &BudgetGuard<'_>,
    ) -> Result<Option<Reached<M>>, Limit> {
        loop {
            match std::mem::replace(&mut self.others, Segments::Gone) {
                Segments::Unknown => {
                    self.others = Segments::Unknown;
                    let (bound, found) = (self.bounds[0], self.run_first(until, memory, watch)?);
                    if found.is_some() || self.first.open.at < bound {
                        return Ok(found);
                    }
                }
                Segments::Begun(legs) => {
                    let left = memory.saturating_sub(legs.iter().map(Segment::bytes).sum());
                    match self.first.splice(&legs[0].start, until, left, watch)? {
                        Splice::NeedsWork => {
                            self.others = Segments::Begun(legs);
                            return Ok(None);
                        }
                        Splice::Finished(found) => return Ok(Some(found)),
                        Splice::Diverged => self.begin_again(),
                        Splice::At(steps, event) => match self.take_over(steps, event, legs, memory, watch) {
                            Some((steps, seams)) => return Ok(Some(Reached::Goal(steps, seams, self.made.take()))),
                            None => self.begin_again(),
                        },
                    }
                }
                Segments::Gone => {
                    self.first.pause = NEVER;
                    return self.first.run(until, memory, watch);
                }
            }
        }
    }
}

impl<M: Mask> Runner for SpeculativeSearch<'_, M> {
    type Found = Reached<M>;

    fn run(&mut self, until: u64, memory: usize, watch: &BudgetGuard<'_>) -> Result<Option<Reached<M>>, Limit> {
        let found = self.run_segments(until, memory, watch);
        self.alone = false;
        found
    }
}

/// How the legs after the first are run.
struct SegmentRunner<'p, 'w> {
    problem: Arc<Problem<'p>>,
    reductions: Reductions,
    /// For each.
    memory: usize,
    watch: BudgetGuard<'w>,
    /// For each: as much as the first one may do in the first round, for some places are hard for each.
    work: u64,
}

impl<'p, 'w> SegmentRunner<'p, 'w> {
    fn after<M: Mask>(first: &FrontierSearch<'p, M>, bounds: &[u32], memory: usize, watch: BudgetGuard<'w>) -> Self {
        let (problem, reductions) = (first.open.problem().clone(), first.reductions);
        SegmentRunner {
            problem,
            reductions,
            // A hard one is two.
            memory: memory / (2 * bounds.len()),
            watch,
            work: initial_budget(first.open.schedule().events.len()),
        }
    }

    /// Begins one between two events, at a guess. `None`: nothing comes of it.
    fn begin<M: Mask>(&self, bounds: &[u32]) -> Option<Segment<'p, M>> {
        let (mut begin, end) = (bounds[0], bounds[1]);
        let (last, mut work) = (end.min(begin + SPLICE_WINDOW), 0);
        while begin < last && self.watch.reached().is_none() {
            let mut ladder = FrontierSearch::before(begin, self.problem.clone(), self.reductions, Width::Beam(1));
            ladder.work = work;
            ladder.guess();
            ladder.splice_candidates.middle = begin.midpoint(end);
            ladder.moves.most = MOST_DRAFTS;
            let goal = match self.run(&mut ladder, end.min(begin + SPLICE_WINDOW))? {
                Some(Reached::Nothing(..)) => {
                    work = ladder.work();
                    begin = ladder.furthest.max(begin + NEXT_GUESS);
                    continue;
                }
                Some(Reached::Goal(steps, ..)) => Some(steps),
                None => None,
            };
            let beginning =
                SegmentStart { begin, places: ladder.splice_candidates.noted.clone(), uses: ladder.uses.clone() };
            return Some(Segment { start: Arc::new(beginning), search: ladder, end, goal, is_half: false });
        }
        None
    }

    /// Runs one to its end, or where the next half of it is hard to there, and another one from there on.
    ///
    /// What is hard is known only behind it. A thread that was idle has begun the other one by then; where none was, it is begun only if
    /// it is needed.
    fn end<M: Mask>(&self, mut leg: Segment<'p, M>) -> Option<Vec<Segment<'p, M>>> {
        while leg.goal.is_none() && leg.search.open.at < leg.end {
            let (at, end, begun) = (leg.search.open.at, leg.end, leg.search.work());
            let half = at.midpoint(end);
            if half < at + MIN_HALF_EVENTS || leg.is_half {
                leg.goal = self.goal(&mut leg.search, end)?;
                break;
            }
            let needless = AtomicUsize::new(NOBODY);
            let legs =
                SegmentRunner { watch: self.watch.competing(&needless, 1), problem: self.problem.clone(), ..*self };
            let first = || {
                let goal = self.goal(&mut leg.search, half);
                let is_hard = leg.search.work() - begun > HARD_WORK_PER_EVENT * u64::from(half - at);
                if !is_hard || goal.is_none() {
                    needless.store(0, Ordering::Relaxed);
                }
                (goal, is_hard)
            };
            let second = || legs.begin(&[half, end]).and_then(|leg| legs.end(Segment { is_half: true, ..leg }));
            let ((goal, is_hard), second) = rayon::join(first, second);
            leg.goal = goal?;
            if let (None, true, Some(second)) = (&leg.goal, is_hard, second) {
                leg.end = half;
                return Some(std::iter::once(leg).chain(second).collect());
            }
        }
        Some(vec![leg])
    }

    /// Runs one up to an event: the steps to the goal if it gets there. `None`: it comes to nothing.
    fn goal<M: Mask>(&self, ladder: &mut FrontierSearch<'p, M>, pause: u32) -> Option<Option<Vec<Step>>> {
        match self.run(ladder, pause)? {
            Some(Reached::Goal(steps, ..)) => Some(Some(steps)),
            Some(Reached::Nothing(..)) => None,
            None => Some(None),
        }
    }

    /// Runs one up to an event.
    fn run<M: Mask>(&self, ladder: &mut FrontierSearch<'p, M>, pause: u32) -> Option<Option<Reached<M>>> {
        ladder.pause = pause;
        let found = ladder.run(self.work, self.memory, &self.watch).ok()?;
        (found.is_some() || ladder.open.at >= pause).then_some(found)
    }
}

impl<M: Mask> Segment<'_, M> {
    /// It goes on to an end, and no half of it is another one any more.
    fn alone(self, end: u32) -> Self {
        Segment { end, is_half: true, ..self }
    }

    fn bytes(&self) -> usize {
        self.search.bytes() + self.start.uses.bytes()
    }
}

impl<M: Mask> FrontierSearch<'_, M> {
    /// Begins at a guess: what is open may have happened, writes of it right before the last one, and the register holds what a
    /// read is the next to say.
    fn guess(&mut self) {
        let (event, automaton, course) = (self.open.at, self.open.automaton(), self.open.schedule());
        let returns = course.events[event as usize..].iter().filter(|event| event.is_return());
        let mut kinds = returns.filter_map(|event| automaton.kinds.get(course.operation(event.of()).class as usize));
        let read = kinds.find_map(|kind| if let Kind::Read(state) = kind { Some(*state) } else { None });
        let mut at = Configuration {
            state: read.unwrap_or(automaton.initial),
            used: self.uses.first(&self.open.available),
            last_overwrite_at: event,
            path: BEGIN,
            linearized: self.open.observers.clone(),
            absorbable: M::none(course.slots),
        };
        forget_spent(&mut at, &self.open, &mut self.uses, self.reductions);
        self.layers = vec![Layer::new(event, vec![Node { at: at.clone(), optional: 0, is_open: false }])];
        self.active = vec![(0, at)];
        self.furthest = event;
        self.splice_candidates.end = event + SPLICE_WINDOW;
    }

    /// Goes on to where it stands where another leg stood.
    fn splice(
        &mut self,
        other: &SegmentStart<M>,
        until: u64,
        memory: usize,
        watch: &BudgetGuard<'_>,
    ) -> Result<Splice<M>, Limit> {
        loop {
            if let Some(found) = self.run(until, memory, watch)? {
                return Ok(Splice::Finished(found));
            }
            if self.open.at < self.pause {
                return Ok(Splice::NeedsWork);
            }
            if let Some(path) = self.find_splice_point(other) {
                return Ok(Splice::At(self.paths.steps(path), self.open.at));
            }
            if self.open.at >= other.begin + SPLICE_WINDOW {
                return Ok(Splice::Diverged);
            }
            self.pause = self.open.at + 1;
        }
    }

    /// The way to where another leg stood, of one of those that go on.
    fn find_splice_point(&mut self, other: &SegmentStart<M>) -> Option<u32> {
        let place = other.places.binary_search_by_key(&self.open.at, |place| place.0).ok()?;
        let there = &other.places[place].1;
        let (open, uses, reductions) = (&self.open, &mut self.uses, self.reductions);
        let mut meets = |at: &Configuration<M>| {
            let mut at = at.clone();
            (at.state, at.last_overwrite_at) == (there.state, there.last_overwrite_at)
                && at.linearized == there.linearized
                && at.absorbable == there.absorbable
                && {
                    forget_spent(&mut at, open, uses, reductions);
                    uses.is_within_of(at.used, &other.uses, there.used)
                }
        };
        self.active.iter().map(|(_, at)| at).find(|at| meets(at)).map(|at| at.path)
    }
}

/// Forgets all uses of optional operations that nothing can come of any more.
fn forget_spent<M: Mask>(
    at: &mut Configuration<M>,
    open: &PendingOps<'_, M>,
    uses: &mut CrashedUseSets,
    reductions: Reductions,
) {
    if reductions.supply && at.used != UNUSED {
        let spent: Vec<u32> = uses.classes(at.used).filter(|&optional| open.is_spent(optional, at, uses)).collect();
        if !spent.is_empty() {
            at.used = uses.without(at.used, &spent);
        }
    }
}
