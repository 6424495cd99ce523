//! The premises of all writes of one pass, computed incrementally in order of writes. Invariant: the result equals
//! [`Pass::premises`] for every write that is asked for.

use super::{Pass, Premise};
use crate::history::{History, KeyId, Outcome};
use crate::ingest::Time;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A value of type `T` for each premise of the current write of a pass.
#[derive(Debug)]
pub struct Premises<'p, T> {
    /// The pass that all writes belong to.
    pub pass: &'p Pass,
    /// How many reads, writes and refused creates were processed.
    taken: (usize, usize, usize),
    /// When the pass last wrote each key.
    own: FxHashMap<KeyId, Time>,
    /// By key, the index of the read that is its premise.
    places: FxHashMap<KeyId, usize>,
    /// The values by index of the read.
    all: BTreeMap<usize, T>,
}

impl<'p, T: Copy> Premises<'p, T> {
    /// Before the first write.
    pub fn new(pass: &'p Pass) -> Self {
        Premises {
            pass,
            taken: (0, 0, 0),
            own: FxHashMap::default(),
            places: FxHashMap::default(),
            all: BTreeMap::new(),
        }
    }

    /// The values for the premises of the nth write: see [`Pass::premises`]. `nth` must not fall from one call to the next.
    pub fn of(&mut self, history: &History, nth: usize, make: impl Fn(Premise) -> T) -> Option<Vec<T>> {
        let pass = self.pass;
        if !pass.closed {
            return Some(pass.premises(history, nth)?.into_iter().map(make).collect());
        }
        let steps = pass.before(history, nth);
        let refused = pass.refused_beside(history, nth, steps);
        for (time, key) in &refused[self.taken.2.min(refused.len())..] {
            self.wrote(*key, *time);
        }
        for id in &pass.writes[self.taken.1..nth] {
            let written = history.operation(*id);
            if written.outcome() != Outcome::Rejected {
                self.wrote(written.key, written.invoke);
            }
        }
        for (at, step) in steps.iter().enumerate().skip(self.taken.0) {
            let Some(premise) = pass.read(history, step) else { continue };
            if let Some(before) = self.places.remove(&premise.key) {
                self.all.remove(&before);
            }
            if self.own.get(&premise.key).is_none_or(|written| step.time > *written) {
                self.places.insert(premise.key, at);
                self.all.insert(at, make(premise));
            }
        }
        self.taken = (steps.len(), nth, refused.len());
        Some(self.all.values().copied().collect())
    }

    /// A key that the pass wrote is no premise until the pass reads it again.
    fn wrote(&mut self, key: KeyId, time: Time) {
        let last = self.own.entry(key).or_insert(time);
        *last = time.max(*last);
        if let Some(&at) = self.places.get(&key)
            && self.pass.reads[at].time <= *last
        {
            self.places.remove(&key);
            self.all.remove(&at);
        }
    }
}
