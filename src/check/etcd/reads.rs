//! Rules about answers to reads.

use super::{Recorded, one_fault, revision};
use crate::check::{Fact, Kind, Ruling};
use crate::history::Symbol;
use crate::history::etcd::{Outcome, Range, Request};
use crate::order::etcd::{Class, Compactions};

/// `stale-consistent-read`: answers from before something that was complete when they were asked for.
pub fn stale(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    r.look_at(ruling, |at| r.analysis.effects.class(at) == Class::Same);
    never_future(r, ruling);
    for (backward, &fault) in r.analysis.backward.iter().zip(&r.analysis.root_causes.backward) {
        if r.analysis.effects.class(backward.later) == Class::Write {
            continue;
        }
        let facts = r.went_back(backward, "answered");
        let seen = r.proved(backward.earlier);
        let summary = match r.operation(backward.later).revision {
            0 => format!(
                "A request that was sent after revision {seen} had been seen was answered by a store that had not reached it."
            ),
            number => format!(
                "An answer of revision {number} to a request that was sent after revision {seen} had been seen."
            ),
        };
        let reason = "etcd's reads are linearizable unless they ask to be serializable: what was complete when a request was sent \
                      is in its answer.";
        let incarnation = r.client_of(backward.later);
        let draft = r.draft(Kind::Violation, incarnation, Symbol::NONE, one_fault(fault), summary, facts, reason);
        ruling.found_of(draft, fault);
    }
}

/// Reads of what every store has, refused because it had not come about.
fn never_future(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    for (at, operation) in (0..).zip(&r.recording.operations) {
        let future = operation.outcome == Outcome::Future;
        let (Request::Range(Range { revision: ..=1, .. }) | Request::Compact { revision: ..=1 }) = operation.request
        else {
            continue;
        };
        if future {
            let facts =
                vec![r.sent(at, r.asked(at)), r.answered(at, "was told that the revision asked for is in the future")];
            let summary = "A request for the revision of an empty store was told that it is in the future.".to_owned();
            let reason = "A store begins at revision 1.";
            let incarnation = r.client_of(at);
            ruling.found(r.draft(Kind::Violation, incarnation, Symbol::NONE, String::new(), summary, facts, reason));
        }
    }
}

/// The part of `false-compaction` that is about reads.
pub fn compactions(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    for &(earlier, later) in &r.analysis.placing.repeated {
        let facts = vec![
            r.answered(earlier, format!("{}; acknowledged", r.asked(earlier))),
            r.sent(later, format!("{}; acknowledged too", r.asked(later))),
        ];
        let summary =
            format!("It was acknowledged that a client {}, which had been done before it asked.", r.asked(later));
        let reason = "Who asks to compact through a revision that is compacted already is told so.";
        let draft = r.draft(Kind::Violation, r.client_of(later), Symbol::NONE, String::new(), summary, facts, reason);
        let (from, until) = (r.operation(earlier).call, r.operation(later).returned);
        match r.analysis.root_causes.moved_between(from, until) {
            // A store that went back forgot its compactions too.
            Some(fault) => ruling.found_of(draft, fault),
            None => ruling.found(draft),
        }
    }
    if r.analysis.placing.stuck {
        ruling.open = Some("no order of the compactions fits every answer and delivery that depends on one".to_owned());
    }
    let compactions = &r.analysis.compactions;
    if compactions.lacks_records() {
        ruling.open = Some(
            "the members' logs hold a compaction that no recorded client can have asked for: a record is missing"
                .to_owned(),
        );
    }
    for (at, operation) in (0..).zip(&r.recording.operations) {
        if let (Request::Compact { revision: through }, Outcome::Compacted) = (operation.request, operation.outcome) {
            refused(r, compactions, at, through, ruling);
        }
        let Request::Range(range) = operation.request else { continue };
        if range.revision <= 0 {
            if operation.outcome == Outcome::Compacted {
                let facts =
                    vec![r.sent(at, r.asked(at)), r.answered(at, "was told that the revision asked for is compacted")];
                let summary = "A read of the latest state was refused as compacted.".to_owned();
                let reason = "A compaction keeps the latest state of every key.";
                let key = range.keys.key;
                ruling.found(r.draft(Kind::Violation, r.client_of(at), key, String::new(), summary, facts, reason));
            }
            continue;
        }
        match operation.outcome {
            Outcome::Answered if range.serializable => {}
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
                let client = r.client_of(at);
                let draft = r.draft(Kind::Violation, client, range.keys.key, String::new(), summary, facts, reason);
                match r.analysis.root_causes.moved_between(r.operation(compaction).call, operation.returned) {
                    Some(fault) => ruling.found_of(draft, fault),
                    None => ruling.found(draft),
                }
            }
            Outcome::Compacted => {
                ruling.checked(r.client_of(at));
                let until =
                    if operation.returned.is_known() { operation.returned } else { crate::ingest::Time(i64::MAX) };
                let highest = compactions.possible(until);
                if highest > range.revision {
                    continue;
                }
                let facts = vec![
                    Fact { revision: revision(range.revision), ..r.sent(at, r.asked(at)) },
                    r.answered(at, "was told that this revision is compacted"),
                ];
                let summary = format!(
                    "A read of revision {} was refused as compacted; the highest compaction that anybody is recorded to have asked for was through {highest}.",
                    range.revision
                );
                let reason = "A revision is compacted only below the one that a compaction names.";
                let (client, key) = (r.client_of(at), range.keys.key);
                let draft = r.draft(Kind::Violation, client, key, String::new(), summary, facts, reason);
                ruling.found(r.without_compaction(draft, range.revision, until));
            }
            _ => {}
        }
    }
}

/// A compaction through what is said to be compacted already, and nobody else had asked for that.
fn refused(r: &Recorded<'_>, compactions: &Compactions, at: u32, through: i64, ruling: &mut Ruling<'_>) {
    ruling.checked(r.client_of(at));
    let operation = r.operation(at);
    let until = if operation.returned.is_known() { operation.returned } else { crate::ingest::Time(i64::MAX) };
    let highest = compactions.possible_first(until);
    if through < 0 || highest >= through {
        return;
    }
    let facts = vec![
        Fact { revision: revision(through), ..r.sent(at, r.asked(at)) },
        r.answered(at, "was told that this revision is compacted"),
    ];
    let others = match highest {
        ..0 => "nobody else is recorded to have asked for a compaction".to_owned(),
        highest => format!("the highest one that anybody else is recorded to have asked for was through {highest}"),
    };
    let summary = format!("A compaction through {through} was refused as done already; {others}.");
    let reason = "A revision is compacted only once a compaction names it or a later one.";
    let draft = r.draft(Kind::Violation, r.client_of(at), Symbol::NONE, String::new(), summary, facts, reason);
    ruling.found(r.without_compaction(draft, through - 1, until));
}
