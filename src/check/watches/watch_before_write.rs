#![doc = include_str!("../../../docs/rules/watch-before-write.md")]

use crate::check::etcd::watches;
use crate::check::facts::staleness;
use crate::check::facts::stream_view::StreamView;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{Delivery, OperationId, Revision};
use crate::order::{EvidenceRef, write_of_event};

/// Nanoseconds to which audit times are cut.
const AUDIT_TIME_RESOLUTION: i64 = 1_000;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "watch-before-write",
    title: "a watch delivers an event only after a client sent the write that made it",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "the events of a watch and the writes that made them, on one clock",
    causes: &["revision-reuse", "split-timeline"],
    page: include_str!("../../../docs/rules/watch-before-write.md"),
    checks: Checks::kubernetes(check).and_etcd(watches::before_write),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for view in StreamView::all(evidence) {
        let mut checked = 0;
        for (index, d) in view.changes(view.initial.start..view.live.end) {
            let own = write_of_event(evidence.history, &evidence.order.timeline, index).filter(|write| {
                let o = evidence.history.operation(*write);
                d.at.is_known() && o.invoke.is_known() && o.clock.is_some() && o.clock == view.operation.clock
            });
            let lone = evidence.order.watermarks.alone_against(EvidenceRef::Delivery(index as u32, view.watch)).first();
            let Some(write) = own.or(lone.copied()) else { continue };
            checked += 1;
            let early = evidence.history.operations.invoke(write.index()).since(d.at);
            if early > AUDIT_TIME_RESOLUTION {
                found(evidence, result, &view, (index, d), (write, own.is_some()), early);
            }
        }
        result.checked_many(view.operation.incarnation, checked);
    }
}

fn found(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    view: &StreamView<'_>,
    (index, d): (usize, &Delivery),
    (write, is_own): (OperationId, bool),
    early: i64,
) {
    let history = evidence.history;
    let o = history.operation(write);
    let step = evidence.order.clocks.step(o.clock);
    if step.is_some_and(|step| step.by >= early && step.at != Some(d.position)) {
        return result.undecided("the clock of an event and of its write was set back");
    }
    let (asked, words) = (history.request_name(&o), evidence.delivery_words(index));
    // The answer to a removal does not name the removal's revision.
    let revision = if is_own { d.revision } else { o.answered };
    let (made, reason) = match is_own {
        true => ("that made it".to_owned(), "No watch can deliver a write before a client sends it"),
        false => (
            format!("of revision {revision}"),
            "Revisions count commits, so a write commits above every revision that watches showed before it was sent. \
            Nothing else shows that the store had reached that revision",
        ),
    };
    let facts = vec![
        evidence.delivery(index, view.watch, format!("received {words}")),
        evidence.request(write, Revision::NONE, format!("{asked} was sent")),
        evidence.operation(write, revision, format!("it was answered as committed at revision {revision}")),
    ];
    let draft = Draft {
        summary: format!(
            "{} received {words} {:.3} ms before the write {made} was sent",
            evidence.observer_words(&view.operation),
            early as f64 / 1e6
        ),
        facts,
        reason: match step {
            None => format!("{reason}, and both times are of one clock."),
            Some(_) => format!("{reason}. {}", staleness::set_back(early)),
        },
        kind: if step.is_some() { Kind::Suspect } else { Kind::Violation },
        refuted_by: match is_own {
            true => "evidence that the clock was set back in between, or that another request made that version",
            false => "evidence that the clock was set back in between, or that the store reached it and went back",
        }
        .to_owned(),
        consequence: "a client that acts on the event acts on a state that did not exist".to_owned(),
        ..view.draft(d.key)
    };
    result.found(view.settle(draft));
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::reads::stale_consistent_read;
    use crate::check::testing::trial::{holds, judged, kinds};
    use crate::check::writes::{revision_reuse, revision_rewind};
    use crate::history::sketch::sketch;

    const EARLY: &str = "w@A  WATCH from 9\nw@A  ..  +a:u1@10\nc@A  CREATE a => a:u1@10\n";

    #[test]
    fn an_event_from_before_its_write_is_the_watch_s_fault_and_convicts_no_writer() {
        assert_eq!(kinds(&RULE, EARLY), [Kind::Violation]);
        let updated = "w@A  WATCH from 9\nw@A  ..  ~a:u1@10\nr@A  GET b => b:u2@8\nc@A  PUT a:u1@7 => a:u1@10\n";
        let removed = "c@A  CREATE a => a:u1@8\nw@A  WATCH from 9\nw@A  ..  -a:u1@10\nr@A  GET a => a:u1@8\nc@A  DELETE a => ok:u1\n";
        let later = format!("{EARLY}c@A  PUT b:u2@7 => b:u2@11\n");
        for text in [EARLY, updated, removed, &later] {
            assert_eq!(kinds(&RULE, text), [Kind::Violation], "{text}");
            for rule in [&revision_reuse::RULE, &revision_rewind::RULE, &stale_consistent_read::RULE] {
                assert_eq!(kinds(rule, text), [], "{text}");
            }
        }
    }

    #[test]
    fn an_event_may_come_long_before_the_answer() {
        let slow =
            "c@A  |-CREATE a => a:u1@10------------------------------|\nw@A  |-WATCH from 9         +a:u1@10 ..\n";
        assert!(holds(&RULE, slow));
        // A patch without base that changed nothing was answered with the existing version.
        assert_eq!(kinds(&RULE, &EARLY.replace("CREATE a", "PATCH a")), []);
    }

    #[test]
    fn a_clock_that_may_have_been_set_back_is_a_suspect_and_one_that_was_says_nothing() {
        let fell = "c@A                                  |-GET x => x:u0@9-|\nc@A  |-GET x => x:u0@9-|\n---\n";
        let found = |text: &str| {
            let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
            judged(&RULE, &history).kinds()
        };
        assert_eq!(found(&format!("{fell}{EARLY}")), [Kind::Suspect]);
        assert_eq!(found(&format!("column 20ms\n{fell}{EARLY}")), []);
    }

    #[test]
    fn an_event_of_an_unknown_write_may_come_before_writes_below_it() {
        let text = "w@A  WATCH from 9\nw@A  ..  +z:u9@14\nr@A  GET b => b:u2@8\nc@A  CREATE a => a:u1@12\nd@A  PUT b:u2@8 => b:u2@13\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        for rule in [&revision_reuse::RULE, &revision_rewind::RULE, &stale_consistent_read::RULE] {
            assert_eq!(kinds(rule, text), [], "{}", rule.slug);
        }
        // Another client saw the store at that revision, so the store went back.
        let rewound = text.replace("\nr@A", "\ns@A  LIST => 14 {z:u9@14 b:u2@8}\nr@A");
        assert_eq!(kinds(&RULE, &rewound), []);
        assert!(kinds(&revision_rewind::RULE, &rewound).contains(&Kind::Violation));
    }

    #[test]
    fn times_of_two_clocks_are_not_compared() {
        assert_eq!(kinds(&RULE, &format!("client w clock=w\n{EARLY}")), []);
    }
}
