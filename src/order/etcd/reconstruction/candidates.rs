//! Candidate writers of a revision, given the state before it.

use super::super::attachment::{Attached, attached_by};
use super::super::effects::Answered;
use super::super::lease::attached;
use super::super::store::{covers, reads_ahead};
use super::Writer;
use super::problem::{Gap, Problem};
use super::state::{State, holds};
use crate::history::etcd::{Request, Step, Txn, ValueId};
use rustc_hash::FxHashSet;

/// A changed key: its index, its value (`None` if deleted), and its attachment.
pub type Changed = (u32, Option<ValueId>, Option<Attached>);

/// A possible writer of a revision with its changes.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The writer.
    pub writer: Writer,
    /// All its changes.
    pub changes: Vec<Changed>,
}

/// Limit on keys of unknown attachment for which every subset is tried.
const CHOICES: usize = 5;

/// The candidates of one revision.
pub struct Candidates {
    /// The possible writers.
    pub all: Vec<Candidate>,
    /// Whether there are certainly no others.
    pub complete: bool,
}

impl Candidates {
    /// The candidates for a gap after a state. `used`: requests that took effect before; `ended`: ends of leases with their
    /// revisions.
    pub fn of(
        problem: &Problem<'_>,
        gap: &Gap,
        state: &State,
        used: &FxHashSet<u32>,
        ended: &[(i64, i64)],
    ) -> Candidates {
        let mut candidates = Candidates { all: Vec::new(), complete: true };
        let mut kinds: FxHashSet<u32> = FxHashSet::default();
        let last = |lease: i64| ended.iter().rfind(|(other, _)| *other == lease).map_or(0, |(_, number)| *number);
        for &at in gap.requests.iter().filter(|at| !used.contains(at)) {
            // Among requests with the same content, the first sent one can do everything that a later one can.
            if !kinds.insert(problem.kinds.get(&at).copied().unwrap_or(at)) {
                continue;
            }
            let operation = &problem.known.recording.operations[at as usize];
            match operation.request {
                Request::Txn(txn) => {
                    let told = Answered::of(problem.known.recording, at);
                    match effect(problem, txn, told, state, gap.number) {
                        Ok(changes) => candidates.add(problem, gap, Writer::Operation(at), changes),
                        Err(NotTold) => candidates.complete = false,
                    }
                }
                Request::LeaseRevoke { lease } => {
                    candidates.end(problem, gap, state, (lease, last(lease)), Writer::Operation(at));
                }
                _ => {}
            }
        }
        if problem.leases {
            for lease in problem.known.lives.may_end(gap.number) {
                candidates.end(problem, gap, state, (lease, last(lease)), Writer::Expiry(lease));
            }
        }
        candidates
    }

    /// Adds a candidate if its changes match what is known of the gap.
    fn add(&mut self, problem: &Problem<'_>, gap: &Gap, writer: Writer, changes: Vec<Changed>) {
        let values = &problem.known.recording.values;
        let same = |a: Option<ValueId>, b: Option<ValueId>| match (a, b) {
            (Some(a), Some(b)) => values.same(a, b) != Some(false),
            (a, b) => a == b,
        };
        let has = |key: u32| gap.known.iter().any(|(known, _)| *known == key);
        let unchanged = |key: u32| gap.unchanged.binary_search(&key).is_ok();
        let fits = !changes.is_empty()
            && changes.iter().all(|(key, ..)| !unchanged(*key) && (!gap.complete || has(*key)))
            && gap
                .known
                .iter()
                .all(|(key, value)| changes.iter().any(|(other, made, _)| other == key && same(*value, *made)));
        if fits {
            self.all.push(Candidate { writer, changes });
        }
    }

