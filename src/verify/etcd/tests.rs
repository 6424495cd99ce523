//! Orders compared with members' logs.

use super::{EtcdFlaw, Step, replay};
use crate::history::etcd::Recording;
use crate::history::{Domains, History, load_each};
use crate::ingest::etcd::fixture::{Message, Segment, put};
use crate::ingest::{FileId, InputFile, ReadOptions};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";
const FIRST: &str = "r/client-1/operations.json";
const SECOND: &str = "r/client-2/operations.json";
const LOG: &str = "r/server-a/member/wal/0000000000000000-0000000000000000.wal";

/// A file of a report.
type File = (&'static str, Vec<u8>);

fn operation(call: i64, input: &Value, output: &Value, returned: i64) -> String {
    json!({"ClientId": 1, "Input": input, "Call": call, "Output": output, "Return": returned}).to_string() + "\n"
}

/// Puts that were sent at 10, 30 and 50 and made the revisions 2, 3 and 4.
fn puts() -> String {
    let put = |number: i64| {
        let step = json!({"Type": "put-operation", "Put": {"Key": "a", "Value": {"Value": number.to_string()}}});
        let output = json!({"Txn": {"Results": [{"Deleted": 0}]}, "Revision": 1 + number});
        operation(
            20 * number - 10,
            &json!({"Type": "txn", "Txn": {"OperationsOnSuccess": [step]}}),
            &output,
            20 * number - 5,
        )
    };
    [1, 2, 3].map(put).concat()
}

/// Their log, with a compaction through revision 3 after some of them.
fn log(values: [&str; 3], behind: usize, committed: u64) -> Vec<u8> {
    let mut proposals = values.map(|value| put("a", value.as_bytes())).to_vec();
    proposals.insert(behind, Message::default().message(7, Message::default().number(1, 3)));
    let entries = (1..).zip(&proposals);
    let segment = entries.fold(Segment::after(0).snapshot(0), |segment, (index, entry)| segment.entry(index, 2, entry));
    segment.commit(committed).bytes
}

fn history(files: &[(&str, Vec<u8>)]) -> History {
    let file = |(id, (name, bytes)): (u32, &(&str, Vec<u8>))| InputFile::in_memory(FileId(id), name, bytes.clone());
    let inputs = (0..).zip(files).map(file).collect();
    load_each(inputs, &ReadOptions::default(), &Domains::default(), &()).remove(0)
}

/// The result of checking an order of the puts, with responses to another client.
fn replayed(other: &(&str, Vec<u8>), log: Option<Vec<u8>>, order: &[u32]) -> Result<(), EtcdFlaw> {
    let mut files = vec![(FIRST, puts().into_bytes()), other.clone()];
    files.extend(log.map(|log| (LOG, log)));
    let history = history(&files);
    assert_eq!(history.problems.len(), 0, "{:?}", history.problems);
    let recording: &Recording = &history.cluster().expect("a report").recording;
    let order: Vec<Step> = order.iter().map(|at| Step::Operation(*at)).collect();
    replay(recording, &order, &BTreeMap::new()).map(drop)
}

/// Refusals that only a compaction through revision 3 explains, an event that lacks the compacted change, and a time; and an
/// order with the refusals before or after the last put.
fn refusals(at: i64) -> Vec<(File, [Vec<u32>; 2])> {
    let output = json!({"ClientError": COMPACTED, "Revision": 0});
    let refused = |input: &Value| (SECOND, operation(11, input, &output, at).into_bytes());
    let watch = |response: Value| {
        let request = json!({"Key": "a", "Revision": 2 + i64::from(response["Error"].is_null()), "WithPrevKV": true});
        ("r/client-2/watch.json", json!({"Request": request, "Responses": [response]}).to_string().into_bytes())
    };
    let event = json!({"Type": "put-operation", "Key": "a", "Value": {"Value": "2"}, "Revision": 3});
    let operations = [vec![0, 1, 3, 2], vec![0, 1, 2, 3]];
    let deliveries = [vec![0, 1, 2], vec![0, 1, 2]];
    vec![
        (refused(&json!({"Type": "range", "Range": {"Start": "a", "Revision": 2}})), operations.clone()),
        (refused(&json!({"Type": "compact", "Compact": {"Revision": 3}})), operations),
        (watch(json!({"Revision": 0, "Time": at, "Error": COMPACTED})), deliveries.clone()),
        (watch(json!({"Events": [event], "Revision": 4, "Time": at})), deliveries),
    ]
}

#[test]
fn a_compaction_of_the_log_excuses_nothing_before_the_writes_in_front_of_it_were_sent() {
    let values = ["1", "2", "3"];
    let forged = |result: Result<(), EtcdFlaw>| matches!(result, Err(EtcdFlaw::Answer { .. } | EtcdFlaw::Watch { .. }));
    for (early, [before, _]) in refusals(49) {
        assert!(forged(replayed(&early, None, &before)));
        // After the put that was sent at 50.
        assert!(forged(replayed(&early, Some(log(values, 3, 4)), &before)));
        // After the put that was sent at 30.
        assert_eq!(replayed(&early, Some(log(values, 2, 4)), &before), Ok(()));
        // An entry that is not known to be committed may have been replaced.
        assert_eq!(replayed(&early, Some(log(values, 3, 2)), &before), Ok(()));
        // A log with other changes than the order bounds no time.
        assert_eq!(replayed(&early, Some(log(["1", "2", "other"], 3, 4)), &before), Ok(()));
    }
    for (late, [_, behind]) in refusals(50) {
        assert!(forged(replayed(&late, None, &behind)));
        assert_eq!(replayed(&late, Some(log(values, 3, 4)), &behind), Ok(()));
    }
}
