//! Answers of etcd's gRPC interface, as a robustness report has them.

use super::{key, value};
use crate::ingest::etcd::{Fields, WireError};
use serde_json::{Value, json};

/// The kind of a request, which decides the message type of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Range,
    Put,
    Delete,
    Txn,
    Compact,
    Grant,
    Revoke,
    /// A request that reports do not have.
    Other,
}

/// Header of an answer: revision of the store, and the member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Header {
    pub revision: i64,
    pub member: u64,
}

impl Header {
    pub(super) fn of(message: &[u8]) -> Result<Header, WireError> {
        let mut header = Header::default();
        for field in Fields::of(message) {
            match field? {
                (2, member) => header.member = member.number()?,
                (3, revision) => header.revision = revision.signed()?,
                _ => {}
            }
        }
        Ok(header)
    }
}

/// A key with its value and versions, in etcd's message.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub created: i64,
    pub revision: i64,
    pub version: i64,
}

impl<'a> Pair<'a> {
    pub(super) fn of(message: &'a [u8]) -> Result<Pair<'a>, WireError> {
        let mut pair = Pair::default();
        for field in Fields::of(message) {
            match field? {
                (1, key) => pair.key = key.bytes()?,
                (2, created) => pair.created = created.signed()?,
                (3, revision) => pair.revision = revision.signed()?,
                (4, version) => pair.version = version.signed()?,
                (5, value) => pair.value = value.bytes()?,
                _ => {}
            }
        }
        Ok(pair)
    }

    fn found(&self) -> Value {
        json!({"Key": key(self.key), "Value": value(self.value), "ModRevision": self.revision, "Version": self.version})
    }
}

/// Result of one step of a transaction.
#[derive(Debug, Default)]
struct Found {
    pairs: Vec<Value>,
    count: i64,
    deleted: i64,
}

impl Found {
    fn range(message: &[u8]) -> Result<Found, WireError> {
        let mut found = Found::default();
        for field in Fields::of(message) {
            match field? {
                (2, pair) => found.pairs.push(Pair::of(pair.bytes()?)?.found()),
                (4, count) => found.count = count.signed()?,
                _ => {}
            }
        }
        Ok(found)
    }

    fn delete(message: &[u8]) -> Result<Found, WireError> {
        let mut found = Found::default();
        for field in Fields::of(message) {
            if let (2, deleted) = field? {
                found.deleted = deleted.signed()?;
            }
        }
        Ok(found)
    }

    /// Decodes a `ResponseOp`.
    fn step(message: &[u8]) -> Result<Found, WireError> {
        let mut found = Found::default();
        for field in Fields::of(message) {
            found = match field? {
                (1, range) => Found::range(range.bytes()?)?,
                (3, delete) => Found::delete(delete.bytes()?)?,
                _ => found,
            };
        }
        Ok(found)
    }

    fn value(self) -> Value {
        json!({"KVs": self.pairs, "Count": self.count, "Deleted": self.deleted})
    }
}

/// The answer for the report, and the id of a granted lease.
pub(super) fn output(asked: Asked, message: &[u8]) -> Result<(Value, Option<i64>), WireError> {
    let mut header = Header::default();
    let (mut succeeded, mut steps, mut lease) = (false, Vec::new(), 0);
    for field in Fields::of(message) {
        match (asked, field?) {
            (_, (1, field)) => header = Header::of(field.bytes()?)?,
            (Asked::Txn, (2, flag)) => succeeded = flag.flag()?,
            (Asked::Txn, (3, step)) => steps.push(Found::step(step.bytes()?)?.value()),
            (Asked::Grant, (2, id)) => lease = id.signed()?,
            _ => {}
        }
    }
    let results = |failure: bool, steps: Vec<Value>| json!({"Failure": failure, "Results": steps});
    let mut output = match asked {
        Asked::Range => json!({"Range": Found::range(message)?.value()}),
        Asked::Put => json!({"Txn": results(false, vec![Found::default().value()])}),
        Asked::Delete => json!({"Txn": results(false, vec![Found::delete(message)?.value()])}),
        Asked::Txn => json!({"Txn": results(!succeeded, steps)}),
        Asked::Compact => json!({"Compact": {}}),
        Asked::Grant => json!({"LeaseGrant": {"LeaseID": 0}}),
        Asked::Revoke => json!({"LeaseRevoke": {}}),
        Asked::Other => json!({}),
    };
    output["Revision"] = if asked == Asked::Compact { json!(-1) } else { json!(header.revision) };
    output["member-id"] = json!(if header.member == 0 { String::new() } else { format!("{:x}", header.member) });
    Ok((output, (asked == Asked::Grant).then_some(lease)))
}
