//! Cases: pairs of an invariant and a resource. Output: [`Tally`], the result of one case. Trap: an invariant without an API
//! group yields one case per group.

use crate::check::Evidence;
use crate::check::facts::catalog::ScanBudget;
use crate::check::invariants::declared::reads::Reads;
use crate::history::{Declared, KeyId, ResourceId, Revision};
use crate::model::declaration::{Condition, Invariant};
use crate::order::Version;
use std::cell::Cell;
use std::collections::BTreeMap;

/// An invariant with one of its resources.
#[derive(Clone, Debug)]
pub struct Case<'h> {
    /// Its index among the declared invariants.
    pub nth: usize,
    /// The invariant.
    pub invariant: &'h Invariant,
    /// The resource.
    pub resource: ResourceId,
    /// The paths that its expression reads.
    pub reads: Reads,
}

/// The cases of a history. An invariant without an API group yields one per group.
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

/// Removes the cases of invariants beyond the limit of one run, the later ones first. Returns the indices of these invariants.
pub fn admit(evidence: &Evidence<'_>, cases: &mut Vec<Case<'_>>) -> Vec<usize> {
    let mut scan_budget = ScanBudget::of(evidence);
    let mut left_out: Vec<usize> = Vec::new();
    let mut admitted = Vec::with_capacity(cases.len());
    for of_invariant in cases.chunk_by(|a, b| a.nth == b.nth) {
        let wanted = of_invariant.iter().map(|case| evidence.versions_of(case.resource)).sum();
        let is_admitted = scan_budget.take_many(wanted);
        admitted.resize(admitted.len() + of_invariant.len(), is_admitted);
        left_out.extend((!is_admitted).then_some(of_invariant[0].nth));
    }
    let mut admitted = admitted.into_iter();
    cases.retain(|_| admitted.next() == Some(true));
    left_out
}

impl Case<'_> {
    /// Whether the invariant applies to an object; `None` if the evidence does not show it.
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

/// The result of an invariant.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Evaluations that yielded true or false, and counted.
    pub checked: u64,
    /// Evaluations without enough evidence, by reason.
    pub unseen: BTreeMap<&'static str, u64>,
    /// Evaluations that failed, by reason.
    pub failed: BTreeMap<String, u64>,
    /// The reason why it was given up, if it was.
    pub given_up: Option<&'static str>,
    /// Failures, in the revision order.
    pub failures: Vec<Failure>,
    /// The count of further failures.
    pub unlisted: u64,
}

/// Upper bound on the failures of all invariants that are kept.
const MAX_KEPT_FAILURES: u64 = 200_000;

/// The remaining number of failures that may be kept.
#[derive(Debug)]
pub struct FailureLimit(Cell<u64>);

impl Default for FailureLimit {
    fn default() -> FailureLimit {
        FailureLimit(Cell::new(MAX_KEPT_FAILURES))
    }
}

/// Upper bound on distinct reasons. Their texts can come from the evidence.
const MAX_REASONS: usize = 8;

impl Tally {
    /// Records a failure.
    pub fn is_false(&mut self, failure: Failure, failure_limit: &FailureLimit) {
        match failure_limit.0.get().checked_sub(1) {
            Some(left) => {
                failure_limit.0.set(left);
                self.failures.push(failure);
            }
            None => self.unlisted += 1,
        }
    }

    /// Records an evaluation that failed.
    pub fn failed(&mut self, reason: String) {
        let known = self.failed.contains_key(&reason) || self.failed.len() < MAX_REASONS;
        *self.failed.entry(if known { reason } else { "for other reasons".to_owned() }).or_default() += 1;
    }

    /// Records a version without enough evidence for an evaluation.
    pub fn unseen(&mut self, reason: &'static str) {
        *self.unseen.entry(reason).or_default() += 1;
    }
}

/// An interval of the revision order in which an invariant is false.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The object, or the group of objects.
    pub of: Place,
    /// The first revision.
    pub from: Revision,
    /// The last revision at which it certainly was false.
    pub through: Revision,
    /// Whether the failure is proved, not only possible.
    pub is_certain: bool,
    /// The versions that make it false: one, two of a change (the earlier first), or some of several objects.
    pub versions: Vec<Version>,
    /// The version of the same object before the first of them, if the invariant was true of it.
    pub before: Option<Version>,
    /// The version that ended the failure.
    pub ended: Option<Version>,
    /// The revision of the list that proves that there are no other objects, if the failure rests on that.
    pub complete: Option<Revision>,
    /// The message of the invariant.
    pub message: Option<String>,
}

/// The subject of a failure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// An object.
    Key(KeyId),
    /// The objects of a resource with these values.
    Group(ResourceId, Vec<String>),
}
