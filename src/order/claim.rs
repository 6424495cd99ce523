//! What one piece of evidence claims about one version, and which claims need not be kept.

use super::timeline::{Change, Provenance, Version};
use crate::history::{AttributesId, ClockId, History, KeyId, Marks, OperationId, Revision, Symbol};
use crate::ingest::{Position, Time};
use rustc_hash::FxHashMap;

/// A claim: this key had a version with this revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) revision: Revision,
    pub(super) key: KeyId,
    pub(super) uid: Symbol,
    pub(super) change: Change,
    pub(super) attributes: AttributesId,
    pub(super) provenance: Provenance,
    pub(super) position: Position,
    pub(super) operation: OperationId,
    pub(super) writes: bool,
    pub(super) time: Time,
    pub(super) clock: ClockId,
}

impl Claim {
    /// Where it belongs: by version, the most trusted first.
    pub(super) fn place(&self) -> (KeyId, Revision, Provenance, Position, OperationId) {
        (self.key, self.revision, self.provenance, self.position, self.operation)
    }

    /// Whether both are of one version.
    pub(super) fn is_of_one_version(&self, other: &Claim) -> bool {
        (self.key, self.revision) == (other.key, other.revision)
    }

    /// Whether another claim of the same version makes no difference beside this one.
    ///
    /// It says nothing that this one does not say, is trusted no more, was no earlier, and proves no write. What conflicts
    /// with this one conflicts with it in the same way, so a contradiction shows once for all who repeat it.
    fn makes_void(&self, other: &Claim) -> bool {
        let place = |claim: &Claim| (claim.provenance, claim.position, claim.operation);
        (!other.uid.is_some() || other.uid == self.uid)
            && (!other.attributes.is_some() || other.attributes == self.attributes)
            && (other.change == Change::Put || other.change == self.change)
            && !other.writes
            && other.provenance != Provenance::Write
            && place(self) <= place(other)
            && self.clock == other.clock
            && self.time.is_known()
            && self.time <= other.time
    }
}

/// Claims as they come in. Fifty informers show every version fifty times, and every list shows what the one before showed:
/// what only repeats is dropped at once, since it would take most of the memory.
pub(super) struct Claims {
    pub(super) rows: Vec<Claim>,
    /// The last row of each key: nearly every read shows what was written last.
    latest: Vec<u32>,
    /// A row of each version that was shown by a list or a stream and was not the last one of its key then.
    shown: FxHashMap<(KeyId, Revision), u32>,
}

impl Claims {
    /// None yet.
    pub(super) fn new(history: &History) -> Claims {
        Claims { rows: Vec::new(), latest: vec![u32::MAX; history.keys.len()], shown: FxHashMap::default() }
    }

    /// Takes a claim.
    pub(super) fn push(&mut self, claim: Claim) {
        self.latest[claim.key.index()] = self.rows.len() as u32;
        self.rows.push(claim);
    }

    fn repeats(&self, row: u32, claim: &Claim) -> bool {
        self.rows.get(row as usize).is_some_and(|row| row.is_of_one_version(claim) && row.makes_void(claim))
    }

    /// Takes a claim that often repeats what was just written.
    pub(super) fn observe(&mut self, claim: Claim) {
        if !self.repeats(self.latest[claim.key.index()], &claim) {
            self.push(claim);
        }
    }

    /// Takes a claim that many others repeat.
    pub(super) fn observe_again(&mut self, claim: Claim) {
        if self.repeats(self.latest[claim.key.index()], &claim) {
            return;
        }
        let new = self.rows.len() as u32;
        let shown = self.shown.entry((claim.key, claim.revision)).or_insert(new);
        let known = self.rows.get(*shown as usize);
        if known.is_some_and(|known| known.makes_void(&claim)) {
            return;
        }
        // The one that makes more others void is the one to compare with.
        if known.is_some_and(|known| claim.makes_void(known)) {
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
pub(super) fn claim_of(v: &Version) -> Claim {
    Claim {
        revision: v.revision,
        key: v.key,
        uid: v.uid,
        change: v.change,
        attributes: v.attributes,
        provenance: v.provenance,
        position: v.position,
        operation: v.shown_by,
        writes: false,
        time: v.time,
        clock: v.clock,
    }
}
