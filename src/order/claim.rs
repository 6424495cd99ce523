//! The claim of one piece of evidence about one version. Repeated claims are dropped when they arrive, because many informers
//! show every version. A claim is dropped only if it changes neither the settled version nor its contradictions.

use super::version::Origin;
use super::version::{Change, Provenance, Version};
use crate::history::{AttributesId, ClockId, History, KeyId, Marks, OperationId, Revision, Symbol};
use crate::ingest::Time;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// A claim that a key had a version with this revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) revision: Revision,
    pub(super) key: KeyId,
    pub(super) uid: Symbol,
    pub(super) change: Change,
    pub(super) attributes: AttributesId,
    pub(super) origin: Origin,
    /// The operation of the evidence; none for a witness.
    pub(super) operation: OperationId,
    pub(super) writes: bool,
}

impl Claim {
    /// Compares by version, then by trust.
    pub(super) fn order(history: &History, a: &Claim, b: &Claim) -> Ordering {
        let version = |claim: &Claim| (claim.key, claim.revision);
        version(a).cmp(&version(b)).then_with(|| a.rank(history, b))
    }

    /// Compares two claims of one version: by trust, then by position.
    fn rank(&self, history: &History, other: &Claim) -> Ordering {
        let place = |claim: &Claim| (claim.origin.position(history), claim.operation);
        self.origin.provenance.cmp(&other.origin.provenance).then_with(|| place(self).cmp(&place(other)))
    }

    /// The clock of the evidence.
    pub(super) fn clock(&self, history: &History) -> ClockId {
        if self.operation.is_some() { history.operations.clock(self.operation.index()) } else { ClockId::NONE }
    }

    /// Whether both have the same clock. Nearly all evidence has one clock; no row is read then.
    fn has_clock_of(&self, history: &History, other: &Claim) -> bool {
        let one = history.clocks.len() == 1 && self.operation.is_some() && other.operation.is_some();
        one || self.clock(history) == other.clock(history)
    }

    /// Whether both are of one version.
    pub(super) fn is_of_one_version(&self, other: &Claim) -> bool {
        (self.key, self.revision) == (other.key, other.revision)
    }

    /// Whether this claim makes another claim of the same version redundant.
    /// The other shows nothing new, is not more trusted and not earlier, and proves no write. Whatever conflicts with this claim
    /// conflicts with the other in the same way, so a contradiction is recorded once for all repetitions.
    fn makes_void(&self, history: &History, other: &Claim) -> bool {
        self.of_time_makes_void(history, || self.origin.time(history), other)
    }

    /// The same, with the time of this claim from the caller.
    fn of_time_makes_void(&self, history: &History, time: impl FnOnce() -> Time, other: &Claim) -> bool {
        let is_earlier = || {
            let time = time();
            time.is_known() && time <= other.origin.time(history)
        };
        (!other.uid.is_some() || other.uid == self.uid)
            && (!other.attributes.is_some() || other.attributes == self.attributes)
            && (other.change == Change::Put || other.change == self.change)
            && !other.writes
            && other.origin.provenance != Provenance::Write
            && self.has_clock_of(history, other)
            && is_earlier()
            && self.rank(history, other).is_le()
    }
}

/// Claims in order of arrival, without repetitions. Fifty informers show every version fifty times, and every list repeats the
/// list before it; kept repetitions would dominate memory.
pub(super) struct Claims<'h> {
    history: &'h History,
    pub(super) rows: Vec<Claim>,
    /// The last row of each key and its time. Nearly every read shows the version that was written last.
    latest: Vec<(u32, Time)>,
    /// A row for each version that a list or stream showed when it was no longer the last one of its key.
    shown: FxHashMap<(KeyId, Revision), u32>,
}

impl Claims<'_> {
    /// Without any claims.
    pub(super) fn new(history: &History) -> Claims<'_> {
        let latest = vec![(u32::MAX, Time::UNKNOWN); history.keys.len()];
        Claims { history, rows: Vec::new(), latest, shown: FxHashMap::default() }
    }

    /// Adds a claim unconditionally.
    pub(super) fn push(&mut self, claim: Claim) {
        self.latest[claim.key.index()] = (self.rows.len() as u32, claim.origin.time(self.history));
        self.rows.push(claim);
    }

    fn repeats_latest(&self, claim: &Claim) -> bool {
        let (row, time) = self.latest[claim.key.index()];
        let latest = self.rows.get(row as usize).filter(|latest| latest.is_of_one_version(claim));
        latest.is_some_and(|latest| latest.of_time_makes_void(self.history, || time, claim))
    }

    /// Adds a claim unless it repeats the last claim of its key. Reads often repeat the last write.
    pub(super) fn observe(&mut self, claim: Claim) {
        if !self.repeats_latest(&claim) {
            self.push(claim);
        }
    }

    /// Adds a claim unless it repeats the last claim of its key or the kept claim of its version.
    pub(super) fn observe_again(&mut self, claim: Claim) {
        if self.repeats_latest(&claim) {
            return;
        }
        let new = self.rows.len() as u32;
        let shown = self.shown.entry((claim.key, claim.revision)).or_insert(new);
        let known = self.rows.get(*shown as usize);
        if known.is_some_and(|known| known.makes_void(self.history, &claim)) {
            return;
        }
        // Keep the stronger claim for later comparisons.
        if known.is_some_and(|known| claim.makes_void(self.history, known)) {
            *shown = new;
        }
        self.push(claim);
    }
}

/// Whether a claim is from a client's own record.
pub(super) fn side(history: &History, claim: &Claim) -> bool {
    history.operation(claim.operation).marks.has(Marks::CLIENT_SIDE)
}

/// A settled version as a claim, so that it can settle again.
pub(super) fn claim_of(history: &History, v: &Version) -> Claim {
    Claim {
        revision: v.revision,
        key: v.key,
        uid: v.uid,
        change: v.change,
        attributes: v.attributes,
        origin: v.origin(),
        operation: v.shown_by(history),
        writes: false,
    }
}
