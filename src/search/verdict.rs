//! What a search comes to.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a search may spend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget<'a> {
    /// Wall-clock time; `None`: no limit.
    pub time: Option<Duration>,
    /// Bytes that the search may hold at a time beyond its input; `None`: no limit.
    pub memory: Option<usize>,
    /// Set by somebody else to end the search.
    pub cancel: Option<&'a AtomicBool>,
}

/// The decision about one history. Indices are those of [`super::History::calls`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some order of the calls explains every answer.
    Linearizable(Linearization),
    /// No order does.
    Violated(Core),
    /// Not decided within the budget.
    Unknown(Undecided),
}

/// An order that explains every answer: each call once, except unknown ones that never happened and failed ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linearization {
    /// The calls, first to last.
    pub order: Vec<u32>,
}

/// Calls that no order explains, even if the outcome of every other call were unknown (see [`super::minimal`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// The calls, by invocation: completed ones, and ones that failed.
    pub calls: Vec<u32>,
    /// Whether it was proved that no one of them can be left out.
    pub minimal: bool,
    /// A longest order found that begins the history and explains every answer in it.
    pub longest_prefix: Vec<u32>,
}

/// What was left open, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// Which limit ended it.
    pub limit: Limit,
    /// What was spent.
    pub spent: Duration,
    /// The calls of the part that is not decided, by invocation; the others have an order.
    pub calls: Vec<u32>,
}

/// Which limit ended a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// [`Budget::time`].
    Time,
    /// [`Budget::memory`].
    Memory,
    /// [`Budget::cancel`].
    Cancelled,
}
