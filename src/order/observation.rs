//! Observations: a revision seen at a time of a clock. [`RunningMax`] and [`Records`] answer which was the highest one before a
//! moment.
//!
//! There are as many observations as there is evidence, so each is kept as one number that names its fact; time and revision are
//! read from the history. Every fourth time of a sorted list is kept next to it, so that a search by time reads few facts. A list
//! must stay in order of clock, then time.

mod runs;

use super::clock::{Clocks, MAX_RELATED_CLOCKS};
use super::shown::{EvidenceRef, Observation};
use crate::history::{ClockId, History, KeyId, OperationId, Revision, Verb, sort_by_word};
use crate::ingest::Time;
use runs::{Run, Runs};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering as Access};

/// Numbers for facts: answers by operation, then requested revisions by operation, then deliveries, then the few observations
/// that are not one such fact.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    operations: u32,
    deliveries: u32,
    others: Vec<Observation>,
}

enum Fact<'f> {
    Answer(OperationId),
    Asked(OperationId),
    Delivery(usize),
    Other(&'f Observation),
}

impl Facts {
    pub(super) fn of(history: &History) -> Facts {
        let (operations, deliveries) = (history.operations.len() as u32, history.deliveries.len() as u32);
        Facts { operations, deliveries, others: Vec::new() }
    }

    /// An answer: its revision, at the time of the answer.
    pub(super) fn answer(&self, id: OperationId) -> u32 {
        id.0
    }

    /// A request: the revision that it names or is based on, at the time of sending.
    pub(super) fn asked(&self, id: OperationId) -> u32 {
        self.operations + id.0
    }

    /// A delivery.
    pub(super) fn delivery(&self, index: usize) -> u32 {
        2 * self.operations + index as u32
    }

    /// An observation that is none of these.
    pub(super) fn other(&mut self, observation: Observation) -> u32 {
        self.others.push(observation);
        2 * self.operations + self.deliveries + self.others.len() as u32 - 1
    }

    fn fact(&self, number: u32) -> Fact<'_> {
        let requests = 2 * self.operations;
        match number {
            id if id < self.operations => Fact::Answer(OperationId(id)),
            id if id < requests => Fact::Asked(OperationId(id - self.operations)),
            index if index < requests + self.deliveries => Fact::Delivery((index - requests) as usize),
            other => Fact::Other(&self.others[(other - requests - self.deliveries) as usize]),
        }
    }

    /// When the fact was complete.
    pub(super) fn time(&self, history: &History, number: u32) -> Time {
        match self.fact(number) {
            Fact::Answer(id) => history.operations.ret(id.index()),
            Fact::Asked(id) => history.operations.invoke(id.index()),
            Fact::Delivery(index) => history.deliveries[index].at,
            Fact::Other(observation) => observation.time,
        }
    }

    /// The revision.
    fn revision(&self, history: &History, number: u32) -> Revision {
        match self.fact(number) {
            Fact::Answer(id) => history.operations.answered(id.index()),
            Fact::Asked(id) => history.operations.asked_revision(id.index()),
            Fact::Delivery(index) => history.deliveries[index].revision,
            Fact::Other(observation) => observation.revision,
        }
    }

    /// The key.
    fn key(&self, history: &History, number: u32) -> KeyId {
        match self.fact(number) {
            Fact::Answer(id) | Fact::Asked(id) => {
                let (operations, index) = (&history.operations, id.index());
                if operations.verb(index) == Verb::Watch { KeyId::NONE } else { operations.key(index) }
            }
            Fact::Delivery(index) => history.deliveries[index].key,
            Fact::Other(observation) => observation.key,
        }
    }

    /// The clock of its time.
    fn clock(&self, history: &History, number: u32) -> ClockId {
        match self.fact(number) {
            Fact::Answer(id) | Fact::Asked(id) => history.operations.clock(id.index()),
            Fact::Delivery(index) => history.operations.clock(history.watch_of(index).index()),
            Fact::Other(observation) => observation.clock,
        }
    }

    /// The evidence.
    fn showing(&self, history: &History, number: u32) -> EvidenceRef {
        match self.fact(number) {
            Fact::Answer(id) | Fact::Asked(id) => EvidenceRef::Answer(id),
            Fact::Delivery(index) => EvidenceRef::Delivery(index as u32, history.watch_of(index)),
            Fact::Other(observation) => observation.evidence,
        }
    }
}

