//! Rules about answers to reads.

use super::{Recorded, revision};
use crate::check::{Fact, Kind, Ruling};
use crate::history::Symbol;
use crate::history::etcd::{Outcome, Request};
use crate::order::etcd::{Class, Compactions};

/// `stale-consistent-read`: answers from before something that was complete when they were asked for.
pub fn stale(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    for at in 0..r.recording.operations.len() as u32 {
        if r.analysis.effects.class(at) == Class::Same {
            ruling.checked(r.client_of(at));
        }
    }
    for backward in &r.analysis.backward {
        if r.analysis.effects.class(backward.later) == Class::Write {
            continue;
        }
        let (earlier, later) = (r.operation(backward.earlier), r.operation(backward.later));
        let facts = r.went_back(backward, "answered");
        let summary = format!(
            "An answer of revision {} to a request that was sent after revision {} had been seen.",
            later.revision, earlier.revision
        );
        let reason = "etcd's reads are linearizable unless they ask to be serializable: what was complete when a request was sent \
                      is in its answer.";
        let incarnation = r.client_of(backward.later);
        ruling.found(r.draft(Kind::Violation, incarnation, Symbol::NONE, String::new(), summary, facts, reason));
    }
}

/// The part of `false-compaction` that is about reads.
pub fn compactions(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    let compactions = Compactions::of(r.recording);
    for (at, operation) in (0..).zip(&r.recording.operations) {
        let Request::Range(range) = operation.request else { continue };
        if range.revision <= 0 {
            continue;
        }
        match operation.outcome {
            Outcome::Answered => {
                ruling.checked(r.client_of(at));
                let Some(compaction) = compactions.certain(operation.call, range.revision) else { continue };
                let facts = vec![
                    r.answered(compaction, r.asked(compaction)),
                    Fact {
                        revision: revision(range.revision),
                        ..r.sent(at, format!("{}, and was answered", r.asked(at)))
                    },
                ];
                let summary = format!("Revision {} was answered after it had been compacted.", range.revision);
                let reason = "What is below the revision of an acknowledged compaction cannot be read any more.";
                ruling.found(r.draft(
                    Kind::Violation,
                    r.client_of(at),
                    range.keys.key,
                    String::new(),
                    summary,
                    facts,
                    reason,
                ));
            }
            Outcome::Compacted => {
                ruling.checked(r.client_of(at));
                let until =
                    if operation.returned.is_known() { operation.returned } else { crate::ingest::Time(i64::MAX) };
                let highest = compactions.possible(until).max(r.analysis.log.compaction);
                if highest > range.revision {
                    continue;
                }
                let facts = vec![
                    Fact { revision: revision(range.revision), ..r.sent(at, r.asked(at)) },
                    r.answered(at, "was told that this revision is compacted"),
                ];
                let summary = format!(
                    "A read of revision {} was refused as compacted; the highest compaction that anybody had asked for was through {highest}.",
                    range.revision
                );
                let reason = "A revision is compacted only below the one that a compaction names.";
                ruling.found(r.draft(
                    r.unless_incomplete(),
                    r.client_of(at),
                    range.keys.key,
                    String::new(),
                    summary,
                    facts,
                    reason,
                ));
            }
            _ => {}
        }
    }
}
