//! pending
use super::{BrokenBy, Evidence, Group, Rule, Ruling};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "monotonic-reads",
    title: "no observation lies below one that the same process made before",
    group: Group::Sessions,
    promise: BrokenBy::Nobody,
    needs: "two observations by one process",
    causes: &[],
    source: include_str!("monotonic_reads.rs"),
    check,
};

fn check(_evidence: &Evidence<'_>, _ruling: &mut Ruling<'_>) {}
