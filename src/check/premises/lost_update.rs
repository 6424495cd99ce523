#![doc = include_str!("../../../docs/rules/lost-update.md")]

use crate::check::facts::authorship::Author;
use crate::check::facts::bodies::BodyReader;
use crate::check::facts::conflict_retries::laundered;
use crate::check::facts::knowledge::ClientKnowledge;
use crate::check::facts::stale_writes::{
    Compared, MAX_WRITES_AT_ONCE, StaleWrite, Undone, is_others, present_before, reverted, undone,
};
use crate::check::facts::three_way_diff::{Changed, WriteHistory};
use crate::check::premises::premise_index::{ENDLESS, PremiseIndex};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Rule, RuleResult};
use crate::history::{Marks, OperationId, Revision, Subresource, Verb};
use crate::order::{Premise, Reading, Relation, Versions};
use rustc_hash::FxHashSet;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "lost-update",
    title: "no write takes away a change that its content does not know of",
    group: Group::Premises,
    promise: BrokenBy::Client,
    needs: "a write with content from an older version than the one that it replaced",
    causes: &["blind-write", "laundered-conflict", "broken-compare", "stale-premise"],
    page: include_str!("../../../docs/rules/lost-update.md"),
    checks: Checks::kubernetes(check),
};

/// A change that a write removed.
struct Lost {
    write: OperationId,
    /// The version from which the content was derived.
    from: Fact,
    undone: Undone,
    /// The reason why that is known.
    reason: &'static str,
}

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let mut lost = declared(evidence, result);
    lost.extend(without_condition(evidence, result));
    lost.extend(after_conflicts(evidence, result));
    let mut reported: FxHashSet<OperationId> = FxHashSet::default();
    for lost in lost {
        if reported.insert(lost.write) {
            found(evidence, result, lost);
        }
    }
}

fn without_condition(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) -> Vec<Lost> {
    let writes = evidence.unconditioned();
    writes.checked.iter().for_each(|life| result.checked(*life));
    let mut lost = Vec::new();
    let key = |write: &StaleWrite| evidence.history.operation(write.id).key;
    let reader = BodyReader::new(evidence, writes.outdated.iter().map(key));
    for part in writes.outdated.chunks(MAX_WRITES_AT_ONCE) {
        let mut reverted: Vec<_> = reverted(evidence, &reader, part).into_iter().collect();
        reverted.sort_unstable_by_key(|(at, _)| *at);
        for (at, undone) in reverted {
            let (write, read) = (part[at].id, &part[at].read);
            let key = evidence.history.operation(write).key;
            let from = read.fact(evidence, key, had_read(evidence, write, read.revision));
            let reason = "the field went back to the value that the writer had read, so the content was derived from \
                         that version";
            lost.push(Lost { write, from, undone, reason });
        }
    }
    lost
}

fn after_conflicts(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) -> Vec<Lost> {
    let history = evidence.history;
    let laundered = laundered(evidence).into_iter().filter(|laundered| laundered.author == Author::Another);
    let lost = laundered.map(|laundered| {
        result.checked(history.operation(laundered.write).incarnation);
        let base = history.operation(laundered.refused).asked_revision;
        let client = history.short_client(history.operation(laundered.write).incarnation);
        let says = format!("the content of {client} for version {base} was refused with 409");
        Lost {
            write: laundered.write,
            from: evidence.operation(laundered.refused, base, says),
            undone: laundered.undone,
            reason: "the content is that of the refused request, with a new version",
        }
    });
    lost.collect()
}

fn had_read(evidence: &Evidence<'_>, write: OperationId, revision: Revision) -> String {
    let o = evidence.history.operation(write);
    let (client, key) = (evidence.short_client(&o), evidence.history.key_name(o.key));
    format!("{client} read {key} at version {revision}")
}

/// A write of a decision that had read an older version of its object.
struct Declared<'e> {
    write: OperationId,
    premise: Premise,
    revision: Revision,
    since: Versions<'e>,
    /// Whether the process had also seen a later version.
    knew: bool,
}

fn declared(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) -> Vec<Lost> {
    let history = evidence.history;
    let Some(basis) = PremiseIndex::declared(evidence) else { return Vec::new() };
    let mut writes: Vec<Declared<'_>> = Vec::new();
    for (id, decided) in basis.decided() {
        let o = history.operation(id);
        let part = matches!(o.subresource, Subresource::None | Subresource::Status | Subresource::Part);
        let changes = matches!(o.verb, Verb::Update | Verb::Patch) && part && o.status != 201;
        if !evidence.committed(&o) || !changes || !o.marks.has(Marks::REQUEST_BODY) {
            continue;
        }
        let Some(decided) = decided else {
            result.undecided(ENDLESS);
            continue;
        };
        let own = decided.used.iter().find(|used| used.premise.key == o.key).map(|used| used.premise);
        let Some((premise, through)) = own.zip(present_before(evidence, id, None)) else { continue };
        let Reading::Present { uid, revision } = premise.reading else { continue };
        let same = !uid.is_some() || !o.answer_uid.is_some() || uid == o.answer_uid;
        if !revision.is_some() || !same {
            continue;
        }
        result.checked(o.incarnation);
        let since = evidence.order.timeline.between(o.key, revision, through);
        if since.iter().any(|v| is_others(evidence, &v, id)) {
            writes.push(Declared { write: id, premise, revision, since, knew: o.asked_revision > revision });
        }
    }
    let operation = |d: &Declared<'_>| history.operation(d.write);
    let wanted = writes.iter().map(|d| (operation(d).incarnation, operation(d).key)).collect();
    let knowledge = ClientKnowledge::collect(evidence, &wanted);
    for declared in &mut writes {
        let o = history.operation(declared.write);
        let may_precede = |moment| evidence.order.clocks.relation(moment, (o.invoke, o.clock)) != Relation::NotBefore;
        let last_reads = knowledge.at_most(o.incarnation, o.key);
        declared.knew |= last_reads.filter(|g| g.revision > declared.revision).any(|g| may_precede(g.moment))
            || knowledge.may_know_more(evidence, o.incarnation, o.key, declared.premise.moment, (o.invoke, o.clock));
    }
    let (knew, fresh): (Vec<_>, Vec<_>) = writes.into_iter().partition(|declared| declared.knew);
    let mut lost = undoing(evidence, &basis, &knew, |history| history.reverted());
    lost.extend(undoing(evidence, &basis, &fresh, |history| history.overwritten()));
    lost.sort_by_key(|lost| lost.write);
    lost
}

