//! Rungs far back are forgotten, and made again where the search goes back to them.
//!
//! Hardly any rung is seen twice, and yet on nearly every one some configuration waits: of a long history these were half of all
//! that a search held. But what stands on the rungs behind those that went on from one rung follows from these alone, as long as
//! the search only went forward. So of such a *stretch* of rungs nothing is kept but who went on where it begins, unless it is
//! near the end. A search that goes back into a stretch, or comes to its first rung once more, makes it again first, and goes on
//! as if it had never been away.

use super::{Configuration, Entry, Ladder, Passed, Rung};
use crate::search::budget::Watch;
use crate::search::mask::Mask;
use crate::search::verdict::Limit;

/// Rungs of a stretch, at most.
const LONG: usize = if cfg!(test) { 3 } else { 256 };

/// Shorter ones are not worth it.
const SHORT: usize = if cfg!(test) { 2 } else { 32 };

/// So many stretches nearest to the end stay as they are: where a search goes back, it mostly does not go far.
const NEAR: usize = if cfg!(test) { 1 } else { 4 };

/// Who went on from a rung when it was passed first.
#[derive(Debug)]
struct Begin<M> {
    event: u32,
    going: Vec<Configuration<M>>,
}

/// What stands for rungs.
#[derive(Debug)]
pub(super) struct Fold<M> {
    /// Of the rung before them.
    begin: Begin<M>,
    /// How many they are.
    rungs: usize,
}

impl<M> Fold<M> {
    /// The configurations that it keeps.
    pub(super) fn begins(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        self.begin.going.iter_mut()
    }
}

/// The stretches that are not folded.
#[derive(Debug)]
pub(super) struct Stretches<M> {
    /// The place of the rung at which each begins, and of the one before which it ends.
    whole: Vec<(usize, usize, Begin<M>)>,
    /// One that has no end yet.
    growing: Option<(usize, Begin<M>)>,
    /// How many configurations are kept at beginnings, of folded stretches too.
    kept: usize,
    /// Rungs are being made again: the others are put aside.
    pub(super) unfolding: bool,
}

impl<M> Default for Stretches<M> {
    fn default() -> Self {
        Stretches { whole: Vec::new(), growing: None, kept: 0, unfolding: false }
    }
}

impl<M> Stretches<M> {
    /// The configurations that they keep.
    pub(super) fn begins(&mut self) -> impl Iterator<Item = &mut Configuration<M>> {
        let begins = self.whole.iter_mut().map(|whole| &mut whole.2);
        begins.chain(self.growing.iter_mut().map(|growing| &mut growing.1)).flat_map(|begin| begin.going.iter_mut())
    }

    /// The search goes back to a rung: what lies behind it does not follow from where it began any more.
    pub(super) fn touch(&mut self, rung: usize) {
        while let Some((.., begin)) = self.whole.pop_if(|whole| whole.1 > rung) {
            self.kept -= begin.going.len();
        }
        self.end(rung);
    }

    /// Ends the one that grows, at a rung.
    fn end(&mut self, rung: usize) {
        match self.growing.take() {
            Some((at, begin)) if rung >= at + SHORT => self.whole.push((at, rung, begin)),
            Some((_, begin)) => self.kept -= begin.going.len(),
            None => {}
        }
    }

    /// The first rungs are forgotten.
    pub(super) fn forget(&mut self, rungs: usize) {
        let forgotten = self.whole.iter().take_while(|whole| whole.0 < rungs).count();
        self.kept -= self.whole.drain(..forgotten).map(|(.., begin)| begin.going.len()).sum::<usize>();
        if let Some((_, begin)) = self.growing.take_if(|growing| growing.0 < rungs) {
            self.kept -= begin.going.len();
        }
        self.shift(rungs);
    }

    /// A folded stretch is there no more.
    pub(super) fn unfolded(&mut self, fold: Option<Box<Fold<M>>>) {
        self.kept -= fold.map_or(0, |fold| fold.begin.going.len());
    }

    /// So many rungs before all of them are gone.
    fn shift(&mut self, rungs: usize) {
        for (begin, end, _) in &mut self.whole {
            (*begin, *end) = (*begin - rungs, *end - rungs);
        }
        if let Some((begin, _)) = &mut self.growing {
            *begin -= rungs;
        }
    }

