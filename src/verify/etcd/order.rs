//! Replays an order of operations.

use super::flaw::EtcdFlaw;
use super::log::Logged;
use super::store::{Applied, RecordedAnswer, ReplayedHistory, Store};
use super::watches;
use crate::history::etcd::{Operation, Outcome, Recording, Request};
use crate::ingest::Time;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A step of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An operation takes effect and is answered.
    Operation(u32),
    /// A lease ends on its own.
    Expiry(i64),
}

/// The result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Number of operations in the order.
    pub operations: usize,
    /// Number of leases that ended on their own.
    pub expired: usize,
    /// Number of operations outside the order.
    pub never: usize,
    /// Number of conditions presumed to hold as the order needs it, since the compared values were not recorded.
    pub not_compared: u64,
}

/// An answer "compacted" without such a compaction earlier in the order.
struct Excused {
    operation: u32,
    /// A compaction above this revision would explain it.
    above: i64,
    flaw: EtcdFlaw,
}

/// Checks that an order explains a recording. Every answered operation occurs once, no refused one, and each of unknown outcome
/// at most once and with an effect. No operation follows one that was sent after its return. Every answer and revision is etcd's
/// at that place. Every watch received exactly the events it asked for, none before its time. `removed` has the keys that ends of
/// leases removed, by revision, since the leases of puts in transactions are not recorded.
///
/// Requests without recorded content are left out. Of members' logs only compactions are used, and only to excuse answers that
/// nothing else explains.
///
/// # Errors
/// The first flaw.
pub fn replay(
    recording: &Recording,
    order: &[Step],
    removed: &BTreeMap<i64, Vec<&str>>,
) -> Result<Explained, EtcdFlaw> {
    let operations = &recording.operations;
    let mut granted: HashSet<i64> = HashSet::new();
    let mut asked: HashMap<i64, Vec<usize>> = HashMap::new();
    for operation in operations {
        if let Request::LeaseGrant { lease, .. } = operation.request {
            match operation.outcome {
                Outcome::Answered => drop(granted.insert(lease)),
                Outcome::Unknown => {
                    asked.entry(lease).or_default().push(first_place(operations, order, operation.call))
                }
                _ => {}
            }
        }
    }
    let mut replay = Replay {
        recording,
        removed: removed
            .iter()
            .map(|(revision, keys)| (*revision, keys.iter().filter_map(|key| known(recording, key)).collect()))
            .collect(),
        history: ReplayedHistory {
            store: Store::new(recording, granted, asked),
            earliest: Vec::new(),
            compactions: Vec::new(),
            written: Vec::new(),
        },
        excused: Vec::new(),
        placed: vec![false; operations.len()],
        latest: None,
        now: Time(i64::MIN),
    };
    let mut expired = 0;
    for (place, step) in order.iter().enumerate() {
        replay.history.store.step = place;
        match *step {
            Step::Operation(at) => replay.operation(place, at)?,
            Step::Expiry(lease) => {
                replay.expiry(place, lease)?;
                expired += 1;
            }
        }
        let revision = replay.history.store.revision;
        replay.history.earliest.resize(usize::try_from(revision - 1).unwrap_or(0), replay.now);
    }
    let missing =
        (0..).zip(operations).zip(&replay.placed).find(|((_, operation), placed)| !**placed && must_happen(operation));
    if let Some(((operation, _), _)) = missing {
        return Err(EtcdFlaw::Missing { operation });
    }
    let logged = Logged::of(recording, &replay.history);
    for Excused { operation, above, flaw } in replay.excused {
        let Operation { returned, .. } = operations[operation as usize];
        if above >= logged.through(returned) {
            return Err(flaw);
        }
    }
    watches::check(recording, &replay.history, &logged)?;
    stores(recording, &replay.history)?;
    let placed = replay.placed.iter().filter(|placed| **placed).count();
    let never = operations.len() - placed;
    Ok(Explained { operations: placed, expired, never, not_compared: replay.history.store.not_compared })
}

/// The first place in an order after which all operations returned at or after `call`, so that a request sent then may have
/// happened.
fn first_place(operations: &[Operation], order: &[Step], call: Time) -> usize {
    let over = |step: &Step| match *step {
        Step::Operation(at) => operations.get(at as usize).is_some_and(|operation| {
            operation.outcome != Outcome::Unknown && operation.returned.is_known() && operation.returned < call
        }),
        Step::Expiry(_) => false,
    };
    order.iter().rposition(over).map_or(0, |place| place + 1)
}

