//! Speculative execution: segments of a long history are searched at once, the first from the initial state, the others from
//! guesses. Input: a [`FrontierSearch`] with beam width 1. Output: its result, the same on any number of threads.
//!
//! The configuration after a few hundred operations hardly depends on the one before: what was pending then has returned. A
//! segment that begins in the middle guesses the state and the linearized operations. It soon has the same configuration as the
//! segment before it, which then takes over its steps up to the goal.
//!
//! *Why the result is a linearization.* Both have the same event, state and last overwrite, and the same operations are
//! linearized and absorbable. The guess presumes that all crashed operations invoked before are used. If the segment before has
//! used no more of any class than the other, it can do whatever that one can by the same steps (see `Configuration::dominates`).
//! A wrong guess affects only what happened before that place. There only the steps of the segment before count.
//!
//! If a guess leads to no goal, or two segments do not meet soon, the first segment continues alone, and another one begins
//! halfway to the end if that is far. Only the first segment can prove that no linearization exists. It does the same whatever
//! becomes of the others, and all of this depends only on the history and on counted work. So without an idle thread, a segment
//! runs only when the one before it has met it. With idle threads all run at once, until the first one has missed the second.
//!
//! Most of the work is often at one place and holds up one segment. The thread of another segment then begins a segment halfway
//! to the end of that one. It is used if the half before it was hard.
//!
//! The witness is built in parts at once, divided where segments meet and halfway through long ones. The part of the first
//! segment is built while the others still run.

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

/// Classes of operations for each event of a segment, at most: each segment has tables of them.
const CLASSES: usize = 4;

/// Segments, at most.
const MAX_SEGMENTS: usize = 4;

/// Two segments must meet within this many events after the beginning of the later one.
const SPLICE_WINDOW: u32 = 1 << 10;

/// Partial moves of one generation after which a guess is given up.
const MOST_DRAFTS: u64 = 1 << 11;

/// Events from a guess that fails to the next one, at least. All guesses are within [`SPLICE_WINDOW`].
const NEXT_GUESS: u32 = 1 << 5;

/// Configurations on the path to the active one: those soon after the guess that a search began with, and one in the middle.
#[derive(Debug)]
pub(super) struct SpliceCandidates<M> {
    /// Configurations at events before this are noted.
    end: u32,
    /// The first one from here on is noted too.
    middle: u32,
    /// By event.
    noted: Vec<(u32, Configuration<M>)>,
}

impl<M: Mask> SpliceCandidates<M> {
    /// For the search from the initial state, which no segment takes over.
    pub(super) fn none() -> Self {
        SpliceCandidates { end: 0, middle: NEVER, noted: Vec::new() }
    }

    /// Whether the search began at a guess.
    pub(super) fn is_guess(&self) -> bool {
        self.end > 0
    }

    /// Notes the active configuration after a return that none had passed before, if it is the only one.
    pub(super) fn note(&mut self, event: u32, going: &[(usize, Configuration<M>)]) {
        let is_middle = || event >= self.middle && self.noted.last().is_some_and(|noted| noted.0 < self.middle);
        if let [(_, at)] = going
            && (event < self.end || is_middle())
        {
            self.noted.push((event, at.clone()));
        }
    }

    /// The search has reached `furthest` and backtracks to an event. `false` if it began at a guess and no segment can meet it
    /// any more.
    pub(super) fn leave(&mut self, event: u32, furthest: u32) -> bool {
        while self.noted.pop_if(|noted| noted.0 >= event).is_some() {}
        !self.is_guess() || furthest < self.end || !self.noted.is_empty()
    }

    /// The configuration in the middle.
    fn middle(&self) -> Option<&(u32, Configuration<M>)> {
        self.noted.last().filter(|noted| noted.0 >= self.middle)
    }

    /// The configurations that they keep.
    pub(super) fn configurations(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        self.noted.iter_mut().map(|noted| &mut noted.1)
    }
}

/// The configurations of a segment soon after its guess.
#[derive(Debug)]
struct SegmentStart<M> {
    begin: u32,
    /// By event.
    places: Vec<(u32, Configuration<M>)>,
    uses: CrashedUseSets,
}

