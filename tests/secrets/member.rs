//! Files of an etcd member with secret values.

#[allow(dead_code)]
#[path = "../../src/ingest/etcd/fixture.rs"]
mod fixture;
#[path = "../../src/ingest/etcd/store_fixture.rs"]
mod store_fixture;

/// The checksum of bbolt's meta pages, which the fixture needs.
mod bbolt {
    pub fn fnv(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
    }
}

use fixture::{Message, Segment, put};
use std::collections::BTreeMap;
use store_fixture::{Buckets, revision, store};

/// A write-ahead log of two puts and an entry that cannot be decoded, with the secret in it.
pub fn log(secret: &[u8]) -> Vec<u8> {
    let broken = Message([&[0xff, 0xff, 0x07][..], secret].concat());
    let user = Message::default().message(1100, Message::default().bytes(1, b"eve").bytes(2, secret));
    Segment::after(0)
        .snapshot(0)
        .entry(1, 2, &put("/registry/secrets/d/s", secret))
        .entry(2, 2, &put("k", &[secret, secret].concat()))
        .entry(3, 2, &user)
        .entry(4, 2, &broken)
        .commit(4)
        .bytes
}

/// A store of two versions of one key.
pub fn database(secret: &[u8]) -> Vec<u8> {
    let pair = |at: u64, value: &[u8]| {
        let pair = Message::default().bytes(1, b"k").number(2, 2).number(3, at).number(4, at - 1).bytes(5, value);
        (revision(at, 0, false), pair.0)
    };
    let keys = BTreeMap::from([pair(2, secret), pair(3, &[secret, b"\xff"].concat())]);
    let meta = BTreeMap::from([(b"consistent_index".to_vec(), 2u64.to_be_bytes().to_vec())]);
    store(&Buckets::from([("key", keys), ("meta", meta)]), 4)
}
