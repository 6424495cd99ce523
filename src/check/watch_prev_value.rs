//! ## What it proves
//! An event names a previous value that the key did not have before, or none although the watch asked for it, the key was there,
//! and no compaction can have taken it away. Or that value is of a revision that is not before the event, or of more changes than there were
//! revisions. Where a client that compacts may be missing, the latter is a suspect (as of
//! `false-compaction`).
//!
//! ## Why it matters
//! Kubernetes finds out from it which watches with selectors an event concerns, and what a deleted object was.
//!
//! ## Example
//! ```text
//! T        put k=7 at 30 ...... put k=8 at 33
//! client   watch of k with previous values: put k=8 at 33, before: 6 of revision 21
//! ```
//!
//! ## Evidence
//! Reports of etcd's robustness suite: the event, and the last version of its key below it, with every revision in between
//! known.
//!
//! ## What it cannot see
//! Anything below a revision of which the content is not known.
//!
//! ## Traps
//! The previous value is read at the revision before the event's; a compaction through the event's revision takes it away.
//!
//! ## Sources
//! etcd `server/etcdserver/api/v3rpc/watch.go`; `tests/robustness/validate/watch.go`, which never flags its absence.

use super::etcd::{Recorded, watches};
use super::{BrokenBy, Evidence, Group, Rule, Ruling};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-prev-value",
    title: "an event that is asked to has the value before it",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch that asks for previous values",
    causes: &["watch-type", "split-timeline"],
    source: include_str!("watch_prev_value.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        watches::previous(&recorded, ruling);
    }
}
