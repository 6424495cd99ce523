//! An **invariant** of your own is false: of an object, of a change, or of the objects that live at one revision.
//!
//! What must be true of a custom resource only its authors know. A rules file (`--rules FILE`) says it as an expression in CEL,
//! the language of Kubernetes' own validation rules, and this rule evaluates it over T: at every version of every object
//! (`scope = "object"`), at every change (`"transition"`), or over all objects that live at a revision, at every revision
//! (`"live"`). The API server checks one object at a time, as its own copy is; only T shows what was true of several at once.
//!
//! ```text
//! [[invariant]]
//! name = "one-owner"          resource = "claims.example.com"
//! scope = "live"              per = ["spec.host"]
//! expression = "objects.size() <= 1"
//!
//! T    42 claim a says: host h1    46 claim b says: host h1    51 claim a is deleted
//! one-owner is false from 46 through 50
//! ```
//!
//! **A violation** is an evaluation that came to false over versions that the evidence shows. Of a change both versions have to
//! be neighbours for certain, or the invariant `transitive`. Over living objects, each has to stand certainly at that revision;
//! where other objects may live that nobody saw, only expressions convict that more objects cannot make true again
//! (`objects.all(...)`, `objects.size() <= 1`, `!objects.exists(...)`, and what `&&` and `||` make of them). Everything else
//! needs all objects of the resource to be known: a list of all of it, and from there on a watch.
//!
//! **A suspect** is a change that is false between two versions with nothing known in between.
//!
//! **Unknown** is the rule where an evaluation fails (a field that is not there, a division by zero) or takes too many steps:
//! the invariant is named with the reason and the number. It never counts as false, and the others go on. It is also unknown where
//! there are more invariants, and versions of their objects, than a run looks at: those that come last in the files are left out.
//!
//! **Evidence**: versions of the objects with the fields that the expression names (write answers, reads or watch events with
//! bodies).
//!
//! **Not judged**: versions whose bodies were not recorded; objects of Secrets beyond their metadata; how an object is stored
//! where conversion between API versions changes it.
//!
//! Sources: [the rules file](../rules-file.md); Kubernetes' validation rules (KEP-2876); the CEL specification.

#[cfg(test)]
mod bounds;
mod case;
mod live;
mod plain;
mod reads;
mod single;
mod stage;
mod telling;
#[cfg(test)]
mod tests;

pub use case::{Failure, Place, Tally};

use super::catalog::CROWDED;
use super::{BrokenBy, Evidence, Group, Rule, Ruling};
use crate::model::expression;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "invariant",
    title: "what a rules file says is true of objects",
    group: Group::Invariants,
    promise: BrokenBy::Client,
    needs: "an invariant in a rules file (--rules), and versions of its objects with the fields that it names",
    causes: &["revision-rewind", "revision-reuse", "torn-snapshot", "lost-update", "blind-write", "name-reuse"],
    source: include_str!("invariant.rs"),
    check,
};

/// How invariants are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only what a change can have changed.
    Incremental,
    /// Every invariant over everything at every revision: the definition, for tests and comparisons. Slow.
    Full,
}

/// Evaluates every declared invariant; in the order of the declarations.
pub fn evaluate(evidence: &Evidence<'_>, limits: super::Limits, mode: Mode) -> Vec<Tally> {
    expression::deep(|| {
        let mut cases = case::of(evidence);
        let left_out = if mode == Mode::Full { Vec::new() } else { case::admit(evidence, &mut cases) };
        let stage = stage::Stage::set(evidence);
        let mut tallies = match mode {
            Mode::Incremental => {
                let mut purses = stage::purses(evidence, &cases);
                let mut tallies = single::evaluate(&stage, &cases, limits, &mut purses);
                live::evaluate(&stage, &cases, limits, &mut purses, &mut tallies);
                tallies
            }
            Mode::Full => plain::evaluate(&stage, &cases),
        };
        for nth in left_out {
            tallies[nth].given_up = Some(CROWDED);
        }
        tallies
    })
}

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    let invariants = &evidence.options.declarations.invariants;
    if invariants.is_empty() {
        return;
    }
    let tallies = evaluate(evidence, ruling.limits, Mode::Incremental);
    let mut teller = telling::Teller::new(evidence);
    for (invariant, tally) in invariants.iter().zip(&tallies) {
        teller.tell(ruling, invariant, tally);
    }
}
