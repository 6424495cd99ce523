//! Constraints on the state at a revision, from answers and events. Only those that the search can check early, by keys.

use super::super::effects::Class;
use super::super::store::covers;
use super::Known;
use super::state::{Keys, State, holds};
use crate::history::Symbol;
use crate::history::etcd::{Interval, Operation, Range, Request, Span, Step, StepResult, Txn, ValueId};

/// A constraint on a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constraint {
    /// A key exists.
    There {
        /// The key.
        key: u32,
        /// Its mod revision; 0 if not shown.
        changed: i64,
        /// Its version counter; 0 if not shown.
        version: i64,
        /// Its value, if shown.
        value: Option<ValueId>,
    },
    /// A key does not exist.
    Absent {
        /// The key.
        key: u32,
    },
    /// The conditions of a transaction all hold, or do not.
    Decided {
        /// The conditions.
        conditions: Span,
        /// Whether all hold.
        success: bool,
    },
    /// This number of keys exists.
    Count {
        /// The interval of keys.
        keys: Interval,
        /// The number of keys.
        count: i64,
    },
}

impl Constraint {
    /// Whether a state satisfies the constraint; `true` if unknown.
    pub fn fits(&self, known: Known<'_>, keys: &Keys, state: &State) -> bool {
        match *self {
            Constraint::There { key, changed, version, value } => state[key as usize].is_some_and(|cell| {
                (changed == 0 || cell.changed == changed)
                    && (version <= 0 || cell.version == version)
                    && value.is_none_or(|value| known.recording.values.same(cell.value, value) != Some(false))
            }),
            Constraint::Absent { key } => state[key as usize].is_none(),
            Constraint::Decided { conditions, success } => {
                holds(known, keys, state, conditions).is_none_or(|holds| holds == success)
            }
            Constraint::Count { keys: interval, count } => {
                let inside = |at: &usize| state[*at].is_some() && covers(known.recording, interval, keys.names[*at]);
                (0..state.len()).filter(inside).count() as i64 == count
            }
        }
    }

    /// The keys that the constraint is about.
    pub fn keys(&self, known: Known<'_>, keys: &Keys) -> Vec<u32> {
        match *self {
            Constraint::There { key, .. } | Constraint::Absent { key } => vec![key],
            Constraint::Decided { conditions, .. } => {
                let conditions = conditions.of(&known.recording.requests.conditions).iter();
                conditions.filter_map(|condition| keys.find(condition.keys.key)).collect()
            }
            Constraint::Count { keys: interval, .. } => {
                let inside = |at: &u32| covers(known.recording, interval, keys.names[*at as usize]);
                (0..keys.names.len() as u32).filter(inside).collect()
            }
        }
    }
}

/// Collects constraints with the revisions that they are about.
pub struct Constraints<'a> {
    known: Known<'a>,
    keys: &'a Keys,
    /// The lowest revision of interest.
    from: i64,
    /// Revision and constraint.
    pub all: Vec<(i64, Constraint)>,
}

impl<'a> Constraints<'a> {
    /// Collects the constraints of all answers and events.
    pub fn of(known: Known<'a>, keys: &'a Keys, from: i64) -> Constraints<'a> {
        let mut claims = Constraints { known, keys, from, all: Vec::new() };
        for (at, operation) in (0..).zip(&known.recording.operations) {
            if operation.revision < from {
                continue;
            }
            match operation.request {
                Request::Range(range) => {
                    let asked = if range.revision > 0 { range.revision } else { operation.revision };
                    let Some(found) = operation.results.of(&known.recording.results).first() else { continue };
                    claims.read(asked, &range, found, false);
                }
                Request::Txn(txn) => claims.txn(at, operation, txn),
                _ => {}
            }
        }
        claims.deliveries();
        claims
    }

    fn add(&mut self, revision: i64, claim: Constraint) {
        if revision >= self.from {
            self.all.push((revision, claim));
        }
    }

    fn txn(&mut self, at: u32, operation: &Operation, txn: Txn) {
        let recording = self.known.recording;
        let before = match self.known.effects.class(at) {
            Class::Write => operation.revision - 1,
            Class::Same => operation.revision,
            _ => return,
        };
        let conditions = txn.conditions.of(&recording.requests.conditions);
        let known = |key: Symbol| self.keys.find(key).is_some();
        if !conditions.is_empty() && conditions.iter().all(|c| !c.keys.end.is_some() && known(c.keys.key)) {
            self.add(before, Constraint::Decided { conditions: txn.conditions, success: !operation.failure });
        }
        let steps = txn.taken(!operation.failure).of(&recording.requests.steps);
        let told = || steps.iter().zip(operation.results.of(&recording.results));
        for (step, result) in told() {
            if let Step::Range(range) = step
                && range.revision > 0
            {
                self.read(range.revision, range, result, true);
            }
        }
        // After a step with changes, the state is another one.
        for (step, result) in told() {
            match step {
                Step::Range(range) if range.revision <= 0 => self.read(before, range, result, true),
                Step::Range(_) => {}
                Step::Delete(keys) if !keys.end.is_some() => {
                    let removes = result.deleted > 0;
                    if let Some(key) = self.keys.find(keys.key) {
                        let there = Constraint::There { key, changed: 0, version: 0, value: None };
                        self.add(before, if removes { there } else { Constraint::Absent { key } });
                    }
                    if removes {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    fn read(&mut self, at: i64, range: &Range, found: &StepResult, of_txn: bool) {
        if at < self.from {
            return;
        }
        let recording = self.known.recording;
        let pairs = found.pairs.of(&recording.pairs);
        for pair in pairs {
            if let Some(key) = self.keys.find(pair.key) {
                let value = (!range.keys_only).then_some(pair.value);
                self.add(at, Constraint::There { key, changed: pair.revision, version: pair.version, value });
            }
        }
        if range.count_only {
            return self.count(at, range.keys, found.count);
        }
        let single = !range.keys.end.is_some();
        if single {
            if pairs.is_empty()
                && let Some(key) = self.keys.find(range.keys.key)
            {
                self.add(at, Constraint::Absent { key });
            }
            return;
        }
        // The limits of reads in transactions are not recorded.
        let cut = of_txn || (range.limit > 0 && pairs.len() as i64 >= range.limit);
        let last = pairs.iter().map(|pair| recording.texts.get(pair.key)).max();
        for (key, name) in (0..).zip(&self.keys.names) {
            let text = recording.texts.get(*name);
            let shown = !cut || last.is_some_and(|last| text <= last);
            if shown && covers(recording, range.keys, *name) && !pairs.iter().any(|pair| pair.key == *name) {
                self.all.push((at, Constraint::Absent { key }));
            }
        }
        self.count(at, range.keys, found.count);
    }

    fn count(&mut self, at: i64, keys: Interval, count: i64) {
        if self.keys.all {
            self.add(at, Constraint::Count { keys, count });
        }
    }

    /// Adds what events show of the state before them.
    fn deliveries(&mut self) {
        let recording = self.known.recording;
        let marks_creation = recording.events.iter().any(|event| event.create);
        for event in &recording.events {
            let Some(key) = self.keys.find(event.key) else { continue };
            let before = event.revision - 1;
            if let Some(previous) = event.previous {
                let value = Some(previous.value);
                self.add(
                    before,
                    Constraint::There { key, changed: previous.revision, version: previous.version, value },
                );
            } else if event.delete {
                self.add(before, Constraint::There { key, changed: 0, version: 0, value: None });
            } else if marks_creation && event.create {
                self.add(before, Constraint::Absent { key });
            }
        }
    }
}
