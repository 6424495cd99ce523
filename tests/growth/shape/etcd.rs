//! Reports of etcd's robustness suite: operations and watches of etcd clients.

use super::{Draw, Evidence, Shape};

pub(super) const OPERATIONS: &str = "client-1/operations.json";
const WATCH: &str = "client-2/watch.json";

pub const SHAPES: &[Shape] = &[
    lines("etcd-keys", |n| put(n, n, n, 2 + n)),
    lines("etcd-one-key", |n| put(n, 0, n, 2 + n)),
    lines("etcd-equal-values", |n| put(n, 0, 7, 2 + n)),
    lines("etcd-text-values", |n| txn(n, "", &step(n % 50, &format!("v{n}"), 0), 2 + n, false)),
    lines("etcd-reads", |n| {
        if n % 10 == 0 {
            put(n, 0, n, 2 + n / 10)
        } else {
            range(n, "k0", "", 0, &pair(0, n - n % 10, 2 + n / 10, 1 + n / 10), 1, 2 + n / 10)
        }
    }),
    lines("etcd-stale-reads", |n| {
        if n % 2 == 0 { put(n, 0, n, 2 + n / 2) } else { range(n, "k0", "", 0, "", 0, 2 + n / 2) }
    }),
    lines("etcd-old-reads", |n| {
        if n % 2 == 0 {
            put(n, 0, n, 2 + n / 2)
        } else {
            range(n, "k0", "", 2 + n / 4, &pair(0, n / 4 * 2, 2 + n / 4, 1 + n / 4), 1, 2 + n / 2)
        }
    }),
    lines("etcd-ranges", |n| match n {
        0..100 => put(n, n, n, 2 + n),
        _ => range(n, "k", "l", 0, &(0..100).map(|i| pair(i, i, 2 + i, 1)).collect::<Vec<_>>().join(","), 100, 101),
    }),
    lines("etcd-limited-ranges", |n| match n % 2 {
        0 => put(n, if n == 0 { 0 } else { 1 + n / 2 % 49 }, n, 2 + n / 2),
        _ => range(n, "k", "l", 0, &pair(0, 0, 2, 1), (n / 2 + 1).min(50), 2 + n / 2)
            .replace(r#""Limit":0"#, r#""Limit":1"#),
    }),
    lines("etcd-deletes", |n| match n % 2 {
        0 => put(n, 0, n, 2 + n),
        _ => txn(n, "", r#"{"Type":"delete-operation","Delete":{"Key":"k0"}}"#, 2 + n, false)
            .replace(r#""Deleted":0"#, r#""Deleted":1"#),
    }),
    lines("etcd-conditions", |n| {
        txn(n, &condition(n % 50, if n < 50 { 0 } else { 2 + n - 50 }), &step(n % 50, &n.to_string(), 0), 2 + n, false)
    }),
    lines("etcd-failed-conditions", |n| {
        if n == 0 { put(0, 0, 0, 2) } else { txn(n, &condition(0, 1), &step(0, &n.to_string(), 0), 2, true) }
    }),
    lines("etcd-many-conditions", |n| {
        txn(n, &vec![condition(n, 0); 50].join(","), &step(n, &n.to_string(), 0), 2 + n, false)
    }),
    lines("etcd-unknown-outcomes", |n| unknown(n, n % 50, n)),
    lines("etcd-unknown-outcomes-of-one-key", |n| unknown(n, 0, n)),
    lines("etcd-equal-unknown-outcomes", |n| unknown(n, 0, 7)),
    lines("etcd-seen-unknown-outcomes", |n| {
        if n % 2 == 0 {
            unknown(n, 0, n)
        } else {
            range(n, "k0", "", 0, &pair(0, n - 1, 2 + n / 2, 1 + n / 2), 1, 2 + n / 2)
        }
    }),
    lines("etcd-lanes", |n| put(n, n % 50, n, 2 + n).replace(r#""ClientId":0"#, &format!(r#""ClientId":{n}"#))),
    lines("etcd-leases", |n| match n % 3 {
        0 => lease(n, "leaseGrant", "LeaseGrant", n + 1, 1 + n / 3 * 2),
        1 => txn(n, "", &step(n % 50, &n.to_string(), n), 2 + n / 3 * 2, false),
        _ => lease(n, "leaseRevoke", "LeaseRevoke", n - 1, 3 + n / 3 * 2),
    }),
    lines("etcd-lease-of-many-keys", |n| match n {
        0 => lease(n, "leaseGrant", "LeaseGrant", 1, 1),
        _ => txn(n, "", &step(n, &n.to_string(), 1), 1 + n, false),
    }),
    lines("etcd-compactions", |n| match n % 2 {
        0 => put(n, n % 50, n, 2 + n / 2),
        _ => operation(
            n,
            &format!(r#"{{"Type":"compact","Compact":{{"Revision":{}}}}}"#, 2 + n / 2),
            &format!(r#""Revision":{}"#, 2 + n / 2),
        ),
    }),
    lines("etcd-defragmentations", |n| {
        if n % 2 == 0 {
            put(n, n % 50, n, 2 + n / 2)
        } else {
            operation(n, r#"{"Type":"defragment"}"#, r#""Revision":0"#)
        }
    }),
    lines("etcd-members", |n| {
        put(n, n % 50, n, 2 + n).replace(r#","Error""#, &format!(r#","member-id":"{:x}","Error""#, n % 5 + 1))
    }),
    lines("etcd-equal-revisions", |n| put(n, n, n, 2 + n / 2)),
    lines("etcd-falling-revisions", |n| put(n, n % 50, n, 10_000_000 - n)),
    lines("etcd-copied-operations", |n| put(n / 2, n / 2 % 50, n / 2, 2 + n / 2)),
    lines("etcd-calls-at-one-time", |n| put(0, n, n, 2 + n).replace(r#""ClientId":0"#, &format!(r#""ClientId":{n}"#))),
    whole("etcd-one-transaction", OPERATIONS, |out| {
        write!(out, r#"{{"ClientId":0,"Input":{{"Type":"txn","Txn":{{"Conditions":null,"OperationsOnSuccess":["#);
        let mut count = 0;
        while out.written < out.size * 3 / 4 {
            write!(out, "{}{}", if count > 0 { "," } else { "" }, step(count, "v", 0));
            count += 1;
        }
        write!(out, r#"],"OperationsOnFailure":null}}}},"Call":10,"Output":{{"Txn":{{"Failure":false,"Results":["#);
        (0..count).for_each(|n| write!(out, "{}{NOTHING}", if n > 0 { "," } else { "" }));
        writeln!(out, r#"]}},"Revision":2,"Error":""}},"Return":20}}"#);
    }),
    whole("etcd-clients", "client-0/operations.json", |out| {
        out.each(|out, n| {
            if n % 40 == 39 {
                out.file(&format!("client-{n}/operations.json"));
            }
            writeln!(out, "{}", put(n, n % 50, n, 2 + n));
        });
    }),
    whole("etcd-reports", "report-0/client-1/operations.json", |out| {
        let mut first = 0;
        out.each(|out, n| {
            if n % 40 == 39 {
                out.file(&format!("report-{n}/client-1/operations.json"));
                first = n;
            }
            writeln!(out, "{}", put(n - first, n % 50, n, 2 + n - first));
        });
    }),
    whole("etcd-one-watch", WATCH, |out| watched(out, |n| (n % 100, 2 + n))),
    whole("etcd-watch-of-keys", WATCH, |out| watched(out, |n| (n, 2 + n))),
    whole("etcd-watch-in-disorder", WATCH, |out| watched(out, |n| (n % 100, 2 + n * 7919 % 150_011))),
    whole("etcd-watch-with-gaps", WATCH, |out| watched(out, |n| (n % 100, 2 + n * 2))),
    whole("etcd-watch-of-one-revision", WATCH, |out| watched(out, |n| (n, 2))),
    whole("etcd-repeated-events", WATCH, |out| watched(out, |n| (n / 2 % 100, 2 + n / 2))),
    whole("etcd-watches", WATCH, |out| {
        let count = out.size / 2000;
        for watch in 0..count {
            let request = format!(r#"{{"Key":"k{}","Revision":2,"WithPrefix":false}}"#, watch % 100);
            write!(out, r#"{{"Request":{request},"Responses":["#);
            for i in 0..12 {
                let n = watch % 100 + i * 100;
                write!(out, "{}{}", if i > 0 { "," } else { "" }, response(watch % 100, n, 2 + n, n));
            }
            writeln!(out, "]}}");
        }
    }),
    whole("etcd-previous-values", WATCH, |out| {
        write!(out, r#"{{"Request":{{"Key":"","Revision":2,"WithPrefix":true,"WithPrevKV":true}},"Responses":["#);
        out.list(|out, n| {
            let previous = if n < 50 {
                "null".to_owned()
            } else {
                format!(r#"{{"Value":{{"Value":"{}"}},"ModRevision":{},"Version":{}}}"#, n - 50, 2 + n - 50, n / 50)
            };
            write!(
                out,
                "{}",
                response(n % 50, n, 2 + n, n)
                    .replace(r#"}],"Revision""#, &format!(r#","PrevValue":{previous}}}],"Revision""#))
            );
        });
        writeln!(out, "]}}");
    }),
    whole("etcd-puts-and-watch", WATCH, |out| {
        let size = out.size;
        out.size /= 2;
        watched(out, |n| (n % 100, 2 + n));
        out.size = size;
        out.file(OPERATIONS);
        out.each(|out, n| writeln!(out, "{}", put(n, n % 100, n, 2 + n)));
    }),
    whole("etcd-unknown-outcomes-and-watch", WATCH, |out| {
        let size = out.size;
        out.size /= 2;
        watched(out, |n| (0, 2 + n));
        out.size = size;
        out.file(OPERATIONS);
        out.each(|out, n| writeln!(out, "{}", unknown(n, 0, n)));
    }),
];

const fn lines(name: &'static str, line: fn(u64) -> String) -> Shape {
    Shape { name, draw: Draw::Lines(OPERATIONS, line) }
}

pub(super) const fn whole(name: &'static str, file: &'static str, draw: fn(&mut Evidence)) -> Shape {
    Shape { name, draw: Draw::Whole(file, draw) }
}

/// The result of a step without keys.
const NOTHING: &str = r#"{"KVs":null,"Count":0,"Deleted":0}"#;

pub(super) fn operation(n: u64, input: &str, output: &str) -> String {
    let (call, returned) = (10 * n + 1, 10 * n + 5);
    format!(r#"{{"ClientId":0,"Input":{input},"Call":{call},"Output":{{{output},"Error":""}},"Return":{returned}}}"#)
}

pub(super) fn txn(n: u64, conditions: &str, step: &str, revision: u64, failed: bool) -> String {
    let results = if failed { "" } else { NOTHING };
    operation(
        n,
        &format!(
            r#"{{"Type":"txn","Txn":{{"Conditions":[{conditions}],"OperationsOnSuccess":[{step}],"OperationsOnFailure":null}}}}"#
        ),
        &format!(r#""Txn":{{"Failure":{failed},"Results":[{results}]}},"Revision":{revision}"#),
    )
}

fn step(key: u64, value: &str, lease: u64) -> String {
    format!(r#"{{"Type":"put-operation","Put":{{"Key":"k{key}","Value":{{"Value":"{value}"}},"LeaseID":{lease}}}}}"#)
}

pub(super) fn put(n: u64, key: u64, value: u64, revision: u64) -> String {
    txn(n, "", &step(key, &value.to_string(), 0), revision, false)
}

/// A put without an answer.
fn unknown(n: u64, key: u64, value: u64) -> String {
    put(n, key, value, 0).replace(r#""Error":"""#, r#""Error":"context deadline exceeded""#)
}

fn condition(key: u64, revision: u64) -> String {
    format!(r#"{{"Key":"k{key}","ExpectedRevision":{revision},"ExpectedVersion":0}}"#)
}

pub(super) fn range(n: u64, start: &str, end: &str, at: u64, pairs: &str, count: u64, revision: u64) -> String {
    operation(
        n,
        &format!(
            r#"{{"Type":"range","Range":{{"Start":"{start}","End":"{end}","Limit":0,"KeysOnly":false,"Revision":{at}}}}}"#
        ),
        &format!(r#""Range":{{"KVs":[{pairs}],"Count":{count}}},"Revision":{revision}"#),
    )
}

fn pair(key: u64, value: u64, revision: u64, version: u64) -> String {
    format!(r#"{{"Key":"k{key}","Value":{{"Value":"{value}"}},"ModRevision":{revision},"Version":{version}}}"#)
}

pub(super) fn lease(n: u64, kind: &str, member: &str, id: u64, revision: u64) -> String {
    let answer = format!(r#""{member}":{{"LeaseID":{id}}},"Revision":{revision}"#);
    operation(n, &format!(r#"{{"Type":"{kind}","{member}":{{"LeaseID":{id}}}}}"#), &answer)
}

fn response(key: u64, value: u64, revision: u64, time: u64) -> String {
    format!(
        r#"{{"Events":[{{"Type":"put-operation","Key":"k{key}","Value":{{"Value":"{value}"}},"Revision":{revision}}}],"Revision":{revision},"Time":{}}}"#,
        10 * time + 7
    )
}

/// One watch on everything; key and revision of its events.
fn watched(out: &mut Evidence, event: impl Fn(u64) -> (u64, u64)) {
    write!(out, r#"{{"Request":{{"Key":"","Revision":2,"WithPrefix":true,"WithProgressNotify":false}},"Responses":["#);
    out.list(|out, n| {
        let (key, revision) = event(n);
        write!(out, "{}", response(key, n, revision, n));
    });
    writeln!(out, "]}}");
}
