//! Injected faults of answers.

use super::{Report, Row, Sign, changed, placed, wrote};
use crate::chance::Chance;
use crate::etcd::cluster::{Ask, Recorded};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";
const FUTURE: &str = "etcdserver: mvcc: required revision is a future revision";

fn one(rule: &'static str, revision: i64) -> Option<BTreeSet<Sign>> {
    Some(BTreeSet::from([(rule, revision)]))
}

fn visible(sign: Option<Sign>) -> Option<BTreeSet<Sign>> {
    Some(sign.into_iter().collect())
}

fn header(operation: &Recorded) -> i64 {
    operation.output["Revision"].as_i64().unwrap_or(0)
}

/// An operation of a kind, at random.
fn pick<'r>(report: &'r mut Report, dice: &mut Chance, kind: impl Fn(&Recorded) -> bool) -> Option<&'r mut Recorded> {
    let places: Vec<usize> = (0..report.operations.len()).filter(|at| kind(&report.operations[*at])).collect();
    let at = *dice.one(Some(&places[..]).filter(|places| !places.is_empty())?);
    report.operations.get_mut(at)
}

fn is_read(operation: &Recorded) -> bool {
    operation.input["Type"] == "range" && operation.output["Range"].is_object()
}

fn of_the_past(operation: &Recorded) -> bool {
    is_read(operation) && operation.input["Range"]["Revision"].as_i64() > Some(0)
}

fn found_something(operation: &Recorded) -> bool {
    is_read(operation) && operation.output["Range"]["KVs"].as_array().is_some_and(|pairs| !pairs.is_empty())
}

/// Adds a request of another client at the end.
fn add(report: &mut Report, ask: &Ask, output: Value) {
    let call = report.end() + 1;
    let client = report.operations.iter().map(|operation| operation.client).max().unwrap_or(0) + 1;
    report.operations.push(Recorded { client, call, input: ask.input(), output, ret: call + 2 });
}

fn error(text: &str) -> Value {
    json!({"Error": text, "Revision": 0})
}

