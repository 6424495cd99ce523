#![doc = include_str!("../../../docs/rules/watch-prev-value.md")]

use crate::check::etcd::watches;
use crate::check::{BrokenBy, Checks, Group, Rule};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-prev-value",
    title: "an event of a watch with previous values carries the value that the key had right before the event",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch that asks for previous values",
    causes: &["watch-type", "split-timeline"],
    page: include_str!("../../../docs/rules/watch-prev-value.md"),
    checks: Checks::etcd(watches::previous),
};
