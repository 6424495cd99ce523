//! The revision order: all writes of each domain by revision, as far as the evidence names them.
//!
//! Trust, highest first: the etcd witness, watch events, write answers, listed and read objects, the base that a write names.
//! Every version keeps its most trusted evidence. Facts that cannot be true together are kept as [`Contradiction`]s; they never
//! abort the reconstruction. [`Timeline::rebuild`] is in `settlement`.

use super::flags::Flags;
use super::version::{Change, Fragment, Provenance, Version, VersionId};
use super::versions::{Table, Until, Versions};
use crate::history::{
    Difference, History, IncarnationId, KeyId, Marks, Operation, OperationId, ResourceId, Revision, ScopeId, Symbol,
};
use crate::ingest::Position;
use rustc_hash::FxHashSet;
use std::sync::OnceLock;

/// A removal of unknown revision, inside (after, before).
#[derive(Clone, Copy, Debug)]
pub struct Removal {
    /// Which key.
    pub key: KeyId,
    /// Uid of the removed object; none if the answer does not show it.
    pub uid: Symbol,
    /// The removing request, which was answered with success.
    pub operation: OperationId,
    /// Above this revision.
    pub after: Revision,
    /// Below this one; `None` if no evidence bounds it.
    pub before: Option<Revision>,
}

/// Facts of the revision order that cannot be true together.
#[derive(Clone, Copy, Debug)]
pub enum Contradiction {
    /// Two keys have one revision.
    TwoKeys(VersionId, VersionId),
    /// One key and revision with two uids: first the uid of the version, then that of another fact. The flag says whether a
    /// witness or the answer of a write shows the first uid, so that the second one is wrong.
    TwoUids(KeyId, Revision, [Fragment; 2], bool),
    /// One key, revision and uid with two values of a field: that of the version and that of another fact.
    TwoContents(KeyId, Revision, Fragment, Difference),
    /// Two write answers claim one revision.
    TwoWrites(OperationId, OperationId),
    /// An answer or an event shows an object at the revision at which a witness shows the deletion of its key.
    ShownDeleted(KeyId, Revision, Fragment),
}

/// An interval (after, through] in which every change of a scope is known.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The exclusive lower end.
    pub after: Revision,
    /// The inclusive upper end.
    pub through: Revision,
    /// The scope; none means everything in the default domain.
    pub scope: ScopeId,
    /// The kind of evidence.
    pub provenance: Provenance,
    /// The position of the evidence in its file.
    pub position: Position,
}

/// The revision order of all domains, with its contradictions.
#[derive(Debug, Default)]
pub struct Timeline {
    pub(super) versions: Table,
    /// First version of each key, with one more element at the end.
    pub(super) key_starts: Vec<u32>,
    /// Versions of each resource by revision.
    pub(super) by_resource: Vec<Vec<VersionId>>,
    /// Removals of unknown revision, by key and uid.
    pub(super) removals: Vec<Removal>,
    /// Whether a key has such a removal.
    pub(super) removed: Flags,
    /// DELETED events (indices of deliveries) that carry an earlier version of their object. They date no deletion.
    pub(super) misdated: FxHashSet<u32>,
    /// Deletions that DELETED events certainly show at their own revisions.
    pub(super) dated: FxHashSet<(KeyId, Revision)>,
    pub(super) contradictions: Vec<Contradiction>,
    pub(super) spans: Vec<Span>,
    /// The latest revision through which a version is known to have been the current one.
    pub(super) until: Until,
    /// See [`Timeline::wrote_its_answer`].
    pub(super) wrote: Flags,
    /// See [`Timeline::processes`]. Filled once the timeline is complete.
    pub(super) processes: OnceLock<Box<[IncarnationId]>>,
}

impl Timeline {
    pub(super) fn range_of(&self, key: KeyId) -> std::ops::Range<usize> {
        if key.index() + 1 >= self.key_starts.len() {
            return 0..0;
        }
        self.key_starts[key.index()] as usize..self.key_starts[key.index() + 1] as usize
    }