pub static ROWS: &[Row] = &[
    Row {
        name: "a read shows a value that never was",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let read = pick(report, dice, found_something)?;
                let pair = &mut read.output["Range"]["KVs"][0];
                pair["Value"] = json!({"Value": "never"});
                one("split-timeline", pair["ModRevision"].as_i64()?)
            })
        },
    },
    Row {
        name: "a read miscounts the life of a key",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let read = pick(report, dice, found_something)?;
                let pair = &mut read.output["Range"]["KVs"][0];
                pair["Version"] = json!(pair["Version"].as_i64()? + 1);
                one("linearizability", header(read))
            })
        },
    },
    Row {
        name: "a read lacks a key",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let read = pick(report, dice, found_something)?;
                let range = &mut read.output["Range"];
                let count = range["Count"].as_i64()?;
                range["KVs"].as_array_mut()?.remove(0);
                range["Count"] = json!(count - 1);
                one("linearizability", header(read))
            })
        },
    },
    Row {
        name: "a list counts a key too many",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let read = pick(report, dice, is_read)?;
                let count = read.output["Range"]["Count"].as_i64()?;
                read.output["Range"]["Count"] = json!(count + 1);
                one("linearizability", header(read))
            })
        },
    },
    Row {
        name: "a read shows a key as it was before",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let Report { etcd, operations, .. } = report;
                let older = |operation: &Recorded| {
                    let pair = operation.output["Range"]["KVs"].get(0)?;
                    let key = pair["Key"].as_str()?;
                    let state = etcd.state(pair["ModRevision"].as_i64()? - 1);
                    let live = state.get(key)?;
                    let value = json!({"Value": live.value});
                    Some(json!({"Key": key, "Value": value, "ModRevision": live.changed, "Version": live.version}))
                };
                let reads: Vec<(usize, Value)> =
                    operations.iter().enumerate().filter_map(|(at, read)| Some((at, older(read)?))).collect();
                let (at, pair) = dice.one(Some(&reads[..]).filter(|reads| !reads.is_empty())?).clone();
                operations[at].output["Range"]["KVs"][0] = pair;
                one("linearizability", header(&operations[at]))
            })
        },
    },
    Row {
        name: "a read of the past shows another past",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let read = pick(report, dice, of_the_past)?;
                let range = &mut read.output["Range"];
                match range["KVs"].as_array_mut()?.pop() {
                    Some(_) => range["Count"] = json!(range["Count"].as_i64()? - 1),
                    None => {
                        range["KVs"] = json!([{"Key": "b", "Value": {"Value": "v"}, "ModRevision": 1, "Version": 1}]);
                        range["Count"] = json!(1);
                    }
                }
                one("linearizability", header(read))
            })
        },
    },
    Row {
        name: "a condition that was false is taken as true",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let Report { etcd, operations, .. } = report;
                let failed = |o: &Recorded| o.output["Txn"]["Failure"] == json!(true);
                let places: Vec<usize> = (0..operations.len()).filter(|at| failed(&operations[*at])).collect();
                let refused = &mut operations[*dice.one(Some(&places[..]).filter(|places| !places.is_empty())?)];
                let at = header(refused);
                let condition = &mut refused.input["Txn"]["Conditions"][0];
                let known = condition["Key"].as_str().and_then(|key| etcd.state(at).get(key));
                condition["ExpectedRevision"] = json!(known.map_or(0, |live| live.changed));
                one("linearizability", at)
            })
        },
    },
    Row {
        name: "a read is refused as compacted, and nothing was",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let read = pick(report, dice, of_the_past)?;
                let (asked, returned) = (read.input["Range"]["Revision"].as_i64()?, read.ret);
                read.output = error(COMPACTED);
                let done = !report.compacts() || report.asked_to_compact(returned) > asked;
                visible((!done).then_some(("false-compaction", asked)))
            })
        },
    },
    Row {
        name: "a compacted revision is answered",
        faulty: |seed| {
            changed(seed, |report, _| {
                let done = report.operations.iter().filter(|operation| operation.output["Compact"].is_object());
                let through = done.filter_map(|operation| operation.input["Compact"]["Revision"].as_i64()).max()?;
                let asked = Some(through - 1).filter(|asked| *asked > 0)?;
                let ask = Ask::Get { key: "a".to_owned(), end: "z".to_owned(), limit: 0, at: asked };
                report.etcd.compacted = 0;
                let output = report.etcd.apply(0, &ask);
                add(report, &ask, output);
                one("false-compaction", asked)
            })
        },
    },
    Row {
        name: "a revision that had been seen is refused as one of the future",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let read = pick(report, dice, of_the_past)?;
                let (asked, call) = (read.input["Range"]["Revision"].as_i64()?, read.call);
                read.output = error(FUTURE);
                let seen = report.operations.iter().filter(|operation| operation.ret < call).filter_map(placed).max();
                visible(seen.filter(|seen| *seen >= asked).map(|seen| ("stale-consistent-read", seen)))
            })
        },
    },
    Row {
        name: "two writes are given one revision",
        faulty: |seed| {
            changed(seed, |report, dice| {
                let writes: Vec<usize> =
                    (0..report.operations.len()).filter(|at| wrote(&report.operations[*at])).collect();
                let [first, .., last] = writes[..] else { return None };
                let (first, last) = if dice.below(2) == 0 { (first, last) } else { (last, first) };
                let revision = header(&report.operations[first]);
                report.operations[last].output["Revision"] = json!(revision);
                one("revision-reuse", revision)
            })
        },
    },
    Row {
        name: "a deletion on the condition that the key is there removes nothing",
        faulty: |seed| {
            changed(seed, |report, dice| {
                report.watches.clear();
                let there = |o: &Recorded| o.input["Txn"]["Conditions"][0]["ExpectedRevision"].as_i64() > Some(0);
                let removed = |o: &Recorded| o.output["Txn"]["Results"][0]["Deleted"] == json!(1);
                let deletion = pick(report, dice, |o| there(o) && removed(o))?;
                deletion.output["Txn"]["Results"][0]["Deleted"] = json!(0);
                one("linearizability", header(deletion))
            })
        },
    },
    Row {
        name: "a condition that was false is shown to be true",
        faulty: |seed| {
            changed(seed, |report, dice| {
                report.watches.clear();
                let refused = pick(report, dice, |o| {
                    o.output["Txn"]["Failure"] == json!(true) && !o.output["Txn"]["Results"][0]["KVs"][0].is_null()
                })?;
                let changed = refused.output["Txn"]["Results"][0]["KVs"][0]["ModRevision"].clone();
                refused.input["Txn"]["Conditions"][0]["ExpectedRevision"] = changed;
                one("linearizability", header(refused))
            })
        },
    },
    Row {
        name: "a write is given the revision of an empty store",
        faulty: |seed| {
            changed(seed, |report, dice| {
                pick(report, dice, wrote)?.output["Revision"] = json!(1);
                one("linearizability", 1)
            })
        },
    },
    Row {
        name: "a lease is revoked that had ended",
        faulty: |seed| {
            changed(seed, |report, _| {
                for ask in [Ask::Grant(99), Ask::Revoke(99)] {
                    let output = report.etcd.apply(0, &ask);
                    add(report, &ask, output);
                }
                let number = report.etcd.revision();
                add(report, &Ask::Revoke(99), json!({"LeaseRevoke": {}, "Revision": number}));
                one("linearizability", number)
            })
        },
    },
];
