//! Validity intervals: the revisions at which a key may have held the value that a process read.
//!
//! A version is valid from its own revision until the next change of its key. An absence is valid between two objects of the
//! name. An unknown end favours the process: the interval includes every revision at which the value can have been true. So two
//! intervals that do not meet prove that the two values were never true together (Adya's versions, 1999).

use super::{Order, Presence, Removal, Version};
use crate::history::{ClockId, History, KeyId, Operation, OperationId, Revision, Symbol};
use crate::ingest::Time;

/// The value of a key as a process read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The object with this uid (none: not known) at this version (zero: not known).
    Present {
        /// Uid.
        uid: Symbol,
        /// Version.
        revision: Revision,
    },
    /// No object.
    Absent,
}

/// The states that a read can have shown: between two revisions, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The first possible state; zero means any.
    pub from: Revision,
    /// The last possible state; `None` means any.
    pub through: Option<Revision>,
}

/// The revisions at which a value may have been true, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct ValidityInterval {
    /// The first revision.
    pub from: Revision,
    /// The last revision; `None` if the value is not known to have ended.
    pub through: Option<Revision>,
    /// The version that made it true; `None` if unknown.
    pub begun_by: Option<Version>,
    /// The version after which it was certainly false; `None` if unknown.
    pub ended_by: Option<Version>,
}

impl ValidityInterval {
    /// Whether both values may have been true at one revision. Only for values of one counter.
    pub fn meets(&self, other: &ValidityInterval) -> bool {
        let after = |truth: &ValidityInterval, from: Revision| truth.through.is_none_or(|through| through >= from);
        after(self, other.from) && after(other, self.from)
    }

    /// Whether no revision is left, so that the read contradicts the revision order.
    pub fn is_empty(&self) -> bool {
        self.through.is_some_and(|through| through < self.from)
    }

    /// A moment before which the value was certainly not true: the send time of the write that made it.
    pub fn not_before(&self, history: &History) -> Option<(Time, ClockId)> {
        let writer = self.begun_by?.writer;
        writer.is_some().then(|| (history.operation(writer).invoke, history.operation(writer).clock))
    }

    /// A moment by which the value was certainly no longer true: when evidence showed the next version.
    pub fn not_after(&self, history: &History) -> Option<(Time, ClockId)> {
        self.ended_by.map(|version| version.moment(history)).filter(|(time, clock)| time.is_known() && clock.is_some())
    }
}

/// Validity intervals of values in one history.
#[derive(Debug)]
pub struct ValidityIntervals<'h> {
    history: &'h History,
    order: &'h Order,
    presence: Presence<'h>,
}

impl<'h> ValidityIntervals<'h> {
    /// Derives presence; intervals are computed on demand.
    pub fn derive(history: &'h History, order: &'h Order) -> ValidityIntervals<'h> {
        ValidityIntervals { history, order, presence: order.presence(history) }
    }

    /// When each key certainly held an object.
    pub fn presence(&self) -> &Presence<'h> {
        &self.presence
    }

    /// The validity interval of a value that a read showed. `seen` is used for absences only.
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
        // A removal of unknown revision had happened by its upper bound.
        let uid = if uid.is_some() { uid } else { begun_by.map_or(uid, |v| v.uid) };
        let removed = self.removal(key, uid).and_then(|r| r.before);
        let end = [ended_by.map(|v| v.revision), removed].into_iter().flatten().min();
        ValidityInterval { from: revision, through: end.map(Revision::previous), begun_by, ended_by }
    }

    /// For any version of an object that is named by its uid only.
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

    /// The interval in which the name was free. It begins after the object before the earliest state that the read can have
    /// shown, and ends before the object after the latest such state.
    fn of_absence(&self, key: KeyId, seen: Seen) -> ValidityInterval {
        let lives = self.presence.of(key);
        let at = |revision| self.order.timeline.version_at(key, revision);
        let before_it = lives.partition_point(|l| l.through < seen.from);
        // If an object exists at the earliest state, the interval begins after its end.
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
        // If an object exists at the latest state, the name was free until right before it.
        let begun_by = at(from).filter(|v| v.change.lives() == Some(false));
        ValidityInterval {
            from,
            through: later.map(|l| l.from.previous()),
            begun_by,
            ended_by: later.and_then(|l| at(l.from)),
        }
    }

    /// The states that a request can have shown. None is older than the changes that were complete when it was sent, unless it
    /// allows any state (`is_fresh` is false). None is newer than writes that were sent after the answer.
    pub fn seen_by_request(&self, key: KeyId, request: &Operation, is_fresh: bool) -> Seen {
        let resource = self.history.resource_of(key);
        let (clocks, watermarks) = (&self.order.clocks, &self.order.watermarks);
        let complete = || watermarks.before_request(self.history, clocks, resource, request);
        let from = is_fresh.then(complete).flatten().map_or(Revision::NONE, |watermark| watermark.revision);
        let later = watermarks.after_answer(self.history, clocks, resource, request);
        Seen { from, through: later.map(|(revision, _)| revision.previous()) }
    }

    /// The states that a cache can have shown at a moment: none is newer than writes that were sent later.
    pub fn seen_by_moment(&self, key: KeyId, (time, clock): (Time, ClockId)) -> Seen {
        let resource = self.history.resource_of(key);
        let later = self.order.watermarks.after(self.history, &self.order.clocks, resource, clock, time);
        Seen { from: Revision::NONE, through: later.map(|(revision, _)| revision.previous()) }
    }
}

impl ValidityIntervals<'_> {
    /// The revision of a list; `None` if unknown.
    pub fn list_revision(&self, id: OperationId) -> Option<Revision> {
        self.order.list_revision(self.history, id).map(|(revision, _)| revision)
    }
}

/// The lowest revision of a store.
const FIRST: Revision = Revision::new(1);
