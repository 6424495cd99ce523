//! ## What it proves
//! An event was received before its write was sent.
//!
//! ## Why it matters
//! Either the event is an invention, or revisions are given to other writes than those that watches show.
//!
//! ## Example
//! ```text
//! client-2   watch: put k=7 at 30, received at 1.20 s
//! client-1                                             put k=7, sent at 1.31 s, acknowledged at 30
//! ```
//!
//! ## Evidence
//! Reports of etcd's robustness suite, whose times are of one monotonic clock.
//!
//! ## What it cannot see
//! Events of writes that were not acknowledged.
//!
//! ## Sources
//! Causality; etcd `tests/robustness/report` for the clock.

use super::etcd::{Recorded, watches};
use super::{BrokenBy, Evidence, Group, Rule, Ruling};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-before-write",
    title: "no watch delivers a write before it is sent",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch and the writes that made them, on one clock",
    causes: &["revision-reuse", "split-timeline"],
    source: include_str!("watch_before_write.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        watches::before_write(&recorded, ruling);
    }
}
