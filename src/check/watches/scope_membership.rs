//! Input: all streams, and whole lists of their scopes. Output: per stream and key, whether the key was in the scope when the
//! stream began. Membership at a revision is a fact of the revision order and does not depend on the client. A list at L, or
//! initial events with a marker at L, give it for every key; streams of the scope give every later change through the revision
//! that they reached. A stream that starts inside this known range continues from a known state, so its first event of a key
//! must fit that state. Trap: an event at an unknown place in the order leaves its key open for the whole scope.

use crate::check::facts::state_check::{Absence, Shown, page};
use crate::check::facts::stream_view::StreamView;
use crate::check::{Evidence, Fact};
use crate::history::{Asked, DeliveryKind, KeyId, Marks, Operation, OperationId, Revision, ScopeId, Symbol, Verb};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Evidence that a key was, or was not, in a scope.
#[derive(Clone, Copy, Debug)]
pub enum ScopeEvidence {
    /// An event of a watch.
    Event(usize, OperationId),
    /// A list that showed the object at a version.
    Item(OperationId, Revision),
    /// A whole list, or initial part, without the key.
    Absent(OperationId, Option<usize>),
    /// The stream brings its own state and has not shown the key.
    NotYetShown(OperationId),
}

impl ScopeEvidence {
    /// The evidence as a fact of a certificate.
    pub fn fact(self, evidence: &Evidence<'_>, key: KeyId, uid: Symbol) -> Fact {
        let name = evidence.history.key_name(key);
        match self {
            ScopeEvidence::Event(index, watch) => {
                evidence.delivery(index, watch, format!("received {}", evidence.delivery_words(index)))
            }
            ScopeEvidence::Item(list, revision) => {
                evidence.item(list, key, uid, revision, format!("listed {name} at version {revision}"))
            }
            ScopeEvidence::Absent(list, None) => {
                let of = evidence.history.operation(list).answered;
                evidence.operation(list, of, format!("listed the state of revision {of}, without {name}"))
            }
            ScopeEvidence::Absent(watch, Some(marker)) => {
                let words = evidence.delivery_words(marker);
                evidence.delivery(marker, watch, format!("received {words}, and no event of {name} before"))
            }
            ScopeEvidence::NotYetShown(watch) => {
                let o = evidence.history.operation(watch);
                let asked = evidence.history.request_name(&o);
                evidence.request(
                    watch,
                    Revision::NONE,
                    format!("asked for the state and every change after it: {asked}"),
                )
            }
        }
    }

    /// The evidence in words that follow "received this after".
    pub fn words(self, evidence: &Evidence<'_>, key: KeyId) -> String {
        let name = evidence.history.key_name(key);
        match self {
            ScopeEvidence::Event(index, _) => evidence.delivery_words(index),
            ScopeEvidence::Item(..) => format!("a list from which the watch continues had shown {name}"),
            ScopeEvidence::Absent(_, None) => format!("a list from which the watch continues had not shown {name}"),
            ScopeEvidence::Absent(_, Some(_)) => format!("an initial part without {name}"),
            ScopeEvidence::NotYetShown(_) => format!("no event that adds {name}"),
        }
    }
}

/// Whether a key was in a scope, with the evidence.
#[derive(Clone, Copy, Debug)]
pub struct MemberState {
    /// The evidence.
    pub source: ScopeEvidence,
    /// The uid of the object that was in the scope, or that left it.
    pub uid: Symbol,
    /// Whether the object was in the scope.
    pub member: bool,
}

/// A state of a scope that covers every key.
#[derive(Clone, Copy, Debug)]
enum Base {
    List(OperationId),
    Marker(OperationId, usize),
}

/// The known past of a stream: streams before it delivered every change of the scope after `from`. With a base, the state at
/// `from` is known too.
#[derive(Clone, Copy, Debug)]
struct Origin {
    from: Revision,
    base: Option<Base>,
}

/// The event of a key at a revision.
#[derive(Clone, Copy, Debug)]
struct ScopeEvent {
    revision: Revision,
    delivery: u32,
    watch: OperationId,
    uid: Symbol,
    /// Whether the object was in the scope after it.
    member: bool,
}

/// A key in a scope.
type ScopedKey = (ScopeId, KeyId);

/// Events of keys by revision. Streams side by side bring one event many times: the last delivery stands for all of them.
#[derive(Debug, Default)]
struct EventCollector {
    of: FxHashMap<ScopedKey, Vec<ScopeEvent>>,
    /// Events that came after later ones of their key.
    late: Vec<(ScopedKey, ScopeEvent)>,
}

