//! Lifetimes of objects: for every uid, the revisions at which the object certainly existed, and the evidence for its end. Input:
//! the versions and removals of each key. A uid is never reused, so a lifetime is presumed to have no gaps.

use super::timeline::{Removal, Timeline};
use super::version::{Change, Provenance, Version, VersionId};
use crate::history::{History, KeyId, Revision, Symbol};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The lifetime of one uid under one name.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// The name of the object.
    pub key: KeyId,
    /// Its uid.
    pub uid: Symbol,
    /// Its first known version; zero if only its end is known.
    pub from: Revision,
    /// Whether that version is its creation.
    pub is_born: bool,
    /// The last revision at which it certainly existed.
    pub through: Revision,
    /// Its end, as far as it is known.
    pub death: Death,
}

/// The evidence for the end of a lifetime. Indices are into the versions of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// No evidence.
    Open,
    /// Deleted at this version.
    At(u32),
    /// Ended by a removal of unknown revision.
    Removed,
    /// Ended before this version: the first of another uid, or a deletion without a known uid.
    Before(u32),
}

/// All lifetimes of a history.
#[derive(Debug, Default)]
pub struct Lifetimes {
    /// By key, then first version.
    lives: Vec<Lifetime>,
    by_uid: FxHashMap<Symbol, u32>,
    /// Uids under two names. [`Lifetimes::of`] returns `None` for them.
    twice: Vec<Symbol>,
}

impl Lifetimes {
    /// Collects the lifetimes of every key.
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
                // A tombstone without the value before it. The deleting request may name the uid.
                if version.writer.is_some() {
                    version.uid = history.operation(version.writer).answer_uid;
                }
                if !version.uid.is_some() {
                    // The uid is unknown, but afterwards the name is free.
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
                // A lifetime has no gaps, so the object existed until its end.
                if life.from.is_some() && timeline.is_dated(&version) {
                    life.through = life.through.max(version.revision.previous());
                }
                continue;
            }
            let nth = known.unwrap_or_else(|| {
                // Every earlier object with the name is gone.
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

    /// The open lifetimes of the current key, which begin at `start`, ended before its version `at`.
    fn end_open(&mut self, start: usize, at: usize) {
        for life in self.lives[start..].iter_mut().rev().take_while(|life| life.death == Death::Open) {
            life.death = Death::Before(at as u32);
        }
    }

    fn of_removals(&mut self, timeline: &Timeline, key: KeyId, start: usize) {
        for removal in timeline.removals(key).iter().filter(|removal| removal.uid.is_some()) {
            let nth =
                self.known(start, removal.uid).unwrap_or_else(|| self.begin(key, removal.uid, Revision::NONE, false));
            if !matches!(self.lives[nth].death, Death::At(_)) {
                self.lives[nth].death = Death::Removed;
            }
        }
    }

    /// The lifetime of a uid among those of the current key, which begin at `start`.
    fn known(&self, start: usize, uid: Symbol) -> Option<usize> {
        let at = *self.by_uid.get(&uid)? as usize;
        if at >= start {
            return Some(at);
        }
        // Another name has this uid too.
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

    /// All lifetimes, by key, then first version.
    pub fn all(&self) -> &[Lifetime] {
        &self.lives
    }

    /// The lifetime of a uid; `None` if unknown or if two names have it.
    pub fn of(&self, uid: Symbol) -> Option<&Lifetime> {
        let at = *self.by_uid.get(&uid)?;
        self.twice.binary_search(&uid).is_err().then(|| &self.lives[at as usize])
    }

    /// Uids under two names; no server assigns a uid twice.
    pub fn twice(&self) -> &[Symbol] {
        &self.twice
    }

    /// The lifetimes of a key, by first version.
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
            Death::Open | Death::Removed => None,
        }
    }

    /// The removal of unknown revision that ended it.
    pub fn removal(&self, timeline: &Timeline) -> Option<Removal> {
        self.removals(timeline).first().copied()
    }

    /// All records of that removal: one uid is removed once.
    pub fn removals<'t>(&self, timeline: &'t Timeline) -> &'t [Removal] {
        match self.death {
            Death::Removed => timeline.removals_of(self.key, self.uid),
            _ => &[],
        }
    }

    /// A revision at which it had certainly ended; `None` if later evidence contradicts its end.
    pub fn over(&self, timeline: &Timeline) -> Option<Revision> {
        let over = self.last(timeline).map(|v| v.revision).or_else(|| self.removal(timeline).and_then(|r| r.before))?;
        // Evidence that shows it later contradicts its end.
        (over > self.through).then_some(over)
    }

    /// Whether the object existed at a revision; `None` if unknown.
    pub fn lives_at(&self, timeline: &Timeline, revision: Revision) -> Option<bool> {
        if self.from.is_some() && self.from <= revision && revision <= self.through {
            return self.over(timeline).is_none_or(|over| over > revision).then_some(true);
        }
        if self.over(timeline).is_some_and(|over| over <= revision) {
            return Some(false);
        }
        match self.death {
            // The deletion has a known version, and a lifetime has no gaps.
            Death::At(_) if self.from.is_some() && self.from <= revision => {
                self.last(timeline).map(|end| revision < end.revision)
            }
            Death::Removed if self.from.is_some() && self.from <= revision => {
                self.removal(timeline).filter(|removal| removal.after >= revision).map(|_| true)
            }
            _ => None,
        }
    }
}