/// Facts, and the history that has their fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'l> {
    pub(super) history: &'l History,
    pub(super) facts: &'l Facts,
}

impl Reading<'_> {
    pub(super) fn observation(&self, number: u32) -> Observation {
        Observation {
            time: self.time(number),
            clock: self.clock(number),
            revision: self.revision(number),
            key: self.facts.key(self.history, number),
            evidence: self.facts.showing(self.history, number),
        }
    }

    fn time(&self, number: u32) -> Time {
        self.facts.time(self.history, number)
    }

    pub(super) fn revision(&self, number: u32) -> Revision {
        self.facts.revision(self.history, number)
    }

    pub(super) fn clock(&self, number: u32) -> ClockId {
        if self.has_one_clock() { ClockId(0) } else { self.facts.clock(self.history, number) }
    }

    /// Nearly all evidence has one clock; the lookup is skipped then.
    fn has_one_clock(&self) -> bool {
        self.history.clocks.len() == 1
    }

    /// The operation with the answer or the stream that shows the fact.
    pub(super) fn operation(&self, number: u32) -> OperationId {
        let (EvidenceRef::Answer(id) | EvidenceRef::Delivery(_, id)) = self.facts.showing(self.history, number);
        id
    }

    /// Sorts facts by revision, then clock, time and evidence.
    pub(super) fn sort_by_revision(&self, facts: &mut [u32]) {
        let rest = |fact| {
            let observation = self.observation(fact);
            (observation.revision, observation.clock, observation.time, observation.evidence)
        };
        // Revisions of more than 64 bits come last, ordered by the full key.
        sort_by_word(facts, |fact| u64::try_from(self.revision(fact).value()).unwrap_or(u64::MAX), rest);
    }

    /// Facts in order of clock, then time.
    pub(super) fn in_order(&self, facts: impl Iterator<Item = u32>) -> Vec<SortableFact> {
        self.sortable(facts, |fact| self.time(fact))
    }

    /// The answers of writes, in order of clock, then of the send time of the write.
    pub(super) fn in_order_of_sending(&self, facts: impl Iterator<Item = u32>) -> Vec<SortableFact> {
        self.sortable(facts, |fact| self.sent(fact))
    }

    fn sortable(&self, facts: impl Iterator<Item = u32>, time: impl Fn(u32) -> Time) -> Vec<SortableFact> {
        let place = |fact| {
            let word = u64::try_from(self.revision(fact).value()).unwrap_or(SortableFact::WIDE);
            SortableFact { clock: self.clock(fact), time: time(fact), word, fact }
        };
        let mut order: Vec<SortableFact> = facts.map(place).collect();
        sort_nearly_sorted(&mut order, |a, b| {
            let rest =
                |sortable: &SortableFact| (sortable.revision(*self), self.facts.showing(self.history, sortable.fact));
            (a.clock, a.time).cmp(&(b.clock, b.time)).then_with(|| rest(a).cmp(&rest(b)))
        });
        order
    }

    /// Whether a fact about a write proves the revision at which it committed. An answer may show a version of another writer.
    pub(super) fn is_proven(&self, number: u32) -> bool {
        match self.facts.fact(number) {
            Fact::Answer(id) => self.history.operation(id).shows_its_commit(),
            Fact::Other(_) => true,
            Fact::Asked(_) | Fact::Delivery(_) => false,
        }
    }

    /// When the write of an answer was sent.
    pub(super) fn sent(&self, number: u32) -> Time {
        self.history.operations.invoke(self.operation(number).index())
    }
}

/// A fact with the fields that a sort compares. They are copied because facts are far apart in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortableFact {
    pub(super) clock: ClockId,
    pub(super) time: Time,
    word: u64,
    pub(super) fact: u32,
}

impl SortableFact {
    /// Marks a revision that does not fit.
    const WIDE: u64 = u64::MAX;

    pub(super) fn revision(&self, reading: Reading<'_>) -> Revision {
        if self.word == SortableFact::WIDE { reading.revision(self.fact) } else { Revision::from(self.word) }
    }
}

/// Insertion sort for a nearly sorted list, such as answers in the order of their requests. A list that needs more than 8 moves
/// per element is mostly a row of sorted lists, such as streams. The stable sort merges those.
fn sort_nearly_sorted<T: Copy>(all: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut moves = 0;
    for at in 1..all.len() {
        let one = all[at];
        let mut to = at;
        while to > 0 && compare(&one, &all[to - 1]).is_lt() {
            all[to] = all[to - 1];
            to -= 1;
        }
        all[to] = one;
        moves += at - to;
        if moves > 8 * at + 64 {
            return all.sort_by(compare);
        }
    }
}

