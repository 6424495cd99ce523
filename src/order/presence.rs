//! Presence: the revisions at which a key certainly held an object. Input: versions, lists, reads and removals. Output:
//! [`Presence`]. An interval needs proof; absence of evidence never extends one.

use super::Order;
use super::timeline::{Removal, Span, Timeline};
use super::version::{Change, Provenance, Version};
use super::watched::Watched;
use crate::history::{History, KeyId, Marks, Operation, OperationId, Revision, Symbol, Verb};
use crate::ingest::Time;
use crate::model::{Promise, promise};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// An interval [from, through] in which a key certainly held one object.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// The key.
    pub key: KeyId,
    /// The inclusive lower end.
    pub from: Revision,
    /// The inclusive upper end.
    pub through: Revision,
}

/// The evidence that an object still existed after a version of it.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// None is needed, because the revision is that of the version.
    Itself,
    /// A later change of the same object.
    Change(Version),
    /// A list that still shows the version.
    Shown(OperationId),
    /// A read that asked for the most recent state, was sent when the revision was complete, and still shows the version.
    Read(OperationId),
    /// A request that was sent later removed the object.
    Removed(OperationId),
    /// A watch that delivers every change of the scope passed the revision without a change of the object.
    Watched(OperationId),
    /// An etcd witness shows no change in between.
    Witness,
}

/// The proven existence intervals of one history.
///
/// A uid belongs to one incarnation of a name, so two known versions of one uid prove everything between them. A version and a
/// later deletion of its uid do too. A list at revision L that shows a version proves it through L. A read of the most recent
/// state, or a request that removed the object, proves it through the revision that was complete at the send time. An etcd
/// witness proves that nothing happened in between; a watch that delivers every change promises it, and if that is false the
/// watch is wrong.
#[derive(Clone, Copy, Debug)]
pub struct Presence<'h> {
    history: &'h History,
    order: &'h Order,
    known: &'h ExistenceIntervals,
}

/// The cached parts of [`Presence`].
#[derive(Debug)]
pub(super) struct ExistenceIntervals {
    witness: Vec<Span>,
    watched: Watched,
    /// By key, then revision; the intervals of one key are disjoint.
    lives: Vec<Life>,
    starts: Vec<u32>,
    /// Lists by revision, built when first needed.
    lists: OnceLock<FxHashMap<Revision, Vec<OperationId>>>,
    /// For each version that a read of the most recent state shows, the last sent such read.
    reads: OnceLock<FxHashMap<(KeyId, Revision), OperationId>>,
}

impl ExistenceIntervals {
    pub(super) fn derive(history: &History, order: &Order) -> ExistenceIntervals {
        let timeline = &order.timeline;
        let witness = timeline.spans().iter().filter(|s| s.provenance == Provenance::Witness).copied().collect();
        let mut stretches = ExistenceIntervals {
            witness,
            watched: Watched::of(history, timeline),
            lives: Vec::new(),
            starts: Vec::with_capacity(history.keys.len() + 1),
            lists: OnceLock::new(),
            reads: OnceLock::new(),
        };
        for key in 0..history.keys.len() as u32 {
            stretches.starts.push(stretches.lives.len() as u32);
            stretches.live(history, timeline, KeyId(key));
        }
        stretches.starts.push(stretches.lives.len() as u32);
        stretches.lives.shrink_to_fit();
        for (_, read) in recent_reads(history) {
            stretches.read(history, order, &read);
        }
        for removal in &timeline.removals {
            if let Some((version, through)) = removed(history, order, removal)
                && let Some(life) = stretches.life_from(removal.key, version.revision)
            {
                life.through = life.through.max(through);
            }
        }
        stretches
    }

    /// The last interval of a key that begins at or before a revision.
    fn life_from(&mut self, key: KeyId, revision: Revision) -> Option<&mut Life> {
        let lives = &mut self.lives[self.starts[key.index()] as usize..self.starts[key.index() + 1] as usize];
        let at = lives.partition_point(|l| l.from <= revision).checked_sub(1)?;
        lives.get_mut(at)
    }

    /// Extends an interval by a read of the most recent state, through the revision that was complete at the send time.
    fn read(&mut self, history: &History, order: &Order, read: &Operation) {
        let Some(life) = self.life_from(read.key, read.answered) else { return };
        let versions = order.timeline.versions(read.key);
        let next = versions.get(versions.through(read.answered)).map(|next| next.revision.previous());
        // A removal of unknown revision may lie in between, and the read may be the wrong record.
        let removed = order.timeline.may_be_removed(read.key, read.answer_uid);
        if removed || life.through < read.answered || next.is_some_and(|next| next <= life.through) {
            return;
        }
        if let Some(watermark) = complete_before(history, order, read) {
            life.through = life.through.max(next.map_or(watermark, |next| next.min(watermark)));
        }
    }

