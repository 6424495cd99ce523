//! The objects of a resource that certainly existed at a revision. Input: intervals of lives. Output: their number by two
//! binary searches, and their keys at a cost near their number. Invariant: the intervals kept at marks take at most twice the
//! memory of all intervals.

use crate::check::Evidence;
use crate::history::{KeyId, Revision};
use crate::order::Life;
use std::cmp::Ordering;
use std::ops::Range;

/// The least number of intervals that begin between two marks.
const LEAST: usize = 64;

/// The keys of a resource (and namespace) that certainly held an object at a revision.
#[derive(Debug, Default)]
pub struct LiveKeys {
    /// Intervals by the path of their key, in etcd's order of keys.
    by_path: Vec<(String, Life)>,
    /// Indices of `by_path`, by first revision.
    by_from: Vec<u32>,
    /// Last revisions, sorted.
    through: Vec<Revision>,
    /// Positions in `by_from`, each with the start in `going` of the earlier intervals that still continue there.
    marks: Vec<(usize, usize)>,
    going: Vec<u32>,
}

/// Candidates for the intervals around one revision.
#[derive(Debug)]
pub struct Around<'c> {
    census: &'c LiveKeys,
    revision: Revision,
    bounds: (Option<&'c str>, Option<&'c str>),
    among: Among<'c>,
}

#[derive(Debug)]
enum Among<'c> {
    /// Intervals with paths between the bounds.
    Paths(Range<usize>),
    /// Intervals that had begun and had not ended at the last mark.
    Begun([&'c [u32]; 2]),
}

impl LiveKeys {
    /// Builds the index of some lives.
    pub fn take<'l>(evidence: &Evidence<'_>, lives: impl Iterator<Item = &'l Life>) -> LiveKeys {
        LiveKeys::of(lives.map(|life| (path(evidence, life.key), *life)).collect(), LEAST)
    }

    /// `least`: see [`LEAST`].
    fn of(mut by_path: Vec<(String, Life)>, least: usize) -> LiveKeys {
        by_path.sort_unstable_by(|a, b| (&a.0, a.1.from).cmp(&(&b.0, b.1.from)));
        let mut through: Vec<Revision> = by_path.iter().map(|(_, life)| life.through).collect();
        through.sort_unstable();
        let mut by_from: Vec<u32> = (0..by_path.len() as u32).collect();
        by_from.sort_by_key(|&at| by_path[at as usize].1.from);
        // A mark is set once as many intervals have begun as the last mark kept, so all marks keep at most twice the number of
        // intervals.
        let (mut marks, mut going, mut now, mut since): (Vec<_>, Vec<u32>, Vec<u32>, usize) = Default::default();
        for (place, &at) in by_from.iter().enumerate() {
            if place - since < now.len().max(least) {
                continue;
            }
            let begins = by_path[at as usize].1.from;
            now.extend(&by_from[since..place]);
            now.retain(|&at| by_path[at as usize].1.through >= begins);
            marks.push((place, going.len()));
            going.extend(&now);
            since = place;
        }
        LiveKeys { by_path, by_from, through, marks, going }
    }

    /// The number of keys that certainly held an object.
    pub fn count(&self, revision: Revision) -> usize {
        let ended = self.through.partition_point(|t| *t < revision);
        self.begun(revision) - ended
    }

    /// The number of intervals that begin at or below a revision.
    fn begun(&self, revision: Revision) -> usize {
        self.by_from.partition_point(|&at| self.by_path[at as usize].1.from <= revision)
    }

    /// The intervals around a revision of keys between two paths (both included).
    pub fn around<'c>(&'c self, revision: Revision, lower: Option<&'c str>, upper: Option<&'c str>) -> Around<'c> {
        let from = lower.map_or(0, |l| self.by_path.partition_point(|(p, _)| p.as_str() < l));
        let to = upper.map_or(self.by_path.len(), |u| self.by_path.partition_point(|(p, _)| p.as_str() <= u)).max(from);
        let begun = self.begun(revision);
        // An interval begins at each mark. Only a mark at or before the revision leaves out no interval that ended in between.
        let mark = self.marks.partition_point(|(place, _)| *place < begun);
        let kept = mark.checked_sub(1).map_or((0, 0), |last| self.marks[last]);
        let end = if mark == 0 { 0 } else { self.marks.get(mark).map_or(self.going.len(), |next| next.1) };
        let begun = [&self.going[kept.1..end], &self.by_from[kept.0..begun]];
        let among = match begun.iter().map(|part| part.len()).sum::<usize>() < to - from {
            true => Among::Begun(begun),
            false => Among::Paths(from..to),
        };
        Around { census: self, revision, bounds: (lower, upper), among }
    }
}

