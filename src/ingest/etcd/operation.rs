//! `client-N/operations.json` of a robustness report: the requests of one client and their answers.
//!
//! Objects one after the other, indented since May 2025 and one a line before. The writer's embedded structs are
//! flat, and its unions are objects with one member that is not `null`. Fields of newer versions are absent in older
//! files.
//!
//! Sources: etcd `tests/robustness/model/{types,history}.go`, porcupine `model.go`.

use super::super::limits::UNLIMITED;
use crate::ingest::json::reader::Plain;
use crate::ingest::json::text::Text;
use memchr::memmem;
use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// One operation of a client.
#[derive(Clone, Debug, Default)]
pub struct Operation<'a> {
    /// Porcupine's client id. A client gets a new one after each write with an unknown outcome.
    pub stream: i64,
    /// The request.
    pub request: Request<'a>,
    /// Time of the request, in nanoseconds since the suite began.
    pub call: i64,
    /// The answer.
    pub answer: Answer<'a>,
    /// Time of the answer, in nanoseconds since the suite began. Old versions invented it for failed operations.
    pub returned: i64,
    /// Whether the object is only the beginning of an operation. Recorders that may be killed write an operation when
    /// it is sent, and again after the answer with the same `ClientId` and `Call`. The suite writes it once.
    pub begun: bool,
}

type Read<'a> = (Box<Operation<'a>>, Option<usize>);

/// Reads the operation at the start of the text. Also returns the offset of the next one, if more follows.
///
/// `Metadata`, a copy of `Output` that newer versions append, is half of a file. In indented text it is skipped,
/// since the end of the object is visible without parsing.
pub(in super::super) fn read(text: &str) -> Result<Read<'_>, serde_json::Error> {
    plainly(text).map_or_else(|| thoroughly(text), Ok)
}

/// As [`thoroughly`], for text that is exactly one operation as programs write it.
fn plainly(text: &str) -> Option<Read<'_>> {
    let mut found = Fields::default();
    let mut plain = Plain::new(text);
    let result = plain.deserialize_map(Reader { found: &mut found, text });
    (found.stopped || result.is_ok() && plain.is_at_end()).then(|| (found.operation(), None))
}

fn thoroughly(text: &str) -> Result<Read<'_>, serde_json::Error> {
    let mut found = Fields::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let result = deserializer.deserialize_map(Reader { found: &mut found, text });
    if found.stopped {
        return Ok((found.operation(), None));
    }
    result?;
    Ok((found.operation(), deserializer.end().err().map(|error| super::byte(text, &error))))
}

/// Whether an indented object ends with the text: behind `inside`, the first line that begins with `}` ends the text.
fn ends_with_its_object(text: &str, inside: &str) -> bool {
    let rest = inside.as_ptr().addr().checked_sub(text.as_ptr().addr()).and_then(|at| text.as_bytes().get(at..));
    let end = rest.and_then(|rest| Some((rest.len(), memmem::find(rest, b"\n}")?)));
    text.starts_with("{\n") && end.is_some_and(|(length, at)| at + 2 == length)
}

#[derive(Default)]
struct Fields<'a> {
    /// In a box, since it is large and would be copied.
    operation: Box<Operation<'a>>,
    /// Bits of the fields read so far.
    met: u8,
    /// Whether reading stopped in front of `Metadata`.
    stopped: bool,
}

impl<'a> Fields<'a> {
    fn operation(mut self) -> Box<Operation<'a>> {
        self.operation.begun = self.met & (1 << OUTPUT) == 0;
        self.operation
    }
}

struct Reader<'f, 'a> {
    found: &'f mut Fields<'a>,
    text: &'a str,
}

const FIELDS: [&str; 5] = ["ClientId", "Input", "Call", "Output", "Return"];

/// Index of `Output` in [`FIELDS`].
const OUTPUT: usize = 3;

impl<'a> Visitor<'a> for Reader<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation")
    }

    fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<(), M::Error> {
        let Fields { operation, met, stopped } = self.found;
        while let Some(key) = map.next_key::<Text<'a, UNLIMITED>>()? {
            let field = match &*key {
                "ClientId" | "ClientID" => 0,
                "Input" => 1,
                "Call" => 2,
                "Output" => OUTPUT,
                "Return" => 4,
                "Metadata" if *met == (1 << FIELDS.len()) - 1 && ends_with_its_object(self.text, &key) => {
                    *stopped = true;
                    return Err(de::Error::custom("a copy"));
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if *met & (1 << field) != 0 {
                return Err(de::Error::duplicate_field(FIELDS[field]));
            }
            *met |= 1 << field;
            match field {
                0 => operation.stream = map.next_value()?,
                1 => operation.request = map.next_value()?,
                2 => operation.call = map.next_value()?,
                OUTPUT => operation.answer = map.next_value()?,
                _ => operation.returned = map.next_value()?,
            }
        }
        Ok(())
    }
}

