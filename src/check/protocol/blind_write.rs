#![doc = include_str!("../../../docs/rules/blind-write.md")]

use crate::check::facts::bodies::BodyReader;
use crate::check::facts::stale_writes::{MAX_WRITES_AT_ONCE, StaleWrite, Undone, reverted};
use crate::check::{BrokenBy, Checks, Draft, Evidence, Group, Kind, Rule, RuleResult};
use crate::history::Revision;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "blind-write",
    title: "a client that has read an object makes its write conditional on the version that it read",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a write without precondition after a read of the same object by the same process",
    causes: &["name-reuse", "monotonic-reads", "lost-update"],
    page: include_str!("../../../docs/rules/blind-write.md"),
    checks: Checks::kubernetes(check),
};

fn check(evidence: &Evidence<'_>, result: &mut RuleResult<'_>) {
    let writes = evidence.unconditioned();
    writes.checked.iter().for_each(|life| result.checked(*life));
    result.undecided_many(
        "writes without precondition by processes whose reads were recorded without their answers",
        writes.undecided,
    );
    result.undecided_many("writes without precondition that nothing proves to follow a read", writes.unordered);
    let key = |write: &StaleWrite| evidence.history.operation(write.id).key;
    let reader = BodyReader::new(evidence, writes.outdated.iter().map(key));
    for part in writes.outdated.chunks(MAX_WRITES_AT_ONCE) {
        let reverted = reverted(evidence, &reader, part);
        for (at, write) in part.iter().enumerate() {
            found(evidence, result, write, reverted.get(&at));
        }
    }
}

