//! The problem that the search solves: known changes of the relevant keys, constraints on states, and gaps, which are revisions
//! without a known writer, with their candidate requests. Only keys that a gap may have changed or that decide a condition are
//! relevant.

use super::super::attachment::{Attached, AttachedBy, attached_by};
use super::super::conditions::branch;
use super::super::effects::{Change, Class};
use super::super::store::covers;
use super::super::streams::watched;
use super::super::timeline::Revision;
use super::constraints::{Constraint, Constraints};
use super::state::Keys;
use super::{CELLS, FEW, Known, REQUESTS, REVISIONS, Writer};
use crate::history::Symbol;
use crate::history::etcd::{Recording, Request, Step, ValueId, Watch};
use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};

/// A revision whose writer is searched.
pub struct Gap {
    /// The revision.
    pub number: i64,
    /// The known changes.
    pub known: Vec<(u32, Option<ValueId>)>,
    /// Whether there are no other changes.
    pub complete: bool,
    /// Requests that may have written it. Among those with the same content, the first sent one comes first.
    pub requests: Vec<u32>,
    /// Keys that did not change, because a watch passed the revision or a later read shows them unchanged.
    pub unchanged: Vec<u32>,
}

/// An element of the problem, in order of revisions.
pub enum Mark {
    /// A known change.
    Change {
        /// The key.
        key: u32,
        /// Its value; `None` if deleted.
        value: Option<ValueId>,
        /// Its attachment from then on.
        attached: Option<Attached>,
    },
    /// A revision whose writer is searched.
    Gap(u32),
    /// A constraint on the state after all earlier marks.
    Claim(Constraint),
}

/// The whole problem.
pub struct Problem<'a> {
    /// The evidence that the search has.
    pub known: Known<'a>,
    /// The relevant keys.
    pub keys: Keys,
    /// The searched revisions, ascending.
    pub gaps: Vec<Gap>,
    /// By revision; changes before constraints.
    pub marks: Vec<(i64, Mark)>,
    /// Whether ends of leases may have written revisions.
    pub leases: bool,
    /// The component of each key; components share no request and no key.
    pub of_key: Vec<u32>,
    /// The component of each gap.
    pub of_gap: Vec<u32>,
    /// By request, the first sent request with the same content.
    pub kinds: FxHashMap<u32, u32>,
}

