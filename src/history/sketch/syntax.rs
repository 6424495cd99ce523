//! A sketch, read: who did what when, with everything that the writer said and nothing that was left out.

/// A place in the sketch: line from 1, column from 0 in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: u32,
    /// Column, from 0.
    pub column: u32,
}

/// Who recorded a client's requests.
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
    /// The word of the audit log.
    pub fn word(self) -> &'static str {
        match self {
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// A client as declared, or as its first timeline implies.
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
    /// Pod whose token it uses, for audit logs.
    pub pod: String,
    /// Who recorded its requests.
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

/// What the setting lines say.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nanoseconds that one column stands for.
    pub column: i64,
    /// Clocks and how far each is ahead, in nanoseconds.
    pub clocks: Vec<(String, i64)>,
    /// Servers and the clock of each one's audit log.
    pub servers: Vec<(String, String)>,
    /// Clients.
    pub clients: Vec<Client>,
    /// Kinds; timelines name them by index.
    pub kinds: Vec<Kind>,
    /// The kind of a key that names none.
    pub default_kind: usize,
    /// The namespace of a key that names none.
    pub namespace: String,
    /// Whether uids are written as UUIDs.
    pub uuids: bool,
    /// Defaults of clients.
    pub recorded: Recorded,
    /// Default audit level.
    pub level: Level,
}

/// An object as named: every part may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Where it stands.
    pub at: Place,
    /// Kind, namespace and name.
    pub key: Option<SketchKey>,
    /// Uid; `Some("")` for "not recorded".
    pub uid: Option<String>,
    /// Version.
    pub revision: Option<u128>,
    /// What is in square brackets.
    pub attributes: Option<Attributes>,
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SketchKey {
    /// Index of the kind.
    pub kind: usize,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name; `*` for one that the server makes up.
    pub name: String,
}

/// What is said about an object in square brackets.
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
    /// Other fields: the members that lead to each, and its value.
    pub fields: Vec<(Vec<String>, serde_json::Value)>,
    /// Deletion has begun and something holds it back.
    pub deleting: bool,
    /// Deletion has begun and nothing holds it back any more.
    pub gone: bool,
    /// Only identity was recorded.
    pub reduced: bool,
}

/// Verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One object.
    Get,
    /// Many.
    List,
    /// A stream.
    Watch,
    /// A new object.
    Create,
    /// A whole object replaced.
    Put,
    /// A part replaced.
    Patch,
    /// One object deleted.
    Delete,
    /// Many deleted.
    DeleteAll,
}

/// Which continue token a page is asked for with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// One that names a revision.
    At(u128),
    /// One out of a 410 answer.
    Inconsistent,
}

/// How a read asks.
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
    /// Behind which key the token goes on: the last of the page before, empty where no page was drawn.
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
    /// The object, with the uid and version that the request names.
    pub target: Named,
    /// How it asks.
    pub ask: Ask,
    /// Subresource, or empty.
    pub subresource: String,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// A JSON patch with these tests.
    pub test: Option<Named>,
    /// Whether its body was recorded.
    pub body: bool,
    /// Decision that it belongs to.
    pub decision: String,
    /// The answer.
    pub answer: Answer,
    /// Events of a watch.
    pub events: Vec<Event>,
}

impl Request {
    /// The last key of a page that is not the last one, as continue tokens name it: below the request's own path.
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
    /// None was seen.
    None,
    /// Success, its body not recorded.
    Bare,
    /// Success with a `Status` that names a uid.
    Ok(Option<String>),
    /// A refusal: HTTP code and, for a uid conflict, the live uid.
    Refused(u16, Option<String>),
    /// One object.
    Object(Named),
    /// A list: revision, items (none: rows without identity) and whether more pages follow.
    List(u128, Option<Vec<Named>>, bool),
}

/// What a stream carries.
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
    /// The stream's end: `eof`, `closed`, `error`.
    End(&'static str),
}

/// An event of a stream with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Where it stands.
    pub at: Place,
    /// When, in nanoseconds from the sketch's beginning.
    pub time: i64,
    /// What.
    pub carried: Carried,
}

/// What a client does.
#[allow(clippy::large_enum_variant)] // few of them, and short-lived
#[derive(Clone, Debug)]
pub enum Act {
    /// A request.
    Request(Box<Request>),
    /// A read from its cache; `None` for absence.
    Read {
        /// The object.
        key: SketchKey,
        /// What it saw.
        seen: Option<Named>,
        /// The decision that used it.
        decision: String,
    },
    /// A decision, from begin to end.
    Decide(String),
    /// A mark for pictures.
    Mark(String),
}

/// An act of a client's life in time.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Where it stands.
    pub at: Place,
    /// Index of the client.
    pub client: usize,
    /// Its life.
    pub life: String,
    /// The server that it talks to, or empty.
    pub server: String,
    /// Begin, in nanoseconds from the sketch's beginning.
    pub begin: i64,
    /// End; none where nobody saw one.
    pub end: Option<i64>,
    /// What.
    pub act: Act,
}

/// A sketch, read.
#[derive(Clone, Debug)]
pub struct Sketch {
    /// Settings.
    pub settings: Settings,
    /// Acts, in the order of the text.
    pub acts: Vec<Timed>,
    /// What etcd itself showed.
    pub witness: Vec<Event>,
}