/// A request; `kind` names the member that counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Request<'a> {
    /// `range`, `txn`, `leaseGrant`, `leaseRevoke`, `defragment` or `compact`; other recorders also write `other`.
    #[serde(rename = "Type", borrow)]
    pub kind: Text<'a>,
    /// A read.
    #[serde(rename = "Range", borrow)]
    pub range: Option<Range<'a>>,
    /// A transaction; plain puts and deletes are transactions of one step.
    #[serde(rename = "Txn", borrow)]
    pub txn: Option<Txn<'a>>,
    /// A request for a lease. The answer has its id.
    #[serde(rename = "LeaseGrant")]
    pub lease_grant: Option<Lease>,
    /// The revocation of a lease.
    #[serde(rename = "LeaseRevoke")]
    pub lease_revoke: Option<Lease>,
    /// A compaction.
    #[serde(rename = "Compact")]
    pub compact: Option<Compact>,
}

/// A read of a key or of a range of keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Range<'a> {
    /// First key.
    #[serde(rename = "Start", borrow)]
    pub start: Text<'a>,
    /// One past the last key; empty: only `start`.
    #[serde(rename = "End", borrow)]
    pub end: Text<'a>,
    /// Highest number of keys; 0: all.
    #[serde(rename = "Limit")]
    pub limit: i64,
    /// Whether values are omitted.
    #[serde(rename = "KeysOnly")]
    pub keys_only: bool,
    /// Revision to read; 0: the latest.
    #[serde(rename = "Revision")]
    pub revision: i64,
    /// Whether only the number of keys is read. The suite does not write it, other recorders do.
    #[serde(rename = "CountOnly")]
    pub count_only: Option<bool>,
    /// Whether the keys are read in another order than that of keys. Only other recorders than the suite write it.
    #[serde(rename = "Sorted")]
    pub sorted: Option<bool>,
    /// Whether the read is serializable, so a member answers from its own state. Only other recorders than the suite
    /// write it.
    #[serde(rename = "Serializable")]
    pub serializable: bool,
}

/// A transaction.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Txn<'a> {
    /// Conditions, all of which must hold.
    #[serde(rename = "Conditions", borrow)]
    pub conditions: Option<Vec<Condition<'a>>>,
    /// Steps if all conditions hold.
    #[serde(rename = "OperationsOnSuccess", borrow)]
    pub success: Option<Vec<Step<'a>>>,
    /// Steps otherwise.
    #[serde(rename = "OperationsOnFailure", borrow)]
    pub failure: Option<Vec<Step<'a>>>,
}

/// A condition: on the version if `version` is set, else on the mod revision. Other recorders name a target.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Condition<'a> {
    /// Key.
    #[serde(rename = "Key", borrow)]
    pub key: Text<'a>,
    /// Expected mod revision; 0: absent.
    #[serde(rename = "ExpectedRevision")]
    pub revision: i64,
    /// Expected version; 0: not compared.
    #[serde(rename = "ExpectedVersion")]
    pub version: i64,
    /// One past the last key; empty: only `key`.
    #[serde(rename = "End", borrow)]
    pub end: Text<'a>,
    /// `version`, `create`, `mod`, `value` or `lease`; empty: see [`Condition::version`] and [`Condition::revision`].
    #[serde(rename = "Target", borrow)]
    pub target: Text<'a>,
    /// `=`, `>`, `<` or `!=`, if there is a target.
    #[serde(rename = "Relation", borrow)]
    pub relation: Text<'a>,
    /// Operand for a target that is a number.
    #[serde(rename = "Number")]
    pub number: i64,
    /// Operand for the target `value`.
    #[serde(rename = "Value", borrow)]
    pub value: Value<'a>,
}

/// A step of a transaction; `kind` names the member that counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Step<'a> {
    /// `range-operation`, `put-operation` or `delete-operation`.
    #[serde(rename = "Type", borrow)]
    pub kind: Text<'a>,
    /// A read.
    #[serde(rename = "Range", borrow)]
    pub range: Range<'a>,
    /// A put.
    #[serde(rename = "Put", borrow)]
    pub put: Put<'a>,
    /// A delete.
    #[serde(rename = "Delete", borrow)]
    pub delete: Delete<'a>,
}

/// A put.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Put<'a> {
    /// Key.
    #[serde(rename = "Key", borrow)]
    pub key: Text<'a>,
    /// Value.
    #[serde(rename = "Value", borrow)]
    pub value: Value<'a>,
    /// Lease, or 0.
    #[serde(rename = "LeaseID")]
    pub lease: i64,
}

/// A delete of one key; other recorders also write ranges.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Delete<'a> {
    /// Key.
    #[serde(rename = "Key", borrow)]
    pub key: Text<'a>,
    /// One past the last key; empty: only `key`.
    #[serde(rename = "End", borrow)]
    pub end: Text<'a>,
}

/// A value of fewer than 20 bytes, or the FNV-1a hash of a longer one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Value<'a> {
    /// The value, if it is short.
    #[serde(rename = "Value", borrow)]
    pub text: Text<'a, UNLIMITED>,
    /// The hash of a longer value.
    #[serde(rename = "Hash")]
    pub hash: u32,
}

/// A lease in a request.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// Lease id.
    #[serde(rename = "LeaseID")]
    pub id: i64,
}

