#![doc = include_str!("../../../docs/rules/ghost-actor.md")]

use crate::check::facts::cross_counter;
use crate::check::facts::knowledge::{ClientKnowledge, Known, LastRead, Shown};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{Asked, ClockId, IncarnationId, KeyId, Marks, Operation, OperationId, Revision, Symbol, Verb};
use crate::ingest::Time;
use crate::order::{Change, Version};
use rustc_hash::FxHashSet;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "ghost-actor",
    title: "no process reports on an object after it has seen the end of that object",
    group: Group::Invariants,
    promise: BrokenBy::Client,
    needs: "accepted writes that name a uid, and the end of that uid",
    causes: &["name-reuse", "monotonic-reads", "read-your-writes"],
    page: include_str!("../../../docs/rules/ghost-actor.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let mut claims: Vec<(OperationId, Vec<IncarnationId>)> = Vec::new();
    let mut wanted: FxHashSet<(IncarnationId, KeyId)> = FxHashSet::default();
    for (id, o) in evidence.of_verbs(&[Verb::Update, Verb::Patch]) {
        let claims_life = evidence.committed(&o) && o.marks.has(Marks::NAMES_UID) && o.key.is_some() && o.status != 201;
        if !claims_life || !o.incarnation.is_some() {
            continue;
        }
        result.checked(o.incarnation);
        if o.answer_uid == o.request_uid || !has_ended(evidence, &o) {
            continue;
        }
        let lives = evidence.order.sessions.of(o.incarnation).filter(|session| !session.is_guess);
        let lives = lives.map_or(vec![o.incarnation], |session| session.incarnations.clone());
        wanted.extend(lives.iter().map(|&life| (life, o.key)));
        claims.push((id, lives));
    }
    let knowledge = ClientKnowledge::collect(evidence, &wanted);
    for (id, lives) in claims {
        let o = history.operation(id);
        let seen = lives
            .iter()
            .flat_map(|&life| knowledge.of(life, o.key).iter().map(move |g| (life, g)))
            .filter(|(_, g)| evidence.order.clocks.before(g.moment, (o.invoke, o.clock)))
            .filter(|(life, g)| shows_end(evidence, &o, g, knowledge.of(*life, o.key)))
            .min_by_key(|(_, g)| g.moment.0);
        match seen {
            Some((_, last_read)) => found(evidence, result, id, last_read),
            None => after_grace(evidence, result, id),
        }
    }
}

/// Whether the revision order shows the end of the life that a request names.
fn has_ended(evidence: &Evidence<'_>, o: &Operation) -> bool {
    let timeline = &evidence.order.timeline;
    let deleted = |v: &Version| v.change == Change::Deleted && v.uid == o.request_uid;
    timeline.versions(o.key).iter().any(|v| deleted(&v))
        || timeline.removals(o.key).iter().any(|r| r.uid == o.request_uid)
        || later_life(evidence, o.key, o.request_uid).is_some()
}

/// The first version of a later life of the name.
fn later_life(evidence: &Evidence<'_>, key: KeyId, uid: Symbol) -> Option<Version> {
    let versions = evidence.order.timeline.versions(key);
    let last = versions.iter().rev().find(|v| v.uid == uid)?.revision;
    versions.iter().find(|v| v.revision > last && v.uid.is_some() && v.uid != uid)
}

