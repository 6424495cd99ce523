//! When a value was true: the revisions of T at which a key may have held what a process read.
//!
//! A version is true from its own revision until the next change of its key. An absence is true between two lives of the name.
//! What the evidence leaves open is left open in favour of the process: the interval here has every revision at which the value
//! can have been true, so two intervals that do not meet prove that the two values were never true together.

use super::{Order, Presence, Removal, Version, Watermarks};
use crate::history::{ClockId, History, KeyId, OperationId, Revision, Symbol};
use crate::ingest::Time;

/// What a process took a key to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The object with this uid (none: not said) at this version (zero: not said).
    Present {
        /// Uid.
        uid: Symbol,
        /// Version.
        revision: Revision,
    },
    /// No object.
    Absent,
}

/// Which states of T a read can have shown: between two revisions, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// No state before it; zero: any.
    pub from: Revision,
    /// No state after it; `None`: any.
    pub through: Option<Revision>,
}

/// The revisions at which a value may have been true, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct ValidityInterval {
    /// Not before this revision.
    pub from: Revision,
    /// Not after this one; `None`: nothing is known to have ended it.
    pub through: Option<Revision>,
    /// The version that made it true, where that is known.
    pub begun_by: Option<Version>,
    /// The version after which it was certainly no longer true.
    pub ended_by: Option<Version>,
}

impl ValidityInterval {
    /// Whether there is a revision at which both may have been true. Only for values of one counter.
    pub fn meets(&self, other: &ValidityInterval) -> bool {
        let after = |truth: &ValidityInterval, from: Revision| truth.through.is_none_or(|through| through >= from);
        after(self, other.from) && after(other, self.from)
    }

    /// Whether no revision is left: the read contradicts T.
    pub fn is_empty(&self) -> bool {
        self.through.is_some_and(|through| through < self.from)
    }

    /// A moment before which the value was certainly not true yet: the sending of the write that made it.
    pub fn not_before(&self, history: &History) -> Option<(Time, ClockId)> {
        let writer = self.begun_by?.writer;
        writer.is_some().then(|| (history.operation(writer).invoke, history.operation(writer).clock))
    }

    /// A moment by which the value was certainly no longer true: when something showed the version after it.
    pub fn not_after(&self, history: &History) -> Option<(Time, ClockId)> {
        self.ended_by.map(|version| version.moment(history)).filter(|(time, clock)| time.is_known() && clock.is_some())
    }
}

/// The truth of values over one timeline.
#[derive(Debug)]
pub struct ValidityIntervals<'h> {
    history: &'h History,
    order: &'h Order,
    presence: Presence<'h>,
}

