//! The search: from return to return, with as many configurations at a time as it is allowed, and back where none is left.
//!
//! A *rung* holds the configurations that got past one return. With no bound on how many go on at a time this is a search breadth
//! first, one rung at a time; with a small one it is a beam that never begins again: what was not taken waits on its rung, and
//! when all configurations that went on have ended, the search goes on from those that wait, the nearer rungs first. It ends when
//! one reaches the goal, or none waits anywhere: then no order exists. A configuration is given up where another one on the same
//! rung can do whatever it can, taken or waiting: so nothing is refuted twice. Rungs far back are folded: see [`fold`].

use super::Problem;
use super::automaton::{Kind, OTHER};
use super::configuration::Configuration;
use super::course::NEVER;
use super::moves::{Finder, Moves};
use super::open::{Open, Passed};
use super::path::{BEGIN, Paths, Step};
use super::reductions::{Reductions, Width};
use super::replay::{Made, Seam};
use super::used::{UNUSED, Uses};
use crate::search::budget::Watch;
use crate::search::mask::Mask;
use crate::search::race::{Outcome, Runner};
use crate::search::room;
use crate::search::schedule::{Dead, first_work};
use crate::search::verdict::Limit;
use fold::{Fold, Stretches};
use relay::Places;
use std::sync::Arc;

mod fold;
mod layer;
mod relay;
#[cfg(test)]
mod tests;

pub(super) use relay::Relay;

/// How a search up to a goal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reached<M> {
    /// The steps of an order that explains every answer before the goal; places between them, and what comes of those before the
    /// first, which an order is sooner made of.
    Goal(Vec<Step>, Vec<Seam<M>>, Option<Made<M>>),
    /// No order does.
    Nothing(Dead, Furthest),
}

/// What a search that came to nothing knows of how far an order gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Furthest {
    /// By these steps to [`Dead::reached`]; none gets further.
    Steps(Vec<Step>),
    /// Something was given up for what was still to come: perhaps further.
    Doubtful,
    /// Nothing that another search would say as well.
    Unknown,
}

impl<M: Send> Outcome for Reached<M> {
    fn is_settled(&self) -> bool {
        matches!(self, Reached::Nothing(..))
    }
}

/// So many rounds of a race are worth knowing how far an order gets.
pub(super) const ROUNDS: u32 = 2;

/// A configuration on a rung.
#[derive(Debug)]
struct Entry<M> {
    at: Configuration<M>,
    /// How many optional operations its next moves use at least; see [`most_optional`].
    optional: u32,
    waits: bool,
}

/// How many optional operations moves use at most that use at least so many: 0, 1 and so on to 7, 8 to 15, 16 to 31 and so on. Of
/// those that use one more there may be ten times as many; where the most that are ever used are many, there are few of each.
fn most_optional(least: u32) -> u32 {
    if least < 8 { least } else { 2 * least - 1 }
}

/// The configurations that got past a return.
#[derive(Debug)]
struct Rung<M> {
    /// The event after the return.
    event: u32,
    entries: Vec<Entry<M>>,
    waiting: u32,
    /// What several rungs are made again from for which it stands: all of their waiting ones, and no entries.
    fold: Option<Box<Fold<M>>>,
}

impl<M> Rung<M> {
    fn new(event: u32, entries: Vec<Entry<M>>) -> Self {
        Rung { event, entries, waiting: 0, fold: None }
    }

    /// All that it keeps.
    fn configurations(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        let folded = self.fold.iter_mut().flat_map(|fold| fold.begins());
        self.entries.iter_mut().map(|entry| &mut entry.at).chain(folded)
    }
}

/// Forgets the state of a configuration past a return, if nothing that is left can tell it from others.
fn forget_state<M: Mask>(at: &mut Configuration<M>, reductions: Reductions, open: &Open<'_, M>, uses: &Uses) {
    if reductions.forgotten_states
        && at.state != OTHER
        && !open.is_useful(at.state, at, uses)
        && !open.is_shunned(at.state, at)
    {
        at.state = OTHER;
    }
}

