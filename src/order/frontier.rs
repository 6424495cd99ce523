//! Frontiers: what each session had seen and written of a resource, by time.
//!
//! Kept apart: what it observed (lists, streams, reads, bases that it sent) and what it committed itself. Deliberate reads of the
//! past (exact, continued, a stream that goes back) raise a frontier where they are above it and never lower one.

use super::claims::removes;
use super::head::Showing;
use super::sight::{ByKey, Facts, Keyed, Line, Moments, Reading, Records, Sight, Sights};
use super::{Chains, Order, Start, Version};
use crate::history::{
    Asked, ClockId, DeliveryKind, History, IncarnationId, KeyId, Marks, Operation, OperationId, ResourceId, Revision,
    ScopeId, Symbol, ToldBy, Verb,
};
use crate::ingest::Time;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// A removal that a session did itself.
#[derive(Clone, Copy, Debug)]
pub struct OwnRemoval {
    /// Uid of the removed object.
    pub uid: Symbol,
    /// The request.
    pub operation: OperationId,
}

/// What one session had seen and done of one resource.
#[derive(Clone, Copy, Debug)]
pub struct Frontier<'l> {
    /// By scope: lists, stream progress, bookmarks, the revisions that its watches start from.
    pub scopes: Scopes<'l>,
    /// The same for all scopes of the resource.
    pub progress: Line<'l>,
    /// By key: reads, deliveries, answers to writes, bases that it sent.
    pub keys: Keyed<'l>,
    /// The same for all keys of the resource.
    pub objects: Line<'l>,
    /// Its own commits.
    pub commits: Line<'l>,
    /// Its own commits by key.
    pub commits_of: Keyed<'l>,
    /// Its own removals by key.
    pub removals: &'l FxHashMap<KeyId, Vec<OwnRemoval>>,
}

/// Sights by scope.
#[derive(Clone, Copy, Debug)]
pub struct Scopes<'l> {
    kept: &'l FxHashMap<ScopeId, Moments>,
    reading: Reading<'l>,
}

impl<'l> Scopes<'l> {
    /// The scopes, in order.
    pub fn ids(&self) -> Vec<ScopeId> {
        let mut scopes: Vec<ScopeId> = self.kept.keys().copied().collect();
        scopes.sort_unstable();
        scopes
    }

    /// The sights of a scope.
    pub fn get(&self, scope: &ScopeId) -> Option<Records<'l>> {
        Some(self.kept.get(scope)?.records(self.reading))
    }
}

/// A frontier as it is kept.
#[derive(Debug, Default)]
struct Kept {
    scopes: FxHashMap<ScopeId, Moments>,
    progress: Sights,
    keys: ByKey,
    objects: Sights,
    commits: Sights,
    commits_of: ByKey,
    removals: FxHashMap<KeyId, Vec<OwnRemoval>>,
}

/// The kinds of facts of which a frontier is made.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Progress = 0,
    Object = 1,
    Commit = 2,
}

impl Kept {
    /// Of the rows of one frontier.
    fn new(reading: Reading<'_>, rows: &[(u32, u32)]) -> Kept {
        let of =
            |kind: Kind| reading.in_order(rows.iter().filter(move |row| row.0 & 3 == kind as u32).map(|row| row.1));
        let mut kept = Kept::default();
        let progress = of(Kind::Progress);
        kept.progress = Sights::new(reading, &progress);
        kept.scopes = by_scope(reading, &progress);
        drop(progress);
        let objects = of(Kind::Object);
        (kept.objects, kept.keys) = (Sights::new(reading, &objects), ByKey::new(reading, &objects));
        drop(objects);
        let commits = of(Kind::Commit);
        (kept.commits, kept.commits_of) = (Sights::new(reading, &commits), ByKey::new(reading, &commits));
        kept
    }
}

/// Of facts in order of clock, then time, those that raised the maximum of their scope and clock.
fn by_scope(reading: Reading<'_>, facts: &[(ClockId, Time, u32)]) -> FxHashMap<ScopeId, Moments> {
    let mut raised: FxHashMap<ScopeId, (Vec<u32>, ClockId, Revision)> = FxHashMap::default();
    for &(clock, _, fact) in facts {
        let (revision, operation) = (reading.revision(fact), reading.operation(fact));
        let scope = reading.history.operation(operation).scope;
        let best = raised.entry(scope).or_insert((Vec::new(), clock, Revision::NONE));
        if best.0.is_empty() || best.1 != clock || revision > best.2 {
            best.0.push(fact);
            (best.1, best.2) = (clock, revision);
        }
    }
    raised.into_iter().map(|(scope, (facts, ..))| (scope, Moments::new(reading, facts))).collect()
}

