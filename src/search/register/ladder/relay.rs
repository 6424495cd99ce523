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

use super::{Configuration, Entry, Ladder, Reached, Rung};
use crate::search::budget::{NOBODY, Watch};
use crate::search::mask::Mask;
use crate::search::race::Runner;
use crate::search::register::Problem;
use crate::search::register::automaton::Kind;
use crate::search::register::course::NEVER;
use crate::search::register::open::Open;
use crate::search::register::path::{BEGIN, Step};
use crate::search::register::reductions::Reductions;
use crate::search::register::reductions::Width;
use crate::search::register::replay::{Made, Replay, Seam};
use crate::search::register::used::{UNUSED, Uses};
use crate::search::schedule::first_work;
use crate::search::verdict::Limit;
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

#[cfg(test)]
mod tests;

/// Classes of operations for each event of such a leg, at most: each leg has tables of them.
const CLASSES: usize = 4;

/// Legs, at most.
const LEGS: usize = 4;

/// Two legs meet within so many events, or not at all.
const MEETING: u32 = 1 << 10;

/// Half of a leg is hard that does more work than this for each event: mostly it is two.
const HARD: u64 = if cfg!(test) { 2 } else { 4 };

/// Halves have so many events, at least.
const SHORT: u32 = if cfg!(test) { 1 << 6 } else { 1 << 11 };

/// A guess after which so many drafts of one move are looked at was no good one.
const MOST_DRAFTS: u64 = 1 << 11;

/// A guess from which there is no way is followed by another one where that ended, or so many events later, within those where legs
/// may meet.
const NEXT_GUESS: u32 = 1 << 5;

/// Where a search that began at a guess stood at first, and once in the middle: all places on the way of those that go on now.
#[derive(Debug)]
pub(super) struct Places<M> {
    /// Those at events before this are noted.
    end: u32,
    /// And one from here on.
    middle: u32,
    /// By event.
    noted: Vec<(u32, Configuration<M>)>,
}

impl<M: Mask> Places<M> {
    /// Of a search from the beginning: nobody takes it over.
    pub(super) fn none() -> Self {
        Places { end: 0, middle: NEVER, noted: Vec::new() }
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
struct Beginning<M> {
    begin: u32,
    /// By event.
    places: Vec<(u32, Configuration<M>)>,
    uses: Uses,
}

/// How a search comes to where another one stood.
enum Meeting<M> {
    /// More work is needed.
    Later,
    /// It came to an end before.
    End(Reached<M>),
    /// It does not, soon enough.
    Never,
    /// By these steps, at this event.
    At(Vec<Step>, u32),
}

/// A search from a guess, that has begun or is at its end.
struct Leg<'p, M> {
    beginning: Arc<Beginning<M>>,
    ladder: Ladder<'p, M>,
    /// Where the next one begins, or the end.
    end: u32,
    /// The steps to the goal, of one that got there.
    goal: Option<Vec<Step>>,
    /// No half of it is another one: it is the second half of one itself, or that one came to nothing.
    is_half: bool,
}

/// What is known of the legs after the first.
enum Others<'p, M> {
    /// Nothing: the first has not come to where the second begins.
    Unknown,
    /// The second has begun, or all are at their ends.
    Begun(Vec<Leg<'p, M>>),
    /// They come to nothing, or are not needed any more.
    Gone,
}

/// A search with a beam of one, in legs where the history is long.
pub(in crate::search::register) struct Relay<'p, M> {
    first: Ladder<'p, M>,
    /// Where the others begin, and the end.
    bounds: Vec<u32>,
    others: Others<'p, M>,
    /// What comes of the steps of the first one, up to where it has met the second.
    made: Option<Made<M>>,
    /// Events of a leg, at least.
    leg: usize,
    /// Nobody else runs beside it.
    alone: bool,
}

impl<'p, M: Mask> Relay<'p, M> {
    /// In legs of at least so many events.
    pub(in crate::search::register) fn new(first: Ladder<'p, M>, leg: usize) -> Self {
        let (events, classes) = (first.open.course().events.len(), first.open.automaton().kinds.len());
        let legs = if classes <= CLASSES * leg { (events / leg).clamp(1, LEGS) } else { 1 };
        let bounds = (1..legs).map(|leg| (events / legs * leg) as u32).chain([events as u32]).collect();
        let others = if legs > 1 { Others::Unknown } else { Others::Gone };
        Relay { first, bounds, others, made: None, leg, alone: true }
    }

