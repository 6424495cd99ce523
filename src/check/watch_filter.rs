//! ## What it proves
//! A watch delivered an event of a key outside of the key, or prefix, that it named.
//!
//! ## Why it matters
//! A client that trusts its own request takes the key of another for one of its own.
//!
//! ## Example
//! ```text
//! client   watch of keys that begin with /registry/pods/: put /registry/nodes/a at 12
//! ```
//!
//! ## Evidence
//! Reports of etcd's robustness suite: the watch's request and its events.
//!
//! ## What it cannot see
//! Watches of ranges, which reports cannot record.
//!
//! ## Sources
//! etcd "Watch API": `key` and `range_end`.

use super::etcd::{Recorded, watches};
use super::{BrokenBy, Evidence, Group, Rule, Ruling};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-filter",
    title: "a watch delivers what it asked for only",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch and its request",
    causes: &[],
    source: include_str!("watch_filter.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        watches::filter(&recorded, ruling);
    }
}
