//! The effect of each operation as its answer shows it: whether it changed keys, which keys, and the revision of its state.
//! Answers that no store gives to their own request are collected here, without looking at other operations.

use super::agreement::contradicted;
use super::coherence::{Incoherence, incoherence};
use crate::history::Symbol;
use crate::history::etcd::{Operation, Outcome, Range, Recording, Request, Span, Step, StepResult, Txn, ValueId};

/// The effect of an operation, as far as its answer shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It changed keys at the revision of its answer.
    Write,
    /// It changed nothing; its state is that of its answer's revision.
    Same,
    /// The answer does not show whether it changed keys, like that of a revoked lease.
    Either,
    /// Crashed operation: its outcome is unknown, and it may still take effect later.
    Unknown,
    /// Refused. An effect of it shows that the refusal was wrong.
    Refused,
    /// No place in the order: a failed or serializable read, or an answer without revision.
    Silent,
}

/// The last change of a key in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    /// The key.
    pub key: Symbol,
    /// Its new value; `None` if it was deleted.
    pub value: Option<ValueId>,
}

/// The effects of all operations.
#[derive(Debug, Default)]
pub struct Effects {
    rows: Vec<(Class, Span)>,
    changes: Vec<Change>,
    /// Operations that request a compaction, ascending.
    pub compactions: Vec<u32>,
    /// Operations that revoke a lease, ascending.
    pub revokes: Vec<u32>,
    /// Operations whose number of results differs from the number of steps.
    pub misshapen: Vec<u32>,
    /// Operations with an answer that no store gives to their request: a put that found keys, a read that removed some, or more
    /// keys than requested.
    pub mistaken: Vec<u32>,
    /// Transactions with an answer that contradicts one of their conditions, with the condition's index in the recording's table.
    pub contradicted: Vec<(u32, u32)>,
    /// Operations with a read that contradicts itself; the flag says whether that holds whatever is not recorded.
    pub incoherent: Vec<(u32, Incoherence, bool)>,
}

impl Effects {
    /// Derives the effects of a recording.
    pub fn of(recording: &Recording) -> Effects {
        let rows = Vec::with_capacity(recording.operations.len());
        let mut effects = Effects { rows, ..Effects::default() };
        for (at, operation) in recording.operations.iter().enumerate() {
            let start = effects.changes.len() as u32;
            let class = effects.add(recording, at as u32, operation);
            effects.rows.push((class, Span { start, len: effects.changes.len() as u32 - start }));
        }
        effects
    }

    fn add(&mut self, recording: &Recording, at: u32, operation: &Operation) -> Class {
        let txn = match operation.request {
            // A serializable read may be answered by a member that is behind: its content counts, but it has no place in time.
            Request::Range(range) if operation.outcome == Outcome::Answered => {
                let results = operation.results.of(&recording.results);
                if results.iter().any(|result| !finds(recording, range, result)) {
                    self.mistaken.push(at);
                } else if let Some((how, sure)) =
                    results.first().and_then(|_| incoherence(recording, range, operation.results.start, true))
                {
                    self.incoherent.push((at, how, sure));
                }
                return if range.serializable { Class::Silent } else { Class::Same };
            }
            Request::Compact { .. } => {
                self.compactions.push(at);
                return Class::Silent;
            }
            Request::Range(_) | Request::Defragment | Request::Other => return Class::Silent,
            Request::LeaseGrant { .. } if operation.outcome == Outcome::Answered => return Class::Same,
            // Only its answer shows whether a lease was granted.
            Request::LeaseGrant { .. } => return Class::Silent,
            Request::LeaseRevoke { .. } => {
                self.revokes.push(at);
                return failed(operation).unwrap_or(Class::Either);
            }
            Request::Txn(txn) => txn,
        };
        if let Some(class) = failed(operation) {
            return if writes(recording, txn) { class } else { Class::Silent };
        }
        let (steps, results) =
            (txn.taken(!operation.failure).of(&recording.requests.steps), operation.results.of(&recording.results));
        if steps.len() != results.len() {
            self.misshapen.push(at);
        } else if steps.iter().zip(results).any(|(step, result)| !is_of(recording, step, result)) {
            self.mistaken.push(at);
        } else if let Some(condition) = contradicted(recording, operation, txn) {
            self.contradicted.push((at, condition));
        } else if let Some((how, sure)) =
            steps.iter().zip(operation.results.start..).find_map(|(step, at)| match step {
                Step::Range(range) => incoherence(recording, *range, at, false),
                _ => None,
            })
        {
            self.incoherent.push((at, how, sure));
        }
        let mut open = false;
        for (n, step) in steps.iter().enumerate() {
            match (step, results.get(n)) {
                (Step::Put { key, value, .. }, _) => self.changes.push(Change { key: *key, value: Some(*value) }),
                (Step::Delete(keys), Some(result)) if result.deleted > 0 && !keys.end.is_some() => {
                    self.changes.push(Change { key: keys.key, value: None });
                }
                (Step::Delete(_), Some(result)) if result.deleted == 0 => {}
                (Step::Range(_), _) => {}
                _ => open = true,
            }
        }
        let start = self.rows.last().map_or(0, |(_, span)| span.start + span.len) as usize;
        match (open, self.changes.len() > start) {
            (true, _) => {
                self.changes.truncate(start);
                Class::Either
            }
            (false, true) => Class::Write,
            (false, false) => Class::Same,
        }
    }

