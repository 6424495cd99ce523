//! Conditions of transactions, evaluated in a state of the timeline. `None` always means that the state is not known well enough.

use super::store::covers;
use super::timeline::{State, Timeline, Version};
use crate::history::Symbol;
use crate::history::etcd::{Condition, Interval, Outcome, Recording, Relation, Request, Target, Txn};

/// Whether a condition holds for every key of an interval at a revision; `None` if unknown. Without keys, zeros are compared.
///
/// Source: etcd `server/etcdserver/txn/txn.go` (`applyCompare`).
pub fn hold_all(recording: &Recording, timeline: &Timeline, condition: &Condition, at: i64) -> Option<bool> {
    if !timeline.known_between(1, at) {
        return None;
    }
    let one = |key: Symbol| Condition { keys: Interval { key, end: Symbol::NONE }, ..*condition };
    let inside = timeline.keys().filter(|key| covers(recording, condition.keys, *key));
    let there = inside.filter(|key| matches!(timeline.state(*key, at), State::There(_)));
    let mut all = there.map(|key| holds(recording, timeline, &one(key), timeline.state(key, at)).0).peekable();
    if all.peek().is_none() {
        return holds(recording, timeline, &one(condition.keys.key), State::Absent(None)).0;
    }
    let all: Vec<Option<bool>> = all.collect();
    match all.contains(&Some(false)) {
        true => Some(false),
        false => (!all.contains(&None)).then_some(true),
    }
}

/// Whether a condition holds in the state of its key; `None` if unknown. Also returns the version that shows it.
pub fn holds<'t>(
    recording: &Recording,
    timeline: &Timeline,
    condition: &Condition,
    state: State<'t>,
) -> (Option<bool>, Option<&'t Version>) {
    let (revision, version, value, shown) = match state {
        State::There(version) => (version.revision, version.version, version.change.value, Some(version)),
        State::Absent(version) => (0, 0, None, version),
        State::Open(last) => {
            // A later version than the expected one excludes it, whatever happened since.
            let excluded = condition.target == Target::ModRevision
                && condition.relation == Relation::Equal
                && !condition.keys.end.is_some()
                && last.is_some_and(|last| condition.number > 0 && last.revision > condition.number);
            return (excluded.then_some(false), last);
        }
    };
    if condition.target == Target::Value && !condition.keys.end.is_some() {
        // An absent key has no value, not even an empty one.
        let same = value.map_or(Some(false), |value| recording.values.same(value, condition.value));
        let holds = match condition.relation {
            _ if value.is_none() => Some(false),
            Relation::Equal => same,
            Relation::NotEqual => same.map(|same| !same),
            _ => None,
        };
        return (holds, shown);
    }
    let found = match condition.target {
        _ if condition.keys.end.is_some() => None,
        Target::ModRevision => Some(revision),
        // The counter of an existing key is not always known.
        Target::Version if revision > 0 && version == 0 => None,
        Target::Version => Some(version),
        // An absent key has create revision 0; a key in version 1 was created at its mod revision.
        Target::CreateRevision if revision == 0 || version == 1 => Some(revision),
        Target::CreateRevision => match state {
            State::There(version) => timeline.created(condition.keys.key, version),
            _ => None,
        },
        _ => None,
    };
    let holds = found.and_then(|found| match condition.relation {
        Relation::Equal => Some(found == condition.number),
        Relation::NotEqual => Some(found != condition.number),
        Relation::Greater => Some(found > condition.number),
        Relation::Less => Some(found < condition.number),
        Relation::Unknown => None,
    });
    (holds, shown)
}

/// Whether the transaction that made a revision found its conditions true, by its answer or else by the state before it; `None`
/// if unknown.
pub(super) fn branch(recording: &Recording, timeline: &Timeline, at: u32, revision: i64) -> Option<bool> {
    let operation = &recording.operations[at as usize];
    match (operation.outcome, operation.request) {
        (Outcome::Answered, _) => Some(!operation.failure),
        (_, Request::Txn(txn)) => decided(recording, timeline, txn, revision - 1),
        _ => None,
    }
}

/// Whether the conditions of a transaction hold at a revision; `None` if unknown.
pub(super) fn decided(recording: &Recording, timeline: &Timeline, txn: Txn, at: i64) -> Option<bool> {
    let mut success = true;
    for condition in txn.conditions.of(&recording.requests.conditions) {
        success &= match condition.keys.end.is_some() {
            true => hold_all(recording, timeline, condition, at)?,
            false => holds(recording, timeline, condition, timeline.state(condition.keys.key, at)).0?,
        };
    }
    Some(success)
}
