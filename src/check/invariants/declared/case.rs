//! Which invariant speaks of which objects, and what it came to.

use crate::check::Evidence;
use crate::check::facts::catalog::Looks;
use crate::check::invariants::declared::reads::Reads;
use crate::history::{Declared, KeyId, ResourceId, Revision};
use crate::model::declaration::{Condition, Invariant};
use crate::order::Version;
use std::cell::Cell;
use std::collections::BTreeMap;

/// An invariant and a resource that it speaks of.
#[derive(Clone, Debug)]
pub struct Case<'h> {
    /// Its place among the declared invariants.
    pub nth: usize,
    /// The invariant.
    pub invariant: &'h Invariant,
    /// A resource that it speaks of.
    pub resource: ResourceId,
    /// What its expression reads.
    pub reads: Reads,
}

/// The cases of a history: where an invariant leaves the group open, one a group.
pub fn of<'h>(evidence: &Evidence<'h>) -> Vec<Case<'h>> {
    let mut cases = Vec::new();
    for (nth, invariant) in evidence.options.declarations.invariants.iter().enumerate() {
        for resource in evidence.resources_named(&invariant.resource) {
            let reads = Reads::of(evidence.history, invariant);
            cases.push(Case { nth, invariant, resource, reads });
        }
    }
    cases
}

/// Leaves out the cases of invariants of which there are more than a run looks at: the later ones. Returns which invariants those are.
pub fn admit(evidence: &Evidence<'_>, cases: &mut Vec<Case<'_>>) -> Vec<usize> {
    let mut looks = Looks::of(evidence);
    let mut left_out: Vec<usize> = Vec::new();
    let mut admitted = Vec::with_capacity(cases.len());
    for of_invariant in cases.chunk_by(|a, b| a.nth == b.nth) {
        let wanted = of_invariant.iter().map(|case| evidence.versions_of(case.resource)).sum();
        let is_admitted = looks.take_many(wanted);
        admitted.resize(admitted.len() + of_invariant.len(), is_admitted);
        left_out.extend((!is_admitted).then_some(of_invariant[0].nth));
    }
    let mut admitted = admitted.into_iter();
    cases.retain(|_| admitted.next() == Some(true));
    left_out
}

impl Case<'_> {
    /// Whether an object is one that the invariant speaks of; `None` where the evidence does not show it.
    pub fn selects(&self, evidence: &Evidence<'_>, key: KeyId, declared: Option<&Declared<'_>>) -> Option<bool> {
        let history = evidence.history;
        if !self.invariant.speaks_of(history.name(history.keys[key.index()].namespace)) {
            return Some(false);
        }
        let met = |condition: &Condition| {
            let declared = declared.filter(|declared| declared.shows(&condition.path))?;
            Some(condition.admits(declared.shown(&condition.path).as_deref()))
        };
        let mut known = true;
        for (conditions, wanted) in [(&self.invariant.when, true), (&self.invariant.unless, false)] {
            for condition in conditions {
                match met(condition) {
                    Some(met) if met != wanted => return Some(false),
                    Some(_) => {}
                    None => known = false,
                }
            }
        }
        known.then_some(true)
    }
}

/// What an invariant came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Evaluations that came to true or false, and counted.
    pub checked: u64,
    /// What could not be evaluated for want of evidence, by reason.
    pub unseen: BTreeMap<&'static str, u64>,
    /// Evaluations that failed, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Why it was given up, if it was.
    pub given_up: Option<&'static str>,
    /// Where it is false, in the order of T.
    pub failures: Vec<Failure>,
    /// How often it is false besides.
    pub unlisted: u64,
}

/// Failures of all invariants that are kept.
const KEPT: u64 = 200_000;

/// How many more failures may be kept.
#[derive(Debug)]
pub struct Room(Cell<u64>);

impl Default for Room {
    fn default() -> Room {
        Room(Cell::new(KEPT))
    }
}

/// Reasons that are told apart; what they name can come from the evidence.
const REASONS: usize = 8;

impl Tally {
    /// It is false somewhere.
    pub fn is_false(&mut self, failure: Failure, room: &Room) {
        match room.0.get().checked_sub(1) {
            Some(left) => {
                room.0.set(left);
                self.failures.push(failure);
            }
            None => self.unlisted += 1,
        }
    }

    /// An evaluation failed.
    pub fn failed(&mut self, reason: String) {
        let known = self.failed.contains_key(&reason) || self.failed.len() < REASONS;
        *self.failed.entry(if known { reason } else { "for other reasons".to_owned() }).or_default() += 1;
    }

    /// Something could not be evaluated for want of evidence.
    pub fn unseen(&mut self, reason: &'static str) {
        *self.unseen.entry(reason).or_default() += 1;
    }
}

/// A stretch of T in which an invariant is false.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Of what.
    pub of: Place,
    /// From the revision of this version on.
    pub from: Revision,
    /// The last revision at which it certainly was false.
    pub through: Revision,
    /// Whether it is proved, not only possible.
    pub is_certain: bool,
    /// The versions that make it false: one, two of a change (the earlier first), or some of several objects.
    pub versions: Vec<Version>,
    /// The version of the same object before the first of them, of which it was true.
    pub before: Option<Version>,
    /// The version that ended it.
    pub ended: Option<Version>,
    /// The revision of the list on which it rests that there are no other objects.
    pub complete: Option<Revision>,
    /// What the invariant says about it.
    pub message: Option<String>,
}

/// What an invariant is false of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An object.
    Key(KeyId),
    /// The objects of a resource with these values.
    Group(ResourceId, Vec<String>),
}
