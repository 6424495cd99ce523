//! Input: the comparison of members' stores. Output: findings of `split-timeline` for stores that differ from the committed
//! log or from each other. Trap: a store that was copied while its member wrote to it is no evidence, and no record shows how
//! it was copied.

use super::Recorded;
use crate::check::{Draft, Fact, Kind, Proof, RuleResult};
use crate::history::IncarnationId;
use crate::history::etcd::StoredRevision;
use crate::ingest::Time;
use crate::order::etcd::{Change, Difference, Stored};

/// Stores that differ: `split-timeline`.
pub(super) fn split(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    let (replicas, log) = (&r.analysis.replicas, &r.analysis.log);
    result.checked_many(IncarnationId::NONE, replicas.compared + log.compared);
    let agree = replicas.differences.is_empty() && log.splits.is_empty();
    if r.proofs && agree && !r.has_clients() {
        // `verify` compares the members where there is no order of clients.
        result.proofs.push(Proof::Etcd { order: Vec::new(), removed: Vec::new() });
    }
    for difference in &replicas.differences {
        let (summary, facts) = match *difference {
            Difference::Logged { revision, row, entry } => {
                let what = match r.row(row).main == revision {
                    true => format!("has another content of revision {revision} than the committed log"),
                    false => format!("lacks revision {revision}, which the committed log has"),
                };
                (format!("The store of {} {what}.", r.member(row)), vec![r.stored(row), r.committed(entry)])
            }
            Difference::Stores { revision, known, row } => {
                let (known_by, member) = (r.member(known), r.member(row));
                let what = match r.row(row).main == revision {
                    true => {
                        format!("The stores of {known_by} and {member} have different contents of revision {revision}.")
                    }
                    false => {
                        format!("The store of {member} lacks revision {revision}, which the store of {known_by} has.")
                    }
                };
                (what, vec![r.stored(known), r.stored(row)])
            }
            Difference::Applied { row, entry, last, expected } => (
                format!(
                    "The last revision of the store of {} is {last}. It has applied the log through revision {expected}.",
                    r.member(row)
                ),
                vec![r.stored(row), r.committed(entry)],
            ),
            Difference::Index { index, known, row, last, expected } => (
                format!(
                    "The stores of {} and {} have applied the log through index {index}. The last revision of one is \
                    {expected}, and that of the other {last}.",
                    r.member(known),
                    r.member(row)
                ),
                vec![r.stored(known), r.stored(row)],
            ),
        };
        let key = r.row(difference.row()).key;
        let cause = format!("store {}", difference.row().member);
        let reason = "Each member applies the committed entries in their order, and saves each entry with its index in one \
                      transaction. So the log determines every revision, and all stores have the same ones.";
        let draft = r.draft(Kind::Violation, IncarnationId::NONE, key, cause, summary, facts, reason);
        result.found(Draft {
            refuted_by: "a store that was copied while its member was running; or a store of another cluster, or of a \
                         cluster that was restored from a backup in between"
                .to_owned(),
            consequence: "members hold different states, and each client sees the state of the member that answers it"
                .to_owned(),
            ..draft
        });
    }
}

impl Recorded<'_> {
    fn row(&self, stored: Stored) -> StoredRevision {
        let store = self.recording.members[stored.member as usize].store.as_ref();
        store.expect("a compared member has a store").revisions[stored.row as usize]
    }

    fn member(&self, stored: Stored) -> &str {
        &self.recording.members[stored.member as usize].name
    }

    /// A row of a store as a fact.
    fn stored(&self, stored: Stored) -> Fact {
        let row = self.row(stored);
        let change = self.change(Change { key: row.key, value: (!row.tombstone).then_some(row.value) });
        let says = format!("the store of {} has at revision {}: {change}", self.member(stored), row.main);
        self.fact(row.position, row.main, row.key, Time::UNKNOWN, says)
    }
}
