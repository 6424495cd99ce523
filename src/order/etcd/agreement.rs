//! Consistency of a transaction's answer with itself: conditions and steps see one state, so the steps must confirm the
//! conditions. No other record is needed.
//!
//! Source: etcd `server/etcdserver/txn/txn.go` (`checkTxnReqsPermission`, `Txn`: conditions are evaluated, and the steps of one
//! branch applied, against one revision).

use crate::history::Symbol;
use crate::history::etcd::{Condition, Operation, Recording, Relation, Step, StepResult, Target, Txn};

/// The state of a key before the transaction, as its answer shows it.
#[derive(Clone, Copy)]
enum Shown {
    Absent,
    /// It exists, with its mod revision and version counter; 0 if not shown.
    There {
        changed: i64,
        version: i64,
    },
}

/// The condition that a transaction's answer contradicts, an index into the recording's table.
pub(super) fn contradicted(recording: &Recording, operation: &Operation, txn: Txn) -> Option<u32> {
    // If several conditions were not all true, the false one is unknown.
    if txn.conditions.len == 0 || (operation.failure && txn.conditions.len > 1) {
        return None;
    }
    let taken = txn.taken(!operation.failure);
    let (steps, results) = (taken.of(&recording.requests.steps), operation.results.of(&recording.results));
    (txn.conditions.start..txn.conditions.start + txn.conditions.len).find(|at| {
        let condition = &recording.requests.conditions[*at as usize];
        let told = || shown(recording, condition.keys.key, steps, results);
        !condition.keys.end.is_some() && told().is_some_and(|shown| may_be(condition, shown) == Some(operation.failure))
    })
}

/// The state of a key according to the first step about it.
fn shown(recording: &Recording, key: Symbol, steps: &[Step], results: &[StepResult]) -> Option<Shown> {
    for (step, result) in steps.iter().zip(results) {
        match step {
            Step::Delete(keys) if keys.key == key && !keys.end.is_some() => {
                return Some(match result.deleted {
                    0 => Shown::Absent,
                    _ => Shown::There { changed: 0, version: 0 },
                });
            }
            Step::Range(range) if range.keys.key == key && !range.keys.end.is_some() && range.revision <= 0 => {
                let pair = result.pairs.of(&recording.pairs).iter().find(|pair| pair.key == key);
                return match pair {
                    Some(pair) => Some(Shown::There { changed: pair.revision, version: pair.version }),
                    None if result.count > 0 => Some(Shown::There { changed: 0, version: 0 }),
                    None if result.pairs.len == 0 => Some(Shown::Absent),
                    None => None,
                };
            }
            Step::Range(_) => {}
            Step::Put { key: other, .. } if *other != key => {}
            // Later steps may see the transaction's own changes.
            _ => return None,
        }
    }
    None
}

/// Whether a condition holds in the shown state; `None` if that is not decided.
fn may_be(condition: &Condition, shown: Shown) -> Option<bool> {
    if condition.relation != Relation::Equal {
        return None;
    }
    let expected = condition.number;
    match (condition.target, shown) {
        (Target::ModRevision | Target::Version | Target::CreateRevision, Shown::Absent) => Some(expected == 0),
        (Target::ModRevision | Target::Version | Target::CreateRevision, Shown::There { .. }) if expected == 0 => {
            Some(false)
        }
        (Target::ModRevision, Shown::There { changed, .. }) if changed > 0 => Some(changed == expected),
        (Target::Version, Shown::There { version, .. }) if version > 0 => Some(version == expected),
        _ => None,
    }
}
