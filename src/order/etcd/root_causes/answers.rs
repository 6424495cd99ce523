//! Traces of contradictions of the timeline, of wrong answers, and of the consequences of regressions.

use super::watches::Delivery;
use super::{Common, Joining};
use crate::history::Symbol;
use crate::history::etcd::{Interval, Operation, Recording, Request, Step};
use crate::order::etcd::answers::Mismatch;
use crate::order::etcd::effects::Effects;
use crate::order::etcd::regression::{Regression, Regressions};
use crate::order::etcd::store::covers;
use crate::order::etcd::streams::WatchViolation;
use crate::order::etcd::timeline::{Contradiction, Timeline, Witness};
use rustc_hash::FxHashMap;

impl Joining<'_> {
    pub(super) fn contradictions(&mut self, regressions: &Regressions) -> Vec<u32> {
        let mut event_before: Option<(u32, u32)> = None;
        let timeline = self.timeline;
        let mut found = Vec::new();
        for (contradiction, regression) in timeline.contradictions.iter().zip(&regressions.of_contradiction) {
            let (key, revision, by) = match *contradiction {
                Contradiction::TwoWrites(..) => {
                    found.extend(*regression);
                    continue;
                }
                Contradiction::LogDiffers { revision, .. } => {
                    found.push(self.trace(Some((revision, revision))));
                    continue;
                }
                Contradiction::OtherKey { revision, key, shown_by } => (key, revision, shown_by),
                Contradiction::TwoContents { known, shown_by, .. } => {
                    let version = &timeline.versions[known as usize];
                    (version.change.key, version.revision, shown_by)
                }
            };
            let at = self.trace(Some((revision, revision)));
            self.share(at, Common::Version(key, revision));
            if let Some(regression) = regression {
                self.join(*regression, at);
            }
            match by {
                Witness::Pair(operation, _) => self.share(at, Common::Answer(operation)),
                // Consecutive differing events of one watch have one cause: the watch follows another history.
                Witness::Event(_, _, event) => {
                    if let Some((before, trace)) = event_before
                        && before + 1 == event
                    {
                        self.join(trace, at);
                    }
                    event_before = Some((event, at));
                }
                _ => {}
            }
            found.push(at);
        }
        found
    }

    pub(super) fn mismatches(&mut self, mismatches: &[Mismatch]) -> Vec<u32> {
        let mut found = Vec::with_capacity(mismatches.len());
        for mismatch in mismatches {
            let about = About::of(self.recording, self.timeline, mismatch);
            let at = self.trace(about.revision.map(|revision| (revision, revision)));
            if let (Some(key), Some(revision)) = (about.key, about.revision) {
                self.share(at, Common::Version(key, revision));
            }
            match self.seen.lost(self.timeline, mismatch) {
                // A list may lack several lost writes; each is a cause of its own.
                Some((_, version)) => {
                    let known = &self.timeline.versions[version as usize];
                    self.lost.entry(known.change.key).or_default().push((known.revision, at));
                }
                None => self.share(at, Common::Answer(about.operation)),
            }
            found.push(at);
        }
        self.lost.values_mut().for_each(|versions| versions.sort_unstable());
        for (mismatch, at) in mismatches.iter().zip(&found) {
            self.after_loss(mismatch, *at);
        }
        found
    }

    /// Joins counts that are wrong because a write was lost.
    pub(super) fn after_loss(&mut self, mismatch: &Mismatch, at: u32) {
        match *mismatch {
            Mismatch::Miscounted { version, .. } => {
                let known = &self.timeline.versions[version as usize];
                self.join_lost(known.change.key, known.revision, at);
            }
            Mismatch::WrongCount { operation, at: number, .. } if self.may_compare(self.lost.len()) => {
                let ranges = ranges(self.recording, &self.recording.operations[operation as usize]);
                let inside = |key: &Symbol| ranges.iter().any(|keys| covers(self.recording, *keys, *key));
                let stands = |key: Symbol, revision: i64| {
                    self.timeline.at(key, number).is_some_and(|version| version.revision == revision)
                };
                let lost = self.lost.iter().filter(|(key, _)| inside(key)).flat_map(|(key, versions)| {
                    versions.iter().filter(|(revision, _)| stands(*key, *revision)).map(|(_, trace)| *trace)
                });
                if let Some(trace) = lost.min() {
                    self.join(trace, at);
                }
            }
            _ => {}
        }
    }

    /// Joins a trace with the loss of a version of its key at or before a revision, if the key was not deleted in between.
    pub(super) fn join_lost(&mut self, key: Symbol, revision: i64, at: u32) {
        let Some(versions) = self.lost.get(&key) else { return };
        let below = versions.partition_point(|(lost, _)| *lost <= revision);
        let Some(&(lost, trace)) = versions[..below].last() else { return };
        if !self.ends_between(key, lost, revision) {
            self.join(trace, at);
        }
    }

    /// Joins contradictions about the revisions of a regression that moved writes. The timeline continues with the later
    /// evidence, so earlier evidence contradicts it too.
    pub(super) fn absorb(&mut self, regressions: &Regressions) {
        let moved = |at: &u32| regressions.all.get(*at as usize).is_some_and(|regression| regression.wrote);
        for at in (0..self.revisions.len() as u32).filter(|at| !moved(at)) {
            let Some((low, high)) = self.revisions[at as usize] else { continue };
            if let Some((number, _)) = regressions.below(high).find(|(_, regression)| regression.reaches(low)) {
                self.join(number, at);
            }
        }
    }

    /// Joins contradictions that follow because the timeline keeps a version of the abandoned history, or lacks one.
    pub(super) fn after_regressions(
        &mut self,
        effects: &Effects,
        regressions: &Regressions,
        (mismatches, of_mismatches): (&[Mismatch], &[u32]),
        (flaws, of_flaws): (&[(u32, WatchViolation)], &[u32]),
        deliveries: &FxHashMap<u32, Delivery>,
    ) {
        let wrote = (0..).zip(&regressions.all).filter(|(_, regression)| regression.wrote);
        // Keys with the revisions at which they are in doubt.
        let mut doubts: FxHashMap<Symbol, Vec<(i64, u32)>> = FxHashMap::default();
        for (number, regression) in wrote {
            for revision in self.timeline.range(regression.after, regression.through) {
                for version in self.timeline.versions_of(revision) {
                    doubts.entry(version.change.key).or_default().push((version.revision, number));
                }
            }
        }
        for contradiction in &self.timeline.contradictions {
            let (revision, keys) = match *contradiction {
                Contradiction::OtherKey { revision, key, .. } => (revision, vec![key]),
                Contradiction::TwoWrites(lost, kept) => {
                    let keys = effects.changes(lost).iter().map(|change| change.key).collect();
                    (self.recording.operations[kept as usize].revision, keys)
                }
                _ => continue,
            };
            if let Some(number) = regressions.moved(revision) {
                keys.into_iter().for_each(|key| doubts.entry(key).or_default().push((revision, number)));
            }
        }
        if doubts.is_empty() {
            return;
        }
        doubts.values_mut().for_each(|versions| versions.sort_unstable());
        let doubted = |key: Symbol, revision: i64| -> Option<u32> {
            let versions = doubts.get(&key)?;
            let below = versions.partition_point(|(doubt, _)| *doubt <= revision);
            let &(doubt, number) = versions[..below].last()?;
            (!self.ends_between(key, doubt, revision)).then_some(number)
        };
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (mismatch, at) in mismatches.iter().zip(of_mismatches) {
            let number = match *mismatch {
                Mismatch::WrongCount { .. } if !self.may_compare(doubts.len()) => None,
                Mismatch::WrongCount { operation, at: number, .. } => {
                    let ranges = ranges(self.recording, &self.recording.operations[operation as usize]);
                    let inside = |key: &&Symbol| ranges.iter().any(|keys| covers(self.recording, *keys, **key));
                    doubts.keys().filter(inside).filter_map(|key| doubted(*key, number)).min()
                }
                _ => {
                    let about = About::of(self.recording, self.timeline, mismatch);
                    about.key.and_then(|key| doubted(key, about.revision.unwrap_or(i64::MAX)))
                }
            };
            joined.extend(number.map(|number| (number, *at)));
        }
        for ((_, flaw), at) in flaws.iter().zip(of_flaws) {
            if let WatchViolation::Foreseen { told, operation } = *flaw {
                let operation = &self.recording.operations[operation as usize];
                let time = self.time_of(told, deliveries);
                let moved = |(_, regression): &(u32, &Regression)| {
                    operation.call >= regression.from && time <= regression.until
                };
                let number = regressions.below(operation.revision).filter(moved).map(|(number, _)| number).min();
                joined.extend(number.map(|number| (number, *at)));
            }
            if let WatchViolation::Create { event, .. } | WatchViolation::Previous { event, .. } = *flaw {
                let event = &self.recording.events[event as usize];
                joined.extend(doubted(event.key, event.revision - 1).map(|number| (number, *at)));
            }
        }
        joined.into_iter().for_each(|(number, at)| self.join(number, at));
    }

    /// Whether a key was deleted above `after` and through `through`.
    pub(super) fn ends_between(&self, key: Symbol, after: i64, through: i64) -> bool {
        let versions = self.timeline.versions_of_key(key);
        let from = versions.partition_point(|at| self.timeline.versions[*at as usize].revision <= after);
        let versions = versions[from..].iter().map(|at| &self.timeline.versions[*at as usize]);
        versions.take_while(|version| version.revision <= through).any(|version| version.change.value.is_none())
    }
}

