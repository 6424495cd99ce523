//! ## What it proves
//! The events of one revision were delivered in two responses, or only some of them were delivered at all.
//!
//! ## Why it matters
//! A client that follows the watch sees a state that never was: a transaction in halves.
//!
//! ## Example
//! ```text
//! T        {delete k4, put k5} at 225
//! client   watch of everything from 225 on: put k5 at 225 .... put k1 at 226
//! ```
//!
//! ## Evidence
//! Reports of etcd's robustness suite: the events of a watch, and another piece of evidence of the missing part: the write's
//! answer, another watch, a read.
//!
//! ## What it cannot see
//! Parts that nobody else was shown.
//!
//! ## Sources
//! etcd's watch guarantee "atomic"; etcd#18089.

use super::etcd::{Recorded, watches};
use super::{BrokenBy, Evidence, Group, Rule, Ruling};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-split",
    title: "the events of one revision come together",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch",
    causes: &["watch-duplicate", "split-timeline"],
    source: include_str!("watch_split.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        watches::split(&recorded, ruling);
    }
}
