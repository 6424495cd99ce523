//! ## What it proves
//! One key at one revision with two contents, or one revision that two watches over all keys, or a watch and a read, show with
//! different keys.
//!
//! ## Why it matters
//! Members no longer hold the same state: clients see another history depending on whom they ask.
//!
//! ## Example
//! ```text
//! client-2   watch of everything     put k=7 at 31
//! client-3   get k                   k=8 of revision 31
//! ```
//!
//! ## Evidence
//! Reports of etcd's robustness suite: answers to writes, events, what reads found, with their revisions.
//!
//! ## What it cannot see
//! Members that differ in what nobody was shown. Where an acknowledged write is one of the two, `revision-reuse` says it.
//!
//! ## Sources
//! etcd#13766, etcd#14685 (members that applied entries not at all, or twice); etcd "KV API guarantees".

use super::etcd::{Recorded, writes};
use super::{BrokenBy, Evidence, Group, Rule, Ruling};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "split-timeline",
    title: "a revision has one content, whoever shows it",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "two pieces of evidence of one revision",
    causes: &["revision-reuse"],
    source: include_str!("split_timeline.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        writes::split(&recorded, ruling);
    }
}
