#![doc = include_str!("../../../../docs/rules/lost-write.md")]

mod deleted_items;

use crate::check::etcd::writes;
use crate::check::facts::absence::ConsistentNotFoundAnswers;
use crate::check::facts::{commit_evidence, removals};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::{KeyId, Marks, Operation, OperationId, Revision, Verb};
use crate::order::{Removal, Version, removes};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "lost-write",
    title: "an acknowledged write stays in every later state until another write replaces it",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "an acknowledged write, and a later answer about its key",
    causes: &["revision-reuse", "revision-rewind"],
    page: include_str!("../../../../docs/rules/lost-write.md"),
    checks: Checks::kubernetes(check).and_etcd(writes::lost),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    removed_again(evidence, result);
    deleted_items::check(evidence, result);
    if evidence.order.timeline.open_removals().is_empty() {
        return;
    }
    let (later, shown_again) = (accepted_after(evidence), removals::Later::of(&evidence.order.timeline));
    for removal in evidence.order.timeline.open_removals().iter().filter(|removal| removal.uid.is_some()) {
        let o = evidence.history.operation(removal.operation);
        let name = || evidence.history.key_name(removal.key);
        if removal.before.is_some() {
            result.checked(o.incarnation);
        }
        if let Some(version) = removals::outlived_by(evidence, &shown_again, removal) {
            let says = format!("{} of the same uid was at version {}", name(), version.revision);
            lived_on(evidence, removal, evidence.version(&version, says), result);
            continue;
        }
        if let Some(&write) = later.get(&removal.operation) {
            result.checked(o.incarnation);
            lived_on(evidence, removal, accepted(evidence, write), result);
        }
    }
}

/// The fact that a write of a removed object was accepted.
fn accepted(evidence: &Evidence<'_>, write: OperationId) -> Fact {
    let o = evidence.history.operation(write);
    let name = evidence.history.key_name(o.key);
    let says = format!("{} of {name} that was sent after that was accepted", o.verb.with_article());
    evidence.operation(write, o.answered, says)
}

/// Removals of an object whose deletion has a known revision, and belongs to another request. One was sent when that revision
/// was complete, or one was answered before that other request was sent. A later write with a revision of its own belongs to
/// `identity-break`, and an update that names its base to `broken-compare`. If the deletion belongs to the request itself,
/// `revision-rewind` and `revision-reuse` report it.
fn removed_again(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (history, clocks) = (evidence.history, &evidence.order.clocks);
    let mut ends = commit_evidence::ends(evidence);
    if ends.is_empty() {
        return;
    }
    let not_found_answers = OnceCell::new();
    let removing = evidence.of_verbs(&[Verb::Delete, Verb::Update, Verb::Patch]);
    let names_no_base = |o: &Operation| o.verb == Verb::Delete || !o.asked_revision.is_some();
    for (id, o) in removing.filter(|(_, o)| removes(o) && o.answer_uid.is_some() && names_no_base(o)) {
        let life = (o.key, o.answer_uid);
        let Some(&end) = ends.get(&life) else { continue };
        let by = end.writer.is_some().then(|| history.operation(end.writer));
        if by.is_some() && history.are_one_request(end.writer, id) {
            continue;
        }
        result.checked(o.incarnation);
        let shown = complete_before(evidence, &end, &o, &not_found_answers);
        let is_before = by.is_some_and(|by| clocks.is_answered_before(&o, &by));
        if shown.is_none() && !is_before {
            continue;
        }
        ends.remove(&life);
        if began_in_the_past(evidence, &end) {
            continue;
        }
        match shown {
            Some(shown) => removed_late(evidence, &end, shown, id, result),
            None => {
                let removal = Removal { key: o.key, uid: o.answer_uid, operation: id, after: o.answered, before: None };
                lived_on(evidence, &removal, accepted(evidence, end.writer), result);
            }
        }
    }
}

/// Whether the first version of a deleted object was requested after a higher revision was complete. Then evidence of revisions
/// says nothing of the object's end.
fn began_in_the_past(evidence: &Evidence<'_>, end: &Version) -> bool {
    let life = evidence.order.lifetimes(evidence.history).of(end.uid);
    let first = life.and_then(|life| evidence.order.timeline.version_at(life.key, life.from));
    first.is_some_and(|first| commit_evidence::went_back(evidence, &first))
}

/// The proof that a deletion was complete before a request was sent: evidence of its revision or a later one, or a 404 to a read
/// of the most recent state that was sent when the object existed.
fn complete_before(
    evidence: &Evidence<'_>,
    end: &Version,
    o: &Operation,
    not_found_answers: &OnceCell<ConsistentNotFoundAnswers>,
) -> Option<Fact> {
    let (history, order) = (evidence.history, evidence.order);
    let resource = history.resource_of(end.key);
    let is_before = |time, clock| order.clocks.is_before_request((time, clock), o);
    let mut watermarks = order.watermarks.reached(history, resource, end.revision);
    if let Some(watermark) = watermarks.find(|watermark| is_before(watermark.time, watermark.clock)) {
        return Some(evidence.showing(
            watermark.showing,
            watermark.revision,
            format!("revision {} had been reached", watermark.revision),
        ));
    }
    let not_found =
        not_found_answers.get_or_init(|| ConsistentNotFoundAnswers::collect(evidence)).after(evidence, end, o)?;
    let says = format!("{} returned 404 (not found)", history.request_name(&history.operation(not_found)));
    Some(evidence.operation(not_found, Revision::NONE, says))
}

