//! Watermarks: the highest revision that was certainly committed at a time of a clock. Input: answers and deliveries with their
//! revisions. Output: [`Watermarks`], a running maximum for each counter group and clock.
//!
//! An answer that shows revision R proves, when it returns, that every revision through R is committed. Evidence that shows more
//! than was committed is left out first (see `discarded_evidence`). Revisions compare only within one counter group.

mod discarded_evidence;

pub use discarded_evidence::write_of_event;

use self::discarded_evidence::DiscardedEvidence;
use super::clock::{Clocks, MAX_RELATED_CLOCKS, TwiceRecorded};
use super::observation::{Facts, FactsByTime, Observations, Reading, Records, SortableFact, TieBreak};
use super::shown::{EvidenceRef, Observation};
use super::timeline::Timeline;
use crate::history::writers::Writers;
use crate::history::{
    ClockId, DeliveryKind, History, Marks, Operation, OperationId, ResourceId, Revision, Verb, sort_by_word,
};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// A sent write: its revision, clock, send time and operation.
pub type Sent = (Revision, ClockId, Time, OperationId);

/// Counter groups of resources, with the evidence of each group: what answers and deliveries show, and which writes were sent.
#[derive(Debug, Default)]
pub struct Counter {
    /// The group of each resource. A domain is one group, but a resource that may have an etcd of its own is a group alone.
    group_of: Vec<u32>,
    facts: Facts,
    /// Per group: facts that show a committed revision.
    shown: Vec<Vec<u32>>,
    /// Per group: the answers of writes.
    sent: Vec<Vec<u32>>,
    /// The requests that two sides recorded.
    pub(super) twice_recorded: TwiceRecorded,
}

impl Counter {
    /// Collects the revisions that answers and deliveries show.
    pub fn collect_all(history: &History, timeline: &Timeline) -> Counter {
        let mut of: FxHashMap<(u32, Option<u32>), u32> = FxHashMap::default();
        let mut counter = Counter {
            facts: Facts::of(history),
            twice_recorded: TwiceRecorded::collect(history),
            ..Counter::default()
        };
        for (index, placement) in history.placements.iter().enumerate() {
            let own = placement.overridable.then_some(index as u32);
            let next = of.len() as u32;
            counter.group_of.push(*of.entry((placement.domain.0, own)).or_insert(next));
        }
        counter.shown = vec![Vec::new(); of.len()];
        counter.sent = vec![Vec::new(); of.len()];
        for (id, o) in history.operations.by_id() {
            let group = counter.group_of[history.scopes[o.scope.index()].resource.index()] as usize;
            let shows = o.is_answered()
                && o.answered.is_some()
                && o.ret.is_known()
                && o.clock.is_some()
                && !o.marks.has(Marks::DRY_RUN);
            if shows && o.verb != Verb::Watch {
                counter.shown[group].push(counter.facts.answer(id));
            }
            let writes = o.verb.is_write() && o.invoke.is_known() && o.clock.is_some() && o.key.is_some();
            if writes && o.answered.is_some() && timeline.made_its_answer(history, id, &o) {
                counter.sent[group].push(counter.facts.answer(id));
            }
        }
        // The revision of a deletion comes from other evidence, and the timeline names its writer.
        for version in timeline.deletions().filter(|v| v.writer.is_some()) {
            let group = counter.group_of[history.resource_of(version.key).index()] as usize;
            let other = counter.twice_recorded.other(&history.operation(version.writer)).map(|other| other.id);
            for id in [version.writer].into_iter().chain(other) {
                let o = history.operation(id);
                if !o.clock.is_some() {
                    continue;
                }
                let (revision, key, evidence) = (version.revision, version.key, EvidenceRef::Answer(id));
                let fact = counter.facts.other(Observation { time: o.ret, clock: o.clock, revision, key, evidence });
                if o.invoke.is_known() {
                    counter.sent[group].push(fact);
                }
                if o.ret.is_known() && o.is_answered() {
                    counter.shown[group].push(fact);
                }
            }
        }
        for stream in &history.streams {
            let o = history.operation(stream.operation);
            if !o.scope.is_some() || !o.clock.is_some() {
                continue;
            }
            let group = counter.group_of[history.scopes[o.scope.index()].resource.index()] as usize;
            for index in stream.deliveries() {
                let d = &history.deliveries[index];
                if d.at.is_known()
                    && d.revision.is_some()
                    && d.kind != DeliveryKind::Error
                    && !timeline.is_misdated(index)
                {
                    counter.shown[group].push(counter.facts.delivery(index));
                }
            }
        }
        counter
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.shown.len()
    }

