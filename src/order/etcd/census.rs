//! How many keys there are in an interval: counted in passing, so that lists need not be compared with all keys.

use super::timeline::{Timeline, Version};
use crate::history::Symbol;
use crate::history::etcd::{Interval, Recording};

/// Counts over T at revisions that only rise.
pub struct Census<'t> {
    recording: &'t Recording,
    timeline: &'t Timeline,
    /// Keys that ever changed or were found, in the order of their names.
    sorted: Vec<Symbol>,
    /// By symbol.
    places: Vec<u32>,
    /// The last version of each, as the index of T's; beyond them: none yet.
    versions: Vec<u32>,
    /// The interval that was last asked for.
    asked: Option<(Interval, (usize, usize))>,
    /// Which of them are there, and how many, as a tree of sums (Fenwick 1994).
    there: Vec<bool>,
    sums: Vec<i64>,
    /// The next version to count.
    next: usize,
}

impl<'t> Census<'t> {
    /// Of an empty store.
    pub fn new(recording: &'t Recording, timeline: &'t Timeline) -> Census<'t> {
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
        Census {
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

    /// The place of a key in the order of names.
    pub fn place(&self, key: Symbol) -> usize {
        match self.places.get(key.index()) {
            Some(&place) if place < u32::MAX => place as usize,
            _ => usize::MAX,
        }
    }

    /// The last version of a key, at the revision that was last advanced to, with its index.
    pub fn version(&self, key: Symbol) -> Option<(u32, &'t Version)> {
        let at = *self.versions.get(self.place(key))?;
        Some((at, self.timeline.versions.get(at as usize)?))
    }

    /// Whether a key is there.
    pub fn is_there(&self, key: Symbol) -> bool {
        self.there.get(self.place(key)).copied().unwrap_or(false)
    }

    /// The keys of an interval up to a place.
    pub fn keys_inside(&mut self, keys: Interval, through: usize) -> &[Symbol] {
        let (start, end) = self.bounds(keys, through);
        &self.sorted[start..end]
    }

    /// How many keys of an interval, up to a place, are there at a revision.
    pub fn count(&mut self, keys: Interval, at: i64, through: usize) -> i64 {
        self.advance(at);
        let (start, end) = self.bounds(keys, through);
        self.sum(end) - self.sum(start)
    }

    fn bounds(&mut self, keys: Interval, through: usize) -> (usize, usize) {
        let (start, end) = match self.asked.filter(|(asked, _)| *asked == keys) {
            Some((_, bounds)) => bounds,
            None => {
                let bounds = self.search(keys);
                self.asked = Some((keys, bounds));
                bounds
            }
        };
        (start, end.min(through.saturating_add(1)).max(start))
    }

    fn search(&self, keys: Interval) -> (usize, usize) {
        let text = |key: &Symbol| self.recording.texts.get(*key);
        let first = text(&keys.key);
        let start = self.sorted.partition_point(|key| text(key) < first);
        let end = match keys.end.is_some().then(|| text(&keys.end)) {
            None => start + usize::from(self.sorted.get(start).is_some_and(|key| *key == keys.key)),
            Some("\0") => self.sorted.len(),
            Some(end) => self.sorted.partition_point(|key| text(key) < end),
        };
        (start, end.max(start))
    }

    /// Goes on to a revision.
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

    /// How many of the first keys are there.
    fn sum(&self, count: usize) -> i64 {
        let (mut at, mut sum) = (count, 0);
        while at > 0 {
            sum += self.sums[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }
}