/// A key in the recording, if it has one with this text.
fn known<'r>(recording: &'r Recording, key: &str) -> Option<&'r str> {
    recording.texts.find(key).map(|symbol| recording.texts.get(symbol))
}

/// Whether an operation's answer requires a place in the order.
fn must_happen(operation: &Operation) -> bool {
    match (operation.outcome, operation.request) {
        (_, Request::Other) | (Outcome::Refused | Outcome::Unknown, _) => false,
        (Outcome::Answered, _) => true,
        (Outcome::Compacted | Outcome::Future, request) => {
            matches!(request, Request::Range(_) | Request::Compact { .. })
        }
    }
}

struct Replay<'r> {
    recording: &'r Recording,
    removed: BTreeMap<i64, Vec<&'r str>>,
    history: ReplayedHistory<'r>,
    /// Answers that only a compaction in members' logs explains.
    excused: Vec<Excused>,
    placed: Vec<bool>,
    /// The latest sent operation so far. A later one in the order must not have returned before that.
    latest: Option<u32>,
    /// The time at which it was sent, the earliest time of everything after it.
    now: Time,
}

impl<'r> Replay<'r> {
    fn operation(&mut self, place: usize, at: u32) -> Result<(), EtcdFlaw> {
        let recording = self.recording;
        let Some(operation) = recording.operations.get(at as usize) else {
            return Err(EtcdFlaw::NoSuchOperation { operation: at, operations: recording.operations.len() });
        };
        if std::mem::replace(&mut self.placed[at as usize], true) {
            return Err(EtcdFlaw::Twice { operation: at });
        }
        if !must_happen(operation) && operation.outcome != Outcome::Unknown {
            return Err(EtcdFlaw::Failed { operation: at });
        }
        self.time(at, operation)?;
        if operation.outcome == Outcome::Unknown {
            self.effect(place, at, operation)
        } else {
            self.answer(place, at, operation)
        }
    }

    /// Intervals are closed: a return at the time of a call is concurrent with the call.
    fn time(&mut self, at: u32, operation: &Operation) -> Result<(), EtcdFlaw> {
        let returned = if operation.outcome != Outcome::Unknown && operation.returned.is_known() {
            operation.returned
        } else {
            Time(i64::MAX)
        };
        if let Some(first) = self.latest.filter(|_| returned < self.now) {
            return Err(EtcdFlaw::Backwards { first, second: at });
        }
        // A serializable read may show an old state.
        let may_be_old = matches!(operation.request, Request::Range(range) if range.serializable);
        if operation.call > self.now && !may_be_old {
            self.now = operation.call;
            self.latest = Some(at);
        }
        Ok(())
    }

    /// Applies a request of unknown outcome, which must have an effect.
    fn effect(&mut self, place: usize, at: u32, operation: &Operation) -> Result<(), EtcdFlaw> {
        let before = (self.history.store.revision, self.history.store.compacted);
        let applied = match operation.request {
            Request::Txn(txn) => {
                self.history.store.txn(txn, None).map_err(|why| EtcdFlaw::Answer { operation: at, place, why })?
            }
            Request::LeaseRevoke { lease } => self.end(lease, true)?,
            Request::Compact { revision } => self.compact(revision),
            Request::Range(_) | Request::LeaseGrant { .. } | Request::Defragment | Request::Other => Applied::Done,
        };
        match applied {
            Applied::Refused(why) => Err(EtcdFlaw::NoEffect { operation: at, place, why }),
            Applied::Done if before == (self.history.store.revision, self.history.store.compacted) => {
                Err(EtcdFlaw::NoEffect { operation: at, place, why: "it changes nothing" })
            }
            Applied::Done => Ok(()),
        }
    }

