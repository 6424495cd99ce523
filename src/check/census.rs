//! How many objects of a resource a snapshot must show at least.

use super::Evidence;
use crate::history::{KeyId, ResourceId, Revision, Symbol};
use crate::order::{Life, Presence};

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
        for life in presence.all() {
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