/// Whether an observation of a process shows the end of the life that a request names.
fn shows_end(evidence: &Evidence<'_>, o: &Operation, last_read: &LastRead, all: &[LastRead]) -> bool {
    let uid = o.request_uid;
    match last_read.known {
        Known::End(ended) => ended == uid,
        Known::Life(other) if other.is_some() && other != uid => {
            let later = later_life(evidence, o.key, uid).map_or(Revision::NONE, |v| v.revision);
            later.is_some() && last_read.revision >= later
        }
        // A fresh read without an object of the name, after the process had seen the life.
        Known::Nothing => {
            let (Shown::Answer(id) | Shown::List(id)) = last_read.shown else { return false };
            let read = evidence.history.operation(id);
            let fresh = read.verb.is_write() || read.asked == Asked::Unset;
            let sent = (read.invoke, read.clock);
            fresh && all.iter().any(|g| g.known == Known::Life(uid) && evidence.order.clocks.before(g.moment, sent))
        }
        // An exit from a selection is an end if the revision order has a deletion at its revision.
        Known::Left(left) => {
            left == uid
                && evidence
                    .order
                    .timeline
                    .version_at(o.key, last_read.revision)
                    .is_some_and(|v| v.change == Change::Deleted)
        }
        Known::Life(_) | Known::Unsure => false,
    }
}

/// Judges a report that was sent more than the declared grace period after the end.
fn after_grace(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId) {
    let Some(grace) = evidence.options.grace else { return };
    let (history, order) = (evidence.history, evidence.order);
    let o = history.operation(id);
    let Some(life) = order.lifetimes(history).of(o.request_uid).filter(|life| life.key == o.key) else { return };
    let late = |(time, clock): (Time, ClockId)| {
        let by = Time(time.0.saturating_add(grace));
        time.is_known() && by.is_known() && order.clocks.is_before_request((by, clock), &o)
    };
    if !cross_counter::end_moments(evidence, life).into_iter().any(late) {
        return;
    }
    let (client, key) = (evidence.short_client(&o), history.key_name(o.key));
    let uid = evidence.short_uid(o.request_uid);
    let mut facts: Vec<Fact> = cross_counter::end(evidence, life, &key, id).into_iter().collect();
    let sent = format!("{client} sent {} of {key} for uid {uid}", o.verb.with_article());
    facts.push(Fact { uid: o.request_uid, ..evidence.request(id, o.asked_revision, sent) });
    facts.push(evidence.operation(id, o.answered, "the server answered with success"));
    let seconds = grace as f64 / 1e9;
    state(
        evidence,
        result,
        id,
        facts,
        format!(
            "{client} reported on {key} with uid {uid} more than {seconds} s after its end, and the server accepted it"
        ),
        format!(
            "after an object's end no process may report on it, and --grace declares that every process has seen the \
            end after {seconds} s"
        ),
    );
}

fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId, last_read: &LastRead) {
    let history = evidence.history;
    let o = history.operation(id);
    let (client, key) = (evidence.short_client(&o), history.key_name(o.key));
    let uid = evidence.short_uid(o.request_uid);
    let saw = match last_read.known {
        Known::Life(other) => format!("{client} saw {key} with uid {}", evidence.short_uid(other)),
        Known::Nothing => format!("{client} read that {key} does not exist"),
        _ => match last_read.shown {
            Shown::Event(..) => format!("{client} saw {key} with uid {uid} deleted"),
            _ => format!("{client} removed {key} with uid {uid} itself"),
        },
    };
    let mut facts = vec![last_read.fact(evidence, o.key, saw)];
    let successor = later_life(evidence, o.key, o.request_uid).filter(|v| v.writer != id);
    if let Some(version) = successor {
        let says = format!("{key} had uid {}", evidence.short_uid(version.uid));
        facts.push(evidence.version(&version, says));
    }
    let sent = format!("{client} sent {} of {key} for uid {uid}", o.verb.with_article());
    let request = evidence.request(id, o.asked_revision, sent);
    facts.push(Fact { uid: o.request_uid, ..request });
    facts.push(evidence.operation(id, o.answered, "the server answered with success"));
    let summary = format!(
        "{client} reported on {key} with uid {uid} after it had seen that uid's end, and the server accepted it"
    );
    let reason = "after an object's end no process may report on it, and this process had seen the end".to_owned();
    state(evidence, result, id, facts, summary, reason);
}