/// The key and revision that a wrong answer is about.
struct About {
    operation: u32,
    key: Option<Symbol>,
    revision: Option<i64>,
}

impl About {
    fn of(recording: &Recording, timeline: &Timeline, mismatch: &Mismatch) -> About {
        let version = |operation: u32, at: u32| {
            let known = &timeline.versions[at as usize];
            About { operation, key: Some(known.change.key), revision: Some(known.revision) }
        };
        let pair = |operation: u32, at: u32| {
            let pair = &recording.pairs[at as usize];
            About { operation, key: Some(pair.key), revision: Some(pair.revision) }
        };
        match *mismatch {
            Mismatch::Outdated { operation, version: at, .. }
            | Mismatch::Missing { operation, version: at, .. }
            | Mismatch::Miscounted { operation, version: at, .. } => version(operation, at),
            Mismatch::Unborn { operation, pair: at, .. }
            | Mismatch::NotAsked { operation, pair: at }
            | Mismatch::OwnChange { operation, pair: at } => pair(operation, at),
            Mismatch::WrongBranch { operation, condition, version: at, .. } => {
                let condition = &recording.requests.conditions[condition as usize];
                match at {
                    Some(at) => version(operation, at),
                    None => About { operation, key: Some(condition.keys.key), revision: Some(condition.number) },
                }
            }
            Mismatch::WrongDelete { operation, key, version: at, at: number } => match at {
                Some(at) => version(operation, at),
                None => About { operation, key: Some(key), revision: Some(number) },
            },
            Mismatch::WrongCount { operation, at, .. } | Mismatch::WrongDeletes { operation, at, .. } => {
                About { operation, key: None, revision: Some(at) }
            }
            Mismatch::Contested { operation, key, stay, .. } => {
                About { operation, key: Some(key), revision: Some(stay.from) }
            }
            Mismatch::Recounted { operation, pair: at, .. } => pair(operation, at),
            Mismatch::Baseless { operation }
            | Mismatch::Unreached { operation }
            | Mismatch::Mistaken { operation }
            | Mismatch::Misshapen { operation }
            | Mismatch::Incoherent { operation, .. }
            | Mismatch::Torn { operation, .. }
            | Mismatch::Founding { operation } => About { operation, key: None, revision: None },
        }
    }
}

/// The key intervals that an operation reads.
fn ranges(recording: &Recording, operation: &Operation) -> Vec<Interval> {
    match operation.request {
        Request::Range(range) => vec![range.keys],
        Request::Txn(txn) => txn
            .taken(!operation.failure)
            .of(&recording.requests.steps)
            .iter()
            .filter_map(|step| match step {
                Step::Range(range) => Some(range.keys),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
