//! Operations, listed items, watch deliveries: the rows of a history.

use super::ids::{AttributesId, ClockId, IncarnationId, KeyId, OperationId, ScopeId, ServerId, StreamId, Symbol};
use super::request::{Asked, Verb};
use super::revision::Revision;
use crate::ingest::{Position, Time};
use serde::{Deserialize, Serialize};

/// An audit id: 128 bits where it is a UUID, else an interned text. Not unique and not trustworthy (a client may send it).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AuditId {
    /// None was recorded.
    #[default]
    None,
    /// A UUID in the canonical form, as two words.
    Uuid(u64, u64),
    /// Anything else.
    Text(Symbol),
}

/// Marks of an operation, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks(pub u32);

impl Marks {
    /// Nothing is committed: `dryRun`.
    pub const DRY_RUN: Marks = Marks(1);
    /// The audit backend cut the bodies off.
    pub const TRUNCATED: Marks = Marks(1 << 1);
    /// The answer's body was recorded.
    pub const ANSWER_BODY: Marks = Marks(1 << 2);
    /// The request's body was recorded.
    pub const REQUEST_BODY: Marks = Marks(1 << 3);
    /// The answer shows that this request removed the object (deletion under way, no finalizer left).
    pub const REMOVES: Marks = Marks(1 << 4);
    /// `allowWatchBookmarks=true`.
    pub const BOOKMARKS: Marks = Marks(1 << 5);
    /// `sendInitialEvents=true`.
    pub const INITIAL_EVENTS: Marks = Marks(1 << 6);
    /// `sendInitialEvents=false`.
    pub const NO_INITIAL_EVENTS: Marks = Marks(1 << 7);
    /// A positive `limit`.
    pub const LIMITED: Marks = Marks(1 << 8);
    /// The answer ends with a continue token: not the last page.
    pub const MORE_PAGES: Marks = Marks(1 << 9);
    /// Only the arrival is known (stage RequestReceived or ResponseStarted, or a capture without response).
    pub const OPEN: Marks = Marks(1 << 10);
    /// Recorded by the client (capture, raw stream, list file), not by the server.
    pub const CLIENT_SIDE: Marks = Marks(1 << 11);
    /// The server recorded it too: an audit event and a capture of one request were made one operation.
    pub const BOTH_SIDES: Marks = Marks(1 << 12);
    /// The request's path or method was not that of a resource, or of none that the server knew: the request is left out.
    pub const NO_RESOURCE: Marks = Marks(1 << 13);
    /// The write names no version and no uid: unconditional. Not one that applies: it states what shall be there, whatever it finds.
    pub const UNCONDITIONED: Marks = Marks(1 << 14);
    /// A file that someone saved (a list, a raw stream), not a request of a known process.
    pub const SAVED: Marks = Marks(1 << 15);
    /// The object answered carries a deletionTimestamp.
    pub const TERMINATING: Marks = Marks(1 << 16);
    /// The answer is a `Status`, so no object version is in it.
    pub const STATUS_ANSWER: Marks = Marks(1 << 17);
    /// The request names a uid in its body's metadata (not only in preconditions).
    pub const NAMES_UID: Marks = Marks(1 << 18);

    /// The server's record of a request that the client recorded: it bounds clocks and proves commits, and
    /// is left out of what the client saw.
    pub const SHADOW: Marks = Marks(1 << 19);
    /// The answer is a list (or a table).
    pub const LIST_ANSWER: Marks = Marks(1 << 20);
    /// Server-side apply.
    pub const APPLY: Marks = Marks(1 << 21);
    /// The subresource is `binding`: the only one that gives an object to another.
    pub const BINDING: Marks = Marks(1 << 22);
    /// The object answered carries a deletionTimestamp, and shows that finalizers or a grace period hold it back.
    pub const HELD: Marks = Marks(1 << 23);
    /// The object answered to a read has another name or namespace than the one that was asked for. What it shows is left out.
    pub const OTHER_OBJECT: Marks = Marks(1 << 26);

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Marks) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets the bits of `other`.
    pub fn set(&mut self, other: Marks) {
        self.0 |= other.0;
    }

    /// Clears the bits of `other`.
    pub fn clear(&mut self, other: Marks) {
        self.0 &= !other.0;
    }
}

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server answered with success.
    Answered,
    /// The server refused: nothing was committed.
    Rejected,
    /// Nobody knows: no answer, or one that leaves it open (5xx on a write). A write may have been committed, may yet be,
    /// or never.
    Unknown,
}

