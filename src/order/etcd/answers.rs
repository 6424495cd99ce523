//! Comparison of answers with the revision order. Each read and each transaction is compared with the state at its revision.
//! Answers are visited in order of revision, so that `KeyCounts` counts keys in one sweep. An unknown revision leaves a
//! comparison open.

mod steps;

use super::coherence::Incoherence;
use super::conditions::{hold_all, holds};
use super::effects::{Class, Effects};
use super::key_counts::KeyCounts;
use super::presence::{Presence, Stay, Teller};
use super::store::{FIRST_CHANGE, covers};
use super::timeline::{Revision, State, Timeline, Version};
use crate::history::Symbol;
use crate::history::etcd::{
    Condition, Interval, Operation, Pair, Range, Recording, Relation, Request, Span, Step, Target, Txn,
};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use steps::{Own, own};

/// An answer that the revision order excludes. Operations, pairs and results are indices into the recording's tables; versions
/// are indices into the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// A key was found in a state before a version that the answer had to show: with another value, or although it was deleted.
    Outdated {
        /// The operation.
        operation: u32,
        /// The pair that it found.
        pair: u32,
        /// The version that it had to show.
        version: u32,
        /// The revision of the state that it shows.
        at: i64,
    },
    /// A key was not found although it existed.
    Missing {
        /// The operation.
        operation: u32,
        /// The version that existed.
        version: u32,
        /// The revision of the state that it shows.
        at: i64,
    },
    /// A key was found that did not exist, or at a revision above that of the answer.
    Unborn {
        /// The operation.
        operation: u32,
        /// The pair that it found.
        pair: u32,
        /// The revision of the state that it shows.
        at: i64,
    },
    /// A key was found with a wrong version counter.
    Miscounted {
        /// The operation.
        operation: u32,
        /// The pair that it found.
        pair: u32,
        /// The version in the timeline.
        version: u32,
    },
    /// A key was found twice, or outside the requested interval.
    NotAsked {
        /// The operation.
        operation: u32,
        /// The pair that it found.
        pair: u32,
    },
    /// The count of keys is wrong although every found key is right.
    WrongCount {
        /// The operation.
        operation: u32,
        /// The count in the answer.
        count: i64,
        /// The true count.
        expected: i64,
        /// The revision of the state that it shows.
        at: i64,
    },
    /// A transaction took the branch that its conditions exclude.
    WrongBranch {
        /// The operation.
        operation: u32,
        /// The condition that decides the branch.
        condition: u32,
        /// The version of its key; `None` if the key never changed.
        version: Option<u32>,
        /// The revision before the transaction.
        at: i64,
    },
    /// A delete removed an absent key, or removed nothing although the key existed.
    WrongDelete {
        /// The operation.
        operation: u32,
        /// The key.
        key: Symbol,
        /// The version of the key; `None` if the key never changed.
        version: Option<u32>,
        /// The revision before the transaction.
        at: i64,
    },
    /// A step of a transaction found a key without the change that an earlier step had made.
    OwnChange {
        /// The operation.
        operation: u32,
        /// The pair that it found.
        pair: u32,
    },
    /// A delete of an interval removed more or fewer keys than existed.
    WrongDeletes {
        /// The operation.
        operation: u32,
        /// The number of keys in the answer.
        deleted: i64,
        /// The number of keys that existed: at least so many, or at most.
        expected: i64,
        /// The revision before the transaction.
        at: i64,
    },
    /// A transaction without conditions took the failure branch.
    Baseless {
        /// The operation.
        operation: u32,
    },
    /// A step has a result of the wrong kind: a put that found keys, a read that removed some, or more keys than requested.
    Mistaken {
        /// The operation.
        operation: u32,
    },
    /// The answer has more or fewer results than the request has steps.
    Misshapen {
        /// The operation.
        operation: u32,
    },
    /// The results of a transaction contradict its outcome for a condition.
    Torn {
        /// The operation.
        operation: u32,
        /// The condition, an index into the recording's table.
        condition: u32,
    },
    /// A write was acknowledged at the revision of an empty store.
    Founding {
        /// The operation.
        operation: u32,
    },
    /// A read has results that contradict each other.
    Incoherent {
        /// The operation.
        operation: u32,
        /// The contradiction.
        how: Incoherence,
        /// Whether it holds whatever is not recorded of the request.
        sure: bool,
    },
    /// An answer contradicts other evidence of the same state: a key is absent, was changed at another revision, or a condition
    /// on it was decided differently.
    Contested {
        /// The operation.
        operation: u32,
        /// The key.
        key: Symbol,
        /// The revision of the state.
        at: i64,
        /// The other evidence.
        stay: Stay,
    },
    /// Two answers disagree on how often a key had changed by one revision.
    Recounted {
        /// The operation.
        operation: u32,
        /// The pair that it found.
        pair: u32,
        /// The other operation.
        other: u32,
        /// The pair that the other operation found.
        before: u32,
    },
    /// A read at a revision was answered by a store that had not reached it.
    Unreached {
        /// The operation.
        operation: u32,
    },
}