    /// The group of a resource.
    pub fn group(&self, resource: ResourceId) -> usize {
        self.group_of[resource.index()] as usize
    }

    /// Writes and observations of one group by revision, from which the clock bounds are derived.
    pub fn by_revision<'c>(
        &'c mut self,
        history: &'c History,
        group: usize,
    ) -> (impl Iterator<Item = Sent> + use<'c>, impl Iterator<Item = Observation> + use<'c>) {
        let reading = Reading { history, facts: &self.facts };
        let revision = |fact| u64::try_from(reading.revision(fact).value()).unwrap_or(u64::MAX);
        sort_by_word(&mut self.sent[group], revision, |fact| sent(reading, fact));
        reading.sort_by_revision(&mut self.shown[group]);
        // A write that does not prove its revision bounds no clock.
        let proven = self.sent[group].iter().filter(move |&&fact| reading.is_proven(fact));
        let sent = proven.map(move |&fact| sent(reading, fact));
        (sent, self.shown[group].iter().map(move |&fact| reading.observation(fact)))
    }
}

/// The sent write behind an answer.
fn sent(reading: Reading<'_>, fact: u32) -> Sent {
    let id = reading.operation(fact);
    (reading.revision(fact), reading.clock(fact), reading.history.operations.invoke(id.index()), id)
}

/// The watermarks of every counter group on every clock.
#[derive(Debug, Default)]
pub struct Watermarks {
    clocks: usize,
    group_of: Vec<u32>,
    facts: Facts,
    /// Per group: the facts that raised the watermark of their clock.
    raised: Vec<FactsByTime>,
    /// Per group: the writes of each clock, in order of clock.
    future: Vec<Vec<LaterWrites>>,
    refuted: DiscardedEvidence,
    /// See [`Watermarks::are_steady`].
    steady: bool,
}

/// The writes of one group and clock.
#[derive(Debug)]
struct LaterWrites {
    clock: ClockId,
    /// In order of sending, each with a lower revision than every later one. Patches without a base count as the writers of what
    /// their answers show; that is good enough where it only suppresses a finding.
    all: Future,
    /// The same, only writes that prove their revision. `None` if all do.
    proven: Option<Future>,
}

/// Writes in order of sending, with the send time of one in each [`STRIDE`]. A search by time then reads few of the writes.
#[derive(Debug, Default)]
struct Future {
    facts: Vec<u32>,
    times: Vec<Time>,
    /// The lowest revision, which is that of the first write, and the last send time. They exclude most clocks without a search.
    span: Option<(Revision, Time)>,
}

const STRIDE: usize = 16;

impl Future {
    fn of(reading: Reading<'_>, writes: &[&SortableFact]) -> Future {
        let ends = writes.first().zip(writes.last());
        Future {
            span: ends.map(|(first, last)| (first.revision(reading), last.time)),
            facts: writes.iter().map(|sortable| sortable.fact).collect(),
            times: writes.iter().step_by(STRIDE).map(|sortable| sortable.time).collect(),
        }
    }

    /// The number of leading writes with a send time that satisfies a condition. The condition holds up to some time only.
    fn count(&self, sent: impl Fn(u32) -> Time, is_true: impl Fn(Time) -> bool) -> usize {
        let end = (self.times.partition_point(|time| is_true(*time)) * STRIDE).min(self.facts.len());
        let from = end.saturating_sub(1) / STRIDE * STRIDE;
        from + self.facts[from..end].partition_point(|fact| is_true(sent(*fact)))
    }
}

