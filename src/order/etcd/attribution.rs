//! Which request made which revision, as data: what was found, and what is supposed.

use super::effects::Change;
use super::log::Logged;
use super::proofs::Proof;
use crate::history::Symbol;

/// Who made a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Writer {
    /// An operation of a client.
    Operation(u32),
    /// The end of a lease, which no client asked for.
    Expiry(i64),
}

/// Why a request cannot have made a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It was sent after the revision, or a later one, had been seen.
    Late(Proof),
    /// Applied there it does something else.
    OtherEffect,
    /// It made another revision, and no exchange helps.
    Used(i64),
}

/// A revision that nothing explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unattributed {
    /// The revision.
    pub revision: i64,
    /// Requests of unknown outcome about its key, and why it was none of them: first those that were sent in time, 64 at most.
    pub candidates: Vec<(u32, Unfit)>,
    /// How many more there are.
    pub more: usize,
    /// A request that was refused and has just this effect.
    pub refused: Option<u32>,
    /// An acknowledged request, of another revision, that wrote just this.
    pub repeats: Option<u32>,
    /// The log entry that made it: somebody sent it whose record is missing.
    pub entry: Option<Logged>,
}

/// Who made what.
#[derive(Debug, Default)]
pub struct Attribution {
    /// The maker of each revision that no answer claims, ascending.
    pub writers: Vec<(i64, Writer)>,
    /// Revisions without a maker, ascending.
    pub unattributed: Vec<Unattributed>,
    /// The first revision of which the content is not known.
    pub open: Option<i64>,
    /// Revisions that requests can have made which attach keys to other leases, ascending.
    pub doubted: Vec<i64>,
    /// Acknowledged ends of leases that left a key.
    pub unrevoked: Vec<(u32, Symbol)>,
    /// Answers of which it stays open whether they wrote.
    pub undecided: Vec<u32>,
}

/// What is taken to have happened at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supposed {
    /// The revision.
    pub revision: i64,
    /// Who made it.
    pub maker: Writer,
    /// All that it changed.
    pub changes: Vec<Change>,
}
