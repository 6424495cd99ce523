//! Lifetimes of objects: every uid with the revisions between which it was certainly there, and what is known of its end.

use super::timeline::{Removal, Timeline};
use super::version::{Change, Provenance, Version, VersionId};
use crate::history::{History, KeyId, Revision, Symbol};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// One life.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// The name that it bears.
    pub key: KeyId,
    /// Its uid.
    pub uid: Symbol,
    /// Its first known version; zero where only its end is known.
    pub from: Revision,
    /// Whether that version is its creation.
    pub is_born: bool,
    /// The last revision at which it was certainly there.
    pub through: Revision,
    /// Its end.
    pub death: Death,
}

/// What is known of the end of a life. Indices are into the versions and removals of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Nothing.
    Open,
    /// At this version, its deletion.
    At(u32),
    /// By this removal, whose revision is not known.
    Removed(u32),
    /// Before this version, the first of another life of the name, or a deletion of nobody knows whom.
    Before(u32),
}

/// All lives of a history.
#[derive(Debug, Default)]
pub struct Lifetimes {
    /// By key, then first version.
    lives: Vec<Lifetime>,
    by_uid: FxHashMap<Symbol, u32>,
    /// Uids that two names bear: nothing is said of them.
    twice: Vec<Symbol>,
}

impl Lifetimes {
    /// Collects them.
    pub(super) fn collect(history: &History, timeline: &Timeline) -> Lifetimes {
        let mut all = Lifetimes::default();
        for key in (0..history.keys.len() as u32).map(KeyId) {
            let start = all.lives.len();
            all.of_versions(history, timeline, key);
            all.of_removals(timeline, key, start);
            all.lives[start..].sort_by_key(|life| (life.from, life.uid));
            for (nth, life) in all.lives[start..].iter().enumerate() {
                all.by_uid.insert(life.uid, (start + nth) as u32);
            }
        }
        all.twice.sort_unstable();
        all.twice.dedup();
        all
    }

    fn of_versions(&mut self, history: &History, timeline: &Timeline, key: KeyId) {
        let start = self.lives.len();
        let first = timeline.range_of(key).start;
        for (at, mut version) in timeline.versions(key).iter().enumerate() {
            if version.change == Change::Deleted && !version.uid.is_some() {
                // A tombstone without the value before it: its request may say whose it is.
                if version.writer.is_some() {
                    version.uid = history.operation(version.writer).answer_uid;
                }
                if !version.uid.is_some() {
                    // Whoever it was, nobody bears the name after it.
                    self.end_open(start, at);
                }
            }
            // A uid that only the body of an update names is a claim of its client.
            if !version.uid.is_some() || version.provenance == Provenance::Base {
                continue;
            }
            let known = self.known(start, version.uid);
            if version.change == Change::Deleted {
                let nth = known.unwrap_or_else(|| self.begin(key, version.uid, Revision::NONE, false));
                let life = &mut self.lives[nth];
                life.death = Death::At(at as u32);
                // A life has no gaps, so it lasted until its end.
                if life.from.is_some() && timeline.is_dated(&version) {
                    life.through = life.through.max(version.revision.previous());
                }
                continue;
            }
            let nth = known.unwrap_or_else(|| {
                // Whatever bore the name before is gone.
                self.end_open(start, at);
                self.begin(key, version.uid, version.revision, version.change == Change::Created)
            });
            let shown = match version.change {
                Change::Left => version.revision,
                _ => timeline.id_present_through(VersionId((first + at) as u32)),
            };
            let life = &mut self.lives[nth];
            life.through = life.through.max(if version.change == Change::Left { shown.previous() } else { shown });
        }
    }

    /// The lives of the present key, which begin at `start`, are over by its version `at`.
    fn end_open(&mut self, start: usize, at: usize) {
        for life in self.lives[start..].iter_mut().rev().take_while(|life| life.death == Death::Open) {
            life.death = Death::Before(at as u32);
        }
    }