    /// The effect of an operation.
    pub fn class(&self, operation: u32) -> Class {
        self.rows[operation as usize].0
    }

    /// Whether a transaction certainly made a revision. One that deletes an interval did if it removed a key, though its
    /// answer does not name the keys.
    pub fn wrote(&self, recording: &Recording, operation: u32) -> bool {
        let Operation { request: Request::Txn(txn), failure, results, .. } = recording.operations[operation as usize]
        else {
            return false;
        };
        let steps = txn.taken(!failure).of(&recording.requests.steps);
        let results = results.of(&recording.results);
        let is_plain = |step: &Step| !matches!(step, Step::Txn(_) | Step::Nothing);
        match self.class(operation) {
            Class::Write => true,
            Class::Either if steps.len() == results.len() && steps.iter().all(is_plain) => {
                let changes =
                    |(step, result): (&Step, &StepResult)| matches!(step, Step::Put { .. }) || result.deleted > 0;
                steps.iter().zip(results).any(changes)
            }
            _ => false,
        }
    }

    /// The keys that a [`Class::Write`] changed, in the order of its steps.
    pub fn changes(&self, operation: u32) -> &[Change] {
        self.rows[operation as usize].1.of(&self.changes)
    }

    /// The lowest and highest slot of an answered operation in the order: a write at revision r has slot 2r, what changed nothing
    /// there has slot 2r + 1.
    pub fn slots(&self, operation: u32, revision: i64) -> Option<(i128, i128)> {
        let write = i128::from(revision) * 2;
        match self.class(operation) {
            Class::Write => Some((write, write)),
            Class::Same => Some((write + 1, write + 1)),
            Class::Either => Some((write, write + 1)),
            _ => None,
        }
    }
}

/// The branch and results in the answer of a transaction.
#[derive(Clone, Copy)]
pub(super) struct Answered<'r> {
    /// Whether its conditions were true.
    pub success: bool,
    results: &'r [StepResult],
}

impl<'r> Answered<'r> {
    /// The answer of an operation; `None` without one.
    pub fn of(recording: &'r Recording, operation: u32) -> Option<Answered<'r>> {
        let operation = &recording.operations[operation as usize];
        let results = operation.results.of(&recording.results);
        (operation.outcome == Outcome::Answered).then_some(Answered { success: !operation.failure, results })
    }

    /// The number of keys that a step removed.
    pub fn removed(&self, step: usize) -> Option<i64> {
        self.results.get(step).map(|result| result.deleted)
    }
}

/// Whether a result can be that of a step.
fn is_of(recording: &Recording, step: &Step, result: &StepResult) -> bool {
    match step {
        Step::Put { .. } => result.deleted == 0 && result.pairs.len == 0 && result.count == 0,
        Step::Range(range) => result.deleted == 0 && finds(recording, *range, result),
        Step::Delete(keys) => {
            let most = if keys.end.is_some() { i64::MAX } else { 1 };
            result.pairs.len == 0 && result.count == 0 && (0..=most).contains(&result.deleted)
        }
        Step::Txn(_) | Step::Nothing => true,
    }
}

/// Whether a read can have this result in any state: within its limit, only a count, only keys.
fn finds(recording: &Recording, range: Range, result: &StepResult) -> bool {
    let pairs = result.pairs.of(&recording.pairs);
    let most = match usize::try_from(range.limit) {
        _ if range.count_only => 0,
        Ok(limit) if limit > 0 => limit,
        _ => usize::MAX,
    };
    let empty = ValueId::default();
    pairs.len() <= most && !(range.keys_only && pairs.iter().any(|pair| pair.value != empty))
}

/// The class of an operation without a normal answer.
fn failed(operation: &Operation) -> Option<Class> {
    match operation.outcome {
        Outcome::Answered => None,
        Outcome::Unknown => Some(Class::Unknown),
        Outcome::Compacted | Outcome::Future | Outcome::Refused => Some(Class::Refused),
    }
}

/// Whether a transaction can change keys.
fn writes(recording: &Recording, txn: Txn) -> bool {
    let steps = |span: Span| span.of(&recording.requests.steps).iter().any(|step| !matches!(step, Step::Range(_)));
    steps(txn.success) || steps(txn.failure)
}
