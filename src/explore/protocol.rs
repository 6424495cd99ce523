//! Protocols: programs of clients that share objects, as declared in a file or shipped. `docs/explorer.md` describes the format.

use super::expression::Expression;

/// A protocol, with one of its fixes applied or none.
#[derive(Debug, Default)]
pub struct Protocol {
    /// The name.
    pub name: String,
    /// The summary.
    pub about: String,
    /// The rules file with which `check` judges its runs.
    pub rules: String,
    pub(super) resources: Vec<Resource>,
    pub(super) keys: Vec<Key>,
    pub(super) clients: Vec<Client>,
    pub(super) steps: Vec<Step>,
    pub(super) properties: Vec<Property>,
    pub(super) expressions: Vec<Expression>,
    /// The objects at the begin, as their keys and contents.
    pub(super) objects: Vec<(u8, serde_json::Value)>,
    pub(super) limits: Limits,
    pub(super) server: Server,
}

impl Protocol {
    /// The bounds of its runs.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Replaces the bounds of its runs.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }
}

/// Faults that a run may have, and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// API servers.
    pub servers: u8,
    /// Writes that etcd commits.
    pub writes: u8,
    /// Crashes of clients.
    pub crashes: u8,
    /// Streams that break.
    pub breaks: u8,
    /// Requests for a version that is answered with 410.
    pub expirations: u8,
    /// Writes without an answer.
    pub timeouts: u8,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { servers: 2, writes: 8, crashes: 1, breaks: 1, expirations: 0, timeouts: 0 }
    }
}

/// The servers' release, as far as it matters.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Server {
    /// Whether the event of a deletion has the version of the last change before it (before 1.10, kubernetes#58545).
    pub old_version_in_deletions: bool,
}

#[derive(Debug)]
pub(super) struct Resource {
    pub name: String,
    /// The keys of the resource, ascending.
    pub keys: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Key {
    pub resource: u8,
    pub name: String,
}

#[derive(Debug)]
pub(super) struct Client {
    pub name: String,
    pub user: Option<String>,
    pub crashes: bool,
    /// Its steps: each program's first step, and the end of the last one.
    pub programs: Vec<std::ops::Range<u8>>,
    pub variables: Vec<Variable>,
}

/// What a client knows.
#[derive(Debug)]
pub(super) struct Variable {
    pub name: String,
    pub kind: VariableKind,
    /// Whether it outlives a crash.
    pub kept: bool,
    /// Whether several programs of the client use its variables.
    pub shared: bool,
}

/// What a variable holds: a state of a resource, or of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableKind {
    Resource(u8),
    Object(u8),
}

/// The version that a read asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// No version: the most recent state.
    Unset,
    /// `resourceVersion=0`: any state.
    Any,
    /// The version of a variable, or a later one.
    NotOlderThan(u8),
    /// Exactly the version of a variable.
    Exact(u8),
}

/// The version from which a broken stream resumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Resume {
    /// That of the last event.
    #[default]
    LastEvent,
    /// The highest of any event.
    Highest,
}

/// Preconditions of a write, from the object that it is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Preconditions {
    pub version: bool,
    pub uid: bool,
}

/// A stream of the changes of a resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub resource: u8,
    pub into: u8,
    pub resume: Resume,
    /// The state with which it begins, if it sends the initial events.
    pub initial: Option<Ask>,
    /// Whether the server may send bookmarks.
    pub bookmarks: bool,
}

#[derive(Debug)]
pub(super) enum Act {
    List { resource: u8, ask: Ask, into: u8 },
    Get { key: u8, ask: Ask, into: u8 },
    Watch(Watch),
    Create { key: u8, fields: Option<u16> },
    Apply { key: u8, fields: Option<u16>, base: Option<u8>, preconditions: Preconditions, force: bool },
    Patch { key: u8, fields: Option<u16>, base: Option<u8>, preconditions: Preconditions },
    Delete { key: u8, base: Option<u8>, preconditions: Preconditions },
    Decide(u16),
    Await(u16),
    Switch,
    Goto(u8),
    Stop,
}

/// A step of a program. Targets are steps; [`STOP`] ends the program.
#[derive(Debug)]
pub(super) struct Step {
    pub act: Act,
    /// The step waits until this expression is true, and is taken while it is.
    pub when: Option<u16>,
    /// The step waits until this variable shows the last write of the resource that was answered since the client's begin.
    pub barrier: Option<u8>,
    pub next: u8,
    /// For decisions.
    pub otherwise: u8,
    pub on_conflict: u8,
    pub on_missing: u8,
    pub on_expired: u8,
    pub on_timeout: u8,
    /// For streams.
    pub on_event: u8,
    /// What the decision of a write rests on: a variable and a key.
    pub because: Vec<(u8, u8)>,
}

/// The program has ended.
pub(super) const STOP: u8 = u8::MAX;

/// What must never happen.
#[derive(Debug)]
pub(super) struct Property {
    pub name: String,
    pub kind: PropertyKind,
}

#[derive(Debug)]
pub(super) enum PropertyKind {
    MonotonicReads,
    ReadYourWrites,
    NameReuse,
    DanglingReference,
    StalePremise,
    /// Two living objects of a resource have the same value in a declared field.
    DoubleAllocation {
        resource: u8,
        field: String,
    },
    /// An expression over all living objects of a resource, after every write to it.
    Invariant {
        resource: u8,
        expression: u16,
    },
}