/// The result of the comparison.
#[derive(Debug, Default)]
pub struct Answers {
    /// The answers that contradict the revision order.
    pub mismatches: Vec<Mismatch>,
    /// The number of compared answers with content.
    pub compared: u64,
    /// The number of comparisons that unknown revisions leave open.
    pub open: u64,
}

/// A state, and the part of an answer that is compared with it.
#[derive(Clone, Copy)]
struct Comparand {
    at: i64,
    operation: u32,
    what: Part,
}

/// The part of an answer that shows something about a state.
#[derive(Clone, Copy)]
enum Part {
    /// The branch of a transaction, and the keys that its deletes removed.
    Branch,
    /// The result of a read.
    Read {
        /// Index of the result.
        result: u32,
        /// The number of steps before it in its transaction.
        steps: u32,
    },
}

/// The range of a read, or of a read step in a transaction.
pub(super) fn asked(recording: &Recording, operation: &Operation, step: u32) -> Option<Range> {
    match operation.request {
        Request::Range(range) => Some(range),
        Request::Txn(txn) => {
            let steps = txn.taken(!operation.failure).of(&recording.requests.steps);
            match steps.get(step as usize) {
                Some(Step::Range(range)) => Some(*range),
                _ => None,
            }
        }
        _ => None,
    }
}

impl Answers {
    /// Compares all answers with the revision order.
    pub fn compare(recording: &Recording, effects: &Effects, timeline: &Timeline) -> Answers {
        let mut comparison = Comparison {
            recording,
            effects,
            timeline,
            decided: Vec::new(),
            found: Vec::new(),
            now: (0, 0),
            presence: OnceCell::new(),
            counts: FxHashMap::default(),
            compared: 0,
            open: 0,
        };
        let mut counts = KeyCounts::new(recording, timeline);
        let mut comparands = Vec::new();
        let mut start = 0;
        // The answers of one client are nearly in order already, so they are sorted per client. Another sweep costs less than a
        // full sort.
        for group in recording.operations.chunk_by(|a, b| a.client == b.client) {
            for (at, operation) in (start..).zip(group) {
                comparison.answer(at, operation, &mut comparands);
            }
            start += group.len() as u32;
            if comparands.len() < counts.cost() / 8 && (start as usize) < recording.operations.len() {
                continue;
            }
            comparands.sort_by_key(|one: &Comparand| one.at);
            counts.restart();
            comparands.drain(..).for_each(|one| comparison.compare(&mut counts, one));
        }
        comparison.answers()
    }
}

/// The comparison with its results so far.
struct Comparison<'a> {
    recording: &'a Recording,
    effects: &'a Effects,
    timeline: &'a Timeline,
    /// Mismatches of requests, each with its operation.
    decided: Vec<(u32, Mismatch)>,
    /// Mismatches of reads, each with its state and operation.
    found: Vec<(i64, u32, Mismatch)>,
    /// The state and operation of the current comparison.
    now: (i64, u32),
    /// Evidence about states that the timeline does not know, built when first needed.
    presence: OnceCell<Presence>,
    /// By version without a known counter: the counter in an answer, its operation and its pair.
    counts: FxHashMap<u32, (i64, u32, u32)>,
    compared: u64,
    open: u64,
}

