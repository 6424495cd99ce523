//! Steps of one transaction: its deletes, compared with the state before it, and what its later steps find.

use super::super::effects::{Change, Effects};
use super::super::key_counts::KeyCounts;
use super::super::store::covers;
use super::super::timeline::{State, Version, Witness};
use super::{Comparison, Mismatch};
use crate::history::Symbol;
use crate::history::etcd::{Interval, Operation, Recording, Request, Step, Txn};
use rustc_hash::FxHashMap;

/// Keys in the interval of a delete, at most, that are looked at one by one. With more, an answer is left open unless the first
/// ones contradict it.
const MAX_KEYS_OF_DELETE: usize = 1024;

impl Comparison<'_> {
    /// Compares the deletes of a transaction.
    pub(super) fn deletes(&mut self, counts: &mut KeyCounts<'_>, operation: &Operation, txn: Txn) {
        let steps = txn.taken(!operation.failure).of(&self.recording.requests.steps);
        for (n, (step, result)) in steps.iter().zip(operation.results.of(&self.recording.results)).enumerate() {
            let Step::Delete(keys) = *step else { continue };
            self.compared += 1;
            match keys.end.is_some() {
                true => self.delete_of_interval(counts, keys, &steps[..n], result.deleted),
                false => self.delete(counts, keys.key, &steps[..n], result.deleted),
            }
        }
    }

    /// Compares the delete of one key after the earlier steps of its transaction.
    fn delete(&mut self, counts: &KeyCounts<'_>, key: Symbol, earlier: &[Step], deleted: i64) {
        let Comparison { recording, timeline, now: (before, at), .. } = *self;
        let wrong = |version: Option<&Version>| Mismatch::WrongDelete {
            operation: at,
            key,
            version: version.map(|version| timeline.index(version)),
            at: before,
        };
        if let Some(is_there) = left_by(recording, earlier, key) {
            if is_there != (deleted > 0) {
                self.decided.push((at, wrong(None)));
            }
            return;
        }
        match counts.state(key, before) {
            State::There(version) if deleted == 0 => self.decided.push((at, wrong(Some(version)))),
            State::Absent(version) if deleted > 0 => self.decided.push((at, wrong(version))),
            State::Open(_) => match self.presence().there(key, before).filter(|_| deleted == 0) {
                Some(stay) => self.decided.push((at, Mismatch::Contested { operation: at, key, at: before, stay })),
                None => self.open += 1,
            },
            State::There(_) | State::Absent(_) => {}
        }
    }

    /// Compares the number of keys that the delete of an interval removed.
    fn delete_of_interval(&mut self, counts: &mut KeyCounts<'_>, keys: Interval, earlier: &[Step], deleted: i64) {
        let Comparison { recording, timeline, now: (before, at), .. } = *self;
        // A key that no evidence names can have existed only if a revision is unknown.
        let whole = timeline.known_between(1, before);
        let is_first = !earlier.iter().any(|step| matches!(step, Step::Put { .. } | Step::Delete(_)));
        if whole && is_first && counts.count(keys, before, usize::MAX) == deleted {
            return;
        }
        let inside = counts.keys_inside(keys, usize::MAX);
        let looked_at = inside[..inside.len().min(MAX_KEYS_OF_DELETE)].to_vec();
        let is_all = looked_at.len() == inside.len();
        let is_sure = |version: &Version| match version.shown_by {
            Witness::Log(entry) => timeline.is_sure(recording, entry),
            _ => true,
        };
        let (mut least, mut most, mut shown) = (0, 0, None);
        for key in looked_at {
            let (is_there, may_be) = match (left_by(recording, earlier, key), counts.state(key, before)) {
                (Some(is_there), _) => (is_there, is_there),
                (None, State::There(version)) if is_sure(version) => {
                    shown = shown.or(Some((key, version)));
                    (true, true)
                }
                (None, State::Absent(version)) if version.is_none_or(is_sure) => (false, false),
                (None, _) => (false, true),
            };
            least += i64::from(is_there);
            most += i64::from(may_be);
        }
        match shown.filter(|_| deleted == 0) {
            Some((key, version)) => {
                let version = Some(timeline.index(version));
                self.decided.push((at, Mismatch::WrongDelete { operation: at, key, version, at: before }));
            }
            None if deleted < least || whole && is_all && deleted > most => {
                let expected = if deleted < least { least } else { most };
                self.decided.push((at, Mismatch::WrongDeletes { operation: at, deleted, expected, at: before }));
            }
            None if least < most || !whole || !is_all => self.open += 1,
            None => {}
        }
    }
}

/// Changes of a transaction by its earlier steps, by key.
pub(super) type Own = FxHashMap<Symbol, Change>;

/// The changes of a writing transaction that a step finds: the last change of each key before it. A step that reads an old
/// revision finds none. `None`: an earlier step deleted an interval of too many keys.
pub(super) fn own(
    recording: &Recording,
    effects: &Effects,
    counts: &mut KeyCounts<'_>,
    operation: u32,
    steps: u32,
) -> Option<Own> {
    let mut changes = Own::default();
    let Operation { request: Request::Txn(txn), failure, results, .. } = recording.operations[operation as usize]
    else {
        return Some(changes);
    };
    if steps == 0 || !effects.wrote(recording, operation) {
        return Some(changes);
    }
    let taken = txn.taken(!failure).of(&recording.requests.steps);
    if matches!(taken.get(steps as usize), Some(Step::Range(range)) if range.revision > 0) {
        return Some(changes);
    }
    let before = taken.iter().take(steps as usize);
    for (step, result) in before.zip(results.of(&recording.results)) {
        match *step {
            Step::Put { key, value, .. } => _ = changes.insert(key, Change { key, value: Some(value) }),
            Step::Delete(keys) if result.deleted > 0 => {
                let inside = match keys.end.is_some() {
                    true => counts.keys_inside(keys, usize::MAX),
                    false => &[keys.key],
                };
                if inside.len() > MAX_KEYS_OF_DELETE {
                    return None;
                }
                changes.extend(inside.iter().map(|&key| (key, Change { key, value: None })));
            }
            _ => {}
        }
    }
    Some(changes)
}

/// Whether a key is there after the steps of a transaction; `None` if none of them changes it.
fn left_by(recording: &Recording, steps: &[Step], key: Symbol) -> Option<bool> {
    steps.iter().rev().find(|step| touches(recording, step, key)).map(|step| matches!(step, Step::Put { .. }))
}

/// Whether a step changes a key.
fn touches(recording: &Recording, step: &Step, wanted: Symbol) -> bool {
    match step {
        Step::Put { key, .. } => *key == wanted,
        Step::Delete(keys) => covers(recording, *keys, wanted),
        _ => false,
    }
}
