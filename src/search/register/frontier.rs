//! The search: from return to return, with as many configurations at a time as it is allowed, and back where none is left.
//!
//! A *rung* holds the configurations that got past one return. With no bound on how many go on at a time this is a search breadth
//! first, one rung at a time; with a small one it is a beam that never begins again: what was not taken waits on its rung, and
//! when all configurations that went on have ended, the search goes on from those that wait, the nearer rungs first. It ends when
//! one reaches the goal, or none waits anywhere: then no order exists. A configuration is given up where another one on the same
//! rung can do whatever it can, taken or waiting: so nothing is refuted twice. Rungs far back are folded: see [`fold`].

use super::Problem;
use super::automaton::{DONT_CARE, Kind};
use super::configuration::Configuration;
use super::crashed_uses::{CrashedUseSets, UNUSED};
use super::event_schedule::NEVER;
use super::parent_links::{BEGIN, ParentLinks, Step};
use super::pending::{Passed, PendingOps};
use super::pruning::{Reductions, Width};
use super::successors::{Generator, Successors};
use super::witness::{PartialWitness, SegmentBoundary};
use crate::search::budget::BudgetGuard;
use crate::search::mask::Mask;
use crate::search::portfolio::{Outcome, Runner};
use crate::search::schedule::{DeadEnd, initial_budget};
use crate::search::tight_vec;
use crate::search::verdict::Limit;
use checkpoint::{Checkpoint, CheckpointLog};
use speculation::SpliceCandidates;
use std::sync::Arc;

mod checkpoint;
mod expansion;
mod speculation;
#[cfg(test)]
mod tests;

pub(super) use speculation::SpeculativeSearch;

/// How a search up to a goal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reached<M> {
    /// The steps of an order that explains every answer before the goal; places between them, and what comes of those before the
    /// first, which an order is sooner made of.
    Goal(Vec<Step>, Vec<SegmentBoundary<M>>, Option<PartialWitness<M>>),
    /// No order does.
    Nothing(DeadEnd, Furthest),
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
    fn is_decisive(&self) -> bool {
        matches!(self, Reached::Nothing(..))
    }
}

/// So many rounds of a race are worth knowing how far an order gets.
pub(super) const ROUNDS: u32 = 2;

/// A configuration on a rung.
#[derive(Debug)]
struct Node<M> {
    at: Configuration<M>,
    /// How many optional operations its next moves use at least; see [`most_optional`].
    optional: u32,
    is_open: bool,
}

/// How many optional operations moves use at most that use at least so many: 0, 1 and so on to 7, 8 to 15, 16 to 31 and so on. Of
/// those that use one more there may be ten times as many; where the most that are ever used are many, there are few of each.
fn most_optional(least: u32) -> u32 {
    if least < 8 { least } else { 2 * least - 1 }
}

/// The configurations that got past a return.
#[derive(Debug)]
struct Layer<M> {
    /// The event after the return.
    event: u32,
    entries: Vec<Node<M>>,
    open_count: u32,
    /// What several rungs are made again from for which it stands: all of their waiting ones, and no entries.
    checkpoint: Option<Box<Checkpoint<M>>>,
}

impl<M> Layer<M> {
    fn new(event: u32, entries: Vec<Node<M>>) -> Self {
        Layer { event, entries, open_count: 0, checkpoint: None }
    }

    /// All that it keeps.
    fn configurations(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        let folded = self.checkpoint.iter_mut().flat_map(|fold| fold.begins());
        self.entries.iter_mut().map(|entry| &mut entry.at).chain(folded)
    }
}

/// Forgets the state of a configuration past a return, if nothing that is left can tell it from others.
fn project_dont_care<M: Mask>(
    at: &mut Configuration<M>,
    reductions: Reductions,
    open: &PendingOps<'_, M>,
    uses: &CrashedUseSets,
) {
    if reductions.forgotten_states
        && at.state != DONT_CARE
        && !open.is_useful(at.state, at, uses)
        && !open.is_shunned(at.state, at)
    {
        at.state = DONT_CARE;
    }
}

/// One search.
pub(super) struct FrontierSearch<'p, M> {
    open: PendingOps<'p, M>,
    reductions: Reductions,
    width: Width,
    uses: CrashedUseSets,
    paths: ParentLinks,
    layers: Vec<Layer<M>>,
    checkpoints: CheckpointLog<M>,
    /// Room for the entries of new ones.
    free_layers: Vec<Vec<Node<M>>>,
    /// The rung of those that go on.
    current_layer: usize,
    /// Which entries go on, and what has become of them since.
    active: Vec<(usize, Configuration<M>)>,
    moves: Successors<M>,
    open_total: usize,
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
    last_check: u64,
    /// Where it waits for somebody else.
    pause: u32,
    splice_candidates: SpliceCandidates<M>,
}

