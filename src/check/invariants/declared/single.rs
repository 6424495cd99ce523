//! Invariants of one object, and of one change of it. Input: the versions of each key, in order. Output: tallies per case.
//! Each version is evaluated once, and not at all if the paths of the expression did not change.

use crate::check::Limits;
use crate::check::invariants::declared::case::{Case, Failure, Place, Tally};
use crate::check::invariants::declared::context::{InvariantContext, StepBudget, shows};
use crate::history::{Declared, KeyId, ResourceId};
use crate::model::declaration::{Invariant, Scope};
use crate::model::expression::{Bindings, Expression, Outcome, Subject};
use crate::order::Version;
use std::collections::BTreeMap;

/// The reason for an undecided version.
pub const BODY: &str =
    "versions whose bodies the evidence does not show, or not whole (without metadata.creationTimestamp)";
/// The reason for an undecided change.
pub const CHANGE: &str = "changes without evidence of both sides";

/// A version as the evidence shows it.
#[derive(Clone)]
struct Seen<'h> {
    version: Version,
    declared: Declared<'h>,
    subject: Subject<'h>,
}

/// The state of one case over the versions of one key.
struct CaseState<'c, 'h> {
    case: &'c Case<'h>,
    /// The previous version, if it is shown and of the same life.
    last: Option<Seen<'h>>,
    /// The last outcome, and the version that it was evaluated for.
    known: Option<(Declared<'h>, Outcome)>,
    open: Option<Failure>,
}

/// Evaluates the cases of one object and of one change.
pub fn evaluate<'h>(
    context: &InvariantContext<'h>,
    cases: &[Case<'h>],
    limits: Limits,
    budgets: &mut [StepBudget],
) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); context.evidence.options.declarations.invariants.len()];
    let mut by_resource: BTreeMap<ResourceId, Vec<&Case<'h>>> = BTreeMap::new();
    for case in cases.iter().filter(|case| case.invariant.scope != Scope::Live) {
        by_resource.entry(case.resource).or_default().push(case);
    }
    for (resource, of_resource) in by_resource {
        for &key in context.keys_of(resource) {
            for case in &of_resource {
                let tally = &mut tallies[case.nth];
                if tally.given_up.is_none() {
                    tally.given_up = budgets[case.nth].is_spent(&limits);
                }
            }
            of_key(context, &of_resource, key, budgets, &mut tallies);
        }
    }
    for tally in &mut tallies {
        tally.failures.sort_by(|a, b| (a.from, &a.of).cmp(&(b.from, &b.of)));
    }
    tallies
}

fn of_key<'h>(
    context: &InvariantContext<'h>,
    cases: &[&Case<'h>],
    key: KeyId,
    budgets: &mut [StepBudget],
    tallies: &mut [Tally],
) {
    let mut states: Vec<CaseState<'_, 'h>> =
        cases.iter().map(|case| CaseState { case, last: None, known: None, open: None }).collect();
    for version in context.evidence.order.timeline.versions(key).iter() {
        let declared = context.declared(&version);
        // Built once, for all invariants of the key.
        let mut subject: Option<Subject<'h>> = None;
        for state in &mut states {
            let (budget, tally) = (&mut budgets[state.case.nth], &mut tallies[state.case.nth]);
            if tally.given_up.is_some() {
                continue;
            }
            if version.change.lives() == Some(false) {
                state.end(context, tally, Some(version));
                state.last = None;
                continue;
            }
            let selected = state.case.selects(&context.evidence, key, declared.as_ref());
            let shown = declared.filter(|declared| shows(declared, state.case.invariant.read()));
            match (selected, shown) {
                (Some(false), _) => {
                    state.end(context, tally, Some(version));
                    state.last = None;
                }
                (Some(true), Some(declared)) => {
                    let subject = subject.get_or_insert_with(|| context.subject(&version)).clone();
                    state.step(context, budget, tally, Seen { version, declared, subject });
                }
                _ => state.unseen(context, tally),
            }
        }
    }
    for state in &mut states {
        state.end(context, &mut tallies[state.case.nth], None);
    }
}