impl Comparison<'_> {
    /// All mismatches: first those that need no state, then requests by operation, then reads by state.
    fn answers(mut self) -> Answers {
        let mistaken = self.effects.mistaken.iter().map(|at| Mismatch::Mistaken { operation: *at });
        let misshapen = self.effects.misshapen.iter().map(|at| Mismatch::Misshapen { operation: *at });
        let incoherent = self.effects.incoherent.iter();
        let incoherent = incoherent.map(|(operation, how, sure)| Mismatch::Incoherent {
            operation: *operation,
            how: *how,
            sure: *sure,
        });
        let torn = self.effects.contradicted.iter();
        let torn = torn.map(|(operation, condition)| Mismatch::Torn { operation: *operation, condition: *condition });
        self.decided.sort_by_key(|(operation, _)| *operation);
        self.found.sort_by_key(|(at, operation, _)| (*at, *operation));
        let decided = self.decided.into_iter().map(|(_, mismatch)| mismatch);
        let found = self.found.into_iter().map(|(.., mismatch)| mismatch);
        let mismatches = mistaken.chain(misshapen).chain(incoherent).chain(torn).chain(decided).chain(found).collect();
        Answers { mismatches, compared: self.compared, open: self.open }
    }

    /// Evidence about states that the timeline does not know.
    fn presence(&self) -> &Presence {
        self.presence.get_or_init(|| Presence::of(self.recording, self.effects, self.timeline))
    }

    fn mismatch(&mut self, mismatch: Mismatch) {
        self.found.push((self.now.0, self.now.1, mismatch));
    }

    /// Splits an answer into comparisons, each about one state.
    fn answer(&mut self, at: u32, operation: &Operation, comparands: &mut Vec<Comparand>) {
        if operation.revision == 0 || self.timeline.may_be_lost(operation.revision, operation.returned) {
            return;
        }
        match operation.request {
            Request::Range(range) => {
                let asked = if range.revision > 0 { range.revision } else { operation.revision };
                if asked > operation.revision {
                    self.decided.push((at, Mismatch::Unreached { operation: at }));
                    return;
                }
                let what = Part::Read { result: operation.results.start, steps: 0 };
                comparands.push(Comparand { at: asked, operation: at, what });
            }
            Request::Txn(txn) => self.txn(at, operation, txn, comparands),
            _ => {}
        }
    }

    fn txn(&mut self, at: u32, operation: &Operation, txn: Txn, comparands: &mut Vec<Comparand>) {
        let before = match self.effects.class(at) {
            Class::Same => operation.revision,
            _ if self.effects.wrote(self.recording, at) => operation.revision - 1,
            _ => return,
        };
        if before == 0 {
            self.decided.push((at, Mismatch::Founding { operation: at }));
        }
        comparands.push(Comparand { at: before, operation: at, what: Part::Branch });
        let steps = txn.taken(!operation.failure).of(&self.recording.requests.steps);
        for (n, step) in (0..operation.results.len).zip(steps) {
            let Step::Range(range) = step else { continue };
            let asked = if range.revision > 0 { range.revision } else { before };
            if asked > before {
                self.decided.push((at, Mismatch::Unreached { operation: at }));
                continue;
            }
            let what = Part::Read { result: operation.results.start + n, steps: n };
            comparands.push(Comparand { at: asked, operation: at, what });
        }
    }

    fn compare(&mut self, counts: &mut KeyCounts<'_>, one: Comparand) {
        counts.advance(one.at);
        self.now = (one.at, one.operation);
        let operation = &self.recording.operations[one.operation as usize];
        match (one.what, operation.request) {
            (Part::Read { result, steps }, _) => self.read(counts, operation, result, steps),
            (Part::Branch, Request::Txn(txn)) => {
                self.branch(counts, operation, txn);
                self.deletes(counts, operation, txn);
            }
            (Part::Branch, _) => {}
        }
    }

    fn branch(&mut self, counts: &KeyCounts<'_>, operation: &Operation, txn: Txn) {
        let Comparison { recording, timeline, now: (before, at), .. } = *self;
        if txn.conditions.len == 0 {
            if operation.failure {
                self.decided.push((at, Mismatch::Baseless { operation: at }));
            }
            return;
        }
        self.compared += 1;
        let mut decided = Some(true);
        let mut shown = None;
        // Evidence that decides the branch where the timeline does not.
        let mut by = None;
        for n in txn.conditions.start..txn.conditions.start + txn.conditions.len {
            let condition = &recording.requests.conditions[n as usize];
            let (holds, version) = match condition.keys.end.is_some() {
                true => (hold_all(recording, timeline, condition, before), None),
                false => holds(recording, timeline, condition, counts.state(condition.keys.key, before)),
            };
            let stay = match holds {
                None if excluded(timeline, condition, version, before) => Some((false, None)),
                None => self.presence().decides(condition, before).map(|(holds, stay)| (holds, Some(stay))),
                Some(_) => None,
            };
            match stay.map(|(holds, _)| holds).or(holds) {
                Some(false) => {
                    decided = Some(false);
                    shown = Some((n, version));
                    by = stay.and_then(|(_, stay)| stay);
                    break;
                }
                Some(true) => {
                    shown = shown.or(Some((n, version)));
                    by = by.or(stay.and_then(|(_, stay)| stay));
                }
                None => decided = None,
            }
        }
        match (decided, shown) {
            (Some(success), Some((condition, _))) if success == operation.failure && by.is_some() => {
                let key = recording.requests.conditions[condition as usize].keys.key;
                let contested = by.map(|stay| Mismatch::Contested { operation: at, key, at: before, stay });
                self.decided.extend(contested.map(|contested| (at, contested)));
            }
            (Some(success), Some((condition, version))) if success == operation.failure => {
                let version = version.map(|version| timeline.index(version));
                self.decided.push((at, Mismatch::WrongBranch { operation: at, condition, version, at: before }));
            }
            (None, _) => self.open += 1,
            _ => {}
        }
    }

    /// Compares the result of a read.
    fn read(&mut self, counts: &mut KeyCounts<'_>, told: &Operation, result: u32, steps: u32) {
        let Comparison { recording, effects, timeline, now: (at, operation), .. } = *self;
        let Some(result) = recording.results.get(result as usize) else { return };
        let Some(range) = asked(recording, told, steps) else { return };
        self.compared += 1;
        let before = self.found.len();
        let Some(own) = own(recording, effects, counts, operation, steps) else {
            self.open += 1;
            return;
        };
        let single = !range.keys.end.is_some();
        let places = if single { 0..0 } else { counts.inside(range.keys) };
        let mut last = None;
        for p in result.pairs.start..result.pairs.start + result.pairs.len {
            let pair = &recording.pairs[p as usize];
            let place = counts.place(pair.key);
            let covered = if single { pair.key == range.keys.key } else { places.contains(&place) };
            if !covered || last.is_some_and(|last| place <= last) {
                // A list need not be in order of keys.
                let twice = (result.pairs.start..p).any(|other| recording.pairs[other as usize].key == pair.key);
                if twice || !covered {
                    self.mismatch(Mismatch::NotAsked { operation, pair: p });
                    continue;
                }
            }
            last = last.max(Some(place));
            if let Some(change) = own.get(&pair.key) {
                let number = told.revision;
                let same = |value| range.keys_only || recording.values.same(value, pair.value) != Some(false);
                let shown = |value| same(value) && pair.revision == number;
                if !change.value.is_some_and(shown) {
                    self.mismatch(Mismatch::OwnChange { operation, pair: p });
                } else if let Some(version) = timeline.at(pair.key, number).filter(|known| known.change == *change) {
                    self.counted(operation, p, pair.version, (timeline.index(version), version));
                }
                continue;
            }
            self.pair(counts, operation, p, at);
        }
        let limit = if range.limit > 0 { u32::try_from(range.limit).unwrap_or(u32::MAX) } else { u32::MAX };
        // The recording has no limits for reads in transactions, so keys after the last found one may have been cut off.
        let of_txn = matches!(told.request, Request::Txn(_));
        let cut = result.pairs.len >= limit || (of_txn && !single);
        let through = if cut { last } else { Some(usize::MAX) };
        if range.count_only {
        } else if single {
            // For a read step of a transaction, the recording does not show whether only the count was requested.
            if result.pairs.len == 0 && result.count == 0 {
                self.absent(counts, operation, range.keys.key, at, &own);
            }
        } else if let Some(through) = through.filter(|_| self.found.len() == before) {
            self.members(counts, range.keys, result.pairs, through, &own);
        }
        if self.found.len() == before && timeline.known_between(1, at) {
            let of_own = own.values().filter(|change| covers(recording, range.keys, change.key));
            let moved: i64 = of_own
                .map(|change| {
                    let there = matches!(timeline.state(change.key, at), State::There(_));
                    i64::from(change.value.is_some()) - i64::from(there)
                })
                .sum();
            let there = match single {
                true => i64::from(counts.is_there(range.keys.key)),
                false => counts.count(range.keys, at, usize::MAX),
            };
            let expected = there + moved;
            if expected != result.count {
                self.mismatch(Mismatch::WrongCount { operation, count: result.count, expected, at });
            }
        }
    }

    /// Compares a key that was found.
    fn pair(&mut self, counts: &KeyCounts<'_>, operation: u32, p: u32, at: i64) {
        let Comparison { recording, timeline, .. } = *self;
        let pair = &recording.pairs[p as usize];
        if pair.revision > at || pair.revision < FIRST_CHANGE {
            self.mismatch(Mismatch::Unborn { operation, pair: p, at });
            return;
        }
        let Some((index, version)) = counts.version(pair.key) else {
            // No trusted source shows a version of the key, and the pair itself was not accepted as one.
            if timeline.known_between(1, at) {
                self.mismatch(Mismatch::Unborn { operation, pair: p, at });
            }
            return;
        };
        let gone = version.change.value.is_none() && version.revision == pair.revision;
        if version.revision > pair.revision || gone {
            self.mismatch(Mismatch::Outdated { operation, pair: p, version: index, at });
        } else if version.revision < pair.revision {
            if timeline.known_between(version.revision, at) {
                self.mismatch(Mismatch::Unborn { operation, pair: p, at });
            }
        } else {
            self.counted(operation, p, pair.version, (index, version));
            self.elsewhere(operation, pair, at);
        }
    }

    /// Reports a found key if a transaction's condition shows a later change of it in an unshown revision.
    fn elsewhere(&mut self, operation: u32, pair: &Pair, at: i64) {
        if self.timeline.known_between(pair.revision, at) {
            return;
        }
        let stay = self.presence().there(pair.key, at).filter(|stay| stay.changed > pair.revision);
        if let Some(stay) = stay {
            self.mismatch(Mismatch::Contested { operation, key: pair.key, at, stay });
        }
    }

    /// Compares the version counter of a found key.
    fn counted(&mut self, operation: u32, pair: u32, told: i64, (index, version): (u32, &Version)) {
        if version.miscounts(told) {
            self.mismatch(Mismatch::Miscounted { operation, pair, version: index });
        } else if told > 0 && version.version == 0 {
            let (before, other, found) = *self.counts.entry(index).or_insert((told, operation, pair));
            if before != told {
                self.mismatch(Mismatch::Recounted { operation, pair, other, before: found });
            }
        }
    }

    /// Compares a key that was not found.
    fn absent(&mut self, counts: &KeyCounts<'_>, operation: u32, key: Symbol, at: i64, own: &Own) {
        let timeline = self.timeline;
        if let Some(change) = own.get(&key) {
            // The transaction's own revision has the version.
            let version = timeline.at(key, at + 1).filter(|version| version.change == *change);
            if let Some(version) = version.filter(|_| change.value.is_some()) {
                self.mismatch(Mismatch::Missing { operation, version: timeline.index(version), at });
            }
            return;
        }
        let last = counts.version(key);
        match timeline.state_since(last.map(|(_, version)| version), at) {
            State::There(_) => {
                let version = last.map_or(0, |(index, _)| index);
                self.mismatch(Mismatch::Missing { operation, version, at });
            }
            State::Open(_) => {
                match self.presence().there(key, at).filter(|stay| stay.by != Teller::Operation(operation)) {
                    Some(stay) => self.mismatch(Mismatch::Contested { operation, key, at, stay }),
                    None => self.open += 1,
                }
            }
            State::Absent(_) => {}
        }
    }

    /// Finds keys that a list should have found.
    fn members(&mut self, counts: &mut KeyCounts<'_>, keys: Interval, pairs: Span, through: usize, own: &Own) {
        let Comparison { recording, timeline, now: (at, operation), .. } = *self;
        // If no revision is unknown, the count is enough; only a wrong count needs the missing keys.
        let whole = timeline.known_between(1, at);
        if whole && own.is_empty() && counts.count(keys, at, through) == i64::from(pairs.len) {
            return;
        }
        let found =
            |key: Symbol| (pairs.start..pairs.start + pairs.len).any(|p| recording.pairs[p as usize].key == key);
        let inside = counts.keys_inside(keys, through).to_vec();
        for key in inside.into_iter().filter(|key| !found(*key)) {
            self.absent(counts, operation, key, at, own);
        }
    }
}

/// Whether a condition on one key is certainly false in an unknown state. It is if it names a revision that did not put the key,
/// or a counter above the possible number of changes. `last`: the last known version of the key.
fn excluded(timeline: &Timeline, condition: &Condition, last: Option<&Version>, at: i64) -> bool {
    let number = condition.number;
    if condition.relation != Relation::Equal || condition.keys.end.is_some() {
        return false;
    }
    let no_change = number != 0 && !(FIRST_CHANGE..=at).contains(&number);
    let another = || {
        // A revision that only the members' log shows is no evidence about what clients saw.
        let known = |revision: &&Revision| revision.complete && (revision.writer.is_some() || revision.entry.is_none());
        timeline.revision(number).filter(known).is_some_and(|revision| {
            let put = |version: &Version| version.change.key == condition.keys.key && version.change.value.is_some();
            !timeline.versions_of(revision).iter().any(put)
        })
    };
    match condition.target {
        Target::ModRevision | Target::CreateRevision => no_change || number != 0 && another(),
        Target::Version => {
            let (since, most) = last.map_or((1, 0), |version| (version.revision, version.most));
            number < 0 || number > most + timeline.unknown_between(since, at)
        }
        Target::Value | Target::Lease | Target::Unknown => false,
    }
}
