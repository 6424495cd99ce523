//! The head: how far a counter had certainly come at a time of a clock.
//!
//! An answer that shows revision R proves, at its return, that every revision through R is committed. The running maximum of
//! all answers of one clock is that clock's view of the head.

use super::clock::{Clocks, RELATED};
use super::timeline::Timeline;
use crate::history::{ClockId, DeliveryKind, History, Marks, OperationId, ResourceId, Revision, Verb};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

/// What shows a head: an operation's answer, or a delivery of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Showing {
    /// The answer of an operation.
    Answer(OperationId),
    /// A delivery: index into the history's deliveries, and its watch.
    Delivery(u32, OperationId),
}

/// A revision that was shown: when, on which clock, which, by what.
pub type Shown = (Time, ClockId, Revision, Showing);

/// A write that was sent: its revision, clock, invoke time, and itself.
pub type Sent = (Revision, ClockId, Time, OperationId);

/// Which revisions come from one counter for certain, and what each answer shows of it.
#[derive(Debug, Default)]
pub struct Counter {
    /// Group of each resource: one group a domain for resources that cannot have an etcd of their own, else one each.
    group_of: Vec<u32>,
    groups: u32,
    /// Per group.
    shown: Vec<Vec<Shown>>,
    /// Per group.
    sent: Vec<Vec<Sent>>,
}

impl Counter {
    /// Collects what every answer shows.
    pub fn collect_all(history: &History, timeline: &Timeline) -> Counter {
        let mut of: FxHashMap<(u32, Option<u32>), u32> = FxHashMap::default();
        let mut counter = Counter::default();
        for (index, placement) in history.placements.iter().enumerate() {
            let own = placement.overridable.then_some(index as u32);
            let next = of.len() as u32;
            counter.group_of.push(*of.entry((placement.domain.0, own)).or_insert(next));
        }
        counter.groups = of.len() as u32;
        counter.shown = vec![Vec::new(); of.len()];
        counter.sent = vec![Vec::new(); of.len()];
        for (index, o) in history.operations.iter().enumerate() {
            let id = OperationId(index as u32);
            let group = counter.group_of[history.scopes[o.scope.index()].resource.index()] as usize;
            let shows = o.is_answered()
                && o.answered.is_some()
                && o.ret.is_known()
                && o.clock.is_some()
                && !o.marks.has(Marks::DRY_RUN);
            if shows && o.verb != Verb::Watch {
                counter.shown[group].push((o.ret, o.clock, o.answered, Showing::Answer(id)));
            }
            let writes = o.verb.is_write() && o.invoke.is_known() && o.clock.is_some() && o.key.is_some();
            if writes && o.answered.is_some() && timeline.writer(o.key, o.answered) == Some(id) {
                counter.sent[group].push((o.answered, o.clock, o.invoke, id));
            }
        }
        // A deletion's revision is known from elsewhere; its writer from the timeline.
        for version in
            timeline.all().iter().filter(|v| v.change == super::timeline::Change::Deleted && v.writer.is_some())
        {
            let o = history.operation(version.writer);
            let group = counter.group_of[history.resource_of(version.key).index()] as usize;
            if o.invoke.is_known() && o.clock.is_some() {
                counter.sent[group].push((version.revision, o.clock, o.invoke, version.writer));
            }
            if o.ret.is_known() && o.clock.is_some() && o.is_answered() {
                counter.shown[group].push((o.ret, o.clock, version.revision, Showing::Answer(version.writer)));
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
                    counter.shown[group].push((
                        d.at,
                        o.clock,
                        d.revision,
                        Showing::Delivery(index as u32, stream.operation),
                    ));
                }
            }
        }
        counter
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.groups as usize
    }

    /// The group of a resource.
    pub fn group(&self, resource: ResourceId) -> usize {
        self.group_of[resource.index()] as usize
    }

    /// What was shown of one group, by time.
    pub fn by_time(&mut self, group: usize) -> &[Shown] {
        self.shown[group].sort_unstable();
        &self.shown[group]
    }

    /// Writes and answers of one group by revision, for the clocks.
    pub fn by_revision(&mut self, group: usize) -> (&[Sent], &[Shown]) {
        self.sent[group].sort_unstable();
        self.shown[group].sort_unstable_by_key(|&(time, clock, revision, showing)| (revision, clock, time, showing));
        (&self.sent[group], &self.shown[group])
    }
}

/// The heads of every counter group on every clock.
#[derive(Debug, Default)]
pub struct Heads {
    clocks: usize,
    /// Per group and clock: (time, revision, what shows it), both ascending.
    lines: Vec<Vec<(Time, Revision, Showing)>>,
    /// Per group and clock: writes by invoke time with the lowest revision from there on: (invoke, revision, write).
    future: Vec<Vec<(Time, Revision, OperationId)>>,
    group_of: Vec<u32>,
}

