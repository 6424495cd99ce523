//! Frontiers: what each session had seen and written of a resource, by time.
//!
//! Kept apart: what it observed (lists, streams, reads, bases that it sent) and what it committed itself. Deliberate reads of the
//! past (exact, continued, a stream that goes back) raise a frontier where they are above it and never lower one.

use super::claims::removes;
use super::clock::RELATED;
use super::head::Showing;
use super::{Chains, Clocks, Order, Start};
use crate::history::{
    Asked, ClockId, DeliveryKind, History, IncarnationId, KeyId, Marks, Operation, OperationId, ResourceId, Revision,
    ScopeId, Symbol, ToldBy, Verb,
};
use crate::ingest::Time;
use rustc_hash::FxHashMap;

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

/// Sights of one kind in order of time, with the running maximum.
#[derive(Debug, Default)]
pub struct Line {
    /// Per clock, ascending, in order of time.
    clocks: Vec<(ClockId, Vec<Sight>, Vec<u32>)>,
}

impl Line {
    fn push(&mut self, sight: Sight) {
        match self.clocks.binary_search_by_key(&sight.clock, |(clock, ..)| *clock) {
            Ok(at) => self.clocks[at].1.push(sight),
            Err(at) => self.clocks.insert(at, (sight.clock, vec![sight], Vec::new())),
        }
    }

    /// What was sighted on the clocks that compare with one.
    fn comparable(&self, clocks: &Clocks, clock: ClockId) -> &[(ClockId, Vec<Sight>, Vec<u32>)] {
        if clocks.relate() {
            return &self.clocks;
        }
        match self.clocks.binary_search_by_key(&clock, |(clock, ..)| *clock) {
            Ok(at) => &self.clocks[at..at + 1],
            Err(_) => &[],
        }
    }

    fn sort(&mut self) {
        for (_, sights, maxima) in &mut self.clocks {
            sights.sort_by_key(|s| (s.time, s.revision, s.showing));
            let mut best = 0u32;
            *maxima = (0..sights.len() as u32)
                .map(|at| {
                    if sights[at as usize].revision > sights[best as usize].revision {
                        best = at;
                    }
                    best
                })
                .collect();
        }
    }

    /// The highest sight that was certainly complete before a moment.
    pub fn before(&self, clocks: &Clocks, clock: ClockId, time: Time) -> Option<Sight> {
        self.comparable(clocks, clock)
            .iter()
            .filter_map(|(of, sights, maxima)| {
                let horizon = clocks.horizon(*of, clock, time)?;
                let at = sights.partition_point(|s| s.time < horizon).checked_sub(1)?;
                Some(sights[maxima[at] as usize])
            })
            .max_by_key(|s| s.revision)
    }

    /// As [`Line::before`], by the bare times of other clocks: what would follow if all clocks agreed.
    pub fn before_by_the_clock(&self, time: Time) -> Option<Sight> {
        if self.clocks.len() > RELATED {
            return None;
        }
        self.clocks
            .iter()
            .filter_map(|(_, sights, maxima)| {
                let at = sights.partition_point(|s| s.time < time).checked_sub(1)?;
                Some(sights[maxima[at] as usize])
            })
            .max_by_key(|s| s.revision)
    }

    /// Sights above a revision that were certainly complete before a moment, latest first.
    pub fn above<'l>(
        &'l self,
        clocks: &'l Clocks,
        clock: ClockId,
        time: Time,
        revision: Revision,
    ) -> impl Iterator<Item = &'l Sight> + 'l {
        self.comparable(clocks, clock).iter().flat_map(move |(of, sights, maxima)| {
            let end =
                clocks.horizon(*of, clock, time).map_or(0, |horizon| sights.partition_point(|s| s.time < horizon));
            // Nothing before the running maximum's place can be above where the maximum is not.
            let from = maxima[..end].partition_point(|&m| sights[m as usize].revision <= revision);
            sights[from..end].iter().rev().filter(move |s| s.revision > revision)
        })
    }
}

/// A removal that a session did itself.
#[derive(Clone, Copy, Debug)]
pub struct OwnRemoval {
    /// Uid of the removed object.
    pub uid: Symbol,
    /// The request.
    pub operation: OperationId,
}

/// What one session had seen and done of one resource.
#[derive(Debug, Default)]
pub struct Frontier {
    /// By scope: lists, stream progress, bookmarks, the revisions that its watches start from.
    pub scopes: FxHashMap<ScopeId, Line>,
    /// The same for all scopes of the resource.
    pub progress: Line,
    /// By key: reads, deliveries, answers to writes, bases that it sent.
    pub keys: FxHashMap<KeyId, Line>,
    /// The same for all keys of the resource.
    pub objects: Line,
    /// Its own commits.
    pub commits: Line,
    /// Its own commits by key.
    pub commits_of: FxHashMap<KeyId, Line>,
    /// Its own removals by key.
    pub removals: FxHashMap<KeyId, Vec<OwnRemoval>>,
}

impl Frontier {
    fn advance(&mut self, scope: ScopeId, sight: Sight) {
        self.scopes.entry(scope).or_default().push(sight);
        self.progress.push(sight);
    }
}

/// The frontiers of every session.
#[derive(Debug, Default)]
pub struct Frontiers {
    of: FxHashMap<(u32, ResourceId), Frontier>,
}

