//! One revision that one record shows.

use crate::history::{ClockId, KeyId, OperationId, Revision};
use crate::ingest::Time;

/// What shows a head: an operation's answer, or a delivery of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceRef {
    /// The answer of an operation.
    Answer(OperationId),
    /// A delivery: index into the history's deliveries, and its watch.
    Delivery(u32, OperationId),
}

/// One sight: at a time, a revision was seen (or committed) by a session.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// When it was complete.
    pub time: Time,
    /// The clock of `time`.
    pub clock: ClockId,
    /// The revision.
    pub revision: Revision,
    /// The key, for sights of one object.
    pub key: KeyId,
    /// What shows it.
    pub evidence: EvidenceRef,
}

impl Observation {
    /// Its place among others.
    pub(super) fn place(&self) -> (ClockId, Time, Revision, EvidenceRef) {
        (self.clock, self.time, self.revision, self.evidence)
    }
}