/// The frontiers of every session.
#[derive(Debug, Default)]
pub struct Frontiers {
    facts: Facts,
    of: FxHashMap<(u32, ResourceId), Kept>,
    /// The resources of each session, in order.
    resources: FxHashMap<u32, Vec<ResourceId>>,
}

/// The facts of all frontiers while they come in.
struct Collection<'c> {
    history: &'c History,
    order: &'c Order,
    facts: Facts,
    /// Number of each frontier.
    numbers: FxHashMap<(u32, ResourceId), u32>,
    /// Number of the frontier with the kind in its last two bits, and the fact.
    rows: Vec<(u32, u32)>,
    removals: FxHashMap<u32, FxHashMap<KeyId, Vec<OwnRemoval>>>,
}

impl Frontiers {
    /// Collects what every session saw and did.
    pub fn collect(history: &History, order: &Order) -> Frontiers {
        let mut collection = Collection {
            history,
            order,
            facts: Facts::of(history),
            numbers: FxHashMap::default(),
            rows: Vec::new(),
            removals: FxHashMap::default(),
        };
        for (id, o) in history.operations.by_id() {
            if !o.marks.has(Marks::SHADOW) && remembers(history, o.incarnation) {
                collection.operation(id, &o);
            }
        }
        for version in order.timeline.written() {
            let version = order.timeline.version(version);
            let o = history.operation(version.writer);
            if !o.marks.has(Marks::SHADOW) && o.is_answered() && remembers(history, o.incarnation) {
                collection.commit(&version, &o);
            }
        }
        collection.frontiers()
    }

    /// What the session of a process life saw and did of a resource.
    pub fn of<'l>(
        &'l self,
        history: &'l History,
        order: &Order,
        incarnation: IncarnationId,
        resource: ResourceId,
    ) -> Option<Frontier<'l>> {
        self.frontier(history, order.sessions.index_of(incarnation), resource)
    }

    /// The same of every resource, in order.
    pub fn of_session<'l>(
        &'l self,
        history: &'l History,
        order: &Order,
        incarnation: IncarnationId,
    ) -> impl Iterator<Item = (ResourceId, Frontier<'l>)> + use<'l> {
        let session = order.sessions.index_of(incarnation);
        let resources = self.resources.get(&session).map_or(&[][..], |resources| resources);
        resources.iter().filter_map(move |&resource| Some((resource, self.frontier(history, session, resource)?)))
    }

    fn frontier<'l>(&'l self, history: &'l History, session: u32, resource: ResourceId) -> Option<Frontier<'l>> {
        let kept = self.of.get(&(session, resource))?;
        let reading = Reading { history, facts: &self.facts };
        Some(Frontier {
            scopes: Scopes { kept: &kept.scopes, reading },
            progress: kept.progress.line(reading),
            keys: kept.keys.keyed(reading),
            objects: kept.objects.line(reading),
            commits: kept.commits.line(reading),
            commits_of: kept.commits_of.keyed(reading),
            removals: &kept.removals,
        })
    }
}

