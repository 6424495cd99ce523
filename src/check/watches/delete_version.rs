#![doc = include_str!("../../../docs/rules/delete-version.md")]

use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::{DeliveryKind, Marks, OperationId, Verb};
use crate::order::Change;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "delete-version",
    title: "a DELETED event carries the revision of the deletion",
    group: Group::Watches,
    promise: BrokenBy::Server,
    needs: "DELETED events",
    causes: &[],
    page: include_str!("../../../docs/rules/delete-version.md"),
    checks: Checks::kubernetes(check),
};

/// The first minor version whose answers to DELETE carry the revision of the deletion.
const ANSWERS_SINCE: u32 = 26;

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    for stream in &evidence.history.streams {
        let operation = evidence.history.operation(stream.operation);
        for index in stream.deliveries() {
            if evidence.history.deliveries[index].kind == DeliveryKind::Deleted {
                result.checked(operation.incarnation);
                if evidence.order.timeline.is_misdated(index) {
                    event(evidence, result, stream.operation, index);
                }
            }
        }
    }
    for (id, o) in evidence.of_verbs(&[Verb::Delete]) {
        let removed = o.is_answered()
            && o.answered.is_some()
            && !o.marks.has(Marks::TERMINATING)
            && !o.marks.has(Marks::DRY_RUN)
            && o.subresource == Default::default();
        if removed && evidence.history.server_minor(o.server).is_some_and(|minor| minor >= ANSWERS_SINCE) {
            result.checked(o.incarnation);
            answer(evidence, result, id);
        }
    }
}

fn event(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, watch: OperationId, index: usize) {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let d = &history.deliveries[index];
    let o = history.operation(watch);
    let Some(put) = timeline.version_at(d.key, d.revision) else { return };
    let name = history.key_name(d.key);
    let mut facts = vec![
        evidence.version(&put, format!("{name} was alive at revision {}", d.revision)),
        evidence.delivery(index, watch, format!("received DELETED of {name} with that same revision {}", d.revision)),
    ];
    let deletion = timeline.versions(d.key).iter().find(|v| {
        v.revision > d.revision
            && v.change == Change::Deleted
            && (v.uid == d.uid || !v.uid.is_some() || !d.uid.is_some())
    });
    if let Some(deletion) = deletion {
        facts.push(evidence.version(&deletion, format!("{name} was deleted at revision {}", deletion.revision)));
    }
    result.found(Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key: d.key,
        cause: evidence.cause(&o),
        summary: format!(
            "{} sent {} DELETED of {name} with revision {}, which the object had while it lived",
            evidence.server_words(&o),
            evidence.observer_words(&o),
            d.revision
        ),
        facts,
        reason: format!(
            "A DELETED event carries the revision of the deletion, but {} is the revision of a version of the living \
            object.",
            d.revision
        ),
        refuted_by: "evidence that this revision was not a version of this object".to_owned(),
        consequence: "a client that resumes from the event's version receives all later changes again".to_owned(),
    });
}

fn answer(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId) {
    let o = evidence.history.operation(id);
    let put = evidence.order.timeline.version_at(o.key, o.answered).filter(|v| v.change.lives() == Some(true));
    let Some(put) = put else { return };
    let name = evidence.history.key_name(o.key);
    result.found(Draft {
        kind: Kind::Suspect,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key: o.key,
        cause: format!("answer of {}", evidence.cause(&o)),
        summary: format!(
            "{} answered the deletion of {name} with revision {}, which the object had while it lived",
            evidence.server_words(&o),
            o.answered
        ),
        facts: vec![
            evidence.version(&put, format!("{name} was alive at revision {}", o.answered)),
            evidence.operation(
                id,
                o.answered,
                format!("DELETE {name} was answered with that same revision {}", o.answered),
            ),
        ],
        reason: "From 1.26 on the answer to a DELETE carries the revision of the deletion (kubernetes#113369). Not \
                proved: when two deletes race, the answer may carry an earlier version."
            .to_owned(),
        refuted_by: "another delete of the object at the same time".to_owned(),
        consequence: "a client that takes this version for the deletion's orders the deletion before later \
                     changes"
            .to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::specimen::Specimen;

    #[test]
    fn finds_a_deletion_with_the_version_of_the_living_object() {
        for (version, found) in [(27, 1), (44, 0)] {
            let mut s = Specimen::new();
            let w = s.watch("&resourceVersion=20");
            s.event(w, "ADDED", ("web-0", "u1", 27)).event(w, "ADDED", ("web-1", "u2", 41));
            s.event(w, "DELETED", ("web-0", "u1", version));
            assert_eq!(s.kinds(&RULE), vec![Kind::Violation; found]);
        }
    }

    #[test]
    fn the_version_may_be_known_from_elsewhere_and_the_deletion_too() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=30");
        s.event(w, "DELETED", ("web-0", "u1", 27));
        let other = s.watch("&resourceVersion=30");
        s.event(other, "DELETED", ("web-0", "u1", 44));
        s.client("writer", "a", "wall").list("", 30, &[("web-0", "u1", 27)]);
        let (findings, _) = s.ruled(&RULE);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].certificate.facts.len(), 3);
    }

    #[test]
    fn leaving_a_selection_is_no_deletion() {
        let mut s = Specimen::new();
        let w = s.watch("&resourceVersion=20&labelSelector=tier%3Dgold");
        s.event_labelled(w, "ADDED", ("a", "u", 21), r#"{"tier":"gold"}"#);
        s.event_labelled(w, "DELETED", ("a", "u", 25), r#"{"tier":"gold"}"#);
        s.client("writer", "a", "wall").update_labelled("a", "u", 21, 25, r#"{"tier":"iron"}"#);
        assert!(s.keeps(&RULE));
    }

    #[test]
    fn a_saved_stream_may_have_had_a_selector() {
        let mut s = Specimen::new();
        s.create_labelled("a", "u", 21, "{}").update_labelled("a", "u", 21, 25, "{}");
        s.file(
            "w.json",
            r#"{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"d","name":"a","uid":"u","resourceVersion":"25"}}}"#,
        );
        assert!(s.keeps(&RULE));
    }
}
