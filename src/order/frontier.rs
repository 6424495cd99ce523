//! Frontiers: what each session had seen and written of a resource, by time. Input: operations and deliveries. Output:
//! [`Frontiers`].
//!
//! Observations (lists, streams, reads, sent bases) and own commits are kept apart. Deliberate reads of the past (exact
//! revisions, continued lists, streams that go back) can raise a frontier but never lower it.

use super::deleted_item::is_unmarked;
use super::flags::Flags;
use super::observation::{
    ByKey, Facts, FactsByTime, Observations, PerKeyMax, Reading, Records, RunningMax, SortableFact,
};
use super::settlement::removes;
use super::shown::EvidenceRef;
use super::shown::Observation;
use super::watermark::Walk;
use super::{Order, ReflectorChains, Start, Timeline, Version};
use crate::history::{
    Asked, ClockId, DeliveryKind, History, IdentifiedBy, IncarnationId, Item, KeyId, Marks, Operation, OperationId,
    ResourceId, Revision, ScopeId, Symbol, Verb,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// A removal that the session itself requested, or the item of its DELETECOLLECTION, which may only be marked for deletion.
#[derive(Clone, Copy, Debug)]
pub struct OwnRemoval {
    /// Uid of the removed object.
    pub uid: Symbol,
    /// The removing request.
    pub operation: OperationId,
    /// The version that the answer of a DELETECOLLECTION lists; none for the removal of one object.
    pub listed: Revision,
}

impl OwnRemoval {
    /// Whether a version of the object is one from before the removal.
    pub fn excludes(&self, history: &History, timeline: &Timeline, shown: &Item) -> bool {
        let is_before = || shown.revision <= self.listed || is_unmarked(history, timeline, shown);
        self.uid == shown.uid && (!self.listed.is_some() || is_before())
    }
}

/// The observations and commits of one session for one resource.
#[derive(Clone, Copy, Debug)]
pub struct Frontier<'l> {
    /// By scope: lists, stream progress, bookmarks, and the start revisions of its watches.
    pub scopes: Scopes<'l>,
    /// By scope: the start revisions of watches without earlier evidence. The process named the revision, so it must have seen
    /// it.
    pub begun: Scopes<'l>,
    /// Like `scopes`, for all scopes of the resource.
    pub progress: RunningMax<'l>,
    /// By key: reads, deliveries, answers to writes, sent bases.
    pub keys: PerKeyMax<'l>,
    /// Like `keys`, for all keys of the resource.
    pub objects: RunningMax<'l>,
    /// The session's own commits.
    pub commits: RunningMax<'l>,
    /// The session's own commits by key.
    pub commits_of: PerKeyMax<'l>,
    /// The session's own removals by key.
    pub removals: &'l FxHashMap<KeyId, Vec<OwnRemoval>>,
}

/// Observations by scope.
#[derive(Clone, Copy, Debug)]
pub struct Scopes<'l> {
    kept: &'l FxHashMap<ScopeId, FactsByTime>,
    reading: Reading<'l>,
}

impl<'l> Scopes<'l> {
    /// The scopes in ascending order.
    pub fn ids(&self) -> Vec<ScopeId> {
        let mut scopes: Vec<ScopeId> = self.kept.keys().copied().collect();
        scopes.sort_unstable();
        scopes
    }

    /// The observations of a scope.
    pub fn get(&self, scope: &ScopeId) -> Option<Records<'l>> {
        Some(self.kept.get(scope)?.records(self.reading))
    }
}

/// The stored form of a frontier.
#[derive(Debug, Default)]
struct Kept {
    scopes: FxHashMap<ScopeId, FactsByTime>,
    begun: FxHashMap<ScopeId, FactsByTime>,
    progress: Observations,
    keys: ByKey,
    objects: Observations,
    commits: Observations,
    commits_of: ByKey,
    removals: FxHashMap<KeyId, Vec<OwnRemoval>>,
}

/// The kinds of facts in a frontier; the values index the columns of a collection.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Progress = 0,
    Object = 1,
    Commit = 2,
    Begun = 3,
}

