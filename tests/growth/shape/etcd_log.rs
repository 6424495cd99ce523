//! Reports of etcd's robustness suite with the log of a member: a request that is answered has an entry there.

use super::etcd::{self, OPERATIONS, operation, range, whole};
use super::{Evidence, Shape};
use fixture::{Message, Segment, delete, put};

// The bench `growth` has this folder without the other tests, so each has the file.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../../src/ingest/etcd/fixture.rs"]
mod fixture;

// The format of `member/snap/db` needs the checksum of bbolt.
#[allow(dead_code, clippy::duplicate_mod)]
#[path = "../../../src/ingest/etcd/store_fixture.rs"]
mod store_fixture;
mod bbolt {
    /// The checksum of a page: FNV-1a of 64 bits.
    pub(super) fn fnv(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

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
    whole("etcd-data-directories", "m1/member/wal/0000000000000000-0000000000000000.wal", members),
];

/// Data directories of two members without clients: logs and stores with the same puts.
fn members(out: &mut Evidence) {
    // The log and the store of a member have about 270 bytes for a put.
    let puts = out.size / 540;
    let voters = [1, 2];
    for node in voters {
        if node > 1 {
            out.file("m2/member/wal/0000000000000000-0000000000000000.wal");
        }
        let log = Segment::by(0, node, 9).snapshot(0).membership(1, 0, 1).membership(2, 0, 2);
        let log = (0..puts).fold(log, |log, n| log.entry(3 + n, 2, &put(&format!("k{}", n % 50), &n.to_be_bytes())));
        out.bytes(&log.commit(2 + puts).bytes);
        let row = |n: u64| {
            let (key, main) = (format!("k{}", n % 50), 2 + n);
            let pair = Message::default().bytes(1, key.as_bytes()).number(2, 2 + n % 50).number(3, main);
            let value = n.to_be_bytes();
            (store_fixture::revision(main, 0, false), pair.number(4, 1 + n / 50).bytes(5, &value).0)
        };
        let meta = [(b"consistent_index".to_vec(), (2 + puts).to_be_bytes().to_vec())].into();
        let buckets = store_fixture::Buckets::from([("key", (0..puts).map(row).collect()), ("meta", meta)]);
        out.file(&format!("m{node}/member/snap/db"));
        out.bytes(&store_fixture::store(&buckets, 100));
    }
}

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
