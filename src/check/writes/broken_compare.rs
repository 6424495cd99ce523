#![doc = include_str!("../../../docs/rules/broken-compare.md")]

use crate::check::facts::{commit_evidence, staleness};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::resource::is_aggregated;
use crate::history::{Marks, Operation, OperationId, Revision, Subresource, Verb};
use crate::order::{Relation, Version};

/// The rule.
pub const RULE: Rule = Rule {
    slug: "broken-compare",
    title: "a write with a precondition commits only while its precondition holds",
    group: Group::Writes,
    promise: BrokenBy::Server,
    needs: "a write with a precondition whose commit is known",
    causes: &["revision-reuse", "revision-rewind"],
    page: include_str!("../../../docs/rules/broken-compare.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let removals = commit_evidence::removals(evidence);
    let timeline = &evidence.order.timeline;
    for (id, o) in evidence.of_verbs(&[Verb::Update, Verb::Patch, Verb::Delete]) {
        if !evidence.committed(&o)
            || !o.key.is_some()
            || matches!(o.subresource, Subresource::Effect | Subresource::Other)
        {
            continue;
        }
        if requires_uid(&o) && o.answer_uid.is_some() {
            result.checked(o.incarnation);
            if o.request_uid != o.answer_uid {
                uid(evidence, result, id);
                continue;
            }
        }
        let base = o.asked_revision;
        let removed = removals.get(&id).map(|v| v.revision);
        if !base.is_some() {
            continue;
        }
        if answers_below_base(&o) {
            result.checked(o.incarnation);
            below_base(evidence, result, id);
            continue;
        }
        let Some(revision) = commit_evidence::proven(evidence, &o).filter(|_| o.status != 201).or(removed) else {
            passed(evidence, result, id, &o);
            continue;
        };
        result.checked(o.incarnation);
        let mut between = timeline.between(o.key, base, revision.previous()).iter();
        let first = between.next();
        let may_be_own = |first: &Version| !first.writer.is_some() || first.writer == id;
        if o.verb == Verb::Delete && first.as_ref().is_some_and(may_be_own) && between.next().is_none() {
            continue;
        }
        if let Some(version) = first {
            let fact = evidence.version(&version, evidence.change_words(&version));
            state(evidence, result, id, revision, fact, version.revision);
        }
    }
}

/// Whether the answer shows a version below the one that the write required.
fn answers_below_base(o: &Operation) -> bool {
    o.answered.is_some()
        && o.answered < o.asked_revision
        && o.status != 201
        && o.subresource.answers_parent()
        && !o.marks.has(Marks::LIST_ANSWER)
}

/// Reports an answer below the base. A server that changes nothing answers with the base, and a change gets a higher version.
fn below_base(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId) {
    let history = evidence.history;
    let o = history.operation(id);
    let (base, key) = (o.asked_revision, history.key_name(o.key));
    let mut draft = Draft {
        summary: format!(
            "{} of {key} required version {base} and was accepted, but its answer shows the older version {}",
            o.verb.name(),
            o.answered
        ),
        facts: vec![
            evidence.request(id, base, format!("{} required {key} to be at version {base}", evidence.short_client(&o))),
            evidence.operation(id, o.answered, format!("the answer showed {key} at version {}", o.answered)),
        ],
        reason: "A write with a resourceVersion is accepted only while the object is at that version, and no write makes it older."
            .into(),
        refuted_by: "evidence that the answer belongs to another request".into(),
        consequence: "the writer treats an older object as its own write, and its next write undoes other changes".into(),
        ..bare(evidence, &o)
    };
    let group = history.resources[history.resource_of(o.key).index()].group;
    if is_aggregated(history.name(group)) {
        draft.kind = Kind::Suspect;
        draft.reason = format!("{} Not proved: an extension API server may number versions differently.", draft.reason);
    }
    result.found(draft);
}

/// The most versions above a base that are examined. The earliest evidence is nearly always of the next one.
const NEXT: usize = 4;

/// An accepted write at an unknown revision. Its precondition held at some moment after it was sent, so no later version of
/// the object may have existed before.
fn passed(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId, o: &Operation) {
    let (timeline, clocks) = (&evidence.order.timeline, &evidence.order.clocks);
    // The answer to a creation, or a body that was not kept, says nothing about the precondition.
    if o.status == 201 || !o.invoke.is_known() {
        return;
    }
    result.checked(o.incarnation);
    let versions = timeline.versions(o.key);
    let from = versions.through(o.asked_revision);
    let history = evidence.history;
    let above = (from..).map_while(|at| versions.get(at)).filter(|version| !version.is_undated()).take(NEXT);
    let sent = (o.invoke, o.clock);
    // The time of the earliest evidence of the version, or of its writer's answer.
    let relations: Vec<(Version, bool, Relation)> = above
        .flat_map(|version| {
            let shown = (false, Some(version.dated.moment(history)));
            [shown, (true, version.answered(history))].map(|(is_answer, moment)| {
                (version, is_answer, moment.map_or(Relation::Unknown, |moment| clocks.relation(moment, sent)))
            })
        })
        .collect();
    let proved = relations.iter().find(|(.., relation)| *relation == Relation::Before);
    let weaker = relations.iter().find(|(.., relation)| matches!(relation, Relation::BeforeUnless(_)));
    let Some((version, is_answer, relation)) = proved.or(weaker) else { return };
    let says = format!("{} was at version {}", history.key_name(o.key), version.revision);
    let later = match is_answer {
        true => evidence.version(version, says),
        false => evidence.shown(version, version.dated, version.uid, says),
    };
    let (base, key) = (o.asked_revision, history.key_name(o.key));
    let draft = Draft {
        summary: format!(
            "{} of {key} required version {base} and was accepted, although the object was at {} before it was sent",
            o.verb.name(),
            version.revision
        ),
        facts: vec![
            later,
            evidence.request(id, base, format!("{} required {key} to be at version {base}", evidence.short_client(o))),
            evidence.operation(id, Revision::NONE, "the server accepted it"),
        ],
        reason: "A write with a resourceVersion is accepted only while the object is at that version, and versions of a name never fall."
            .into(),
        refuted_by: "evidence that the later version belongs to another timeline, or to another object".into(),
        consequence: "the write replaced a newer change although the writer asked for protection".into(),
        ..bare(evidence, o)
    };
    let offset = match relation {
        Relation::BeforeUnless(offset) => Some(*offset),
        _ => None,
    };
    result.found(staleness::unless_clocks_differ(draft, offset, "the write was sent first"));
}

/// Whether the request requires a uid in a way that servers enforce.
fn requires_uid(o: &Operation) -> bool {
    o.request_uid.is_some()
        && match o.verb {
            Verb::Delete => true,
            Verb::Update => o.status != 201,
            // A patch that names a uid in its body does not test it as a precondition does.
            _ => !o.marks.has(Marks::NAMES_UID),
        }
}

fn state(
    evidence: &Evidence<'_>,
    result: &mut RuleResult<'_>,
    id: OperationId,
    revision: Revision,
    between: Fact,
    met: Revision,
) {
    let history = evidence.history;
    let o = history.operation(id);
    let base = o.asked_revision;
    let key = history.key_name(o.key);
    result.found(Draft {
        summary: format!(
            "{} of {key} required version {base} and committed at revision {revision}, although the object was at \
            {met} by then",
            o.verb.name()
        ),
        facts: vec![
            evidence.request(id, base, format!("{} required {key} to be at version {base}", evidence.short_client(&o))),
            between,
            evidence.operation(id, revision, format!("the server answered that it committed at revision {revision}")),
        ],
        reason: "A write with a resourceVersion commits only while the object is at that version.".into(),
        refuted_by: "evidence that the version in between belongs to another timeline, or to another object".into(),
        consequence: "the write replaced the change in between although the writer asked for protection".into(),
        ..bare(evidence, &o)
    });
}

fn uid(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, id: OperationId) {
    let history = evidence.history;
    let o = history.operation(id);
    let key = history.key_name(o.key);
    let (wanted, met) = (evidence.short_uid(o.request_uid), evidence.short_uid(o.answer_uid));
    let request =
        evidence.request(id, o.asked_revision, format!("the request required {key} to have the uid {wanted}"));
    let answer = evidence.operation(id, o.answered, format!("the answer showed that it took effect on uid {met}"));
    result.found(Draft {
        summary: format!(
            "{} of {key} required uid {wanted} and took effect on uid {met}: the precondition was not enforced",
            o.verb.name()
        ),
        facts: vec![Fact { uid: o.request_uid, ..request }, answer],
        reason: "A write with a uid precondition commits only on the object with that uid.".into(),
        refuted_by: "evidence that the answer belongs to another request".into(),
        consequence: "the write changed or deleted an object that the writer did not mean".into(),
        ..bare(evidence, &o)
    });
}

/// A violation about the object of a write. The caller fills in the sentences.
fn bare(evidence: &Evidence<'_>, o: &Operation) -> Draft {
    let history = evidence.history;
    Draft {
        kind: Kind::Violation,
        broken_by: BrokenBy::Server,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary: String::new(),
        facts: Vec::new(),
        reason: String::new(),
        refuted_by: String::new(),
        consequence: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, kinds};

    #[test]
    fn a_deletion_may_mark_its_object_before_it_removes_it() {
        let text = "c@A GET x => x:u1@20\nc@A DELETE x:u1@20 => x:u1@31 gone\n";
        let seen = |events: &str| format!("{text}r@A WATCH from 19 +x:u1@20 {events} -x:u1@31\n");
        assert_eq!(kinds(&RULE, &seen("~x:u1@29")), []);
        assert_eq!(kinds(&RULE, &seen("~x:u1@25 ~x:u1@29")), [Kind::Violation]);
        let other = "o@A PUT x:u1@20 => x:u1@29\n";
        assert_eq!(kinds(&RULE, &text.replace("c@A DELETE", &format!("{other}c@A DELETE"))), [Kind::Violation]);
    }

    #[test]
    fn a_base_that_was_overwritten_must_conflict() {
        let text = "b@A PUT x:u1@20 => x:u1@25\na@A PUT x:u1@20 => x:u1@31\n";
        assert_eq!(kinds(&RULE, text), [Kind::Violation]);
        assert!(holds(&RULE, "b@A PUT x:u1@20 => x:u1@25\na@A PUT x:u1@20 => !409\n"));
        assert!(holds(&RULE, "b@A PUT x:u1@20 => x:u1@25\na@A PUT x:u1@25 => x:u1@31\n"));
    }

    #[test]
    fn bases_that_were_accepted_never_fall() {
        let bare = |first: u32, second: u32| {
            format!(
                "recorded audit\nlevel metadata\na@A PUT x:u1@{first} => bare\n--- 1s\nb@A PUT x:u1@{second} => bare\n"
            )
        };
        assert_eq!(kinds(&RULE, &bare(1105, 1001)), [Kind::Violation]);
        assert!(holds(&RULE, &bare(1001, 1105)));
        assert!(holds(&RULE, &bare(1001, 1001)), "the first may have changed nothing");
        // At the same time: the lower one may have been first.
        let both = "recorded audit\nlevel metadata\na@A |-PUT x:u1@1105 => bare-|\nb@A   |-PUT x:u1@1001 => bare-|\n";
        assert!(holds(&RULE, both));
        // A write that changes nothing still tests the current version.
        assert_eq!(kinds(&RULE, "b@A GET x => x:u1@25\na@A PUT x:u1@20 => x:u1@20\n"), [Kind::Violation]);
        let clocks = "recorded audit\nserver A clock=a\nserver B clock=b\nlevel metadata\na@A PUT x:u1@1105 => bare\nb@B PUT x:u1@1001 => bare\n";
        assert_eq!(kinds(&RULE, clocks), [Kind::Suspect]);
    }

    #[test]
    fn a_witness_takes_nothing_away() {
        // The write has no times. The observation of the later version has one.
        let text = |first: u32, second: u32| {
            format!(
                "recorded audit\nlevel metadata\na@A PUT x:u1@{first} => bare\n--- 1s\nb@A PUT x:u1@{second} => bare\n"
            )
        };
        let changes: String = (1002..1112).map(|at| format!("  ~x:u1@{at}")).collect();
        let seen = |text: &str| format!("etcd  +x:u1@1001{changes}\n{text}");
        for sketch in [text(1105, 1001), seen(&text(1105, 1001))] {
            assert_eq!(kinds(&RULE, &sketch), [Kind::Violation], "{sketch}");
        }
        for sketch in [text(1001, 1105), seen(&text(1001, 1105)), seen(&text(1001, 1001))] {
            assert!(holds(&RULE, &sketch), "{sketch}");
        }
        let clocks = "recorded audit\nserver A clock=a\nserver B clock=b\nlevel metadata\na@A PUT x:u1@1105 => bare\nb@B PUT x:u1@1001 => bare\n";
        assert_eq!(kinds(&RULE, &seen(clocks)), [Kind::Suspect]);
        // Nor does an event that came late if the answer of the write came early.
        let late = "a@A PUT x:u1@20 => x:u1@25\nb@A PUT x:u1@20 => bare\nw@A WATCH from 19 ~x:u1@25\n";
        assert_eq!(kinds(&RULE, late), [Kind::Violation]);
    }

    #[test]
    fn patches_that_test_are_conditioned_and_others_are_not() {
        let tested = "b@A PUT x:u1@20 => x:u1@25\na@A PATCH x test(@20) => x:u1@31\n";
        assert_eq!(kinds(&RULE, tested), [Kind::Violation]);
        assert_eq!(kinds(&RULE, "b@A PUT x:u1@20 => x:u1@25\na@A PATCH x => x:u1@31\n"), []);
    }

    #[test]
    fn a_uid_precondition_holds_or_refuses() {
        assert_eq!(kinds(&RULE, "a@A DELETE x:u1 => x:u2@31 gone\n"), [Kind::Violation]);
        assert!(holds(&RULE, "a@A DELETE x:u1 => x:u1@31 gone\n"));
        // Servers ignore the uid in a patch on the status of a custom resource.
        assert_eq!(kinds(&RULE, "a@A PATCH status x:u1 => x:u2@31\n"), []);
    }

    #[test]
    fn what_commits_nothing_breaks_nothing() {
        assert_eq!(kinds(&RULE, "b@A PUT x:u1@20 => x:u1@25\na@A PUT x:u1@20 dry-run => x:u1@31\n"), []);
        assert_eq!(kinds(&RULE, "b@A PUT x:u1@20 => x:u1@25\na@A PUT x:u1@25 => x:u1@25 gone\n"), []);
        assert_eq!(kinds(&RULE, "b@A PUT x:u1@20 => x:u1@25\na@A PUT x:u1@20 => !504\n"), []);
    }
}
