//! Tests of reports with members' logs.

use crate::check::Judgement;
use crate::history::{Domains, load_each};
use crate::ingest::etcd::fixture::{Message, Segment, put};
use crate::ingest::{FileId, InputFile, ReadOptions};
use crate::order::{Order, OrderOptions};
use serde_json::{Value, json};

const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";

/// A file of a report.
type File = (&'static str, Vec<u8>);

/// A response at a time.
type Told = fn(i64) -> File;

/// A client's request with its time, and the answer with its time.
pub(super) fn operation(call: i64, input: &Value, output: &Value, returned: i64) -> String {
    json!({"ClientId": 1, "Input": input, "Call": call, "Output": output, "Return": returned}).to_string() + "\n"
}

/// A put of one key to a text, acknowledged at a revision.
pub(super) fn acknowledged(call: i64, text: &str, revision: i64) -> String {
    let step = json!({"Type": "put-operation", "Put": {"Key": "a", "Value": {"Value": text}}});
    let input = json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}});
    operation(call, &input, &json!({"Txn": {"Results": [{"Deleted": 0}]}, "Revision": revision}), call + 5)
}

pub(super) fn watch(from: i64, responses: &[Value]) -> String {
    let request = json!({"Key": "a", "Revision": from, "WithPrevKV": true});
    json!({"Request": request, "Responses": responses}).to_string()
}

fn compaction(through: u64) -> Message {
    Message::default().message(7, Message::default().number(1, through))
}

/// Three puts, sent at 10, 30 and 50, that make the revisions 2, 3 and 4.
const PUTS: [&str; 3] = ["1", "2", "3"];

/// The log of the only member, with this number of its proposals known to be committed.
pub(super) fn log(proposals: &[Message], committed: u64) -> Vec<u8> {
    log_of(7, &[7], proposals, committed)
}

/// The log of one of several members.
pub(super) fn log_of(node: u64, voters: &[u64], proposals: &[Message], committed: u64) -> Vec<u8> {
    members(node, voters, proposals).commit(voters.len() as u64 + committed).bytes
}

/// The same, before anything is known to be committed.
pub(super) fn members(node: u64, voters: &[u64], proposals: &[Message]) -> Segment {
    let first = (1..)
        .zip(voters)
        .fold(Segment::by(0, node, 9).snapshot(0), |segment, (index, voter)| segment.membership(index, 0, *voter));
    let behind = voters.len() as u64 + 1;
    (behind..).zip(proposals).fold(first, |segment, (index, proposal)| segment.entry(index, 2, proposal))
}

/// The puts, and after this number of them two compactions through revisions 3 and 2. The second is refused; the first has no
/// recorded request.
fn compacting(behind: usize, committed: u64) -> Vec<u8> {
    let mut proposals: Vec<Message> = PUTS.iter().map(|text| put("a", text.as_bytes())).collect();
    proposals.splice(behind..behind, [compaction(3), compaction(2)]);
    log(&proposals, committed)
}

/// The findings in a report of the three puts, with more files: `KIND RULE`.
fn found(more: &[(&str, Vec<u8>)]) -> Vec<String> {
    found_behind("", more)
}

/// The same, with more operations of the client that sent the puts.
fn found_behind(then: &str, more: &[(&str, Vec<u8>)]) -> Vec<String> {
    let puts: String = (0..).zip(PUTS).map(|(n, text)| acknowledged(10 + 20 * n, text, 2 + n)).collect();
    let first = (CLIENT, (puts + then).into_bytes());
    let files: Vec<_> = std::iter::once(first).chain(more.iter().cloned()).collect();
    let judgement = judged(&files);
    judgement.findings.iter().map(|found| format!("{} {}", found.kind_word(), found.rule)).collect()
}

/// An acknowledged compaction.
fn compacted(call: i64, through: i64) -> String {
    operation(
        call,
        &json!({"Type": "compact", "Compact": {"Revision": through}}),
        &json!({"Compact": {}, "Revision": -1}),
        call + 5,
    )
}

pub(super) fn judged(files: &[(&str, Vec<u8>)]) -> Judgement {
    let file = |(id, (name, bytes)): (u32, &(&str, Vec<u8>))| InputFile::in_memory(FileId(id), name, bytes.clone());
    let inputs = (0..).zip(files).map(file).collect();
    let histories = load_each(inputs, &ReadOptions::default(), &Domains::default(), &());
    assert_eq!(histories[0].problems.len(), 0, "{:?}", histories[0].problems);
    let order = Order::derive(&histories[0], &OrderOptions::default());
    crate::check::judge(&histories[0], &order, &crate::check::Options::default())
}

pub(super) const CLIENT: &str = "r/client-1/operations.json";
const WAL: &str = "r/server-a/member/wal/0000000000000000-0000000000000000.wal";