/// The writes with a lower revision than all later ones. Input: writes in order of sending.
fn lowest<'p>(
    reading: Reading<'_>,
    writes: impl DoubleEndedIterator<Item = &'p SortableFact>,
) -> Vec<&'p SortableFact> {
    let mut lowest: Vec<&SortableFact> = Vec::new();
    for sortable in writes.rev() {
        if lowest.last().is_none_or(|lowest| sortable.revision(reading) < lowest.revision(reading)) {
            lowest.push(sortable);
        }
    }
    lowest.reverse();
    lowest
}

/// Whether no write was sent after an observation of its revision or a higher one. Input: writes in order, each with a lower
/// revision than all later ones, so one pass over both lists is enough.
fn never_fell(reading: Reading<'_>, shown: &[SortableFact], writes: &[&SortableFact]) -> bool {
    let mut shown = shown.iter().peekable();
    let mut watermark = Revision::NONE;
    writes.iter().all(|write| {
        while let Some(higher) = shown.next_if(|shown| shown.time < write.time) {
            watermark = watermark.max(higher.revision(reading));
        }
        watermark < write.revision(reading)
    })
}

/// A cursor over the writes of each counter, for questions in order of time.
pub(super) struct Walk<'l> {
    watermarks: &'l Watermarks,
    history: &'l History,
    lines: Vec<Next<'l>>,
}

struct Next<'l> {
    /// The send time and revision of the next write.
    next: Option<(Time, Revision)>,
    /// The writes after it.
    rest: &'l [u32],
}

impl Walk<'_> {
    /// Whether the revision that a request names lies below the revision of every write sent later: see
    /// [`Watermarks::may_have_reached`].
    pub(super) fn has_reached(&mut self, resource: ResourceId, request: &Operation) -> bool {
        request.clock.is_some()
            && request.invoke.is_known()
            && self.from(resource, request.invoke).is_none_or(|lowest| lowest > request.asked_revision)
    }

    /// The lowest revision of the writes that were sent at a time or later. Successive calls must not go back in time.
    pub(super) fn from(&mut self, resource: ResourceId, time: Time) -> Option<Revision> {
        let line = &mut self.lines[self.watermarks.group_of[resource.index()] as usize];
        let reading = self.watermarks.reading(self.history);
        while line.next.is_none_or(|(at, _)| at < time) {
            line.next = None;
            let (&fact, rest) = line.rest.split_first()?;
            line.rest = rest;
            let (revision, _, at, _) = sent(reading, fact);
            line.next = Some((at, revision));
        }
        line.next.map(|(_, revision)| revision)
    }
}

/// A revision that was certainly committed, and the evidence.
#[derive(Clone, Copy, Debug)]
pub struct Watermark {
    /// The revision; later ones may be committed too.
    pub revision: Revision,
    /// When the evidence was complete.
    pub time: Time,
    /// The clock of that time.
    pub clock: ClockId,
    /// The evidence.
    pub showing: EvidenceRef,
}

impl From<Observation> for Watermark {
    fn from(Observation { time, clock, revision, evidence: showing, .. }: Observation) -> Watermark {
        Watermark { revision, time, clock, showing }
    }
}

impl Watermarks {
    /// Builds the running maxima and leaves out discarded evidence.
    pub fn build(history: &History, unknown: &[Option<Writers>], timeline: &Timeline, counter: &Counter) -> Watermarks {
        let facts = counter.facts.clone();
        let reading = Reading { history, facts: &facts };
        let mut raised = Vec::with_capacity(counter.groups());
        let mut future = Vec::with_capacity(counter.groups());
        let mut refuted = DiscardedEvidence::default();
        // Bare times of several servers contradict nothing.
        let is_one = |clock: ClockId| unknown.get(clock.index()).is_none_or(Option::is_none);
        let mut steady = history.clocks.len() == 1 && is_one(ClockId(0));
        for (shown, sent) in counter.shown.iter().zip(&counter.sent) {
            let mut of_group = Vec::new();
            let mut shown = reading.in_order(shown.iter().copied());
            let sent = reading.in_order_of_sending(sent.iter().copied());
            for of_clock in sent.chunk_by(|a, b| a.clock == b.clock) {
                let clock = of_clock[0].clock;
                let all = lowest(reading, of_clock.iter());
                let from = shown.partition_point(|shown| shown.clock < clock);
                let to = shown.partition_point(|shown| shown.clock <= clock);
                if is_one(clock) && !never_fell(reading, &shown[from..to], &all) {
                    steady = false;
                    refuted.add(reading, timeline, &counter.twice_recorded, &shown[from..to], of_clock);
                }
                let certain = of_clock.iter().filter(|sortable| reading.is_proven(sortable.fact));
                let are_all = certain.clone().count() == of_clock.len();
                let proven = (!are_all).then(|| Future::of(reading, &lowest(reading, certain)));
                of_group.push(LaterWrites { clock, all: Future::of(reading, &all), proven });
            }
            future.push(of_group);
            shown.retain(|shown| !refuted.has(shown.fact));
            raised.push(Observations::raised(reading, &shown));
        }
        let group_of = counter.group_of.clone();
        Watermarks { clocks: history.clocks.len(), group_of, facts, raised, future, refuted, steady }
    }

