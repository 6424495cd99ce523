//! Watches without a client: consecutive Kubernetes events, and output of `etcdctl watch`.

use super::call::{Call, create, delete, object, pod, refused};
use super::{Draw, Evidence, Shape};

const BASE: u64 = 100;

pub const SHAPES: &[Shape] = &[
    lines("watch-keys", "watch.json", |n| event("ADDED", &pod(n, n, BASE + n))),
    lines("watch-one-key", "watch.json", |n| event("MODIFIED", &pod(0, 0, BASE + n))),
    lines("watch-removals", "watch.json", |n| {
        event(if n % 2 == 0 { "ADDED" } else { "DELETED" }, &pod(n / 2 % 9, n / 2, BASE + n))
    }),
    lines("watch-disorder", "watch.json", |n| event("ADDED", &pod(n, n, BASE + n * 7919 % 130_003))),
    lines("watch-bookmarks", "watch.json", |n| event("BOOKMARK", &object("Pod", "", "", BASE + n, "", ""))),
    lines("witness-keys", "etcd-watch.json", |n| witness(BASE + n, &[change(n, BASE + n, BASE + n, 1)])),
    lines("witness-one-key", "etcd-watch.json", |n| witness(BASE + n, &[change(0, BASE, BASE + n, n + 1)])),
    lines("witness-removals", "etcd-watch.json", |n| match n % 2 {
        0 => witness(BASE + n, &[change(0, BASE + n, BASE + n, 1)]),
        _ => witness(BASE + n, &[removal(0, BASE + n)]),
    }),
    lines("witness-transactions", "etcd-watch.json", |n| {
        witness(BASE + n, &(0..100).map(|i| change(n * 100 + i, BASE + n, BASE + n, 1)).collect::<Vec<_>>())
    }),
    lines("witness-disorder", "etcd-watch.json", |n| {
        witness(BASE + n * 7919 % 130_003, &[change(n, BASE, BASE + n * 7919 % 130_003, 1)])
    }),
    whole("witness-one-transaction", "etcd-watch.json", |out| {
        write!(out, r#"{{"Header":{{"cluster_id":1,"member_id":2,"revision":{BASE},"raft_term":2}},"Events":["#);
        out.list(|out, n| write!(out, "{}", change(n, BASE, BASE, 1)));
        writeln!(out, r#"],"CompactRevision":0,"Canceled":false,"Created":false}}"#);
    }),
    whole("witness-beside-audit", "etcd-watch.json", |out| {
        let half = out.size / 2;
        let mut count = 0;
        while out.written < half {
            writeln!(out, "{}", witness(BASE + count, &[change(count, BASE + count, BASE + count, 1)]));
            count += 1;
        }
        out.file("audit.log");
        (0..count).for_each(|n| create(n, n, BASE + n).audit(out, n));
    }),
    whole("witness-beside-removals", "etcd-watch.json", |out| {
        let third = out.size / 3;
        let mut count = 0;
        while out.written < third {
            let made = BASE + 2 * count;
            writeln!(out, "{}", witness(made, &[change(0, made, made, 1)]));
            writeln!(out, "{}", witness(made + 1, &[removal(0, made + 1)]));
            count += 1;
        }
        out.file("audit.log");
        for n in 0..count {
            let made = BASE + 2 * n;
            let of_witness = |call: Call| {
                let answered = call.answered.replace(&format!(r#""u{n}""#), &format!(r#""u0-{made}""#));
                Call { answered, ..call }
            };
            of_witness(create(0, n, made)).audit(out, 3 * n);
            // Two removals at a time.
            let removal = of_witness(delete(0, n));
            removal.audit(out, 3 * n + 1);
            Call { id: format!("b{n}"), user: "v".to_owned(), takes: 400, ..removal }.audit(out, 3 * n + 1);
            refused(Call { name: "p0".to_owned(), ..Call::default() }, 404, "NotFound", "").audit(out, 3 * n + 2);
        }
    }),
];

const fn lines(name: &'static str, file: &'static str, line: fn(u64) -> String) -> Shape {
    Shape { name, draw: Draw::Lines(file, line) }
}

const fn whole(name: &'static str, file: &'static str, draw: fn(&mut Evidence)) -> Shape {
    Shape { name, draw: Draw::Whole(file, draw) }
}

fn event(kind: &str, object: &str) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

fn witness(revision: u64, events: &[String]) -> String {
    format!(
        r#"{{"Header":{{"cluster_id":1,"member_id":2,"revision":{revision},"raft_term":2}},"Events":[{}],"CompactRevision":0,"Canceled":false,"Created":false}}"#,
        events.join(",")
    )
}

fn change(name: u64, created: u64, revision: u64, version: u64) -> String {
    let key = base64(&format!("/registry/pods/d/p{name}"));
    let value = base64(&format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p{name}","namespace":"d","uid":"u{name}-{created}"}}}}"#
    ));
    format!(
        r#"{{"kv":{{"key":"{key}","create_revision":{created},"mod_revision":{revision},"version":{version},"value":"{value}"}}}}"#
    )
}

fn removal(name: u64, revision: u64) -> String {
    let key = base64(&format!("/registry/pods/d/p{name}"));
    format!(r#"{{"type":1,"kv":{{"key":"{key}","mod_revision":{revision}}}}}"#)
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for bytes in text.as_bytes().chunks(3) {
        let group = bytes.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - bytes.len()));
        for digit in 0..4 {
            let last = digit > bytes.len();
            out.push(if last { '=' } else { DIGITS[(group >> (18 - 6 * digit) & 63) as usize].into() });
        }
    }
    out
}
