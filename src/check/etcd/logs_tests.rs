//! Tests of what the members' logs prove and leave open.

use super::tests::{CLIENT, acknowledged, judged, log, log_of, members, operation, watch};
use crate::ingest::etcd::fixture::{Message, delete, put};
use serde_json::{Value, json};

/// The log of a member by its number.
fn wal(node: u64) -> &'static str {
    [
        "r/server-a/member/wal/0000000000000000-0000000000000000.wal",
        "r/server-b/member/wal/0000000000000000-0000000000000000.wal",
        "r/server-c/member/wal/0000000000000000-0000000000000000.wal",
    ][node as usize - 1]
}

/// Puts of one key to these texts.
fn puts(texts: &[&str]) -> Vec<Message> {
    texts.iter().map(|text| put("a", text.as_bytes())).collect()
}

/// Acknowledged puts of these texts. The first is at revision 2, sent at 10; each later one follows 20 after.
fn told(texts: &[&str]) -> String {
    (0..).zip(texts).map(|(n, text)| acknowledged(10 + 20 * n, text, 2 + n)).collect()
}

/// `VERDICT: KIND RULE, ...`
fn said(client: String, more: &[(&str, Vec<u8>)]) -> String {
    let files: Vec<(&str, Vec<u8>)> =
        std::iter::once((CLIENT, client.into_bytes())).chain(more.iter().cloned()).collect();
    let judgement = judged(&files);
    let found: Vec<String> = judgement.findings.iter().map(|f| format!("{} {}", f.kind_word(), f.rule)).collect();
    format!("{}: {}", judgement.verdict.word(), found.join(", "))
}

const THREE: [u64; 3] = [1, 2, 3];

#[test]
fn an_acknowledged_write_that_the_committed_log_goes_on_without_is_lost() {
    let client = || told(&["1", "2", "3"]);
    let one = |texts: &[&str], committed| log_of(1, &THREE, &puts(texts), committed);
    // One log is enough if it continues.
    assert_eq!(said(client(), &[(wal(1), one(&["1", "3"], 2))]), "violated: violation lost-write");
    assert_eq!(said(client(), &[(wal(1), one(&["1", "other", "3"], 3))]), "violated: violation lost-write");
    assert_eq!(said(client(), &[(wal(1), one(&["1", "2", "3"], 3))]), "holds: ");
    // A written but uncommitted entry may be replaced; only its member has it.
    assert_eq!(said(client(), &[(wal(1), one(&["1", "3"], 1))]), "unknown: ");
    // A log that agrees with nothing may belong to another cluster.
    assert_eq!(said(client(), &[(wal(1), one(&["5", "6", "7"], 3))]), "unknown: ");
}

#[test]
fn an_acknowledged_write_behind_the_end_of_logs_is_missing_where_a_majority_cannot_do_without_them() {
    let client = || told(&["1", "2", "3"]);
    let of = |node: u64| (wal(node), log_of(node, &THREE, &puts(&["1", "2"]), 2));
    // One or none of three members may have been behind.
    assert_eq!(said(client(), &[of(1)]), "holds: ");
    assert_eq!(said(client(), &[of(1), of(2)]), "violated: violation lost-write");
    assert_eq!(said(client(), &[of(1), of(2), of(3)]), "violated: violation lost-write");
    assert_eq!(said(client(), &[(wal(1), log_of(1, &[1], &puts(&["1", "2"]), 2))]), "violated: violation lost-write");
    assert_eq!(said(client(), &[(wal(1), log_of(1, &[1], &puts(&["1", "2", "3"]), 2))]), "holds: ");
    // Two voters and a learner: the learner may be behind, but not one of the two voters.
    let learner = |segment: crate::ingest::etcd::fixture::Segment| segment.membership(5, 3, 3).commit(5).bytes;
    let two = |node| (wal(node), learner(members(node, &[1, 2], &puts(&["1", "2"]))));
    assert_eq!(said(client(), &[two(3)]), "holds: ");
    assert_eq!(said(client(), &[two(2)]), "violated: violation lost-write");
    // A log with a cut end may have had the entry.
    let (name, mut cut) = (wal(1), log_of(1, &[1], &puts(&["1", "2"]), 2));
    cut.truncate(cut.len() - 3);
    assert_eq!(said(client(), &[(name, cut)]), "unknown: suspect lost-write");
    // The log has a request that was sent after the answer.
    let grant = |lease: i64, call: i64| {
        let input = json!({"Type": "leaseGrant", "LeaseGrant": {"LeaseID": lease}});
        operation(call, &input, &json!({"LeaseGrant": {"LeaseID": lease}, "Revision": 4}), call + 1)
    };
    let granted = Message::default().message(8, Message::default().number(1, 60).number(2, 7));
    let with = || (wal(1), log_of(1, &THREE, &[&puts(&["1", "2"])[..], std::slice::from_ref(&granted)].concat(), 3));
    assert_eq!(said(client() + &grant(7, 56), &[with()]), "violated: violation lost-write");
    assert_eq!(said(client() + &grant(7, 53), &[with()]), "holds: ");
    assert_eq!(said(client() + &grant(8, 56), &[with()]), "holds: ");
}