impl<'p, M: Mask> FrontierSearch<'p, M> {
    pub(super) fn new(problem: Arc<Problem<'p>>, reductions: Reductions, width: Width) -> Self {
        FrontierSearch::before(0, problem, reductions, width)
    }

    /// One that knows what is open before an event.
    fn before(event: u32, problem: Arc<Problem<'p>>, reductions: Reductions, width: Width) -> Self {
        let (automaton, course) = (&problem.automaton, &problem.schedule);
        let first = Configuration {
            state: automaton.initial,
            used: UNUSED,
            last_overwrite_at: 0,
            path: BEGIN,
            linearized: M::none(course.slots),
            absorbable: M::none(course.slots),
        };
        FrontierSearch {
            open: PendingOps::new(problem.clone(), event),
            reductions,
            width,
            uses: CrashedUseSets::new(),
            paths: ParentLinks::default(),
            layers: vec![Layer::new(0, vec![Node { at: first.clone(), optional: 0, is_open: false }])],
            checkpoints: CheckpointLog::default(),
            free_layers: Vec::new(),
            current_layer: 0,
            active: vec![(0, first)],
            moves: Successors::default(),
            open_total: 0,
            entries: 1,
            room: 1,
            heap: 2 * M::none(course.slots).heap_bytes(),
            furthest: 0,
            longest: BEGIN,
            failures: 0,
            incomplete: false,
            work: 0,
            last_check: 0,
            pause: NEVER,
            splice_candidates: SpliceCandidates::none(),
        }
    }

    /// What was done so far: configurations and drafts looked at.
    fn work(&self) -> u64 {
        self.work + self.moves.work
    }

    /// What is invoked and changes nothing happens at once where it can.
    fn invoke(&mut self, slot: u32) {
        let kind = self.open.kind(slot);
        for (_, at) in &mut self.active {
            let happens = match kind {
                Kind::Read(state) => at.state == state,
                Kind::FailedCas(state) => at.state != state,
                Kind::Write(_) | Kind::Cas(..) | Kind::Append => false,
            };
            if happens {
                at.linearized.add(slot);
            }
        }
        self.work += self.active.len() as u64 / 4;
    }

    /// Takes those that go on past a return.
    fn pass(&mut self, slot: u32, memory: usize, watch: &BudgetGuard<'_>) -> Result<(), Limit> {
        self.work += self.active.len() as u64 / 4;
        let first = self.open.at > self.furthest;
        if first {
            self.furthest = self.open.at;
            self.longest = self.active[0].1.path;
            self.failures = 0;
            self.moves.suspicion.clear();
        }
        if self.active.iter().all(|(_, at)| at.linearized.has(slot)) {
            self.active.iter_mut().for_each(|(_, at)| at.linearized.remove(slot));
            return Ok(());
        }
        self.next_layer(watch)?;
        let begun = if self.is_wide() { self.expand_parallel(slot, memory, watch)? } else { 0 };
        let others = self.bytes() - self.moves.bytes() - self.uses.bytes();
        for turn in begun..self.active.len() {
            let (entry, mut from) = self.active[turn].clone();
            if from.linearized.has(slot) {
                from.linearized.remove(slot);
                self.insert_if_undominated(self.current_layer + 1, from, &[]);
            } else {
                self.expand(entry, &from, slot, memory.saturating_sub(others), watch)?;
            }
            self.check_limits(memory, watch)?;
        }
        let next = self.current_layer + 1;
        self.current_layer = next;
        if self.open_total == self.layers[next].open_count as usize {
            self.checkpoints.forget(next);
            for mut rung in self.layers.drain(..next) {
                self.entries -= rung.entries.len();
                self.checkpoints.recomputed(rung.checkpoint.take());
                rung.entries.clear();
                match self.free_layers.len() {
                    0..2 if rung.entries.capacity() <= 64 => self.free_layers.push(rung.entries),
                    _ => self.room -= rung.entries.capacity(),
                }
            }
            self.current_layer = 0;
        } else {
            // It stays, perhaps to the end: half a million of them do.
            let entries = &mut self.layers[next - 1].entries;
            self.room -= entries.capacity();
            entries.shrink_to_fit();
            self.room += entries.capacity();
        }
        self.choose();
        if first {
            self.splice_candidates.note(self.layers[self.current_layer].event, &self.active);
            self.mark();
        }
        Ok(())
    }