    fn answer(&mut self, place: usize, at: u32, operation: &Operation) -> Result<(), EtcdFlaw> {
        let recording = self.recording;
        let wrong = |why: String| EtcdFlaw::Answer { operation: at, place, why };
        let store = &mut self.history.store;
        if operation.outcome != Outcome::Answered {
            let compacts = matches!(operation.request, Request::Compact { .. });
            let (asked, missing) = match operation.request {
                Request::Range(range) => (range.revision, range.revision < store.compacted),
                Request::Compact { revision } => (revision, revision <= store.compacted),
                _ => return Ok(()),
            };
            let flaw = wrong(format!("the store is at {}, compacted through {}", store.revision, store.compacted));
            return match operation.outcome {
                // The latest state is never compacted; negative revisions of reads mean it too.
                Outcome::Compacted if asked > 0 || compacts => {
                    if !missing {
                        let above = if compacts { asked.saturating_sub(1) } else { asked };
                        self.excused.push(Excused { operation: at, above, flaw });
                    }
                    Ok(())
                }
                Outcome::Future if asked > store.revision => Ok(()),
                _ => Err(flaw),
            };
        }
        let results = operation.results.of(&recording.results);
        let applied = match operation.request {
            Request::Range(range) => {
                let Some(result) = results.first() else { return Err(wrong("the answer has no result".to_owned())) };
                store.range(range, result).map_err(wrong)?;
                Applied::Done
            }
            Request::Txn(txn) => {
                let answer = RecordedAnswer { failure: operation.failure, results };
                let before = store.revision;
                let applied = store.txn(txn, Some(answer)).map_err(wrong)?;
                if store.revision > before && operation.call.is_known() {
                    self.history.written.push((self.history.store.revision, operation.call));
                }
                applied
            }
            Request::LeaseGrant { lease, .. } => store.grant(lease),
            Request::LeaseRevoke { lease } => self.end(lease, operation.revision > self.history.store.revision)?,
            Request::Compact { revision } => self.compact(revision),
            Request::Defragment | Request::Other => Applied::Done,
        };
        let revision = self.history.store.revision;
        let counts = !matches!(operation.request, Request::Compact { .. } | Request::Defragment);
        match applied {
            Applied::Refused(why) => Err(wrong(why.to_owned())),
            Applied::Done if counts && operation.revision != revision => Err(wrong(format!(
                "the store is at revision {revision}, but the recorded answer names {}",
                operation.revision
            ))),
            Applied::Done => Ok(()),
        }
    }

    fn compact(&mut self, through: i64) -> Applied {
        let applied = self.history.store.compact(through);
        if matches!(applied, Applied::Done) {
            self.history.compactions.push((through, self.now));
        }
        applied
    }

    /// Ends a lease. `removes`: whether it makes the next revision, removing the keys recorded for it.
    fn end(&mut self, lease: i64, removes: bool) -> Result<Applied, EtcdFlaw> {
        let next = self.history.store.revision + 1;
        let others = self.removed.get(&next).filter(|_| removes).map_or(&[][..], Vec::as_slice);
        self.history.store.end(lease, others)
    }

    fn expiry(&mut self, place: usize, lease: i64) -> Result<(), EtcdFlaw> {
        let before = self.history.store.revision;
        let applied = self.end(lease, true)?;
        match applied {
            Applied::Done if self.history.store.revision > before => Ok(()),
            _ => Err(EtcdFlaw::NoTrace { lease, place }),
        }
    }
}

/// Compares the stores of members with the order.
fn stores(recording: &Recording, replayed: &ReplayedHistory<'_>) -> Result<(), EtcdFlaw> {
    for member in &recording.members {
        for stored in member.store.iter().flat_map(|store| &store.revisions) {
            let key = recording.texts.get(stored.key);
            let first = replayed.store.changes.partition_point(|(revision, _)| *revision < stored.main);
            let here = replayed.store.changes[first..].iter().take_while(|(revision, _)| *revision == stored.main);
            let after =
                here.map(|(_, changed)| changed).find(|changed| changed.key == key).map(|changed| changed.after);
            let fits = match after {
                Some(Some(live)) => {
                    !stored.tombstone
                        && (live.created, live.version) == (stored.create_revision, stored.version)
                        && recording.values.same(live.value, stored.value) != Some(false)
                }
                Some(None) => stored.tombstone,
                None => false,
            };
            if !fits {
                return Err(EtcdFlaw::Store { member: member.name.clone(), revision: stored.main });
            }
        }
    }
    Ok(())
}
