//! The syntax tree of a sketch: the acts as written, without completed parts.

/// A place in the sketch: line from 1, column from 0 in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 0.
    pub column: u32,
}

/// The recorder of a client's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recorded {
    /// The client: a capture.
    #[default]
    Capture,
    /// The server: an audit log.
    Audit,
    /// Both.
    Both,
}

/// Level of an audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No bodies.
    Metadata,
    /// Bodies of requests.
    Request,
    /// Bodies of requests and answers.
    #[default]
    RequestResponse,
}

impl Level {
    /// The level's name in an audit log.
    pub fn word(self) -> &'static str {
        match self {
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// A client, declared or implied by its first line.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// The name in the sketch.
    pub alias: String,
    /// The user name in the evidence.
    pub user: String,
    /// User agent.
    pub agent: String,
    /// Clock of its recorder.
    pub clock: String,
    /// Source address in audit logs.
    pub address: String,
    /// Name of the pod whose token it uses, for audit logs.
    pub pod: String,
    /// The recorder of its requests.
    pub recorded: Recorded,
    /// Audit level.
    pub level: Level,
}

/// A kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Plural resource.
    pub plural: String,
    /// API group.
    pub group: String,
    /// API version without group.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// The content of all setting lines.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Duration of one column, in nanoseconds.
    pub column: i64,
    /// Clocks and their offsets, in nanoseconds.
    pub clocks: Vec<(String, i64)>,
    /// Servers and the clocks of their audit logs.
    pub servers: Vec<(String, String)>,
    /// Clients.
    pub clients: Vec<Client>,
    /// Kinds; acts refer to them by index.
    pub kinds: Vec<Kind>,
    /// The kind of a key without a resource.
    pub default_kind: usize,
    /// The namespace of a key without one.
    pub namespace: String,
    /// Whether uids are written as UUIDs.
    pub uuids: bool,
    /// The default recorder of a client.
    pub recorded: Recorded,
    /// Default audit level.
    pub level: Level,
}

/// A mentioned object. Every part may be omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Place.
    pub at: Place,
    /// Kind, namespace and name.
    pub key: Option<SketchKey>,
    /// Uid; `Some("")` if not recorded.
    pub uid: Option<String>,
    /// Version.
    pub revision: Option<u128>,
    /// The content of the square brackets.
    pub attributes: Option<Attributes>,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SketchKey {
    /// Index of the kind.
    pub kind: usize,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name; `*` for a name that the server generates.
    pub name: String,
}

/// The content of an object's square brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// `spec.nodeName`.
    pub node: String,
    /// `status.phase`.
    pub phase: String,
    /// Owner references: kind, name, uid.
    pub owners: Vec<(String, String, String)>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Other fields: the members of each path, and the value.
    pub fields: Vec<(Vec<String>, serde_json::Value)>,
    /// Deletion has begun, and something holds it back.
    pub deleting: bool,
    /// Deletion has begun, and nothing holds it back.
    pub gone: bool,
    /// The write that is answered so created the object.
    pub created: bool,
    /// Only identity was recorded.
    pub reduced: bool,
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads all objects of a scope.
    List,
    /// Streams changes.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces a whole object.
    Put,
    /// Changes a part of an object.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes all objects of a scope.
    DeleteAll,
}

/// The continue token of a request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A token with a revision.
    At(u128),
    /// The token in a 410 answer.
    Inconsistent,
}

/// The options of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// `resourceVersion`.
    pub version: Option<u128>,
    /// `resourceVersionMatch`.
    pub matching: Option<&'static str>,
    /// `limit`.
    pub limit: Option<u128>,
    /// `continue`.
    pub token: Option<Token>,
    /// The key after which the token continues: the last of the previous page; empty if no page was drawn.
    pub after: String,
    /// `sendInitialEvents`.
    pub initial: Option<bool>,
    /// `allowWatchBookmarks`.
    pub bookmarks: bool,
    /// `labelSelector`.
    pub labels: String,
    /// `fieldSelector`.
    pub fields: String,
    /// `shardSelector`.
    pub shards: String,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Verb.
    pub verb: Verb,
    /// Kind.
    pub kind: usize,
    /// Namespace of a list or watch; empty for all.
    pub namespace: String,
    /// The object, with the uid and version in the request.
    pub target: Named,
    /// The options.
    pub ask: Ask,
    /// Subresource, or empty.
    pub subresource: String,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// Whether a patch is a server-side apply.
    pub apply: bool,
    /// The tests of a JSON patch.
    pub test: Option<Named>,
    /// Whether its body was recorded.
    pub body: bool,
    /// The decision that it belongs to.
    pub decision: String,
    /// The answer.
    pub answer: Answer,
    /// Events of a watch.
    pub events: Vec<Event>,
}

impl Request {
    /// The last key of a page with more pages after it, as continue tokens write it: below the request's path.
    pub fn page_end(&self) -> Option<String> {
        let Answer::List(_, Some(items), true) = &self.answer else { return None };
        let last = items.last()?.key.as_ref()?;
        let whole = self.namespace.is_empty() && !last.namespace.is_empty();
        Some(if whole { format!("{}/{}", last.namespace, last.name) } else { last.name.clone() })
    }
}

/// An answer.
#[allow(clippy::large_enum_variant)] // few of them, and short-lived
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No answer was seen.
    None,
    /// Success, its body not recorded.
    Bare,
    /// Success with a `Status`, perhaps with a uid.
    Ok(Option<String>),
    /// A refusal: HTTP code and, for a uid conflict, the live uid.
    Refused(u16, Option<String>),
    /// One object.
    Object(Named),
    /// A list: revision, items (none: rows without identity), and whether more pages follow.
    List(u128, Option<Vec<Named>>, bool),
}

/// One word of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// `+`
    Added(Named),
    /// `~`
    Modified(Named),
    /// `-`
    Deleted(Named),
    /// `^`
    Bookmark(u128),
    /// `^^`
    InitialEnd(u128),
    /// `!`
    Error(u16),
    /// The end of the stream: `eof`, `closed`, `error`.
    End(&'static str),
}

/// A timed event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Place.
    pub at: Place,
    /// Time, in nanoseconds from the begin of the sketch.
    pub time: i64,
    /// The event.
    pub carried: Carried,
}

/// One act of a client.
#[allow(clippy::large_enum_variant)] // few of them, and short-lived
#[derive(Clone, Debug)]
pub enum Act {
    /// A request.
    Request(Box<Request>),
    /// A read from its cache; `None` for absence.
    Read {
        /// The object.
        key: SketchKey,
        /// The object read.
        seen: Option<Named>,
        /// The decision that used it.
        decision: String,
    },
    /// A decision, from begin to end.
    Decide(String),
    /// A note for diagrams.
    Mark(String),
}

/// An act with its time and its client.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Place.
    pub at: Place,
    /// Index of the client.
    pub client: usize,
    /// The incarnation of the client.
    pub life: String,
    /// The server it talks to, or empty.
    pub server: String,
    /// Begin, in nanoseconds from the begin of the sketch.
    pub begin: i64,
    /// End; none if no recorder saw one.
    pub end: Option<i64>,
    /// The act.
    pub act: Act,
}

/// A parsed sketch.
#[derive(Clone, Debug)]
pub struct Sketch {
    /// Settings.
    pub settings: Settings,
    /// Acts, in the order of the text.
    pub acts: Vec<Timed>,
    /// Events that etcd itself showed.
    pub witness: Vec<Event>,
}
