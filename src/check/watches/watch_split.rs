#![doc = include_str!("../../../docs/rules/watch-split.md")]

use crate::check::etcd::watches;
use crate::check::{BrokenBy, Checks, Group, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-split",
    title: "a watch delivers all events of one revision together",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch",
    causes: &["watch-duplicate", "split-timeline"],
    page: include_str!("../../../docs/rules/watch-split.md"),
    checks: Checks::etcd(watches::split),
};