    fn of_removals(&mut self, timeline: &Timeline, key: KeyId, start: usize) {
        for (at, removal) in timeline.removals(key).iter().enumerate().filter(|(_, removal)| removal.uid.is_some()) {
            let nth =
                self.known(start, removal.uid).unwrap_or_else(|| self.begin(key, removal.uid, Revision::NONE, false));
            if !matches!(self.lives[nth].death, Death::At(_) | Death::Removed(_)) {
                self.lives[nth].death = Death::Removed(at as u32);
            }
        }
    }

    /// The life with a uid among those of the present key, which begin at `start`.
    fn known(&self, start: usize, uid: Symbol) -> Option<usize> {
        let at = *self.by_uid.get(&uid)? as usize;
        if at >= start {
            return Some(at);
        }
        // Another name bears it too.
        (start..self.lives.len()).find(|&at| self.lives[at].uid == uid)
    }

    fn begin(&mut self, key: KeyId, uid: Symbol, from: Revision, is_born: bool) -> usize {
        let at = self.lives.len() as u32;
        match self.by_uid.entry(uid) {
            Entry::Occupied(_) => self.twice.push(uid),
            Entry::Vacant(free) => {
                free.insert(at);
            }
        }
        self.lives.push(Lifetime { key, uid, from, is_born, through: from, death: Death::Open });
        self.lives.len() - 1
    }

    /// All of them, by key, then first version.
    pub fn all(&self) -> &[Lifetime] {
        &self.lives
    }

    /// The life with a uid; `None` too where two names bear it.
    pub fn of(&self, uid: Symbol) -> Option<&Lifetime> {
        let at = *self.by_uid.get(&uid)?;
        self.twice.binary_search(&uid).is_err().then(|| &self.lives[at as usize])
    }

    /// Uids that two names bear, as no server gives them.
    pub fn twice(&self) -> &[Symbol] {
        &self.twice
    }

    /// The lives of a key, by first version.
    pub fn of_key(&self, key: KeyId) -> &[Lifetime] {
        let from = self.lives.partition_point(|life| life.key < key);
        let to = self.lives.partition_point(|life| life.key <= key);
        &self.lives[from..to]
    }
}

impl Lifetime {
    /// The version that ended it, or the first one after it.
    pub fn last(&self, timeline: &Timeline) -> Option<Version> {
        match self.death {
            Death::At(at) | Death::Before(at) => timeline.versions(self.key).get(at as usize),
            Death::Open | Death::Removed(_) => None,
        }
    }

    /// The removal that ended it, where its revision is not known.
    pub fn removal(&self, timeline: &Timeline) -> Option<Removal> {
        match self.death {
            Death::Removed(at) => timeline.removals(self.key).get(at as usize).copied(),
            _ => None,
        }
    }

    /// A revision at which it was certainly over.
    pub fn over(&self, timeline: &Timeline) -> Option<Revision> {
        let over = self.last(timeline).map(|v| v.revision).or_else(|| self.removal(timeline).and_then(|r| r.before))?;
        // What shows it later contradicts its end.
        (over > self.through).then_some(over)
    }

    /// Whether it was there at a revision; `None` where that is open.
    pub fn lives_at(&self, timeline: &Timeline, revision: Revision) -> Option<bool> {
        if self.from.is_some() && self.from <= revision && revision <= self.through {
            return self.over(timeline).is_none_or(|over| over > revision).then_some(true);
        }
        if self.over(timeline).is_some_and(|over| over <= revision) {
            return Some(false);
        }
        match self.death {
            // A deletion has a revision, and a life no gaps.
            Death::At(_) if self.from.is_some() && self.from <= revision => {
                self.last(timeline).map(|end| revision < end.revision)
            }
            Death::Removed(_) if self.from.is_some() && self.from <= revision => {
                self.removal(timeline).filter(|removal| removal.after >= revision).map(|_| true)
            }
            _ => None,
        }
    }
}