    /// Bytes held, where each configuration holds so many beyond its own size.
    pub(super) fn bytes(&self, each: usize) -> usize {
        self.kept * (size_of::<Configuration<M>>() + each)
    }
}

impl<M: Mask> Ladder<'_, M> {
    /// Notes who goes on from the rung that was come to, past a return that none had got past before.
    pub(super) fn mark(&mut self) {
        let begin = self.stretches.growing.as_ref().map_or(0, |growing| growing.0);
        if self.here < begin + LONG || self.going.is_empty() {
            return;
        }
        self.stretches.end(self.here);
        if self.stretches.whole.len() > NEAR {
            let first = self.stretches.whole.remove(0);
            self.fold(first);
        }
        let going: Vec<Configuration<M>> = self.going.iter().map(|(_, at)| at.clone()).collect();
        self.stretches.kept += going.len();
        self.stretches.growing = Some((self.here, Begin { event: self.rungs[self.here].event, going }));
    }

    /// Folds a stretch before all others.
    fn fold(&mut self, (before, end, begin): (usize, usize, Begin<M>)) {
        let rungs = end - before - 1;
        let mut folded = Rung::new(self.rungs[before + 1].event, Vec::new());
        folded.fold = Some(Box::new(Fold { begin, rungs }));
        for rung in &self.rungs[before + 1..end] {
            folded.waiting += rung.waiting;
            self.entries -= rung.entries.len();
            self.room -= rung.entries.capacity();
        }
        self.rungs.splice(before + 1..end, [folded]);
        self.stretches.shift(rungs - 1);
        self.here -= rungs - 1;
    }

    /// Makes the rungs again that one stands for, in its place. Whether it stood for any.
    pub(super) fn unfold(&mut self, at: usize, watch: &Watch<'_>) -> Result<bool, Limit> {
        let Some(fold) = self.rungs[at].fold.take() else { return Ok(false) };
        let Fold { begin, rungs } = *fold;
        // Nothing that is a stretch lies behind: a search goes on there, or is about to.
        self.stretches.touch(at);
        self.stretches.kept -= begin.going.len();
        let aside = (self.here, self.waiting, self.entries, self.room, self.failures, self.open.at);
        let spare = std::mem::take(&mut self.spare);
        let suspicion = std::mem::take(&mut self.moves.suspicion);
        let going = std::mem::take(&mut self.going);
        let entry = |at: &Configuration<M>| Entry { at: at.clone(), optional: 0, waits: false };
        let first = Rung::new(begin.event, begin.going.iter().map(entry).collect());
        let mut others = std::mem::replace(&mut self.rungs, vec![first]);
        self.stretches.unfolding = true;
        self.here = 0;
        self.failures = 0;
        // Whatever waits now waits elsewhere: no rung is to be forgotten.
        self.waiting += 1;
        self.open.go(begin.event);
        self.going = (0..).zip(begin.going).collect();
        // What still waits on a rung is known when the next one is come to.
        while self.rungs.len() <= rungs + 1 {
            match self.open.forward() {
                Passed::Nothing => {}
                Passed::Invocation(slot) => self.invoke(slot),
                Passed::Return(slot) => {
                    self.pass(slot, usize::MAX, watch)?;
                    self.open.leave(slot);
                }
            }
        }
        self.stretches.unfolding = false;
        let event;
        (self.here, self.waiting, self.entries, self.room, self.failures, event) = aside;
        self.open.go(event);
        self.spare = spare;
        self.moves.suspicion = suspicion;
        self.going = going;
        if at < self.here {
            self.here += rungs - 1;
        }
        let made: Vec<Rung<M>> = std::mem::take(&mut self.rungs).into_iter().skip(1).take(rungs).collect();
        debug_assert_eq!(made.iter().map(|rung| rung.waiting).sum::<u32>(), others[at].waiting);
        self.entries += made.iter().map(|rung| rung.entries.len()).sum::<usize>();
        self.room += made.iter().map(|rung| rung.entries.capacity()).sum::<usize>();
        others.splice(at..=at, made);
        self.rungs = others;
        Ok(true)
    }

    /// The rung so many rungs before those that go on, or the one that stands for it.
    pub(super) fn behind(&self, mut rungs: usize) -> usize {
        let mut at = self.here;
        while at > 0 && rungs > 0 {
            at -= 1;
            rungs = rungs.saturating_sub(self.rungs[at].fold.as_ref().map_or(1, |fold| fold.rungs));
        }
        at
    }
}