    /// Keeps what a configuration comes to past the return of a slot on the next rung.
    fn expand(
        &mut self,
        entry: usize,
        from: &Configuration<M>,
        slot: u32,
        memory: usize,
        watch: &BudgetGuard<'_>,
    ) -> Result<(), Limit> {
        let mut least = self.layers[self.current_layer].entries[entry].optional;
        loop {
            let finder = Generator {
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
                self.insert_if_undominated(self.current_layer + 1, found.to.clone(), moves.steps(found));
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
                self.set_open(entry, least);
                return Ok(());
            }
        }
    }

    /// One of those that went on waits for its next moves, which use at least so many optional operations.
    fn set_open(&mut self, entry: usize, least: u32) {
        let rung = &mut self.layers[self.current_layer];
        rung.entries[entry].optional = least;
        rung.entries[entry].is_open = true;
        rung.open_count += 1;
        self.open_total += 1;
    }

    /// Makes room for those that get past this return.
    fn next_layer(&mut self, watch: &BudgetGuard<'_>) -> Result<(), Limit> {
        let (next, event) = (self.current_layer + 1, self.open.at + 1);
        if self.layers.get(next).is_none_or(|rung| rung.event != event) {
            let entries = self.free_layers.pop().unwrap_or_default();
            self.layers.insert(next, Layer::new(event, entries));
        }
        self.recompute(next, watch).map(|_| ())
    }

    /// Keeps a configuration on a rung, unless another one there stands for it.
    fn insert_if_undominated(&mut self, rung: usize, mut at: Configuration<M>, steps: &[Step]) {
        project_dont_care(&mut at, self.reductions, &self.open, &self.uses);
        self.insert_after(rung, at, steps, &mut 0, true);
    }

    /// The same of one whose state is forgotten if it can be, and for which none of the first `seen` there stands; and whether it may
    /// stand for one of them.
    fn insert_after(&mut self, rung: usize, mut at: Configuration<M>, steps: &[Step], seen: &mut usize, stands: bool) {
        self.count_insertion(rung);
        let (open, uses) = (&self.open, &self.uses);
        let rung = &mut self.layers[rung];
        let within = |less: u32, more: u32| uses.is_within(less, more);
        let stands_for_it = |kept: &Node<M>| match self.reductions.dominance {
            true => kept.at.dominates(&at, open, within),
            false => kept.at.is_same(&at),
        };
        if rung.entries[*seen..].iter().any(stands_for_it) {
            return;
        }
        if self.reductions.dominance && rung.open_count > 0 {
            let before = rung.entries.len();
            let falls = |kept: &mut Node<M>| kept.is_open && at.dominates(&kept.at, open, within);
            if stands {
                *seen -= rung.entries.extract_if(..*seen, falls).count();
            }
            rung.entries.extract_if(*seen.., falls).for_each(drop);
            rung.open_count -= (before - rung.entries.len()) as u32;
            self.entries -= before - rung.entries.len();
            self.open_total -= before - rung.entries.len();
        }
        at.path = self.paths.extend(at.path, steps);
        // Most rungs hold one.
        let full = rung.entries.len() == rung.entries.capacity() && rung.entries.len() < 8;
        let few = if full { rung.entries.len().max(1) } else { 0 };
        rung.entries.reserve_exact(few);
        self.room += few + tight_vec::push(&mut rung.entries, Node { at, optional: 0, is_open: true });
        self.entries += 1;
        rung.open_count += 1;
        self.open_total += 1;
    }

    /// Looking at what a new one is held against on a rung is work: a cache line is about a unit.
    fn count_insertion(&mut self, rung: usize) {
        self.work += (size_of_val(&*self.layers[rung].entries) / 64) as u64 + 1;
    }

    /// Those that go on from this rung: the best of those that wait.
    fn choose(&mut self) {
        let width = match self.width {
            Width::Everything => usize::MAX,
            Width::Beam(width) => width << (self.failures / 2).min(20),
        };
        let rung = &mut self.layers[self.current_layer];
        self.active.clear();
        if rung.open_count as usize <= width {
            for (at, entry) in rung.entries.iter_mut().enumerate().filter(|(_, entry)| entry.is_open) {
                entry.is_open = false;
                self.active.push((at, entry.at.clone()));
            }
            self.open_total -= std::mem::take(&mut rung.open_count) as usize;
            return;
        }
        let mut waiting: Vec<usize> = (0..rung.entries.len()).filter(|&at| rung.entries[at].is_open).collect();
        let uses = &self.uses;
        waiting.sort_by_key(|&at| {
            let entry = &rung.entries[at];
            uses.total(entry.at.used) + entry.optional
        });
        waiting.truncate(width);
        for at in waiting {
            let entry = &mut rung.entries[at];
            entry.is_open = false;
            rung.open_count -= 1;
            self.open_total -= 1;
            self.active.push((at, entry.at.clone()));
        }
    }

