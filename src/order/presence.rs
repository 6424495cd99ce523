//! Which keys certainly held an object at a revision: the stretches of T in which presence is proved, not assumed.

use super::Order;
use super::timeline::{Removal, Span, Timeline};
use super::version::{Change, Provenance, Version};
use super::watched::Watched;
use crate::history::{History, KeyId, Marks, Operation, OperationId, Revision, Symbol, Verb};
use crate::ingest::Time;
use crate::model::{Promise, promise};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// A stretch [from, through] in which a key certainly held one object.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// The key.
    pub key: KeyId,
    /// From this revision.
    pub from: Revision,
    /// Through this one.
    pub through: Revision,
}

/// What proves that an object was there after a version of it.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// It is the version's own revision.
    Itself,
    /// A later change of the same object.
    Change(Version),
    /// A list that shows the version still.
    Shown(OperationId),
    /// A read without version, sent when a revision was complete that is not below it, that shows the version still.
    Read(OperationId),
    /// A request that was sent later removed it.
    Removed(OperationId),
    /// A watch that delivers every change of the scope went past the revision without one.
    Watched(OperationId),
    /// An etcd witness shows no change in between.
    Witness,
}

/// Certain presence in one history.
///
/// An object's life is contiguous, since a uid names one life: two known versions of one uid prove everything between them,
/// and so do a version and a later deletion of its uid. A list at L that shows a version proves it through L; a read without
/// version that shows it, through what was complete when the read was sent, for such a read is of the most recent state; and so does a
/// request that removed it. That nothing happened in between is proved by a witness of etcd, and promised by a watch that went past it
/// without an event: where that is wrong the watch is.
#[derive(Clone, Copy, Debug)]
pub struct Presence<'h> {
    history: &'h History,
    order: &'h Order,
    known: &'h ExistenceIntervals,
}

/// What is kept of [`Presence`] beside its history.
#[derive(Debug)]
pub(super) struct ExistenceIntervals {
    witness: Vec<Span>,
    watched: Watched,
    /// By key, then revision; the stretches of one key do not meet.
    lives: Vec<Life>,
    starts: Vec<u32>,
    /// Lists by their revision.
    lists: OnceLock<FxHashMap<Revision, Vec<OperationId>>>,
    /// Of each version that reads without version showed, the one that was sent last.
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

    /// The stretch of a key that had begun at a revision, and no later one had.
    fn life_from(&mut self, key: KeyId, revision: Revision) -> Option<&mut Life> {
        let lives = &mut self.lives[self.starts[key.index()] as usize..self.starts[key.index() + 1] as usize];
        let at = lives.partition_point(|l| l.from <= revision).checked_sub(1)?;
        lives.get_mut(at)
    }

    /// What a read of the most recent state proves: its version was there through all that was complete when it was sent.
    fn read(&mut self, history: &History, order: &Order, read: &Operation) {
        let Some(life) = self.life_from(read.key, read.answered) else { return };
        let versions = order.timeline.versions(read.key);
        let next = versions.get(versions.through(read.answered)).map(|next| next.revision.previous());
        // A removal that nobody dates may lie between, and the read be the wrong one.
        let removed = order.timeline.may_be_removed(read.key, read.answer_uid);
        if removed || life.through < read.answered || next.is_some_and(|next| next <= life.through) {
            return;
        }
        if let Some(head) = complete_before(history, order, read) {
            life.through = life.through.max(next.map_or(head, |next| next.min(head)));
        }
    }

