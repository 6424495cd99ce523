//! Proposals in etcd's log: `InternalRaftRequest` and the messages in it.
//!
//! Source: etcd `api/etcdserverpb/raft_internal.proto` and `rpc.proto`. Fields without effect on the content of the
//! store (previous values, sort orders) are omitted. An unknown proposal is a [`Request::Restriction`], so that it
//! never passes for one without effect.

use super::super::limits::LONGEST_NAME;
use super::protobuf::{Fields, WireError};

/// Deepest nesting of transactions. Clients nest them once or twice.
const MAX_TXN_DEPTH: u32 = 64;

/// One proposal that raft replicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// A put.
    Put(Put<'a>),
    /// A delete of a key or of a range.
    Delete(Interval<'a>),
    /// A transaction.
    Txn(Txn<'a>),
    /// A new lease.
    LeaseGrant {
        /// Its number.
        id: i64,
        /// Time to live in seconds.
        ttl: i64,
    },
    /// The end of a lease, by a client's request or, after its expiry, by the leader.
    LeaseRevoke {
        /// Its number.
        id: i64,
    },
    /// A compaction.
    Compaction {
        /// Through this revision.
        revision: i64,
    },
    /// Alarms, users and unknown proposals. After them members may refuse requests for reasons that are not in the
    /// log.
    Restriction,
    /// A change of members, which raft applies itself.
    Members(Membership),
    /// A proposal without effect on keys: versions, attributes of members, the old store.
    Other,
}

/// A change of a cluster's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// The member votes from here on.
    Voter(u64),
    /// The member does not vote: it is a learner, or it left.
    Other(u64),
    /// Unknown change.
    Unknown,
}

/// Decodes a change of members: raft's `ConfChange`.
pub(super) fn membership<'a>(data: &[u8]) -> Request<'a> {
    let read = || Ok::<_, WireError>((first_number(data, 2)?, first_number(data, 3)?));
    match read() {
        Ok((0, node)) if node != 0 => Request::Members(Membership::Voter(node)),
        Ok((1 | 3, node)) => Request::Members(Membership::Other(node)),
        // An update changes only the member's address.
        Ok((2, _)) => Request::Other,
        _ => Request::Members(Membership::Unknown),
    }
}

/// A key, or a range of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval<'a> {
    /// First key.
    pub key: &'a [u8],
    /// One past the last key; empty: only `key`; a zero byte: no end.
    pub end: &'a [u8],
}

/// A put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Put<'a> {
    /// Key.
    pub key: &'a [u8],
    /// Value.
    pub value: &'a [u8],
    /// Lease, or 0.
    pub lease: i64,
    /// Whether the key keeps its value.
    pub ignore_value: bool,
    /// Whether the key keeps its lease.
    pub ignore_lease: bool,
}

/// A transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn<'a> {
    /// Conditions, all of which must hold.
    pub compares: Vec<Compare<'a>>,
    /// Steps if all conditions hold.
    pub success: Vec<Step<'a>>,
    /// Steps otherwise.
    pub failure: Vec<Step<'a>>,
}

/// One condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compare<'a> {
    /// The keys of the condition; it must hold for each.
    pub keys: Interval<'a>,
    /// `=`, `>`, `<`, `!=` as 0, 1, 2, 3.
    pub relation: u64,
    /// Version, create revision, mod revision, value, lease as 0 to 4.
    pub target: u64,
    /// Operand for a target that is a number.
    pub number: i64,
    /// Operand for the target value.
    pub value: &'a [u8],
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A read.
    Range(Range<'a>),
    /// A put.
    Put(Put<'a>),
    /// A delete.
    Delete(Interval<'a>),
    /// A transaction.
    Txn(Txn<'a>),
    /// An unknown or empty step. It still has a result.
    Nothing,
}

/// A read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range<'a> {
    /// The keys to read.
    pub keys: Interval<'a>,
    /// Highest number of keys; 0: all.
    pub limit: i64,
    /// Revision to read; 0: the latest.
    pub revision: i64,
    /// Whether the read is serializable, so a member answers from its own state.
    pub serializable: bool,
    /// Whether values are omitted.
    pub keys_only: bool,
    /// Whether only the number of keys is read.
    pub count_only: bool,
    /// Whether revisions, or a limit in another order than that of keys, exclude some of the keys.
    pub selective: bool,
    /// Whether the keys are read in another order than that of keys.
    pub sorted: bool,
}

/// Decodes a proposal.
///
/// Members of 3.4 and before also write proposals of the old store, as another message. Its field 2 is a method's
/// name, which identifies it.
pub fn decode(data: &[u8]) -> Result<Request<'_>, WireError> {
    let mut request = Request::Other;
    for field in Fields::of(data) {
        let (number, field) = field?;
        request = match number {
            2 => return Ok(Request::Other),
            4 => Request::Put(put(field.bytes()?)?),
            5 => Request::Delete(interval(field.bytes()?, 1, 2)?),
            6 => Request::Txn(txn(field.bytes()?, 0)?),
            7 => Request::Compaction { revision: first_number(field.bytes()?, 1)?.cast_signed() },
            8 => lease_grant(field.bytes()?)?,
            9 => Request::LeaseRevoke { id: first_number(field.bytes()?, 1)?.cast_signed() },
            // A raised alarm: a full store refuses puts. Authentication: a user without permission is refused.
            10 if first_number(field.bytes()?, 1)? == 1 => Request::Restriction,
            1000 => Request::Restriction,
            // Header, reads, lease checkpoints, users before authentication is enabled, versions, attributes of
            // members.
            1 | 3 | 10 | 11 | 100 | 1001..=1499 => request,
            _ => Request::Restriction,
        };
    }
    if has_long_name(&request) { Err(WireError::LongName) } else { Ok(request) }
}

/// Whether a key in a request is longer than [`LONGEST_NAME`].
fn has_long_name(request: &Request<'_>) -> bool {
    match request {
        Request::Put(put) => is_long(put.key),
        Request::Delete(keys) => keys.is_long(),
        Request::Txn(txn) => txn.has_long_name(),
        _ => false,
    }
}

fn is_long(key: &[u8]) -> bool {
    key.len() > LONGEST_NAME
}

impl Interval<'_> {
    fn is_long(&self) -> bool {
        is_long(self.key) || is_long(self.end)
    }
}

