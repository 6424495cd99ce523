#![doc = include_str!("../../../docs/rules/laundered-conflict.md")]

use crate::check::facts::authorship::Author;
use crate::check::facts::conflict_retries::{Laundered, compare, retries};
use crate::check::facts::knowledge::{ClientKnowledge, LastRead};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Fact, Group, Kind, Rule, RuleResult};
use crate::history::Revision;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "laundered-conflict",
    title: "after a conflict a client decides anew on the new version, instead of sending its old content with the \
           new number",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a PUT after one of the same object that was refused with 409, with their bodies",
    causes: &["name-reuse", "broken-compare", "monotonic-reads", "stale-consistent-read"],
    page: include_str!("../../../docs/rules/laundered-conflict.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let (retries, unordered): (Vec<_>, Vec<_>) = retries(evidence).into_iter().partition(|retry| retry.is_ordered);
    result.undecided_many("writes that nothing proves to follow a conflict", unordered.len() as u64);
    retries.iter().for_each(|retry| result.checked(evidence.history.operation(retry.write).incarnation));
    let (laundered, open) = compare(evidence, &retries);
    result.undecided_many(
        "the version that a write after a conflict replaced, or the body of the write, was not recorded as a whole",
        open,
    );
    let operation = |l: &Laundered| evidence.history.operation(l.write);
    let wanted = laundered.iter().map(|l| (operation(l).incarnation, operation(l).key)).collect();
    let knowledge = ClientKnowledge::collect(evidence, &wanted);
    for laundered in laundered {
        let o = operation(&laundered);
        let read = knowledge.last(evidence, o.incarnation, o.key, (o.invoke, o.clock), |_| true);
        found(evidence, result, &laundered, read.filter(|read| read.revision >= laundered.undone.change.revision));
    }
}

fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, laundered: &Laundered, read: Option<LastRead>) {
    let history = evidence.history;
    let (o, refused) = (history.operation(laundered.write), history.operation(laundered.refused));
    let (client, key) = (evidence.short_client(&o), history.key_name(o.key));
    let field = &laundered.undone.field;
    let (by, when) = (laundered.undone.author_words(evidence), laundered.undone.when_words());
    let mut facts: Vec<Fact> = vec![
        evidence.version(&laundered.undone.change, format!("{by} had changed {field} of {key} {when}")),
        evidence.operation(
            laundered.refused,
            refused.asked_revision,
            format!("{client} sent {key} as of version {} and was refused with 409", refused.asked_revision),
        ),
    ];
    facts.extend(
        read.map(|read| read.fact(evidence, o.key, format!("{client} saw {key} at version {}", read.revision))),
    );
    let sent = format!("{client} sent {key} again, as of version {}, with {field} as it was before", o.asked_revision);
    facts.push(evidence.request(laundered.write, Revision::NONE, sent));
    facts.push(evidence.operation(laundered.write, o.answered, format!("the PUT put {field} back")));
    let (kind, reason) = match laundered.author {
        Author::Another => (
            Kind::Violation,
            "no change that others had made between the two versions survived, so the content is that of the older \
            version: the client took only the new version number after the conflict",
        ),
        Author::Unknown => (
            Kind::Suspect,
            "the field went back to its older value; the evidence does not show the first writer of that value, and \
            the process may have wanted it back",
        ),
        Author::Itself => (
            Kind::Hazard,
            "no change of others survived; the process had set the older value itself, and may have wanted it back",
        ),
    };
    let (kind, reason) = match kind {
        Kind::Violation => laundered.undone.reason(reason),
        kind => (kind, reason.to_owned()),
    };
    result.found(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary: format!(
            "{client} answered a conflict by sending its old content of {key} with the new version, undoing what {by} had changed \
             {when}"
        ),
        facts,
        reason,
        refuted_by: "evidence that the process decided on the newer version and wanted the older values".to_owned(),
        consequence: "an accepted change is undone, and the optimistic lock reports no conflict".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, judged, kinds, unlinked};
    use crate::history::{Marks, Verb};

    /// `a` is the other client's field, `b` the retrying client's.
    fn history(sent: &str, answered: &str) -> String {
        format!(
            "o@A CREATE x[a=1 b=1] => x:u1@10[a=1 b=1]\nc@A GET x => x:u1@10\no@A PUT x:u1@10[a=2 b=1] => x:u1@12[a=2 b=1]\n\
             c@A PUT x:u1@10[a=1 b=5] => !409\nc@A GET x => x:u1@12\nc@A PUT x:u1@12[{sent}] => x:u1@15[{answered}]\n"
        )
    }

    #[test]
    fn old_content_with_a_new_version_is_a_violation() {
        assert_eq!(kinds(&RULE, &history("a=1 b=5", "a=1 b=5")), [Kind::Violation]);
        assert_eq!(kinds(&RULE, &history("a=1 b=6", "a=1 b=6")), [Kind::Violation]);
    }

    #[test]
    fn content_decided_on_the_new_version_is_none() {
        assert!(holds(&RULE, &history("a=2 b=5", "a=2 b=5")));
        assert!(holds(&RULE, &history("a=3 b=5", "a=3 b=5")));
        // The server kept the other client's field: a subresource, or admission.
        assert!(holds(&RULE, &history("a=1 b=5", "a=2 b=5")));
    }

    #[test]
    fn taking_away_what_another_one_added_is_a_violation() {
        let added = history("b=5", "b=5").replace("[a=1 b=1]", "[b=1]").replace("[a=1 b=5]", "[b=5]");
        assert_eq!(kinds(&RULE, &added), [Kind::Violation]);
    }

    #[test]
    fn a_value_of_its_own_may_be_wanted_back() {
        let own = history("a=1 b=5", "a=1 b=5").replacen("o@A CREATE", "c@A CREATE", 1);
        assert_eq!(kinds(&RULE, &own), [Kind::Hazard]);
    }

    #[test]
    fn a_value_of_unknown_origin_is_a_suspect() {
        let history = history("a=1 b=5", "a=1 b=5");
        let (_, rest) = history.split_once('\n').unwrap();
        let text = rest.replacen("x:u1@10", "x:u1@10[a=1 b=1]", 1);
        assert_eq!(kinds(&RULE, &text), [Kind::Suspect]);
    }

    #[test]
    fn some_change_that_survives_shows_that_it_decided_anew() {
        let text =
            history("a=1 b=5 d=9", "a=1 b=5 d=9").replacen("PUT x:u1@10[a=2 b=1]", "PUT x:u1@10[a=2 b=1 d=9]", 1);
        assert!(holds(&RULE, &text.replacen("@12[a=2 b=1]", "@12[a=2 b=1 d=9]", 1)));
    }

    #[test]
    fn another_life_of_the_name_is_another_rule_s() {
        let text = "o@A CREATE x[a=1] => x:u1@10[a=1]\nc@A GET x => x:u1@10\no@A DELETE x:u1 => ok\n\
                    o@A CREATE x[a=2] => x:u2@14[a=2]\nc@A PUT x:u1@10[a=1] => !409 live=:u2\nc@A GET x => x:u2@14\n\
                    c@A PUT x:u2@14[a=1] => x:u2@16[a=1]\n";
        assert_eq!(kinds(&RULE, text), []);
    }

    /// One client twice: recorded by itself and by a server.
    const ITS_OWN: &str = "client c user=u recorded=capture\nclient s user=u recorded=audit\n\
        o@A CREATE x[a=1 b=1] => x:u1@10[a=1 b=1]\nc@A GET x => x:u1@10\ns@A PUT x:u1@10[a=2 b=1] => x:u1@12[a=2 b=1]\n\
        c@A PUT x:u1@10[a=1 b=5] => !409\nc@A GET x => x:u1@12\nc@A PUT x:u1@12[a=1 b=5] => x:u1@15[a=1 b=5]\n";

    #[test]
    fn what_only_a_server_recorded_of_the_same_user_may_be_its_own() {
        assert_eq!(kinds(&RULE, ITS_OWN), []);
        assert_eq!(kinds(&RULE, &ITS_OWN.replace("client s user=u", "client s user=v")), [Kind::Violation]);
        // Requests recorded on both sides show the client's address.
        let elsewhere = "client c user=u recorded=both\nclient s user=u recorded=audit address=10.9.9.9\n";
        let replica = format!("{elsewhere}{}", ITS_OWN.split_once("o@A").map_or("", |(_, rest)| rest));
        assert_eq!(kinds(&RULE, &replica.replacen(" CREATE", "o@A CREATE", 1)), [Kind::Violation]);
    }

    #[test]
    fn both_records_of_a_write_are_one_without_an_audit_id() {
        let both = |other: &str| {
            let text = format!("client c user=u recorded=both\n{other}recorded both\n");
            unlinked(&format!("{text}{}", history("a=1 b=5", "a=1 b=5")))
        };
        assert_eq!(judged(&RULE, &both("")).kinds(), [Kind::Violation]);
        // A replica at another address.
        assert_eq!(judged(&RULE, &both("client o user=u recorded=audit\n")).kinds(), [Kind::Violation]);
        let own = history("a=1 b=5", "a=1 b=5").replace("o@A PUT", "c@A PUT");
        let own = unlinked(&format!("client c user=u recorded=both\nrecorded both\n{own}"));
        assert_eq!(judged(&RULE, &own).kinds(), []);
        let puts = own.operations.of_verbs(&[Verb::Update]).filter(|(_, o)| o.is_answered());
        assert_eq!(puts.map(|(_, o)| o.marks.has(Marks::BOTH_SIDES)).collect::<Vec<_>>(), [true, true]);
    }
}
