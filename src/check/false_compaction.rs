//! ## What it proves
//! A read, a watch or a compaction was told that its revision is compacted, and no compaction that anybody else asked for by then,
//! nor one in the members' logs, reaches it; a read of the latest state was; or a read below an acknowledged compaction was
//! answered, or a compaction through what had been compacted before it was sent was acknowledged. A compaction in a log cannot have
//! been done before the writes in front of it were sent.
//!
//! That nobody asked is certain where the logs of members that no majority does without end whole, and go as far as anything that
//! clients were told; where a later answer shows it (a write that made that revision
//! or one below, a read of it, a compaction through it); or where a compaction is recorded, and no number is missing among those of
//! the clients. Else a client that only compacts may be missing: then it is a suspect, and says so.
//!
//! ## Why it matters
//! The first makes clients list again for nothing, and hides lost events behind an error that looks legal. The second reads what
//! may already be half removed.
//!
//! ## Example
//! ```text
//! client-1   compact through 40, acknowledged
//! client-2                                      watch from 55 on: "required revision has been compacted"
//! ```
//!
//! ## Evidence
//! Reports of etcd's robustness suite: all requests for compaction, and the answers to reads and watches of past revisions.
//!
//! ## What it cannot see
//! Compactions of a cluster that compacts by itself, where no log is in the report, and those of a client that is missing behind all
//! that are there while another one that compacts is recorded. Where compactions of unknown outcome have to
//! explain several answers, and no choice of them seems to, the rule is left open rather than broken.
//!
//! ## Traps
//! The revision of a compaction itself stays readable. Negative revisions are answered as compacted on any store, and a
//! fresh one can be compacted through 0 once.
//!
//! ## Sources
//! etcd `server/storage/mvcc/kvstore_txn.go` (`ErrCompacted` below the compacted revision), `watchable_store.go`.

use super::etcd::{Recorded, watches};
use super::{BrokenBy, Evidence, Group, Rule, Ruling};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "false-compaction",
    title: "a revision is compacted from its compaction on, and not before",
    group: Group::Reads,
    promise: BrokenBy::Server,
    needs: "reads or watches of past revisions",
    causes: &[],
    source: include_str!("false_compaction.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    if let Some(recorded) = Recorded::of(evidence) {
        watches::compaction(&recorded, ruling);
    }
}
