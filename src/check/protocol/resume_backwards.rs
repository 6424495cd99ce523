#![doc = include_str!("../../../docs/rules/resume-backwards.md")]

use crate::check::protocol::changes_between::{Stretch, changes};
use crate::check::protocol::resume_from_item;
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, Revision, Verb};
use crate::order::{Chain, Start, Step, remembers};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "resume-backwards",
    title: "a client resumes a watch at the last revision that it saw, and not below it",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "two watches of one process on one scope, the first with its end",
    causes: &["delete-version", "watch-reorder"],
    page: include_str!("../../../docs/rules/resume-backwards.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for chain in &evidence.order.chains.chains {
        if !remembers(evidence.history, chain.incarnation) {
            continue;
        }
        let mut others: Vec<Revision> = Vec::new();
        for step in &chain.steps {
            let o = evidence.history.operation(step.operation);
            if o.verb != Verb::Watch {
                continue;
            }
            match step.start {
                Start::NewConsumer => others.push(o.asked_revision),
                Start::Continues(_) if o.asked == Asked::From => {
                    result.checked(chain.incarnation);
                    // Another consumer of the scope may have reached this revision since it began.
                    let explained =
                        step.has_concurrent_consumers || others.iter().any(|start| *start <= o.asked_revision);
                    if !explained && resume_from_item::mistaken(evidence, step).is_none() {
                        resumed(evidence, result, chain, step);
                    }
                }
                _ => {}
            }
        }
    }
}