    fn live(&mut self, history: &History, timeline: &Timeline, key: KeyId) {
        let versions = timeline.versions(key);
        let mut current: Option<Life> = None;
        for (at, version) in versions.iter().enumerate() {
            let of_one_life =
                at.checked_sub(1).and_then(|at| versions.get(at)).is_some_and(|before| one_life(&before, &version));
            let goes_on = versions.get(at + 1).is_some_and(|next| one_life(&version, &next));
            // An object that left a selector still existed if a later version has its uid.
            if version.change == Change::Left && of_one_life && goes_on {
                if let Some(life) = &mut current {
                    life.through = life.through.max(version.revision);
                }
                continue;
            }
            if version.change.lives() != Some(true) {
                // The object that ends here, or that left a selector, existed until right before this revision.
                if let Some(mut life) = current.take() {
                    if of_one_life {
                        life.through = life.through.max(version.revision.previous());
                    }
                    self.lives.push(life);
                }
                continue;
            }
            // If the next version has the same uid, it extends the interval further.
            let through = if goes_on { version.revision } else { self.exactly_through(history, timeline, &version) };
            match &mut current {
                Some(life) if of_one_life => life.through = life.through.max(through),
                _ => {
                    self.lives.extend(current.take());
                    current = Some(Life { key, from: version.revision, through });
                }
            }
        }
        self.lives.extend(current);
    }

    /// The last revision through which a version was certainly the current one.
    fn exactly_through(&self, history: &History, timeline: &Timeline, version: &Version) -> Revision {
        let mut through = timeline.present_through(version);
        if version.provenance == Provenance::Witness {
            let span = self.witness.iter().find(|s| {
                s.after < version.revision
                    && version.revision <= s.through
                    && (!s.scope.is_some() || history.covers_key(s.scope, version.key))
            });
            through = through.max(span.map_or(through, |s| s.through));
        }
        through = through.max(self.watched.past(history, timeline, version, through).unwrap_or(through));
        let versions = timeline.versions(version.key);
        let Some(next) = versions.get(versions.through(version.revision)) else { return through };
        let last = next.revision.previous();
        if is_based(history, &next, version) { last } else { through.min(last) }
    }
}

/// Whether a version was written with another one as base, so that nothing lies between the two.
fn is_based(history: &History, next: &Version, base: &Version) -> bool {
    let write = next.writer.is_some().then(|| history.operation(next.writer));
    write.is_some_and(|write| write.asked_revision == base.revision && write.shows_its_commit()) && one_life(base, next)
}

impl<'h> Presence<'h> {
    pub(super) fn new(history: &'h History, order: &'h Order, known: &'h ExistenceIntervals) -> Presence<'h> {
        Presence { history, order, known }
    }

    /// The last revision through which a version was certainly the current one.
    fn exactly_through(&self, version: &Version) -> Revision {
        self.known.exactly_through(self.history, &self.order.timeline, version)
    }

    /// All intervals, by key and revision.
    pub fn all(&self) -> &'h [Life] {
        &self.known.lives
    }