/// How a search meets another segment.
enum Splice<M> {
    /// More work is needed.
    NeedsWork,
    /// The search ended first.
    Finished(Reached<M>),
    /// It does not meet it soon enough.
    Diverged,
    /// By these steps, at this event.
    At(Vec<Step>, u32),
}

/// A segment after the first.
struct Segment<'p, M> {
    start: Arc<SegmentStart<M>>,
    search: FrontierSearch<'p, M>,
    /// The event at which the next one begins, or the end.
    end: u32,
    /// The steps to the goal, once it is reached.
    goal: Option<Vec<Step>>,
    /// It is not divided: it is a second half itself, or its second half failed.
    is_half: bool,
}

/// The segments after the first.
enum Segments<'p, M> {
    /// Not begun: the first has not reached the beginning of the second.
    Unknown,
    /// The second has begun, or all have ended.
    Begun(Vec<Segment<'p, M>>),
    /// They failed, or are not needed any more.
    Gone,
}

/// A search with beam width 1, in segments if the history is long.
pub(in crate::search::register) struct SpeculativeSearch<'p, M> {
    first: FrontierSearch<'p, M>,
    /// The events at which the other segments begin, and the end.
    bounds: Vec<u32>,
    others: Segments<'p, M>,
    /// The partial witness of the first segment, up to where it has met the second.
    made: Option<PartialWitness<M>>,
    /// Events of a segment, at least.
    min_events: usize,
    /// No other search of the portfolio has begun.
    alone: bool,
}

impl<'p, M: Mask> SpeculativeSearch<'p, M> {
    /// `leg`: the events of a segment, at least.
    pub(in crate::search::register) fn new(first: FrontierSearch<'p, M>, leg: usize) -> Self {
        let (events, classes) = (first.open.schedule().events.len(), first.open.automaton().kinds.len());
        let legs = if classes <= CLASSES * leg { (events / leg).clamp(1, MAX_SEGMENTS) } else { 1 };
        let bounds = (1..legs).map(|leg| (events / legs * leg) as u32).chain([events as u32]).collect();
        let others = if legs > 1 { Segments::Unknown } else { Segments::Gone };
        SpeculativeSearch { first, bounds, others, made: None, min_events: leg, alone: true }
    }

    /// The other segments failed: another one may begin halfway to the end.
    fn begin_again(&mut self) {
        self.made = None;
        // How far the first one is depends on threads, but it is not further than this.
        let (at, end) = (self.bounds[0] + 2 * SPLICE_WINDOW, self.first.open.schedule().events.len() as u32);
        if at as usize + self.min_events / 2 <= end as usize {
            self.bounds = vec![at.midpoint(end), end];
            self.others = Segments::Unknown;
        } else {
            self.others = Segments::Gone;
        }
    }