/// How far a counter had come, and what proves it.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// At least this revision.
    pub revision: Revision,
    /// When that was shown.
    pub time: Time,
    /// On which clock.
    pub clock: ClockId,
    /// By what.
    pub showing: Showing,
}

impl Heads {
    /// Builds the running maxima.
    pub fn build(history: &History, counter: Counter) -> Heads {
        let clocks = history.clocks.len();
        let mut heads = Heads { clocks, group_of: counter.group_of.clone(), ..Heads::default() };
        heads.lines = vec![Vec::new(); counter.groups() * clocks];
        heads.future = vec![Vec::new(); counter.groups() * clocks];
        for (group, mut shown) in counter.shown.into_iter().enumerate() {
            shown.sort_unstable();
            for (time, clock, revision, showing) in shown {
                let line = &mut heads.lines[group * clocks + clock.index()];
                if line.last().is_none_or(|l| revision > l.1) {
                    line.push((time, revision, showing));
                }
            }
        }
        for (group, mut sent) in counter.sent.into_iter().enumerate() {
            sent.sort_unstable_by_key(|s| std::cmp::Reverse(s.2));
            for (revision, clock, invoke, id) in sent {
                let line = &mut heads.future[group * clocks + clock.index()];
                if line.last().is_none_or(|l: &(Time, Revision, OperationId)| revision < l.1) {
                    line.push((invoke, revision, id));
                }
            }
        }
        heads
    }

    /// The highest revision that was certainly committed before a moment.
    pub fn before(&self, clocks: &Clocks, resource: ResourceId, clock: ClockId, time: Time) -> Option<Head> {
        if !clock.is_some() {
            return None;
        }
        let group = self.group_of[resource.index()] as usize;
        let mut best: Option<Head> = None;
        for of in clocks.comparable(clock) {
            let line = &self.lines[group * self.clocks + of.index()];
            if line.is_empty() {
                continue;
            }
            let Some(horizon) = clocks.horizon(of, clock, time) else { continue };
            let at = line.partition_point(|l| l.0 < horizon);
            if let Some((time, revision, showing)) = at.checked_sub(1).map(|at| line[at])
                && best.is_none_or(|b| revision > b.revision)
            {
                best = Some(Head { revision, time, clock: of, showing });
            }
        }
        best
    }

    /// As [`Heads::before`], by the bare times of all clocks: what would follow if all clocks agreed.
    pub fn before_by_the_clock(&self, resource: ResourceId, time: Time) -> Option<Head> {
        if !time.is_known() || self.clocks > RELATED {
            return None;
        }
        let group = self.group_of[resource.index()] as usize;
        (0..self.clocks)
            .filter_map(|of| {
                let line = &self.lines[group * self.clocks + of];
                let at = line.partition_point(|l| l.0 < time).checked_sub(1)?;
                let (time, revision, showing) = line[at];
                Some(Head { revision, time, clock: ClockId(of as u32), showing })
            })
            .max_by_key(|h| h.revision)
    }

    /// On each clock, the first that shows at least this revision.
    pub fn reached(&self, resource: ResourceId, revision: Revision) -> impl Iterator<Item = Head> + '_ {
        let group = self.group_of[resource.index()] as usize;
        (0..self.clocks).filter_map(move |of| {
            let line = &self.lines[group * self.clocks + of];
            let &(time, revision, showing) = line.get(line.partition_point(|l| l.1 < revision))?;
            Some(Head { revision, time, clock: ClockId(of as u32), showing })
        })
    }

    /// The lowest revision of a write that was certainly sent after a moment: whatever was complete by then lies below it.
    pub fn after(
        &self,
        clocks: &Clocks,
        resource: ResourceId,
        clock: ClockId,
        time: Time,
    ) -> Option<(Revision, OperationId)> {
        if !clock.is_some() || !time.is_known() {
            return None;
        }
        let group = self.group_of[resource.index()] as usize;
        let mut best: Option<(Revision, OperationId)> = None;
        for of in clocks.comparable(clock) {
            // Sorted by invoke, falling; the revisions fall along with it.
            let line = &self.future[group * self.clocks + of.index()];
            let sure = line.partition_point(|l| clocks.before((time, clock), (l.0, of)));
            if let Some((_, revision, id)) = sure.checked_sub(1).map(|at| line[at])
                && best.is_none_or(|b| revision < b.0)
            {
                best = Some((revision, id));
            }
        }
        best
    }
}
