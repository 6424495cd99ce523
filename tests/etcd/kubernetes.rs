//! Properties of Kubernetes traffic: one key per revision, pages of one list, a watch from the end of the list, and
//! writes that name the version they replace.

use super::cluster::{Ask, Recorded, Response};
use super::epochs::long;
use super::{Report, shown};
use retrograde::check::Judgement;
use serde_json::json;

const PROMISE: [(&str, &str); 1] = [("traffic.json", "{\"expectuniquerevision\":true}")];

fn judged(report: &Report) -> Judgement {
    report.judge_with(&PROMISE)
}

fn violated(judgement: &Judgement) -> Vec<&'static str> {
    judgement.findings.iter().filter(|f| f.kind_word() == "violation").map(|f| f.rule).collect()
}

/// A request of another client at the end.
fn ask(report: &mut Report, ask: &Ask) -> usize {
    let call = report.operations.iter().map(|operation| operation.ret).max().unwrap_or(0) + 1;
    let output = report.etcd.apply(call + 1, ask);
    report.operations.push(Recorded { client: 1, call, input: ask.input(), output, ret: call + 2 });
    report.operations.len() - 1
}

#[test]
fn a_second_key_at_one_revision_is_found_where_the_traffic_promises_one() {
    let report = long();
    let judgement = judged(&report);
    assert_eq!(judgement.verdict.word(), "holds", "{}", shown(&judgement));
    // The write has no answer, and both watches deliver another key.
    let mut report = long();
    let lost = report.operations.iter().position(|o| o.output["Revision"] == json!(20)).expect("a write");
    report.operations[lost].output = json!({"Error": "context deadline exceeded", "Revision": 0});
    let without = report.judge();
    for (_, _, responses) in &mut report.watches {
        let event =
            json!({"Type": "put-operation", "Key": "other", "Value": {"Value": "v"}, "Revision": 20, "IsCreate": true});
        responses[18].events.push(event);
    }
    let judgement = judged(&report);
    assert_eq!(violated(&without), Vec::<&str>::new());
    assert!(violated(&judgement).contains(&"split-timeline"), "{}", shown(&judgement));
    // Without the property it may be a transaction without a record.
    assert!(!violated(&report.judge()).contains(&"split-timeline"));
}

#[test]
fn a_promise_that_requests_themselves_break_convicts_nobody() {
    let mut report = long();
    let puts = vec![("k1".to_owned(), "x".to_owned(), 0), ("k2".to_owned(), "y".to_owned(), 0)];
    let txn = Ask::Txn { conditions: vec![], puts, deletes: vec![], reads: false };
    let at = ask(&mut report, &txn);
    report.operations[at].output = json!({"Error": "context deadline exceeded", "Revision": 0});
    let number = report.etcd.revision();
    let events = |version: [i64; 2]| {
        let event = |n: usize, value: &str| {
            let before = report.etcd.state(number - 1).get(&format!("k{n}")).cloned();
            let mut event =
                json!({"Type": "put-operation", "Key": format!("k{n}"), "Value": {"Value": value}, "Revision": number});
            match before {
                Some(live) => {
                    event["PrevValue"] =
                        json!({"Value": {"Value": live.value}, "ModRevision": live.changed, "Version": live.version});
                }
                None => event["IsCreate"] = json!(true),
            }
            event
        };
        version.map(|n| event(n as usize, if n == 1 { "x" } else { "y" })).to_vec()
    };
    let told = Response { time: 10_000, revision: number, events: events([1, 2]), ..Response::default() };
    for (_, _, responses) in &mut report.watches {
        responses.push(told.clone());
    }
    let judgement = judged(&report);
    assert_eq!(judgement.verdict.word(), "holds", "{}", shown(&judgement));
}

#[test]
fn pages_of_one_list_agree() {
    let mut report = long();
    let list = |from: &str| Ask::Get { key: from.to_owned(), end: "l".to_owned(), limit: 3, at: 30 };
    let first = ask(&mut report, &list("k"));
    let last = report.operations[first].output["Range"]["KVs"][2]["Key"].as_str().expect("a key").to_owned();
    let second = ask(&mut report, &list(&format!("{last}\0")));
    let judgement = judged(&report);
    assert_eq!(judgement.verdict.word(), "holds", "{}", shown(&judgement));
    let page = &mut report.operations[second].output["Range"];
    page["KVs"].as_array_mut().expect("pairs").remove(0);
    let judgement = judged(&report);
    assert!(violated(&judgement).contains(&"linearizability"), "{}", shown(&judgement));
}

#[test]
fn a_watch_from_where_a_list_ends_leaves_nothing_out() {
    let mut report = long();
    let whole = report.watches[0].2[29..].to_vec();
    report.watches.push(("k", 31, whole.clone()));
    assert_eq!(judged(&report).verdict.word(), "holds");
    report.watches[2].2.remove(0);
    assert_eq!(violated(&judged(&report)), ["watch-gap"]);
}

#[test]
fn a_write_that_names_the_version_it_replaces_is_answered_by_what_was_there() {
    for (right, rule) in [(true, None), (false, Some("linearizability"))] {
        let mut report = long();
        let changed = report.etcd.state(report.etcd.revision())["k1"].changed;
        let put = Ask::Txn {
            conditions: vec![("k1".to_owned(), changed - i64::from(!right))],
            puts: vec![("k1".to_owned(), "new".to_owned(), 0)],
            deletes: vec![],
            reads: true,
        };
        let at = ask(&mut report, &put);
        if !right {
            // It was false, and the answer treats it as true.
            let number = report.etcd.revision() + 1;
            let results = json!([{"KVs": null, "Count": 0, "Deleted": 0}]);
            report.operations[at].output = json!({"Txn": {"Failure": false, "Results": results}, "Revision": number});
        }
        let judgement = judged(&report);
        assert_eq!(violated(&judgement).first().copied(), rule, "{}", shown(&judgement));
    }
}