    /// Adds the end of a lease, which last ended at revision `last`: attached keys are deleted, and those of unknown attachment
    /// may be.
    fn end(&mut self, problem: &Problem<'_>, gap: &Gap, state: &State, (lease, last): (i64, i64), writer: Writer) {
        let lives = problem.known.lives;
        if !lives.may_live(lease, gap.number) {
            return;
        }
        let removed = |key: u32| gap.known.iter().any(|(known, value)| *known == key && value.is_none());
        let mut certain: Vec<u32> = Vec::new();
        let mut open: Vec<u32> = Vec::new();
        let may = |put: i64| put > last && lives.may_live(lease, put) && lives.may_keep(lease, put, gap.number);
        for (key, cell) in (0..).zip(state) {
            let Some(cell) = cell else { continue };
            match cell.attached {
                Some(Attached::To(other)) if other == lease => certain.push(key),
                Some(Attached::Unknown) if may(cell.changed) => match removed(key) {
                    true => certain.push(key),
                    false if gap.complete || gap.unchanged.binary_search(&key).is_ok() => {}
                    false => open.push(key),
                },
                _ => {}
            }
        }
        if open.len() > CHOICES {
            open.truncate(CHOICES);
            self.complete = false;
        }
        for choice in 0..1_u32 << open.len() {
            let chosen = (0..).zip(&open).filter(|(bit, _)| choice >> bit & 1 == 1).map(|(_, key)| *key);
            let changes = certain.iter().copied().chain(chosen).map(|key| (key, None, None)).collect();
            self.add(problem, gap, writer, changes);
        }
    }
}

/// The effect of a request is not recorded.
struct NotTold;

/// The changes of a transaction; none if its answer contradicts the state.
fn effect(
    problem: &Problem<'_>,
    txn: Txn,
    told: Option<Answered<'_>>,
    state: &State,
    number: i64,
) -> Result<Vec<Changed>, NotTold> {
    let known = problem.known;
    let recording = known.recording;
    let success = holds(known, &problem.keys, state, txn.conditions);
    let success = success.or(told.map(|told| told.success)).ok_or(NotTold)?;
    if told.is_some_and(|told| told.success != success) {
        return Ok(Vec::new());
    }
    let is_dead = attached(recording, txn, success).any(|lease| !known.lives.may_live(lease, number));
    if is_dead || reads_ahead(recording, txn, success, number - 1) {
        return Ok(Vec::new());
    }
    let mut changes: Vec<Changed> = Vec::new();
    for (n, step) in txn.taken(success).of(&recording.requests.steps).iter().enumerate() {
        match *step {
            Step::Put { keeps_value: true, .. } | Step::Put { keeps_lease: true, .. } => return Err(NotTold),
            Step::Put { key: name, value, .. } => {
                let key = problem.keys.find(name).ok_or(NotTold)?;
                changes.retain(|(other, ..)| *other != key);
                changes.push((key, Some(value), attached_by(recording, txn, Some(success), name)));
            }
            Step::Delete(interval) => {
                // etcd refuses a transaction that deletes a key that it put. A key that it deleted does not exist any more.
                let covered = |key: u32| covers(recording, interval, problem.keys.names[key as usize]);
                if changes.iter().any(|(key, value, _)| value.is_some() && covered(*key)) {
                    return Err(NotTold);
                }
                let there = problem.keys.inside(recording, interval).filter(|key| state[*key as usize].is_some());
                let there: Vec<u32> = there.filter(|key| !changes.iter().any(|(other, ..)| other == key)).collect();
                // With keys outside the problem, the number of deleted keys cannot be compared.
                let all = !interval.end.is_some() || problem.keys.all;
                let removed = told.filter(|_| all).and_then(|told| told.removed(n));
                if removed.is_some_and(|removed| removed != there.len() as i64) {
                    return Ok(Vec::new());
                }
                changes.extend(there.into_iter().map(|key| (key, None, None)));
            }
            Step::Range(_) => {}
            Step::Txn(_) | Step::Nothing => return Err(NotTold),
        }
    }
    Ok(changes)
}