impl Around<'_> {
    /// The number of candidates that are examined.
    pub fn cost(&self) -> usize {
        match &self.among {
            Among::Paths(range) => range.len(),
            Among::Begun(parts) => parts.iter().map(|part| part.len()).sum(),
        }
    }

    /// The keys, by path.
    pub fn keys(&self) -> Vec<KeyId> {
        let by_path = &self.census.by_path;
        let holds = |at: usize| by_path[at].1.from <= self.revision && self.revision <= by_path[at].1.through;
        let mut found: Vec<usize> = match &self.among {
            Among::Paths(range) => range.clone().filter(|&at| holds(at)).collect(),
            Among::Begun(parts) => {
                let (lower, upper) = self.bounds;
                let within = |path: &str| lower.is_none_or(|l| l <= path) && upper.is_none_or(|u| path <= u);
                let all = parts.iter().flat_map(|part| part.iter()).map(|&at| at as usize);
                all.filter(|&at| holds(at) && within(&by_path[at].0)).collect()
            }
        };
        found.sort_unstable();
        found.into_iter().map(|at| by_path[at].1.key).collect()
    }
}

/// The path of a key below its resource, in etcd's order of keys.
pub fn path(evidence: &Evidence<'_>, key: KeyId) -> String {
    let key = evidence.history.keys[key.index()];
    let (namespace, name) = (evidence.history.name(key.namespace), evidence.history.name(key.name));
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Compares two keys by their paths.
pub fn by_path(evidence: &Evidence<'_>, a: KeyId, b: KeyId) -> Ordering {
    let (history, keys) = (evidence.history, &evidence.history.keys);
    let (a, b) = (keys[a.index()], keys[b.index()]);
    // Inside one namespace the names decide.
    if a.namespace == b.namespace {
        return history.name(a.name).cmp(history.name(b.name));
    }
    let bytes = |namespace, name| {
        let (namespace, name): (&str, &str) = (history.name(namespace), history.name(name));
        let slash = if namespace.is_empty() { "" } else { "/" };
        namespace.bytes().chain(slash.bytes()).chain(name.bytes())
    };
    bytes(a.namespace, a.name).cmp(bytes(b.namespace, b.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn those_around_a_revision_are_those_that_a_walk_through_all_finds(
            lives in prop::collection::vec((0u32..12, 0u64..40, 0u64..20), 0..60),
            bounds in (prop::option::of(0u32..12), prop::option::of(0u32..12)),
        ) {
            let name = |key: u32| format!("{key:02}");
            let life = |(key, from, length): (u32, u64, u64)| {
                let [from, through] = [from, from + length].map(|at| Revision::new(at.into()));
                (name(key), Life { key: KeyId(key), from, through })
            };
            let mut all: Vec<(String, Life)> = lives.into_iter().map(life).collect();
            let census = LiveKeys::of(all.clone(), 2);
            prop_assert_eq!(census.marks.is_empty(), all.len() < 3);
            all.sort_by(|a, b| (&a.0, a.1.from).cmp(&(&b.0, b.1.from)));
            let (lower, upper) = (bounds.0.map(name), bounds.1.map(name));
            for revision in (0..62u64).map(|at| Revision::new(at.into())) {
                let holds = |life: &Life| life.from <= revision && revision <= life.through;
                let within = |path: &String| {
                    lower.as_ref().is_none_or(|l| l <= path) && upper.as_ref().is_none_or(|u| path <= u)
                };
                let walked: Vec<KeyId> =
                    all.iter().filter(|(path, life)| holds(life) && within(path)).map(|(_, life)| life.key).collect();
                prop_assert_eq!(census.count(revision), all.iter().filter(|(_, life)| holds(life)).count());
                let around = census.around(revision, lower.as_deref(), upper.as_deref());
                prop_assert!(around.cost() >= walked.len() && around.cost() <= all.len());
                prop_assert_eq!(around.keys(), walked);
            }
        }
    }
}