/// Facts in order of time (within a clock, or a key and clock), with the time of one in each [`FactsByTime::STRIDE`].
#[derive(Debug, Default)]
pub(super) struct FactsByTime {
    facts: Vec<u32>,
    times: Vec<Time>,
    /// The facts of each clock, or of each key and clock. Empty where they are not kept. Without them, a search among many clocks
    /// reads many facts.
    runs: Runs,
    /// The end of the last search. Most questions come in order of time, so the next answer is near.
    near: AtomicUsize,
}

impl FactsByTime {
    /// Distance between two facts with a kept time.
    const STRIDE: usize = 4;
    /// Up to this many times, a binary search is fast enough.
    const MIN_GALLOP: usize = 32;
    /// Above this many clocks, the start of each key and clock is kept.
    const MAX_CLOCKS_WITHOUT_STARTS: usize = 16;

    /// From facts in order.
    pub(super) fn of(facts: impl Iterator<Item = SortableFact>) -> FactsByTime {
        let mut by_time = FactsByTime::default();
        for sortable in facts {
            by_time.push(&sortable);
        }
        by_time.fit([]);
        by_time
    }

    /// Appends a fact. `begins`: whether it is the first of its clock, or of its key and clock.
    fn push_in_order(&mut self, sortable: &SortableFact, revision: Revision, begins: bool) {
        if begins {
            let start = self.facts.len() as u32;
            self.runs.push(Run { clock: sortable.clock, start, begins: sortable.time, top: revision });
        } else {
            self.runs.raise(revision);
        }
        self.push(sortable);
    }

    fn push(&mut self, sortable: &SortableFact) {
        if self.facts.len().is_multiple_of(FactsByTime::STRIDE) {
            self.times.push(sortable.time);
        }
        self.facts.push(sortable.fact);
    }

    /// All facts are here. `starts`: the first fact of each key, or of the only list.
    fn fit(&mut self, starts: impl IntoIterator<Item = u32>) {
        self.facts.shrink_to_fit();
        self.times.shrink_to_fit();
        self.runs.fit(starts);
    }

    /// The first fact of a range at or after a time. Times must ascend within the range.
    fn before(&self, reading: Reading<'_>, range: Range<usize>, time: Time) -> usize {
        let first = range.start.div_ceil(FactsByTime::STRIDE);
        let last = range.end.div_ceil(FactsByTime::STRIDE).max(first);
        let known = self.known_before(first..last, time);
        let from = if known > first { (known - 1) * FactsByTime::STRIDE + 1 } else { range.start };
        let to = (known * FactsByTime::STRIDE).clamp(from, range.end);
        from + self.facts[from..to].partition_point(|&fact| reading.time(fact) < time)
    }

    /// The first kept time of a range at or after a time. Gallops from where the last search ended, with steps that double.
    fn known_before(&self, range: Range<usize>, time: Time) -> usize {
        if range.len() < FactsByTime::MIN_GALLOP {
            return range.start + self.times[range].partition_point(|at| *at < time);
        }
        let near = self.near.load(Access::Relaxed).clamp(range.start, range.end);
        let is_before = |at: usize| self.times[at] < time;
        let mut step = 1;
        let (mut from, mut to) = (near, near);
        if near < range.end && is_before(near) {
            from = near + 1;
            to = from;
            while to < range.end && is_before(to) {
                from = to + 1;
                to = range.end.min(to + step);
                step *= 2;
            }
        } else {
            while from > range.start && !is_before(from - 1) {
                to = from - 1;
                from = to.saturating_sub(step).max(range.start);
                step *= 2;
            }
        }
        let found = from + self.times[from..to].partition_point(|at| *at < time);
        if found != near {
            self.near.store(found, Access::Relaxed);
        }
        found
    }

    pub(super) fn records<'l>(&'l self, reading: Reading<'l>) -> Records<'l> {
        Records { reading, by_time: self, start: 0, end: self.facts.len() }
    }
}

/// Which of two clocks with the same revision counts, in order of clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TieBreak {
    First,
    Last,
}