/// A read of revision 2 that is answered as compacted at a time.
fn refused_read(at: i64) -> File {
    let input = json!({"Type": "range", "Range": {"Start": "a", "Revision": 2}});
    let output = json!({"ClientError": COMPACTED, "Revision": 0});
    ("r/client-2/operations.json", operation(11, &input, &output, at).into_bytes())
}

/// A watch from revision 2 on that ends as compacted at a time.
fn ended_watch(at: i64) -> File {
    let told = json!({"Revision": 0, "Time": at, "Error": COMPACTED});
    ("r/client-2/watch.json", watch(2, &[told]).into_bytes())
}

/// A compaction through revision 2 that is refused as done at a time.
fn refused_compaction(at: i64) -> File {
    let input = json!({"Type": "compact", "Compact": {"Revision": 2}});
    let output = json!({"ClientError": COMPACTED, "Revision": 0});
    ("r/client-2/operations.json", operation(11, &input, &output, at).into_bytes())
}

/// An event of revision 3 without the value before, delivered at a time.
fn event_alone(at: i64) -> File {
    let event = json!({"Type": "put-operation", "Key": "a", "Value": {"Value": "2"}, "Revision": 3});
    let told = json!({"Events": [event], "Revision": 4, "Time": at});
    ("r/client-2/watch.json", watch(3, &[told]).into_bytes())
}

/// Answers at a time that only a compaction above revision 2, or through it, explains, and the rule that is broken without
/// one.
const TOLD: [(Told, &str); 4] = [
    (refused_read, "false-compaction"),
    (ended_watch, "false-compaction"),
    (refused_compaction, "false-compaction"),
    (event_alone, "watch-prev-value"),
];

#[test]
fn a_compaction_in_the_log_was_not_in_force_before_the_writes_in_front_of_it_were_sent() {
    for (told, rule) in TOLD {
        // After the put that was sent at 50.
        let mut violations = vec![format!("violation {rule}")];
        // The log has the request itself too late.
        if told(49) == refused_compaction(49) {
            violations.push("violation linearizability".to_owned());
        }
        assert_eq!(found(&[told(49), (WAL, compacting(3, 5))]), violations);
        assert_eq!(found(&[told(50), (WAL, compacting(3, 5))]), [""; 0]);
        // After the put that was sent at 30.
        assert_eq!(found(&[told(49), (WAL, compacting(2, 5))]), [""; 0]);
        // A written but uncommitted entry may be replaced.
        assert_eq!(found(&[told(49), (WAL, compacting(3, 2))]), [""; 0]);
    }
}

#[test]
fn a_compaction_that_nobody_is_recorded_to_have_asked_for_may_be_of_a_client_that_is_not_recorded() {
    let another = ("r/client-4/watch.json", watch(2, &[]).into_bytes());
    let puts = PUTS.map(|text| put("a", text.as_bytes()));
    for (told, rule) in TOLD {
        let (suspect, violation) = ([format!("suspect {rule}")], [format!("violation {rule}")]);
        assert_eq!(found(&[told(50)]), suspect);
        // A log that reaches the end holds all of them.
        assert_eq!(found(&[told(50), (WAL, log(&puts, 3))]), violation);
        assert_eq!(found(&[told(50), (WAL, log_of(7, &[7, 8, 9], &puts[..2], 2))]), suspect);
        // The compacting client is recorded, and so are all others.
        assert_eq!(found_behind(&compacted(60, 4), &[told(50)]), violation);
        assert_eq!(found_behind(&compacted(60, 4), &[told(50), another.clone()]), suspect);
        // Whichever client requested one above, this one would have been refused.
        assert_eq!(found_behind(&compacted(60, 2), &[told(50), another.clone()]), violation);
        assert_eq!(found_behind(&compacted(50, 3), &[told(50), another.clone()]), [""; 0]);
    }
    // No store has compacted through a revision that it had not reached, or one that is read later.
    let read = json!({"Type": "range", "Range": {"Start": "a", "Revision": 2}});
    let pair = json!({"Key": "a", "Value": {"Value": "1"}, "ModRevision": 2, "Version": 1});
    let answer = json!({"Range": {"KVs": [pair], "Count": 1}, "Revision": 4});
    for told in [refused_read as Told, ended_watch] {
        assert_eq!(found(&[told(29)]), ["violation false-compaction"]);
        assert_eq!(found(&[told(30)]), ["suspect false-compaction"]);
        let behind = |call: i64| found_behind(&operation(call, &read, &answer, 80), &[told(60)]);
        assert_eq!(behind(61), ["violation false-compaction"]);
        assert_eq!(behind(60), ["suspect false-compaction"]);
    }
}

