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
use crate::search::crashed_uses::{CrashedUseSets, UNUSED};
use crate::search::mask::Mask;
use crate::search::portfolio::Runner;
use crate::search::register::Problem;
use crate::search::register::automaton::Kind;
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

/// Upper bound on classes of operations for each event of a segment: each segment has tables of them.
const MAX_CLASSES_PER_EVENT: usize = 4;

/// Segments, at most.
const MAX_SEGMENTS: usize = 4;

/// Two segments must meet within this many events after the beginning of the later one.
const SPLICE_WINDOW: u32 = 1 << 10;

/// Partial moves of one generation after which a guess is given up.
const MAX_PARTIAL_MOVES: u64 = 1 << 11;

/// Lower bound on events from a guess that fails to the next one. All guesses are within [`SPLICE_WINDOW`].
const MIN_GUESS_DISTANCE: u32 = 1 << 5;

/// Configurations on the path to the active one: those soon after the guess that a search began with, and one in the middle.
#[derive(Debug)]
pub(super) struct SpliceCandidates<M> {
    /// Configurations at events before this are noted.
    end: u32,
    /// The first one from here on is noted too.
    middle: u32,
    by_event: Vec<(u32, Configuration<M>)>,
}

impl<M: Mask> SpliceCandidates<M> {
    /// For the search from the initial state, which no segment takes over.
    pub(super) fn none() -> Self {
        SpliceCandidates { end: 0, middle: NEVER, by_event: Vec::new() }
    }

    /// Whether the search began at a guess.
    pub(super) fn is_guess(&self) -> bool {
        self.end > 0
    }

    /// Notes the active configuration after a return that none had passed before, if it is the only one.
    pub(super) fn note(&mut self, event: u32, active: &[(usize, Configuration<M>)]) {
        let is_middle =
            || event >= self.middle && self.by_event.last().is_some_and(|candidate| candidate.0 < self.middle);
        if let [(_, at)] = active
            && (event < self.end || is_middle())
        {
            self.by_event.push((event, at.clone()));
        }
    }

    /// The search has reached `furthest` and backtracks to an event. `false` if it began at a guess and no segment can meet it
    /// any more.
    pub(super) fn leave(&mut self, event: u32, furthest: u32) -> bool {
        while self.by_event.pop_if(|candidate| candidate.0 >= event).is_some() {}
        !self.is_guess() || furthest < self.end || !self.by_event.is_empty()
    }

    /// The configuration in the middle.
    fn middle(&self) -> Option<&(u32, Configuration<M>)> {
        self.by_event.last().filter(|candidate| candidate.0 >= self.middle)
    }

    /// The configurations that they keep.
    pub(super) fn configurations(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        self.by_event.iter_mut().map(|candidate| &mut candidate.1)
    }
}

/// The configurations of a segment soon after its guess.
#[derive(Debug)]
struct SegmentStart<M> {
    begin: u32,
    /// By event.
    candidates: Vec<(u32, Configuration<M>)>,
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
    first_witness: Option<PartialWitness<M>>,
    /// Events of a segment, at least.
    min_events: usize,
    /// No other search of the portfolio has begun.
    alone: bool,
}

impl<'p, M: Mask> SpeculativeSearch<'p, M> {
    /// `min_events`: the events of a segment, at least.
    pub(in crate::search::register) fn new(first: FrontierSearch<'p, M>, min_events: usize) -> Self {
        let (events, classes) = (first.open.schedule().events.len(), first.open.automaton().kinds.len());
        let segments = if classes <= MAX_CLASSES_PER_EVENT * min_events {
            (events / min_events).clamp(1, MAX_SEGMENTS)
        } else {
            1
        };
        let bounds = (1..segments).map(|segment| (events / segments * segment) as u32).chain([events as u32]).collect();
        let others = if segments > 1 { Segments::Unknown } else { Segments::Gone };
        SpeculativeSearch { first, bounds, others, first_witness: None, min_events, alone: true }
    }