    pub(super) fn id_at(&self, key: KeyId, revision: Revision) -> Option<VersionId> {
        let range = self.range_of(key);
        let at = range.start + self.versions.part(range.clone()).through(revision).checked_sub(1)?;
        (self.versions.revision(at) == revision).then_some(VersionId(at as u32))
    }

    /// A version.
    pub fn version(&self, id: VersionId) -> Version {
        self.versions.get(id.0 as usize)
    }

    /// The revision of a version, without reading its other fields.
    pub fn revision(&self, id: VersionId) -> Revision {
        self.versions.revision(id.0 as usize)
    }

    /// All versions, by key and revision.
    pub fn all(&self) -> Versions<'_> {
        self.versions.part(0..self.versions.len())
    }

    /// For each version, the process that wrote it, else the process that first showed it.
    pub fn processes(&self, history: &History) -> &[IncarnationId] {
        self.processes.get_or_init(|| {
            const NONE: u32 = u32::MAX;
            let operations = &history.operations;
            // Two passes, so that the second reads operations in their stored order.
            let mut wrote = vec![NONE; operations.len()];
            let mut processes = vec![IncarnationId::NONE; self.versions.len()];
            for (at, process) in processes.iter_mut().enumerate() {
                let writer = self.versions.writer(at);
                match wrote.get_mut(writer.index()).filter(|wrote| writer.is_some() && **wrote == NONE) {
                    Some(wrote) => *wrote = at as u32,
                    None => {
                        let shower = if writer.is_some() { writer } else { self.versions.get(at).shown_by(history) };
                        if shower.is_some() {
                            *process = operations.incarnation(shower.index());
                        }
                    }
                }
            }
            for (operation, at) in wrote.into_iter().enumerate().filter(|(_, at)| *at != NONE) {
                processes[at as usize] = operations.incarnation(operation);
            }
            processes.into()
        })
    }

    /// The known versions of a key by revision, deletions included.
    pub fn versions(&self, key: KeyId) -> Versions<'_> {
        self.versions.part(self.range_of(key))
    }

    /// The version of a key at exactly a revision. Before the index exists, during reconstruction, it searches all versions.
    pub fn version_at(&self, key: KeyId, revision: Revision) -> Option<Version> {
        if self.key_starts.is_empty() {
            return Some(self.versions.get(self.versions.find(key, revision).ok()?));
        }
        self.id_at(key, revision).map(|id| self.version(id))
    }

    /// Whether a version of a key at exactly a revision is known.
    pub fn has(&self, key: KeyId, revision: Revision) -> bool {
        self.id_at(key, revision).is_some()
    }

    /// The known versions of a key in (after, through].
    pub fn between(&self, key: KeyId, after: Revision, through: Revision) -> Versions<'_> {
        self.versions(key).between(after, through)
    }

    /// The last known version of a key at or below a revision.
    pub fn at_or_before(&self, key: KeyId, revision: Revision) -> Option<Version> {
        let versions = self.versions(key);
        versions.get(versions.through(revision).checked_sub(1)?)
    }

    /// The known versions of a resource in (after, through], by revision.
    pub fn of_resource(
        &self,
        resource: ResourceId,
        after: Revision,
        through: Revision,
    ) -> impl Iterator<Item = Version> {
        let list = self.by_resource.get(resource.index()).map_or(&[][..], |l| l);
        let from = list.partition_point(|v| self.revision(*v) <= after);
        let to = list.partition_point(|v| self.revision(*v) <= through).max(from);
        list[from..to].iter().map(|v| self.version(*v))
    }

    /// All removals whose revision is not known, by key.
    pub fn open_removals(&self) -> &[Removal] {
        &self.removals
    }

    /// Removals of a key at unknown revisions.
    pub fn removals(&self, key: KeyId) -> &[Removal] {
        if !self.removed.has(key.index()) {
            return &[];
        }
        let from = self.removals.partition_point(|r| r.key < key);
        let to = self.removals.partition_point(|r| r.key <= key);
        &self.removals[from..to]
    }

    /// Whether such a removal may have removed the object of a uid: it names that uid or none.
    pub fn may_be_removed(&self, key: KeyId, uid: Symbol) -> bool {
        [uid, Symbol::NONE].into_iter().any(|uid| !self.removals_of(key, uid).is_empty())
    }

    /// The removals of a key that name a uid; for [`Symbol::NONE`], those that name no uid.
    pub fn removals_of(&self, key: KeyId, uid: Symbol) -> &[Removal] {
        let all = self.removals(key);
        let from = all.partition_point(|r| r.uid < uid);
        let to = all.partition_point(|r| r.uid <= uid);
        &all[from..to]
    }

    /// Whether a delivery (an index into the history's deliveries) is a DELETED event that carries an earlier version of its
    /// object. Only the rule `delete-version` reports such an event; every other rule must ignore it.
    #[inline]
    pub fn is_misdated(&self, delivery: usize) -> bool {
        self.misdated.contains(&(delivery as u32))
    }

    /// Whether a known deletion certainly happened at its revision. An etcd witness shows it there, or a watch does that would
    /// have delivered a version of the object with that revision. Another event may carry a version that was not recorded.
    pub fn is_dated(&self, deletion: &Version) -> bool {
        deletion.provenance == Provenance::Witness || self.dated.contains(&(deletion.key, deletion.revision))
    }

    /// Facts that cannot be true together, in the order in which they were found.
    pub fn contradictions(&self) -> &[Contradiction] {
        &self.contradictions
    }

    /// The write that committed a version.
    pub fn writer(&self, key: KeyId, revision: Revision) -> Option<OperationId> {
        let id = self.id_at(key, revision)?;
        Some(self.versions.writer(id.0 as usize)).filter(|writer| writer.is_some())
    }

    /// Whether an operation is the writer of the version that it was answered with.
    pub fn wrote_its_answer(&self, id: OperationId) -> bool {
        self.wrote.has(id.index())
    }

    /// Like [`Timeline::wrote_its_answer`], but the writer may be another record of the request: see
    /// [`History::are_one_request`].
    pub fn made_its_answer(&self, history: &History, id: OperationId, o: &Operation) -> bool {
        let by_another_record = || self.writer(o.key, o.answered).is_some_and(|by| history.are_one_request(by, id));
        self.wrote_its_answer(id) || (o.marks.has(Marks::BOTH_SIDES) && o.answered.is_some() && by_another_record())
    }

    /// The first known version of a key above a revision.
    pub fn next(&self, key: KeyId, after: Revision) -> Option<VersionId> {
        let range = self.range_of(key);
        let at = range.start + self.versions.part(range.clone()).through(after);
        (at < range.end).then_some(VersionId(at as u32))
    }

    /// All deletions, by key and revision.
    pub fn deletions(&self) -> impl Iterator<Item = Version> {
        self.versions.of_change(Change::Deleted)
    }

    /// The last revision through which a version is known to have been the current one (at least its own).
    pub fn present_through(&self, version: &Version) -> Revision {
        match self.id_at(version.key, version.revision) {
            Some(id) => self.id_present_through(id),
            None => version.revision,
        }
    }

    /// The same for a version of this table.
    pub(super) fn id_present_through(&self, id: VersionId) -> Revision {
        let revision = self.revision(id);
        self.until.get(id).map_or(revision, |shown| shown.max(revision))
    }

    /// Intervals in which every change of a scope is known, by scope, then start.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Whether every change of a scope in (after, through] is known from evidence of at least this trust.
    pub fn covers(
        &self,
        history: &History,
        scope: ScopeId,
        after: Revision,
        through: Revision,
        trust: Provenance,
    ) -> bool {
        let mut reach = after;
        // Spans are sorted by scope, then start. Repeated passes join spans of different scopes.
        loop {
            let before = reach;
            for span in self.spans.iter().filter(|s| s.provenance <= trust && s.through > before) {
                if span.after > reach || span.through <= reach {
                    continue;
                }
                let wide = !span.scope.is_some() || history.scope_contains(span.scope, scope);
                let domain = history.domain_of(history.scopes[scope.index()].resource);
                let same = span.scope.is_some() || history.domains[domain.index()] == "default";
                if wide && same {
                    reach = reach.max(span.through);
                }
            }
            if reach >= through {
                return true;
            }
            if reach == before {
                return false;
            }
        }
    }
}