    /// The others came to nothing: another one may begin halfway to the end.
    fn begin_again(&mut self) {
        self.made = None;
        // How far the first one is by now depends on threads; it is not farther than this.
        let (at, end) = (self.bounds[0] + 2 * MEETING, self.first.open.course().events.len() as u32);
        if at as usize + self.leg / 2 <= end as usize {
            self.bounds = vec![at.midpoint(end), end];
            self.others = Others::Unknown;
        } else {
            self.others = Others::Gone;
        }
    }

    /// Runs the first leg to where the second begins and until it has met that one; and the others, where a thread may be idle.
    fn run_first(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Reached<M>>, Limit> {
        let Relay { first, bounds, others, alone, .. } = self;
        let beside = *alone && rayon::current_num_threads() > 1;
        let ended = AtomicUsize::new(NOBODY);
        let legs = Legs::after(first, bounds, memory, watch.among(&ended, 1));
        let (begun, second) = (OnceLock::new(), Mutex::new(None));
        let (mut made, are_through) = (None, AtomicBool::new(false));
        // Whoever needs it first runs the second leg to where the first one may meet it.
        let begin = || {
            let begin = || {
                let leg = legs.begin(&bounds[..2])?;
                let beginning = leg.beginning.clone();
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
            Ok(match first.meet(beginning, until, memory, watch)? {
                Meeting::End(found) => (Some(found), false),
                Meeting::Never => (None, false),
                Meeting::Later => (None, true),
                Meeting::At(steps, event) => {
                    let left = memory.saturating_sub(first.bytes());
                    // Who would wait for the others begins to make an order.
                    if beside
                        && !are_through.load(Ordering::Relaxed)
                        && Replay::<M>::bytes(first.open.problem()) <= left
                    {
                        made = Replay::up_to(first.open.problem().clone(), &steps, event);
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
                Some(legs) => (*others, self.made) = (Others::Begun(legs), made),
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
        begun: Vec<Leg<'p, M>>,
        memory: usize,
        watch: &Watch<'_>,
    ) -> Option<(Vec<Step>, Vec<Seam<M>>)> {
        // Of two legs, each is as long as what two threads make an order of at once.
        let (mut seams, is_long) = (Vec::new(), self.bounds.len() == 2);
        let legs = Legs::after(&self.first, &self.bounds, memory.saturating_sub(self.first.bytes()), *watch);
        let mut bounds = self.bounds.windows(2).skip(begun.len());
        let mut begun: Vec<Leg<'p, M>> = begun.into_iter().rev().collect();
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
                    match leg.ladder.meet(&following.beginning, legs.work, legs.memory, watch).ok()? {
                        Meeting::At(steps, event) => (steps, Some((following, event))),
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
            let places = &leg.ladder.places.noted;
            let place = places.binary_search_by_key(&event, |place| place.0).ok()?;
            let there = &places[place].1;
            let before = leg.ladder.paths.steps(there.path).len();
            let seam = |event, there: &Configuration<M>, steps| Seam {
                event,
                steps: taken.0 + steps - before,
                gap: there.gap,
                done: there.done.clone(),
            };
            seams.push(seam(event, there, before));
            let next = following.as_ref().map_or(NEVER, |following| following.1);
            if let Some((at, there)) =
                leg.ladder.places.middle().filter(|middle| is_long && (event + 1..next).contains(&middle.0))
            {
                seams.push(seam(*at, there, leg.ladder.paths.steps(there.path).len()));
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
    fn relay(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Reached<M>>, Limit> {
        loop {
            match std::mem::replace(&mut self.others, Others::Gone) {
                Others::Unknown => {
                    self.others = Others::Unknown;
                    let (bound, found) = (self.bounds[0], self.run_first(until, memory, watch)?);
                    if found.is_some() || self.first.open.at < bound {
                        return Ok(found);
                    }
                }
                Others::Begun(legs) => {
                    let left = memory.saturating_sub(legs.iter().map(Leg::bytes).sum());
                    match self.first.meet(&legs[0].beginning, until, left, watch)? {
                        Meeting::Later => {
                            self.others = Others::Begun(legs);
                            return Ok(None);
                        }
                        Meeting::End(found) => return Ok(Some(found)),
                        Meeting::Never => self.begin_again(),
                        Meeting::At(steps, event) => match self.take_over(steps, event, legs, memory, watch) {
                            Some((steps, seams)) => return Ok(Some(Reached::Goal(steps, seams, self.made.take()))),
                            None => self.begin_again(),
                        },
                    }
                }
                Others::Gone => {
                    self.first.pause = NEVER;
                    return self.first.run(until, memory, watch);
                }
            }
        }
    }
}

impl<M: Mask> Runner for Relay<'_, M> {
    type Found = Reached<M>;

    fn run(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Reached<M>>, Limit> {
        let found = self.relay(until, memory, watch);
        self.alone = false;
        found
    }
}

/// How the legs after the first are run.
struct Legs<'p, 'w> {
    problem: Arc<Problem<'p>>,
    reductions: Reductions,
    /// For each.
    memory: usize,
    watch: Watch<'w>,
    /// For each: as much as the first one may do in the first round, for some places are hard for each.
    work: u64,
}

impl<'p, 'w> Legs<'p, 'w> {
    fn after<M: Mask>(first: &Ladder<'p, M>, bounds: &[u32], memory: usize, watch: Watch<'w>) -> Self {
        let (problem, reductions) = (first.open.problem().clone(), first.reductions);
        Legs {
            problem,
            reductions,
            // A hard one is two.
            memory: memory / (2 * bounds.len()),
            watch,
            work: first_work(first.open.course().events.len()),
        }
    }

    /// Begins one between two events, at a guess. `None`: nothing comes of it.
    fn begin<M: Mask>(&self, bounds: &[u32]) -> Option<Leg<'p, M>> {
        let (mut begin, end) = (bounds[0], bounds[1]);
        let (last, mut work) = (end.min(begin + MEETING), 0);
        while begin < last && self.watch.reached().is_none() {
            let mut ladder = Ladder::before(begin, self.problem.clone(), self.reductions, Width::Beam(1));
            ladder.work = work;
            ladder.guess();
            ladder.places.middle = begin.midpoint(end);
            ladder.moves.most = MOST_DRAFTS;
            let goal = match self.run(&mut ladder, end.min(begin + MEETING))? {
                Some(Reached::Nothing(..)) => {
                    work = ladder.work();
                    begin = ladder.furthest.max(begin + NEXT_GUESS);
                    continue;
                }
                Some(Reached::Goal(steps, ..)) => Some(steps),
                None => None,
            };
            let beginning = Beginning { begin, places: ladder.places.noted.clone(), uses: ladder.uses.clone() };
            return Some(Leg { beginning: Arc::new(beginning), ladder, end, goal, is_half: false });
        }
        None
    }

    /// Runs one to its end, or where the next half of it is hard to there, and another one from there on.
    ///
    /// What is hard is known only behind it. A thread that was idle has begun the other one by then; where none was, it is begun only if
    /// it is needed.
    fn end<M: Mask>(&self, mut leg: Leg<'p, M>) -> Option<Vec<Leg<'p, M>>> {
        while leg.goal.is_none() && leg.ladder.open.at < leg.end {
            let (at, end, begun) = (leg.ladder.open.at, leg.end, leg.ladder.work());
            let half = at.midpoint(end);
            if half < at + SHORT || leg.is_half {
                leg.goal = self.goal(&mut leg.ladder, end)?;
                break;
            }
            let needless = AtomicUsize::new(NOBODY);
            let legs = Legs { watch: self.watch.among(&needless, 1), problem: self.problem.clone(), ..*self };
            let first = || {
                let goal = self.goal(&mut leg.ladder, half);
                let is_hard = leg.ladder.work() - begun > HARD * u64::from(half - at);
                if !is_hard || goal.is_none() {
                    needless.store(0, Ordering::Relaxed);
                }
                (goal, is_hard)
            };
            let second = || legs.begin(&[half, end]).and_then(|leg| legs.end(Leg { is_half: true, ..leg }));
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
    fn goal<M: Mask>(&self, ladder: &mut Ladder<'p, M>, pause: u32) -> Option<Option<Vec<Step>>> {
        match self.run(ladder, pause)? {
            Some(Reached::Goal(steps, ..)) => Some(Some(steps)),
            Some(Reached::Nothing(..)) => None,
            None => Some(None),
        }
    }

    /// Runs one up to an event.
    fn run<M: Mask>(&self, ladder: &mut Ladder<'p, M>, pause: u32) -> Option<Option<Reached<M>>> {
        ladder.pause = pause;
        let found = ladder.run(self.work, self.memory, &self.watch).ok()?;
        (found.is_some() || ladder.open.at >= pause).then_some(found)
    }
}

impl<M: Mask> Leg<'_, M> {
    /// It goes on to an end, and no half of it is another one any more.
    fn alone(self, end: u32) -> Self {
        Leg { end, is_half: true, ..self }
    }

    fn bytes(&self) -> usize {
        self.ladder.bytes() + self.beginning.uses.bytes()
    }
}

impl<M: Mask> Ladder<'_, M> {
    /// Begins at a guess: what is open may have happened, writes of it right before the last one, and the register holds what a
    /// read is the next to say.
    fn guess(&mut self) {
        let (event, automaton, course) = (self.open.at, self.open.automaton(), self.open.course());
        let returns = course.events[event as usize..].iter().filter(|event| event.is_return());
        let mut kinds = returns.filter_map(|event| automaton.kinds.get(course.operation(event.of()).class as usize));
        let read = kinds.find_map(|kind| if let Kind::Read(state) = kind { Some(*state) } else { None });
        let mut at = Configuration {
            state: read.unwrap_or(automaton.initial),
            used: self.uses.first(&self.open.offered),
            gap: event,
            path: BEGIN,
            done: self.open.observers.clone(),
            idle: M::none(course.slots),
        };
        forget_spent(&mut at, &self.open, &mut self.uses, self.reductions);
        self.rungs = vec![Rung::new(event, vec![Entry { at: at.clone(), optional: 0, waits: false }])];
        self.going = vec![(0, at)];
        self.furthest = event;
        self.places.end = event + MEETING;
    }

    /// Goes on to where it stands where another leg stood.
    fn meet(
        &mut self,
        other: &Beginning<M>,
        until: u64,
        memory: usize,
        watch: &Watch<'_>,
    ) -> Result<Meeting<M>, Limit> {
        loop {
            if let Some(found) = self.run(until, memory, watch)? {
                return Ok(Meeting::End(found));
            }
            if self.open.at < self.pause {
                return Ok(Meeting::Later);
            }
            if let Some(path) = self.stands_at(other) {
                return Ok(Meeting::At(self.paths.steps(path), self.open.at));
            }
            if self.open.at >= other.begin + MEETING {
                return Ok(Meeting::Never);
            }
            self.pause = self.open.at + 1;
        }
    }

    /// The way to where another leg stood, of one of those that go on.
    fn stands_at(&mut self, other: &Beginning<M>) -> Option<u32> {
        let place = other.places.binary_search_by_key(&self.open.at, |place| place.0).ok()?;
        let there = &other.places[place].1;
        let (open, uses, reductions) = (&self.open, &mut self.uses, self.reductions);
        let mut meets = |at: &Configuration<M>| {
            let mut at = at.clone();
            (at.state, at.gap) == (there.state, there.gap) && at.done == there.done && at.idle == there.idle && {
                forget_spent(&mut at, open, uses, reductions);
                uses.is_within_of(at.used, &other.uses, there.used)
            }
        };
        self.going.iter().map(|(_, at)| at).find(|at| meets(at)).map(|at| at.path)
    }
}

/// Forgets all uses of optional operations that nothing can come of any more.
fn forget_spent<M: Mask>(at: &mut Configuration<M>, open: &Open<'_, M>, uses: &mut Uses, reductions: Reductions) {
    if reductions.supply && at.used != UNUSED {
        let spent: Vec<u32> = uses.classes(at.used).filter(|&optional| open.is_spent(optional, at, uses)).collect();
        if !spent.is_empty() {
            at.used = uses.without(at.used, &spent);
        }
    }
}
