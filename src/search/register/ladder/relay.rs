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
//! Where a guess leads to no goal, or the legs do not meet soon, the first leg goes on alone: it alone says that there is no order.
//! All this depends on the history and on counted work. On one thread the same legs are run one after the other.

use super::{Configuration, Entry, Ladder, Reached, Rung, Width};
use crate::search::budget::{NOBODY, Watch};
use crate::search::mask::Mask;
use crate::search::race::Runner;
use crate::search::register::automaton::Kind;
use crate::search::register::course::NEVER;
use crate::search::register::open::Open;
use crate::search::register::path::{BEGIN, Step};
use crate::search::register::used::Uses;
use crate::search::room;
use crate::search::schedule::first_work;
use crate::search::verdict::Limit;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(test)]
mod tests;

/// Events of a leg, at least.
pub(in crate::search) const LEG: usize = 1 << 13;

/// Classes of operations for each event of such a leg, at most: each leg has tables of them.
const CLASSES: usize = 4;

/// Legs, at most.
const LEGS: usize = 4;

/// Two legs meet within so many events, or not at all.
const MEETING: u32 = 1 << 10;

/// A guess after which so many drafts of one move are looked at was no good one.
const MOST_DRAFTS: u64 = 1 << 11;

/// A guess from which there is no way is followed by others, so many in all, within the events where legs may meet.
const GUESSES: u32 = 8;

/// Where a search that began at a guess stood at first: all places on the way of those that go on now.
#[derive(Debug)]
pub(super) struct Places<M> {
    /// Those at events before this are noted.
    end: u32,
    /// By event.
    noted: Vec<(u32, Configuration<M>)>,
}

impl<M: Mask> Places<M> {
    /// Of a search from the beginning: nobody takes it over.
    pub(super) fn none() -> Self {
        Places { end: 0, noted: Vec::new() }
    }

    /// Notes who goes on past a return that none had got past before.
    pub(super) fn note(&mut self, event: u32, going: &[(usize, Configuration<M>)]) {
        if event < self.end
            && let [(_, at)] = going
        {
            self.noted.push((event, at.clone()));
        }
    }

    /// The search, which has got to `furthest`, goes back to an event. Whether it can still be taken over, or need not be.
    pub(super) fn leave(&mut self, event: u32, furthest: u32) -> bool {
        while self.noted.pop_if(|noted| noted.0 >= event).is_some() {}
        self.end == 0 || furthest < self.end || !self.noted.is_empty()
    }

    /// The configurations that they keep.
    pub(super) fn configurations(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        self.noted.iter_mut().map(|noted| &mut noted.1)
    }
}

/// What is to be taken over: the way to the goal from a guess.
struct Rest<M> {
    begin: u32,
    /// The places of its beginning, by event, each with how many steps were taken before.
    places: Vec<(u32, usize, Configuration<M>)>,
    uses: Uses,
    steps: Vec<Step>,
}

/// A search with a beam of one, in legs where the history is long.
pub(in crate::search::register) struct Relay<'p, M> {
    first: Ladder<'p, M>,
    /// Where the others begin. Empty once it is known what comes of them.
    begins: Vec<u32>,
    rest: Option<Rest<M>>,
}

impl<'p, M: Mask> Relay<'p, M> {
    /// In legs of at least so many events.
    pub(in crate::search::register) fn new(first: Ladder<'p, M>, leg: usize) -> Self {
        let (events, classes) = (first.open.course().events.len(), first.open.automaton().kinds.len());
        let legs = if classes <= CLASSES * leg { (events / leg).clamp(1, LEGS) } else { 1 };
        Relay { first, begins: (1..legs).map(|leg| (events / legs * leg) as u32).collect(), rest: None }
    }

    /// Runs the first leg to where the second begins, and the others: in the first round beside it, as nobody else needs room.
    fn run_legs(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Reached<M>>, Limit> {
        let Relay { first, begins, rest } = self;
        let (problem, reductions) = (first.open.problem().clone(), first.reductions);
        let begin = || Ladder::new(problem.clone(), reductions, Width::Beam(1));
        let ended = AtomicUsize::new(NOBODY);
        let bounds: Vec<u32> = begins.iter().copied().chain([first.open.course().events.len() as u32]).collect();
        let legs = |memory: usize| Leg::run_all(&begin, &bounds, memory / begins.len(), watch, &ended);
        first.pause = begins[0];
        let (found, others) = if first.work() == 0 {
            let run_first = || {
                let found = first.run(until, memory, watch);
                if first.open.at < first.pause {
                    ended.store(0, Ordering::Relaxed);
                }
                found
            };
            rayon::join(run_first, || legs(memory))
        } else {
            let found = first.run(until, memory, watch);
            let others = if first.open.at < first.pause { None } else { legs(memory.saturating_sub(first.bytes())) };
            (found, others)
        };
        if first.open.at >= first.pause {
            *rest = others;
            begins.clear();
        }
        found
    }
}

impl<M: Mask> Runner for Relay<'_, M> {
    type Found = Reached<M>;

    fn run(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Reached<M>>, Limit> {
        if !self.begins.is_empty() {
            let found = self.run_legs(until, memory, watch)?;
            if found.is_some() || !self.begins.is_empty() {
                return Ok(found);
            }
        }
        if let Some(rest) = &self.rest {
            let memory = memory.saturating_sub(room::bytes(&rest.steps) + rest.uses.bytes());
            let found = self.first.take_over(rest, until, memory, watch)?;
            if found.is_some() || self.first.work() >= until {
                return Ok(found);
            }
            self.rest = None;
        }
        self.first.pause = NEVER;
        self.first.run(until, memory, watch)
    }
}

/// A leg that got to where the next one begins, or to the goal, by these steps.
struct Leg<'p, M> {
    begin: u32,
    ladder: Ladder<'p, M>,
    goal: Option<Vec<Step>>,
}