#[test]
fn who_may_have_compacted_is_named() {
    let (name, told) = ended_watch(50);
    let files = [(
        CLIENT,
        PUTS.iter().zip(2..).map(|(text, n)| acknowledged(10 * n, text, n)).collect::<String>().into_bytes(),
    )];
    let reason = |of: &str| {
        let files = [files[0].clone(), (of, told.clone())];
        let found = &judged(&files).findings[0];
        (found.kind_word(), found.certificate.reason.clone())
    };
    let (kind, said) = reason(name);
    assert!(kind == "suspect" && said.contains("no compaction request is recorded"), "{said}");
    for (of, words) in [
        ("r/client-3/watch.json", "(client-2 is not in this report)"),
        ("r/client-4/watch.json", "(client-2, client-3 are not in this report)"),
        ("r/client-90/watch.json", "(client-2, client-3, client-4 and more are not in this report)"),
    ] {
        let (_, said) = reason(of);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_log_that_differs_from_what_clients_were_told_says_nothing_of_when_it_compacted() {
    let others = ["1", "2", "other"].map(|text| put("a", text.as_bytes()));
    let differing = log(&[&others[..], &[compaction(3)]].concat(), 4);
    assert_eq!(found(&[refused_read(49), (WAL, differing)]), ["violation lost-write"]);
}

#[test]
fn a_log_that_attaches_a_key_to_another_lease_than_was_asked_for_is_no_log_of_what_clients_did() {
    let grant = operation(
        1,
        &json!({"Type": "leaseGrant", "LeaseGrant": {"LeaseID": 7}}),
        &json!({"LeaseGrant": {"LeaseID": 7}, "Revision": 1}),
        2,
    );
    let leased = |lease: i64| {
        let step = json!({"Type": "put-operation", "Put": {"Key": "a", "Value": {"Value": "1"}, "LeaseID": lease}});
        let input = json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}});
        operation(10, &input, &json!({"Txn": {"Results": [{"Deleted": 0}]}, "Revision": 2}), 15)
    };
    let message = Message::default;
    let logged = |lease: u64| {
        let put = message().bytes(1, b"a").bytes(2, b"1").number(3, lease);
        log(&[message().message(8, message().number(1, 60).number(2, 7)), message().message(4, put)], 2)
    };
    let word = |asked: i64, log: Vec<u8>| {
        judged(&[(CLIENT, (grant.clone() + &leased(asked)).into_bytes()), (WAL, log)]).verdict.word()
    };
    assert_eq!(word(7, logged(7)), "holds");
    assert_eq!(word(4242, logged(7)), "unknown");
    assert_eq!(word(7, logged(0)), "unknown");
    // Clients record no leases of transactions.
    assert_eq!(word(0, logged(7)), "holds");
}

#[test]
fn a_lease_that_nobody_is_recorded_to_have_granted_leaves_open_what_used_it() {
    let grant = |lease: i64| {
        let input = json!({"Type": "leaseGrant", "LeaseGrant": {"LeaseID": lease}});
        operation(1, &input, &json!({"LeaseGrant": {"LeaseID": lease}, "Revision": 1}), 2)
    };
    let step = json!({"Type": "put-operation", "Put": {"Key": "a", "Value": {"Value": "1"}, "LeaseID": 7}});
    let input = json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}});
    let put_with = operation(10, &input, &json!({"Txn": {"Results": [{"Deleted": 0}]}, "Revision": 2}), 15);
    let revoked = operation(
        20,
        &json!({"Type": "leaseRevoke", "LeaseRevoke": {"LeaseID": 7}}),
        &json!({"LeaseRevoke": {}, "Revision": 3}),
        25,
    );
    let message = Message::default;
    let log = log(
        &[
            message().message(8, message().number(1, 60).number(2, 8)),
            message().message(8, message().number(1, 60).number(2, 7)),
            message().message(4, message().bytes(1, b"a").bytes(2, b"1").number(3, 7)),
        ],
        3,
    );
    let word = |client: &str, more: &[(&str, Vec<u8>)]| {
        let files = [&[(CLIENT, client.as_bytes().to_vec())], more].concat();
        judged(&files).verdict.word()
    };
    assert_eq!(word(&(grant(7) + &put_with), &[]), "holds");
    assert_eq!(word(&(grant(8) + &put_with), &[]), "unknown");
    assert_eq!(word(&(grant(8) + &put_with + &revoked), &[]), "unknown");
    // The log shows the grant. A client that records no grants proves nothing.
    assert_eq!(word(&(grant(8) + &put_with), &[(WAL, log)]), "holds");
    assert_eq!(word(&put_with, &[]), "holds");
}

#[test]
fn a_compaction_in_a_log_that_begins_later_may_have_been_in_force_at_any_time() {
    let later = Segment::after(0).snapshot(8).entry(9, 2, &compaction(3)).commit(9).bytes;
    for (told, _) in TOLD {
        assert_eq!(found_behind(&compacted(60, 4), &[told(50), (WAL, later.clone())]), [""; 0]);
    }
}