impl Kept {
    /// From the facts of one frontier, by kind.
    fn new(reading: Reading<'_>, facts: [Vec<u32>; 4]) -> Kept {
        let of = |kind: Kind| reading.in_order(facts[kind as usize].iter().copied());
        let mut kept = Kept::default();
        let progress = of(Kind::Progress);
        kept.progress = Observations::new(reading, &progress);
        kept.scopes = by_scope(reading, &progress);
        drop(progress);
        kept.begun = by_scope(reading, &of(Kind::Begun));
        let objects = of(Kind::Object);
        (kept.objects, kept.keys) = (Observations::new(reading, &objects), ByKey::new(reading, &objects));
        drop(objects);
        let commits = of(Kind::Commit);
        (kept.commits, kept.commits_of) = (Observations::new(reading, &commits), ByKey::new(reading, &commits));
        kept
    }
}

/// The facts that raised the maximum of their scope and clock. Input: facts in order of clock, then time.
fn by_scope(reading: Reading<'_>, facts: &[SortableFact]) -> FxHashMap<ScopeId, FactsByTime> {
    let mut raised: FxHashMap<ScopeId, (Vec<SortableFact>, ClockId, Revision)> = FxHashMap::default();
    for sortable in facts {
        let scope = reading.history.operations.scope(reading.operation(sortable.fact).index());
        let best = raised.entry(scope).or_insert((Vec::new(), sortable.clock, Revision::NONE));
        let revision = sortable.revision(reading);
        if best.0.is_empty() || best.1 != sortable.clock || revision > best.2 {
            best.0.push(*sortable);
            (best.1, best.2) = (sortable.clock, revision);
        }
    }
    raised.into_iter().map(|(scope, (facts, ..))| (scope, FactsByTime::of(facts.into_iter()))).collect()
}

/// The frontiers of every session, by resource.
#[derive(Debug, Default)]
pub struct Frontiers {
    facts: Facts,
    /// By session, then resource.
    kept: Vec<(ResourceId, Kept)>,
    /// The start of each session's frontiers, with one more element at the end.
    starts: Vec<u32>,
    steady: bool,
    current: Flags,
    removes: bool,
}

/// The facts of all frontiers during collection.
struct Collection<'c> {
    history: &'c History,
    order: &'c Order,
    facts: Facts,
    /// By session and resource, the number of the frontier.
    numbers: Vec<FxHashMap<ResourceId, u32>>,
    /// The resource of each scope, in one small table because every operation needs it.
    resources: Vec<ResourceId>,
    /// The facts of each frontier, by kind.
    rows: Vec<[Vec<u32>; 4]>,
    removals: FxHashMap<u32, FxHashMap<KeyId, Vec<OwnRemoval>>>,
    /// The cursor over later writes; `None` once watermarks or observations are not steady.
    walk: Option<Walk<'c>>,
    current: Flags,
}

impl Frontiers {
    /// Collects what every session saw and wrote.
    pub fn collect(history: &History, order: &Order) -> Frontiers {
        let steady = order.watermarks.are_steady();
        let mut collection = Collection {
            history,
            order,
            facts: Facts::of(history),
            numbers: vec![FxHashMap::default(); order.sessions.sessions.len()],
            resources: history.scopes.iter().map(|scope| scope.resource).collect(),
            rows: Vec::new(),
            removals: FxHashMap::default(),
            walk: steady.then(|| order.watermarks.walk(history)),
            current: Flags::none(if steady { history.operations.len() } else { 0 }),
        };
        for (id, o) in history.operations.by_id() {
            if !o.marks.has(Marks::SHADOW) && remembers(history, o.incarnation) {
                collection.operation(id, &o);
            }
        }
        // Deletions whose revision comes from other evidence than the answer.
        for version in order.timeline.deletions().filter(|version| version.writer.is_some()) {
            let o = history.operation(version.writer);
            let answer = order.timeline.wrote_its_answer(version.writer)
                && (o.key, o.answered) == (version.key, version.revision);
            if !answer && !o.marks.has(Marks::SHADOW) && o.is_answered() && remembers(history, o.incarnation) {
                collection.removal(&version, &o);
            }
        }
        collection.frontiers()
    }

