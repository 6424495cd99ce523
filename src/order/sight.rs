//! Sights: what was seen at a time, and the highest of those that came before a moment.
//!
//! A session's sights of a resource stand once, in order of time; by key and by scope there are only indices of those that
//! raised a maximum, because no question is answered by another one.

use super::clock::{Clocks, RELATED};
use super::head::Showing;
use crate::history::{ClockId, KeyId, Revision, ScopeId};
use crate::ingest::Time;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One sight: at a time, a revision was seen (or committed) by a session.
#[derive(Clone, Copy, Debug)]
pub struct Sight {
    /// When it was complete.
    pub time: Time,
    /// The clock of `time`.
    pub clock: ClockId,
    /// The revision.
    pub revision: Revision,
    /// The key, for sights of one object.
    pub key: KeyId,
    /// What shows it.
    pub showing: Showing,
}

impl Sight {
    fn place(&self) -> (ClockId, Time, Revision, Showing) {
        (self.clock, self.time, self.revision, self.showing)
    }
}

/// Of some sights those that raised the maximum of their clock, in order of clock, then time.
#[derive(Clone, Copy, Debug)]
pub struct Records<'l> {
    sights: &'l [Sight],
    /// Indices of sights.
    raised: &'l [u32],
}

impl<'l> Records<'l> {
    /// The highest sight that was certainly complete before a moment.
    pub fn before(&self, clocks: &Clocks, clock: ClockId, time: Time) -> Option<Sight> {
        let of = |at: &u32| self.sights[*at as usize].clock;
        let raised = if clocks.relate() { self.raised } else { run_of(self.raised, of, clock).0 };
        let runs = Records { raised, ..*self }.runs();
        highest(runs.filter_map(|run| run.last(clocks.horizon(run.clock(), clock, time)?)))
    }

    /// As [`Records::before`], by the bare times of other clocks: what would follow if all clocks agreed.
    pub fn before_by_the_clock(&self, time: Time) -> Option<Sight> {
        if self.runs().nth(RELATED).is_some() {
            return None;
        }
        highest(self.runs().filter_map(|run| run.last(time)))
    }

    /// The records of each clock.
    fn runs(self) -> impl Iterator<Item = Records<'l>> {
        let mut rest = self.raised;
        std::iter::from_fn(move || {
            let sights = self.sights;
            let of = |at: &u32| sights[*at as usize].clock;
            let (run, others) = run_of(rest, of, of(rest.first()?));
            rest = others;
            Some(Records { sights, raised: run })
        })
    }

    /// The clock of a run.
    fn clock(&self) -> ClockId {
        self.sights[self.raised[0] as usize].clock
    }

    /// The highest sight of a run before a time of its clock.
    fn last(&self, horizon: Time) -> Option<Sight> {
        let at = self.raised.partition_point(|&at| self.sights[at as usize].time < horizon).checked_sub(1)?;
        Some(self.sights[self.raised[at] as usize])
    }
}

fn highest(sights: impl Iterator<Item = Sight>) -> Option<Sight> {
    sights.max_by_key(|sight| sight.revision)
}

/// Of something in order of clocks, the part of one clock, and what comes after it.
fn run_of<T>(all: &[T], of: impl Fn(&T) -> ClockId, clock: ClockId) -> (&[T], &[T]) {
    // Nearly all evidence has one clock.
    if let (Some(first), Some(last)) = (all.first(), all.last())
        && (of(first), of(last)) == (clock, clock)
    {
        return (all, &[]);
    }
    let rest = &all[all.partition_point(|one| of(one) < clock)..];
    rest.split_at(rest.partition_point(|one| of(one) == clock))
}

/// Sights of one kind in order of clock, then time.
#[derive(Debug, Default)]
pub struct Line {
    sights: Arc<Vec<Sight>>,
    raised: Vec<u32>,
}

impl Line {
    pub(super) fn new(mut sights: Vec<Sight>) -> Line {
        sights.sort_unstable_by_key(Sight::place);
        sights.shrink_to_fit();
        let mut raised: Vec<u32> = (0..sights.len() as u32).collect();
        retain_records(&mut raised, &sights, |_| ());
        Line { sights: Arc::new(sights), raised }
    }

    /// The same sights by key.
    pub(super) fn by_key(&self) -> Keyed {
        let mut raised: Vec<u32> = (0..self.sights.len() as u32).collect();
        raised.sort_unstable_by_key(|&at| (self.sights[at as usize].key, at));
        retain_records(&mut raised, &self.sights, |sight| sight.key);
        let mut starts: Vec<(KeyId, u32)> = Vec::new();
        for (index, &at) in raised.iter().enumerate() {
            let key = self.sights[at as usize].key;
            if starts.last().is_none_or(|(last, _)| *last != key) {
                starts.push((key, index as u32));
            }
        }
        starts.shrink_to_fit();
        Keyed { sights: self.sights.clone(), starts, raised }
    }