/// One search.
pub(super) struct Ladder<'p, M> {
    open: Open<'p, M>,
    reductions: Reductions,
    width: Width,
    uses: Uses,
    paths: Paths,
    rungs: Vec<Rung<M>>,
    stretches: Stretches<M>,
    /// Room for the entries of new ones.
    spare: Vec<Vec<Entry<M>>>,
    /// The rung of those that go on.
    here: usize,
    /// Which entries go on, and what has become of them since.
    going: Vec<(usize, Configuration<M>)>,
    moves: Moves<M>,
    waiting: usize,
    /// How many configurations are on all rungs, and what each holds beyond its own size.
    entries: usize,
    heap: usize,
    /// How many there is room for.
    room: usize,
    /// How far any came, by which path, and how often all ended since one came so far.
    furthest: u32,
    longest: u32,
    failures: u32,
    /// Something was forgotten: that nothing is left proves nothing.
    incomplete: bool,
    work: u64,
    /// The work done when the limits were last looked at.
    looked: u64,
    /// Where it waits for somebody else.
    pause: u32,
    places: Places<M>,
}

impl<'p, M: Mask> Ladder<'p, M> {
    pub(super) fn new(problem: Arc<Problem<'p>>, reductions: Reductions, width: Width) -> Self {
        Ladder::before(0, problem, reductions, width)
    }

    /// One that knows what is open before an event.
    fn before(event: u32, problem: Arc<Problem<'p>>, reductions: Reductions, width: Width) -> Self {
        let (automaton, course) = (&problem.automaton, &problem.course);
        let first = Configuration {
            state: automaton.initial,
            used: UNUSED,
            gap: 0,
            path: BEGIN,
            done: M::none(course.slots),
            idle: M::none(course.slots),
        };
        Ladder {
            open: Open::new(problem.clone(), event),
            reductions,
            width,
            uses: Uses::new(),
            paths: Paths::default(),
            rungs: vec![Rung::new(0, vec![Entry { at: first.clone(), optional: 0, waits: false }])],
            stretches: Stretches::default(),
            spare: Vec::new(),
            here: 0,
            going: vec![(0, first)],
            moves: Moves::default(),
            waiting: 0,
            entries: 1,
            room: 1,
            heap: 2 * M::none(course.slots).heap_bytes(),
            furthest: 0,
            longest: BEGIN,
            failures: 0,
            incomplete: false,
            work: 0,
            looked: 0,
            pause: NEVER,
            places: Places::none(),
        }
    }

    /// What was done so far: configurations and drafts looked at.
    fn work(&self) -> u64 {
        self.work + self.moves.work
    }

    /// What is invoked and changes nothing happens at once where it can.
    fn invoke(&mut self, slot: u32) {
        let kind = self.open.kind(slot);
        for (_, at) in &mut self.going {
            let happens = match kind {
                Kind::Read(state) => at.state == state,
                Kind::FailedCas(state) => at.state != state,
                Kind::Write(_) | Kind::Cas(..) | Kind::Append => false,
            };
            if happens {
                at.done.add(slot);
            }
        }
        self.work += self.going.len() as u64 / 4;
    }