fn state(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    id: OperationId,
    facts: Vec<Fact>,
    summary: String,
    reason: String,
) {
    let history = evidence.history;
    let o = history.operation(id);
    result.found(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Client,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary,
        facts,
        reason,
        refuted_by: "evidence that the request was sent before the process saw the end".to_owned(),
        consequence: "a stopped workload runs again, or the state of the deleted object replaces its successor's state"
            .to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::Options;
    use crate::check::testing::trial::{holds, kinds, trial_with};

    #[test]
    fn a_report_on_a_life_that_one_ended_oneself() {
        let text = "k/1@A PUT w:u1@38 => w:u1@38 gone\no@A CREATE w => w:u2@42\nk/2@B PATCH status w:u1 => w:u2@45\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert!(holds(&RULE, &text.replace("status w:u1", "status w:u2")));
        assert_eq!(kinds(&RULE, &text.replace("=> w:u2@45", "=> !409")), []);
        assert_eq!(kinds(&RULE, &text.replace("status w:u1", "status w:u1 dry-run")), []);
    }

    #[test]
    fn after_the_grace_that_is_declared_everybody_has_seen_an_end() {
        let text = "o@A DELETE w:u1 => ok\no@A CREATE w => w:u2@42\n--- 30s\nk@B PATCH status w:u1 => w:u2@45\n";
        let late = |seconds: i64| {
            trial_with(&RULE, text, Options { grace: Some(seconds * 1_000_000_000), ..Options::default() })
        };
        assert_eq!(late(10).kinds(), [Kind::Violation]);
        assert_eq!(late(60).kinds(), []);
    }

    #[test]
    fn an_end_that_the_session_did_not_see_is_no_ghost() {
        let text = "o@A DELETE w:u1 => ok\no@A CREATE w => w:u2@42\nk@B PATCH status w:u1 => w:u2@45\n";
        assert!(holds(&RULE, text));
    }

    #[test]
    fn events_successors_and_absence_show_the_end() {
        let writes = "o@A CREATE w => w:u1@30\no@A DELETE w:u1 => ok\no@A CREATE w => w:u2@42\n";
        for seen in ["k@A WATCH from 30 -w:u1@39", "k@A GET w => w:u2@42", "k@A LIST => 43 {w:u2@42}"] {
            let text = format!("{writes}{seen}\nk@A PATCH status w:u1 => w:u2@45\n");
            assert_eq!(kinds(&RULE, &text), [Kind::Violation], "{seen}");
        }
        let text = "o@A CREATE w => w:u1@30\nk@A GET w => w:u1@30\no@A DELETE w:u1 => ok\nk@A GET w => !404\n\
                    o@A CREATE w => w:u2@42\nk@A PATCH status w:u1 => w:u2@45\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
    }

    #[test]
    fn a_deletion_whose_answer_was_not_kept_may_be_held_up() {
        let text = "k@A CREATE w => w:u1@30\nk@A DELETE w => bare\no@A CREATE w => w:u2@42\nk@A PATCH status w:u1 => w:u2@45\n";
        assert!(holds(&RULE, text));
        assert_eq!(kinds(&RULE, &text.replace("bare", "ok:u1")), [Kind::Violation]);
    }

    #[test]
    fn a_list_of_any_state_shows_no_end() {
        let text = "o@A CREATE w => w:u1@30\nk@A GET w => w:u1@30\nk@B LIST rv=0 => 29 {}\n\
                    o@A DELETE w:u1 => ok\no@A CREATE w => w:u2@42\nk@A PATCH status w:u1 => w:u2@45\n";
        assert!(holds(&RULE, text));
    }

    #[test]
    fn a_request_under_way_when_the_end_came_is_no_ghost() {
        let text = "o@A CREATE w => w:u1@30\n---\n\
                    k@A |------PATCH status w:u1 => w:u2@45------|\n\
                    k@A   |-WATCH from 30 -w:u1@39 ..\n";
        assert!(holds(&RULE, text));
    }
}
