//! The number of existing keys in an interval, counted during a sweep over revisions with a Fenwick tree (Fenwick 1994). Lists
//! need not be compared key by key then. Revisions must not fall between calls except through [`KeyCounts::restart`].

use super::timeline::{State, Timeline, Version};
use crate::history::Symbol;
use crate::history::etcd::{Interval, Recording};
use std::ops::Range;

/// Key counts at a revision that only rises.
pub struct KeyCounts<'t> {
    recording: &'t Recording,
    timeline: &'t Timeline,
    /// Keys that ever changed or were found, in order of their names.
    sorted: Vec<Symbol>,
    /// The place in `sorted` by symbol.
    places: Vec<u32>,
    /// The index of the last version of each key; an index out of range means none yet.
    versions: Vec<u32>,
    /// The interval of the last query.
    asked: Option<(Interval, Range<usize>)>,
    /// Whether each key exists, and the counts as a Fenwick tree.
    there: Vec<bool>,
    sums: Vec<i64>,
    /// The next version to count.
    next: usize,
}

impl<'t> KeyCounts<'t> {
    /// Counts for an empty store.
    pub fn new(recording: &'t Recording, timeline: &'t Timeline) -> KeyCounts<'t> {
        let found = recording.pairs.iter().map(|pair| pair.key);
        let mut sorted: Vec<Symbol> = timeline.keys().chain(found).collect();
        sorted.sort_unstable();
        sorted.dedup();
        sorted.sort_by(|a, b| recording.texts.get(*a).cmp(recording.texts.get(*b)));
        let mut places = vec![u32::MAX; recording.texts.len()];
        for (at, key) in (0..).zip(&sorted) {
            places[key.index()] = at;
        }
        let length = sorted.len();
        KeyCounts {
            recording,
            timeline,
            sorted,
            places,
            versions: vec![u32::MAX; length],
            asked: None,
            there: vec![false; length],
            sums: vec![0; length + 1],
            next: 0,
        }
    }

    /// Returns to the empty store.
    pub fn restart(&mut self) {
        self.versions.fill(u32::MAX);
        self.there.fill(false);
        self.sums.fill(0);
        self.next = 0;
    }

    /// The number of steps of one sweep over the timeline.
    pub fn cost(&self) -> usize {
        self.timeline.versions.len() + self.sorted.len()
    }

    /// The state of a key at a revision, which must be the one that was last advanced to.
    pub fn state(&self, key: Symbol, at: i64) -> State<'t> {
        self.timeline.state_since(self.version(key).map(|(_, version)| version), at)
    }

    /// The place of a key in order of names; `usize::MAX` if it never occurs.
    pub fn place(&self, key: Symbol) -> usize {
        match self.places.get(key.index()) {
            Some(&place) if place < u32::MAX => place as usize,
            _ => usize::MAX,
        }
    }

    /// The last version of a key at the current revision, with its index.
    pub fn version(&self, key: Symbol) -> Option<(u32, &'t Version)> {
        let at = *self.versions.get(self.place(key))?;
        Some((at, self.timeline.versions.get(at as usize)?))
    }

    /// Whether a key exists at the current revision.
    pub fn is_there(&self, key: Symbol) -> bool {
        self.there.get(self.place(key)).copied().unwrap_or(false)
    }

    /// The keys of an interval, up to a place.
    pub fn keys_inside(&mut self, keys: Interval, through: usize) -> &[Symbol] {
        let places = self.inside(keys);
        &self.sorted[up_to(places, through)]
    }

    /// The number of keys of an interval, up to a place, that exist at a revision.
    pub fn count(&mut self, keys: Interval, at: i64, through: usize) -> i64 {
        self.advance(at);
        let places = up_to(self.inside(keys), through);
        self.sum(places.end) - self.sum(places.start)
    }

    /// The places of the keys of an interval.
    pub fn inside(&mut self, keys: Interval) -> Range<usize> {
        if let Some((_, places)) = self.asked.as_ref().filter(|(asked, _)| *asked == keys) {
            return places.clone();
        }
        let places = self.search(keys);
        self.asked = Some((keys, places.clone()));
        places
    }

    fn search(&self, keys: Interval) -> Range<usize> {
        let text = |key: &Symbol| self.recording.texts.get(*key);
        let first = text(&keys.key);
        let start = self.sorted.partition_point(|key| text(key) < first);
        let end = match keys.end.is_some().then(|| text(&keys.end)) {
            None => start + usize::from(self.sorted.get(start).is_some_and(|key| *key == keys.key)),
            Some("\0") => self.sorted.len(),
            Some(end) => self.sorted.partition_point(|key| text(key) < end),
        };
        start..end.max(start)
    }

    /// Counts the versions through a revision.
    pub fn advance(&mut self, at: i64) {
        while let Some(version) = self.timeline.versions.get(self.next).filter(|version| version.revision <= at) {
            let place = self.place(version.change.key);
            self.versions[place] = self.next as u32;
            self.next += 1;
            let lives = version.change.value.is_some();
            if self.there[place] != lives {
                self.there[place] = lives;
                self.add(place, if lives { 1 } else { -1 });
            }
        }
    }

    fn add(&mut self, place: usize, by: i64) {
        let mut at = place + 1;
        while at < self.sums.len() {
            self.sums[at] += by;
            at += at & at.wrapping_neg();
        }
    }

    /// The number of existing keys among the first `count` keys.
    fn sum(&self, count: usize) -> i64 {
        let (mut at, mut sum) = (count, 0);
        while at > 0 {
            sum += self.sums[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }
}

/// The places of a range through a place, both included.
fn up_to(places: Range<usize>, through: usize) -> Range<usize> {
    places.start..places.end.min(through.saturating_add(1)).max(places.start)
}