#[test]
fn members_commit_one_entry_at_an_index() {
    let client = || told(&["1", "2", "3"]);
    let of = |node: u64, texts: &[&str], committed| (wal(node), log_of(node, &THREE, &puts(texts), committed));
    let whole = |node| of(node, &["1", "2", "3"], 3);
    assert_eq!(said(client(), &[whole(1), of(2, &["1", "2", "other"], 3)]), "violated: violation split-timeline");
    assert_eq!(said(client(), &[whole(1), of(2, &["1", "other", "3"], 3)]), "violated: violation split-timeline");
    // An entry that only one member knows as committed may have to be replaced on the other.
    assert_eq!(said(client(), &[whole(1), of(2, &["1", "2", "other"], 2)]), "holds: ");
    assert_eq!(said(client(), &[whole(1), of(2, &["1", "2"], 2)]), "holds: ");
    // Another term with the same request.
    let term = |term| {
        let first = members(2, &THREE, &puts(&["1", "2"]));
        (wal(2), first.entry(6, term, &put("a", b"3")).commit(6).bytes)
    };
    assert_eq!(said(client(), &[whole(1), term(2)]), "holds: ");
    assert_eq!(said(client(), &[whole(1), term(3)]), "violated: violation split-timeline");
    // One member that replaces what it knew to be committed.
    let replaced = |committed| {
        members(1, &THREE, &puts(&["1", "2", "3"])).commit(committed).entry(6, 3, &put("a", b"3")).commit(6)
    };
    assert_eq!(said(client(), &[(wal(1), replaced(6).bytes)]), "violated: violation split-timeline");
    assert_eq!(said(client(), &[(wal(1), replaced(5).bytes)]), "holds: ");
}

#[test]
fn a_committed_entry_that_was_not_applied_is_lost() {
    // Clients were shown the other entries, one revision lower.
    let all = |committed| (wal(1), log_of(1, &[1], &puts(&["1", "unapplied", "2", "3"]), committed));
    assert_eq!(said(told(&["1", "2", "3"]), &[all(4)]), "violated: violation lost-write");
    assert_eq!(said(told(&["1", "2", "3"]), &[all(1)]), "unknown: ");
}

#[test]
fn what_was_acknowledged_without_a_change_has_an_entry_at_its_revision() {
    let nothing = |call: i64, revision: i64| {
        let step = json!({"Type": "delete-operation", "Delete": {"Key": "b"}});
        let input = json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}});
        operation(call, &input, &json!({"Txn": {"Results": [{"Deleted": 0}]}, "Revision": revision}), call + 3)
    };
    let of = |entries: &[Message]| (wal(1), log_of(1, &THREE, entries, entries.len() as u64));
    let with = |place: usize| {
        let mut entries = puts(&["1", "2"]);
        entries.insert(place, delete("b"));
        of(&entries)
    };
    let client = || acknowledged(10, "1", 2) + &nothing(20, 2) + &acknowledged(30, "2", 3);
    assert_eq!(said(client(), &[with(1)]), "holds: ");
    assert_eq!(said(client(), &[with(0)]), "violated: violation linearizability");
    assert_eq!(said(client(), &[of(&puts(&["1", "2"]))]), "violated: violation linearizability");
    // The log may have been copied before entries after its last revision.
    assert_eq!(said(told(&["1"]) + &nothing(20, 2), &[of(&puts(&["1"]))]), "holds: ");
    // Each needs an entry of its own.
    let twice = acknowledged(10, "1", 2) + &nothing(20, 2) + &nothing(24, 2) + &acknowledged(30, "2", 3);
    assert_eq!(said(twice, &[with(1)]), "violated: violation linearizability");
}

