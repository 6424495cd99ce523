//! ## What it proves
//! A write was acknowledged at a revision; an answer of that revision or a later one shows its key as it was before, although no
//! write in between replaced it. Nobody else saw the write either: where somebody did, the answer alone is wrong, which is
//! `linearizability`.
//!
//! ## Why it matters
//! The client was told that its write is durable.
//!
//! ## Example
//! ```text
//! client-1   put k=12 ........ acknowledged at 168
//! client-2                                            get k at revision 170: k=7 of revision 160
//! ```
//!
//! ## Evidence
//! Reports of etcd's robustness suite. The write's own answer; an answer with a later revision; all revisions in between, from
//! answers, watches over all keys, or the members' logs where they agree with both.
//!
//! ## What it cannot see
//! A write that is lost together with its revision number, which another write then takes: that is `revision-reuse`. Writes
//! that nobody reads again.
//!
//! ## Sources
//! etcd "KV API guarantees", durability; etcd#14370, etcd#17780; `docs/verdicts.md`.

use super::etcd::{Recorded, writes};
use super::{BrokenBy, Evidence, Group, Rule, Ruling};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "lost-write",
    title: "an acknowledged write stays until another one replaces it",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "an acknowledged write, and a later answer about its key",
    causes: &["revision-reuse", "revision-rewind"],
    source: include_str!("lost_write.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        writes::lost(&recorded, ruling);
    }
}