    /// Takes those that go on past a return.
    fn pass(&mut self, slot: u32, memory: usize, watch: &Watch<'_>) -> Result<(), Limit> {
        self.work += self.going.len() as u64 / 4;
        let first = self.open.at > self.furthest;
        if first {
            self.furthest = self.open.at;
            self.longest = self.going[0].1.path;
            self.failures = 0;
            self.moves.suspicion.clear();
        }
        if self.going.iter().all(|(_, at)| at.done.has(slot)) {
            self.going.iter_mut().for_each(|(_, at)| at.done.remove(slot));
            return Ok(());
        }
        self.next_rung(watch)?;
        let begun = if self.is_wide() { self.pass_side_by_side(slot, memory, watch)? } else { 0 };
        let others = self.bytes() - self.moves.bytes() - self.uses.bytes();
        for turn in begun..self.going.len() {
            let (entry, mut from) = self.going[turn].clone();
            if from.done.has(slot) {
                from.done.remove(slot);
                self.keep(self.here + 1, from, &[]);
            } else {
                self.go_on(entry, &from, slot, memory.saturating_sub(others), watch)?;
            }
            self.look(memory, watch)?;
        }
        let next = self.here + 1;
        self.here = next;
        if self.waiting == self.rungs[next].waiting as usize {
            self.stretches.forget(next);
            for mut rung in self.rungs.drain(..next) {
                self.entries -= rung.entries.len();
                self.stretches.unfolded(rung.fold.take());
                rung.entries.clear();
                match self.spare.len() {
                    0..2 if rung.entries.capacity() <= 64 => self.spare.push(rung.entries),
                    _ => self.room -= rung.entries.capacity(),
                }
            }
            self.here = 0;
        } else {
            // It stays, perhaps to the end: half a million of them do.
            let entries = &mut self.rungs[next - 1].entries;
            self.room -= entries.capacity();
            entries.shrink_to_fit();
            self.room += entries.capacity();
        }
        self.choose();
        if first {
            self.places.note(self.rungs[self.here].event, &self.going);
            self.mark();
        }
        Ok(())
    }

    /// Keeps what a configuration comes to past the return of a slot on the next rung.
    fn go_on(
        &mut self,
        entry: usize,
        from: &Configuration<M>,
        slot: u32,
        memory: usize,
        watch: &Watch<'_>,
    ) -> Result<(), Limit> {
        let mut least = self.rungs[self.here].entries[entry].optional;
        loop {
            let finder = Finder {
                open: &self.open,
                uses: &mut self.uses,
                moves: &mut self.moves,
                reductions: self.reductions,
                from,
                slot,
                optional: (least, most_optional(least)),
            };
            let more = finder.find(memory, watch)?;
            let moves = std::mem::take(&mut self.moves);
            let (mut kept, mut looked) = (Ok(()), self.work);
            for found in &moves.found {
                self.keep(self.here + 1, found.to.clone(), moves.steps(found));
                // Thousands that are held against thousands take seconds.
                if self.work - looked > 1024 {
                    looked = self.work;
                    kept = watch.reached().map_or(Ok(()), Err);
                    if kept.is_err() {
                        break;
                    }
                }
            }
            self.moves = moves;
            kept?;
            if !more {
                return Ok(());
            }
            least = most_optional(least) + 1;
            if self.width != Width::Everything {
                self.wait(entry, least);
                return Ok(());
            }
        }
    }

    /// One of those that went on waits for its next moves, which use at least so many optional operations.
    fn wait(&mut self, entry: usize, least: u32) {
        let rung = &mut self.rungs[self.here];
        rung.entries[entry].optional = least;
        rung.entries[entry].waits = true;
        rung.waiting += 1;
        self.waiting += 1;
    }

    /// Makes room for those that get past this return.
    fn next_rung(&mut self, watch: &Watch<'_>) -> Result<(), Limit> {
        let (next, event) = (self.here + 1, self.open.at + 1);
        if self.rungs.get(next).is_none_or(|rung| rung.event != event) {
            let entries = self.spare.pop().unwrap_or_default();
            self.rungs.insert(next, Rung::new(event, entries));
        }
        self.unfold(next, watch).map(|_| ())
    }

    /// Keeps a configuration on a rung, unless another one there stands for it.
    fn keep(&mut self, rung: usize, mut at: Configuration<M>, steps: &[Step]) {
        forget_state(&mut at, self.reductions, &self.open, &self.uses);
        self.keep_beside(rung, at, steps, &mut 0, true);
    }

