//! A key's uid changed although nothing was deleted and created in between.
//!
//! ## What it proves
//! An object keeps its uid for life; a new uid under the same name needs a deletion and a creation, two revisions. Here one
//! version shows two uids, or an update stands directly on a version with another uid.
//!
//! ## Why it matters
//! Owners, volumes, leases and controllers tell lives apart by uid alone.
//!
//! ## Example
//! ```text
//! revision 20   pods a, uid 1
//! revision 21   pods a, uid 2, answered to a PUT with base 20     no deletion fits in between
//! ```
//!
//! ## Evidence
//! Bodies with uids: write answers, reads, or a watch without selector that covers both versions.
//!
//! ## What it cannot see
//! A change of uid across a stretch that nobody watched: a deletion and a creation may lie in it.
//!
//! ## Traps it avoids
//! - The uid in the *request* of a write is a claim of the client, not the object's: a patch on the status of a custom resource
//!   may name any.
//! - An event stream with a selector shows entries and exits, not lives.
//!
//! ## Sources
//! apiserver `pkg/registry/rest/create.go` (uids), `pkg/apis/meta/v1` ObjectMeta; kubernetes#116122 (missed events).

use super::{BrokenBy, Draft, Evidence, Fact, Group, Kind, Rule, Ruling};
use crate::history::{OperationId, Revision, Symbol, Verb};
use crate::order::{Change, Contradiction, Provenance, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "identity-break",
    title: "a name's uid changes only through a deletion and a creation",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "two adjacent versions of one key with their uids",
    causes: &["revision-reuse", "revision-rewind", "broken-compare"],
    source: include_str!("identity_break.rs"),
    check,
};

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    let timeline = &evidence.order.timeline;
    for contradiction in timeline.contradictions() {
        let Contradiction::TwoUids(key, revision, other) = contradiction else { continue };
        let Some(version) = timeline.version_at(*key, *revision) else { continue };
        let claims = claims_only(evidence, version.shown_by(evidence.history), *revision, version.uid);
        if claims || claims_only(evidence, other.operation, *revision, other.uid) {
            continue;
        }
        let shower = if other.operation.is_some() {
            let fact = evidence.operation(other.operation, *revision, uid_words(evidence, &version, other.uid));
            Fact { position: other.position, key: *key, uid: other.uid, ..fact }
        } else {
            let fact = evidence.version(&version, uid_words(evidence, &version, other.uid));
            Fact { position: other.position, uid: other.uid, ..fact }
        };
        let first = evidence.version(&version, uid_words(evidence, &version, version.uid));
        found(evidence, ruling, &version, vec![first, shower], version.uid, other.uid);
    }
    let processes = timeline.processes(evidence.history);
    for ((before, after), process) in timeline.all().pairs().zip(processes.iter().skip(1)) {
        let known = before.key == after.key && before.uid.is_some() && after.uid.is_some();
        if !known || after.change != Change::Updated || before.change.lives() != Some(true) {
            continue;
        }
        ruling.checked(*process);
        if before.uid == after.uid || !adjacent(evidence, &before, &after) {
            continue;
        }
        if claims_only(evidence, before.shown_by(evidence.history), before.revision, before.uid) {
            continue;
        }
        let facts = vec![
            evidence.version(&before, uid_words(evidence, &before, before.uid)),
            evidence.version(&after, uid_words(evidence, &after, after.uid)),
        ];
        found(evidence, ruling, &after, facts, before.uid, after.uid);
    }
}

/// Whether nothing can lie between two versions of a key: the second is a write on the first, or a watch shows all between.
fn adjacent(evidence: &Evidence<'_>, before: &Version, after: &Version) -> bool {
    let history = evidence.history;
    if after.writer.is_some() {
        let writer = history.operation(after.writer);
        if writer.asked_revision == before.revision && matches!(writer.verb, Verb::Update | Verb::Patch) {
            return true;
        }
    }
    evidence.order.timeline.spans().iter().any(|span| {
        let domain = history.domain_of(history.resource_of(after.key));
        let covers = match span.scope.is_some() {
            true => history.covers_key(span.scope, after.key),
            false => history.domains[domain.index()] == "default",
        };
        covers
            && span.provenance <= Provenance::Event
            && span.after <= before.revision
            && span.through >= after.revision
    })
}

/// Whether a uid at a version is only what an update's request claims of its base.
fn claims_only(evidence: &Evidence<'_>, id: OperationId, revision: Revision, uid: Symbol) -> bool {
    if !id.is_some() {
        return false;
    }
    let o = evidence.history.operation(id);
    o.verb == Verb::Update && o.asked_revision == revision && o.request_uid == uid && o.answer_uid != uid
}

fn uid_words(evidence: &Evidence<'_>, version: &Version, uid: Symbol) -> String {
    format!("{} had uid {} at {}", evidence.history.key_name(version.key), evidence.short_uid(uid), version.revision)
}

fn found(
    evidence: &Evidence<'_>,
    ruling: &mut Ruling<'_>,
    version: &Version,
    facts: Vec<Fact>,
    one: Symbol,
    other: Symbol,
) {
    let history = evidence.history;
    let key = history.key_name(version.key);
    ruling.found(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: evidence.shower(version),
        key: version.key,
        cause: history.resource_name(history.resource_of(version.key)),
        summary: format!(
            "{key} changed its uid from {} to {} at revision {} without a deletion in between",
            evidence.short_uid(one),
            evidence.short_uid(other),
            version.revision
        ),
        facts,
        reason: "a uid is given at creation and never changes; another uid needs a deletion and a creation before it"
            .into(),
        refuted_by: "a deletion and a creation of the name between the two versions".into(),
        consequence: "whoever tells lives apart by uid (owners, volumes, leases) takes one object for another".into(),
    });
}

#[cfg(test)]
mod tests {
    use super::super::trial::{holds, kinds};
    use super::{Kind, RULE};

    #[test]
    fn an_update_keeps_the_uid() {
        assert_eq!(kinds(&RULE, "a@A GET x => x:u1@20\na@A PUT x:u2@20 => x:u2@21\n"), [Kind::Violation]);
        assert!(holds(&RULE, "a@A GET x => x:u1@20\na@A PUT x:u1@20 => x:u1@21\n"));
    }

    #[test]
    fn a_change_on_a_covered_stretch_keeps_the_uid() {
        let text = "a@A WATCH from 19 +x:u1@20 ~x:u2@22\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert!(holds(&RULE, "a@A WATCH from 19 +x:u1@20 ~x:u1@21 -x:u1@22 +x:u2@23 ~x:u2@24\n"));
    }

    #[test]
    fn a_stretch_that_nobody_watched_may_hide_a_deletion() {
        assert_eq!(kinds(&RULE, "a@A GET x => x:u1@20\nb@A WATCH from 30 ~x:u2@31\n"), []);
    }

    #[test]
    fn a_uid_that_only_a_request_claims_is_no_object_s() {
        assert_eq!(kinds(&RULE, "a@A GET x => x:u2@20\nb@A PUT status x:u1@20 => x:u2@21\n"), []);
    }

    #[test]
    fn a_line_that_could_not_be_used_may_have_been_the_end_of_a_life() {
        for (damaged, found) in [(false, 1), (true, 0)] {
            let mut s = super::super::specimen::Specimen::new();
            let w = s.watch("&resourceVersion=20");
            s.event(w, "ADDED", ("a", "u1", 23));
            if damaged {
                s.event(w, "DELETED", ("a", "u1", 24)).cut();
            }
            s.event(w, "MODIFIED", ("a", "u2", 26));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
        }
    }
}
