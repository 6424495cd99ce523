//! Histories of transactions: what each session asked and was answered. Lists are appended to and read as a whole; registers are
//! written and read.

use std::ops::Range;

/// A key, as a small number.
pub type Key = u32;

/// A written value or element. The caller chooses the numbers; equal values of one key have one number.
pub type Value = u32;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was committed.
    Committed,
    /// It was aborted: nothing of it took effect.
    Aborted,
    /// Nobody knows. It was committed if another transaction saw its writes.
    Unknown,
}

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Writes a register.
    Write(Key, Value),
    /// Reads a register; `None`: it had no value yet.
    Read(Key, Option<Value>),
    /// Appends an element to a list.
    Append(Key, Value),
    /// Reads a list.
    List(Key, Vec<Value>),
}

impl Step {
    /// The key.
    pub fn key(&self) -> Key {
        match self {
            Step::Write(key, _) | Step::Read(key, _) | Step::Append(key, _) | Step::List(key, _) => *key,
        }
    }
}

/// One transaction.
#[derive(Clone, Copy, Debug)]
struct Transaction {
    session: u32,
    begin: i64,
    end: i64,
    outcome: Outcome,
    first: u32,
}

/// A history of transactions, in the order of each session.
#[derive(Clone, Debug, Default)]
pub struct Transactions {
    transactions: Vec<Transaction>,
    steps: Vec<Step>,
    sessions: u32,
    keys: u32,
    is_timeless: bool,
}

impl Transactions {
    /// Adds the next transaction of a session, with the times at which it began and ended on one clock; `i64::MAX` if its end is
    /// not known. Without a time, the levels of real time are not decided. Returns its number.
    pub fn push(
        &mut self,
        session: u32,
        times: Option<(i64, i64)>,
        outcome: Outcome,
        steps: impl IntoIterator<Item = Step>,
    ) -> u32 {
        let (begin, end) = times.unwrap_or((0, i64::MAX));
        self.is_timeless |= times.is_none();
        let first = self.steps.len() as u32;
        self.steps.extend(steps);
        self.keys = self.steps[first as usize..].iter().map(|step| step.key() + 1).fold(self.keys, u32::max);
        self.sessions = self.sessions.max(session + 1);
        self.transactions.push(Transaction { session, begin, end, outcome, first });
        self.transactions.len() as u32 - 1
    }

    /// The number of transactions.
    pub fn len(&self) -> u32 {
        self.transactions.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.transactions.is_empty()
    }

    /// Whether a transaction has no times.
    pub fn is_timeless(&self) -> bool {
        self.is_timeless
    }

    /// The number of sessions.
    pub fn sessions(&self) -> u32 {
        self.sessions
    }

    /// The number of keys.
    pub fn keys(&self) -> u32 {
        self.keys
    }

    /// The session of a transaction.
    pub fn session(&self, transaction: u32) -> u32 {
        self.transactions[transaction as usize].session
    }

    /// The times of a transaction.
    pub fn times(&self, transaction: u32) -> (i64, i64) {
        let Transaction { begin, end, .. } = self.transactions[transaction as usize];
        (begin, end)
    }

    /// How a transaction ended.
    pub fn outcome(&self, transaction: u32) -> Outcome {
        self.transactions[transaction as usize].outcome
    }

    /// The steps of a transaction.
    pub fn steps(&self, transaction: u32) -> &[Step] {
        &self.steps[self.range(transaction)]
    }

    fn range(&self, transaction: u32) -> Range<usize> {
        let at = transaction as usize;
        let end = self.transactions.get(at + 1).map_or(self.steps.len(), |next| next.first as usize);
        self.transactions[at].first as usize..end
    }
}