    /// The other segments failed: another one may begin halfway to the end.
    fn begin_again(&mut self) {
        self.first_witness = None;
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
    fn run_first(&mut self, until: u64, memory: usize, guard: &BudgetGuard<'_>) -> Result<Option<Reached<M>>, Limit> {
        let SpeculativeSearch { first, bounds, others, alone, .. } = self;
        let in_parallel = *alone && rayon::current_num_threads() > 1;
        let ended = AtomicUsize::new(NOBODY);
        let runner = SegmentRunner::after(first, bounds, memory, guard.competing(&ended, 1));
        let (begun, second) = (OnceLock::new(), Mutex::new(None));
        let (mut witness, others_ended) = (None, AtomicBool::new(false));
        // The first thread that needs it runs the second segment to where the first one may meet it.
        let begin = || {
            let begin = || {
                let segment = runner.begin(&bounds[..2])?;
                let start = segment.start.clone();
                *second.lock().ok()? = Some(segment);
                Some(start)
            };
            begun.get_or_init(begin).as_ref()
        };
        let mut run = || {
            first.pause = bounds[0];
            let found = first.run(until, memory, guard)?;
            if found.is_some() || first.open.at < first.pause {
                return Ok((found, false));
            }
            let Some(start) = begin() else { return Ok((None, false)) };
            Ok(match first.splice(start, until, memory, guard)? {
                Splice::Finished(found) => (Some(found), false),
                Splice::Diverged => (None, false),
                Splice::NeedsWork => (None, true),
                Splice::At(steps, event) => {
                    let left = memory.saturating_sub(first.bytes());
                    // This thread would wait for the other segments, so it begins the witness.
                    if in_parallel
                        && !others_ended.load(Ordering::Relaxed)
                        && WitnessBuilder::<M>::bytes(first.open.problem()) <= left
                    {
                        witness = WitnessBuilder::up_to(first.open.problem().clone(), &steps, event);
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
                let segment = match at {
                    0 => begin().and_then(|_| second.lock().ok()?.take()),
                    _ => runner.begin(bounds),
                };
                let segment = segment.and_then(|segment| runner.end(segment));
                if segment.is_none() {
                    ended.store(0, Ordering::Relaxed);
                }
                segment
            };
            let all = bounds.par_windows(2).enumerate().map(run).collect::<Option<Vec<_>>>();
            others_ended.store(true, Ordering::Relaxed);
            all.map(|all| all.into_iter().flatten().collect())
        };
        let (found, all) = match in_parallel {
            true => rayon::join(run, run_others),
            false => (run(), second.lock().ok().and_then(|mut segment| segment.take()).map(|segment| vec![segment])),
        };
        let (found, is_met) = found?;
        if first.open.at >= bounds[0] && found.is_none() {
            match all.filter(|_| is_met) {
                Some(segments) => (*others, self.first_witness) = (Segments::Begun(segments), witness),
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
        guard: &BudgetGuard<'_>,
    ) -> Option<(Vec<Step>, Vec<SegmentBoundary<M>>)> {
        // Two segments are long: two threads can build the witness of each.
        let (mut boundaries, is_long) = (Vec::new(), self.bounds.len() == 2);
        let runner = SegmentRunner::after(&self.first, &self.bounds, memory.saturating_sub(self.first.bytes()), *guard);
        let mut bounds = self.bounds.windows(2).skip(begun.len());
        let mut begun: Vec<Segment<'p, M>> = begun.into_iter().rev().collect();
        let mut segment = begun.pop()?;
        // A segment whose second half was taken over, with the steps and boundaries before that. If that half fails, it continues
        // itself.
        let mut fallback: Option<(_, _, (usize, usize))> = None;
        loop {
            begun.extend(runner.end(segment)?.into_iter().rev());
            segment = begun.pop()?;
            let (own, following) = match segment.goal.take() {
                Some(goal) => (goal, None),
                None => {
                    let following = begun.pop().or_else(|| runner.begin(bounds.next()?))?;
                    match segment.search.splice(&following.start, runner.work, runner.memory, guard).ok()? {
                        Splice::At(steps, event) => (steps, Some((following, event))),
                        _ if following.is_half => {
                            segment = segment.undivided(following.end);
                            continue;
                        }
                        _ => {
                            begun.push(following);
                            let lengths;
                            (segment, event, lengths) = fallback.take()?;
                            steps.truncate(lengths.0);
                            boundaries.truncate(lengths.1);
                            continue;
                        }
                    }
                }
            };
            let (entered, lengths) = (event, (steps.len(), boundaries.len()));
            // It may have backtracked since and have another path.
            let candidates = &segment.search.splice_candidates.by_event;
            let index = candidates.binary_search_by_key(&event, |candidate| candidate.0).ok()?;
            let there = &candidates[index].1;
            let before = segment.search.paths.steps(there.path).len();
            let boundary = |event, there: &Configuration<M>, steps| SegmentBoundary {
                event,
                steps: lengths.0 + steps - before,
                last_overwrite_at: there.last_overwrite_at,
                linearized: there.linearized.clone(),
            };
            boundaries.push(boundary(event, there, before));
            let next = following.as_ref().map_or(NEVER, |following| following.1);
            if let Some((at, there)) = segment
                .search
                .splice_candidates
                .middle()
                .filter(|middle| is_long && (event + 1..next).contains(&middle.0))
            {
                boundaries.push(boundary(*at, there, segment.search.paths.steps(there.path).len()));
            }
            steps.extend(&own[before..]);
            match following {
                Some((following, at)) => {
                    fallback = following.is_half.then(|| (segment.undivided(following.end), entered, lengths));
                    (segment, event) = (following, at);
                }
                None => return Some((steps, boundaries)),
            }
        }
    }

    /// Runs the first segment until it, or a segment that it has met, is at the end.
    fn run_segments(
        &mut self,
        until: u64,
        memory: usize,
        guard: &BudgetGuard<'_>,
    ) -> Result<Option<Reached<M>>, Limit> {
        loop {
            match std::mem::replace(&mut self.others, Segments::Gone) {
                Segments::Unknown => {
                    self.others = Segments::Unknown;
                    let (bound, found) = (self.bounds[0], self.run_first(until, memory, guard)?);
                    if found.is_some() || self.first.open.at < bound {
                        return Ok(found);
                    }
                }
                Segments::Begun(segments) => {
                    let left = memory.saturating_sub(segments.iter().map(Segment::bytes).sum());
                    match self.first.splice(&segments[0].start, until, left, guard)? {
                        Splice::NeedsWork => {
                            self.others = Segments::Begun(segments);
                            return Ok(None);
                        }
                        Splice::Finished(found) => return Ok(Some(found)),
                        Splice::Diverged => self.begin_again(),
                        Splice::At(steps, event) => match self.take_over(steps, event, segments, memory, guard) {
                            Some((steps, boundaries)) => {
                                return Ok(Some(Reached::Goal(steps, boundaries, self.first_witness.take())));
                            }
                            None => self.begin_again(),
                        },
                    }
                }
                Segments::Gone => {
                    self.first.pause = NEVER;
                    return self.first.run(until, memory, guard);
                }
            }
        }
    }
}

impl<M: Mask> Runner for SpeculativeSearch<'_, M> {
    type Found = Reached<M>;

    fn run(&mut self, until: u64, memory: usize, guard: &BudgetGuard<'_>) -> Result<Option<Reached<M>>, Limit> {
        let found = self.run_segments(until, memory, guard);
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
    guard: BudgetGuard<'w>,
    /// Work for each segment: that of the first round of the first one, because some places are hard for each.
    work: u64,
}

impl<'p, 'w> SegmentRunner<'p, 'w> {
    fn after<M: Mask>(first: &FrontierSearch<'p, M>, bounds: &[u32], memory: usize, guard: BudgetGuard<'w>) -> Self {
        let (problem, reductions) = (first.open.problem().clone(), first.reductions);
        SegmentRunner {
            problem,
            reductions,
            // A hard segment becomes two.
            memory: memory / (2 * bounds.len()),
            guard,
            work: initial_budget(first.open.schedule().events.len()),
        }
    }

    /// Begins a segment between two events, at a guess. `None` if no guess leads on.
    fn begin<M: Mask>(&self, bounds: &[u32]) -> Option<Segment<'p, M>> {
        let (mut begin, end) = (bounds[0], bounds[1]);
        let (last, mut work) = (end.min(begin + SPLICE_WINDOW), 0);
        while begin < last && self.guard.reached().is_none() {
            let mut search = FrontierSearch::before(begin, self.problem.clone(), self.reductions, Width::Beam(1));
            search.work = work;
            search.guess();
            search.splice_candidates.middle = begin.midpoint(end);
            search.successors.most = MAX_PARTIAL_MOVES;
            let goal = match self.run(&mut search, end.min(begin + SPLICE_WINDOW))? {
                Some(Reached::Nothing(..)) => {
                    work = search.work();
                    begin = search.furthest.max(begin + MIN_GUESS_DISTANCE);
                    continue;
                }
                Some(Reached::Goal(steps, ..)) => Some(steps),
                None => None,
            };
            let start = SegmentStart {
                begin,
                candidates: search.splice_candidates.by_event.clone(),
                uses: search.uses.clone(),
            };
            return Some(Segment { start: Arc::new(start), search, end, goal, is_half: false });
        }
        None
    }

    /// Runs a segment to its end. If the next half is hard, it runs only that half, and a second segment from there on.
    ///
    /// That a half is hard is known only afterwards. An idle thread has begun the second half by then; without one, it begins
    /// only if it is needed.
    fn end<M: Mask>(&self, mut segment: Segment<'p, M>) -> Option<Vec<Segment<'p, M>>> {
        while segment.goal.is_none() && segment.search.open.at < segment.end {
            let (at, end, begun) = (segment.search.open.at, segment.end, segment.search.work());
            let half = at.midpoint(end);
            if half < at + self.problem.thresholds.half_events || segment.is_half {
                segment.goal = self.goal(&mut segment.search, end)?;
                break;
            }
            let needless = AtomicUsize::new(NOBODY);
            let runner =
                SegmentRunner { guard: self.guard.competing(&needless, 1), problem: self.problem.clone(), ..*self };
            let first = || {
                let goal = self.goal(&mut segment.search, half);
                let usual = self.problem.thresholds.hard_work_per_event * u64::from(half - at);
                let is_hard = segment.search.work() - begun > usual;
                if !is_hard || goal.is_none() {
                    needless.store(0, Ordering::Relaxed);
                }
                (goal, is_hard)
            };
            let second =
                || runner.begin(&[half, end]).and_then(|segment| runner.end(Segment { is_half: true, ..segment }));
            let ((goal, is_hard), second) = rayon::join(first, second);
            segment.goal = goal?;
            if let (None, true, Some(second)) = (&segment.goal, is_hard, second) {
                segment.end = half;
                return Some(std::iter::once(segment).chain(second).collect());
            }
        }
        Some(vec![segment])
    }

    /// Runs a search up to an event. Returns the steps to the goal if it gets there; `None` if it fails.
    fn goal<M: Mask>(&self, search: &mut FrontierSearch<'p, M>, pause: u32) -> Option<Option<Vec<Step>>> {
        match self.run(search, pause)? {
            Some(Reached::Goal(steps, ..)) => Some(Some(steps)),
            Some(Reached::Nothing(..)) => None,
            None => Some(None),
        }
    }

    /// Runs a search up to an event. `None` if a limit ends it before.
    fn run<M: Mask>(&self, search: &mut FrontierSearch<'p, M>, pause: u32) -> Option<Option<Reached<M>>> {
        search.pause = pause;
        let found = search.run(self.work, self.memory, &self.guard).ok()?;
        (found.is_some() || search.open.at >= pause).then_some(found)
    }
}

impl<M: Mask> Segment<'_, M> {
    /// Continues to an end without being divided.
    fn undivided(self, end: u32) -> Self {
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
        let (event, automaton, schedule) = (self.open.at, self.open.automaton(), self.open.schedule());
        let returns = schedule.events[event as usize..].iter().filter(|event| event.is_return());
        let mut kinds = returns.filter_map(|event| automaton.kinds.get(schedule.operation(event.of()).class as usize));
        let read = kinds.find_map(|kind| if let Kind::Read(state) = kind { Some(*state) } else { None });
        let mut at = Configuration {
            state: read.unwrap_or(automaton.initial),
            used: self.uses.first(&self.open.available),
            last_overwrite_at: event,
            path: BEGIN,
            linearized: self.open.observers.clone(),
            absorbable: M::none(schedule.slots),
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
        guard: &BudgetGuard<'_>,
    ) -> Result<Splice<M>, Limit> {
        loop {
            if let Some(found) = self.run(until, memory, guard)? {
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
        let index = other.candidates.binary_search_by_key(&self.open.at, |candidate| candidate.0).ok()?;
        let there = &other.candidates[index].1;
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