impl EventCollector {
    fn add(&mut self, scoped_key: ScopedKey, event: ScopeEvent) {
        let known = self.of.entry(scoped_key).or_default();
        if known.last().is_none_or(|last| last.revision < event.revision) {
            return known.push(event);
        }
        match known.binary_search_by_key(&event.revision, |known| known.revision) {
            Ok(at) if known[at].delivery > event.delivery => {}
            Ok(at) => known[at] = event,
            Err(_) => self.late.push((scoped_key, event)),
        }
    }

    fn by_key(mut self) -> EventsByKey {
        for (scoped_key, event) in self.late {
            self.of.entry(scoped_key).or_default().push(event);
        }
        let mut all = EventsByKey { starts: FxHashMap::default(), events: Vec::new() };
        all.starts.reserve(self.of.len());
        for (scoped_key, mut events) in self.of {
            events.sort_unstable_by_key(|event| (event.revision, Reverse(event.delivery)));
            events.dedup_by_key(|event| event.revision);
            all.starts.insert(scoped_key, (all.events.len() as u32, events.len() as u32));
            all.events.extend(events);
        }
        all
    }
}

/// Events in one list, because every first event of a key on a stream asks for them.
#[derive(Debug, Default)]
struct EventsByKey {
    /// The start and the number of each key's events.
    starts: FxHashMap<ScopedKey, (u32, u32)>,
    events: Vec<ScopeEvent>,
}

impl EventsByKey {
    /// The last event of a key through a revision.
    fn last(&self, scoped_key: ScopedKey, through: Revision) -> Option<&ScopeEvent> {
        let (start, count) = *self.starts.get(&scoped_key)?;
        let events = &self.events[start as usize..][..count as usize];
        events[..events.partition_point(|event| event.revision <= through)].last()
    }
}

/// The known past of every stream.
#[derive(Debug)]
pub struct Membership<'h> {
    evidence: Evidence<'h>,
    origins: FxHashMap<OperationId, Origin>,
    /// Events of scopes with several streams: those that a later stream of the scope may begin after.
    events: EventsByKey,
    /// Keys with an event at an unknown place in the revision order.
    open: FxHashSet<ScopedKey>,
    /// Items of the list that was used last, by key.
    listed: Option<(OperationId, FxHashMap<KeyId, u32>)>,
}

