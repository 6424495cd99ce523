//! A model of etcd's store after its documentation: keys with their history, transactions, leases, compaction.
//!
//! Source: etcd `Documentation/learning/data_model`, `api_guarantees`; `api/etcdserverpb/rpc.proto` (what each request does and
//! answers).

use super::flaw::EtcdFlaw;
use crate::history::etcd::{
    Condition, Interval, Pair, Range, Recording, Relation, Step, StepResult, Target, Txn, ValueId,
};
use crate::ingest::Time;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;

/// A live key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Live {
    pub created: i64,
    pub changed: i64,
    pub version: i64,
    pub value: ValueId,
    attached: Attached,
}

/// The lease of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attached {
    Nothing,
    To(i64),
    /// Put by a transaction without recorded lease, at this step of the order.
    NotRecorded(usize),
}

/// One change of a key in a revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed<'r> {
    pub key: &'r str,
    pub before: Option<Live>,
    pub after: Option<Live>,
}

/// A store with its history.
pub(super) struct Store<'r> {
    recording: &'r Recording,
    pub revision: i64,
    /// The compacted revision; -1: none, since a request may name 0.
    pub compacted: i64,
    live: BTreeMap<&'r str, Live>,
    /// All changes, by revision.
    pub changes: Vec<(i64, Changed<'r>)>,
    /// Indices in [`Store::changes`], by key.
    past: BTreeMap<&'r str, Vec<usize>>,
    /// Live leases, with the step of their grant.
    leases: HashMap<i64, usize>,
    attached: HashMap<i64, BTreeSet<&'r str>>,
    /// Leases with a recorded grant. Others may be alive at any time.
    granted: HashSet<i64>,
    /// Grants of unknown outcome, with the steps from which they may have happened. Each is used for one life.
    asked: HashMap<i64, Vec<usize>>,
    /// The step of each lease's last end.
    ended: HashMap<i64, usize>,
    /// The present step of the order.
    pub step: usize,
    /// Number of undecided conditions in requests without an answer.
    pub not_compared: u64,
}

/// The result of applying a request.
pub(super) enum Applied {
    /// Done. The recorded answer, if there is one, agrees.
    Done,
    /// Refused, with the reason.
    Refused(&'static str),
}

/// The recorded parts of an answer.
#[derive(Clone, Copy)]
pub(super) struct RecordedAnswer<'r> {
    pub failure: bool,
    pub results: &'r [StepResult],
}