impl Frontiers {
    /// Collects what every session saw and did.
    pub fn collect(history: &History, order: &Order) -> Frontiers {
        let mut frontiers = Frontiers::default();
        for (index, o) in history.operations.iter().enumerate() {
            if o.marks.has(Marks::SHADOW) || !remembers(history, o.incarnation) {
                continue;
            }
            frontiers.collect_operation(history, order, OperationId(index as u32), o);
        }
        for version in order.timeline.all().iter().filter(|v| v.writer.is_some()) {
            let o = history.operation(version.writer);
            if o.marks.has(Marks::SHADOW) || !o.is_answered() || !remembers(history, o.incarnation) {
                continue;
            }
            let sight = Sight {
                time: o.ret,
                clock: o.clock,
                revision: version.revision,
                key: version.key,
                showing: Showing::Answer(version.writer),
            };
            let frontier = frontiers.frontier(order, o.incarnation, history.resource_of(version.key));
            frontier.commits.push(sight);
            frontier.commits_of.entry(version.key).or_default().push(sight);
        }
        for frontier in frontiers.of.values_mut() {
            frontier.scopes.values_mut().for_each(Line::sort);
            frontier.keys.values_mut().for_each(Line::sort);
            frontier.commits_of.values_mut().for_each(Line::sort);
            frontier.objects.sort();
            frontier.progress.sort();
            frontier.commits.sort();
        }
        frontiers
    }

    fn frontier(&mut self, order: &Order, incarnation: IncarnationId, resource: ResourceId) -> &mut Frontier {
        self.of.entry((order.sessions.index_of(incarnation), resource)).or_default()
    }

    fn collect_operation(&mut self, history: &History, order: &Order, id: OperationId, o: &Operation) {
        let resource = history.scopes[o.scope.index()].resource;
        let answer = |time, revision, key| Sight { time, clock: o.clock, revision, key, showing: Showing::Answer(id) };
        let frontier = self.frontier(order, o.incarnation, resource);
        match o.verb {
            Verb::List => {
                if let Some((revision, _)) = order.list_revision(history, id) {
                    frontier.advance(o.scope, answer(o.ret, revision, KeyId::NONE));
                }
            }
            Verb::Watch => {
                // The start of a reflector's watch is what it had come to; a new consumer's start says nothing of that.
                let start = order.chains.start_of(id);
                if o.asked == Asked::From
                    && matches!(start, Some(Start::List(_) | Start::Pair(_) | Start::Continues(_)))
                {
                    let sight = answer(o.invoke, o.asked_revision, KeyId::NONE);
                    frontier.advance(o.scope, sight);
                }
                let Some(stream) = history.stream_of(id) else { return };
                let base = super::stream_base(history, stream.id);
                for index in stream.deliveries() {
                    let d = &history.deliveries[index];
                    if !d.revision.is_some() || d.kind == DeliveryKind::Error || order.timeline.is_misdated(index) {
                        continue;
                    }
                    let showing = Showing::Delivery(index as u32, id);
                    let sight = Sight { time: d.at, clock: o.clock, revision: d.revision, key: d.key, showing };
                    if d.key.is_some() {
                        frontier.keys.entry(d.key).or_default().push(sight);
                        frontier.objects.push(sight);
                    }
                    // The synthetic beginning of a stream is no progress: its versions come in any order.
                    if base.is_some_and(|base| d.revision >= base) {
                        frontier.advance(o.scope, sight);
                    }
                }
            }
            _ => {
                if !o.key.is_some() {
                    return;
                }
                if o.verb == Verb::Update && o.asked_revision.is_some() {
                    // It held the version that it sent as base before it sent it.
                    let sight = answer(o.invoke, o.asked_revision, o.key);
                    frontier.keys.entry(o.key).or_default().push(sight);
                    frontier.objects.push(sight);
                }
                if !o.is_answered() || o.marks.has(Marks::DRY_RUN) {
                    return;
                }
                let own = order.timeline.writer(o.key, o.answered) == Some(id);
                if o.answered.is_some() && !own && o.subresource.answers_parent() {
                    let sight = answer(o.ret, o.answered, o.key);
                    frontier.keys.entry(o.key).or_default().push(sight);
                    frontier.objects.push(sight);
                }
                if removes(o) && o.answer_uid.is_some() {
                    let removal = OwnRemoval { uid: o.answer_uid, operation: id };
                    frontier.removals.entry(o.key).or_default().push(removal);
                }
            }
        }
    }

    /// What the session of a process life saw and did of a resource.
    pub fn of(&self, order: &Order, incarnation: IncarnationId, resource: ResourceId) -> Option<&Frontier> {
        self.of.get(&(order.sessions.index_of(incarnation), resource))
    }
}

/// Whether requests of a process life can be taken to share a memory: not those of command-line tools and saved files.
pub fn remembers(history: &History, incarnation: IncarnationId) -> bool {
    incarnation.is_some()
        && !matches!(history.incarnations[incarnation.index()].told_by, ToldBy::CommandLine | ToldBy::File)
}

/// Whether a read is meant to show the past: then it neither convicts nor lowers a frontier.
pub fn is_deliberate(history: &History, chains: &Chains, id: OperationId) -> bool {
    let o = history.operation(id);
    match o.verb {
        Verb::List | Verb::Get => !matches!(o.asked, Asked::Unset | Asked::Any | Asked::From),
        Verb::Watch => match o.asked {
            Asked::Unset | Asked::Any => false,
            Asked::From if o.marks.has(Marks::INITIAL_EVENTS) => false,
            Asked::From if chains.is_crowded(id) => true,
            Asked::From => !matches!(chains.start_of(id), Some(Start::Continues(_) | Start::Item(_))),
            _ => true,
        },
        _ => true,
    }
}
