//! What was asked of etcd, by clients and in its log, and what clients were told.

use super::outcome::Outcome;
use super::value::ValueId;
use crate::history::Symbol;
use crate::ingest::{Position, Time};
use serde::{Deserialize, Serialize};

/// Neighbours in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The first one.
    pub start: u32,
    /// How many.
    pub len: u32,
}

impl Span {
    /// Those of a table.
    pub fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.start as usize..(self.start + self.len) as usize]
    }

    /// What was added to a table since it had a length.
    pub(super) fn since<T>(start: usize, table: &[T]) -> Span {
        Span { start: start as u32, len: (table.len() - start) as u32 }
    }

    /// The same neighbours where they come behind so many others.
    pub(super) fn moved(self, base: u32) -> Span {
        Span { start: self.start + base, len: self.len }
    }
}

/// A key, or the keys from it to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// First key.
    pub key: Symbol,
    /// One behind the last key; none: only `key`; a zero byte: no end.
    pub end: Symbol,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// A read.
    Range(Range),
    /// A transaction: puts and deletes of one step too.
    Txn(Txn),
    /// A lease asked for.
    LeaseGrant {
        /// Its number, which the answer told; 0 where there was none.
        lease: i64,
        /// Seconds; 0: not recorded.
        ttl: i64,
    },
    /// A lease ended.
    LeaseRevoke {
        /// Its number.
        lease: i64,
    },
    /// A compaction.
    Compact {
        /// Through this revision.
        revision: i64,
    },
    /// A defragmentation.
    Defragment,
    /// Something in a log that leaves the keys alone, or something that a client asked and no format tells: it may change keys.
    Other,
}

/// A read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    /// What is read.
    pub keys: Interval,
    /// At most so many; 0: all, or not recorded.
    pub limit: i64,
    /// The revision that is read; 0: the latest, or not recorded.
    pub revision: i64,
    /// Whether values were left out.
    pub keys_only: bool,
    /// Whether only the number of keys was asked for.
    pub count_only: bool,
    /// Whether the member's own state was enough, however old.
    pub serializable: bool,
    /// Whether keys may come in another order than their own: it was asked for, or may have been.
    pub sorted: bool,
}

/// A transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Txn {
    /// Conditions, in [`Requests::conditions`].
    pub conditions: Span,
    /// What is done where all are true, in [`Requests::steps`].
    pub success: Span,
    /// What is done otherwise.
    pub failure: Span,
}

/// A condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Condition {
    /// The keys that it is about.
    pub keys: Interval,
    /// What is compared.
    pub target: Target,
    /// How.
    pub relation: Relation,
    /// The number it is compared with.
    pub number: i64,
    /// The value it is compared with.
    pub value: ValueId,
}

/// What a condition compares.
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
    /// Something newer.
    Unknown,
}

/// How a condition compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Relation {
    /// Equal.
    Equal,
    /// Greater than what the request names.
    Greater,
    /// Less than that.
    Less,
    /// Not equal.
    NotEqual,
    /// Something newer.
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
        /// Lease, or 0. Reports of clients lose it in transactions.
        lease: i64,
        /// Whether the key keeps the value that it has.
        keeps_value: bool,
        /// Whether the key keeps the lease that it has.
        keeps_lease: bool,
    },
    /// A delete.
    Delete(Interval),
    /// A transaction in the transaction.
    Txn(Txn),
    /// Nothing, or something newer.
    Nothing,
}

/// The parts of requests.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Steps.
    pub steps: Vec<Step>,
}

impl Requests {
    /// Whether two requests ask for the same.
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
    /// Where it stands.
    pub position: Position,
    /// Its client, an index of [`super::Recording::clients`].
    pub client: u32,
    /// The lane that the suite put it in.
    pub stream: i64,
    /// When it was sent.
    pub call: Time,
    /// When the answer arrived; unknown where there was none.
    pub returned: Time,
    /// What was asked.
    pub request: Request,
    /// How it ended.
    pub outcome: Outcome,
    /// Revision of the store when it answered; 0: the answer has none.
    pub revision: i64,
    /// The member that answered; 0: not recorded.
    pub member: u64,
    /// Whether a condition of the transaction was false.
    pub failure: bool,
    /// One result a step, or that of the read.
    pub results: Span,
    /// The error's text.
    pub error: Symbol,
    /// Whether only its beginning was recorded.
    pub begun: bool,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// What was found, in [`super::Recording::pairs`].
    pub pairs: Span,
    /// How many keys there are, beyond the limit too.
    pub count: i64,
    /// How many keys were removed.
    pub deleted: i64,
}

/// A key as a read found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Key.
    pub key: Symbol,
    /// Value; the empty one where only keys were asked for.
    pub value: ValueId,
    /// Revision of its last change.
    pub revision: i64,
    /// Number of changes in this life; 0: not recorded.
    pub version: i64,
}
