//! The store of an etcd member at the time it stopped: `member/snap/db`.
//!
//! Input: a bbolt file. Output: its revisions, compactions, leases and consistent index. A value that does not decode
//! is a fault, never a missing revision.
//!
//! Sources: etcd `server/storage/schema/{bucket,cindex,meta,lease}.go`, `server/storage/mvcc/revision.go`,
//! `api/mvccpb/kv.proto`, `server/lease/leasepb/lease.proto`.

use super::super::problem::{Fault, Found};
use super::HIGHEST_REVISION;
use super::bbolt::Store;
use super::protobuf::{Fields, WireError};
use crate::ingest::input::content::Opened;

/// One fact of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A revision of a key.
    Revision(Revision<'a>),
    /// Index of the last log entry that the store contains.
    ConsistentIndex(u64),
    /// Term of that log entry.
    Term(u64),
    /// A compaction through this revision began.
    CompactionBegun(i64),
    /// A compaction through this revision completed.
    CompactionDone(i64),
    /// A lease that has not ended.
    Lease {
        /// Its number.
        id: i64,
        /// Time to live in seconds.
        ttl: i64,
    },
}

/// A change of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Revision<'a> {
    /// Main revision: the number of the transaction.
    pub main: i64,
    /// Number of the change within the transaction, from 0.
    pub sub: i64,
    /// Whether the key was deleted.
    pub tombstone: bool,
    /// Key.
    pub key: &'a [u8],
    /// Value.
    pub value: &'a [u8],
    /// Revision at which the key was created.
    pub create_revision: i64,
    /// Revision of this change, from the value.
    pub mod_revision: i64,
    /// Number of changes since the key was created.
    pub version: i64,
    /// Lease, or 0.
    pub lease: i64,
}

/// Reads the store. `take` gets each part with its number, from 1, and the offset of its page.
pub(in super::super) fn read(
    content: &mut Opened<'_>,
    mut take: impl FnMut(u32, u64, Part<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut store = Store::open(content)?;
    let mut number = 0u32;
    let mut take = |offset: u64, part: Part<'_>| {
        number = number.saturating_add(1);
        take(number, offset, part)
    };
    for (name, bucket) in store.buckets()? {
        match &name[..] {
            b"key" => store.each(&bucket, |offset, key, value| take(offset, Part::Revision(revision(key, value)?)))?,
            b"meta" => store.each(&bucket, |offset, key, value| match meta(key, value)? {
                Some(part) => take(offset, part),
                None => Ok(()),
            })?,
            b"lease" => store.each(&bucket, |offset, _, value| {
                let (id, ttl) = lease(value).map_err(|error| damaged(&error.to_string()))?;
                take(offset, Part::Lease { id, ttl })
            })?,
            _ => {}
        }
    }
    Ok(())
}

/// Decodes a revision key: eight bytes, `_`, eight bytes, and `t` for a tombstone. Numbers are big-endian.
fn revision<'a>(key: &[u8], value: &'a [u8]) -> Result<Revision<'a>, Fault> {
    let (main, sub, mark) = position(key).ok_or_else(|| damaged("a key of the bucket `key` that is no revision"))?;
    let tombstone = match mark {
        [] => false,
        b"t" => true,
        _ => return Err(damaged("a revision key with an unknown mark")),
    };
    let mut found = Revision { main, sub, tombstone, ..Revision::default() };
    decode(value, &mut found).map_err(|error| damaged(&error.to_string()))?;
    Ok(found)
}

fn position(key: &[u8]) -> Option<(i64, i64, &[u8])> {
    let (main, rest) = key.split_first_chunk()?;
    let (sub, mark) = rest.strip_prefix(b"_")?.split_first_chunk()?;
    let number = |bytes: &[u8; 8]| i64::try_from(u64::from_be_bytes(*bytes)).ok();
    Some((number(main).filter(|main| *main <= HIGHEST_REVISION)?, number(sub)?, mark))
}

fn decode<'a>(message: &'a [u8], found: &mut Revision<'a>) -> Result<(), WireError> {
    for field in Fields::of(message) {
        match field? {
            (1, key) => found.key = key.bytes()?,
            (2, revision) => found.create_revision = revision.signed()?,
            (3, revision) => found.mod_revision = revision.signed()?,
            (4, version) => found.version = version.signed()?,
            (5, value) => found.value = value.bytes()?,
            (6, lease) => found.lease = lease.signed()?,
            _ => {}
        }
    }
    Ok(())
}