impl<'a> Problem<'a> {
    /// Builds the problem; `None` if it exceeds a limit.
    pub fn of(known: Known<'a>) -> Option<Problem<'a>> {
        let gaps = gaps(known)?;
        let is_gap = |number: i64| gaps.binary_search_by_key(&number, |(gap, _)| *gap).is_ok();
        let requests: Vec<u32> = (0..known.recording.operations.len() as u32)
            .filter(|at| match known.effects.class(*at) {
                Class::Unknown => true,
                Class::Either => is_gap(known.recording.operations[*at as usize].revision),
                _ => false,
            })
            .collect();
        if requests.len() > REQUESTS {
            return None;
        }
        let leases = known.lives.any();
        let keys = keys(known, &gaps, &requests, leases)?;
        if keys.names.len().checked_mul(gaps.len())? > CELLS {
            return None;
        }
        let from = gaps.iter().find(|(_, complete)| !complete).or(gaps.first())?.0;
        let claims = Constraints::of(known, &keys, from).all;
        let kinds = kinds(known, &requests);
        let needed = known.attribution.writers.iter().filter_map(|(_, filler)| match filler {
            Writer::Operation(at) => Some(*at),
            Writer::Expiry(_) => None,
        });
        let needed: FxHashSet<u32> = needed.collect();
        let still = unchanged(&keys, &gaps, &claims);
        let gaps: Vec<Gap> =
            gaps.into_iter().zip(still).map(|(of, still)| gap(known, &keys, still, &requests, &needed, of)).collect();
        let (of_key, of_gap) = parts(known, &keys, &gaps, &claims, leases);
        let marks = marks(known, &keys, &gaps, claims);
        Some(Problem { known, keys, gaps, marks, leases, of_key, of_gap, kinds })
    }
}

/// The revisions without an acknowledged writer, and whether their content is known. Revisions with known content are included
/// only if there are few, or if attachments to leases depend on their writers.
fn gaps(known: Known<'_>) -> Option<Vec<(i64, bool)>> {
    let timeline = known.timeline;
    let last = known.proofs.last().max(timeline.last());
    if timeline.revisions.first().is_some_and(|revision| revision.number < 2) {
        return None;
    }
    let missing = last.checked_sub(1)?.checked_sub(timeline.revisions.len() as i64)?;
    let open = |revision: &&Revision| revision.writer.is_none();
    let unknown = timeline.revisions.iter().filter(open).filter(|revision| !revision.complete).count();
    if missing > REVISIONS as i64 || missing as usize + unknown > REVISIONS {
        return None;
    }
    let few = missing as usize + timeline.revisions.iter().filter(open).count() <= FEW;
    // If attachments matter, revisions that may be ends of leases are searched too.
    let in_doubt = !known.attribution.doubted.is_empty();
    let removes =
        |revision: &Revision| timeline.versions_of(revision).iter().all(|version| version.change.value.is_none());
    let mut gaps = Vec::new();
    let mut expected = 2;
    for revision in &timeline.revisions {
        gaps.extend((expected..revision.number).map(|number| (number, false)));
        let doubted =
            known.attribution.doubted.binary_search(&revision.number).is_ok() || (in_doubt && removes(revision));
        if revision.writer.is_none() && (few || !revision.complete || doubted) {
            gaps.push((revision.number, revision.complete));
        }
        expected = revision.number + 1;
    }
    gaps.extend((expected..=last).map(|number| (number, false)));
    Some(gaps).filter(|gaps| gaps.len() <= REVISIONS)
}

fn keys(known: Known<'_>, gaps: &[(i64, bool)], requests: &[u32], leases: bool) -> Option<Keys> {
    let mut keys = Keys { names: Vec::new(), places: FxHashMap::default(), all: false };
    let recording = known.recording;
    for at in requests {
        let Request::Txn(txn) = recording.operations[*at as usize].request else { continue };
        for condition in txn.conditions.of(&recording.requests.conditions) {
            keys.add(condition.keys.key);
        }
        for span in [txn.success, txn.failure] {
            for step in span.of(&recording.requests.steps) {
                match step {
                    Step::Put { key, .. } => keys.add(*key),
                    Step::Delete(interval) if !interval.end.is_some() => keys.add(interval.key),
                    Step::Delete(interval) => {
                        let inside = known.timeline.keys().filter(|key| covers(recording, *interval, *key));
                        inside.for_each(|key| keys.add(key));
                    }
                    _ => {}
                }
            }
        }
    }
    for (number, _) in gaps {
        let revision = known.timeline.revision(*number);
        for version in revision.into_iter().flat_map(|revision| known.timeline.versions_of(revision)) {
            keys.add(version.change.key);
        }
    }
    if leases || known.timeline.keys().count() <= 64 {
        known.timeline.keys().for_each(|key| keys.add(key));
    }
    // Sorted, so that the order does not depend on a hash table.
    keys.names.sort_unstable();
    keys.places = keys.names.iter().copied().zip(0..).collect();
    keys.all = known.timeline.keys().all(|key| keys.places.contains_key(&key));
    Some(keys)
}

/// By request, the first sent request with the same content.
fn kinds(known: Known<'_>, requests: &[u32]) -> FxHashMap<u32, u32> {
    let Known { recording, effects, .. } = known;
    let request = |at: u32| &recording.operations[at as usize].request;
    let mut by_time: Vec<u32> = requests.to_vec();
    by_time.sort_by_key(|at| (recording.operations[*at as usize].call, *at));
    let mut kinds = FxHashMap::default();
    let mut firsts: Vec<u32> = Vec::new();
    for at in by_time {
        let unknown = effects.class(at) == Class::Unknown;
        let same = |first: &&u32| unknown && recording.requests.same(request(**first), request(at));
        let first = firsts.iter().find(same).copied();
        if first.is_none() && unknown {
            firsts.push(at);
        }
        kinds.insert(at, first.unwrap_or(at));
    }
    kinds
}

/// By gap, the keys that later evidence shows unchanged since before it.
fn unchanged(keys: &Keys, gaps: &[(i64, bool)], claims: &[(i64, Constraint)]) -> Vec<Vec<u32>> {
    // The lowest mod revision that is shown of a key at or after a gap.
    let mut oldest = vec![i64::MAX; keys.names.len() * gaps.len()];
    let place = |gap: usize, key: u32| gap * keys.names.len() + key as usize;
    for (at, claim) in claims {
        if let Constraint::There { key, changed, .. } = *claim
            && changed > 0
            && let Some(gap) = gaps.partition_point(|(number, _)| number <= at).checked_sub(1)
        {
            let oldest = &mut oldest[place(gap, key)];
            *oldest = changed.min(*oldest);
        }
    }
    for gap in (1..gaps.len()).rev() {
        for key in 0..keys.names.len() as u32 {
            oldest[place(gap - 1, key)] = oldest[place(gap - 1, key)].min(oldest[place(gap, key)]);
        }
    }
    let still = |(gap, (number, complete)): (usize, &(i64, bool))| {
        (0..keys.names.len() as u32).filter(|key| !complete && oldest[place(gap, *key)] < *number).collect()
    };
    gaps.iter().enumerate().map(still).collect()
}

fn gap(
    known: Known<'_>,
    keys: &Keys,
    mut unchanged: Vec<u32>,
    requests: &[u32],
    needed: &FxHashSet<u32>,
    (number, complete): (i64, bool),
) -> Gap {
    let Known { recording, effects, timeline, proofs, .. } = known;
    let versions = timeline.revision(number).into_iter().flat_map(|revision| timeline.versions_of(revision));
    let shown: Vec<(u32, Option<ValueId>)> =
        versions.filter_map(|version| Some((keys.find(version.change.key)?, version.change.value))).collect();
    if !complete {
        for watch in &recording.watches {
            let passed = passed(recording, watch).is_some_and(|(first, last)| first <= number && number <= last);
            if passed {
                let covered = |(_, name): &(u32, &Symbol)| watched(recording, watch, **name);
                unchanged.extend((0..).zip(&keys.names).filter(covered).map(|(key, _)| key));
            }
        }
        unchanged.sort_unstable();
        unchanged.dedup();
        unchanged.retain(|key| !shown.iter().any(|(other, _)| other == key));
    }
    let seen = proofs.first(number).map(|(time, _)| time);
    let fits = |at: &u32| {
        let operation = &recording.operations[*at as usize];
        match effects.class(*at) {
            Class::Either if operation.revision != number => return false,
            _ if seen.is_some_and(|seen| operation.call > seen) => return false,
            _ => {}
        }
        may_make(known, keys, &unchanged, &shown, &operation.request)
    };
    let mut requests: Vec<u32> = requests.iter().copied().filter(fits).collect();
    // Requests that the matching needs elsewhere come last.
    requests.sort_by_key(|at| (needed.contains(at), recording.operations[*at as usize].call, *at));
    Gap { number, known: shown, complete, requests, unchanged }
}

/// Whether one branch of a request makes all known changes, and changes no key that is known to be unchanged.
fn may_make(
    known: Known<'_>,
    keys: &Keys,
    unchanged: &[u32],
    shown: &[(u32, Option<ValueId>)],
    request: &Request,
) -> bool {
    let Request::Txn(txn) = request else { return true };
    let recording = known.recording;
    [txn.success, txn.failure].iter().any(|way| {
        let steps = way.of(&recording.requests.steps);
        let excluded = |step: &Step| match step {
            Step::Put { key, .. } => keys.find(*key).is_some_and(|key| unchanged.binary_search(&key).is_ok()),
            _ => false,
        };
        let makes = |(key, value): &(u32, Option<ValueId>)| {
            steps.iter().any(|step| match (step, value) {
                (Step::Put { key: put, value: other, .. }, Some(value)) => {
                    *put == keys.names[*key as usize] && recording.values.same(*other, *value) != Some(false)
                }
                (Step::Delete(interval), None) => covers(recording, *interval, keys.names[*key as usize]),
                (Step::Txn(_) | Step::Nothing, _) => true,
                _ => false,
            })
        };
        !steps.is_empty() && !steps.iter().any(excluded) && shown.iter().all(makes)
    })
}

/// The interval of revisions in which a watch delivered every change.
fn passed(recording: &Recording, watch: &Watch) -> Option<(i64, i64)> {
    let mut first = (watch.revision > 0).then_some(watch.revision);
    let mut last = None;
    for response in watch.responses.of(&recording.responses) {
        for event in response.events.of(&recording.events) {
            first.get_or_insert(event.revision);
            last = last.max(Some(event.revision));
        }
        if response.progress && (watch.revision <= 0 || response.revision >= watch.revision) {
            first.get_or_insert(response.revision + 1);
            last = last.max(Some(response.revision));
        }
    }
    Some((first?, last?))
}

/// The components of keys and gaps: those that share no key and no request.
fn parts(
    known: Known<'_>,
    keys: &Keys,
    gaps: &[Gap],
    claims: &[(i64, Constraint)],
    leases: bool,
) -> (Vec<u32>, Vec<u32>) {
    let count = keys.names.len() as u32;
    // Keys first, then gaps.
    let mut sets = UnionFind::<u32>::new(keys.names.len() + gaps.len());
    let mut join = |a: u32, b: u32| {
        sets.union(a, b);
    };
    let mut first_of: FxHashMap<u32, u32> = FxHashMap::default();
    for (at, gap) in (count..).zip(gaps) {
        gap.known.iter().for_each(|(key, _)| join(at, *key));
        for request in &gap.requests {
            match first_of.get(request) {
                Some(&first) => join(first, at),
                None => {
                    first_of.insert(*request, at);
                    touched(known, keys, *request, |key| join(at, key));
                }
            }
        }
    }
    // The end of a lease may delete any key, and any lease may be meant.
    if leases {
        (1..count + gaps.len() as u32).for_each(|at| join(0, at));
    }
    for (_, claim) in claims {
        if matches!(claim, Constraint::Decided { .. } | Constraint::Count { .. }) {
            let about = claim.keys(known, keys);
            about.windows(2).for_each(|pair| join(pair[0], pair[1]));
        }
    }
    let mut of_key = sets.into_labeling();
    let of_gap = of_key.split_off(keys.names.len());
    (of_key, of_gap)
}

/// Calls `each` for the keys that a request reads in conditions or may change.
fn touched(known: Known<'_>, keys: &Keys, request: u32, mut each: impl FnMut(u32)) {
    let recording = known.recording;
    let Request::Txn(txn) = recording.operations[request as usize].request else { return };
    for condition in txn.conditions.of(&recording.requests.conditions) {
        keys.find(condition.keys.key).into_iter().for_each(&mut each);
    }
    for step in [txn.success, txn.failure].iter().flat_map(|way| way.of(&recording.requests.steps)) {
        match step {
            Step::Put { key, .. } => keys.find(*key).into_iter().for_each(&mut each),
            Step::Delete(interval) => keys.inside(recording, *interval).for_each(&mut each),
            _ => {}
        }
    }
}

fn marks(known: Known<'_>, keys: &Keys, gaps: &[Gap], claims: Vec<(i64, Constraint)>) -> Vec<(i64, Mark)> {
    let Known { recording, timeline, .. } = known;
    let mut marks: Vec<(i64, Mark)> = (0..).zip(gaps).map(|(at, gap)| (gap.number, Mark::Gap(at))).collect();
    let searched = |number: i64| gaps.binary_search_by_key(&number, |gap| gap.number).is_ok();
    for revision in timeline.revisions.iter().filter(|revision| !searched(revision.number)) {
        let made = known.attribution.writers.binary_search_by_key(&revision.number, |(number, _)| *number);
        let writer = made.ok().map(|at| known.attribution.writers[at].1).or(revision.writer.map(Writer::Operation));
        let writer = match writer {
            Some(Writer::Operation(at)) => Some(at),
            _ => None,
        };
        let success = writer.and_then(|at| branch(recording, timeline, at, revision.number));
        let logged = AttachedBy::logged(recording, revision.entry, success);
        for version in timeline.versions_of(revision) {
            let Change { key: name, value } = version.change;
            let Some(key) = keys.find(name) else { continue };
            let by_log = || logged.as_ref().and_then(|logged| logged.get(name));
            let attached = value.and(match writer.map(|at| recording.operations[at as usize].request) {
                _ if logged.is_some() => by_log(),
                Some(Request::Txn(txn)) => attached_by(recording, txn, success, name),
                _ => Some(Attached::Unknown),
            });
            marks.push((revision.number, Mark::Change { key, value, attached }));
        }
    }
    marks.extend(claims.into_iter().map(|(at, claim)| (at, Mark::Claim(claim))));
    // The sort is stable: constraints stay after changes, and versions keep their order.
    marks.sort_by_key(|(revision, _)| *revision);
    marks
}
