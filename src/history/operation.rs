//! The rows of a history: operations, listed items, watch deliveries, witness events, cache reads.
//!
//! Invariant: [`Operation::invoke`] is never later than the first moment of a possible effect and [`Operation::ret`] never
//! earlier than the last, so that intervals stay sound.

use super::ids::{AttributesId, ClockId, IncarnationId, KeyId, OperationId, ScopeId, ServerId, StreamId, Symbol};
use super::request::{Asked, Verb};
use super::revision::Revision;
use crate::ingest::{Position, Time};
use serde::{Deserialize, Serialize};

/// An audit id: two words for a UUID, else an interned text. It is neither unique nor trustworthy, since a client may send one.
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
    /// `dryRun`: the server commits nothing.
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
    /// The path or method names no resource, or none that the server knew. The request is left out of the history.
    pub const NO_RESOURCE: Marks = Marks(1 << 13);
    /// The write names no version and no uid. An apply never has this mark, since it states a result and not a change.
    pub const UNCONDITIONED: Marks = Marks(1 << 14);
    /// A saved file (a list, a raw stream), not a request of a known process.
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
    /// The subresource is `binding`, the only one that binds an object to another.
    pub const BINDING: Marks = Marks(1 << 22);
    /// The object answered carries a deletionTimestamp, and shows that finalizers or a grace period hold it back.
    pub const HELD: Marks = Marks(1 << 23);
    /// The object in the answer to a read has another name or namespace than the requested one. Its content is left out.
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

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server answered with success.
    Answered,
    /// The server refused: nothing was committed.
    Rejected,
    /// The outcome is open: no answer, or a 5xx answer to a write. The write may be committed already, later, or never.
    Unknown,
}

/// One request with what is known of its answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Operation {
    /// Position of its answer, or of its only record.
    pub position: Position,
    /// The audit id, for display and for joining records.
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
    /// The server, if known.
    pub server: ServerId,
    /// The incarnation that sent it.
    pub incarnation: IncarnationId,
    /// What it covers: resource, namespace, name, selectors.
    pub scope: ScopeId,
    /// The object, if it is about a single one.
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
    /// The decision that it belongs to (captures only), else none.
    pub decision: Symbol,
    /// For a page of a list: the last key of the earlier pages, below the path of the list, if the request's continue token has
    /// it.
    pub page_after: Symbol,
    /// For a page that is not the last one: its own last key, if the answer's continue token has it.
    pub page_end: Symbol,
    /// The marks.
    pub marks: Marks,
    /// HTTP status, 0 without answer.
    pub status: u16,
    /// The verb.
    pub verb: Verb,
    /// The way in which the request chose a version.
    pub asked: Asked,
    /// The subresource class.
    pub subresource: Subresource,
}

/// Subresources, by the object in their answers.
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
    /// Other subresources that answer with the parent: `finalize`, `approval`, `ephemeralcontainers`, `resize`.
    Part,
    /// Other subresources that do not: `log`, `exec`, `proxy`, `token`.
    Other,
}

/// The mark of a subresource, for the details that [`Subresource`] leaves out.
pub fn mark_of_subresource(word: &str) -> Marks {
    if word == "binding" { Marks::BINDING } else { Marks::default() }
}

impl Subresource {
    /// The class of a subresource, by its word in the path.
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
    /// Whether the answer to an accepted write proves that the write made the version in it: it created the object, or the
    /// version is above its base. A server that finds nothing to change answers with the present object (apiserver
    /// `pkg/storage/etcd3/store.go`, GuaranteedUpdate).
    pub fn shows_its_commit(&self) -> bool {
        self.status == 201 || (self.asked_revision.is_some() && self.answered > self.asked_revision)
    }

    /// Whether a PUT or an apply created its object: the server then found none to compare with the version in the request
    /// (seen from kube-apiserver 1.37 for an apply).
    pub fn compared_nothing(&self) -> bool {
        self.status == 201 && matches!(self.verb, Verb::Update | Verb::Patch)
    }

    /// The outcome, by the status.
    ///
    /// A 5xx answer leaves a write open: the apiserver answers 504 or 500 if its call to etcd timed out, and etcd may have
    /// committed. 429 and 4xx are refusals. Observed: `docs/formats.md`, "outcomes".
    pub fn outcome(&self) -> Outcome {
        match self.status {
            _ if self.marks.has(Marks::OPEN) => Outcome::Unknown,
            100..=399 => Outcome::Answered,
            400..=499 => Outcome::Rejected,
            _ => Outcome::Unknown,
        }
    }

