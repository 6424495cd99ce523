//! The watches of clients, with their responses and events.

use super::operation::Span;
use super::value::ValueId;
use crate::history::Symbol;
use crate::ingest::{Position, Time};
use serde::{Deserialize, Serialize};

/// A watch. The client library silently resumes a broken one, perhaps at another member, so it may span several watches of the
/// server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Watch {
    /// Position.
    pub position: Position,
    /// The client, an index of [`super::Recording::clients`].
    pub client: u32,
    /// The key, or the first key of a range.
    pub key: Symbol,
    /// The key after the last one. None for a single key, or for a prefix.
    pub end: Symbol,
    /// Whether `key` is a prefix of the watched keys.
    pub prefix: bool,
    /// The first requested revision; 0: the next one.
    pub revision: i64,
    /// Whether the client requested progress notifications.
    pub progress: bool,
    /// Whether the client requested the previous value in events.
    pub previous: bool,
    /// The responses, in [`super::Recording::responses`].
    pub responses: Span,
}

/// One response of a watch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Response {
    /// Line, in the file of its watch.
    pub line: u32,
    /// Byte offset, in the file of its watch.
    pub offset: u64,
    /// Time of arrival.
    pub time: Time,
    /// Revision of the store. In a progress notification, every event through it was delivered.
    pub revision: i64,
    /// Whether it is a progress notification.
    pub progress: bool,
    /// The error that ended the watch; none if it continued.
    pub error: Symbol,
    /// The events, in [`super::Recording::events`].
    pub events: Span,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Line, in the file of its watch.
    pub line: u32,
    /// Byte offset, in the file of its watch.
    pub offset: u64,
    /// Key.
    pub key: Symbol,
    /// Value; empty for a delete.
    pub value: ValueId,
    /// Revision of the change.
    pub revision: i64,
    /// Whether the key was deleted.
    pub delete: bool,
    /// Whether it states that the key did not exist before.
    pub create: bool,
    /// The previous state of the key, if the event has it.
    pub previous: Option<Previous>,
}

/// The state of a key before an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Previous {
    /// Value.
    pub value: ValueId,
    /// Revision of its last change.
    pub revision: i64,
    /// Number of changes in that life; 0: not recorded.
    pub version: i64,
}