impl<'h> Membership<'h> {
    /// Builds it from all streams.
    pub fn of(evidence: &Evidence<'h>) -> Membership<'h> {
        let mut of_scope: FxHashMap<ScopeId, Vec<(Revision, StreamView<'h>)>> = FxHashMap::default();
        for view in StreamView::all(evidence) {
            let marked = view.marker.map(|at| evidence.history.deliveries[at].revision).filter(|r| r.is_some());
            if let Some(begin) = view.start.or(marked).filter(|_| !view.is_saved()) {
                of_scope.entry(view.operation.scope).or_default().push((begin, view));
            }
        }
        let lists = whole_lists(evidence, &of_scope);
        let (origins, events, open) = Default::default();
        let mut membership = Membership { evidence: *evidence, origins, events, open, listed: None };
        let mut collector = EventCollector::default();
        for (scope, mut views) in of_scope {
            views.sort_by_key(|(begin, view)| (*begin, view.watch));
            membership.add_scope(lists.get(&scope).map_or(&[][..], |lists| lists), &views, &mut collector);
        }
        membership.events = collector.by_key();
        membership
    }

    fn add_scope(
        &mut self,
        lists: &[(Revision, OperationId)],
        views: &[(Revision, StreamView<'h>)],
        collector: &mut EventCollector,
    ) {
        let mut origin = Origin { from: Revision::NONE, base: None };
        let mut through: Option<Revision> = None;
        let last_begin = views.last().map_or(Revision::NONE, |(begin, _)| *begin);
        for (begin, view) in views {
            let known = through.filter(|through| begin <= through);
            if known.is_none() {
                origin = Origin { from: *begin, base: None };
            }
            // The latest list inside the known range: no earlier evidence matters.
            let last = lists.partition_point(|list| list.0 <= *begin).checked_sub(1).map(|at| lists[at]);
            if let Some((revision, list)) = last.filter(|last| last.0 >= origin.from) {
                origin = Origin { from: revision, base: Some(Base::List(list)) };
            }
            if let Some(marker) = view.marker {
                origin = Origin { from: *begin, base: Some(Base::Marker(view.watch, marker)) };
            } else {
                self.origins.insert(view.watch, origin);
            }
            let kept = (views.len() > 1).then_some(last_begin);
            let reached = self.collect(view, *begin, kept, collector);
            through = Some(known.map_or(reached, |known| known.max(reached)));
        }
    }

    /// Gathers the events of a stream through a revision: the start of the last stream of the scope, if there are several.
    /// Returns the highest revision that the stream reached before an error.
    fn collect(
        &mut self,
        view: &StreamView<'h>,
        begin: Revision,
        through: Option<Revision>,
        collector: &mut EventCollector,
    ) -> Revision {
        let (evidence, scope) = (self.evidence, view.operation.scope);
        let mut reached = begin;
        for index in view.initial.start..view.live.end {
            let d = &evidence.history.deliveries[index];
            if matches!(d.kind, DeliveryKind::Error | DeliveryKind::Unidentified) {
                break;
            }
            let live = index >= view.live.start;
            let misdated = evidence.order.timeline.is_misdated(index);
            if let Some(through) = through.filter(|_| d.key.is_some()) {
                let revision = if live { d.revision } else { begin };
                if misdated || (live && d.revision <= reached) {
                    self.open.insert((scope, d.key));
                } else if revision <= through {
                    let (delivery, member) = (index as u32, d.kind != DeliveryKind::Deleted);
                    let event = ScopeEvent { revision, delivery, watch: view.watch, uid: d.uid, member };
                    collector.add((scope, d.key), event);
                }
            }
            if live && !misdated {
                reached = reached.max(d.revision);
            }
        }
        reached
    }

    /// Whether a key was in the scope of a stream when the stream began; `None` without evidence.
    pub fn at_start(&mut self, view: &StreamView<'h>, key: KeyId) -> Option<MemberState> {
        let scope = view.operation.scope;
        let Some(start) = view.start else {
            // A watch that brings its own state sends ADDED for every object of it before other events.
            let own = matches!(view.operation.asked, Asked::Any | Asked::Unset | Asked::From)
                && !view.operation.marks.has(Marks::NO_INITIAL_EVENTS)
                && !view.is_saved();
            let source = match view.marker {
                Some(marker) => ScopeEvidence::Absent(view.watch, Some(marker)),
                None => ScopeEvidence::NotYetShown(view.watch),
            };
            return own.then_some(MemberState { source, uid: Symbol::NONE, member: false });
        };
        let origin = *self.origins.get(&view.watch)?;
        if self.open.contains(&(scope, key)) {
            return None;
        }
        let inside = |event: &&ScopeEvent| match origin.base {
            Some(Base::List(_)) => event.revision > origin.from,
            Some(Base::Marker(..)) | None => event.revision >= origin.from,
        };
        if let Some(event) = self.events.last((scope, key), start).filter(inside) {
            let source = ScopeEvidence::Event(event.delivery as usize, event.watch);
            return Some(MemberState { source, uid: event.uid, member: event.member });
        }
        match origin.base? {
            Base::Marker(watch, marker) => Some(MemberState {
                source: ScopeEvidence::Absent(watch, Some(marker)),
                uid: Symbol::NONE,
                member: false,
            }),
            Base::List(list) => Some(self.listed(list, key)),
        }
    }

    fn listed(&mut self, list: OperationId, key: KeyId) -> MemberState {
        let history = self.evidence.history;
        let of = history.operation(list);
        let items = history.items_of(&of);
        if self.listed.as_ref().is_none_or(|(known, _)| *known != list) {
            let index = items.iter().enumerate().map(|(at, item)| (item.key, at as u32)).collect();
            self.listed = Some((list, index));
        }
        let at = self.listed.as_ref().and_then(|(_, index)| index.get(&key));
        match at.map(|at| items[*at as usize]) {
            Some(item) => MemberState { source: ScopeEvidence::Item(list, item.revision), uid: item.uid, member: true },
            None => MemberState { source: ScopeEvidence::Absent(list, None), uid: Symbol::NONE, member: false },
        }
    }
}

/// The lists that show a whole state, per scope with streams, by revision.
fn whole_lists<T>(
    evidence: &Evidence<'_>,
    wanted: &FxHashMap<ScopeId, T>,
) -> FxHashMap<ScopeId, Vec<(Revision, OperationId)>> {
    let mut lists: FxHashMap<_, Vec<_>> = FxHashMap::default();
    for (id, o) in evidence.of_verbs(&[Verb::List]) {
        if wanted.contains_key(&o.scope) && is_whole(evidence, &o) {
            lists.entry(o.scope).or_default().push((o.answered, id));
        }
    }
    for lists in lists.values_mut() {
        lists.sort_unstable();
    }
    lists
}

/// Whether the answer of a list shows every object of its scope.
fn is_whole(evidence: &Evidence<'_>, o: &Operation) -> bool {
    let cut = o.marks.has(Marks::SAVED) || o.marks.has(Marks::TRUNCATED) || !o.marks.has(Marks::ANSWER_BODY);
    o.is_answered()
        && o.answered.is_some()
        && !cut
        && o.marks.has(Marks::LIST_ANSWER)
        && !matches!(o.asked, Asked::Unrecorded | Asked::Invalid)
        && page(evidence, o, &[] as &[Shown]) == Absence::Whole
}