    /// The intervals of a key.
    pub fn of(&self, key: KeyId) -> &'h [Life] {
        let (starts, key) = (&self.known.starts, key.index());
        &self.known.lives[starts[key] as usize..starts[key + 1] as usize]
    }

    /// The interval of a key that contains a revision.
    pub fn at(&self, key: KeyId, revision: Revision) -> Option<&'h Life> {
        let lives = self.of(key);
        let at = lives.partition_point(|l| l.from <= revision).checked_sub(1)?;
        Some(&lives[at]).filter(|l| l.through >= revision)
    }

    /// The version that a key certainly held at a revision.
    pub fn version_at(&self, key: KeyId, revision: Revision) -> Option<Version> {
        let version = self.order.timeline.at_or_before(key, revision)?;
        let is_certain = || self.exactly_through(&version) >= revision || self.was_read_after(&version, revision);
        (version.change.lives() == Some(true) && is_certain()).then_some(version)
    }

    /// Whether a read of the most recent state shows a version and was sent when a revision was complete.
    fn was_read_after(&self, version: &Version, revision: Revision) -> bool {
        let removed = self.order.timeline.may_be_removed(version.key, version.uid);
        !removed && self.read_showing(version).is_some_and(|read| self.was_complete(read, revision))
    }

    fn was_complete(&self, read: OperationId, revision: Revision) -> bool {
        let read = self.history.operation(read);
        complete_before(self.history, self.order, &read).is_some_and(|watermark| watermark >= revision)
    }

    /// The proof that a key held an object at a revision: a version at or before it, and later evidence.
    pub fn proof(&self, key: KeyId, revision: Revision) -> Option<(Version, After)> {
        self.at(key, revision)?;
        let timeline = &self.order.timeline;
        let version = timeline.at_or_before(key, revision)?;
        if version.revision == revision {
            return Some((version, After::Itself));
        }
        let versions = timeline.versions(key);
        let next = versions.through(revision);
        if let Some(next) = versions.get(next).filter(|next| one_life(&version, next)) {
            return Some((version, After::Change(next)));
        }
        let shown = timeline.present_through(&version);
        if shown >= revision
            && let Some(list) = self.list_showing(shown, key, version.uid)
        {
            return Some((version, After::Shown(list)));
        }
        if self.exactly_through(&version) < revision {
            if let Some(read) = self.read_showing(&version).filter(|read| self.was_complete(*read, revision)) {
                return Some((version, After::Read(read)));
            }
            let removed = |r: &&Removal| {
                removed(self.history, self.order, r)
                    .is_some_and(|(of, through)| of.uid == version.uid && through >= revision)
            };
            if let Some(removal) = timeline.removals_of(key, version.uid).iter().find(removed) {
                return Some((version, After::Removed(removal.operation)));
            }
        }
        let watch =
            Watched::by(self.history, timeline, key, revision).filter(|_| version.provenance != Provenance::Witness);
        Some((version, watch.map_or(After::Witness, After::Watched)))
    }

    /// The last sent read of the most recent state that shows a version.
    pub fn read_showing(&self, version: &Version) -> Option<OperationId> {
        let reads = self.known.reads.get_or_init(|| {
            let mut last: FxHashMap<(KeyId, Revision), (Time, OperationId)> = FxHashMap::default();
            for (id, read) in recent_reads(self.history) {
                let known = last.entry((read.key, read.answered)).or_insert((read.invoke, id));
                *known = (*known).max((read.invoke, id));
            }
            last.into_iter().map(|(version, (_, id))| (version, id)).collect()
        });
        reads.get(&(version.key, version.revision)).copied()
    }

    /// A list at a revision that shows an object.
    pub fn list_showing(&self, revision: Revision, key: KeyId, uid: Symbol) -> Option<OperationId> {
        let history = self.history;
        let lists = self.known.lists.get_or_init(|| {
            let mut lists: FxHashMap<Revision, Vec<OperationId>> = FxHashMap::default();
            let reads = history.operations.all_of_verbs(&Verb::LISTS).filter(|(_, o)| o.is_answered());
            for (id, o) in reads.filter(|(_, o)| o.marks.has(Marks::LIST_ANSWER) && o.answered.is_some()) {
                lists.entry(o.answered).or_default().push(id);
            }
            lists
        });
        let shows = |id: &&OperationId| {
            history
                .item(&history.operation(**id), key)
                .is_some_and(|i| i.uid == uid || !uid.is_some() || !i.uid.is_some())
        };
        lists.get(&revision)?.iter().find(shows).copied()
    }
}

/// For a removal of unknown revision, the last version of its object and the revision that was complete when the request was
/// sent. The object existed through that revision.
fn removed(history: &History, order: &Order, removal: &Removal) -> Option<(Version, Revision)> {
    let through = complete_before(history, order, &history.operation(removal.operation))?;
    let version = order.timeline.at_or_before(removal.key, through)?;
    let own = removal.uid.is_some() && removal.uid == version.uid && version.change.lives() != Some(false);
    own.then_some((version, through))
}

/// The highest revision that was complete when a request about one object was sent.
fn complete_before(history: &History, order: &Order, o: &Operation) -> Option<Revision> {
    let watermark = order.watermarks.before_request(history, &order.clocks, history.resource_of(o.key), o)?;
    Some(watermark.revision)
}

/// Reads of single objects that must show the most recent state and show a version.
fn recent_reads(history: &History) -> impl Iterator<Item = (OperationId, Operation)> {
    history.operations.all_of_verbs(&[Verb::Get]).filter(|(_, o)| {
        o.is_answered()
            && o.key.is_some()
            && o.answered.is_some()
            && o.subresource.answers_parent()
            && o.invoke.is_known()
            && promise(history, o, None).0 == Promise::MostRecent
    })
}

/// Whether two adjacent versions of a key belong to one object; the later one may be its deletion.
fn one_life(before: &Version, after: &Version) -> bool {
    before.uid.is_some()
        && before.uid == after.uid
        && before.change.lives() != Some(false)
        && after.change != Change::Created
}