impl Txn<'_> {
    fn has_long_name(&self) -> bool {
        let steps = self.success.iter().chain(&self.failure);
        self.compares.iter().any(|compare| compare.keys.is_long()) || steps.into_iter().any(Step::has_long_name)
    }
}

impl Step<'_> {
    fn has_long_name(&self) -> bool {
        match self {
            Step::Range(range) => range.keys.is_long(),
            Step::Put(put) => is_long(put.key),
            Step::Delete(keys) => keys.is_long(),
            Step::Txn(txn) => txn.has_long_name(),
            Step::Nothing => false,
        }
    }
}

pub(crate) fn put(message: &[u8]) -> Result<Put<'_>, WireError> {
    let mut put = Put::default();
    for field in Fields::of(message) {
        match field? {
            (1, key) => put.key = key.bytes()?,
            (2, value) => put.value = value.bytes()?,
            (3, lease) => put.lease = lease.signed()?,
            (5, ignored) => put.ignore_value = ignored.flag()?,
            (6, ignored) => put.ignore_lease = ignored.flag()?,
            _ => {}
        }
    }
    Ok(put)
}

/// Decodes keys from the fields `key` and `end` of a message.
pub(crate) fn interval(message: &[u8], key: u64, end: u64) -> Result<Interval<'_>, WireError> {
    let mut interval = Interval::default();
    for field in Fields::of(message) {
        let (number, field) = field?;
        if number == key {
            interval.key = field.bytes()?;
        } else if number == end {
            interval.end = field.bytes()?;
        }
    }
    Ok(interval)
}

/// The number in the field `wanted`, or 0.
pub(crate) fn first_number(message: &[u8], wanted: u64) -> Result<u64, WireError> {
    let mut found = 0;
    for field in Fields::of(message) {
        let (number, field) = field?;
        if number == wanted {
            found = field.number()?;
        }
    }
    Ok(found)
}

fn lease_grant(message: &[u8]) -> Result<Request<'_>, WireError> {
    let (ttl, id) = (first_number(message, 1)?, first_number(message, 2)?);
    Ok(Request::LeaseGrant { id: id.cast_signed(), ttl: ttl.cast_signed() })
}

/// Decodes a `TxnRequest` at a nesting depth.
pub(crate) fn txn(message: &[u8], depth: u32) -> Result<Txn<'_>, WireError> {
    if depth == MAX_TXN_DEPTH {
        return Err(WireError::TooDeep);
    }
    let mut txn = Txn::default();
    for field in Fields::of(message) {
        match field? {
            (1, compared) => txn.compares.push(compare(compared.bytes()?)?),
            (2, done) => txn.success.push(step(done.bytes()?, depth)?),
            (3, done) => txn.failure.push(step(done.bytes()?, depth)?),
            _ => {}
        }
    }
    Ok(txn)
}

fn compare(message: &[u8]) -> Result<Compare<'_>, WireError> {
    let mut compare = Compare { keys: interval(message, 3, 64)?, ..Compare::default() };
    for field in Fields::of(message) {
        match field? {
            (1, relation) => compare.relation = relation.number()?,
            (2, target) => compare.target = target.number()?,
            (4 | 5 | 6 | 8, number) => compare.number = number.signed()?,
            (7, value) => compare.value = value.bytes()?,
            _ => {}
        }
    }
    Ok(compare)
}

fn step(message: &[u8], depth: u32) -> Result<Step<'_>, WireError> {
    let mut found = Step::Nothing;
    for field in Fields::of(message) {
        let (number, field) = field?;
        found = match number {
            1 => Step::Range(range(field.bytes()?)?),
            2 => Step::Put(put(field.bytes()?)?),
            3 => Step::Delete(interval(field.bytes()?, 1, 2)?),
            4 => Step::Txn(txn(field.bytes()?, depth + 1)?),
            _ => found,
        };
    }
    Ok(found)
}

