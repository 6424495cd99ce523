//! Requests to etcd, from clients and from logs, and the answers to clients.

use super::outcome::Outcome;
use super::value::ValueId;
use crate::history::Symbol;
use crate::ingest::{Position, Time};
use serde::{Deserialize, Serialize};

/// A contiguous range of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// Index of the first row.
    pub start: u32,
    /// Number of rows.
    pub len: u32,
}

impl Span {
    /// The rows in the table.
    pub fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.start as usize..(self.start + self.len) as usize]
    }

    /// The rows that were added since the table had the length `start`.
    pub(super) fn since<T>(start: usize, table: &[T]) -> Span {
        Span { start: start as u32, len: (table.len() - start) as u32 }
    }

    /// The same range after its table was appended to one of length `base`.
    pub(super) fn moved(self, base: u32) -> Span {
        Span { start: self.start + base, len: self.len }
    }
}

/// A key, or a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// First key.
    pub key: Symbol,
    /// The key after the last one. None for a single key, a zero byte for no end.
    pub end: Symbol,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// A read.
    Range(Range),
    /// A transaction. Single puts and deletes are transactions of one step.
    Txn(Txn),
    /// A request for a lease.
    LeaseGrant {
        /// The id in the answer; 0 without one.
        lease: i64,
        /// Time to live in seconds; 0: not recorded.
        ttl: i64,
    },
    /// A lease revoked.
    LeaseRevoke {
        /// The id.
        lease: i64,
    },
    /// A compaction.
    Compact {
        /// Through this revision.
        revision: i64,
    },
    /// A defragmentation.
    Defragment,
    /// An entry of a log that leaves keys alone, or a client's request that no format describes. The latter may change keys.
    Other,
}

/// A read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    /// The keys to read.
    pub keys: Interval,
    /// The limit; 0: none, or not recorded.
    pub limit: i64,
    /// The revision to read; 0: the latest, or not recorded.
    pub revision: i64,
    /// Whether values were omitted.
    pub keys_only: bool,
    /// Whether only the number of keys was requested.
    pub count_only: bool,
    /// Whether the member may answer from its own state, however old.
    pub serializable: bool,
    /// Whether keys may be in another order, requested or possibly requested.
    pub sorted: bool,
}

/// A transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Txn {
    /// Conditions, in [`Requests::conditions`].
    pub conditions: Span,
    /// Steps if all conditions hold, in [`Requests::steps`].
    pub success: Span,
    /// Steps otherwise.
    pub failure: Span,
}

impl Txn {
    /// The steps that are taken if the conditions hold, or if they do not.
    pub fn taken(self, success: bool) -> Span {
        if success { self.success } else { self.failure }
    }
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Condition {
    /// The keys it is about.
    pub keys: Interval,
    /// The compared attribute.
    pub target: Target,
    /// The comparison.
    pub relation: Relation,
    /// The number to compare with.
    pub number: i64,
    /// The value to compare with.
    pub value: ValueId,
}

/// The attribute that a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Target {
    /// Number of changes in this life.
    Version,
    /// Revision at which the life began.
    CreateRevision,
    /// Revision of the last change.
    ModRevision,
    /// Value.
    Value,
    /// Lease.
    Lease,
    /// An unknown attribute, from a newer etcd.
    Unknown,
}

/// The comparison of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Relation {
    /// Equal.
    Equal,
    /// Greater than the given number or value.
    Greater,
    /// Less than the given number or value.
    Less,
    /// Not equal.
    NotEqual,
    /// An unknown comparison, from a newer etcd.
    Unknown,
}

/// A step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Step {
    /// A read.
    Range(Range),
    /// A put.
    Put {
        /// Key.
        key: Symbol,
        /// Value.
        value: ValueId,
        /// Lease, or 0. Reports of clients omit it in transactions.
        lease: i64,
        /// Whether the key keeps its present value.
        keeps_value: bool,
        /// Whether the key keeps its present lease.
        keeps_lease: bool,
    },
    /// A delete.
    Delete(Interval),
    /// A nested transaction.
    Txn(Txn),
    /// No step, or an unknown one from a newer etcd.
    Nothing,
}

/// The parts of all requests.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Steps.
    pub steps: Vec<Step>,
}

impl Requests {
    /// Whether two requests are equal.
    pub fn same(&self, a: &Request, b: &Request) -> bool {
        match (a, b) {
            (Request::Txn(a), Request::Txn(b)) => self.same_txn(*a, *b),
            _ => a == b,
        }
    }

    fn same_txn(&self, a: Txn, b: Txn) -> bool {
        a.conditions.of(&self.conditions) == b.conditions.of(&self.conditions)
            && self.same_steps(a.success, b.success)
            && self.same_steps(a.failure, b.failure)
    }

    fn same_steps(&self, a: Span, b: Span) -> bool {
        let (a, b) = (a.of(&self.steps), b.of(&self.steps));
        a.len() == b.len()
            && a.iter().zip(b).all(|(a, b)| match (a, b) {
                (Step::Txn(a), Step::Txn(b)) => self.same_txn(*a, *b),
                _ => a == b,
            })
    }
}

/// An operation of a client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// Position.
    pub position: Position,
    /// The client, an index of [`super::Recording::clients`].
    pub client: u32,
    /// The lane that the suite assigned.
    pub stream: i64,
    /// Time of the request.
    pub call: Time,
    /// Time of the answer; unknown without one.
    pub returned: Time,
    /// The request.
    pub request: Request,
    /// The outcome.
    pub outcome: Outcome,
    /// Revision of the store in the answer; 0: none.
    pub revision: i64,
    /// The member that answered; 0: not recorded.
    pub member: u64,
    /// Whether a condition of the transaction did not hold.
    pub failure: bool,
    /// One result per step, or that of the read.
    pub results: Span,
    /// The error's text.
    pub error: Symbol,
    /// Whether only its beginning was recorded.
    pub begun: bool,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// The keys found, in [`super::Recording::pairs`].
    pub pairs: Span,
    /// Number of keys, including those beyond the limit.
    pub count: i64,
    /// Number of deleted keys.
    pub deleted: i64,
}

/// A key in the result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Key.
    pub key: Symbol,
    /// Value; empty if only keys were requested.
    pub value: ValueId,
    /// Revision of its last change.
    pub revision: i64,
    /// Number of changes in this life; 0: not recorded.
    pub version: i64,
}
