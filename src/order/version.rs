//! A version of a key: one row of the revision order, with the evidence that it is known from.

use crate::history::{AttributesId, ClockId, History, Item, KeyId, OperationId, Revision, Symbol};
use crate::ingest::{Position, Time};

/// The kind of change at a revision, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// A new object.
    Created,
    /// A change of a living object.
    Updated,
    /// Created or updated; the evidence does not say which.
    Put,
    /// The object was removed.
    Deleted,
    /// The object left the scope of a selector: changed or removed.
    Left,
}

impl Change {
    /// Whether the key holds an object afterwards; `None` if unknown.
    pub fn lives(self) -> Option<bool> {
        match self {
            Change::Created | Change::Updated | Change::Put => Some(true),
            Change::Deleted => Some(false),
            Change::Left => None,
        }
    }
}

/// The kind of evidence for a version, most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provenance {
    /// An etcd witness.
    Witness,
    /// A watch event.
    Event,
    /// The answer to the write itself.
    Write,
    /// A list or read that shows it.
    Read,
    /// A later write that is based on it.
    Base,
}

impl Provenance {
    /// The word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Provenance::Witness => "etcd witness",
            Provenance::Event => "watch event",
            Provenance::Write => "write answer",
            Provenance::Read => "read",
            Provenance::Base => "base of a write",
        }
    }
}

/// One version of one key.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Its revision, which is its place in the revision order.
    pub revision: Revision,
    /// Which key.
    pub key: KeyId,
    /// Uid of the object, also of a removed one; none if no evidence names it.
    pub uid: Symbol,
    /// The kind of change.
    pub change: Change,
    /// The labels and fields that selectors can match.
    pub attributes: AttributesId,
    /// The write that committed it; none if unknown.
    pub writer: OperationId,
    /// The kind of its most trusted evidence.
    pub provenance: Provenance,
    /// See [`Origin::row`].
    pub row: u32,
    /// The evidence with a time that dates it. A witness has no time, so other evidence dates a witnessed version.
    pub dated: Origin,
}

impl Version {
    /// Its most trusted evidence.
    pub fn origin(&self) -> Origin {
        Origin { provenance: self.provenance, row: self.row }
    }

    /// The position of that evidence.
    pub fn position(&self, history: &History) -> Position {
        self.origin().position(history)
    }

    /// The operation of that evidence (a read, a write, a stream's watch); none for a witness.
    pub fn shown_by(&self, history: &History) -> OperationId {
        self.origin().operation(history)
    }

    /// A time by which it certainly existed, with the clock: when the dating evidence was complete, else when its writer was
    /// answered.
    pub fn moment(&self, history: &History) -> (Time, ClockId) {
        let dated = self.dated.moment(history);
        if dated.0.is_known() { dated } else { self.answered(history).unwrap_or(dated) }
    }

    /// Its identity and content.
    pub fn item(&self) -> Item {
        Item { key: self.key, uid: self.uid, revision: self.revision, attributes: self.attributes }
    }

    /// The time and clock of the answer to its writer; `None` if unknown.
    pub fn answered(&self, history: &History) -> Option<(Time, ClockId)> {
        let writer = self.writer.is_some().then(|| history.operation(self.writer))?;
        writer.ret.is_known().then_some((writer.ret, writer.clock))
    }

    /// The evidence for its uid, and whether that is certain: a witness is, and so is the answer to the write that made the
    /// version. `None` if no kept evidence shows the uid.
    pub fn shows_uid(&self, history: &History) -> Option<(Fragment, bool)> {
        let answer = Origin { provenance: Provenance::Write, row: self.writer.0 };
        let writer = self.writer.is_some().then_some(answer);
        let (origin, dated) = (self.origin(), self.dated);
        let witness = (origin.provenance == Provenance::Witness).then_some(origin);
        let sources = [witness, writer, Some(origin), Some(dated)].into_iter().flatten();
        let origin = sources.into_iter().find(|source| source.shows_uid(history, self.key, self.uid))?;
        let certain = matches!(origin.provenance, Provenance::Witness | Provenance::Write);
        Some((Fragment { origin, uid: self.uid }, certain))
    }

    /// Whether only a witness shows it, so that no evidence dates it.
    pub fn is_undated(&self) -> bool {
        self.dated.provenance == Provenance::Witness && !self.writer.is_some()
    }
}

/// One piece of evidence about a version that disagrees with other evidence.
#[derive(Clone, Copy, Debug)]
pub struct Fragment {
    /// The piece of evidence.
    pub origin: Origin,
    /// The uid that it shows.
    pub uid: Symbol,
}

/// Index of a version in the timeline (versions are sorted by key, then revision).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub u32);

/// The piece of evidence for a version or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The kind of evidence.
    pub provenance: Provenance,
    /// Index of the witness event or delivery; otherwise the number of the operation.
    pub row: u32,
}

impl Origin {
    /// Its position in the files.
    pub fn position(self, history: &History) -> Position {
        match self.provenance {
            Provenance::Witness => history.witness[self.row as usize].position,
            Provenance::Event => history.deliveries[self.row as usize].position,
            _ => history.operations.position(self.row as usize),
        }
    }

    /// Its operation: a read, a write, a stream's watch; none for a witness.
    pub fn operation(self, history: &History) -> OperationId {
        match self.provenance {
            Provenance::Witness => OperationId::NONE,
            Provenance::Event => history.watch_of(self.row as usize),
            _ => OperationId(self.row),
        }
    }

    /// Whether it shows this uid for a key.
    pub(super) fn shows_uid(self, history: &History, key: KeyId, uid: Symbol) -> bool {
        let row = self.row as usize;
        match self.provenance {
            Provenance::Witness => history.witness[row].uid == uid,
            Provenance::Event => history.deliveries[row].uid == uid,
            Provenance::Base => history.operation(OperationId(self.row)).request_uid == uid,
            Provenance::Write | Provenance::Read => {
                let o = history.operation(OperationId(self.row));
                (o.key == key && o.answer_uid == uid)
                    || history.items_of(&o).iter().any(|item| item.key == key && item.uid == uid)
            }
        }
    }

    /// When it was complete; unknown for a witness.
    pub fn time(self, history: &History) -> Time {
        match self.provenance {
            Provenance::Witness => Time::UNKNOWN,
            Provenance::Event => history.deliveries[self.row as usize].at,
            _ => history.operations.ret(self.row as usize),
        }
    }

    /// When it was complete, with the clock.
    pub fn moment(self, history: &History) -> (Time, ClockId) {
        let operation = self.operation(history);
        let clock = if operation.is_some() { history.operations.clock(operation.index()) } else { ClockId::NONE };
        (self.time(history), clock)
    }
}
