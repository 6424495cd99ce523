//! Reports of etcd's robustness suite with the log of a member: a request that is answered has an entry there.

use super::etcd::{self, OPERATIONS, operation, range, whole};
use super::{Evidence, Shape};
use fixture::{Message, Segment, delete, put};

// The bench `growth` has this folder without the other tests, so each has the file.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../../src/ingest/etcd/fixture.rs"]
mod fixture;

const LOG: &str = "server-m0/member/wal/0000000000000000-0000000000000000.wal";

pub const SHAPES: &[Shape] = &[
    whole("etcd-log-of-puts", OPERATIONS, |out| {
        logged(out, 1, |n| (etcd::put(n, n % 50, n, 2 + n), put(&format!("k{}", n % 50), n.to_string().as_bytes())));
    }),
    whole("etcd-log-of-equal-requests", OPERATIONS, |out| {
        logged(out, 1, |n| (delete_of_nothing(n), delete("k0")));
    }),
    whole("etcd-log-of-equal-requests-at-one-time", OPERATIONS, |out| {
        logged(out, 1, |n| {
            let line = delete_of_nothing(0).replace(r#""ClientId":0"#, &format!(r#""ClientId":{n}"#));
            (line, delete("k0"))
        });
    }),
    // The log has every second of the requests, so half of them are findings.
    whole("etcd-log-without-requests", OPERATIONS, |out| logged(out, 2, |n| (delete_of_nothing(n), delete("k0")))),
    whole("etcd-log-of-leases", OPERATIONS, |out| {
        logged(out, 1, |n| {
            let (id, number) = (n / 2 + 1, Message::default());
            match n % 2 {
                0 => {
                    let grant = number.clone().number(1, 60).number(2, id);
                    (etcd::lease(n, "leaseGrant", "LeaseGrant", id, 1), number.message(8, grant))
                }
                _ => {
                    let revoke = number.clone().number(1, id);
                    (etcd::lease(n, "leaseRevoke", "LeaseRevoke", id, 1), number.message(9, revoke))
                }
            }
        });
    }),
    whole("etcd-log-of-compactions", OPERATIONS, |out| {
        logged(out, 1, |n| match n % 2 {
            0 => {
                let key = n % 50;
                (etcd::put(n, key, n, 2 + n / 2), put(&format!("k{key}"), n.to_string().as_bytes()))
            }
            _ => {
                let revision = 2 + n / 2;
                let input = format!(r#"{{"Type":"compact","Compact":{{"Revision":{revision}}}}}"#);
                let compaction = Message::default().number(1, revision);
                let line = operation(n, &input, &format!(r#""Revision":{revision}"#));
                (line, Message::default().message(7, compaction))
            }
        });
    }),
    whole("etcd-log-and-reads", OPERATIONS, |out| {
        let first = put("k0", b"0");
        logged(out, u64::MAX, |n| match n {
            0 => (etcd::put(0, 0, 0, 2), first.clone()),
            _ => (range(n, "k1", "", 0, "", 0, 2), Message::default()),
        });
    }),
];

/// A delete that finds no key. It has an entry, and makes no revision.
fn delete_of_nothing(n: u64) -> String {
    etcd::txn(n, "", r#"{"Type":"delete-operation","Delete":{"Key":"k0"}}"#, 1, false)
}

/// Writes requests with their answers, and the log, which has each `nth` of them.
fn logged(out: &mut Evidence, nth: u64, request: impl Fn(u64) -> (String, Message)) {
    let mut log = Segment::after(0).snapshot(0);
    let mut index = 0;
    out.each(|out, n| {
        let (line, proposal) = request(n);
        if n % nth == 0 {
            index += 1;
            let before = log.bytes.len();
            let segment = std::mem::replace(&mut log, Segment { bytes: Vec::new(), crc: 0 });
            log = segment.entry(index, 2, &proposal);
            out.written += (log.bytes.len() - before) as u64;
        }
        writeln!(out, "{line}");
    });
    out.file(LOG);
    out.bytes(&log.commit(index).bytes);
}