/// Per removal at an unknown revision, the first accepted write of the same object that was sent after the removal's answer.
fn accepted_after(evidence: &Evidence<'_>) -> FxHashMap<OperationId, OperationId> {
    let (history, timeline, clocks) = (evidence.history, &evidence.order.timeline, &evidence.order.clocks);
    let mut later = FxHashMap::default();
    for (id, o) in evidence.of_verbs(&[Verb::Update, Verb::Patch, Verb::Delete]) {
        if !o.key.is_some() || !o.is_answered() || !o.answer_uid.is_some() || o.marks.has(Marks::DRY_RUN) {
            continue;
        }
        for removal in timeline.removals_of(o.key, o.answer_uid).iter().filter(|r| r.operation != id) {
            let of = history.operation(removal.operation);
            if clocks.is_answered_before(&of, &o) {
                later.entry(removal.operation).or_insert(id);
            }
        }
    }
    later
}

/// A request that removed an object, and was sent when the deletion of the object was complete.
fn removed_late(evidence: &Evidence<'_>, end: &Version, shown: Fact, id: OperationId, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let o = history.operation(id);
    let name = history.key_name(end.key);
    let gone = evidence.version(end, evidence.change_words(end));
    let is_same = (gone.position, gone.operation) == (shown.position, shown.operation);
    let mut facts = vec![gone];
    facts.extend((!is_same).then_some(shown));
    facts.push(accepted(evidence, id));
    result.found(Draft {
        summary: format!(
            "{} of {name} was answered as the removal of uid {}, which had been removed at revision {} before",
            o.verb.name(),
            evidence.short_uid(end.uid),
            end.revision
        ),
        reason: "One uid has one life: after an object is removed, no write finds it.".to_owned(),
        refuted_by:
            "evidence that the answer belongs to another request, or that the deletion belongs to another object"
                .to_owned(),
        consequence: "a client that trusts the answer takes a removal for its own that another client made".to_owned(),
        ..draft(evidence, &o, end.key, facts)
    });
}

fn lived_on(evidence: &Evidence<'_>, removal: &Removal, lives: Fact, result: &mut RuleResult<'_>) {
    let history = evidence.history;
    let o = history.operation(removal.operation);
    let name = history.key_name(removal.key);
    let mut facts = removals::facts(evidence, removal.into());
    facts.push(lives);
    result.found(Draft {
        summary: format!(
            "{} of {name} was answered as the removal of uid {}, but that object still exists",
            o.verb.name(),
            evidence.short_uid(removal.uid)
        ),
        reason: "One uid has one life: after an object is removed, it has no later version, and no write finds it."
            .to_owned(),
        refuted_by: "evidence that the answer belongs to another request, or that the server only began the removal"
            .to_owned(),
        consequence:
            "a client that trusts the answer gives the address, the volume or the name of the object to another one"
                .to_owned(),
        ..draft(evidence, &o, removal.key, facts)
    });
}

/// A violation by the server that answered a request, without words.
fn draft(evidence: &Evidence<'_>, o: &Operation, key: KeyId, facts: Vec<Fact>) -> Draft {
    Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key,
        cause: evidence.cause(o),
        summary: String::new(),
        facts,
        reason: String::new(),
        refuted_by: String::new(),
        consequence: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::trial::{holds, kinds};

    const REMOVED: &str = "w@A CREATE x => x:u1@20\nw@A DELETE x => ok:u1\nw@A CREATE y => y:u2@24\n";

    #[test]
    fn a_version_above_the_end_of_its_life_shows_that_the_removal_was_lost() {
        for (event, found) in [("~x:u1@25", 1), ("+x:u3@25", 0), ("~x:u1@22", 0)] {
            let text = format!("{REMOVED}r@B WATCH from 19 +x:u1@20 {event}\n");
            assert_eq!(kinds(&RULE, &text), vec![Kind::Violation; found], "{event}");
        }
        assert!(holds(&RULE, REMOVED));
    }

    #[test]
    fn a_version_from_before_the_removal_shows_only_that_revisions_went_back() {
        let text =
            "w@A CREATE x => x:u1@20\nw@A PUT x:u1@20 => x:u1@26\nw@A DELETE x => ok:u1\nw@A CREATE y => y:u2@24\n";
        assert_eq!(kinds(&RULE, text), []);
    }

    #[test]
    fn a_write_of_the_same_life_that_was_sent_after_its_end_was_accepted() {
        for (write, found) in [
            ("PUT x:u1@20 => x:u1@25", 1),
            ("DELETE x => ok:u1", 1),
            ("DELETE x => !404", 0),
            ("CREATE x => x:u3@25", 0),
        ] {
            assert_eq!(kinds(&RULE, &format!("{REMOVED}r@B {write}\n")), vec![Kind::Violation; found], "{write}");
        }
    }

    #[test]
    fn a_deletion_that_only_began_ends_no_life() {
        let text = "w@A CREATE x => x:u1@20\nw@A DELETE x => x:u1@21[deleting]\nw@A CREATE y => y:u2@24\nr@B PUT x:u1@21 => x:u1@25\n";
        assert_eq!(kinds(&RULE, text), []);
    }
}