    /// The same of one whose state is forgotten if it can be, and for which none of the first `seen` there stands; and whether it may
    /// stand for one of them.
    fn keep_beside(&mut self, rung: usize, mut at: Configuration<M>, steps: &[Step], seen: &mut usize, stands: bool) {
        self.count_keeping(rung);
        let (open, uses) = (&self.open, &self.uses);
        let rung = &mut self.rungs[rung];
        let within = |less: u32, more: u32| uses.is_within(less, more);
        let stands_for_it = |kept: &Entry<M>| match self.reductions.dominance {
            true => kept.at.dominates(&at, open, within),
            false => kept.at.is_same(&at),
        };
        if rung.entries[*seen..].iter().any(stands_for_it) {
            return;
        }
        if self.reductions.dominance && rung.waiting > 0 {
            let before = rung.entries.len();
            let falls = |kept: &mut Entry<M>| kept.waits && at.dominates(&kept.at, open, within);
            if stands {
                *seen -= rung.entries.extract_if(..*seen, falls).count();
            }
            rung.entries.extract_if(*seen.., falls).for_each(drop);
            rung.waiting -= (before - rung.entries.len()) as u32;
            self.entries -= before - rung.entries.len();
            self.waiting -= before - rung.entries.len();
        }
        at.path = self.paths.extend(at.path, steps);
        // Most rungs hold one.
        let full = rung.entries.len() == rung.entries.capacity() && rung.entries.len() < 8;
        let few = if full { rung.entries.len().max(1) } else { 0 };
        rung.entries.reserve_exact(few);
        self.room += few + room::push(&mut rung.entries, Entry { at, optional: 0, waits: true });
        self.entries += 1;
        rung.waiting += 1;
        self.waiting += 1;
    }

    /// Looking at what a new one is held against on a rung is work: a cache line is about a unit.
    fn count_keeping(&mut self, rung: usize) {
        self.work += (size_of_val(&*self.rungs[rung].entries) / 64) as u64 + 1;
    }

    /// Those that go on from this rung: the best of those that wait.
    fn choose(&mut self) {
        let width = match self.width {
            Width::Everything => usize::MAX,
            Width::Beam(width) => width << (self.failures / 2).min(20),
        };
        let rung = &mut self.rungs[self.here];
        self.going.clear();
        if rung.waiting as usize <= width {
            for (at, entry) in rung.entries.iter_mut().enumerate().filter(|(_, entry)| entry.waits) {
                entry.waits = false;
                self.going.push((at, entry.at.clone()));
            }
            self.waiting -= std::mem::take(&mut rung.waiting) as usize;
            return;
        }
        let mut waiting: Vec<usize> = (0..rung.entries.len()).filter(|&at| rung.entries[at].waits).collect();
        let uses = &self.uses;
        waiting.sort_by_key(|&at| {
            let entry = &rung.entries[at];
            uses.total(entry.at.used) + entry.optional
        });
        waiting.truncate(width);
        for at in waiting {
            let entry = &mut rung.entries[at];
            entry.waits = false;
            rung.waiting -= 1;
            self.waiting -= 1;
            self.going.push((at, entry.at.clone()));
        }
    }

    /// Goes back to a rung where some wait, if there is one.
    fn back(&mut self, watch: &Watch<'_>) -> Result<bool, Limit> {
        if self.waiting == 0 {
            return Ok(false);
        }
        self.failures += 1;
        let waits = |rung: &Rung<M>| rung.waiting > 0;
        let rung = loop {
            let far = self.behind((1 << (self.failures / 4).min(30)) - 1);
            let near = self.rungs[..=far].iter().rposition(waits);
            let Some(rung) = near.or_else(|| self.rungs.iter().position(waits)) else { return Ok(false) };
            // What it stands for may begin or end elsewhere.
            if !self.unfold(rung, watch)? {
                break rung;
            }
        };
        self.stretches.touch(rung);
        if !self.places.leave(self.rungs[rung].event, self.furthest) {
            return Ok(false);
        }
        self.here = rung;
        self.open.go(self.rungs[rung].event);
        self.choose();
        Ok(true)
    }

    /// Where all came to an end.
    fn dead(&self) -> Dead {
        let reached = self.furthest as usize;
        let suspect = self.moves.suspicion.first_return(&self.open, self.furthest).unwrap_or(0) as usize;
        Dead { reached, suspect: suspect.max(reached), longest: None }
    }

