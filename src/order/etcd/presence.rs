//! Intervals in which answers and events show a key unchanged although some revisions in between are unknown. A read at revision
//! 7 that shows a key with mod revision 2 proves that it existed unchanged at every revision from 2 through 7. A condition that
//! an acknowledged transaction found true proves the same. No values are compared, so this holds for unrecorded values too.

use super::effects::{Class, Effects};
use super::store::FIRST_CHANGE;
use super::timeline::Timeline;
use crate::history::Symbol;
use crate::history::etcd::{Condition, Operation, Outcome, Recording, Relation, Request, Step, Target, Txn};
use rustc_hash::FxHashMap;

/// The evidence that a key existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teller {
    /// The answer to an operation.
    Operation(u32),
    /// An event: its watch, and the event.
    Event(u32, u32),
}

/// An interval of revisions at which a key existed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The first revision.
    pub from: i64,
    /// The last revision.
    pub through: i64,
    /// The revision of its last change, the same in the whole interval; 0 if unknown.
    pub changed: i64,
    /// The evidence.
    pub by: Teller,
}

/// All such intervals.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// By key, ascending; each with the interval so far that reaches furthest.
    of_key: FxHashMap<Symbol, Vec<(Stay, Stay)>>,
}

/// The intervals during collection.
struct Shown<'t> {
    timeline: &'t Timeline,
    /// By key, first revision and last change, the interval that reaches furthest.
    stays: FxHashMap<(Symbol, i64, i64), Stay>,
}

impl Presence {
    /// Collects the evidence of all answers and events.
    pub fn of(recording: &Recording, effects: &Effects, timeline: &Timeline) -> Presence {
        let mut shown = Shown { timeline, stays: FxHashMap::default() };
        for (at, operation) in (0..).zip(&recording.operations) {
            let lost = timeline.may_be_lost(operation.revision, operation.returned);
            if operation.outcome == Outcome::Answered && operation.revision > 0 && !lost {
                shown.answer(recording, effects, at, operation);
            }
        }
        for (at, watch) in (0..).zip(&recording.watches) {
            for response in watch.responses.of(&recording.responses) {
                for e in response.events.start..response.events.start + response.events.len {
                    let event = &recording.events[e as usize];
                    if timeline.may_be_lost(event.revision, response.time) {
                        continue;
                    }
                    let (by, before) = (Teller::Event(at, e), event.revision - 1);
                    match event.previous {
                        Some(previous) => shown.unchanged(event.key, previous.revision, before, by),
                        None if event.delete => shown.there(event.key, before, before, by),
                        None => {}
                    }
                }
            }
        }
        let mut of_key: FxHashMap<Symbol, Vec<(Stay, Stay)>> = FxHashMap::default();
        for ((key, ..), stay) in shown.stays {
            of_key.entry(key).or_default().push((stay, stay));
        }
        for stays in of_key.values_mut() {
            stays.sort_by_key(|(stay, _)| (stay.from, stay.changed, stay.through));
            for at in 1..stays.len() {
                let before = stays[at - 1].1;
                if before.through > stays[at].1.through {
                    stays[at].1 = before;
                }
            }
        }
        Presence { of_key }
    }

    /// An interval that shows a key to exist at a revision.
    pub fn there(&self, key: Symbol, at: i64) -> Option<Stay> {
        let stays = self.of_key.get(&key)?;
        let begun = stays.partition_point(|(stay, _)| stay.from <= at);
        stays[..begun].last().map(|(_, furthest)| *furthest).filter(|stay| stay.through >= at)
    }

    /// Whether a condition on one key is true or false at a revision, with the evidence; `None` if that is not shown.
    pub fn decides(&self, condition: &Condition, at: i64) -> Option<(bool, Stay)> {
        let stay = self.there(condition.keys.key, at).filter(|_| !condition.keys.end.is_some())?;
        let number = match condition.target {
            Target::ModRevision if stay.changed > 0 => {
                return compares(condition.relation, stay.changed, condition.number).map(|holds| (holds, stay));
            }
            Target::ModRevision | Target::Version | Target::CreateRevision => condition.number,
            Target::Value | Target::Lease | Target::Unknown => return None,
        };
        // The field is known only to be above zero.
        match condition.relation {
            Relation::Equal if number <= 0 => Some((false, stay)),
            Relation::NotEqual | Relation::Greater if number <= 0 => Some((true, stay)),
            Relation::Less if number <= 1 => Some((false, stay)),
            _ => None,
        }
    }
}