    /// Whether the server answered with success.
    pub fn is_answered(&self) -> bool {
        self.outcome() == Outcome::Answered
    }

    /// Whether it changed the store or may have done so. A dry run never does.
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
    /// The key.
    pub key: KeyId,
    /// The uid.
    pub uid: Symbol,
    /// The version.
    pub revision: Revision,
    /// The content that selectors and rules see.
    pub attributes: AttributesId,
}

impl Operation {
    /// The version in the answer about one object.
    pub fn answered_item(&self) -> Item {
        Item { key: self.key, uid: self.answer_uid, revision: self.answered, attributes: self.attributes }
    }
}

impl Delivery {
    /// The version that it delivers.
    pub fn item(&self) -> Item {
        Item { key: self.key, uid: self.uid, revision: self.revision, attributes: self.attributes }
    }
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
    /// Progress: every change through its revision was delivered.
    Bookmark,
    /// The bookmark that ends the initial events.
    InitialEventsEnd,
    /// An error, with its HTTP code in [`Delivery::code`].
    Error,
    /// An event without an identified object (a table row without object): the stream may lack a change here.
    Unidentified,
}

/// One event of a watch stream, as it reached the client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// Position in the evidence.
    pub position: Position,
    /// Time at which its line was complete, on the stream's clock.
    pub at: Time,
    /// The version; for a bookmark, the progress.
    pub revision: Revision,
    /// The key.
    pub key: KeyId,
    /// The uid.
    pub uid: Symbol,
    /// The content that selectors and rules see.
    pub attributes: AttributesId,
    /// The kind.
    pub kind: DeliveryKind,
    /// HTTP code of an error.
    pub code: u16,
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamEnd {
    /// The evidence shows no end; the stream may still be open.
    #[default]
    Open,
    /// The server closed it in order, `timeoutSeconds` included.
    Eof,
    /// The client closed it.
    Closed,
    /// The connection broke.
    Broken,
}

/// A watch with recorded deliveries.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Stream {
    /// The id of this stream.
    pub id: StreamId,
    /// The watch request.
    pub operation: OperationId,
    /// First delivery, an index into the history's deliveries.
    pub deliveries_start: u32,
    /// Number of deliveries.
    pub deliveries_len: u32,
    /// The kind of end.
    pub end: StreamEnd,
    /// Time of the end.
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
    /// Position in the evidence.
    pub position: Position,
    /// Revision of the change.
    pub revision: Revision,
    /// Revision at which the key's present life began; zero on a tombstone.
    pub created: Revision,
    /// Its key; none if the etcd key belongs to no object.
    pub key: KeyId,
    /// The uid, if the value could be read.
    pub uid: Symbol,
    /// The content that selectors and rules see.
    pub attributes: AttributesId,
    /// Number of changes in the key's present life, this one included (mvccpb `KeyValue.version`); 0 on a tombstone.
    pub count: u32,
    /// Whether it is a tombstone.
    pub tombstone: bool,
}

/// An interval of revisions in which a witness misses no change: (after, through].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessSpan {
    /// Exclusive lower bound.
    pub after: Revision,
    /// Inclusive upper bound.
    pub through: Revision,
    /// Its scope: one resource, perhaps in one namespace; none for every object.
    pub scope: ScopeId,
    /// Position of its first event.
    pub position: Position,
}

/// The begin or the end of one pass of a decision (`decision` lines of a capture).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bracket {
    /// Position in the evidence.
    pub position: Position,
    /// Time, on `clock`.
    pub at: Time,
    /// Clock of `at`.
    pub clock: ClockId,
    /// The incarnation.
    pub incarnation: IncarnationId,
    /// The decision.
    pub decision: Symbol,
    /// Whether the pass begins here; otherwise it ends here.
    pub begins: bool,
}

/// A recorder's note for diagrams (`mark` lines of a capture), never evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// Position in the evidence.
    pub position: Position,
    /// Begin.
    pub at: Time,
    /// End; unknown for an instant.
    pub until: Time,
    /// Its text.
    pub name: Symbol,
}

/// A read from a client-side cache (`read` lines of a capture).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CacheRead {
    /// Position in the evidence.
    pub position: Position,
    /// Time, on `clock`.
    pub at: Time,
    /// Clock of `at`.
    pub clock: ClockId,
    /// The incarnation.
    pub incarnation: IncarnationId,
    /// The decision that used the value.
    pub decision: Symbol,
    /// The key.
    pub key: KeyId,
    /// The uid read; none if the cache had no such object.
    pub uid: Symbol,
    /// The version read; zero if the cache had no such object.
    pub revision: Revision,
}