fn resumed(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, chain: &Chain, step: &Step) {
    let history = evidence.history;
    let o = history.operation(step.operation);
    let (start, Some((frontier, showing))) = (o.asked_revision, step.frontier) else { return };
    if start >= frontier {
        return;
    }
    let stretch = changes(evidence, chain.scope, start, frontier, |_| true);
    let client = evidence.short_client(&o);
    let scope = history.scope_name(chain.scope);
    let mut facts = vec![
        evidence.showing(showing, frontier, format!("{client} had reached revision {frontier} of {scope}")),
        evidence.request(step.operation, start, format!("it asked to watch {scope} from revision {start}")),
    ];
    let (kind, reason) = match stretch {
        Stretch::Changed(version) => {
            facts.push(evidence.version(&version, evidence.change_words(&version)));
            let reason = "a watch from a revision delivers every later change of its scope, so the client receives \
                         this change again";
            (Kind::Violation, reason)
        }
        Stretch::Open(version) => {
            facts.push(evidence.version(&version, evidence.change_words(&version)));
            (Kind::Hazard, "the evidence does not show whether the selectors select the object that changed in between")
        }
        Stretch::Quiet => (Kind::Hazard, "no change of the scope is known in between, so nothing had to come again"),
    };
    result.found(evidence.unless_lost(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: chain.incarnation,
        key: facts.get(2).map_or_else(Default::default, |f| f.key),
        cause: scope.clone(),
        summary: format!(
            "{client} resumed its watch on {scope} from revision {start} after it had seen revision {frontier}"
        ),
        facts,
        reason: reason.to_owned(),
        refuted_by:
            "a list of this process, or another of its watches on this scope, that explains the start".to_owned(),
        consequence:
            "old events are delivered again: deleted objects come back, and controllers act on them".to_owned(),
    }));
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::sessions::monotonic_reads::RULE as MONOTONIC;
    use crate::check::testing::trial::{holds, judged, kinds, read};
    use crate::history::sketch::evidence;

    #[test]
    fn a_start_below_what_was_delivered_replays() {
        let before = "c@A LIST rv=0 => 28 {a:u1@27 b:u2@28}\nc@A WATCH from 28 +x:u3@35 -a:u1@40 eof\n";
        assert_eq!(kinds(&RULE, &format!("{before}c@A WATCH from 30 +x:u3@35\n")), [Kind::Violation]);
        // A list explains a start only until the stream shows a newer revision.
        assert_eq!(kinds(&RULE, &format!("{before}c@A WATCH from 28 +x:u3@35\n")), [Kind::Violation]);
        let quiet = before.replace(" +x:u3@35 -a:u1@40 eof", " eof");
        assert!(kinds(&RULE, &format!("{quiet}c@A WATCH from 28 +x:u3@35\n")).is_empty());
        // A reflector starts anew from a list of an older state.
        let older = "c@A LIST rv=0 => 30 {a:u1@27 b:u2@28}\nc@A WATCH from 30 +x:u3@35 eof\nc@A WATCH from 35\n";
        assert!(kinds(&RULE, &format!("{before}{older}")).is_empty());
        assert!(holds(&RULE, &format!("{before}c@A WATCH from 40\n")));
    }

    #[test]
    fn a_capture_that_was_copied_is_one_capture() {
        let text = "c/1@A LIST rv=0 => 28 {a:u1@27 b:u2@28}\nc/1@A WATCH from 28 +x:u3@35 -a:u1@40 eof\nc/1@A WATCH from 30 +x:u3@35\n";
        let made = evidence(text).unwrap_or_else(|error| panic!("{error}"));
        let (name, capture) = &made.files[0];
        let once = read([(&name[..], &capture[..])].into_iter(), &[]);
        let twice = read([(&name[..], &capture[..]), ("copy.jsonl", &capture[..])].into_iter(), &[]);
        let joined = format!("{capture}{}", capture.lines().next().unwrap_or(""));
        let longer = read([("copy.jsonl", &joined[..]), (&name[..], &capture[..])].into_iter(), &[]);
        for history in [&twice, &longer] {
            assert_eq!(history.operations.len(), once.operations.len());
            assert_eq!(history.deliveries.len(), once.deliveries.len());
            assert_eq!(judged(&RULE, history).kinds(), judged(&RULE, &once).kinds());
        }
        assert_eq!(judged(&RULE, &once).kinds(), [Kind::Violation]);
    }

    #[test]
    fn a_deletion_with_an_old_version_raises_no_frontier() {
        let before = "c@A LIST => 28 {a:u1@27 b:u2@28}\nc@A WATCH from 28 +x:u3@35 -a:u1@27 eof\n";
        assert!(holds(&RULE, &format!("{before}c@A WATCH from 35\n")));
        assert_eq!(kinds(&RULE, &format!("{before}c@A WATCH from 27 +b:u2@28\n")), [Kind::Violation]);
    }

    #[test]
    fn request_lines_are_enough() {
        let text = "recorded audit\nlevel metadata\nclient w agent=manager/1\n\
                    w@A WATCH from 28 eof\nw@A WATCH from 27 eof\n";
        assert_eq!(kinds(&RULE, text), [Kind::Hazard]);
        let known = format!("{text}o@A PUT b:u2@28 => b:u2@29\n");
        assert_eq!(kinds(&RULE, &known), [Kind::Violation]);
        assert!(holds(&RULE, &text.replace("from 27", "from 28")));
    }

    #[test]
    fn other_consumers_and_other_selectors_are_other_chains() {
        let two = "c@A |--WATCH from 20  +a@30 ..\nc@A   |--WATCH from 10 as w +z@15 ..\n---\n\
                   c@A ..w  ^16 --|\n---\nc@A |--WATCH from 16 +z@17 --|\n";
        assert_eq!(kinds(&RULE, two), []);
        let selected =
            "c@A WATCH fields(spec.nodeName=n1) from 40 eof\nc@A WATCH fields(spec.nodeName=n2) from 20 eof\n";
        assert_eq!(kinds(&RULE, selected), []);
    }

    #[test]
    fn a_list_or_another_process_explains_a_lower_start() {
        assert_eq!(kinds(&RULE, "c@A WATCH from 40 ^50 eof\nc@B LIST rv=0 => 37 {}\nc@B WATCH from 37\n"), []);
        assert_eq!(kinds(&RULE, "c/1@A WATCH from 40 ^50 eof\nc/2@A WATCH from 20\n"), []);
    }

    #[test]
    fn a_list_beside_a_reflector_moves_nobody_else() {
        let before = "c@A LIST rv=0 => 10 {a:u1@9}\nc@A WATCH from 10 ~a:u1@14 eof\no@A CREATE b => b:u2@15\n";
        let list = "c@A LIST => 16 {a:u1@14 b:u2@15}\n";
        // The reflector continues from its last revision, now and later.
        let on = format!("{before}{list}c@A WATCH from 14 +b:u2@15 eof\nc@A WATCH from 15\n");
        assert_eq!(kinds(&RULE, &on), []);
        assert!(holds(&MONOTONIC, &on));
        let back = format!("{before}{list}c@A WATCH from 12 ~a:u1@14\n");
        assert_eq!(kinds(&RULE, &back), [Kind::Violation]);
        // After a report that its revision is gone, a reflector lists anew and continues from there.
        let gone = on.replace("~a:u1@14 eof", "~a:u1@14 !410 eof");
        assert_eq!(kinds(&RULE, &gone), [Kind::Violation, Kind::Hazard]);
    }

    #[test]
    fn a_number_that_only_a_later_patch_made_was_seen_by_nobody() {
        let text = "o@A CREATE x => x:u1@20\nc@A PUT x:u1@30 => !409\nc@A GET x => x:u1@20\no@A PATCH x => x:u1@30\n";
        assert!(holds(&MONOTONIC, text));
        let watched = "o@A CREATE x => x:u1@20\nc@A LIST => 20 {x:u1@20}\nc@A WATCH from 30 eof\no@A PATCH x => x:u1@30\n\
                       o@A CREATE y => y:u2@31\nc@A WATCH from 20 ~x:u1@30 +y:u2@31 eof\n";
        assert_eq!(kinds(&RULE, watched), []);
    }

    #[test]
    fn selectors_that_leave_it_open_make_a_hazard() {
        let text = "c@A WATCH labels(tier=x) from 30 ^41 eof\no@A PUT a:u1@20 reduced => a:u1@35 reduced\n\
                    c@A WATCH labels(tier=x) from 30\n";
        let kinds = kinds(&RULE, &text.replace(" reduced", ""));
        assert!(kinds.iter().all(|k| *k == Kind::Hazard), "{kinds:?}");
    }
}