#[test]
fn the_end_of_a_lease_has_an_entry() {
    let message = Message::default;
    let grant = operation(
        1,
        &json!({"Type": "leaseGrant", "LeaseGrant": {"LeaseID": 7}}),
        &json!({"LeaseGrant": {"LeaseID": 7}, "Revision": 1}),
        2,
    );
    let step = json!({"Type": "put-operation", "Put": {"Key": "a", "Value": {"Value": "1"}, "LeaseID": 7}});
    let input = json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}});
    let client =
        || grant.clone() + &operation(10, &input, &json!({"Txn": {"Results": [{"Deleted": 0}]}, "Revision": 2}), 15);
    let gone = |n: usize| {
        let events = [
            json!({"Type": "put-operation", "Key": "a", "Value": {"Value": "1"}, "Revision": 2, "IsCreate": true}),
            json!({"Type": "delete-operation", "Key": "a", "Value": {}, "Revision": 3}),
        ];
        let told = json!({"Events": events[..n], "Revision": n + 1, "Time": 60});
        ("r/client-2/watch.json", watch_all(&[told]).into_bytes())
    };
    let granted = message().message(8, message().number(1, 60).number(2, 7));
    let attached = message().message(4, message().bytes(1, b"a").bytes(2, b"1").number(3, 7));
    let ended = message().message(9, message().number(1, 7));
    let of =
        |last: &[Message]| (wal(1), log(&[&[granted.clone(), attached.clone()], last].concat(), 2 + last.len() as u64));
    assert_eq!(said(client(), &[gone(2)]), "holds: ");
    assert_eq!(said(client(), &[gone(2), of(&[ended])]), "holds: ");
    assert_eq!(said(client(), &[gone(2), of(&[delete("a")])]), "unknown: suspect linearizability");
}

/// A watch over every key from revision 1 on.
fn watch_all(responses: &[Value]) -> String {
    json!({"Request": {"Key": "", "Revision": 1, "WithPrefix": true}, "Responses": responses}).to_string()
}

#[test]
fn a_watch_that_goes_past_a_committed_entry_lost_it() {
    let progress = |revision: i64| {
        let event =
            json!({"Type": "put-operation", "Key": "a", "Value": {"Value": "1"}, "Revision": 2, "IsCreate": true});
        let responses = [
            json!({"Events": [event], "Revision": 2, "Time": 20}),
            json!({"IsProgressNotify": true, "Revision": revision, "Time": 60}),
        ];
        ("r/client-2/watch.json", watch(2, &responses).into_bytes())
    };
    let asked = |text: &str| {
        let step = json!({"Type": "put-operation", "Put": {"Key": "a", "Value": {"Value": text}}});
        let input = json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}});
        operation(30, &input, &json!({"Error": "etcdserver: request timed out"}), 40)
    };
    let client = || told(&["1"]) + &asked("2");
    let of = |committed| (wal(1), log_of(1, &THREE, &puts(&["1", "2"]), committed));
    assert_eq!(said(client(), &[progress(3), of(2)]), "violated: violation watch-gap");
    assert_eq!(said(client(), &[progress(2), of(2)]), "holds: ");
    assert!(said(client(), &[progress(3), of(1)]).starts_with("unknown"));
}

#[test]
fn logs_of_which_a_majority_can_do_without_leave_open_what_was_compacted() {
    let refused = {
        let told =
            json!({"Revision": 0, "Time": 60, "Error": "etcdserver: mvcc: required revision has been compacted"});
        ("r/client-2/watch.json", watch(2, &[told]).into_bytes())
    };
    let of = |node: u64, voters: &[u64]| (wal(node), log_of(node, voters, &puts(&["1", "2", "3"]), 3));
    let said = |logs: &[(&'static str, Vec<u8>)]| {
        said(told(&["1", "2", "3"]), &[std::slice::from_ref(&refused), logs].concat())
    };
    assert_eq!(said(&[of(1, &THREE)]), "unknown: suspect false-compaction");
    assert_eq!(said(&[of(1, &THREE), of(2, &THREE)]), "violated: violation false-compaction");
    assert_eq!(said(&[of(1, &[1])]), "violated: violation false-compaction");
    // The voters are unknown.
    let unnamed = [(wal(1), log_of(1, &[], &puts(&["1", "2", "3"]), 3))];
    assert_eq!(said(&unnamed), "unknown: suspect false-compaction");
    // A log with a cut end may lack it.
    let (name, mut cut) = of(1, &[1]);
    cut.truncate(cut.len() - 3);
    assert_eq!(said(&[(name, cut)]), "unknown: suspect false-compaction");
}

#[test]
fn behind_an_alarm_nobody_knows_what_was_refused() {
    let alarm = |action: u64| Message::default().message(10, Message::default().number(1, action).number(3, 1));
    let of = |action| {
        let entries = [&puts(&["1", "2"])[..], &[alarm(action)], &puts(&["refused", "3"])[..]].concat();
        (wal(1), log_of(1, &[1], &entries, 5))
    };
    // The store was full when the put came.
    assert_eq!(said(told(&["1", "2", "3"]), &[of(1)]), "holds: ");
    assert_eq!(said(told(&["1", "2", "3"]), &[of(2)]), "violated: violation lost-write");
}