impl TieBreak {
    /// Whether a revision that a clock shows replaces the highest one so far, of another clock.
    fn raises(self, revision: Revision, clock: ClockId, highest: Option<Observation>) -> bool {
        let is_preferred = |other: ClockId| match self {
            TieBreak::First => clock < other,
            TieBreak::Last => clock > other,
        };
        highest.is_none_or(|highest| match revision.cmp(&highest.revision) {
            Ordering::Less => false,
            Ordering::Equal => is_preferred(highest.clock),
            Ordering::Greater => true,
        })
    }
}

/// The observations that raised the maximum of their clock, in order of clock, then time.
#[derive(Clone, Copy, Debug)]
pub struct Records<'l> {
    reading: Reading<'l>,
    by_time: &'l FactsByTime,
    start: usize,
    end: usize,
}

impl<'l> Records<'l> {
    /// The highest observation that was certainly complete before a moment.
    pub fn before(&self, clocks: &Clocks, clock: ClockId, time: Time) -> Option<Observation> {
        self.highest_before(clocks, clock, time, TieBreak::Last)
    }

    /// Like [`Records::before`]. `tie_break` decides between clocks with the same revision.
    pub(super) fn highest_before(
        &self,
        clocks: &Clocks,
        clock: ClockId,
        time: Time,
        tie_break: TieBreak,
    ) -> Option<Observation> {
        let records = if clocks.relate() { *self } else { self.of_clock(clock) };
        let latest = clocks.latest_horizon(clock, time)?;
        records.highest_by(latest, |of| clocks.horizon(of, clock, time), tie_break)
    }

    /// The highest observation of all clocks, each up to its horizon. No horizon is later than `latest`.
    fn highest_by(
        self,
        latest: Time,
        horizon: impl Fn(ClockId) -> Option<Time>,
        tie_break: TieBreak,
    ) -> Option<Observation> {
        let higher = |clock: ClockId, records: Records<'_>, highest: Option<Observation>| {
            let last = horizon(clock).and_then(|horizon| records.last(horizon));
            last.filter(|last| tie_break.raises(last.revision, clock, highest)).or(highest)
        };
        let places = self.known_runs();
        if places.len() < 2 {
            return self.runs().fold(None, |highest, (clock, records, _)| higher(clock, records, highest));
        }
        let mut highest: Option<Observation> = None;
        // Clocks that begin later mostly show higher revisions, so few are looked at.
        for (place, top_of_rest) in self.by_time.runs.begun_before(places, latest) {
            if highest.is_some_and(|highest| highest.revision > top_of_rest) {
                break;
            }
            let (run, records) = self.run(place);
            if tie_break.raises(run.top, run.clock, highest) {
                highest = higher(run.clock, records, highest);
            }
        }
        highest
    }

    /// Like [`Records::before`], but compares the times of all clocks as if all clocks agreed.
    pub fn before_by_the_clock(&self, time: Time) -> Option<Observation> {
        let known = self.known_runs().len();
        if known > MAX_RELATED_CLOCKS || (known == 0 && self.runs().nth(MAX_RELATED_CLOCKS).is_some()) {
            return None;
        }
        self.highest_by(time, |_| Some(time), TieBreak::Last)
    }

    /// On each clock, the first observation of at least a revision.
    pub(super) fn reached(self, revision: Revision) -> impl Iterator<Item = Observation> + use<'l> {
        let high = self.runs().filter(move |(.., top)| top.is_none_or(|top| top >= revision));
        high.filter_map(move |(_, run, _)| {
            let at = run.below(revision);
            (at < run.end).then(|| run.observation(at))
        })
    }

    fn observation(&self, at: usize) -> Observation {
        self.reading.observation(self.by_time.facts[at])
    }

    /// The records of each clock, in order of clock. The highest revision of each comes with it where that is kept.
    fn runs(self) -> impl Iterator<Item = (ClockId, Records<'l>, Option<Revision>)> {
        let mut rest = self;
        let mut known = self.known_runs();
        std::iter::from_fn(move || {
            if rest.start == rest.end {
                return None;
            }
            let (clock, records, top) = match known.next() {
                Some(place) => {
                    let (run, records) = self.run(place);
                    (run.clock, records, Some(run.top))
                }
                None => (rest.clock(), rest.of_clock(rest.clock()), None),
            };
            rest.start = records.end;
            Some((clock, records, top))
        })
    }

    /// The places of the clocks of these records, where these are kept.
    fn known_runs(&self) -> Range<usize> {
        self.by_time.runs.places(self.start..self.end)
    }

    /// A run among these records.
    fn run(&self, place: usize) -> (Run, Records<'l>) {
        let (run, end) = self.by_time.runs.get(place);
        let end = end.map_or(self.end, |end| self.end.min(end as usize));
        (*run, Records { start: self.start.max(run.start as usize).min(end), end, ..*self })
    }

    /// The records of one clock.
    pub(super) fn of_clock(self, clock: ClockId) -> Records<'l> {
        if self.reading.has_one_clock() {
            return if clock == ClockId(0) { self } else { Records { end: self.start, ..self } };
        }
        if !self.by_time.runs.is_empty() {
            let place = self.by_time.runs.find(self.known_runs(), clock);
            return place.map_or(Records { end: self.start, ..self }, |place| self.run(place).1);
        }
        let facts = &self.by_time.facts[self.start..self.end];
        let of = |fact: &u32| self.reading.clock(*fact);
        if facts.first().zip(facts.last()).is_some_and(|(a, b)| (of(a), of(b)) == (clock, clock)) {
            return self;
        }
        let start = self.start + facts.partition_point(|fact| of(fact) < clock);
        let end = self.start + facts.partition_point(|fact| of(fact) <= clock);
        Records { start, end, ..self }
    }

    /// The clock of the first record.
    fn clock(&self) -> ClockId {
        if self.reading.has_one_clock() { ClockId(0) } else { self.reading.clock(self.by_time.facts[self.start]) }
    }

    /// The highest observation of one clock before a time of that clock.
    pub(super) fn last(&self, horizon: Time) -> Option<Observation> {
        let at = self.by_time.before(self.reading, self.start..self.end, horizon);
        (at > self.start).then(|| self.observation(at - 1))
    }

    /// The first record of one clock that is not below a revision.
    fn below(&self, revision: Revision) -> usize {
        let facts = &self.by_time.facts[self.start..self.end];
        self.start + facts.partition_point(|&fact| self.reading.revision(fact) < revision)
    }
}