    fn live(&mut self, history: &History, timeline: &Timeline, key: KeyId) {
        let versions = timeline.versions(key);
        let mut current: Option<Life> = None;
        for (at, version) in versions.iter().enumerate() {
            let of_one_life =
                at.checked_sub(1).and_then(|at| versions.get(at)).is_some_and(|before| one_life(&before, &version));
            if version.change.lives() != Some(true) {
                // The object that ends here (or changes in a way that nobody shows) lived until right before.
                if let Some(mut life) = current.take() {
                    if of_one_life {
                        life.through = life.through.max(version.revision.previous());
                    }
                    self.lives.push(life);
                }
                continue;
            }
            // Where the same life goes on, its next version says more.
            let goes_on = versions.get(at + 1).is_some_and(|next| one_life(&version, &next));
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

    /// Through which revision a version was certainly the present one.
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

/// Whether a version was written on another one: nothing lies between the two.
fn is_based(history: &History, next: &Version, base: &Version) -> bool {
    let write = next.writer.is_some().then(|| history.operation(next.writer));
    write.is_some_and(|write| write.asked_revision == base.revision && write.shows_its_commit()) && one_life(base, next)
}

impl<'h> Presence<'h> {
    pub(super) fn new(history: &'h History, order: &'h Order, known: &'h ExistenceIntervals) -> Presence<'h> {
        Presence { history, order, known }
    }

    /// Through which revision a version was certainly the present one.
    fn exactly_through(&self, version: &Version) -> Revision {
        self.known.exactly_through(self.history, &self.order.timeline, version)
    }

    /// All stretches, by key and revision.
    pub fn all(&self) -> &'h [Life] {
        &self.known.lives
    }

    /// The stretches of a key.
    pub fn of(&self, key: KeyId) -> &'h [Life] {
        let (starts, key) = (&self.known.starts, key.index());
        &self.known.lives[starts[key] as usize..starts[key + 1] as usize]
    }

    /// The stretch of a key around a revision.
    pub fn at(&self, key: KeyId, revision: Revision) -> Option<&'h Life> {
        let lives = self.of(key);
        let at = lives.partition_point(|l| l.from <= revision).checked_sub(1)?;
        Some(&lives[at]).filter(|l| l.through >= revision)
    }

    /// The version that a key certainly held at a revision.
    pub fn version_at(&self, key: KeyId, revision: Revision) -> Option<Version> {
        let version = self.order.timeline.at_or_before(key, revision)?;
        let stood = || self.exactly_through(&version) >= revision || self.was_read_after(&version, revision);
        (version.change.lives() == Some(true) && stood()).then_some(version)
    }

    /// Whether a read of the most recent state showed a version that was sent when a revision was complete.
    fn was_read_after(&self, version: &Version, revision: Revision) -> bool {
        let removed = self.order.timeline.may_be_removed(version.key, version.uid);
        !removed && self.read_showing(version).is_some_and(|read| self.was_complete(read, revision))
    }

    fn was_complete(&self, read: OperationId, revision: Revision) -> bool {
        let read = self.history.operation(read);
        complete_before(self.history, self.order, &read).is_some_and(|head| head >= revision)
    }

    /// What proves that a key held an object at a revision: a version at or before it, and what came after.
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

    /// The last read without version that shows a version.
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

    /// A list of a revision that shows an object.
    pub fn list_showing(&self, revision: Revision, key: KeyId, uid: Symbol) -> Option<OperationId> {
        let history = self.history;
        let lists = self.known.lists.get_or_init(|| {
            let mut lists: FxHashMap<Revision, Vec<OperationId>> = FxHashMap::default();
            let reads = history.operations.all_of_verbs(&[Verb::List]).filter(|(_, o)| o.is_answered());
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

/// The last version of an object before a removal of it that nobody dates, and what was complete when the request was sent: it was
/// there through that.
fn removed(history: &History, order: &Order, removal: &Removal) -> Option<(Version, Revision)> {
    let through = complete_before(history, order, &history.operation(removal.operation))?;
    let version = order.timeline.at_or_before(removal.key, through)?;
    let own = removal.uid.is_some() && removal.uid == version.uid && version.change.lives() == Some(true);
    own.then_some((version, through))
}

/// The highest revision that was complete when a request about one object was sent.
fn complete_before(history: &History, order: &Order, o: &Operation) -> Option<Revision> {
    let head = order.heads.before(history, &order.clocks, history.resource_of(o.key), o.clock, o.invoke)?;
    Some(head.revision)
}

/// Reads of single objects that promise the most recent state and show a version.
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

/// Whether two versions that follow each other in T are of one life of their key (the later one may end it).
fn one_life(before: &Version, after: &Version) -> bool {
    before.uid.is_some()
        && before.uid == after.uid
        && before.change.lives() == Some(true)
        && after.change != Change::Created
}