impl<'r> Store<'r> {
    pub fn new(recording: &'r Recording, granted: HashSet<i64>, mut asked: HashMap<i64, Vec<usize>>) -> Store<'r> {
        // Grants are popped from the end, so the earliest step comes last.
        asked.values_mut().for_each(|steps| steps.sort_unstable_by(|a, b| b.cmp(a)));
        Store {
            recording,
            revision: 1,
            compacted: -1,
            live: BTreeMap::new(),
            changes: Vec::new(),
            past: BTreeMap::new(),
            leases: HashMap::new(),
            attached: HashMap::new(),
            granted,
            asked,
            ended: HashMap::new(),
            step: 0,
            not_compared: 0,
        }
    }

    /// The step since which a lease is alive, if it is. A lease without a recorded grant may be granted again at any time.
    fn alive_since(&self, lease: i64) -> Option<usize> {
        let again = self.ended.get(&lease).map_or(0, |end| end + 1);
        if let Some(step) = self.leases.get(&lease) {
            return Some(*step);
        }
        match self.asked.get(&lease) {
            Some(steps) => steps.last().map(|step| again.max(*step)).filter(|step| *step <= self.step),
            None => (!self.granted.contains(&lease)).then_some(again),
        }
    }

    /// Grants a lease. A former life may have ended unseen if no key was attached to it.
    pub fn grant(&mut self, lease: i64) -> Applied {
        if self.attached.get(&lease).is_some_and(|keys| !keys.is_empty()) {
            return Applied::Refused("the lease is alive: a key is attached to it");
        }
        self.leases.insert(lease, self.step);
        Applied::Done
    }

    /// Ends a lease. `others` are keys without a recorded lease that are removed with it.
    pub fn end(&mut self, lease: i64, others: &[&'r str]) -> Result<Applied, EtcdFlaw> {
        let Some(since) = self.alive_since(lease) else { return Ok(Applied::Refused("the lease is not alive")) };
        let mut keys = self.attached.remove(&lease).unwrap_or_default();
        for key in others {
            let attached = match self.live.get(key).map(|live| live.attached) {
                Some(Attached::To(other)) => other == lease,
                Some(Attached::NotRecorded(put)) => since <= put,
                Some(Attached::Nothing) | None => false,
            };
            if !attached {
                return Err(EtcdFlaw::NotAttached { lease, key: (*key).to_owned() });
            }
            keys.insert(key);
        }
        if self.leases.remove(&lease).is_none()
            && let Some(asked) = self.asked.get_mut(&lease)
        {
            asked.pop();
        }
        self.ended.insert(lease, self.step);
        let number = self.revision + 1;
        for key in &keys {
            self.delete(key, number);
        }
        self.revision += i64::from(!keys.is_empty());
        Ok(Applied::Done)
    }

    pub fn compact(&mut self, through: i64) -> Applied {
        if through <= self.compacted {
            return Applied::Refused("the revision is compacted already");
        }
        if through > self.revision {
            return Applied::Refused("the revision does not exist yet");
        }
        self.compacted = through;
        Applied::Done
    }

    /// Compares a read with its recorded result.
    pub fn range(&self, range: Range, result: &StepResult) -> Result<(), String> {
        if range.revision > self.revision {
            return Err("the revision does not exist yet".to_owned());
        }
        // A serializable read is answered by one member, which may not have applied the compaction.
        if range.revision > 0 && range.revision < self.compacted && !range.serializable {
            return Err(format!("the store is compacted through {}", self.compacted));
        }
        self.look(range, result, false)
    }

    /// Applies a transaction and compares its answer. Without an answer, conditions that cannot be decided are presumed to hold,
    /// and counted.
    pub fn txn(&mut self, txn: Txn, answer: Option<RecordedAnswer<'r>>) -> Result<Applied, String> {
        let requests = &self.recording.requests;
        let conditions = txn.conditions.of(&requests.conditions);
        let mut success = true;
        let mut open = false;
        for condition in conditions {
            match self.holds(condition) {
                Some(holds) => success &= holds,
                None => open = true,
            }
        }
        // One false condition decides, whatever the undecided ones are.
        if success && open {
            self.not_compared += 1;
            success = answer.is_none_or(|answer| !answer.failure);
        }
        if answer.is_some_and(|answer| answer.failure == success) {
            return Err(format!("the conditions are {}", if success { "true" } else { "false" }));
        }
        let steps = txn.taken(success).of(&requests.steps);
        if answer.is_some_and(|answer| answer.results.len() != steps.len()) {
            return Err(format!("the transaction has {} steps", steps.len()));
        }
        let recorded = conditions.is_empty() && txn.failure.len == 0 && steps.len() == 1;
        if let Some(reason) = steps.iter().find_map(|step| self.refuses(step)) {
            return Ok(Applied::Refused(reason));
        }
        let number = self.revision + 1;
        let mut wrote = false;
        for (at, step) in steps.iter().enumerate() {
            let result = answer.map(|answer| &answer.results[at]);
            match *step {
                Step::Put { key, value, lease, keeps_value, keeps_lease } => {
                    let key = self.recording.texts.get(key);
                    let before = self.live.get(key).copied();
                    let attached = match (lease, before) {
                        (_, Some(before)) if keeps_lease => before.attached,
                        (0, _) if recorded => Attached::Nothing,
                        (0, _) => Attached::NotRecorded(self.step),
                        (lease, _) => Attached::To(lease),
                    };
                    let value = before.filter(|_| keeps_value).map_or(value, |before| before.value);
                    self.put(key, value, attached, number);
                    wrote = true;
                }
                Step::Delete(keys) => {
                    let keys: Vec<&str> = self.inside(keys).map(|(key, _)| key).collect();
                    if result.is_some_and(|result| result.deleted != keys.len() as i64) {
                        return Err(format!("step {at} deletes {}", keys.len()));
                    }
                    wrote |= !keys.is_empty();
                    keys.into_iter().for_each(|key| self.delete(key, number));
                }
                Step::Range(range) => {
                    if let Some(result) = result {
                        self.look(range, result, true).map_err(|why| format!("step {at}: {why}"))?;
                    }
                }
                Step::Txn(_) | Step::Nothing => return Err(format!("step {at} is of an unknown kind")),
            }
        }
        self.revision += i64::from(wrote);
        Ok(Applied::Done)
    }

    /// The reason why a step is refused, which refuses the whole transaction.
    fn refuses(&self, step: &Step) -> Option<&'static str> {
        match *step {
            Step::Put { lease, .. } if lease != 0 && self.alive_since(lease).is_none() => {
                Some("the lease is not alive")
            }
            Step::Put { key, keeps_value, keeps_lease, .. } if keeps_value || keeps_lease => {
                (!self.live.contains_key(self.recording.texts.get(key))).then_some("the key does not exist")
            }
            Step::Range(range) if range.revision > self.revision => Some("the revision does not exist yet"),
            Step::Range(range) if range.revision > 0 && range.revision < self.compacted => Some("it is compacted"),
            _ => None,
        }
    }

    fn put(&mut self, key: &'r str, value: ValueId, attached: Attached, number: i64) {
        let before = self.live.get(key).copied();
        self.detach(key, before);
        let after = Live {
            created: before.map_or(number, |before| before.created),
            changed: number,
            version: before.map_or(1, |before| before.version + 1),
            value,
            attached,
        };
        if let Attached::To(lease) = attached {
            self.attached.entry(lease).or_default().insert(key);
        }
        self.live.insert(key, after);
        self.change(Changed { key, before, after: Some(after) }, number);
    }

    fn delete(&mut self, key: &'r str, number: i64) {
        let before = self.live.remove(key);
        self.detach(key, before);
        self.change(Changed { key, before, after: None }, number);
    }

    fn detach(&mut self, key: &'r str, before: Option<Live>) {
        if let Some(Live { attached: Attached::To(lease), .. }) = before
            && let Some(keys) = self.attached.get_mut(&lease)
        {
            keys.remove(key);
        }
    }

    fn change(&mut self, changed: Changed<'r>, number: i64) {
        let past = self.past.entry(changed.key).or_default();
        match past.last().map(|at| &mut self.changes[*at]) {
            // The key changes twice in one transaction.
            Some((other, known)) if *other == number => known.after = changed.after,
            _ => {
                past.push(self.changes.len());
                self.changes.push((number, changed));
            }
        }
    }

    fn inside(&self, keys: Interval) -> impl Iterator<Item = (&'r str, &Live)> {
        self.bounds(keys)
            .into_iter()
            .flat_map(|bounds| self.live.range::<str, _>(bounds))
            .map(|(key, live)| (*key, live))
    }

    /// The bounds of an interval; `None` if it is empty.
    fn bounds(&self, keys: Interval) -> Option<(Bound<&'r str>, Bound<&'r str>)> {
        let texts = &self.recording.texts;
        let first = texts.get(keys.key);
        match keys.end.is_some().then(|| texts.get(keys.end)) {
            None => Some((Bound::Included(first), Bound::Included(first))),
            Some("\0") => Some((Bound::Included(first), Bound::Unbounded)),
            Some(end) => (first < end).then_some((Bound::Included(first), Bound::Excluded(end))),
        }
    }

    /// The keys in a read, by name.
    fn found(&self, range: Range) -> Vec<(&'r str, Live)> {
        if range.revision <= 0 {
            return self.inside(range.keys).map(|(key, live)| (key, *live)).collect();
        }
        let of_past = |(key, past): (&&'r str, &Vec<usize>)| {
            let at = past.partition_point(|at| self.changes[*at].0 <= range.revision);
            let (_, changed) = &self.changes[*past[..at].last()?];
            Some((*key, changed.after?))
        };
        self.bounds(range.keys)
            .into_iter()
            .flat_map(|bounds| self.past.range::<str, _>(bounds))
            .filter_map(of_past)
            .collect()
    }

    fn look(&self, range: Range, result: &StepResult, in_txn: bool) -> Result<(), String> {
        let found = self.found(range);
        let pairs = result.pairs.of(&self.recording.pairs);
        if result.count != found.len() as i64 {
            return Err(format!("there are {} keys", found.len()));
        }
        // Reads in transactions have neither limit nor count-only in the recording.
        let expected = match usize::try_from(range.limit) {
            _ if range.count_only => 0,
            Ok(limit) if limit > 0 => limit.min(found.len()),
            _ => found.len(),
        };
        if pairs.len() != expected && !(in_txn && range.keys.end.is_some() && pairs.len() < expected) {
            return Err(format!("{expected} keys are expected"));
        }
        let shown = |pair: &Pair, key: &str, live: &Live| {
            self.recording.texts.get(pair.key) == key
                && pair.revision == live.changed
                && (pair.version == 0 || pair.version == live.version)
                && match range.keys_only {
                    // The first value is the empty one.
                    true => pair.value == ValueId::default(),
                    false => self.recording.values.same(pair.value, live.value) != Some(false),
                }
        };
        if pairs.iter().zip(&found).all(|(pair, (key, live))| shown(pair, key, live)) {
            return Ok(());
        }
        // Sorted by an unrecorded field, so the limit may have cut off any key.
        let mut left: BTreeMap<&str, Live> = found.into_iter().collect();
        for pair in pairs {
            let key = self.recording.texts.get(pair.key);
            match left.remove(key) {
                Some(live) if shown(pair, key, &live) => {}
                Some(live) => return Err(format!("{key} was changed at revision {}", live.changed)),
                None => return Err(format!("{key} is not in the range, or occurs twice")),
            }
        }
        match pairs.is_sorted_by_key(|pair| self.recording.texts.get(pair.key)) {
            true => Err("other keys are expected".to_owned()),
            false => Ok(()),
        }
    }

    /// Whether a condition holds; `None` if the recording lacks the compared value.
    fn holds(&self, condition: &Condition) -> Option<bool> {
        let mut found = self.inside(condition.keys).map(|(_, live)| live).peekable();
        if found.peek().is_none() {
            // A missing key has no value, and zero for every number.
            return match condition.target {
                Target::Value => Some(false),
                Target::Unknown => None,
                _ => is(condition.relation, 0.cmp(&condition.number)),
            };
        }
        let mut all = Some(true);
        for live in found {
            let one = match condition.target {
                Target::Version => is(condition.relation, live.version.cmp(&condition.number)),
                Target::CreateRevision => is(condition.relation, live.created.cmp(&condition.number)),
                Target::ModRevision => is(condition.relation, live.changed.cmp(&condition.number)),
                Target::Lease => match live.attached {
                    Attached::Nothing => is(condition.relation, 0.cmp(&condition.number)),
                    Attached::To(lease) => is(condition.relation, lease.cmp(&condition.number)),
                    Attached::NotRecorded(_) => None,
                },
                Target::Value => match (condition.relation, self.recording.values.same(live.value, condition.value)) {
                    (Relation::Equal, same) => same,
                    (Relation::NotEqual, same) => same.map(|same| !same),
                    (Relation::Greater | Relation::Less, Some(true)) => Some(false),
                    _ => None,
                },
                Target::Unknown => None,
            };
            match one {
                Some(false) => return Some(false),
                Some(true) => {}
                None => all = None,
            }
        }
        all
    }
}

fn is(relation: Relation, order: Ordering) -> Option<bool> {
    match relation {
        Relation::Equal => Some(order.is_eq()),
        Relation::NotEqual => Some(order.is_ne()),
        Relation::Greater => Some(order.is_gt()),
        Relation::Less => Some(order.is_lt()),
        Relation::Unknown => None,
    }
}

/// The replayed revisions and compactions, with their earliest times.
pub(super) struct ReplayedHistory<'r> {
    pub store: Store<'r>,
    /// Earliest time of each revision, from 2 on.
    pub earliest: Vec<Time>,
    /// Compactions: revision and earliest time; both ascending.
    pub compactions: Vec<(i64, Time)>,
    /// Acknowledged transactions that made a revision: the revision, and the time of the request.
    pub written: Vec<(i64, Time)>,
}
