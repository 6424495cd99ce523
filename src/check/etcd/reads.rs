//! Predicates over the answers to reads of etcd, for `stale-consistent-read` and `false-compaction`.

use super::{Recorded, one_fault, revision};
use crate::check::{Fact, Kind, RuleResult};
use crate::history::Symbol;
use crate::history::etcd::{Outcome, Range, Request};
use crate::order::etcd::{Class, Compactions};

/// `stale-consistent-read`: answers from before a write that was complete when the request was sent.
pub fn stale(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    r.look_at(result, |at| r.analysis.effects.class(at) == Class::Same);
    never_future(r, result);
    for (backward, &fault) in r.analysis.backward.iter().zip(&r.analysis.root_causes.backward) {
        if r.analysis.effects.class(backward.later) == Class::Write {
            continue;
        }
        let facts = r.went_back(backward, "answered");
        let seen = r.proved(backward.earlier);
        let summary = match r.operation(backward.later).revision {
            0 => format!(
                "A request that was sent after revision {seen} had been seen was answered by a store that had not \
                reached that revision."
            ),
            number => format!(
                "A request that was sent after revision {seen} had been seen was answered at revision {number}."
            ),
        };
        let reason = "etcd's reads are linearizable unless they ask to be serializable: an answer includes every \
                     write that was complete when its request was sent.";
        let incarnation = r.client_of(backward.later);
        let draft = r.draft(Kind::Violation, incarnation, Symbol::NONE, one_fault(fault), summary, facts, reason);
        result.found_of(draft, fault);
    }
}

/// Reports reads of a revision that every store has, refused as in the future.
fn never_future(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    for (at, operation) in (0..).zip(&r.recording.operations) {
        let future = operation.outcome == Outcome::Future;
        let (Request::Range(Range { revision: ..=1, .. }) | Request::Compact { revision: ..=1 }) = operation.request
        else {
            continue;
        };
        if future {
            let facts = vec![
                r.sent(at, r.asked(at)),
                r.answered(at, "was answered that the requested revision is in the future"),
            ];
            let summary = "A request for revision 1 or below was refused as in the future.".to_owned();
            let reason = "A store begins at revision 1, so it always has that revision.";
            let incarnation = r.client_of(at);
            result.found(r.draft(Kind::Violation, incarnation, Symbol::NONE, String::new(), summary, facts, reason));
        }
    }
}

/// The part of `false-compaction` about reads and compactions.
pub fn compactions(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    for &(earlier, later) in &r.analysis.placing.repeated {
        let facts = vec![
            r.answered(earlier, format!("{}; acknowledged", r.asked(earlier))),
            r.sent(later, format!("{}; acknowledged too", r.asked(later))),
        ];
        let summary = format!(
            "A request was acknowledged ({}), although an earlier acknowledged compaction had reached its revision.",
            r.asked(later)
        );
        let reason = "A compaction through a compacted revision fails as compacted.";
        let draft = r.draft(Kind::Violation, r.client_of(later), Symbol::NONE, String::new(), summary, facts, reason);
        let (from, until) = (r.operation(earlier).call, r.operation(later).returned);
        match r.analysis.root_causes.moved_between(from, until) {
            // A store that went back lost its compactions too.
            Some(fault) => result.found_of(draft, fault),
            None => result.found(draft),
        }
    }
    if r.analysis.placing.stuck {
        result.open = Some("no order of the compactions fits every answer and delivery that depends on one".to_owned());
    }
    let compactions = &r.analysis.compactions;
    if compactions.lacks_records() {
        result.open = Some(
            "the members' logs hold a compaction that no recorded client can have requested, so a record is missing"
                .to_owned(),
        );
    }
    for (at, operation) in (0..).zip(&r.recording.operations) {
        if let (Request::Compact { revision: through }, Outcome::Compacted) = (operation.request, operation.outcome) {
            refused(r, compactions, at, through, result);
        }
        let Request::Range(range) = operation.request else { continue };
        if range.revision <= 0 {
            if operation.outcome == Outcome::Compacted {
                let facts = vec![
                    r.sent(at, r.asked(at)),
                    r.answered(at, "was answered that the requested revision is compacted"),
                ];
                let summary = "A read of the latest state was refused as compacted.".to_owned();
                let reason = "A compaction keeps the latest state of every key.";
                let key = range.keys.key;
                result.found(r.draft(Kind::Violation, r.client_of(at), key, String::new(), summary, facts, reason));
            }
            continue;
        }
        match operation.outcome {
            Outcome::Answered if range.serializable => {}
            Outcome::Answered => {
                result.checked(r.client_of(at));
                let Some(compaction) = compactions.certain(operation.call, range.revision) else { continue };
                let facts = vec![
                    r.answered(compaction, r.asked(compaction)),
                    Fact { revision: revision(range.revision), ..r.sent(at, format!("{}; answered", r.asked(at))) },
                ];
                let summary = format!(
                    "A read of revision {} was answered after that revision had been compacted.",
                    range.revision
                );
                let reason = "Revisions below an acknowledged compaction cannot be read.";
                let client = r.client_of(at);
                let draft = r.draft(Kind::Violation, client, range.keys.key, String::new(), summary, facts, reason);
                match r.analysis.root_causes.moved_between(r.operation(compaction).call, operation.returned) {
                    Some(fault) => result.found_of(draft, fault),
                    None => result.found(draft),
                }
            }
            Outcome::Compacted => {
                result.checked(r.client_of(at));
                let until =
                    if operation.returned.is_known() { operation.returned } else { crate::ingest::Time(i64::MAX) };
                let highest = compactions.possible(until);
                if highest > range.revision {
                    continue;
                }
                let facts = vec![
                    Fact { revision: revision(range.revision), ..r.sent(at, r.asked(at)) },
                    r.answered(at, "was answered that this revision is compacted"),
                ];
                let by_then = r.compacted_by(range.revision, until, highest);
                let summary = format!("A read of revision {} was refused as compacted, but {by_then}.", range.revision);
                let reason = "A compaction compacts only the revisions below the one that it names.";
                let (client, key) = (r.client_of(at), range.keys.key);
                let draft = r.draft(Kind::Violation, client, key, String::new(), summary, facts, reason);
                result.found(r.without_compaction(draft, range.revision, until));
            }
            _ => {}
        }
    }
}

/// Reports a compaction that was refused as compacted, although no other recorded request explains that.
fn refused(r: &Recorded<'_>, compactions: &Compactions, at: u32, through: i64, result: &mut RuleResult<'_>) {
    result.checked(r.client_of(at));
    let operation = r.operation(at);
    let until = if operation.returned.is_known() { operation.returned } else { crate::ingest::Time(i64::MAX) };
    let highest = compactions.possible_first(until);
    if through < 0 || highest >= through {
        return;
    }
    let facts = vec![
        Fact { revision: revision(through), ..r.sent(at, r.asked(at)) },
        r.answered(at, "was answered that this revision is compacted"),
    ];
    let others = match highest {
        ..0 => "no other compaction request is recorded".to_owned(),
        highest => format!("the highest other recorded compaction request is through {highest}"),
    };
    let summary = format!("A compaction through {through} was refused as compacted, but {others}.");
    let reason = "A revision is compacted only after a compaction names it or a later one.";
    let draft = r.draft(Kind::Violation, r.client_of(at), Symbol::NONE, String::new(), summary, facts, reason);
    result.found(r.without_compaction(draft, through - 1, until));
}