/// Observations of one kind in order of clock, then time: those that raised the maximum of their clock, and the rest.
#[derive(Debug, Default)]
pub(super) struct Observations {
    raised: FactsByTime,
    rest: Vec<u32>,
}

impl Observations {
    /// The facts that raised the maximum of their clock. Input: facts in order.
    pub(super) fn raised(reading: Reading<'_>, facts: &[SortableFact]) -> FactsByTime {
        Observations::new(reading, facts).raised
    }

    /// Input: facts in order of clock, then time.
    pub(super) fn new(reading: Reading<'_>, facts: &[SortableFact]) -> Observations {
        let mut observations = Observations::default();
        let mut best: Option<(ClockId, Revision)> = None;
        for sortable in facts {
            let revision = sortable.revision(reading);
            let begins = best.is_none_or(|best| best.0 != sortable.clock);
            if begins || best.is_none_or(|best| revision > best.1) {
                best = Some((sortable.clock, revision));
                observations.raised.push_in_order(sortable, revision, begins);
            } else {
                observations.rest.push(sortable.fact);
            }
        }
        observations.raised.fit([0]);
        observations.rest.shrink_to_fit();
        observations
    }

    pub(super) fn line<'l>(&'l self, reading: Reading<'l>) -> RunningMax<'l> {
        RunningMax { records: self.raised.records(reading), rest: &self.rest }
    }
}

/// Observations of one kind in order of clock, then time.
#[derive(Clone, Copy, Debug)]
pub struct RunningMax<'l> {
    records: Records<'l>,
    /// The observations that raised no maximum.
    rest: &'l [u32],
}

impl<'l> RunningMax<'l> {
    /// See [`Records::before`].
    pub fn before(&self, clocks: &Clocks, clock: ClockId, time: Time) -> Option<Observation> {
        self.records.before(clocks, clock, time)
    }

    /// See [`Records::before_by_the_clock`].
    pub fn before_by_the_clock(&self, time: Time) -> Option<Observation> {
        self.records.before_by_the_clock(time)
    }

    /// The time of the first observation. Meaningful only if all have one clock.
    pub fn begins(&self) -> Option<Time> {
        self.records.by_time.times.first().copied()
    }

