//! Data about writers of revisions: those that were found, those that are presumed, and revisions without a possible writer.

use super::effects::Change;
use super::log::Logged;
use super::proofs::Proof;
use crate::history::Symbol;

/// The writer of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Writer {
    /// An operation of a client.
    Operation(u32),
    /// The expiry of a lease, which no client requested.
    Expiry(i64),
}

/// The reason why a request cannot be the writer of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It was sent after this revision or a later one had been seen.
    Late(Proof),
    /// Applied at this revision, it has another effect.
    OtherEffect,
    /// It is the writer of another revision, and no exchange frees it.
    Used(i64),
}

/// A revision without a possible writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unattributed {
    /// The revision.
    pub revision: i64,
    /// Requests of unknown outcome about its key, each with the reason why it was not the writer: first those that were sent in
    /// time, at most 64.
    pub candidates: Vec<(u32, Unfit)>,
    /// The number of further candidates.
    pub more: usize,
    /// A refused request that has exactly this effect.
    pub refused: Option<u32>,
    /// An acknowledged request of another revision that wrote exactly this.
    pub repeats: Option<u32>,
    /// The log entry that made it; the client's record is missing.
    pub entry: Option<Logged>,
}

/// The attribution of all revisions that no answer claims.
#[derive(Debug, Default)]
pub struct Attribution {
    /// The writer of each revision that no answer claims, ascending.
    pub writers: Vec<(i64, Writer)>,
    /// Revisions without a possible writer, ascending.
    pub unattributed: Vec<Unattributed>,
    /// The first revision with unknown content.
    pub open: Option<i64>,
    /// Revisions whose possible writers attach keys to different leases, ascending.
    pub doubted: Vec<i64>,
    /// Acknowledged revokes that left a key of their lease behind, with the key.
    pub unrevoked: Vec<(u32, Symbol)>,
    /// Answers for which it is undecided whether they wrote.
    pub undecided: Vec<u32>,
}

/// A presumed change at a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supposed {
    /// The revision.
    pub revision: i64,
    /// The presumed writer.
    pub writer: Writer,
    /// All its changes.
    pub changes: Vec<Change>,
}
