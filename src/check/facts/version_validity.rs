//! Input: versions and the evidence around them. Output: the last revision at which a version was certainly current, and the
//! proof. Invariant: a gap in the evidence ends the interval. No version is presumed current only because no change of it is
//! known.

use crate::check::{Evidence, Fact};
use crate::history::{
    AuditId, ClockId, IncarnationId, KeyId, OperationId, ResourceId, Revision, ServerId, Symbol, Verb,
};
use crate::ingest::{Position, Time};
use crate::order::{Presence, Provenance, Version};
use rustc_hash::FxHashMap;

/// The proof that a version was still current at a later revision.
#[derive(Clone, Copy, Debug)]
pub enum Proof {
    /// The revision is the version's own.
    Itself,
    /// The next version was written with this one as its base.
    Base(Version),
    /// A list of that revision or a later one shows the version.
    Shown(OperationId, Revision),
    /// A stream or a witness that shows every change shows none.
    Covered(Covering),
}

/// An interval in which every change of some keys is known.
#[derive(Clone, Copy, Debug)]
pub struct Covering {
    after: Revision,
    through: Revision,
    position: Position,
    witness: bool,
}

/// The resource, namespace and name that an interval covers; `NONE` means every one.
type Covered = (ResourceId, Symbol, Symbol);

/// The validity of versions in one history.
#[derive(Debug)]
pub struct VersionValidity<'h> {
    evidence: Evidence<'h>,
    presence: Presence<'h>,
    covered: FxHashMap<Covered, Vec<Covering>>,
}

impl<'h> VersionValidity<'h> {
    /// Derives the covered intervals from the spans of the timeline.
    pub fn derive(evidence: &Evidence<'h>) -> VersionValidity<'h> {
        let history = evidence.history;
        let mut covered: FxHashMap<Covered, Vec<Covering>> = FxHashMap::default();
        for span in evidence.order.timeline.spans().iter().filter(|s| s.provenance <= Provenance::Event) {
            let witness = span.provenance == Provenance::Witness;
            let covering = Covering { after: span.after, through: span.through, position: span.position, witness };
            let scope = if span.scope.is_some() {
                let scope = history.scopes[span.scope.index()];
                let wide = |symbol: Symbol| if history.name(symbol).is_empty() { Symbol::NONE } else { symbol };
                (scope.resource, wide(scope.namespace), wide(scope.name))
            } else {
                (ResourceId::NONE, Symbol::NONE, Symbol::NONE)
            };
            covered.entry(scope).or_default().push(covering);
        }
        for intervals in covered.values_mut() {
            intervals.sort_by_key(|s| (s.after, s.through));
            // Intervals that meet are joined. The result keeps the position of its first part.
            let mut joined: Vec<Covering> = Vec::new();
            for interval in intervals.drain(..) {
                match joined.last_mut() {
                    Some(last) if interval.after <= last.through => {
                        last.through = last.through.max(interval.through);
                        last.witness &= interval.witness;
                    }
                    _ => joined.push(interval),
                }
            }
            *intervals = joined;
        }
        VersionValidity { evidence: *evidence, presence: evidence.order.presence(history), covered }
    }

    /// The intervals after a revision in which every change of a key is known.
    fn coverings(&self, key: KeyId, after: Revision) -> impl Iterator<Item = Covering> {
        let history = self.evidence.history;
        let key = history.keys[key.index()];
        let everything = history.domains[history.domain_of(key.resource).index()] == "default";
        let scopes = [
            (key.resource, Symbol::NONE, Symbol::NONE),
            (key.resource, key.namespace, Symbol::NONE),
            (key.resource, Symbol::NONE, key.name),
            (key.resource, key.namespace, key.name),
            (if everything { ResourceId::NONE } else { key.resource }, Symbol::NONE, Symbol::NONE),
        ];
        scopes.into_iter().filter_map(move |scope| {
            let intervals = self.covered.get(&scope)?;
            let at = intervals.partition_point(|s| s.after <= after).checked_sub(1)?;
            Some(intervals[at]).filter(|s| s.through > after)
        })
    }

    /// The last revision at which a version was certainly current, and the proof.
    pub fn through(&self, version: &Version) -> (Revision, Proof) {
        let timeline = &self.evidence.order.timeline;
        let versions = timeline.versions(version.key);
        let next = versions.get(versions.through(version.revision));
        let last = next.map(|next| next.revision.previous());
        let mut best = (version.revision, Proof::Itself);
        if let (Some(next), Some(last)) = (next, last)
            && next.writer.is_some()
        {
            let writer = self.evidence.history.operation(next.writer);
            let conditional = matches!(writer.verb, Verb::Update | Verb::Patch | Verb::Delete);
            if conditional && writer.asked_revision == version.revision && last > best.0 {
                return (last, Proof::Base(next));
            }
        }
        let cap = |revision: Revision| last.map_or(revision, |last| revision.min(last));
        let shown = timeline.present_through(version);
        if cap(shown) > best.0
            && let Some(list) = self.presence.list_showing(shown, version.key, version.uid)
        {
            best = (cap(shown), Proof::Shown(list, shown));
        }
        for covering in self.coverings(version.key, version.revision) {
            if cap(covering.through) > best.0 {
                best = (cap(covering.through), Proof::Covered(covering));
            }
        }
        best
    }

    /// An interval that extends from one revision through another and in which every change of a key is known.
    pub fn covers(&self, key: KeyId, after: Revision, through: Revision) -> Option<Covering> {
        self.coverings(key, after).find(|covering| covering.through >= through)
    }

    /// A covered interval as a fact.
    pub fn covering_fact(&self, key: KeyId, covering: Covering) -> Fact {
        let what = if covering.witness { "the etcd witness" } else { "a watch" };
        let name = self.evidence.history.key_name(key);
        Fact {
            position: covering.position,
            says: format!("{what} shows every change of {name} through revision {}", covering.through),
            revision: covering.through,
            key,
            uid: Symbol::NONE,
            time: Time::UNKNOWN,
            clock: ClockId::NONE,
            incarnation: IncarnationId::NONE,
            server: ServerId::NONE,
            audit_id: AuditId::None,
            operation: OperationId::NONE,
        }
    }

    /// A proof as a fact; `None` if the version itself is enough.
    pub fn fact(&self, version: &Version, proof: Proof) -> Option<Fact> {
        let evidence = &self.evidence;
        let name = evidence.history.key_name(version.key);
        match proof {
            Proof::Itself => None,
            Proof::Base(next) => {
                Some(evidence.version(&next, format!("{name} was next written on its version {}", version.revision)))
            }
            Proof::Shown(list, revision) => {
                let says = format!("a list of revision {revision} still showed that version of {name}");
                Some(evidence.item(list, version.key, version.uid, revision, says))
            }
            Proof::Covered(covering) => Some(self.covering_fact(version.key, covering)),
        }
    }
}