    /// Observations above a revision that were certainly complete before a moment, the latest of each clock first.
    pub fn above(
        &self,
        clocks: &'l Clocks,
        clock: ClockId,
        time: Time,
        revision: Revision,
    ) -> impl Iterator<Item = Observation> + use<'l> {
        let (rest, reading) = (self.rest, self.records.reading);
        let records = if clocks.relate() { self.records } else { self.records.of_clock(clock) };
        // A clock with a lower highest revision has nothing above.
        let high = records.runs().filter(move |(.., top)| top.is_none_or(|top| top > revision));
        high.flat_map(move |(of, run, _)| {
            let horizon = clocks.horizon(of, clock, time);
            let end = horizon.map_or(run.start, |h| run.by_time.before(reading, run.start..run.end, h));
            // If the last record is not above, nothing is. The first record above comes before all other observations above.
            let any = end > run.start && run.observation(end - 1).revision > revision;
            let from = if any { run.below(revision.next()) } else { end };
            let others = match horizon {
                Some(horizon) if any => {
                    let first = run.observation(from).place();
                    let from = rest.partition_point(|&fact| reading.observation(fact).place() < first);
                    let in_time = |observation: Observation| (observation.clock, observation.time) < (of, horizon);
                    &rest[from..rest.partition_point(|&fact| in_time(reading.observation(fact))).max(from)]
                }
                _ => &[],
            };
            latest_first(reading, &run.by_time.facts[from..end], others).filter(move |s| s.revision > revision)
        })
    }
}

/// Merges two lists in the same order, from the end.
fn latest_first<'l>(
    reading: Reading<'l>,
    mut records: &'l [u32],
    mut others: &'l [u32],
) -> impl Iterator<Item = Observation> + use<'l> {
    std::iter::from_fn(move || {
        let ends = [records, others].map(|facts| facts.last().map(|&fact| reading.observation(fact)));
        let later = ends[1].is_some_and(|other| ends[0].is_none_or(|record| record.place() < other.place()));
        let side = if later { &mut others } else { &mut records };
        *side = side.split_last()?.1;
        ends[usize::from(later)]
    })
}

/// Observations by key.
#[derive(Debug, Default)]
pub(super) struct ByKey {
    /// Every key with the start of its part of `raised`.
    starts: Vec<(KeyId, u32)>,
    /// The observations that raised the maximum of their key and clock, in order of key, then place.
    raised: FactsByTime,
}

impl ByKey {
    /// Input: facts in order of clock, then time.
    pub(super) fn new(reading: Reading<'_>, facts: &[SortableFact]) -> ByKey {
        let key = |sortable: &SortableFact| reading.facts.key(reading.history, sortable.fact);
        let mut order: Vec<(KeyId, u32)> = (0..).zip(facts).map(|(at, sortable)| (key(sortable), at)).collect();
        order.sort_unstable();
        let mut by_key = ByKey::default();
        let mut best: Option<(KeyId, ClockId, Revision)> = None;
        for (key, at) in order {
            let sortable = &facts[at as usize];
            let revision = sortable.revision(reading);
            if best.is_none_or(|best| best.0 != key) {
                by_key.starts.push((key, by_key.raised.facts.len() as u32));
            }
            let begins = best.is_none_or(|best| (best.0, best.1) != (key, sortable.clock));
            if begins || best.is_none_or(|best| revision > best.2) {
                best = Some((key, sortable.clock, revision));
                match reading.history.clocks.len() > FactsByTime::MAX_CLOCKS_WITHOUT_STARTS {
                    true => by_key.raised.push_in_order(sortable, revision, begins),
                    false => by_key.raised.push(sortable),
                }
            }
        }
        by_key.starts.shrink_to_fit();
        by_key.raised.fit(by_key.starts.iter().map(|(_, start)| *start));
        by_key
    }

    pub(super) fn keyed<'l>(&'l self, reading: Reading<'l>) -> PerKeyMax<'l> {
        PerKeyMax { kept: self, reading }
    }
}

/// Observations by key, with the history they are read from.
#[derive(Clone, Copy, Debug)]
pub struct PerKeyMax<'l> {
    kept: &'l ByKey,
    reading: Reading<'l>,
}

impl<'l> PerKeyMax<'l> {
    /// The observations of a key that raised the maximum of their clock.
    pub fn get(&self, key: &KeyId) -> Option<Records<'l>> {
        let starts = &self.kept.starts;
        let at = starts.binary_search_by_key(key, |(key, _)| *key).ok()?;
        let all = self.kept.raised.records(self.reading);
        let end = starts.get(at + 1).map_or(all.end, |(_, start)| *start as usize);
        Some(Records { start: starts[at].1 as usize, end, ..all })
    }
}

#[cfg(test)]
mod tests;