fn compares(relation: Relation, found: i64, number: i64) -> Option<bool> {
    match relation {
        Relation::Equal => Some(found == number),
        Relation::NotEqual => Some(found != number),
        Relation::Greater => Some(found > number),
        Relation::Less => Some(found < number),
        Relation::Unknown => None,
    }
}

impl Shown<'_> {
    fn add(&mut self, key: Symbol, stay: Stay) {
        // Without unknown revisions the timeline decides by itself.
        if self.timeline.known_between(stay.from - 1, stay.through) {
            return;
        }
        let here = self.stays.entry((key, stay.from, stay.changed)).or_insert(stay);
        if here.through < stay.through {
            *here = stay;
        }
    }

    /// Adds that a key was last changed at a revision, seen at a later one.
    fn unchanged(&mut self, key: Symbol, changed: i64, through: i64, by: Teller) {
        if (FIRST_CHANGE..=through).contains(&changed) {
            self.add(key, Stay { from: changed, through, changed, by });
        }
    }

    /// Adds that a key existed at all revisions of an interval.
    fn there(&mut self, key: Symbol, from: i64, through: i64, by: Teller) {
        if (FIRST_CHANGE..=through).contains(&from) {
            self.add(key, Stay { from, through, changed: 0, by });
        }
    }

    fn answer(&mut self, recording: &Recording, effects: &Effects, at: u32, operation: &Operation) {
        let state = match (operation.request, effects.class(at)) {
            (Request::Range(range), _) if range.revision > 0 => range.revision.min(operation.revision),
            (Request::Range(_), _) | (Request::Txn(_), Class::Same) => operation.revision,
            (Request::Txn(_), Class::Write) => operation.revision - 1,
            _ => return,
        };
        let steps = match operation.request {
            Request::Txn(txn) => txn.taken(!operation.failure).of(&recording.requests.steps),
            _ => &[],
        };
        for (n, result) in operation.results.of(&recording.results).iter().enumerate() {
            if matches!(steps.get(n), Some(Step::Range(range)) if range.revision > 0) {
                continue;
            }
            // A pair that the transaction itself wrote has a revision above the state before it.
            for pair in result.pairs.of(&recording.pairs) {
                self.unchanged(pair.key, pair.revision, state, Teller::Operation(at));
            }
            if let Some(Step::Delete(keys)) = steps.get(n)
                && result.deleted == 1
                && !keys.end.is_some()
            {
                self.there(keys.key, state, state, Teller::Operation(at));
            }
        }
        if let Request::Txn(txn) = operation.request {
            self.conditions(recording, at, operation, txn, state);
        }
    }

    /// Adds what the branch of a transaction shows of the state before it.
    fn conditions(&mut self, recording: &Recording, at: u32, operation: &Operation, txn: Txn, state: i64) {
        let by = Teller::Operation(at);
        for condition in txn.conditions.of(&recording.requests.conditions) {
            let key = condition.keys.key;
            if condition.keys.end.is_some() || (operation.failure && txn.conditions.len > 1) {
                continue;
            }
            match (condition.target, condition.relation, operation.failure) {
                (Target::ModRevision, Relation::Equal, false) if condition.number > 0 => {
                    self.unchanged(key, condition.number, state, by);
                }
                // A key with this create revision existed ever since.
                (Target::CreateRevision, Relation::Equal, false) if condition.number > 0 => {
                    self.there(key, condition.number, state, by);
                }
                (Target::Version, Relation::Equal, false) if condition.number > 0 => self.there(key, state, state, by),
                (Target::ModRevision | Target::Version | Target::CreateRevision, relation, failure)
                    if condition.number == 0
                        && (relation == Relation::Equal && failure
                            || matches!(relation, Relation::Greater | Relation::NotEqual) && !failure) =>
                {
                    self.there(key, state, state, by);
                }
                // An absent key has no value to compare.
                (Target::Value, _, false) => self.there(key, state, state, by),
                _ => {}
            }
        }
    }
}