    /// The frontier of an incarnation's session for a resource; `None` if it touched no scope of it.
    pub fn of<'l>(
        &'l self,
        history: &'l History,
        order: &Order,
        incarnation: IncarnationId,
        resource: ResourceId,
    ) -> Option<Frontier<'l>> {
        let kept = self.of_number(order.sessions.index_of(incarnation));
        let at = kept.binary_search_by_key(&resource, |(of, _)| *of).ok()?;
        Some(self.frontier(history, &kept[at].1))
    }

    /// The same for every resource, in order.
    pub fn of_session<'l>(
        &'l self,
        history: &'l History,
        order: &Order,
        incarnation: IncarnationId,
    ) -> impl Iterator<Item = (ResourceId, Frontier<'l>)> + use<'l> {
        let kept = self.of_number(order.sessions.index_of(incarnation));
        kept.iter().map(move |(resource, kept)| (*resource, self.frontier(history, kept)))
    }

    /// The frontiers of a session.
    fn of_number(&self, session: u32) -> &[(ResourceId, Kept)] {
        let at = session as usize;
        let range = self.starts.get(at).zip(self.starts.get(at.wrapping_add(1)));
        range.map_or(&[], |(from, to)| &self.kept[*from as usize..*to as usize])
    }

    #[inline]
    fn frontier<'l>(&'l self, history: &'l History, kept: &'l Kept) -> Frontier<'l> {
        let reading = Reading { history, facts: &self.facts };
        Frontier {
            scopes: Scopes { kept: &kept.scopes, reading },
            begun: Scopes { kept: &kept.begun, reading },
            progress: kept.progress.line(reading),
            keys: kept.keys.keyed(reading),
            objects: kept.objects.line(reading),
            commits: kept.commits.line(reading),
            commits_of: kept.commits_of.keyed(reading),
            removals: &kept.removals,
        }
    }

    /// Whether there is one clock and no write was sent after an observation of its revision or a higher one, by any session.
    /// Rules can skip the search for such observations then.
    pub fn are_steady(&self) -> bool {
        self.steady
    }

    /// Whether a request shows the last version that existed when it was sent: a read of one object by its answer, an update by
    /// its base. Only set if the evidence is steady. No session had seen or committed a later version of the object by then.
    pub fn is_current(&self, id: OperationId) -> bool {
        self.current.has(id.index())
    }

    /// Disables all shortcuts, so that tests can compare the rules with and without them.
    #[cfg(test)]
    pub(crate) fn take_no_shortcuts(&mut self) {
        (self.steady, self.current) = (false, Flags::default());
    }

    /// Whether some session requested a removal itself.
    pub fn have_removals(&self) -> bool {
        self.removes
    }
}