    /// Whether there is one clock and no write was sent after an observation of its revision or a higher one. This is the usual
    /// case, and it answers most questions about earlier revisions without a search.
    pub(super) fn are_steady(&self) -> bool {
        self.steady
    }

    /// A cursor over the writes of the only clock, for requests in order of time.
    pub(super) fn walk<'l>(&'l self, history: &'l History) -> Walk<'l> {
        // All writes have the only clock, and none lacks one.
        let line = |of_group: &'l Vec<LaterWrites>| {
            of_group.iter().find(|line| line.clock == ClockId(0)).map_or(&[][..], |line| &line.all.facts)
        };
        let lines = self.future.iter().map(|of_group| Next { next: None, rest: line(of_group) }).collect();
        Walk { watermarks: self, history, lines }
    }

    fn reading<'l>(&'l self, history: &'l History) -> Reading<'l> {
        Reading { history, facts: &self.facts }
    }

    fn records<'l>(&'l self, history: &'l History, resource: ResourceId) -> Records<'l> {
        self.raised[self.group_of[resource.index()] as usize].records(self.reading(history))
    }

    /// The highest revision that a clock shows in a group before a time of that clock.
    pub(super) fn seen(&self, history: &History, group: usize, clock: ClockId, time: Time) -> Option<Revision> {
        let records = self.raised[group].records(self.reading(history));
        Some(records.of_clock(clock).last(time)?.revision)
    }

    /// The list or delivery that contradicts a write: it alone shows the revision of the write or a higher one, before the write
    /// was sent by the same clock.
    pub fn against(&self, history: &History, write: OperationId) -> Option<Watermark> {
        self.refuted.by(write).map(|fact| self.reading(history).observation(fact).into())
    }

    /// The writes that a list or delivery contradicts in this way, in order of sending.
    pub fn alone_against(&self, showing: EvidenceRef) -> &[OperationId] {
        self.refuted.writes(showing)
    }

    /// The highest revision that was certainly committed before a moment.
    pub fn before(
        &self,
        history: &History,
        clocks: &Clocks,
        resource: ResourceId,
        clock: ClockId,
        time: Time,
    ) -> Option<Watermark> {
        if !clock.is_some() {
            return None;
        }
        self.records(history, resource).highest_before(clocks, clock, time, TieBreak::First).map(Watermark::from)
    }

    /// The highest revision that was certainly committed before a request was sent, by either record of the request.
    pub fn before_request(
        &self,
        history: &History,
        clocks: &Clocks,
        resource: ResourceId,
        request: &Operation,
    ) -> Option<Watermark> {
        let of_records =
            clocks.sent(request).filter_map(|(time, clock)| self.before(history, clocks, resource, clock, time));
        // The first one of equals stays: the client's record comes first.
        of_records.reduce(|best, next| if next.revision > best.revision { next } else { best })
    }

    /// As [`Watermarks::before`], by the bare times of all clocks: what would follow if all clocks agreed.
    pub fn before_by_the_clock(&self, history: &History, resource: ResourceId, time: Time) -> Option<Watermark> {
        if !time.is_known() || self.clocks > MAX_RELATED_CLOCKS {
            return None;
        }
        self.records(history, resource).before_by_the_clock(time).map(Watermark::from)
    }

    /// On each clock, the first observation of at least this revision.
    pub fn reached<'l>(
        &'l self,
        history: &'l History,
        resource: ResourceId,
        revision: Revision,
    ) -> impl Iterator<Item = Watermark> + use<'l> {
        self.records(history, resource).reached(revision).map(Watermark::from)
    }

    /// Whether the revision that a request names may have existed when the request was sent: no write that was certainly sent
    /// later got this revision or a lower one. A server cannot have shown a revision that did not exist.
    pub fn may_have_reached(&self, history: &History, clocks: &Clocks, request: &Operation) -> bool {
        let Some(scope) = history.scopes.get(request.scope.index()) else { return true };
        let moment = (request.invoke, request.clock);
        self.may_be_below(history, clocks, scope.resource, moment, request.asked_revision)
    }

    /// Whether no write that was certainly sent after a moment is known to have got this revision or a lower one.
    pub(super) fn may_be_below(
        &self,
        history: &History,
        clocks: &Clocks,
        resource: ResourceId,
        moment: (Time, ClockId),
        revision: Revision,
    ) -> bool {
        let later = self.sent_after(history, clocks, resource, moment, |line| &line.all);
        later.is_none_or(|(lowest, _)| lowest > revision)
    }

    /// The lowest revision that a write certainly got and that was certainly sent after a moment. Every change that was complete
    /// at the moment has a lower revision.
    pub fn after(
        &self,
        history: &History,
        clocks: &Clocks,
        resource: ResourceId,
        clock: ClockId,
        time: Time,
    ) -> Option<(Revision, OperationId)> {
        self.sent_after(history, clocks, resource, (time, clock), |line| line.proven.as_ref().unwrap_or(&line.all))
    }

    /// The lowest revision that a write certainly got which was certainly sent after the answer to a request, by either record
    /// of the request.
    pub fn after_answer(
        &self,
        history: &History,
        clocks: &Clocks,
        resource: ResourceId,
        request: &Operation,
    ) -> Option<(Revision, OperationId)> {
        let of_records =
            clocks.answered(request).filter_map(|(time, clock)| self.after(history, clocks, resource, clock, time));
        of_records.min_by_key(|(revision, _)| *revision)
    }

    fn sent_after<'l>(
        &'l self,
        history: &History,
        clocks: &Clocks,
        resource: ResourceId,
        (time, clock): (Time, ClockId),
        line: impl Fn(&'l LaterWrites) -> &'l Future,
    ) -> Option<(Revision, OperationId)> {
        if !clock.is_some() || !time.is_known() {
            return None;
        }
        let of_group = &self.future[self.group_of[resource.index()] as usize];
        let lines = if clocks.relate() {
            &of_group[..]
        } else {
            of_group.binary_search_by_key(&clock, |line| line.clock).map_or(&[][..], |at| &of_group[at..=at])
        };
        let reading = self.reading(history);
        let mut found: Option<(Revision, OperationId)> = None;
        for of_clock in lines {
            let (of, line) = (of_clock.clock, line(of_clock));
            let Some((lowest, last)) = line.span else { continue };
            let is_later = |sent| clocks.before((time, clock), (sent, of));
            // The first clock wins among equals.
            if found.is_some_and(|(found, _)| found <= lowest) || !is_later(last) {
                continue;
            }
            let after = line.count(|fact| reading.sent(fact), |sent| !is_later(sent));
            let Some(fact) = line.facts.get(after) else { continue };
            let (revision, _, _, id) = sent(reading, *fact);
            if found.is_none_or(|(found, _)| revision < found) {
                found = Some((revision, id));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_writes_are_counted_like_by_looking_at_each_of_them() {
        for length in [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, 5 * STRIDE + 3] {
            // Several writes have one send time.
            let sent = |fact: u32| Time(i64::from(fact / 3));
            let facts: Vec<u32> = (0..length as u32).collect();
            let times = facts.iter().step_by(STRIDE).map(|fact| sent(*fact)).collect();
            let future = Future { facts, times, span: None };
            for until in (-1..=length as i64).map(Time) {
                let all = future.facts.iter().filter(|fact| sent(**fact) < until).count();
                assert_eq!(future.count(sent, |time| time < until), all, "{length} writes until {until:?}");
            }
        }
    }
}
