//! Which keys certainly held an object at a revision: the stretches of T in which presence is proved, not assumed.

use super::Evidence;
use crate::history::{KeyId, Marks, OperationId, ResourceId, Revision, Symbol, Verb};
use crate::order::{Change, Provenance, Span, Version};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// A stretch [from, through] in which a key certainly held one object.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// The key.
    pub key: KeyId,
    /// From this revision.
    pub from: Revision,
    /// Through this one.
    pub through: Revision,
}

/// What proves that an object was there after a version of it.
#[derive(Clone, Copy, Debug)]
pub enum After<'h> {
    /// It is the version's own revision.
    Itself,
    /// A later change of the same object.
    Change(&'h Version),
    /// A list that shows the version still.
    Shown(OperationId),
    /// An etcd witness shows no change in between.
    Witness,
}

/// Certain presence in one history.
///
/// An object's life is contiguous, since a uid names one life: two known versions of one uid prove everything between them,
/// and so do a version and a later deletion of its uid. A list at L that shows a version proves it through L. Only a witness
/// of etcd itself proves that nothing happened in between.
#[derive(Debug)]
pub struct Presence<'h> {
    evidence: Evidence<'h>,
    witness: Vec<Span>,
    /// By key, then revision; the stretches of one key do not meet.
    lives: Vec<Life>,
    starts: Vec<u32>,
    /// Lists by their revision.
    lists: OnceCell<FxHashMap<Revision, Vec<OperationId>>>,
}

impl<'h> Presence<'h> {
    /// Derives it.
    pub fn derive(evidence: &Evidence<'h>) -> Presence<'h> {
        let timeline = &evidence.order.timeline;
        let witness = timeline.spans().iter().filter(|s| s.provenance == Provenance::Witness).copied().collect();
        let mut presence = Presence {
            evidence: *evidence,
            witness,
            lives: Vec::new(),
            starts: Vec::with_capacity(evidence.history.keys.len() + 1),
            lists: OnceCell::new(),
        };
        for key in 0..evidence.history.keys.len() as u32 {
            presence.starts.push(presence.lives.len() as u32);
            presence.live(KeyId(key));
        }
        presence.starts.push(presence.lives.len() as u32);
        presence
    }

    fn live(&mut self, key: KeyId) {
        let timeline = &self.evidence.order.timeline;
        let versions = timeline.versions(key);
        let mut current: Option<Life> = None;
        for (at, version) in versions.iter().enumerate() {
            let of_one_life = at.checked_sub(1).map(|at| &versions[at]).is_some_and(|before| one_life(before, version));
            if version.change.lives() != Some(true) {
                // The object that ends here (or changes in a way that nobody shows) lived until right before.
                if let Some(mut life) = current.take() {
                    if of_one_life {
                        life.through = life.through.max(before(version.revision));
                    }
                    self.lives.push(life);
                }
                continue;
            }
            let through = self.exactly_through(version);
            match &mut current {
                Some(life) if of_one_life => life.through = life.through.max(through),
                _ => {
                    self.lives.extend(current.take());
                    current = Some(Life { key, from: version.revision, through });
                }
            }
        }
        self.lives.extend(current);
    }

    /// Through which revision a version was certainly the present one.
    fn exactly_through(&self, version: &Version) -> Revision {
        let timeline = &self.evidence.order.timeline;
        let mut through = timeline.present_through(version);
        if version.provenance == Provenance::Witness {
            let span = self.witness.iter().find(|s| {
                s.after < version.revision
                    && version.revision <= s.through
                    && (!s.scope.is_some() || self.evidence.history.covers_key(s.scope, version.key))
            });
            through = through.max(span.map_or(through, |s| s.through));
        }
        let versions = timeline.versions(version.key);
        let next = versions.partition_point(|v| v.revision <= version.revision);
        versions.get(next).map_or(through, |next| through.min(before(next.revision)))
    }

    /// The stretch of a key around a revision.
    pub fn at(&self, key: KeyId, revision: Revision) -> Option<&Life> {
        let lives = &self.lives[self.starts[key.index()] as usize..self.starts[key.index() + 1] as usize];
        let at = lives.partition_point(|l| l.from <= revision).checked_sub(1)?;
        Some(&lives[at]).filter(|l| l.through >= revision)
    }

    /// The version that a key certainly held at a revision.
    pub fn version_at(&self, key: KeyId, revision: Revision) -> Option<&'h Version> {
        let version = self.evidence.order.timeline.at_or_before(key, revision)?;
        (version.change.lives() == Some(true) && self.exactly_through(version) >= revision).then_some(version)
    }

