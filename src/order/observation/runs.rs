//! Runs: the facts of one clock in a list that is in order of clock, then time.

use crate::history::{ClockId, Revision};
use crate::ingest::Time;
use std::ops::Range;

/// The facts of one clock, or of one key and clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) clock: ClockId,
    /// The first of its facts.
    pub(super) start: u32,
    /// Its first time.
    pub(super) begins: Time,
    /// Its highest revision.
    pub(super) top: Revision,
}

/// The runs of a list, or of one list for each key, in order of key, then clock.
#[derive(Debug, Default)]
pub(super) struct Runs {
    all: Vec<Run>,
    /// The runs of each key in order of their first time.
    by_begin: Vec<Beginning>,
}

/// A run among those that begin no later.
#[derive(Clone, Copy, Debug)]
struct Beginning {
    /// The run.
    run: u32,
    /// The run with the highest revision among those that begin no later.
    highest: u32,
}

impl Runs {
    /// Appends the run that begins with a fact.
    pub(super) fn push(&mut self, run: Run) {
        self.all.push(run);
    }

    /// A later fact of the last run raised its maximum to this.
    pub(super) fn raise(&mut self, top: Revision) {
        if let Some(last) = self.all.last_mut() {
            last.top = top;
        }
    }

    /// All runs are here. `starts`: the first fact of each key, or of the only list.
    pub(super) fn fit(&mut self, starts: impl IntoIterator<Item = u32>) {
        self.all.shrink_to_fit();
        let mut starts = starts.into_iter().skip(1);
        while self.by_begin.len() < self.all.len() {
            let first = self.by_begin.len();
            let end = starts.next().map_or(self.all.len(), |end| self.all.partition_point(|run| run.start < end));
            let runs = first as u32..end as u32;
            self.by_begin.extend(runs.map(|run| Beginning { run, highest: run }));
            let of_key = &mut self.by_begin[first..];
            of_key.sort_unstable_by_key(|beginning| (self.all[beginning.run as usize].begins, beginning.run));
            for at in 1..of_key.len() {
                let [before, now] = [of_key[at - 1].highest, of_key[at].run];
                let is_higher = self.all[now as usize].top > self.all[before as usize].top;
                of_key[at].highest = if is_higher { now } else { before };
            }
        }
        self.by_begin.shrink_to_fit();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The places of the runs with facts in a range of facts.
    pub(super) fn places(&self, facts: Range<usize>) -> Range<usize> {
        let first = self.all.partition_point(|run| run.start as usize <= facts.start).saturating_sub(1);
        first..first + self.all[first..].partition_point(|run| (run.start as usize) < facts.end)
    }

    /// A run, and the first fact of the next one.
    pub(super) fn get(&self, place: usize) -> (&Run, Option<u32>) {
        (&self.all[place], self.all.get(place + 1).map(|next| next.start))
    }

    /// The place of the run of a clock. Input: places of one key.
    pub(super) fn find(&self, places: Range<usize>, clock: ClockId) -> Option<usize> {
        let at = self.all[places.clone()].binary_search_by_key(&clock, |run| run.clock).ok()?;
        Some(places.start + at)
    }

    /// The runs of one key that begin before a time, the latest first. With each, the highest revision of the runs that begin no
    /// later than it. Input: the places of all runs of the key.
    pub(super) fn begun_before(&self, places: Range<usize>, time: Time) -> impl Iterator<Item = (usize, Revision)> {
        let of_key = &self.by_begin[places];
        let begun = of_key.partition_point(|beginning| self.all[beginning.run as usize].begins < time);
        let places = of_key[..begun].iter().rev();
        places.map(|beginning| (beginning.run as usize, self.all[beginning.highest as usize].top))
    }
}
