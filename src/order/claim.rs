//! What one piece of evidence claims about one version, and which claims need not be kept.

use super::version::Origin;
use super::version::{Change, Provenance, Version};
use crate::history::{AttributesId, ClockId, History, KeyId, Marks, OperationId, Revision, Symbol};
use crate::ingest::Time;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// A claim: this key had a version with this revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) revision: Revision,
    pub(super) key: KeyId,
    pub(super) uid: Symbol,
    pub(super) change: Change,
    pub(super) attributes: AttributesId,
    pub(super) origin: Origin,
    /// The operation of the source.
    pub(super) operation: OperationId,
    pub(super) writes: bool,
}

impl Claim {
    /// Which one comes first: by version, then the most trusted.
    pub(super) fn order(history: &History, a: &Claim, b: &Claim) -> Ordering {
        let version = |claim: &Claim| (claim.key, claim.revision);
        version(a).cmp(&version(b)).then_with(|| a.rank(history, b))
    }

    /// Which one comes first of two of one version: by how much it is trusted, then by where it stands.
    fn rank(&self, history: &History, other: &Claim) -> Ordering {
        let place = |claim: &Claim| (claim.origin.position(history), claim.operation);
        self.origin.provenance.cmp(&other.origin.provenance).then_with(|| place(self).cmp(&place(other)))
    }

    /// The clock of its source.
    pub(super) fn clock(&self, history: &History) -> ClockId {
        if self.operation.is_some() { history.operations.clock(self.operation.index()) } else { ClockId::NONE }
    }

    /// Whether both have the same clock. Nearly all evidence has one: then no row is looked at.
    fn has_clock_of(&self, history: &History, other: &Claim) -> bool {
        let one = history.clocks.len() == 1 && self.operation.is_some() && other.operation.is_some();
        one || self.clock(history) == other.clock(history)
    }

    /// Whether both are of one version.
    pub(super) fn is_of_one_version(&self, other: &Claim) -> bool {
        (self.key, self.revision) == (other.key, other.revision)
    }

    /// Whether another claim of the same version makes no difference beside this one.
    ///
    /// It says nothing that this one does not say, is trusted no more, was no earlier, and proves no write. What conflicts
    /// with this one conflicts with it in the same way, so a contradiction shows once for all who repeat it.
    fn makes_void(&self, history: &History, other: &Claim) -> bool {
        self.of_time_makes_void(history, || self.origin.time(history), other)
    }

    /// The same, where somebody knows the time of this one.
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

/// Claims as they come in. Fifty informers show every version fifty times, and every list shows what the one before showed:
/// what only repeats is dropped at once, since it would take most of the memory.
pub(super) struct Claims<'h> {
    history: &'h History,
    pub(super) rows: Vec<Claim>,
    /// The last row of each key and its time: nearly every read shows what was written last.
    latest: Vec<(u32, Time)>,
    /// A row of each version that was shown by a list or a stream and was not the last one of its key then.
    shown: FxHashMap<(KeyId, Revision), u32>,
}

impl Claims<'_> {
    /// None yet.
    pub(super) fn new(history: &History) -> Claims<'_> {
        let latest = vec![(u32::MAX, Time::UNKNOWN); history.keys.len()];
        Claims { history, rows: Vec::new(), latest, shown: FxHashMap::default() }
    }

    /// Takes a claim.
    pub(super) fn push(&mut self, claim: Claim) {
        self.latest[claim.key.index()] = (self.rows.len() as u32, claim.origin.time(self.history));
        self.rows.push(claim);
    }

    fn repeats_latest(&self, claim: &Claim) -> bool {
        let (row, time) = self.latest[claim.key.index()];
        let latest = self.rows.get(row as usize).filter(|latest| latest.is_of_one_version(claim));
        latest.is_some_and(|latest| latest.of_time_makes_void(self.history, || time, claim))
    }

    /// Takes a claim that often repeats what was just written.
    pub(super) fn observe(&mut self, claim: Claim) {
        if !self.repeats_latest(&claim) {
            self.push(claim);
        }
    }

    /// Takes a claim that many others repeat.
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
        // The one that makes more others void is the one to compare with.
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

/// What a settled version claims.
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
