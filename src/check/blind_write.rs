//! A write without condition, on top of a read that is no longer current: **blind write**.
//!
//! A PUT without resourceVersion, a patch that tests nothing and a DELETE without preconditions take effect on whatever the
//! object is by then. A client that had read it before, and wrote after someone else had changed it, may undo that change
//! without anybody noticing.
//!
//! ```text
//! T    20 (the client reads)   25 PATCH by another client: replicas 3 -> 5   31 PUT without version: replicas 3
//! ```
//!
//! **A violation**, of the client, where the bodies prove that a field went back to the value that the writer had read, although
//! another process had changed it since; for a whole object also where it takes away a field that another process had added. A
//! **hazard** is any other such write; a delete by name is never more.
//!
//! **Evidence**: reads and writes of one process with their answers; for a violation the bodies of every version between the
//! read and the write (audit level RequestResponse, or captures). They are read again from the input, field by field, arrays as
//! a whole; managed fields, versions, generations and times do not count.
//!
//! **Not judged**: command-line tools; writes after a read that the evidence does not show (a watch recorded without events); a
//! version of which nobody knows who made it; requests that name a uid or a version; writes that hit another object than the
//! one read (`name-reuse`).
//!
//! Sources: API concepts, "updates to existing resources"; kubernetes-semantics, P-BLIND-WRITE.

use super::memory::{Glimpse, Known, Memories};
use super::reversion::Course;
use super::{BrokenBy, Draft, Evidence, Group, Kind, Rule, Ruling, commit, derivation};
use crate::history::{Document, KeyId, Marks, OperationId, Revision, Subresource, Verb};
use crate::order::{Version, Versions, remembers};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

/// How many writes are compared at a time, which bounds the bodies in memory.
const AT_ONCE: usize = 500;

/// The rule.
pub const RULE: Rule = Rule {
    slug: "blind-write",
    title: "a write after a read is conditioned on what was read",
    group: Group::Protocol,
    promise: BrokenBy::Client,
    needs: "a write without condition after a read of the same object by the same process",
    causes: &["name-reuse", "monotonic-reads"],
    source: include_str!("blind_write.rs"),
    check,
};

/// A write on top of an outdated read.
struct Blind<'e> {
    id: OperationId,
    read: Glimpse,
    /// All versions in between.
    since: Versions<'e>,
    /// The first of them that another process made.
    other: Version,
}

fn check(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>) {
    let history = evidence.history;
    let removals = commit::removals(evidence);
    let candidates: Vec<OperationId> = evidence
        .operations()
        .filter(|(_, o)| {
            evidence.committed(o)
                && matches!(o.verb, Verb::Update | Verb::Patch | Verb::Delete)
                && o.marks.has(Marks::UNCONDITIONED)
                && o.key.is_some()
                && o.status != 201
                && matches!(o.subresource, Subresource::None | Subresource::Status | Subresource::Part)
                && remembers(history, o.incarnation)
        })
        .map(|(id, _)| id)
        .collect();
    let wanted: FxHashSet<_> =
        candidates.iter().map(|&id| (history.operation(id).incarnation, history.operation(id).key)).collect();
    let memories = Memories::collect(evidence, &wanted);
    let mut blind = Vec::new();
    for id in candidates {
        let Some(through) = present_before(evidence, id, removals.get(&id)) else { continue };
        let o = history.operation(id);
        let Some(read) = memories.last(evidence, o.incarnation, o.key, (o.invoke, o.clock), |_| true) else { continue };
        let same = matches!(read.known, Known::Life(uid) if uid == o.answer_uid || !o.answer_uid.is_some());
        if !same || !read.revision.is_some() {
            continue;
        }
        if memories.may_know_more(evidence, o.incarnation, o.key, read.moment, (o.invoke, o.clock)) {
            ruling.undecided("writes without condition by processes whose reads were recorded without their answers");
            continue;
        }
        ruling.checked(o.incarnation);
        let since = evidence.order.timeline.between(o.key, read.revision, through);
        if let Some(other) = since.iter().find(|v| is_others(evidence, v, id)) {
            blind.push(Blind { id, read, since, other });
        }
    }
    for part in blind.chunks(AT_ONCE) {
        let reverted = reverted(evidence, part);
        for (at, blind) in part.iter().enumerate() {
            found(evidence, ruling, blind, reverted.get(&at));
        }
    }
}

/// Through which revision every version was there before the write took effect; `None` where it is not known to have written.
fn present_before(evidence: &Evidence<'_>, id: OperationId, removal: Option<&Version>) -> Option<Revision> {
    let o = evidence.history.operation(id);
    let below = |revision: Revision| Revision::new(revision.value().saturating_sub(1));
    if let Some(removal) = removal {
        return Some(below(removal.revision));
    }
    let open = evidence.order.timeline.removals(o.key).iter().find(|r| r.operation == id);
    open.map(|r| r.after).or_else(|| commit::attributed(evidence, id).map(below))
}

/// Whether another process than the writer of `id` made a version.
fn is_others(evidence: &Evidence<'_>, version: &Version, id: OperationId) -> bool {
    let history = evidence.history;
    let sessions = &evidence.order.sessions;
    version.writer.is_some() && {
        let (a, b) = (history.operation(version.writer).incarnation, history.operation(id).incarnation);
        // A record of the server's side may know the process by another name.
        let shadow = history.operation(version.writer).marks.has(Marks::SHADOW);
        let one_user = history.client_name(a) == history.client_name(b);
        a != b && sessions.index_of(a) != sessions.index_of(b) && !(shadow && one_user)
    }
}