/// A compaction.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Compact {
    /// Revision through which the store is compacted.
    #[serde(rename = "Revision")]
    pub revision: i64,
}

/// An answer. If the operation failed, only `error` counts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Answer<'a> {
    /// Result of a transaction.
    #[serde(rename = "Txn", borrow)]
    pub txn: Option<TxnAnswer<'a>>,
    /// Result of a read.
    #[serde(rename = "Range", borrow)]
    pub range: Option<Found<'a>>,
    /// An error in the server's answer: the revision is compacted, or in the future.
    #[serde(rename = "ClientError", borrow)]
    pub client_error: Text<'a, UNLIMITED>,
    /// Revision of the store at the answer; -1 if the answer has none.
    #[serde(rename = "Revision")]
    pub revision: i64,
    /// Id of the member that answered, in hexadecimal.
    #[serde(rename = "member-id", borrow)]
    pub member: Text<'a>,
    /// The same as a number, which the suite wrote for two months at the end of 2025.
    #[serde(rename = "MemberID")]
    pub member_number: u64,
    /// Error of a failed operation.
    #[serde(rename = "Error", borrow)]
    pub error: Text<'a, UNLIMITED>,
}

/// Result of a transaction.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TxnAnswer<'a> {
    /// Whether a condition was false.
    #[serde(rename = "Failure")]
    pub failure: bool,
    /// One result for each step.
    #[serde(rename = "Results", borrow)]
    pub results: Option<Vec<Found<'a>>>,
}

/// Result of a read, or the number of keys that a delete removed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Found<'a> {
    /// Keys with their values.
    #[serde(rename = "KVs", borrow)]
    pub pairs: Option<Vec<Pair<'a>>>,
    /// Number of keys in the range, those beyond the limit included.
    #[serde(rename = "Count")]
    pub count: i64,
    /// Number of keys that a delete removed.
    #[serde(rename = "Deleted")]
    pub deleted: i64,
}

/// A key in the result of a read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pair<'a> {
    /// Key.
    #[serde(rename = "Key", borrow)]
    pub key: Text<'a>,
    /// Value.
    #[serde(rename = "Value", borrow)]
    pub value: Value<'a>,
    /// Revision of its last change.
    #[serde(rename = "ModRevision")]
    pub revision: i64,
    /// Number of changes since the key was created; 0: not recorded.
    #[serde(rename = "Version")]
    pub version: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the fast reader accepts the text. Both readers must return the same.
    fn agree(text: &str) -> bool {
        let shown = |read: Read<'_>| format!("{read:?}");
        let Some(read) = plainly(text) else { return false };
        assert_eq!(Some(shown(read)), thoroughly(text).ok().map(shown), "{text}");
        true
    }

    const LISTED: &str = r#"{"ClientId":8,"Input":{"Type":"range","Range":{"Start":"a","End":"b","Limit":0,"KeysOnly":false,"Revision":0}},"Call":5,"Output":{"Range":{"KVs":[{"Key":"a","Value":{"Value":"1"},"ModRevision":2,"Version":1}],"Count":1},"Revision":2,"Error":""},"Return":17}"#;
    const PUT: &str = r#"{"ClientId":0,"Input":{"Type":"txn","Txn":{"Conditions":null,"OperationsOnSuccess":[{"Type":"put-operation","Put":{"Key":"a","Value":{"Value":"x"},"LeaseID":0}}],"OperationsOnFailure":null}},"Call":-5,"Output":{"Txn":{"Failure":false,"Results":[{"KVs":null,"Count":0,"Deleted":0}]},"Revision":3},"Return":17}"#;

    fn indented(text: &str) -> String {
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(text).unwrap()).unwrap()
    }

    #[test]
    fn both_ways_of_reading_agree_whatever_is_changed() {
        let metadata = LISTED.replace(r#","Return":17}"#, r#","Return":17,"Metadata":{"Call":[1]}}"#);
        for text in [LISTED, PUT, &metadata, &indented(LISTED), &indented(PUT), &indented(&metadata)] {
            assert!(agree(text), "{text}");
            for at in 0..text.len() {
                let (before, after) = (&text[..at], &text[at + 1..]);
                agree(before);
                agree(&format!("{before}{after}"));
                for other in
                    ["{", "}", "\"", ",", ":", "0", "-", "1e", " ", "\u{85}", "null", "\n", "\\", "\"Call\":1,"]
                {
                    agree(&format!("{before}{other}{after}"));
                    agree(&format!("{before}{other}{}", &text[at..]));
                }
            }
        }
    }

    #[test]
    fn a_copy_is_not_read_where_its_end_is_seen() {
        let text =
            LISTED.replace("{\"ClientId\"", "{\n  \"ClientId\"").replace("17}", "17,\n  \"Metadata\": {no JSON}\n}");
        assert!(agree(&text), "{text}");
        assert!(read(&text.replace("{\n ", "{ ")).is_err());
        assert!(!agree(&format!("{PUT}{LISTED}")));
        assert_eq!(read(&format!("{PUT} {LISTED}")).unwrap().1, Some(PUT.len() + 1));
    }
}
