//! How long a version certainly stood: until which revision its object had not changed.

use crate::check::{Evidence, Fact};
use crate::history::{
    AuditId, ClockId, IncarnationId, KeyId, OperationId, ResourceId, Revision, ServerId, Symbol, Verb,
};
use crate::ingest::{Position, Time};
use crate::order::{Presence, Provenance, Version};
use rustc_hash::FxHashMap;

/// What proves that a version still stood at a later revision.
#[derive(Clone, Copy, Debug)]
pub enum Proof {
    /// It is the version's own revision.
    Itself,
    /// The next version was written on this very one: its request named it.
    Base(Version),
    /// A list of that revision or a later one shows it.
    Shown(OperationId, Revision),
    /// What shows every change of it shows none.
    Covered(Covering),
}

/// A stretch in which every change of some keys is known.
#[derive(Clone, Copy, Debug)]
pub struct Covering {
    after: Revision,
    through: Revision,
    position: Position,
    witness: bool,
}

/// Which resource, namespace and name a stretch covers; none: every one.
type Covered = (ResourceId, Symbol, Symbol);

/// Standing in one history. Gaps in the evidence end it: nothing is taken to have stood because nothing is known to have
/// changed it.
#[derive(Debug)]
pub struct VersionValidity<'h> {
    evidence: Evidence<'h>,
    presence: Presence<'h>,
    covered: FxHashMap<Covered, Vec<Covering>>,
}

impl<'h> VersionValidity<'h> {
    /// Derives it.
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
        for stretches in covered.values_mut() {
            stretches.sort_by_key(|s| (s.after, s.through));
            // Stretches that meet are one; each keeps the place of its first part.
            let mut joined: Vec<Covering> = Vec::new();
            for stretch in stretches.drain(..) {
                match joined.last_mut() {
                    Some(last) if stretch.after <= last.through => {
                        last.through = last.through.max(stretch.through);
                        last.witness &= stretch.witness;
                    }
                    _ => joined.push(stretch),
                }
            }
            *stretches = joined;
        }
        VersionValidity { evidence: *evidence, presence: evidence.order.presence(history), covered }
    }

    /// The stretches of which every change of a key after a revision is known.
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
            let stretches = self.covered.get(&scope)?;
            let at = stretches.partition_point(|s| s.after <= after).checked_sub(1)?;
            Some(stretches[at]).filter(|s| s.through > after)
        })
    }

    /// Through which revision a version certainly stood, and what proves it.
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

    /// A stretch of which every change of a key is known that reaches from one revision through another.
    pub fn covers(&self, key: KeyId, after: Revision, through: Revision) -> Option<Covering> {
        self.coverings(key, after).find(|covering| covering.through >= through)
    }

    /// Cites such a stretch.
    pub fn covering_fact(&self, key: KeyId, covering: Covering) -> Fact {
        let what = if covering.witness { "the witness of etcd" } else { "a watch" };
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

    /// Cites a proof; nothing where the version itself is enough.
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