/// One request with what is known of its answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// Where its answer stands (or the only record of it).
    pub position: Position,
    /// Audit id.
    pub audit_id: AuditId,
    /// Not later than the moment at which the request could first take effect.
    pub invoke: Time,
    /// Not earlier than the last moment of its effect; [`Time::UNKNOWN`] without answer.
    pub ret: Time,
    /// For a read: the version asked for. For a write: the version that it is conditioned on. Zero: none.
    pub asked_revision: Revision,
    /// For a list: its revision. For one object: the object's version in the answer. Zero: none known.
    pub answered: Revision,
    /// Clock of `invoke` and `ret`.
    pub clock: ClockId,
    /// Server, where known.
    pub server: ServerId,
    /// The process.
    pub incarnation: IncarnationId,
    /// What it covers: resource, namespace, name, selectors.
    pub scope: ScopeId,
    /// The one object that it is about, where it is about one.
    pub key: KeyId,
    /// The uid that the request names.
    pub request_uid: Symbol,
    /// The uid in the answer.
    pub answer_uid: Symbol,
    /// What selectors see of the answered object.
    pub attributes: AttributesId,
    /// First listed item, an index into the history's items.
    pub items_start: u32,
    /// How many items were listed.
    pub items_len: u32,
    /// The decision that it belongs to (capture format), else none.
    pub decision: Symbol,
    /// Of a page of a list: the last key of the pages before, below the path of the list, where the request's continue token tells it.
    pub page_after: Symbol,
    /// Of a page that is not the last one: its own last key, where the answer's continue token tells it.
    pub page_end: Symbol,
    /// Marks.
    pub marks: Marks,
    /// HTTP status, 0 without answer.
    pub status: u16,
    /// Verb.
    pub verb: Verb,
    /// How the version was asked for.
    pub asked: Asked,
    /// Subresource.
    pub subresource: Subresource,
}

/// Subresources that differ in meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Subresource {
    /// The object itself.
    #[default]
    None,
    /// `status`.
    Status,
    /// `scale`: another kind that carries the version of its parent.
    Scale,
    /// `binding` and `eviction`: they change the parent, and their answers do not show it.
    Effect,
    /// Others that answer with the parent object: `finalize`, `approval`, `ephemeralcontainers`, `resize`.
    Part,
    /// Others that do not: `log`, `exec`, `proxy`, `token`.
    Other,
}

/// The mark of a subresource that says more than [`Subresource`] does.
pub fn mark_of_subresource(word: &str) -> Marks {
    if word == "binding" { Marks::BINDING } else { Marks::default() }
}

impl Subresource {
    /// From the word.
    pub fn from_word(word: &str) -> Subresource {
        match word {
            "" => Subresource::None,
            "status" => Subresource::Status,
            "scale" => Subresource::Scale,
            "binding" | "eviction" => Subresource::Effect,
            "finalize" | "approval" | "ephemeralcontainers" | "resize" => Subresource::Part,
            _ => Subresource::Other,
        }
    }

    /// Whether an answer shows the version of the parent object.
    pub fn answers_parent(self) -> bool {
        !matches!(self, Subresource::Effect | Subresource::Other)
    }
}

impl Operation {
    /// Whether the answer of an accepted write proves that it made the version shown: it created the object, or is above its base. A
    /// server that finds nothing to change answers with what is there (apiserver `pkg/storage/etcd3/store.go`, GuaranteedUpdate).
    pub fn shows_its_commit(&self) -> bool {
        self.status == 201 || (self.asked_revision.is_some() && self.answered > self.asked_revision)
    }

    /// What became of it.
    ///
    /// A 5xx answer to a write leaves it open (apiserver answers 504 or 500 when its call to etcd ran out of time, while
    /// etcd may have committed); 429 and 4xx are refusals. Observed: `docs/formats.md`, "outcomes".
    pub fn outcome(&self) -> Outcome {
        match self.status {
            _ if self.marks.has(Marks::OPEN) => Outcome::Unknown,
            100..=399 => Outcome::Answered,
            400..=499 => Outcome::Rejected,
            _ => Outcome::Unknown,
        }
    }

    /// Whether it was answered with success.
    pub fn is_answered(&self) -> bool {
        self.outcome() == Outcome::Answered
    }

    /// Whether it changed the store for certain or perhaps; dry runs never do.
    pub fn may_write(&self) -> bool {
        self.verb.is_write()
            && !self.marks.has(Marks::DRY_RUN)
            && self.subresource != Subresource::Other
            && self.outcome() != Outcome::Rejected
    }