    /// Goes back to a rung where some wait, if there is one.
    fn backtrack(&mut self, watch: &BudgetGuard<'_>) -> Result<bool, Limit> {
        if self.open_total == 0 {
            return Ok(false);
        }
        self.failures += 1;
        let waits = |rung: &Layer<M>| rung.open_count > 0;
        let rung = loop {
            let far = self.behind((1 << (self.failures / 4).min(30)) - 1);
            let near = self.layers[..=far].iter().rposition(waits);
            let Some(rung) = near.or_else(|| self.layers.iter().position(waits)) else { return Ok(false) };
            // What it stands for may begin or end elsewhere.
            if !self.recompute(rung, watch)? {
                break rung;
            }
        };
        self.checkpoints.touch(rung);
        if !self.splice_candidates.leave(self.layers[rung].event, self.furthest) {
            return Ok(false);
        }
        self.current_layer = rung;
        self.open.go(self.layers[rung].event);
        self.choose();
        Ok(true)
    }

    /// Where all came to an end.
    fn dead_end(&self) -> DeadEnd {
        let reached = self.furthest as usize;
        let suspect = self.moves.suspicion.first_return(&self.open, self.furthest).unwrap_or(0) as usize;
        DeadEnd { reached, suspect: suspect.max(reached), longest: None }
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
        initial_budget(self.open.schedule().events.len()) << (ROUNDS - 1)
    }

    /// Looks at the limits now and then.
    fn check_limits(&mut self, memory: usize, watch: &BudgetGuard<'_>) -> Result<(), Limit> {
        if self.work() - self.last_check <= 1024 {
            return Ok(());
        }
        self.last_check = self.work();
        match watch.reached() {
            Some(limit) => Err(limit),
            None if self.checkpoints.recomputing => Ok(()),
            None => self.free_memory(memory),
        }
    }

    /// Holds to the memory limit: what lies furthest back is forgotten first.
    fn free_memory(&mut self, memory: usize) -> Result<(), Limit> {
        if self.paths.is_due() {
            self.collect();
        }
        if self.bytes() <= memory {
            return Ok(());
        }
        self.collect();
        // With less room than this it would soon have to be done again.
        while self.bytes() > memory - memory / 8 {
            if self.current_layer == 0 {
                return Err(Limit::Memory);
            }
            let forgotten = self.current_layer.div_ceil(2);
            self.checkpoints.forget(forgotten);
            for rung in self.layers.drain(..forgotten) {
                self.incomplete |= rung.open_count > 0;
                self.open_total -= rung.open_count as usize;
                self.entries -= rung.entries.len();
                self.room -= rung.entries.capacity();
                self.checkpoints.recomputed(rung.checkpoint);
            }
            self.current_layer -= forgotten;
            self.collect();
        }
        Ok(())
    }

    /// Forgets paths and sets that belong to no configuration.
    fn collect(&mut self) {
        let entries = self.layers.iter_mut().flat_map(Layer::configurations).chain(self.checkpoints.begins());
        let going = self.active.iter_mut().map(|(_, at)| at).chain(self.splice_candidates.configurations());
        let mut kept: Vec<&mut Configuration<M>> = entries.chain(going).collect();
        self.paths.retain(kept.iter_mut().map(|at| &mut at.path).chain([&mut self.longest]));
        self.uses.retain(kept.iter_mut().map(|at| &mut at.used));
    }

    fn bytes(&self) -> usize {
        // Beside each a place in a list while paths are collected.
        let each = size_of::<usize>() + self.heap;
        (self.entries + self.active.len()) * each
            + self.room * size_of::<Node<M>>()
            + self.checkpoints.bytes(each)
            + tight_vec::bytes(&self.active)
            + tight_vec::bytes(&self.layers)
            + self.paths.bytes()
            + self.uses.bytes()
            + self.open.bytes()
            + self.moves.bytes()
    }
}

impl<M: Mask> Runner for FrontierSearch<'_, M> {
    type Found = Reached<M>;

    fn run(&mut self, until: u64, memory: usize, watch: &BudgetGuard<'_>) -> Result<Option<Reached<M>>, Limit> {
        while self.work() < until {
            self.check_limits(memory, watch)?;
            if self.open.at as usize == self.open.schedule().events.len() {
                return Ok(Some(Reached::Goal(self.paths.steps(self.active[0].1.path), Vec::new(), None)));
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
                    if self.active.is_empty() && !self.backtrack(watch)? {
                        return match self.incomplete {
                            true => Err(Limit::Memory),
                            false => Ok(Some(Reached::Nothing(self.dead_end(), self.longest()))),
                        };
                    }
                }
            }
        }
        Ok(None)
    }
}
