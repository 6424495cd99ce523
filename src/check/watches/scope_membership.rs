//! Input: all streams, and whole lists of their scopes. Output: per stream and key, whether the key was in the scope when the
//! stream began. Membership at a revision is a fact of the revision order and does not depend on the client. A list at L, or
//! initial events with a marker at L, give it for every key; streams of the scope give every later change through the revision
//! that they reached. A stream that starts inside this known range continues from a known state, so its first event of a key
//! must fit that state. Trap: an event at an unknown place in the order leaves its key open for the whole scope.

use crate::check::facts::state_check::{Absence, Shown, page};
use crate::check::watches::stream_view::Course;
use crate::check::{Evidence, Fact};
use crate::history::{Asked, DeliveryKind, KeyId, Marks, Operation, OperationId, Revision, ScopeId, Symbol, Verb};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Evidence that a key was, or was not, in a scope.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// An event of a watch.
    Event(usize, OperationId),
    /// A list that showed the object at a version.
    Item(OperationId, Revision),
    /// A whole list, or initial part, that lacked the key.
    Lack(OperationId, Option<usize>),
    /// The stream brings its own state and has not shown the key.
    Unsaid(OperationId),
}

impl By {
    /// The evidence as a fact of a certificate.
    pub fn fact(self, evidence: &Evidence<'_>, key: KeyId, uid: Symbol) -> Fact {
        let name = evidence.history.key_name(key);
        match self {
            By::Event(index, watch) => {
                evidence.delivery(index, watch, format!("received {}", evidence.delivery_words(index)))
            }
            By::Item(list, revision) => {
                evidence.item(list, key, uid, revision, format!("listed {name} at version {revision}"))
            }
            By::Lack(list, None) => {
                let of = evidence.history.operation(list).answered;
                evidence.operation(list, of, format!("listed the state of revision {of}, without {name}"))
            }
            By::Lack(watch, Some(marker)) => {
                let words = evidence.delivery_words(marker);
                evidence.delivery(marker, watch, format!("received {words}, and no event of {name} before"))
            }
            By::Unsaid(watch) => {
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
            By::Event(index, _) => evidence.delivery_words(index),
            By::Item(..) => format!("a list from which the watch continues had shown {name}"),
            By::Lack(_, None) => format!("a list from which the watch continues had not shown {name}"),
            By::Lack(_, Some(_)) => format!("an initial part without {name}"),
            By::Unsaid(_) => format!("no event that adds {name}"),
        }
    }
}

/// Whether a key was in a scope, with the evidence.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// The evidence.
    pub by: By,
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
struct Heard {
    revision: Revision,
    delivery: u32,
    watch: OperationId,
    uid: Symbol,
    /// Whether the object was in the scope after it.
    member: bool,
}

/// A key in a scope.
type Place = (ScopeId, KeyId);

/// Events of keys by revision. Streams side by side bring one event many times: the last delivery stands for all of them.
#[derive(Debug, Default)]
struct Gathered {
    of: FxHashMap<Place, Vec<Heard>>,
    /// Events that came after later ones of their key.
    late: Vec<(Place, Heard)>,
}

impl Gathered {
    fn add(&mut self, place: Place, heard: Heard) {
        let known = self.of.entry(place).or_default();
        if known.last().is_none_or(|last| last.revision < heard.revision) {
            return known.push(heard);
        }
        match known.binary_search_by_key(&heard.revision, |known| known.revision) {
            Ok(at) if known[at].delivery > heard.delivery => {}
            Ok(at) => known[at] = heard,
            Err(_) => self.late.push((place, heard)),
        }
    }

    fn by_place(mut self) -> ByPlace {
        for (place, heard) in self.late {
            self.of.entry(place).or_default().push(heard);
        }
        let mut all = ByPlace { starts: FxHashMap::default(), events: Vec::new() };
        all.starts.reserve(self.of.len());
        for (place, mut heard) in self.of {
            heard.sort_unstable_by_key(|heard| (heard.revision, Reverse(heard.delivery)));
            heard.dedup_by_key(|heard| heard.revision);
            all.starts.insert(place, (all.events.len() as u32, heard.len() as u32));
            all.events.extend(heard);
        }
        all
    }
}

/// Events in one list, because every first event of a key on a stream asks for them.
#[derive(Debug, Default)]
struct ByPlace {
    /// The start and the number of each key's events.
    starts: FxHashMap<Place, (u32, u32)>,
    events: Vec<Heard>,
}

impl ByPlace {
    /// The last event of a key through a revision.
    fn last(&self, place: Place, through: Revision) -> Option<&Heard> {
        let (start, count) = *self.starts.get(&place)?;
        let heard = &self.events[start as usize..][..count as usize];
        heard[..heard.partition_point(|heard| heard.revision <= through)].last()
    }
}

/// The known past of every stream.
#[derive(Debug)]
pub struct Membership<'h> {
    evidence: Evidence<'h>,
    origins: FxHashMap<OperationId, Origin>,
    /// Events of scopes with several streams: those that a later stream of the scope may begin after.
    heard: ByPlace,
    /// Keys with an event at an unknown place in the revision order.
    open: FxHashSet<Place>,
    /// Items of the list that was used last, by key.
    listed: Option<(OperationId, FxHashMap<KeyId, u32>)>,
}