    /// The listed items.
    pub fn items(&self) -> std::ops::Range<usize> {
        self.items_start as usize..(self.items_start + self.items_len) as usize
    }
}

/// One item of a list (or of the initial part of a stream).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its key.
    pub key: KeyId,
    /// Its uid.
    pub uid: Symbol,
    /// Its version.
    pub revision: Revision,
    /// What selectors see of it.
    pub attributes: AttributesId,
}

/// The kind of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DeliveryKind {
    /// An object entered the scope (or is part of the initial state).
    Added,
    /// An object in the scope changed.
    Modified,
    /// An object left the scope: deleted, or no longer selected.
    Deleted,
    /// Progress.
    Bookmark,
    /// The bookmark that ends the initial events.
    InitialEventsEnd,
    /// An error; `code` says which.
    Error,
    /// Something that the evidence does not identify (a table row without object): the stream's account has a hole here.
    Unidentified,
}

/// One event of a watch stream, as it reached the client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// Where it stands.
    pub position: Position,
    /// When its line was complete, on the stream's clock.
    pub at: Time,
    /// Its version (a bookmark's: the progress).
    pub revision: Revision,
    /// Its key.
    pub key: KeyId,
    /// Its uid.
    pub uid: Symbol,
    /// What selectors see of it.
    pub attributes: AttributesId,
    /// Kind.
    pub kind: DeliveryKind,
    /// HTTP code of an error.
    pub code: u16,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamEnd {
    /// The evidence does not say (it may be open still).
    #[default]
    Open,
    /// The server closed it in order (also: timeoutSeconds).
    Eof,
    /// The client closed it.
    Closed,
    /// The connection broke.
    Broken,
}

/// A watch of which the deliveries are known.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Stream {
    /// This stream.
    pub id: StreamId,
    /// Its request.
    pub operation: OperationId,
    /// First delivery, an index into the history's deliveries.
    pub deliveries_start: u32,
    /// How many there are.
    pub deliveries_len: u32,
    /// How it ended.
    pub end: StreamEnd,
    /// When.
    pub ended: Time,
}

impl Stream {
    /// The deliveries.
    pub fn deliveries(&self) -> std::ops::Range<usize> {
        self.deliveries_start as usize..(self.deliveries_start + self.deliveries_len) as usize
    }
}

/// One event of an etcd witness.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct WitnessEvent {
    /// Where it stands.
    pub position: Position,
    /// Revision of the change.
    pub revision: Revision,
    /// Revision at which the key's present life began; zero on a tombstone.
    pub created: Revision,
    /// Its key; none where the etcd key is no object's.
    pub key: KeyId,
    /// Uid, where the value could be read.
    pub uid: Symbol,
    /// What selectors see of it.
    pub attributes: AttributesId,
    /// How many changes the key's present life has had, this one included (mvccpb `KeyValue.version`); 0 on a tombstone.
    pub count: u32,
    /// Whether it is a tombstone.
    pub tombstone: bool,
}

/// A stretch of revisions that a witness shows without a hole: (after, through].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessSpan {
    /// Everything after this revision.
    pub after: Revision,
    /// Through this one.
    pub through: Revision,
    /// What it covers: one resource and namespace; none: every object.
    pub scope: ScopeId,
    /// Where the stretch begins.
    pub position: Position,
}

/// The begin or the end of one pass of a decision (`decision` lines of a capture).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bracket {
    /// Where it stands.
    pub position: Position,
    /// When.
    pub at: Time,
    /// Clock of `at`.
    pub clock: ClockId,
    /// The process.
    pub incarnation: IncarnationId,
    /// The decision.
    pub decision: Symbol,
    /// Whether the pass begins here; else it ends.
    pub begins: bool,
}

/// What a recorder notes for pictures (`mark` lines of a capture): never evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// Where it stands.
    pub position: Position,
    /// When it begins.
    pub at: Time,
    /// When it ends; unknown for a moment.
    pub until: Time,
    /// What it says.
    pub name: Symbol,
}

/// A read from a client-side cache (`read` lines of a capture).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CacheRead {
    /// Where it stands.
    pub position: Position,
    /// When.
    pub at: Time,
    /// Clock of `at`.
    pub clock: ClockId,
    /// The process.
    pub incarnation: IncarnationId,
    /// The decision that used it.
    pub decision: Symbol,
    /// The key.
    pub key: KeyId,
    /// The uid seen; none: it saw absence.
    pub uid: Symbol,
    /// The version seen; zero: it saw absence.
    pub revision: Revision,
}