impl Collection<'_> {
    fn number(&mut self, incarnation: IncarnationId, resource: ResourceId) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry((self.order.sessions.index_of(incarnation), resource)).or_insert(next)
    }

    fn add(&mut self, number: u32, kind: Kind, fact: u32) {
        self.rows.push((number << 2 | kind as u32, fact));
    }

    fn frontiers(self) -> Frontiers {
        let Collection { history, facts, numbers, mut rows, mut removals, .. } = self;
        rows.par_sort_unstable();
        let reading = Reading { history, facts: &facts };
        let parts: Vec<&[(u32, u32)]> = rows.chunk_by(|a, b| a.0 >> 2 == b.0 >> 2).collect();
        let parts = parts.into_par_iter().map(|part| (part[0].0 >> 2, Kept::new(reading, part)));
        let kept: Vec<(u32, Kept)> = parts.collect();
        let mut kept: FxHashMap<u32, Kept> = kept.into_iter().collect();
        let of = numbers.into_iter().map(|(of, number)| {
            let mut kept = kept.remove(&number).unwrap_or_default();
            kept.removals = removals.remove(&number).unwrap_or_default();
            (of, kept)
        });
        let of: FxHashMap<(u32, ResourceId), Kept> = of.collect();
        let mut resources: FxHashMap<u32, Vec<ResourceId>> = FxHashMap::default();
        for (session, resource) in of.keys() {
            resources.entry(*session).or_default().push(*resource);
        }
        resources.values_mut().for_each(|resources| resources.sort_unstable());
        Frontiers { facts, of, resources }
    }

    /// What a session committed itself.
    fn commit(&mut self, version: &Version, o: &Operation) {
        let id = version.writer;
        let fact = if (o.key, o.answered) == (version.key, version.revision) {
            self.facts.answer(id)
        } else {
            // Something else says at which revision it took effect.
            let (revision, key, showing) = (version.revision, version.key, Showing::Answer(id));
            self.facts.other(Sight { time: o.ret, clock: o.clock, revision, key, showing })
        };
        let number = self.number(o.incarnation, self.history.resource_of(version.key));
        self.add(number, Kind::Commit, fact);
    }

    fn operation(&mut self, id: OperationId, o: &Operation) {
        let (history, order) = (self.history, self.order);
        let number = self.number(o.incarnation, history.scopes[o.scope.index()].resource);
        match o.verb {
            Verb::List => {
                let Some((revision, _)) = order.list_revision(history, id) else { return };
                let fact = if revision == o.answered && !o.key.is_some() {
                    self.facts.answer(id)
                } else {
                    let (key, showing) = (KeyId::NONE, Showing::Answer(id));
                    self.facts.other(Sight { time: o.ret, clock: o.clock, revision, key, showing })
                };
                self.add(number, Kind::Progress, fact);
            }
            Verb::Watch => {
                // The start of a reflector's watch is what it had come to; a new consumer's start says nothing of that.
                let start = order.chains.start_of(id);
                if o.asked == Asked::From
                    && order.heads.may_have_reached(history, &order.clocks, o)
                    && matches!(start, Some(Start::List(_) | Start::Pair(_) | Start::Continues(_)))
                {
                    self.add(number, Kind::Progress, self.facts.asked(id));
                }
                let Some(stream) = history.stream_of(id) else { return };
                let base = super::stream_base(history, stream.id);
                for index in stream.deliveries() {
                    let d = &history.deliveries[index];
                    if !d.revision.is_some() || d.kind == DeliveryKind::Error || order.timeline.is_misdated(index) {
                        continue;
                    }
                    let fact = self.facts.delivery(index);
                    if d.key.is_some() {
                        self.add(number, Kind::Object, fact);
                    }
                    // The synthetic beginning of a stream is no progress: its versions come in any order.
                    if base.is_some_and(|base| d.revision >= base) {
                        self.add(number, Kind::Progress, fact);
                    }
                }
            }
            _ => {
                if !o.key.is_some() {
                    return;
                }
                if held(history, order, o) {
                    self.add(number, Kind::Object, self.facts.asked(id));
                }
                if !o.is_answered() || o.marks.has(Marks::DRY_RUN) {
                    return;
                }
                let own = order.timeline.writer(o.key, o.answered) == Some(id);
                if o.answered.is_some() && !own && o.subresource.answers_parent() {
                    self.add(number, Kind::Object, self.facts.answer(id));
                }
                if removes(o) && o.answer_uid.is_some() {
                    let removal = OwnRemoval { uid: o.answer_uid, operation: id };
                    self.removals.entry(number).or_default().entry(o.key).or_default().push(removal);
                }
            }
        }
    }
}

/// Whether requests of a process life can be taken to share a memory: not those of command-line tools and saved files.
pub fn remembers(history: &History, incarnation: IncarnationId) -> bool {
    incarnation.is_some()
        && !matches!(history.incarnations[incarnation.index()].told_by, ToldBy::CommandLine | ToldBy::File)
}

/// Whether a process certainly held the version that a request of it names as its base: a server took it, or T had it by then. Anybody
/// may send a number that no server ever gave, and is refused.
pub fn held(history: &History, order: &Order, o: &Operation) -> bool {
    o.verb == Verb::Update
        && o.asked_revision.is_some()
        && (o.is_answered()
            || order.timeline.has(o.key, o.asked_revision) && order.heads.may_have_reached(history, &order.clocks, o))
}

/// Whether a read is meant to show the past: then it neither convicts nor lowers a frontier.
pub fn is_deliberate(chains: &Chains, id: OperationId, o: &Operation) -> bool {
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