    /// How far an order gets, once all have ended. Only a search that goes the same way on any number of threads knows, and only after
    /// so little work that each such search has come to its end, or a search made for this comes to the same.
    fn longest(&self) -> Furthest {
        match self.width == Width::Beam(1) && self.work() < self.how_far() {
            true if self.moves.suspicion.is_any() => Furthest::Doubtful,
            true => Furthest::Steps(self.paths.steps(self.longest)),
            false => Furthest::Unknown,
        }
    }

    /// How much work it is worth to know how far an order gets.
    pub(super) fn how_far(&self) -> u64 {
        first_work(self.open.course().events.len()) << (ROUNDS - 1)
    }

    /// Looks at the limits now and then.
    fn look(&mut self, memory: usize, watch: &Watch<'_>) -> Result<(), Limit> {
        if self.work() - self.looked <= 1024 {
            return Ok(());
        }
        self.looked = self.work();
        match watch.reached() {
            Some(limit) => Err(limit),
            None if self.stretches.unfolding => Ok(()),
            None => self.hold(memory),
        }
    }

    /// Holds to the memory limit: what lies furthest back is forgotten first.
    fn hold(&mut self, memory: usize) -> Result<(), Limit> {
        if self.paths.is_due() {
            self.collect();
        }
        if self.bytes() <= memory {
            return Ok(());
        }
        self.collect();
        // With less room than this it would soon have to be done again.
        while self.bytes() > memory - memory / 8 {
            if self.here == 0 {
                return Err(Limit::Memory);
            }
            let forgotten = self.here.div_ceil(2);
            self.stretches.forget(forgotten);
            for rung in self.rungs.drain(..forgotten) {
                self.incomplete |= rung.waiting > 0;
                self.waiting -= rung.waiting as usize;
                self.entries -= rung.entries.len();
                self.room -= rung.entries.capacity();
                self.stretches.unfolded(rung.fold);
            }
            self.here -= forgotten;
            self.collect();
        }
        Ok(())
    }

    /// Forgets paths and sets that belong to no configuration.
    fn collect(&mut self) {
        let entries = self.rungs.iter_mut().flat_map(Rung::configurations).chain(self.stretches.begins());
        let going = self.going.iter_mut().map(|(_, at)| at).chain(self.places.configurations());
        let mut kept: Vec<&mut Configuration<M>> = entries.chain(going).collect();
        self.paths.retain(kept.iter_mut().map(|at| &mut at.path).chain([&mut self.longest]));
        self.uses.retain(kept.iter_mut().map(|at| &mut at.used));
    }

    fn bytes(&self) -> usize {
        // Beside each a place in a list while paths are collected.
        let each = size_of::<usize>() + self.heap;
        (self.entries + self.going.len()) * each
            + self.room * size_of::<Entry<M>>()
            + self.stretches.bytes(each)
            + room::bytes(&self.going)
            + room::bytes(&self.rungs)
            + self.paths.bytes()
            + self.uses.bytes()
            + self.open.bytes()
            + self.moves.bytes()
    }
}

impl<M: Mask> Runner for Ladder<'_, M> {
    type Found = Reached<M>;

    fn run(&mut self, until: u64, memory: usize, watch: &Watch<'_>) -> Result<Option<Reached<M>>, Limit> {
        while self.work() < until {
            self.look(memory, watch)?;
            if self.open.at as usize == self.open.course().events.len() {
                return Ok(Some(Reached::Goal(self.paths.steps(self.going[0].1.path), Vec::new(), None)));
            }
            if self.open.at >= self.pause {
                return Ok(None);
            }
            self.work += 1;
            match self.open.forward() {
                Passed::Nothing => {}
                Passed::Invocation(slot) => self.invoke(slot),
                Passed::Return(slot) => {
                    self.pass(slot, memory, watch)?;
                    self.open.leave(slot);
                    if self.going.is_empty() && !self.back(watch)? {
                        return match self.incomplete {
                            true => Err(Limit::Memory),
                            false => Ok(Some(Reached::Nothing(self.dead(), self.longest()))),
                        };
                    }
                }
            }
        }
        Ok(None)
    }
}