impl<'h> Membership<'h> {
    /// Builds it from all streams.
    pub fn of(evidence: &Evidence<'h>) -> Membership<'h> {
        let mut of_scope: FxHashMap<ScopeId, Vec<(Revision, Course<'h>)>> = FxHashMap::default();
        for course in Course::all(evidence) {
            let marked = course.marker.map(|at| evidence.history.deliveries[at].revision).filter(|r| r.is_some());
            if let Some(begin) = course.start.or(marked).filter(|_| !course.is_saved()) {
                of_scope.entry(course.operation.scope).or_default().push((begin, course));
            }
        }
        let lists = whole_lists(evidence, &of_scope);
        let (origins, heard, open) = Default::default();
        let mut membership = Membership { evidence: *evidence, origins, heard, open, listed: None };
        let mut gathered = Gathered::default();
        for (scope, mut courses) in of_scope {
            courses.sort_by_key(|(begin, course)| (*begin, course.watch));
            membership.follow(lists.get(&scope).map_or(&[][..], |lists| lists), &courses, &mut gathered);
        }
        membership.heard = gathered.by_place();
        membership
    }

    fn follow(
        &mut self,
        lists: &[(Revision, OperationId)],
        courses: &[(Revision, Course<'h>)],
        gathered: &mut Gathered,
    ) {
        let mut origin = Origin { from: Revision::NONE, base: None };
        let mut through: Option<Revision> = None;
        let last_begin = courses.last().map_or(Revision::NONE, |(begin, _)| *begin);
        for (begin, course) in courses {
            let known = through.filter(|through| begin <= through);
            if known.is_none() {
                origin = Origin { from: *begin, base: None };
            }
            // The latest list inside the known range: no earlier evidence matters.
            let last = lists.partition_point(|list| list.0 <= *begin).checked_sub(1).map(|at| lists[at]);
            if let Some((revision, list)) = last.filter(|last| last.0 >= origin.from) {
                origin = Origin { from: revision, base: Some(Base::List(list)) };
            }
            if let Some(marker) = course.marker {
                origin = Origin { from: *begin, base: Some(Base::Marker(course.watch, marker)) };
            } else {
                self.origins.insert(course.watch, origin);
            }
            let kept = (courses.len() > 1).then_some(last_begin);
            let reached = self.hear(course, *begin, kept, gathered);
            through = Some(known.map_or(reached, |known| known.max(reached)));
        }
    }

    /// Gathers the events of a stream through a revision: the start of the last stream of the scope, if there are several.
    /// Returns the highest revision that the stream reached before an error.
    fn hear(
        &mut self,
        course: &Course<'h>,
        begin: Revision,
        through: Option<Revision>,
        gathered: &mut Gathered,
    ) -> Revision {
        let (evidence, scope) = (self.evidence, course.operation.scope);
        let mut reached = begin;
        for index in course.initial.start..course.live.end {
            let d = &evidence.history.deliveries[index];
            if matches!(d.kind, DeliveryKind::Error | DeliveryKind::Unidentified) {
                break;
            }
            let live = index >= course.live.start;
            let misdated = evidence.order.timeline.is_misdated(index);
            if let Some(through) = through.filter(|_| d.key.is_some()) {
                let revision = if live { d.revision } else { begin };
                if misdated || (live && d.revision <= reached) {
                    self.open.insert((scope, d.key));
                } else if revision <= through {
                    let (delivery, member) = (index as u32, d.kind != DeliveryKind::Deleted);
                    let heard = Heard { revision, delivery, watch: course.watch, uid: d.uid, member };
                    gathered.add((scope, d.key), heard);
                }
            }
            if live && !misdated {
                reached = reached.max(d.revision);
            }
        }
        reached
    }

    /// Whether a key was in the scope of a stream when the stream began; `None` without evidence.
    pub fn at_start(&mut self, course: &Course<'h>, key: KeyId) -> Option<Said> {
        let scope = course.operation.scope;
        let Some(start) = course.start else {
            // A watch that brings its own state sends ADDED for every object of it before other events.
            let own = matches!(course.operation.asked, Asked::Any | Asked::Unset | Asked::From)
                && !course.operation.marks.has(Marks::NO_INITIAL_EVENTS)
                && !course.is_saved();
            let by = match course.marker {
                Some(marker) => By::Lack(course.watch, Some(marker)),
                None => By::Unsaid(course.watch),
            };
            return own.then_some(Said { by, uid: Symbol::NONE, member: false });
        };
        let origin = *self.origins.get(&course.watch)?;
        if self.open.contains(&(scope, key)) {
            return None;
        }
        let inside = |heard: &&Heard| match origin.base {
            Some(Base::List(_)) => heard.revision > origin.from,
            Some(Base::Marker(..)) | None => heard.revision >= origin.from,
        };
        if let Some(heard) = self.heard.last((scope, key), start).filter(inside) {
            let by = By::Event(heard.delivery as usize, heard.watch);
            return Some(Said { by, uid: heard.uid, member: heard.member });
        }
        match origin.base? {
            Base::Marker(watch, marker) => {
                Some(Said { by: By::Lack(watch, Some(marker)), uid: Symbol::NONE, member: false })
            }
            Base::List(list) => Some(self.listed(list, key)),
        }
    }

    fn listed(&mut self, list: OperationId, key: KeyId) -> Said {
        let history = self.evidence.history;
        let of = history.operation(list);
        let items = history.items_of(&of);
        if self.listed.as_ref().is_none_or(|(known, _)| *known != list) {
            let index = items.iter().enumerate().map(|(at, item)| (item.key, at as u32)).collect();
            self.listed = Some((list, index));
        }
        let at = self.listed.as_ref().and_then(|(_, index)| index.get(&key));
        match at.map(|at| items[*at as usize]) {
            Some(item) => Said { by: By::Item(list, item.revision), uid: item.uid, member: true },
            None => Said { by: By::Lack(list, None), uid: Symbol::NONE, member: false },
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