fn undoing(
    evidence: &Evidence<'_>,
    basis: &PremiseIndex<'_>,
    writes: &[Declared<'_>],
    find: fn(&WriteHistory<'_>) -> Option<(String, Changed)>,
) -> Vec<Lost> {
    let mut lost = Vec::new();
    let key = |declared: &Declared<'_>| evidence.history.operation(declared.write).key;
    let reader = BodyReader::new(evidence, writes.iter().map(key));
    for part in writes.chunks(MAX_WRITES_AT_ONCE) {
        let read = |d: &Declared<'_>| evidence.order.timeline.version_at(key(d), d.revision);
        let compared: Vec<Compared<'_>> =
            part.iter().map(|d| Compared { id: d.write, read: read(d), since: d.since }).collect();
        for (at, undone) in undone(evidence, &reader, &compared, find) {
            let declared = &part[at];
            let says = had_read(evidence, declared.write, declared.revision);
            lost.push(Lost {
                write: declared.write,
                from: basis.fact(&declared.premise, says),
                undone,
                reason: "the decision had last read an older version, which did not have that change",
            });
        }
    }
    lost
}

fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, lost: Lost) {
    let history = evidence.history;
    let o = history.operation(lost.write);
    let (client, key) = (evidence.short_client(&o), history.key_name(o.key));
    let field = &lost.undone.field;
    let (kind, reason) = lost.undone.reason(lost.reason);
    let (by, when) = (lost.undone.author_words(evidence), lost.undone.when_words());
    result.found(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary: format!("{client} wrote {field} of {key} from an older version, so the change of {by} {when} is lost"),
        facts: vec![
            lost.from,
            evidence.version(&lost.undone.change, format!("{by} had changed {field} of {key} {when}")),
            evidence.request(lost.write, Revision::NONE, format!("{client} sent its {} of {key}", o.verb.name())),
            evidence.operation(lost.write, o.answered, format!("the {} replaced {field}", o.verb.name())),
        ],
        reason,
        refuted_by: "evidence that the process knew of the change and meant to replace it".to_owned(),
        consequence: "an acknowledged update is lost, and no client gets an error".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::check::Kind;
    use crate::check::testing::trial::{holds, kinds};

    const BOTH_READ: &str = "o@A CREATE x[n=3 m=1] => x:u1@10[n=3 m=1]\nc@A GET x for d => x:u1@10\no@A PUT x:u1@10[n=5 m=1] => x:u1@12[n=5 m=1]\n";

    #[test]
    fn a_declared_decision_on_an_older_version_loses_what_it_replaces() {
        let patch = "c@A PATCH x[n=4] for d => x:u1@15[n=4 m=1]\n";
        assert_eq!(kinds(&RULE, &format!("{BOTH_READ}{patch}")), [Kind::Violation]);
        // Nothing shows the version from which the write was derived.
        assert_eq!(kinds(&RULE, &format!("{BOTH_READ}{}", patch.replace("for d ", ""))), []);
        // Another field.
        let other = "c@A PATCH x[m=4] for d => x:u1@15[n=5 m=4]\n";
        assert!(holds(&RULE, &format!("{BOTH_READ}{other}")));
    }

    #[test]
    fn a_decision_that_reads_again_knows_what_it_replaces() {
        let text = "c@A GET x for d => x:u1@12\nc@A PUT x:u1@12[n=4 m=1] for d => x:u1@15[n=4 m=1]\n";
        assert!(holds(&RULE, &format!("{BOTH_READ}{text}")));
        let outside = "c@A GET x => x:u1@12\nc@A PATCH x[n=4] for d => x:u1@15[n=4 m=1]\n";
        assert!(holds(&RULE, &format!("{BOTH_READ}{outside}")));
    }

    #[test]
    fn a_new_version_on_old_content_loses_the_change() {
        let text = "c@A PUT x:u1@12[n=3 m=7] for d => x:u1@15[n=3 m=7]\n";
        assert_eq!(kinds(&RULE, &format!("{BOTH_READ}{text}")), [Kind::Violation]);
    }

    #[test]
    fn a_write_without_condition_that_puts_a_field_back_loses_the_change() {
        let text = BOTH_READ.replace(" for d", "") + "c@A PUT x[n=3 m=7] => x:u1@15[n=3 m=7]\n";
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
        assert!(holds(&RULE, &text.replace("n=3 m=7", "n=5 m=7")));
        // A uid is no precondition on the object's content.
        assert_eq!(kinds(&RULE, &text.replace("c@A PUT x[", "c@A PUT x:u1[")), [Kind::Violation]);
    }

    #[test]
    fn a_read_from_a_cache_is_what_the_content_stems_from() {
        let text = BOTH_READ.replace("c@A GET x for d => x:u1@10", "c@A READ x => :u1@10 for d")
            + "c@A PATCH x[n=4] for d => x:u1@15[n=4 m=1]\n";
        assert_eq!(kinds(&RULE, &text), [Kind::Violation]);
    }
}
