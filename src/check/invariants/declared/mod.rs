#![doc = include_str!("../../../../docs/rules/invariant.md")]

#[cfg(test)]
mod bounds;
mod case;
mod context;
mod findings;
mod live;
mod plain;
mod reads;
mod single;
#[cfg(test)]
mod tests;

pub use crate::check::invariants::declared::case::{Failure, Place, Tally};

use crate::check::facts::catalog::CROWDED;
use crate::check::{BrokenBy, Checks, Evidence, Group, Rule, RuleResult};
use crate::model::expression;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "invariant",
    title: "an expression in a rules file is true of every object, every change, or all objects that live at one revision",
    group: Group::Invariants,
    promise: BrokenBy::Client,
    needs: "an invariant in a rules file (--rules), and versions of its objects with the fields that it names",
    causes: &["revision-rewind", "revision-reuse", "torn-snapshot", "lost-update", "blind-write", "name-reuse"],
    page: include_str!("../../../../docs/rules/invariant.md"),
    checks: Checks::kubernetes(check),
};

/// The way in which invariants are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Evaluates only what a change can affect.
    Incremental,
    /// Every invariant over all objects at every revision. This is the definition, for tests and comparisons, and slow.
    Full,
}

/// Evaluates every declared invariant. The results are in the order of the declarations.
pub fn evaluate(evidence: &Evidence<'_>, limits: crate::check::Limits, mode: Mode) -> Vec<Tally> {
    expression::deep(|| {
        let mut cases = case::of(evidence);
        let left_out = if mode == Mode::Full { Vec::new() } else { case::admit(evidence, &mut cases) };
        let context = context::InvariantContext::new(evidence);
        let mut tallies = match mode {
            Mode::Incremental => {
                let mut budgets = context::budgets(evidence, &cases);
                let mut tallies = single::evaluate(&context, &cases, limits, &mut budgets);
                live::evaluate(&context, &cases, limits, &mut budgets, &mut tallies);
                tallies
            }
            Mode::Full => plain::evaluate(&context, &cases),
        };
        for nth in left_out {
            tallies[nth].given_up = Some(CROWDED);
        }
        tallies
    })
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let invariants = &evidence.options.declarations.invariants;
    if invariants.is_empty() {
        return;
    }
    let tallies = evaluate(evidence, result.limits, Mode::Incremental);
    let mut reporter = findings::InvariantReporter::new(evidence);
    for (invariant, tally) in invariants.iter().zip(&tallies) {
        reporter.report(result, invariant, tally);
    }
}