    /// The same sights by scope; `sights` are those of this line.
    pub(super) fn by_scope(sights: Vec<(ScopeId, Sight)>) -> (Line, FxHashMap<ScopeId, Scoped>) {
        let mut sights = sights;
        sights.sort_unstable_by_key(|(scope, sight)| (sight.place(), *scope));
        let mut scopes: FxHashMap<ScopeId, Vec<u32>> = FxHashMap::default();
        for (at, (scope, _)) in sights.iter().enumerate() {
            scopes.entry(*scope).or_default().push(at as u32);
        }
        let line = Line::new(sights.into_iter().map(|(_, sight)| sight).collect());
        let scoped = |(scope, mut raised): (ScopeId, Vec<u32>)| {
            retain_records(&mut raised, &line.sights, |_| ());
            (scope, Scoped { sights: line.sights.clone(), raised })
        };
        let scopes = scopes.into_iter().map(scoped).collect();
        (line, scopes)
    }

    fn records(&self) -> Records<'_> {
        Records { sights: &self.sights, raised: &self.raised }
    }

    /// See [`Records::before`].
    pub fn before(&self, clocks: &Clocks, clock: ClockId, time: Time) -> Option<Sight> {
        self.records().before(clocks, clock, time)
    }

    /// See [`Records::before_by_the_clock`].
    pub fn before_by_the_clock(&self, time: Time) -> Option<Sight> {
        self.records().before_by_the_clock(time)
    }

    /// Sights above a revision that were certainly complete before a moment, of each clock the latest first.
    pub fn above<'l>(
        &'l self,
        clocks: &'l Clocks,
        clock: ClockId,
        time: Time,
        revision: Revision,
    ) -> impl Iterator<Item = &'l Sight> + 'l {
        let sights = self.sights.as_slice();
        let of = |sight: &Sight| sight.clock;
        let mut rest = if clocks.relate() { sights } else { run_of(sights, of, clock).0 };
        let runs = std::iter::from_fn(move || {
            let (run, others) = run_of(rest, of, of(rest.first()?));
            rest = others;
            Some(run)
        });
        runs.flat_map(move |run| {
            let of = run[0].clock;
            let horizon = clocks.horizon(of, clock, time);
            let run = &run[..horizon.map_or(0, |horizon| run.partition_point(|s| s.time < horizon))];
            // Nothing before the first record above can be above.
            let sight = |at: &u32| &sights[*at as usize];
            let first = self.raised.partition_point(|at| (sight(at).clock, sight(at).revision) <= (of, revision));
            let first = self.raised.get(first).map(sight).filter(|sight| sight.clock == of);
            let from = first.map_or(run.len(), |first| run.partition_point(|s| s.place() < first.place()));
            run[from..].iter().rev().filter(move |s| s.revision > revision)
        })
    }
}

/// Sights by key.
#[derive(Debug, Default)]
pub struct Keyed {
    sights: Arc<Vec<Sight>>,
    /// Every key, and where its part of `raised` begins.
    starts: Vec<(KeyId, u32)>,
    /// In order of key, then place.
    raised: Vec<u32>,
}

impl Keyed {
    /// The sights of a key.
    pub fn get(&self, key: &KeyId) -> Option<Records<'_>> {
        let at = self.starts.binary_search_by_key(key, |(key, _)| *key).ok()?;
        let end = self.starts.get(at + 1).map_or(self.raised.len(), |(_, start)| *start as usize);
        Some(Records { sights: &self.sights, raised: &self.raised[self.starts[at].1 as usize..end] })
    }
}

/// Sights of one scope.
#[derive(Debug, Default)]
pub struct Scoped {
    sights: Arc<Vec<Sight>>,
    raised: Vec<u32>,
}

impl Scoped {
    fn records(&self) -> Records<'_> {
        Records { sights: &self.sights, raised: &self.raised }
    }

    /// See [`Records::before`].
    pub fn before(&self, clocks: &Clocks, clock: ClockId, time: Time) -> Option<Sight> {
        self.records().before(clocks, clock, time)
    }

    /// See [`Records::before_by_the_clock`].
    pub fn before_by_the_clock(&self, time: Time) -> Option<Sight> {
        self.records().before_by_the_clock(time)
    }
}

/// Keeps the sights that are higher than all before them of their group and clock.
fn retain_records<G: PartialEq>(indices: &mut Vec<u32>, sights: &[Sight], group: impl Fn(&Sight) -> G) {
    let mut best: Option<&Sight> = None;
    indices.retain(|&at| {
        let sight = &sights[at as usize];
        let raises = best.is_none_or(|best| {
            best.clock != sight.clock || group(best) != group(sight) || sight.revision > best.revision
        });
        if raises {
            best = Some(sight);
        }
        raises
    });
    indices.shrink_to_fit();
}
