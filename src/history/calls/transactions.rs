//! Transactions from single steps. Input: steps with their session and transaction, or separated by lines. Output: one call for
//! each transaction, in the order of its first step.

use super::super::ids::{Symbol, ValueId};
use super::super::interner::Interner;
use super::values::{Value, Values};
use crate::ingest::Position;
use rustc_hash::FxHashMap;

/// One transaction.
#[derive(Debug)]
pub struct Transaction {
    /// Its session.
    pub session: Symbol,
    /// The positions of its first and last step.
    pub steps: (Position, Position),
    /// The steps.
    pub values: Vec<ValueId>,
}

/// The transactions of a log so far.
#[derive(Debug, Default)]
pub struct Transactions {
    all: Vec<Transaction>,
    /// By session and transaction as the steps name them.
    named: FxHashMap<(Symbol, ValueId), usize>,
    /// For steps without names: the session, and whether the next step begins a transaction.
    session: u32,
    is_closed: bool,
}

impl Transactions {
    /// Adds a step that names its session and transaction.
    pub fn named(&mut self, session: Symbol, transaction: ValueId, position: Position, step: ValueId) {
        let next = self.all.len();
        let at = *self.named.entry((session, transaction)).or_insert(next);
        if at == next {
            self.all.push(Transaction { session, steps: (position, position), values: Vec::new() });
        }
        self.all[at].steps.1 = position;
        self.all[at].values.push(step);
    }

    /// Adds a step to the open transaction.
    pub fn step(&mut self, names: &mut Interner, position: Position, step: ValueId) {
        if self.all.is_empty() || self.is_closed {
            let session = names.intern(&self.session.to_string());
            self.all.push(Transaction { session, steps: (position, position), values: Vec::new() });
        }
        self.is_closed = false;
        if let Some(open) = self.all.last_mut() {
            open.steps.1 = position;
            open.values.push(step);
        }
    }

    /// Ends the open transaction, or its session too.
    pub fn boundary(&mut self, of_session: bool) {
        self.is_closed = true;
        self.session += u32::from(of_session);
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The transactions, each with the value of all its steps.
    pub fn into_values(self, values: &mut Values) -> Vec<(Transaction, ValueId)> {
        let whole = |transaction: Transaction| {
            let value = values.intern(Value::Sequence(transaction.values.clone().into()));
            (transaction, value)
        };
        self.all.into_iter().map(whole).collect()
    }
}