fn meta<'a>(key: &[u8], value: &[u8]) -> Result<Option<Part<'a>>, Fault> {
    let word = || {
        value
            .first_chunk()
            .map(|bytes| u64::from_be_bytes(*bytes))
            .ok_or_else(|| damaged("a number of fewer than eight bytes"))
    };
    let main = || position(value).map(|(main, ..)| main).ok_or_else(|| damaged("a compaction without a revision"));
    Ok(Some(match key {
        b"consistent_index" => Part::ConsistentIndex(word()?),
        b"term" => Part::Term(word()?),
        b"scheduledCompactRev" => Part::CompactionBegun(main()?),
        b"finishedCompactRev" => Part::CompactionDone(main()?),
        _ => return Ok(None),
    }))
}

fn lease(message: &[u8]) -> Result<(i64, i64), WireError> {
    let (mut id, mut ttl) = (0, 0);
    for field in Fields::of(message) {
        match field? {
            (1, number) => id = number.signed()?,
            (2, number) => ttl = number.signed()?,
            _ => {}
        }
    }
    Ok((id, ttl))
}

fn damaged(what: &str) -> Fault {
    Fault::new("the store of an etcd member", Found::described(what))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Message;
    use super::super::store_fixture::{Buckets, revision as key_of, store};
    use super::*;
    use crate::ingest::input::content::Content;

    fn facts(buckets: &Buckets) -> (Vec<String>, Option<Fault>) {
        let content = Content::Shared(store(buckets, 2).into());
        let mut found = Vec::new();
        let fault = read(&mut content.open().unwrap(), |number, _, part| {
            found.push(format!("{number} {part:?}"));
            Ok(())
        });
        (found, fault.err())
    }

    fn revision(key: &str, create: u64, version: u64) -> Vec<u8> {
        let message = Message::default().bytes(1, key.as_bytes()).number(2, create).number(3, 9).number(4, version);
        message.bytes(5, b"v").number(6, 77).0
    }

    #[test]
    fn revisions_leases_and_marks_are_facts() {
        let tombstone = Message::default().bytes(1, b"a").0;
        let buckets = Buckets::from([
            ("key", [(key_of(9, 1, false), revision("a", 4, 2)), (key_of(10, 0, true), tombstone)].into()),
            (
                "meta",
                [
                    (b"consistent_index".to_vec(), 12u64.to_be_bytes().to_vec()),
                    (b"term".to_vec(), 3u64.to_be_bytes().to_vec()),
                    (b"scheduledCompactRev".to_vec(), key_of(8, 0, false)),
                    (b"finishedCompactRev".to_vec(), key_of(7, 0, false)),
                    (b"something_else".to_vec(), vec![1]),
                ]
                .into(),
            ),
            ("lease", [(vec![7], Message::default().number(1, 77).number(2, 60).0)].into()),
            ("members", [(vec![7], vec![1])].into()),
        ]);
        let (found, fault) = facts(&buckets);
        assert_eq!(fault, None);
        let first = Revision {
            main: 9,
            sub: 1,
            tombstone: false,
            key: b"a",
            value: b"v",
            create_revision: 4,
            mod_revision: 9,
            version: 2,
            lease: 77,
        };
        let second = Revision { main: 10, tombstone: true, key: b"a", ..Revision::default() };
        let parts = [
            Part::Revision(first),
            Part::Revision(second),
            Part::Lease { id: 77, ttl: 60 },
            Part::ConsistentIndex(12),
            Part::CompactionDone(7),
            Part::CompactionBegun(8),
            Part::Term(3),
        ];
        let expected: Vec<String> = (1..).zip(parts).map(|(number, part)| format!("{number} {part:?}")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_etcd_would_not_write_is_a_fault() {
        let key = |key: Vec<u8>, value: Vec<u8>| facts(&Buckets::from([("key", [(key, value)].into())])).1;
        assert_eq!(key(key_of(9, 0, false), revision("a", 4, 2)), None);
        for (name, value, found) in [
            (b"consistent_index".to_vec(), revision("a", 4, 2), "that is no revision"),
            ([key_of(9, 0, false), b"x".to_vec()].concat(), revision("a", 4, 2), "unknown mark"),
            (key_of(u64::MAX, 0, false), revision("a", 4, 2), "that is no revision"),
            (key_of(9, 0, false), vec![0x0a, 9], "ends inside a field"),
        ] {
            let fault = key(name, value).unwrap();
            assert!(fault.found.contains(found), "{fault:?} instead of {found}");
        }
        let short = facts(&Buckets::from([("meta", [(b"term".to_vec(), vec![1])].into())])).1.unwrap();
        assert!(short.found.contains("fewer than eight bytes"), "{short:?}");
    }
}
