//! The budget of a search, and its result.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a search may spend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget<'a> {
    /// Wall-clock time; `None`: no limit.
    pub time: Option<Duration>,
    /// Bytes that the search may hold at a time beyond its input; `None`: no limit.
    pub memory: Option<usize>,
    /// A flag by which another thread ends the search.
    pub cancel: Option<&'a AtomicBool>,
}

/// The decision about one history. Indices are those of [`super::History::calls`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// An order of the calls explains every answer.
    Linearizable(Linearization),
    /// No order explains every answer.
    Violated(Core),
    /// Not decided within the budget.
    Unknown(Undecided),
}

/// A linearization: each call once, without failed ones and without unknown ones that never happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Linearization {
    /// The calls, in order.
    pub order: Vec<u32>,
}

/// An unsatisfiable core: no order explains these calls, even if the outcome of every other call were unknown (see
/// [`super::minimal`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Core {
    /// The calls, by invocation: completed and failed ones.
    pub calls: Vec<u32>,
    /// Whether it is proved that no call can be left out.
    pub minimal: bool,
    /// A longest partial linearization that was found.
    pub longest_prefix: Vec<u32>,
}

/// What is undecided, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undecided {
    /// Which limit ended it.
    pub limit: Limit,
    /// The time that was spent.
    pub spent: Duration,
    /// The undecided calls, by invocation; the parts of all other calls have a linearization.
    pub calls: Vec<u32>,
}

/// Which limit ended a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// The search took longer than [`Budget::time`].
    Time,
    /// The search would have held more than [`Budget::memory`].
    Memory,
    /// Another thread set [`Budget::cancel`].
    Cancelled,
}