impl Collection<'_> {
    fn number(&mut self, incarnation: IncarnationId, resource: ResourceId) -> u32 {
        let known = &mut self.numbers[self.order.sessions.index_of(incarnation) as usize];
        *known.entry(resource).or_insert_with(|| {
            self.rows.push(Default::default());
            self.rows.len() as u32 - 1
        })
    }

    fn add(&mut self, number: u32, kind: Kind, fact: u32) {
        self.rows[number as usize][kind as usize].push(fact);
    }

    fn frontiers(self) -> Frontiers {
        let Collection { history, facts, numbers, rows, mut removals, walk, current, .. } = self;
        let removes = !removals.is_empty();
        let reading = Reading { history, facts: &facts };
        let mut all: Vec<Option<Kept>> = rows.into_par_iter().map(|rows| Some(Kept::new(reading, rows))).collect();
        let (mut kept, mut starts) = (Vec::with_capacity(all.len()), Vec::with_capacity(numbers.len() + 1));
        for of_session in numbers {
            starts.push(kept.len() as u32);
            let mut of_session: Vec<(ResourceId, u32)> = of_session.into_iter().collect();
            of_session.sort_unstable();
            for (resource, number) in of_session {
                let mut frontier = all[number as usize].take().unwrap_or_default();
                frontier.removals = removals.remove(&number).unwrap_or_default();
                kept.push((resource, frontier));
            }
        }
        starts.push(kept.len() as u32);
        let steady = walk.is_some();
        let current = if steady { current } else { Flags::default() };
        Frontiers { facts, kept, starts, steady, current, removes }
    }

    /// Adds a removal that a session committed itself.
    fn removal(&mut self, version: &Version, o: &Operation) {
        let id = version.writer;
        let fact = if (o.key, o.answered) == (version.key, version.revision) {
            self.facts.answer(id)
        } else {
            let (revision, key, showing) = (version.revision, version.key, EvidenceRef::Answer(id));
            self.facts.other(Observation { time: o.ret, clock: o.clock, revision, key, evidence: showing })
        };
        let number = self.number(o.incarnation, self.history.resource_of(version.key));
        self.steady_if(o.clock.is_some());
        self.add(number, Kind::Commit, fact);
    }

    /// The evidence is steady only if a condition holds for every operation.
    fn steady_if(&mut self, is_true: bool) {
        if !is_true {
            self.walk = None;
        }
    }

    /// Whether the revision that a request names may have existed: see
    /// [`Watermarks::may_have_reached`](super::Watermarks::may_have_reached).
    fn may_have_reached(&mut self, o: &Operation, resource: ResourceId) -> bool {
        self.walk.as_mut().is_some_and(|walk| walk.has_reached(resource, o))
            || self.order.watermarks.may_have_reached(self.history, &self.order.clocks, o)
    }

    fn operation(&mut self, id: OperationId, o: &Operation) {
        let (history, order) = (self.history, self.order);
        let resource = self.resources[o.scope.index()];
        let number = self.number(o.incarnation, resource);
        match o.verb {
            Verb::List => {
                let Some((revision, _)) = order.list_revision(history, id) else { return };
                let fact = if revision == o.answered && !o.key.is_some() {
                    self.facts.answer(id)
                } else {
                    let (key, showing) = (KeyId::NONE, EvidenceRef::Answer(id));
                    self.facts.other(Observation { time: o.ret, clock: o.clock, revision, key, evidence: showing })
                };
                if revision != o.answered || o.marks.has(Marks::DRY_RUN) || !o.clock.is_some() {
                    // The watermarks do not include this revision.
                    let moment = (o.ret, o.clock);
                    let below = order.watermarks.may_be_below(history, &order.clocks, resource, moment, revision);
                    self.steady_if(o.clock.is_some() && below);
                }
                self.add(number, Kind::Progress, fact);
            }
            Verb::Watch => self.watch(id, o, number, resource),
            Verb::DeleteCollection if o.is_answered() && !o.marks.has(Marks::DRY_RUN) => {
                for item in history.items_of(o).iter().filter(|item| item.uid.is_some()) {
                    if is_unmarked(history, &order.timeline, item) {
                        let removal = OwnRemoval { uid: item.uid, operation: id, listed: item.revision };
                        self.removals.entry(number).or_default().entry(item.key).or_default().push(removal);
                    }
                }
            }
            _ => {
                if !o.key.is_some() {
                    return;
                }
                if held(history, order, o) {
                    let was_there = self.may_have_reached(o, resource);
                    self.steady_if(was_there && o.clock.is_some());
                    self.add(number, Kind::Object, self.facts.asked(id));
                }
                let own = order.timeline.made_its_answer(history, id, o);
                let of_key = history.resource_of(o.key);
                if own && o.is_answered() {
                    let number = if of_key == resource { number } else { self.number(o.incarnation, of_key) };
                    self.steady_if(of_key == resource && o.clock.is_some());
                    self.add(number, Kind::Commit, self.facts.answer(id));
                }
                self.note_current(id, o, of_key == resource);
                if !o.is_answered() || o.marks.has(Marks::DRY_RUN) {
                    return;
                }
                if o.answered.is_some() && !own && o.subresource.answers_parent() {
                    let claims = o.verb == Verb::Get && !o.marks.has(Marks::LIST_ANSWER);
                    self.steady_if(o.clock.is_some() && (claims || order.timeline.has(o.key, o.answered)));
                    self.add(number, Kind::Object, self.facts.answer(id));
                }
                if removes(o) && o.answer_uid.is_some() {
                    let removal = OwnRemoval { uid: o.answer_uid, operation: id, listed: Revision::NONE };
                    self.removals.entry(number).or_default().entry(o.key).or_default().push(removal);
                }
            }
        }
    }

    /// Records whether a request of one object is current: see [`Frontiers::is_current`].
    fn note_current(&mut self, id: OperationId, o: &Operation, of_one_resource: bool) {
        let Some(walk) = &mut self.walk else { return };
        let named = match o.verb {
            Verb::Get => o.answered,
            Verb::Update => o.asked_revision,
            _ => return,
        };
        if !named.is_some() || !of_one_resource || !o.invoke.is_known() {
            return;
        }
        let resource = self.resources[o.scope.index()];
        let next = self.order.timeline.next(o.key, named).map(|next| self.order.timeline.revision(next));
        let later = walk.from(resource, o.invoke);
        if next.is_none_or(|next| later.is_some_and(|lowest| lowest <= next)) {
            self.current.set(id.index());
        }
    }

    fn watch(&mut self, id: OperationId, o: &Operation, number: u32, resource: ResourceId) {
        let (history, order) = (self.history, self.order);
        // A reflector's watch starts at its frontier; the start of a new consumer says nothing about that.
        if o.asked == Asked::From
            && matches!(order.chains.start_of(id), Some(Start::List(_) | Start::Pair(_) | Start::Continues(_)))
            && self.may_have_reached(o, resource)
        {
            self.steady_if(o.clock.is_some());
            self.add(number, Kind::Progress, self.facts.asked(id));
        }
        let is_first = order.chains.start_of(id) == Some(Start::Fresh) && !o.marks.has(Marks::INITIAL_EVENTS);
        if o.asked == Asked::From && is_first && self.may_have_reached(o, resource) {
            self.add(number, Kind::Begun, self.facts.asked(id));
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
                self.steady_if(matches!(d.kind, DeliveryKind::Added | DeliveryKind::Modified | DeliveryKind::Deleted));
                self.add(number, Kind::Object, fact);
            }
            // The synthetic initial events of a stream are no progress: their versions come in any order.
            if base.is_some_and(|base| d.revision >= base) {
                self.add(number, Kind::Progress, fact);
            }
        }
        self.steady_if(o.clock.is_some());
    }
}