/// Which of these writes put a field back, by place: the field, and the version that had changed it.
fn reverted(evidence: &Evidence<'_>, writes: &[Blind<'_>]) -> FxHashMap<usize, (String, Version)> {
    let history = evidence.history;
    let key = |blind: &Blind<'_>| -> KeyId { history.operation(blind.id).key };
    let mut wanted: Vec<Document> = Vec::new();
    let mut plans: Vec<Option<(Document, Vec<Document>)>> = Vec::new();
    for blind in writes {
        let o = history.operation(blind.id);
        let read =
            blind.read.document(key(blind)).filter(|_| o.verb != Verb::Delete && o.marks.has(Marks::REQUEST_BODY));
        let since: Option<Vec<Document>> = blind.since.iter().map(|v| derivation::document(evidence, &v)).collect();
        let plan = read.zip(since);
        if let Some((read, since)) = &plan {
            wanted.extend([Document::Request(blind.id), Document::Answer(blind.id), *read]);
            wanted.extend(since);
        }
        plans.push(plan);
    }
    let bodies = history.documents(&wanted);
    let mut found = FxHashMap::default();
    for (at, (blind, plan)) in writes.iter().zip(plans).enumerate() {
        let Some((read, since)) = plan else { continue };
        let (Some(request), Some(read)) = (bodies.get(&Document::Request(blind.id)), bodies.get(&read)) else {
            continue;
        };
        let since: Option<Vec<(&Value, bool)>> = since
            .iter()
            .zip(blind.since.iter())
            .map(|(document, version)| Some((bodies.get(document)?, is_others(evidence, &version, blind.id))))
            .collect();
        let Some(since) = since else { continue };
        let answer = bodies.get(&Document::Answer(blind.id));
        let whole = history.operation(blind.id).verb == Verb::Update;
        let reverted = (Course { read, since, request, answer, whole }).reverted();
        found.extend(reverted.and_then(|(field, place)| Some((at, (field, blind.since.get(place)?)))));
    }
    found
}

fn found(evidence: &Evidence<'_>, ruling: &mut Ruling<'_>, blind: &Blind<'_>, reverted: Option<&(String, Version)>) {
    let history = evidence.history;
    let o = history.operation(blind.id);
    let (client, key) = (evidence.short_client(&o), history.key_name(o.key));
    let version = blind.read.revision;
    let changed = reverted.map_or(blind.other, |(_, version)| *version);
    let by = evidence.short_client(&history.operation(changed.writer));
    let change = match reverted {
        Some((field, _)) => format!("{by} changed {field} of {key} at revision {}", changed.revision),
        None => format!("{by} changed {key} at revision {}", changed.revision),
    };
    let verb = o.verb.name();
    let outcome = match reverted {
        Some((field, _)) => format!("its {verb} without condition put {field} back"),
        None => format!("its {verb} without condition took effect"),
    };
    let (kind, reason, summary) = match reverted {
        Some((field, _)) => (
            Kind::Violation,
            "the field went back to the value that the writer had read, over a change that it had not seen",
            format!(
                "{client} put {field} of {key} back to what it had read at {version}, undoing the change of {by} at {}",
                changed.revision
            ),
        ),
        None => (
            Kind::Hazard,
            "nothing shows that a change was undone; a condition on the version read would have told the writer of it",
            format!(
                "{client} sent a {verb} of {key} without condition, read at {version} and changed by {by} at {} since",
                changed.revision
            ),
        ),
    };
    ruling.found(Draft {
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
                format!("{client} sent a {verb} of {key} that named no version"),
            ),
            evidence.operation(blind.id, o.answered, outcome),
        ],
        reason: reason.to_owned(),
        refuted_by: "evidence that the process had seen the change before it wrote".to_owned(),
        consequence: "changes of others are undone without an error for anybody".to_owned(),
    });
}

#[cfg(test)]
mod tests {
    use super::super::trial::{holds, judged, kinds, read, trial};
    use super::{Kind, RULE};

    #[test]
    fn an_unconditioned_write_on_an_outdated_read_is_a_hazard() {
        let text = "c@A GET x => x:u1@20\no@A PUT x:u1@20 => x:u1@25\nc@A PATCH x => x:u1@31\n";
        assert_eq!(kinds(&RULE, text), [Kind::Hazard]);
        assert_eq!(kinds(&RULE, &text.replace("PATCH x =>", "PATCH x test(@20) =>").replace("x:u1@31", "!422")), []);
        assert!(holds(&RULE, "c@A GET x => x:u1@25\nc@A PATCH x => x:u1@31\n"));
        assert_eq!(kinds(&RULE, &text.replace("PATCH x =>", "PATCH x dry-run =>")), []);
    }

    #[test]
    fn a_delete_by_name_is_a_hazard_too() {
        let text =
            "c@A GET x => x:u1@20\no@A PUT x:u1@20 => x:u1@25\no@A LIST => 30 {x:u1@25}\nc@A DELETE x => ok:u1\n";
        let text = text.replace("ok:u1", "x:u1@31 gone");
        assert_eq!(kinds(&RULE, &text), [Kind::Hazard]);
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