    /// Runs the first segment until it has met the second. The others run beside it if a thread may be idle.
    fn run_first(&mut self, until: u64, memory: usize, watch: &BudgetGuard<'_>) -> Result<Option<Reached<M>>, Limit> {
        let SpeculativeSearch { first, bounds, others, alone, .. } = self;
        let beside = *alone && rayon::current_num_threads() > 1;
        let ended = AtomicUsize::new(NOBODY);
        let legs = SegmentRunner::after(first, bounds, memory, watch.competing(&ended, 1));
        let (begun, second) = (OnceLock::new(), Mutex::new(None));
        let (mut made, are_through) = (None, AtomicBool::new(false));
        // The first thread that needs it runs the second segment to where the first one may meet it.
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
                    // This thread would wait for the other segments, so it begins the witness.
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

    /// The steps to the goal, and the segment boundaries: where segments meet, and in the middle of long ones. `steps` led the
    /// first segment to where it met the second, at `event`.
    fn take_over(
        &self,
        mut steps: Vec<Step>,
        mut event: u32,
        begun: Vec<Segment<'p, M>>,
        memory: usize,
        watch: &BudgetGuard<'_>,
    ) -> Option<(Vec<Step>, Vec<SegmentBoundary<M>>)> {
        // Two segments are long: two threads can build the witness of each.
        let (mut seams, is_long) = (Vec::new(), self.bounds.len() == 2);
        let legs = SegmentRunner::after(&self.first, &self.bounds, memory.saturating_sub(self.first.bytes()), *watch);
        let mut bounds = self.bounds.windows(2).skip(begun.len());
        let mut begun: Vec<Segment<'p, M>> = begun.into_iter().rev().collect();
        let mut leg = begun.pop()?;
        // A segment whose second half was taken over, with the steps and boundaries before that. If that half fails, it continues
        // itself.
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
            // It may have backtracked since and have another path.
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

    /// Runs the first segment until it, or a segment that it has met, is at the end.
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

/// How the segments after the first are run.
struct SegmentRunner<'p, 'w> {
    problem: Arc<Problem<'p>>,
    reductions: Reductions,
    /// Bytes for each segment.
    memory: usize,
    watch: BudgetGuard<'w>,
    /// Work for each segment: that of the first round of the first one, because some places are hard for each.
    work: u64,
}

impl<'p, 'w> SegmentRunner<'p, 'w> {
    fn after<M: Mask>(first: &FrontierSearch<'p, M>, bounds: &[u32], memory: usize, watch: BudgetGuard<'w>) -> Self {
        let (problem, reductions) = (first.open.problem().clone(), first.reductions);
        SegmentRunner {
            problem,
            reductions,
            // A hard segment becomes two.
            memory: memory / (2 * bounds.len()),
            watch,
            work: initial_budget(first.open.schedule().events.len()),
        }
    }

    /// Begins a segment between two events, at a guess. `None` if no guess leads on.
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

    /// Runs a segment to its end. If the next half is hard, it runs only that half, and a second segment from there on.
    ///
    /// That a half is hard is known only afterwards. An idle thread has begun the second half by then; without one, it begins
    /// only if it is needed.
    fn end<M: Mask>(&self, mut leg: Segment<'p, M>) -> Option<Vec<Segment<'p, M>>> {
        while leg.goal.is_none() && leg.search.open.at < leg.end {
            let (at, end, begun) = (leg.search.open.at, leg.end, leg.search.work());
            let half = at.midpoint(end);
            if half < at + self.problem.thresholds.half_events || leg.is_half {
                leg.goal = self.goal(&mut leg.search, end)?;
                break;
            }
            let needless = AtomicUsize::new(NOBODY);
            let legs =
                SegmentRunner { watch: self.watch.competing(&needless, 1), problem: self.problem.clone(), ..*self };
            let first = || {
                let goal = self.goal(&mut leg.search, half);
                let usual = self.problem.thresholds.hard_work_per_event * u64::from(half - at);
                let is_hard = leg.search.work() - begun > usual;
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

    /// Runs a search up to an event. Returns the steps to the goal if it gets there; `None` if it fails.
    fn goal<M: Mask>(&self, ladder: &mut FrontierSearch<'p, M>, pause: u32) -> Option<Option<Vec<Step>>> {
        match self.run(ladder, pause)? {
            Some(Reached::Goal(steps, ..)) => Some(Some(steps)),
            Some(Reached::Nothing(..)) => None,
            None => Some(None),
        }
    }

    /// Runs a search up to an event. `None` if a limit ends it before.
    fn run<M: Mask>(&self, ladder: &mut FrontierSearch<'p, M>, pause: u32) -> Option<Option<Reached<M>>> {
        ladder.pause = pause;
        let found = ladder.run(self.work, self.memory, &self.watch).ok()?;
        (found.is_some() || ladder.open.at >= pause).then_some(found)
    }
}

impl<M: Mask> Segment<'_, M> {
    /// Continues to an end without being divided.
    fn alone(self, end: u32) -> Self {
        Segment { end, is_half: true, ..self }
    }

    fn bytes(&self) -> usize {
        self.search.bytes() + self.start.uses.bytes()
    }
}

impl<M: Mask> FrontierSearch<'_, M> {
    /// Begins at a guess: pending operations may have been linearized, writes of them right before the last overwrite, and the
    /// register holds what the next read returns.
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

    /// Continues until a configuration is one of another segment.
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

    /// The path of an active configuration that another segment has too.
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

/// Forgets all uses of crashed operations that cannot matter any more.
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