impl<'p, M: Mask> Leg<'p, M> {
    /// Runs a leg from a guess. `None`: nothing comes of it.
    fn run(
        new: &impl Fn() -> Ladder<'p, M>,
        (begin, end): (u32, u32),
        memory: usize,
        watch: &Watch<'_>,
    ) -> Result<Option<Self>, Limit> {
        for begin in (0..GUESSES).map(|guess| begin + guess * (MEETING / 32)).take_while(|&begin| begin < end) {
            if let Some(limit) = watch.reached() {
                return Err(limit);
            }
            let mut ladder = new();
            let until = ladder.first_work();
            ladder.guess(begin);
            ladder.moves.most = MOST_DRAFTS;
            ladder.pause = end.min(begin + MEETING);
            if let Some(Reached::Nothing(..)) = ladder.run(until, memory, watch)? {
                continue;
            }
            ladder.pause = end;
            return Ok(match ladder.run(until, memory, watch)? {
                Some(Reached::Goal(steps, _)) => Some(Leg { begin, ladder, goal: Some(steps) }),
                None if ladder.open.at >= end => Some(Leg { begin, ladder, goal: None }),
                _ => None,
            });
        }
        Ok(None)
    }

    /// Runs the legs between these events side by side, and takes them together. `None`: one of them came to nothing, or they
    /// are not needed any more, for which `ended` stands.
    fn run_all(
        new: &(impl Fn() -> Ladder<'p, M> + Sync),
        bounds: &[u32],
        memory: usize,
        watch: &Watch<'_>,
        ended: &AtomicUsize,
    ) -> Option<Rest<M>> {
        let watch = watch.among(ended, 1);
        let run = |leg: &[u32]| {
            let leg = Leg::run(new, (leg[0], leg[1]), memory, &watch).ok().flatten();
            if leg.is_none() {
                ended.store(0, Ordering::Relaxed);
            }
            leg
        };
        let legs: Vec<Leg<'p, M>> = bounds.par_windows(2).map(run).collect::<Option<_>>()?;
        let mut rest = None;
        for Leg { begin, mut ladder, mut goal } in legs.into_iter().rev() {
            if let (None, Some(rest)) = (&goal, &rest)
                && let Ok(Some(Reached::Goal(steps, _))) = ladder.take_over(rest, ladder.first_work(), memory, &watch)
            {
                goal = Some(steps);
            }
            let Ladder { places, uses, paths, .. } = ladder;
            let noted = places.noted.into_iter();
            let places = noted.map(|(event, at)| (event, paths.steps(at.path).len(), at)).collect();
            rest = Some(Rest { begin, places, uses, steps: goal? });
        }
        rest
    }
}

impl<M: Mask> Ladder<'_, M> {
    /// How much work a leg is worth: as much as the first one may do in the first round, for some places are hard for each.
    fn first_work(&self) -> u64 {
        first_work(self.open.course().events.len())
    }

    /// Begins at a guess: what is open may have happened, writes of it right before the last one, and the register holds what a
    /// read is the next to say.
    fn guess(&mut self, event: u32) {
        self.open = Open::new(self.open.problem().clone(), event);
        let (automaton, course) = (self.open.automaton(), self.open.course());
        let returns = course.events[event as usize..].iter().filter(|event| event.is_return());
        let mut kinds = returns.filter_map(|event| automaton.kinds.get(course.operation(event.of()).class as usize));
        let read = kinds.find_map(|kind| if let Kind::Read(state) = kind { Some(*state) } else { None });
        let at = Configuration {
            state: read.unwrap_or(automaton.initial),
            used: self.uses.first(&self.open.offered),
            gap: event,
            path: BEGIN,
            done: self.open.observers.clone(),
            idle: M::none(course.slots),
        };
        self.rungs = vec![Rung::new(event, vec![Entry { at: at.clone(), optional: 0, waits: false }])];
        self.going = vec![(0, at)];
        self.furthest = event;
        self.places.end = event + MEETING;
    }

    /// Goes on to where it stands where another leg stood, and takes over the rest of the way. `None`: they do not meet, or more
    /// work is needed.
    fn take_over(
        &mut self,
        rest: &Rest<M>,
        until: u64,
        memory: usize,
        watch: &Watch<'_>,
    ) -> Result<Option<Reached<M>>, Limit> {
        loop {
            if let Some(found) = self.run(until, memory, watch)? {
                return Ok(Some(found));
            }
            if self.open.at < self.pause {
                return Ok(None);
            }
            if let Some(steps) = self.meet(rest) {
                return Ok(Some(Reached::Goal(steps, PhantomData)));
            }
            if self.open.at >= rest.begin + MEETING {
                return Ok(None);
            }
            self.pause = self.open.at + 1;
        }
    }

    /// The steps to the goal, if one of those that go on stands where another leg stood.
    fn meet(&self, rest: &Rest<M>) -> Option<Vec<Step>> {
        let place = rest.places.binary_search_by_key(&self.open.at, |place| place.0).ok()?;
        let (_, before, there) = &rest.places[place];
        let meets = |at: &Configuration<M>| {
            (at.state, at.gap) == (there.state, there.gap)
                && at.done == there.done
                && at.idle == there.idle
                && self.uses.is_within_of(at.used, &rest.uses, there.used)
        };
        let (_, at) = self.going.iter().find(|(_, at)| meets(at))?;
        let mut steps = self.paths.steps(at.path);
        steps.extend(&rest.steps[*before..]);
        Some(steps)
    }
}
