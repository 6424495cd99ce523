#![doc = include_str!("../../../docs/rules/false-compaction.md")]

use crate::check::etcd::watches;
use crate::check::{BrokenBy, Checks, Group, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "false-compaction",
    title: "a revision is compacted from its compaction on, and not before",
    group: Group::Reads,
    promise: BrokenBy::Server,
    needs: "reads or watches of past revisions",
    causes: &[],
    page: include_str!("../../../docs/rules/false-compaction.md"),
    checks: Checks::etcd(watches::compaction),
};
