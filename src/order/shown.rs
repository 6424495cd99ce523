//! An observation: one revision that one record shows.

use crate::history::{ClockId, KeyId, OperationId, Revision};
use crate::ingest::Time;

/// The record that shows a revision: an operation's answer or a delivery of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceRef {
    /// The answer of an operation.
    Answer(OperationId),
    /// A delivery: index into the history's deliveries, and its watch.
    Delivery(u32, OperationId),
}

/// A revision that a session saw or committed, with the time of the evidence.
#[derive(Clone, Copy, Debug)]
pub struct Observation {
    /// When it was complete.
    pub time: Time,
    /// The clock of `time`.
    pub clock: ClockId,
    /// The revision.
    pub revision: Revision,
    /// The key, if the observation is about one object; otherwise none.
    pub key: KeyId,
    /// The record that shows it.
    pub evidence: EvidenceRef,
}

impl Observation {
    /// The sort key of observations.
    pub(super) fn place(&self) -> (ClockId, Time, Revision, EvidenceRef) {
        (self.clock, self.time, self.revision, self.evidence)
    }
}