    /// What proves that a key held an object at a revision: a version at or before it, and what came after.
    pub fn proof(&self, key: KeyId, revision: Revision) -> Option<(&'h Version, After<'h>)> {
        self.at(key, revision)?;
        let timeline = &self.evidence.order.timeline;
        let version = timeline.at_or_before(key, revision)?;
        if version.revision == revision {
            return Some((version, After::Itself));
        }
        let versions = timeline.versions(key);
        let next = versions.partition_point(|v| v.revision <= revision);
        if let Some(next) = versions.get(next).filter(|next| one_life(version, next)) {
            return Some((version, After::Change(next)));
        }
        let shown = timeline.present_through(version);
        if shown >= revision
            && let Some(list) = self.list_showing(shown, key, version.uid)
        {
            return Some((version, After::Shown(list)));
        }
        Some((version, After::Witness))
    }

    fn list_showing(&self, revision: Revision, key: KeyId, uid: Symbol) -> Option<OperationId> {
        let history = self.evidence.history;
        let lists = self.lists.get_or_init(|| {
            let mut lists: FxHashMap<Revision, Vec<OperationId>> = FxHashMap::default();
            for (index, o) in history.operations.iter().enumerate() {
                if o.verb == Verb::List && o.is_answered() && o.marks.has(Marks::LIST_ANSWER) && o.answered.is_some() {
                    lists.entry(o.answered).or_default().push(OperationId(index as u32));
                }
            }
            lists
        });
        let shows = |id: &&OperationId| {
            history
                .item(history.operation(**id), key)
                .is_some_and(|i| i.uid == uid || !uid.is_some() || !i.uid.is_some())
        };
        lists.get(&revision)?.iter().find(shows).copied()
    }
}

/// How many keys of a resource (and namespace) certainly held an object at a revision: two binary searches.
#[derive(Debug, Default)]
pub struct Census {
    from: Vec<Revision>,
    through: Vec<Revision>,
    /// The stretches by the path of their key, as etcd orders keys.
    by_path: Vec<(String, Life)>,
}

impl Census {
    /// Counts the stretches of a resource; a namespace of `None` means all.
    pub fn take(
        evidence: &Evidence<'_>,
        presence: &Presence<'_>,
        resource: ResourceId,
        namespace: Option<Symbol>,
    ) -> Census {
        let history = evidence.history;
        let mut census = Census::default();
        for life in &presence.lives {
            let key = history.keys[life.key.index()];
            if key.resource == resource && namespace.is_none_or(|n| n == key.namespace) {
                census.from.push(life.from);
                census.through.push(life.through);
                census.by_path.push((path(evidence, life.key), *life));
            }
        }
        census.from.sort_unstable();
        census.through.sort_unstable();
        census.by_path.sort_unstable_by(|a, b| (&a.0, a.1.from).cmp(&(&b.0, b.1.from)));
        census
    }

    /// How many keys certainly held an object.
    pub fn count(&self, revision: Revision) -> usize {
        let begun = self.from.partition_point(|f| *f <= revision);
        let ended = self.through.partition_point(|t| *t < revision);
        begun - ended
    }

    /// The stretches around a revision of keys between two paths (both included).
    pub fn between<'c>(
        &'c self,
        revision: Revision,
        lower: Option<&'c str>,
        upper: Option<&'c str>,
    ) -> impl Iterator<Item = &'c Life> {
        let from = lower.map_or(0, |l| self.by_path.partition_point(|(p, _)| p.as_str() < l));
        let to = upper.map_or(self.by_path.len(), |u| self.by_path.partition_point(|(p, _)| p.as_str() <= u)).max(from);
        self.by_path[from..to].iter().map(|(_, life)| life).filter(move |l| l.from <= revision && revision <= l.through)
    }

    /// How many stretches lie between two paths: what enumerating them costs.
    pub fn cost(&self, lower: Option<&str>, upper: Option<&str>) -> usize {
        let from = lower.map_or(0, |l| self.by_path.partition_point(|(p, _)| p.as_str() < l));
        let to = upper.map_or(self.by_path.len(), |u| self.by_path.partition_point(|(p, _)| p.as_str() <= u));
        to.saturating_sub(from)
    }
}

/// The path of a key below its resource, as etcd orders keys.
pub fn path(evidence: &Evidence<'_>, key: KeyId) -> String {
    let key = evidence.history.keys[key.index()];
    let (namespace, name) = (evidence.history.name(key.namespace), evidence.history.name(key.name));
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Whether two versions that follow each other in T are of one life of their key (the later one may end it).
fn one_life(before: &Version, after: &Version) -> bool {
    before.uid.is_some()
        && before.uid == after.uid
        && before.change.lives() == Some(true)
        && after.change != Change::Created
}

fn before(revision: Revision) -> Revision {
    Revision::new(revision.value().saturating_sub(1))
}
