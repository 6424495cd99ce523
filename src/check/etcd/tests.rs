//! Reports with members' logs.

use crate::check::Judgement;
use crate::history::{Domains, load_each};
use crate::ingest::etcd::fixture::{Message, Segment, put};
use crate::ingest::{FileId, InputFile, ReadOptions};
use crate::order::{Order, OrderOptions};
use serde_json::{Value, json};

const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";

/// A client's request, when it was sent, the answer, and when it came.
fn operation(call: i64, input: &Value, output: &Value, returned: i64) -> String {
    json!({"ClientId": 1, "Input": input, "Call": call, "Output": output, "Return": returned}).to_string() + "\n"
}

/// A put of one key to a text, acknowledged at a revision.
fn acknowledged(call: i64, text: &str, revision: i64) -> String {
    let step = json!({"Type": "put-operation", "Put": {"Key": "a", "Value": {"Value": text}}});
    let input = json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}});
    operation(call, &input, &json!({"Txn": {"Results": [{"Deleted": 0}]}, "Revision": revision}), call + 5)
}

fn watch(from: i64, responses: &[Value]) -> String {
    let request = json!({"Key": "a", "Revision": from, "WithPrevKV": true});
    json!({"Request": request, "Responses": responses}).to_string()
}

fn compaction(through: u64) -> Message {
    Message::default().message(7, Message::default().number(1, through))
}

/// Three puts, sent at 10, 30 and 50, that make the revisions 2, 3 and 4.
const PUTS: [&str; 3] = ["1", "2", "3"];

fn log(proposals: &[Message], committed: u64) -> Vec<u8> {
    let segment = (1..)
        .zip(proposals)
        .fold(Segment::after(0).snapshot(0), |segment, (index, proposal)| segment.entry(index, 2, proposal));
    segment.commit(committed).bytes
}

/// The puts, and behind so many of them a compaction through revision 3 that nobody recorded asked for.
fn compacting(behind: usize, committed: u64) -> Vec<u8> {
    let mut proposals: Vec<Message> = PUTS.iter().map(|text| put("a", text.as_bytes())).collect();
    proposals.insert(behind, compaction(3));
    log(&proposals, committed)
}

/// What is found in a report of the three puts, with more files: `KIND RULE`.
fn found(more: &[(&str, Vec<u8>)]) -> Vec<String> {
    let puts: String = (0..).zip(PUTS).map(|(n, text)| acknowledged(10 + 20 * n, text, 2 + n)).collect();
    let files: Vec<_> = std::iter::once((CLIENT, puts.into_bytes())).chain(more.iter().cloned()).collect();
    let judgement = judged(&files);
    judgement.findings.iter().map(|found| format!("{} {}", found.kind_word(), found.rule)).collect()
}

fn judged(files: &[(&str, Vec<u8>)]) -> Judgement {
    let file = |(id, (name, bytes)): (u32, &(&str, Vec<u8>))| InputFile::in_memory(FileId(id), name, bytes.clone());
    let inputs = (0..).zip(files).map(file).collect();
    let histories = load_each(inputs, &ReadOptions::default(), &Domains::default(), &());
    assert_eq!(histories[0].problems.len(), 0, "{:?}", histories[0].problems);
    let order = Order::derive(&histories[0], &OrderOptions::default());
    crate::check::judge(&histories[0], &order, &crate::check::Options::default())
}

const CLIENT: &str = "r/client-1/operations.json";
const WAL: &str = "r/server-a/member/wal/0000000000000000-0000000000000000.wal";

/// A read of revision 2 that is told at a time that it is compacted.
fn refused_read(at: i64) -> (&'static str, Vec<u8>) {
    let input = json!({"Type": "range", "Range": {"Start": "a", "Revision": 2}});
    let output = json!({"ClientError": COMPACTED, "Revision": 0});
    ("r/client-2/operations.json", operation(11, &input, &output, at).into_bytes())
}

/// A watch from revision 2 on that is told at a time that it is compacted.
fn ended_watch(at: i64) -> (&'static str, Vec<u8>) {
    let told = json!({"Revision": 0, "Time": at, "Error": COMPACTED});
    ("r/client-3/watch.json", watch(2, &[told]).into_bytes())
}

/// A compaction through revision 2 that is told at a time that it was done before.
fn refused_compaction(at: i64) -> (&'static str, Vec<u8>) {
    let input = json!({"Type": "compact", "Compact": {"Revision": 2}});
    let output = json!({"ClientError": COMPACTED, "Revision": 0});
    ("r/client-2/operations.json", operation(11, &input, &output, at).into_bytes())
}

/// An event of revision 3 without the value before, delivered at a time.
fn event_alone(at: i64) -> (&'static str, Vec<u8>) {
    let event = json!({"Type": "put-operation", "Key": "a", "Value": {"Value": "2"}, "Revision": 3});
    let told = json!({"Events": [event], "Revision": 4, "Time": at});
    ("r/client-3/watch.json", watch(3, &[told]).into_bytes())
}

#[test]
fn a_compaction_in_the_log_was_not_in_force_before_the_writes_in_front_of_it_were_sent() {
    for (told, rule) in [
        (refused_read as fn(i64) -> _, "violation false-compaction"),
        (ended_watch, "violation false-compaction"),
        (refused_compaction, "violation false-compaction"),
        (event_alone, "violation watch-prev-value"),
    ] {
        // Behind the put that was sent at 50.
        assert_eq!(found(&[told(49), (WAL, compacting(3, 4))]), [rule]);
        assert_eq!(found(&[told(50), (WAL, compacting(3, 4))]), [""; 0]);
        // Behind the one that was sent at 30.
        assert_eq!(found(&[told(49), (WAL, compacting(2, 4))]), [""; 0]);
        // What is only written may have been replaced.
        assert_eq!(found(&[told(49), (WAL, compacting(3, 2))]), [""; 0]);
        // Nobody asked, and no log shows one.
        assert_eq!(found(&[told(50)]), [rule]);
    }
}

#[test]
fn a_log_that_differs_from_what_clients_were_told_says_nothing_of_when_it_compacted() {
    let others = ["1", "2", "other"].map(|text| put("a", text.as_bytes()));
    let differing = log(&[&others[..], &[compaction(3)]].concat(), 4);
    assert_eq!(found(&[refused_read(49), (WAL, differing)]), [""; 0]);
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
    // Of transactions clients record no leases.
    assert_eq!(word(0, logged(7)), "holds");
}