impl<'h> ValidityIntervals<'h> {
    /// Over this history.
    pub fn derive(history: &'h History, order: &'h Order) -> ValidityIntervals<'h> {
        ValidityIntervals { history, order, presence: order.presence(history) }
    }

    /// Which keys certainly held an object when.
    pub fn presence(&self) -> &Presence<'h> {
        &self.presence
    }

    /// When a value was true that a read showed.
    pub fn of(&self, key: KeyId, value: Reading, seen: Seen) -> ValidityInterval {
        match value {
            Reading::Present { uid, revision } if revision.is_some() => self.of_version(key, uid, revision),
            Reading::Present { uid, .. } => self.of_life(key, uid),
            Reading::Absent => self.of_absence(key, seen),
        }
    }

    fn of_version(&self, key: KeyId, uid: Symbol, revision: Revision) -> ValidityInterval {
        let versions = self.order.timeline.versions(key);
        let next = versions.through(revision);
        let begun_by = next.checked_sub(1).and_then(|at| versions.get(at)).filter(|v| v.revision == revision);
        let ended_by = versions.get(next);
        // A removal whose revision is open had happened by its bound at the latest.
        let uid = if uid.is_some() { uid } else { begun_by.map_or(uid, |v| v.uid) };
        let removed = self.removal(key, uid).and_then(|r| r.before);
        let end = [ended_by.map(|v| v.revision), removed].into_iter().flatten().min();
        ValidityInterval { from: revision, through: end.map(Revision::previous), begun_by, ended_by }
    }

    /// Some version of an object that is named by its uid only.
    fn of_life(&self, key: KeyId, uid: Symbol) -> ValidityInterval {
        let versions = self.order.timeline.versions(key);
        let own = |v: &Version| v.uid == uid && v.change.lives() != Some(false);
        let (Some(first), Some(last)) = (versions.iter().position(|v| own(&v)), versions.iter().rposition(|v| own(&v)))
        else {
            return ValidityInterval { from: FIRST, through: None, begun_by: None, ended_by: None };
        };
        let begun_by = versions.get(first).filter(|v| v.change == super::Change::Created);
        let earlier = versions.iter().take(first).rev().find(|v| v.uid.is_some() || v.change.lives() == Some(false));
        let from = match begun_by {
            Some(created) => created.revision,
            None => earlier.map_or(FIRST, |v| v.revision.next()),
        };
        let ended_by = versions.iter().skip(last + 1).find(|v| v.uid.is_some() || v.change.lives() == Some(false));
        let removed = self.removal(key, uid).and_then(|r| r.before);
        let end = [ended_by.map(|v| v.revision), removed].into_iter().flatten().min();
        ValidityInterval { from, through: end.map(Revision::previous), begun_by, ended_by }
    }

    fn removal(&self, key: KeyId, uid: Symbol) -> Option<&'h Removal> {
        self.order.timeline.removals_of(key, uid).first().filter(|_| uid.is_some())
    }

    /// The name was free: from the end of the life before the earliest state that the read can have shown to the beginning of
    /// the life after the latest one.
    fn of_absence(&self, key: KeyId, seen: Seen) -> ValidityInterval {
        let lives = self.presence.of(key);
        let at = |revision| self.order.timeline.version_at(key, revision);
        let before_it = lives.partition_point(|l| l.through < seen.from);
        // A life around the earliest state moves it to that life's end.
        let inside = lives.get(before_it).filter(|l| l.from <= seen.from);
        let earlier = inside.or_else(|| before_it.checked_sub(1).map(|at| &lives[at])).filter(|_| seen.from.is_some());
        let from = earlier.map_or(FIRST, |l| l.through.next());
        let later = match seen.through {
            Some(through) => {
                let next = lives.partition_point(|l| l.from <= through);
                let around = next.checked_sub(1).map(|at| &lives[at]).filter(|l| l.through >= through);
                around.or_else(|| lives.get(next))
            }
            None => None,
        };
        // The latest state may lie inside a life, or nothing but a life may follow it: the name was free until right before.
        let begun_by = at(from).filter(|v| v.change.lives() == Some(false));
        ValidityInterval {
            from,
            through: later.map(|l| l.from.previous()),
            begun_by,
            ended_by: later.and_then(|l| at(l.from)),
        }
    }

    /// Which states a read of the present can have shown, sent and answered at these moments of one clock: none before what was
    /// certainly complete when it was sent (unless it allows any state), none after what was sent after its answer.
    pub fn seen(&self, key: KeyId, clock: ClockId, sent: Option<Time>, answered: Time) -> Seen {
        let resource = self.history.resource_of(key);
        let (clocks, heads): (_, &Watermarks) = (&self.order.clocks, &self.order.heads);
        let from = sent
            .and_then(|sent| heads.before(self.history, clocks, resource, clock, sent))
            .map_or(Revision::NONE, |h| h.revision);
        let through =
            heads.after(self.history, clocks, resource, clock, answered).map(|(revision, _)| revision.previous());
        Seen { from, through }
    }
}

impl ValidityIntervals<'_> {
    /// The revision of a list.
    pub fn list_revision(&self, id: OperationId) -> Option<Revision> {
        self.order.list_revision(self.history, id).map(|(revision, _)| revision)
    }
}

/// The first revision of a store.
const FIRST: Revision = Revision::new(1);
