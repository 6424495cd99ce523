//! Frontiers: what each session had seen and written of a resource, by time.
//!
//! Kept apart: what it observed (lists, streams, reads, bases that it sent) and what it committed itself. Deliberate reads of the
//! past (exact, continued, a stream that goes back) raise a frontier where they are above it and never lower one.

use super::claims::removes;
use super::head::Showing;
use super::sight::{Keyed, Line, Scoped, Sight};
use super::{Chains, Order, Start};
use crate::history::{
    Asked, DeliveryKind, History, IncarnationId, KeyId, Marks, Operation, OperationId, ResourceId, ScopeId, Symbol,
    ToldBy, Verb,
};
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
#[derive(Debug, Default)]
pub struct Frontier {
    /// By scope: lists, stream progress, bookmarks, the revisions that its watches start from.
    pub scopes: FxHashMap<ScopeId, Scoped>,
    /// The same for all scopes of the resource.
    pub progress: Line,
    /// By key: reads, deliveries, answers to writes, bases that it sent.
    pub keys: Keyed,
    /// The same for all keys of the resource.
    pub objects: Line,
    /// Its own commits.
    pub commits: Line,
    /// Its own commits by key.
    pub commits_of: Keyed,
    /// Its own removals by key.
    pub removals: FxHashMap<KeyId, Vec<OwnRemoval>>,
}

/// A frontier whose sights are still coming in.
#[derive(Default)]
struct Collection {
    progress: Vec<(ScopeId, Sight)>,
    objects: Vec<Sight>,
    commits: Vec<Sight>,
    removals: FxHashMap<KeyId, Vec<OwnRemoval>>,
}

impl Collection {
    fn frontier(self) -> Frontier {
        let (progress, scopes) = Line::by_scope(self.progress);
        let (objects, commits) = (Line::new(self.objects), Line::new(self.commits));
        let (keys, commits_of) = (objects.by_key(), commits.by_key());
        Frontier { scopes, progress, keys, objects, commits, commits_of, removals: self.removals }
    }
}

/// The frontiers of every session.
#[derive(Debug, Default)]
pub struct Frontiers {
    of: FxHashMap<(u32, ResourceId), Frontier>,
}

/// The collections of every session.
#[derive(Default)]
struct Collections {
    of: FxHashMap<(u32, ResourceId), Collection>,
}

impl Frontiers {
    /// Collects what every session saw and did.
    pub fn collect(history: &History, order: &Order) -> Frontiers {
        let mut collections = Collections::default();
        for (index, o) in history.operations.iter().enumerate() {
            if o.marks.has(Marks::SHADOW) || !remembers(history, o.incarnation) {
                continue;
            }
            collections.operation(history, order, OperationId(index as u32), &o);
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
            collections.session(order, o.incarnation, history.resource_of(version.key)).commits.push(sight);
        }
        let finished = collections.of.into_par_iter().map(|(of, collection)| (of, collection.frontier()));
        Frontiers { of: finished.collect::<Vec<_>>().into_iter().collect() }
    }

    /// What the session of a process life saw and did of a resource.
    pub fn of(&self, order: &Order, incarnation: IncarnationId, resource: ResourceId) -> Option<&Frontier> {
        self.of.get(&(order.sessions.index_of(incarnation), resource))
    }
}

impl Collections {
    fn session(&mut self, order: &Order, incarnation: IncarnationId, resource: ResourceId) -> &mut Collection {
        self.of.entry((order.sessions.index_of(incarnation), resource)).or_default()
    }

    fn operation(&mut self, history: &History, order: &Order, id: OperationId, o: &Operation) {
        let resource = history.scopes[o.scope.index()].resource;
        let answer = |time, revision, key| Sight { time, clock: o.clock, revision, key, showing: Showing::Answer(id) };
        let session = self.session(order, o.incarnation, resource);
        match o.verb {
            Verb::List => {
                if let Some((revision, _)) = order.list_revision(history, id) {
                    session.progress.push((o.scope, answer(o.ret, revision, KeyId::NONE)));
                }
            }
            Verb::Watch => {
                // The start of a reflector's watch is what it had come to; a new consumer's start says nothing of that.
                let start = order.chains.start_of(id);
                if o.asked == Asked::From
                    && matches!(start, Some(Start::List(_) | Start::Pair(_) | Start::Continues(_)))
                {
                    let sight = answer(o.invoke, o.asked_revision, KeyId::NONE);
                    session.progress.push((o.scope, sight));
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
                        session.objects.push(sight);
                    }
                    // The synthetic beginning of a stream is no progress: its versions come in any order.
                    if base.is_some_and(|base| d.revision >= base) {
                        session.progress.push((o.scope, sight));
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
                    session.objects.push(sight);
                }
                if !o.is_answered() || o.marks.has(Marks::DRY_RUN) {
                    return;
                }
                let own = order.timeline.writer(o.key, o.answered) == Some(id);
                if o.answered.is_some() && !own && o.subresource.answers_parent() {
                    let sight = answer(o.ret, o.answered, o.key);
                    session.objects.push(sight);
                }
                if removes(o) && o.answer_uid.is_some() {
                    let removal = OwnRemoval { uid: o.answer_uid, operation: id };
                    session.removals.entry(o.key).or_default().push(removal);
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
