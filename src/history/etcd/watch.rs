//! What clients asked to be told, and what they were told.

use super::operation::Span;
use super::value::ValueId;
use crate::history::Symbol;
use crate::ingest::{Position, Time};
use serde::{Deserialize, Serialize};

/// A watch. The client library resumes a broken one silently, possibly at another member, so it may span several of the
/// server's.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Watch {
    /// Where it stands.
    pub position: Position,
    /// Its client, an index of [`super::Recording::clients`].
    pub client: u32,
    /// Key, or first key.
    pub key: Symbol,
    /// One behind the last key; none: only `key`, or what begins like it.
    pub end: Symbol,
    /// Whether all keys that begin like it are watched.
    pub prefix: bool,
    /// First revision asked for; 0: from then on.
    pub revision: i64,
    /// Whether progress was to be told where there are no events.
    pub progress: bool,
    /// Whether events were to have the value before them.
    pub previous: bool,
    /// What was delivered, in [`super::Recording::responses`].
    pub responses: Span,
}

/// What was delivered at once.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Response {
    /// Line where it stands, in the file of its watch.
    pub line: u32,
    /// Byte where it stands.
    pub offset: u64,
    /// When it was received.
    pub time: Time,
    /// Revision of the store; for progress: everything through it was delivered.
    pub revision: i64,
    /// Whether it only tells progress.
    pub progress: bool,
    /// Why the watch ended; none where it went on.
    pub error: Symbol,
    /// Its events, in [`super::Recording::events`].
    pub events: Span,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Line where it stands, in the file of its watch.
    pub line: u32,
    /// Byte where it stands.
    pub offset: u64,
    /// Key.
    pub key: Symbol,
    /// Value; the empty one for a delete.
    pub value: ValueId,
    /// Revision of the change.
    pub revision: i64,
    /// Whether the key was deleted.
    pub delete: bool,
    /// Whether it says that the key was absent before.
    pub create: bool,
    /// What it says that the key was before.
    pub previous: Option<Previous>,
}

/// What a key was before an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Value.
    pub value: ValueId,
    /// Revision of its last change.
    pub revision: i64,
    /// Number of changes in that life; 0: not recorded.
    pub version: i64,
}