impl<'h> CaseState<'_, 'h> {
    /// Records a version that the evidence does not show.
    fn unseen(&mut self, context: &InvariantContext<'h>, tally: &mut Tally) {
        self.end(context, tally, None);
        match self.case.invariant.scope {
            Scope::Transition => {
                tally.unseen(CHANGE);
                // A transitive invariant holds of any two versions, so a gap does not matter.
                if !self.case.invariant.transitive {
                    self.last = None;
                }
            }
            _ => tally.unseen(BODY),
        }
    }

    fn step(&mut self, context: &InvariantContext<'h>, budget: &mut StepBudget, tally: &mut Tally, seen: Seen<'h>) {
        let same_life = |last: &Seen<'h>| last.version.uid == seen.version.uid && seen.version.uid.is_some();
        if !self.last.as_ref().is_some_and(same_life) {
            self.end(context, tally, Some(seen.version));
            self.last = None;
            self.known = None;
        }
        if self.case.invariant.scope == Scope::Transition {
            return self.change(context, budget, tally, seen);
        }
        let held = matches!(self.known, Some((_, Outcome::Truth(true))));
        let outcome = match self.known.take() {
            Some((known, outcome)) if self.agree(context, &known, &seen.declared) => outcome,
            _ => budget.evaluate(&self.case.invariant.expression, &Bindings::object(seen.subject.clone())),
        };
        self.known = Some((seen.declared, outcome.clone()));
        match (outcome, &mut self.open) {
            (Outcome::Truth(false), Some(open)) => {
                tally.checked += 1;
                // Keeps the first and the last version.
                open.versions.truncate(1);
                open.versions.push(seen.version);
            }
            (Outcome::Truth(false), None) => {
                tally.checked += 1;
                let before = self.last.as_ref().map(|last| last.version).filter(|_| held);
                let message = message_of(self.case.invariant, budget, &Bindings::object(seen.subject.clone()));
                self.open = Some(failure(vec![seen.version], before, true, message));
            }
            (other, _) => self.passes(context, tally, other, seen.version),
        }
        self.last = Some(seen);
    }

    fn agree(&self, context: &InvariantContext<'h>, a: &Declared<'h>, b: &Declared<'h>) -> bool {
        self.case.reads.agree(context.evidence.history, a, b)
    }

    /// Records an outcome that is not false.
    fn passes(&mut self, context: &InvariantContext<'h>, tally: &mut Tally, outcome: Outcome, version: Version) {
        self.end(context, tally, Some(version));
        match outcome {
            Outcome::Truth(_) => tally.checked += 1,
            Outcome::Text(_) => tally.failed("it yields a text".to_owned()),
            Outcome::Failed(reason) => tally.failed(reason),
            Outcome::Endless => tally.failed(ENDLESS.to_owned()),
        }
    }

    fn change(&mut self, context: &InvariantContext<'h>, budget: &mut StepBudget, tally: &mut Tally, seen: Seen<'h>) {
        let Some(last) = self.last.replace(seen.clone()) else { return };
        let bindings = Bindings::change(last.subject.clone(), seen.subject.clone());
        let is_next = context.through(&last.version).0.next() == seen.version.revision;
        let counts = is_next || self.case.invariant.transitive;
        let outcome = match self.known.take() {
            // The change before this one was the same.
            Some((known, outcome))
                if self.agree(context, &last.declared, &seen.declared)
                    && self.agree(context, &known, &last.declared) =>
            {
                outcome
            }
            _ => budget.evaluate(&self.case.invariant.expression, &bindings),
        };
        self.known = Some((last.declared, outcome.clone()));
        match outcome {
            Outcome::Truth(false) => {
                tally.checked += 1;
                let message = message_of(self.case.invariant, budget, &bindings);
                tally
                    .is_false(failure(vec![last.version, seen.version], None, counts, message), &context.failure_limit);
            }
            Outcome::Truth(true) if !counts => tally.unseen(CHANGE),
            other => self.passes(context, tally, other, seen.version),
        }
    }

    /// Ends the interval in which the invariant was false.
    fn end(&mut self, context: &InvariantContext<'h>, tally: &mut Tally, by: Option<Version>) {
        let Some(mut failure) = self.open.take() else { return };
        let last = failure.versions[failure.versions.len() - 1];
        failure.through = context.through(&last).0;
        // A version after a gap did not end the failure.
        failure.ended = by.filter(|by| failure.through.next() == by.revision);
        tally.is_false(failure, &context.failure_limit);
    }
}

/// The reason of an evaluation that was stopped.
pub const ENDLESS: &str = "it takes more steps than one evaluation may";

/// The message of an invariant for a failure.
pub fn message_of(invariant: &Invariant, budget: &mut StepBudget, bindings: &Bindings<'_>) -> Option<String> {
    let evaluated = invariant.message_expression.as_ref().map(|text: &Expression| budget.evaluate(text, bindings));
    match evaluated {
        Some(Outcome::Text(text)) => Some(text.chars().take(300).collect()),
        _ => invariant.message.clone(),
    }
}

/// A failure of one object, from the last of its versions on.
fn failure(versions: Vec<Version>, before: Option<Version>, is_certain: bool, message: Option<String>) -> Failure {
    let at = versions[versions.len() - 1];
    Failure {
        of: Place::Key(at.key),
        from: at.revision,
        through: at.revision,
        is_certain,
        versions,
        before,
        ended: None,
        complete: None,
        message,
    }
}
