//! What etcd wrote into its log: `InternalRaftRequest` and the messages in it.
//!
//! Source: etcd `api/etcdserverpb/raft_internal.proto` and `rpc.proto`. Fields without meaning for the content of the store
//! (previous values asked for, sort orders) are left out.

use super::super::limits::LONGEST_NAME;
use super::protobuf::{Fields, WireError};

/// Deeper nesting of transactions is refused. Nobody nests them by more than one or two.
const DEEPEST: u32 = 64;

/// One proposal that raft replicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// A put.
    Put(Put<'a>),
    /// A delete of a key or of a range.
    Delete(Interval<'a>),
    /// A transaction.
    Txn(Txn<'a>),
    /// A lease with its time to live in seconds.
    LeaseGrant {
        /// Its number.
        id: i64,
        /// Seconds.
        ttl: i64,
    },
    /// The end of a lease, asked for by a client or, when it expired, by the leader.
    LeaseRevoke {
        /// Its number.
        id: i64,
    },
    /// A compaction.
    Compaction {
        /// Through this revision.
        revision: i64,
    },
    /// Alarms and users, behind which members refuse requests for reasons that the log does not show, and what is of an unknown kind.
    Restriction,
    /// A change of members, which raft applies.
    Members(Membership),
    /// Anything else: versions, attributes of members, and the proposals of the old store.
    Other,
}

/// How a cluster's members changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// A member counts for majorities from here on.
    Voter(u64),
    /// A member does not count: it is a learner, or it left.
    Other(u64),
    /// Members changed in a way that is not known.
    Unknown,
}

/// Reads a change of members: raft's `ConfChange`.
pub(super) fn membership<'a>(data: &[u8]) -> Request<'a> {
    let read = || Ok::<_, WireError>((first_number(data, 2)?, first_number(data, 3)?));
    match read() {
        Ok((0, node)) if node != 0 => Request::Members(Membership::Voter(node)),
        Ok((1 | 3, node)) => Request::Members(Membership::Other(node)),
        // Only the address of a member changes.
        Ok((2, _)) => Request::Other,
        _ => Request::Members(Membership::Unknown),
    }
}

/// A key, or the keys from it to an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval<'a> {
    /// First key.
    pub key: &'a [u8],
    /// One behind the last key; empty: only `key`; a zero byte: no end.
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
    /// Whether the key keeps the value that it has.
    pub ignore_value: bool,
    /// Whether the key keeps the lease that it has.
    pub ignore_lease: bool,
}

/// A transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn<'a> {
    /// Conditions, all of which must be true.
    pub compares: Vec<Compare<'a>>,
    /// What is done then.
    pub success: Vec<Step<'a>>,
    /// What is done otherwise.
    pub failure: Vec<Step<'a>>,
}

/// One condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compare<'a> {
    /// The keys that it is about.
    pub keys: Interval<'a>,
    /// `=`, `>`, `<`, `!=` as 0, 1, 2, 3.
    pub relation: u64,
    /// Version, create revision, mod revision, value, lease as 0 to 4.
    pub target: u64,
    /// The number that it is compared with.
    pub number: i64,
    /// The value that it is compared with.
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
    /// A step of a kind that is not known, or none: it takes its place among the results.
    Nothing,
}

/// A read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range<'a> {
    /// What is read.
    pub keys: Interval<'a>,
    /// At most so many; 0: all.
    pub limit: i64,
    /// The revision that is read; 0: the latest.
    pub revision: i64,
    /// Whether the member's own state is enough.
    pub serializable: bool,
    /// Whether values are left out.
    pub keys_only: bool,
    /// Whether only the number of keys is asked for.
    pub count_only: bool,
    /// Whether some of the keys are left out by their revisions, or by a limit in another order than that of keys.
    pub selective: bool,
    /// Whether keys are asked for in another order than their own.
    pub sorted: bool,
}

/// Decodes a proposal.
///
/// Members of the 3.4 line and before write proposals of the old store beside the new ones, as another message: it shows by
/// its field 2, which holds a method's name and would be a message.
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
            // An alarm that is raised: a store that is full refuses puts. Users: who may not write is refused.
            10 if first_number(field.bytes()?, 1)? == 1 => Request::Restriction,
            1000 => Request::Restriction,
            // The header, reads, checkpoints of leases, users of whom nobody asks yet, versions, attributes of members.
            1 | 3 | 10 | 11 | 100 | 1001..=1499 => request,
            _ => Request::Restriction,
        };
    }
    if has_long_name(&request) { Err(WireError::LongName) } else { Ok(request) }
}

/// Whether a key in a request is longer than names are.
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

/// Reads a `PutRequest`.
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

/// Reads the keys of a message, by the numbers of the fields that name them.
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

/// The number in a field, or 0.
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

/// Reads a `TxnRequest` inside so many others.
pub(crate) fn txn(message: &[u8], depth: u32) -> Result<Txn<'_>, WireError> {
    if depth == DEEPEST {
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

/// Reads a `RangeRequest`.
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