/// Whether the requests of an incarnation can be presumed to share a memory. Command-line tools, saved files and the loopback
/// clients of several API servers do not.
pub fn remembers(history: &History, incarnation: IncarnationId) -> bool {
    incarnation.is_some()
        && !matches!(
            history.incarnations[incarnation.index()].identified_by,
            IdentifiedBy::CommandLine | IdentifiedBy::File | IdentifiedBy::Loopback
        )
}

/// Whether a process certainly held the version that its request names as base: a server accepted it, or the version existed in
/// the revision order by then. A client can send a number that no server gave, but a server refuses it.
pub fn held(history: &History, order: &Order, o: &Operation) -> bool {
    o.verb == Verb::Update
        && o.asked_revision.is_some()
        && (o.is_answered()
            || order.timeline.has(o.key, o.asked_revision)
                && order.watermarks.may_have_reached(history, &order.clocks, o))
}

/// Whether a read is meant to show the past. Such a read convicts nothing and lowers no frontier.
pub fn is_deliberate(chains: &ReflectorChains, id: OperationId, o: &Operation) -> bool {
    match o.verb {
        Verb::List | Verb::Get => !matches!(o.asked, Asked::Unset | Asked::Any | Asked::From),
        Verb::Watch => match o.asked {
            Asked::Unset | Asked::Any => false,
            Asked::From if o.marks.has(Marks::INITIAL_EVENTS) => false,
            Asked::From if chains.has_concurrent_consumers(id) => true,
            Asked::From => !matches!(chains.start_of(id), Some(Start::Continues(_) | Start::Item(_))),
            _ => true,
        },
        _ => true,
    }
}