pub(crate) fn range(message: &[u8]) -> Result<Range<'_>, WireError> {
    let mut range = Range { keys: interval(message, 1, 2)?, ..Range::default() };
    let mut sorted = false;
    for field in Fields::of(message) {
        match field? {
            (3, limit) => range.limit = limit.signed()?,
            (4, revision) => range.revision = revision.signed()?,
            (5, order) => sorted = order.number()? != 0,
            (6, target) => range.sorted = target.number()? != 0,
            (7, flag) => range.serializable = flag.flag()?,
            (8, flag) => range.keys_only = flag.flag()?,
            (9, flag) => range.count_only = flag.flag()?,
            (10..=13, bound) => range.selective |= bound.number()? != 0,
            _ => {}
        }
    }
    range.selective |= sorted && range.limit > 0;
    range.sorted |= sorted;
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Message;
    use super::*;

    fn message() -> Message {
        Message::default()
    }

    #[test]
    fn every_kind_that_changes_keys_is_read() {
        let put = message().bytes(1, b"k").bytes(2, b"v").number(3, 5).number(4, 1).number(5, 1).number(6, 1);
        let expected = Put { key: b"k", value: b"v", lease: 5, ignore_value: true, ignore_lease: true };
        assert_eq!(decode(&message().number(1, 9).message(4, put).0), Ok(Request::Put(expected)));
        let delete = message().bytes(1, b"k").bytes(2, b"l");
        assert_eq!(decode(&message().message(5, delete).0), Ok(Request::Delete(Interval { key: b"k", end: b"l" })));
        let grant = message().number(1, 60).number(2, 7);
        assert_eq!(decode(&message().message(8, grant).0), Ok(Request::LeaseGrant { id: 7, ttl: 60 }));
        assert_eq!(decode(&message().message(9, message().number(1, 7)).0), Ok(Request::LeaseRevoke { id: 7 }));
        let compaction = message().number(1, 100).number(2, 1);
        assert_eq!(decode(&message().message(7, compaction).0), Ok(Request::Compaction { revision: 100 }));
        assert_eq!(decode(&message().message(1300, message().bytes(1, b"3.6.0")).0), Ok(Request::Other));
        assert_eq!(decode(&message().message(100, message().number(1, 9)).0), Ok(Request::Other));
        assert_eq!(decode(&[]), Ok(Request::Other));
    }

    #[test]
    fn transactions_are_read_with_those_inside_them() {
        let compare = message().number(1, 1).number(2, 3).bytes(3, b"k").bytes(7, b"v").bytes(64, b"l");
        let range = message().bytes(1, b"a").bytes(2, b"b").number(3, 10).number(4, 4);
        let inner = message().message(2, message().message(2, message().bytes(1, b"x")));
        let txn = message()
            .message(1, compare)
            .message(2, message().message(1, range))
            .message(2, message())
            .message(3, message().message(4, inner));
        let proposal = message().message(6, txn);
        let Ok(Request::Txn(txn)) = decode(&proposal.0) else { panic!("no transaction") };
        let keys = Interval { key: b"k", end: b"l" };
        assert_eq!(txn.compares, [Compare { keys, relation: 1, target: 3, number: 0, value: b"v" }]);
        let keys = Interval { key: b"a", end: b"b" };
        let range = Range { keys, limit: 10, revision: 4, ..Range::default() };
        assert_eq!(txn.success, [Step::Range(range), Step::Nothing]);
        let inner = Txn { success: vec![Step::Put(Put { key: b"x", ..Put::default() })], ..Txn::default() };
        assert_eq!(txn.failure, [Step::Txn(inner)]);
    }

    #[test]
    fn a_key_longer_than_names_are_is_refused_wherever_it_stands() {
        for (length, fits) in [(LONGEST_NAME, true), (LONGEST_NAME + 1, false)] {
            let key = vec![b'k'; length];
            let named = |number| message().bytes(number, &key);
            let txn = |number, part| message().message(6, message().message(number, part));
            for proposal in [
                message().message(4, named(1)),
                message().message(5, named(1)),
                message().message(5, named(2)),
                txn(1, named(3)),
                txn(1, named(64)),
                txn(2, message().message(1, named(2))),
                txn(2, message().message(2, named(1))),
                txn(3, message().message(3, named(1))),
                txn(3, message().message(4, message().message(2, message().message(2, named(1))))),
            ] {
                let read = decode(&proposal.0);
                assert_eq!(read.is_ok(), fits, "{length}");
                assert!(fits || read == Err(WireError::LongName));
            }
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        let mut txn = message();
        for _ in 0..10_000 {
            txn = message().message(2, message().message(4, txn));
        }
        assert_eq!(decode(&message().message(6, txn).0), Err(WireError::TooDeep));
    }

    #[test]
    fn a_proposal_of_the_old_store_is_something_else() {
        let old = message().number(1, 8).bytes(2, b"PUT").bytes(3, b"/0/members").bytes(4, b"{}");
        assert_eq!(decode(&old.0), Ok(Request::Other));
        assert_eq!(decode(&message().number(4, 1).0), Err(WireError::OtherKind));
    }
}