fn found(evidence: &Evidence<'_>, result: &mut RuleResult<'_>, blind: &StaleWrite, reverted: Option<&Undone>) {
    let history = evidence.history;
    let o = history.operation(blind.id);
    let (client, key) = (evidence.short_client(&o), history.key_name(o.key));
    let version = blind.read.revision;
    let verb = o.verb.name();
    let (changed, change, outcome, kind, reason, summary);
    if let Some(undone) = reverted {
        let (field, by, when) = (&undone.field, undone.author_words(evidence), undone.when_words());
        changed = undone.change;
        change = format!("{by} had changed {field} of {key} {when}");
        outcome = format!("its {verb} without precondition put {field} back");
        (kind, reason) = undone
            .reason("the field went back to the value that the writer had read, over a change that it had not seen");
        summary = format!(
            "{client} put {field} of {key} back to what it had read at {version}, undoing the change of {by} {when}"
        );
    } else {
        changed = blind.other;
        let by = evidence.short_client(&history.operation(changed.writer));
        change = format!("{by} changed {key} at revision {}", changed.revision);
        outcome = format!("its {verb} without precondition took effect");
        kind = Kind::Hazard;
        reason =
            "nothing shows that a change was undone; with a precondition on the version read, the server would have \
            refused the write"
                .to_owned();
        summary = format!(
            "{client} sent {} of {key} without precondition, which it had read at {version} and which {by} had \
            changed at {} since",
            o.verb.with_article(),
            changed.revision
        );
    }
    result.found(Draft {
        kind,
        broken_by: BrokenBy::Client,
        incarnation: o.incarnation,
        key: o.key,
        cause: history.resource_name(history.resource_of(o.key)),
        summary,
        facts: vec![
            blind.read.fact(evidence, o.key, format!("{client} had last seen {key} at version {version}")),
            evidence.version(&changed, change),
            evidence.request(
                blind.id,
                Revision::NONE,
                format!("{client} sent {} of {key} that named no version", o.verb.with_article()),
            ),
            evidence.operation(blind.id, o.answered, outcome),
        ],
        reason,
        refuted_by: "evidence that the process had seen the change before it wrote".to_owned(),
        consequence: "changes of other clients are undone, and no client gets an error".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::{Kind, RULE};
    use crate::check::testing::trial::{holds, judged, kinds, read, trial};

    #[test]
    fn what_a_process_had_set_itself_it_may_want_back() {
        let text = "o@A CREATE x[a=1] => x:u1@10[a=1]\nc@A PATCH x[a=3] => x:u1@12[a=3]\no@A PUT x:u1@12[a=5] => x:u1@20[a=5]\n\
                    c@A PATCH x[a=3] => x:u1@30[a=3]\n";
        assert_eq!(kinds(&RULE, text), [Kind::Hazard]);
        // A value that the client had only read is not its own.
        let read = text.replace("c@A PATCH x[a=3] => x:u1@12[a=3]\n", "c@A GET x => x:u1@10[a=1]\n");
        assert_eq!(kinds(&RULE, &read.replace("[a=3]", "[a=1]").replace("@12", "@10")), [Kind::Violation]);
    }

    #[test]
    fn an_unconditioned_write_on_an_outdated_read_is_a_hazard() {
        let text = "c@A GET x => x:u1@20\no@A PUT x:u1@20 => x:u1@25\nc@A PATCH x => x:u1@31\n";
        assert_eq!(kinds(&RULE, text), [Kind::Hazard]);
        assert_eq!(kinds(&RULE, &text.replace("PATCH x =>", "PATCH x test(@20) =>").replace("x:u1@31", "!422")), []);
        assert!(holds(&RULE, "c@A GET x => x:u1@25\nc@A PATCH x => x:u1@31\n"));
        assert_eq!(kinds(&RULE, &text.replace("PATCH x =>", "PATCH x dry-run =>")), []);
    }

    #[test]
    fn a_uid_does_not_condition_what_is_written() {
        const READ: &str = "o@A CREATE x[n=3 m=1] => x:u1@10[n=3 m=1]\nc@A GET x => x:u1@10\n\
                            o@A PUT x:u1@10[n=5 m=1] => x:u1@20[n=5 m=1]\n";
        let story = |write: &str| format!("{READ}c@A {write}\n");
        for write in ["PUT x:u1[n=3 m=2] => x:u1@30[n=3 m=2]", "PATCH x:u1[n=3 m=2] => x:u1@30[n=3 m=2]"] {
            assert_eq!(kinds(&RULE, &story(write)), [Kind::Violation], "{write}");
        }
        // The change of the other client remains: only a hazard.
        assert_eq!(kinds(&RULE, &story("PATCH x:u1[m=2] => x:u1@30[n=5 m=2]")), [Kind::Hazard]);
        // A version is a precondition, and a deletion with a uid concerns one life.
        assert_eq!(kinds(&RULE, &story("PUT x:u1@10[n=3 m=2] => !409")), []);
        assert_eq!(kinds(&RULE, &story("DELETE x:u1 => ok")), []);
        // A read in between shows the change.
        let again = story("PUT x:u1[n=3 m=2] => x:u1@30[n=3 m=2]").replace("c@A PUT", "c@A GET x => x:u1@20\nc@A PUT");
        assert!(holds(&RULE, &again));
    }

    #[test]
    fn a_delete_by_name_is_a_hazard_too() {
        let text =
            "c@A GET x => x:u1@20\no@A PUT x:u1@20 => x:u1@25\no@A LIST => 30 {x:u1@25}\nc@A DELETE x => ok:u1\n";
        assert_eq!(kinds(&RULE, &text.replace("ok:u1", "x:u1@31 gone")), [Kind::Hazard]);
        // A watch that shows the deletion changes nothing here, whether it dates the deletion or not.
        for watch in ["w@A WATCH from 24 ~x:u1@25 -x:u1@40\n", "w@A WATCH rv=0 -x:u1@40\n"] {
            assert_eq!(kinds(&RULE, &format!("{text}{watch}")), [Kind::Hazard], "{watch}");
        }
    }

    #[test]
    fn what_the_process_saw_or_did_itself_is_current() {
        assert!(holds(&RULE, "c@A GET x => x:u1@20\nc@A PATCH x => x:u1@25\nc@A PATCH x => x:u1@31\n"));
        let watched =
            "c@A GET x => x:u1@20\no@A PUT x:u1@20 => x:u1@25\nc@A WATCH from 20 ~x:u1@25\nc@A PATCH x => x:u1@31\n";
        assert!(holds(&RULE, watched));
    }

    #[test]
    fn another_life_of_the_name_is_another_rule_s() {
        let text = "c@A GET x => x:u1@20\no@A DELETE x:u1 => ok\no@A CREATE x => x:u2@25\nc@A PATCH x => x:u2@31\n";
        assert_eq!(kinds(&RULE, text), []);
    }

    #[test]
    fn reads_without_answers_leave_it_open() {
        let text = "recorded audit\nc@A GET x => x:u1@20\nc@A WATCH from 20\no@A PUT x:u1@20 => x:u1@25\nc@A PATCH x => x:u1@31\n";
        let trial = trial(&RULE, text);
        assert_eq!((trial.kinds(), trial.undecided), (vec![], 1));
    }

    /// A capture: one client reads, another changes replicas, the first one writes `sent`.
    fn replicas(sent: &str, after: u32) -> Vec<Kind> {
        let uri = "/apis/apps/v1/namespaces/d/deployments/web";
        let object = |version: u32, replicas: u32| {
            format!(
                r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web","namespace":"d","uid":"u1","resourceVersion":"{version}"}},"spec":{{"replicas":{replicas},"paused":false}}}}"#
            )
        };
        let capture = |client: &str| {
            format!(r#"{{"kind":"capture","version":1,"client":"{client}","incarnation":"{client}-1","clock":"wall"}}"#)
        };
        let exchange = |id: u32, method: &str, body: &str, answer: String| {
            let at = 1_700_000_000_000_000_000 + u64::from(id) * 10_000_000;
            format!(
                "{{\"kind\":\"request\",\"id\":{id},\"at\":{at},\"method\":\"{method}\",\"uri\":\"{uri}\"{body}}}\n\
                 {{\"kind\":\"response\",\"id\":{id},\"at\":{},\"status\":200,\"body\":{answer}}}\n",
                at + 1_000_000
            )
        };
        let body = |text: &str| format!(",\"body\":{text}");
        let c = capture("c")
            + "\n"
            + &exchange(1, "GET", "", object(20, 3))
            + &exchange(3, "PATCH", &body(sent), object(31, after));
        let o = capture("o") + "\n" + &exchange(2, "PUT", &body(&object(20, 5)), object(25, 5));
        let files = [("c.jsonl", c.as_str()), ("o.jsonl", o.as_str())];
        judged(&RULE, &read(files.into_iter(), &[])).kinds()
    }

    #[test]
    fn putting_a_field_back_is_a_violation() {
        assert_eq!(replicas(r#"{"spec":{"replicas":3}}"#, 3), [Kind::Violation]);
        assert_eq!(replicas(r#"{"spec":{"paused":true}}"#, 5), [Kind::Hazard]);
        assert_eq!(replicas(r#"{"spec":{"replicas":4}}"#, 4), [Kind::Hazard]);
        assert_eq!(replicas(r#"[{"op":"replace","path":"/spec/replicas","value":3}]"#, 3), [Kind::Violation]);
    }
}
