//! What the page draws, as data: times and revisions as offsets, names once, columns instead of rows.
//!
//! A JSON number of a browser is exact only below 2^53, so times are offsets from the first one in a unit that fits, and
//! revisions are offsets from a base that stands in full as decimal text.

use crate::ingest::Position;
use serde::Serialize;

/// The whole page.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    /// Version of the program that wrote it.
    pub version: &'static str,
    /// `holds`, `violated` or `unknown`.
    pub verdict: &'static str,
    /// The histories.
    pub histories: Vec<Picture>,
}

/// One history.
#[derive(Debug, Default, Serialize)]
pub(super) struct Picture {
    /// Its name.
    pub name: String,
    /// `kubernetes`, `etcd` or `operations`.
    pub kind: &'static str,
    /// `holds`, `violated` or `unknown`.
    pub verdict: &'static str,
    /// Why, where the word does not say it.
    pub reason: String,
    /// Nanoseconds since 1970 of time 0, decimal.
    pub base: String,
    /// Nanoseconds of one unit of time.
    pub unit: u64,
    /// Whether times are times; otherwise they are places in the order of the log.
    pub timed: bool,
    /// Names of the clocks whose times are drawn side by side, as recorded.
    pub clocks: Vec<String>,
    /// Revision counters.
    pub domains: Vec<Domain>,
    /// Keys, as `pods default/web-0`.
    pub keys: Vec<String>,
    /// What calls of an operation log, and requests to etcd, were and were told.
    pub words: Vec<String>,
    /// Paths of the evidence.
    pub files: Vec<String>,
    /// One lane a process life.
    pub lanes: Vec<Lane>,
    /// What was seen over time, one line a watcher and scope.
    pub lines: Vec<Line>,
    /// Marks of recorders: never evidence.
    pub marks: Vec<Band>,
    /// The findings, gravest first.
    pub findings: Vec<Finding>,
    /// How much was met and not decided, in words; empty for nothing.
    pub undecided: String,
    /// What was not checked.
    pub unchecked: Vec<String>,
    /// Lines of evidence that could not be used.
    pub problems: u64,
    /// Operations and deliveries that are too many for a page, and are left out away from the findings.
    pub omitted: [u64; 2],
}

/// One revision counter.
#[derive(Debug, Default, Serialize)]
pub(super) struct Domain {
    /// Its name.
    pub name: String,
    /// The revision of offset 0, decimal.
    pub base: String,
    /// The head: time, revision, time, revision; only climbs.
    pub head: Vec<i64>,
}

/// One process life.
#[derive(Debug, Default, Serialize)]
pub(super) struct Lane {
    /// The user name.
    pub client: String,
    /// What tells it from users of its kind.
    pub short: String,
    /// The life's label.
    pub life: String,
    /// Its operations, by begin.
    pub operations: Operations,
    /// Its watch events, by time.
    pub events: Events,
}

/// Operations as columns.
#[derive(Debug, Default, Serialize)]
pub(super) struct Operations {
    /// Begin.
    pub t: Vec<i64>,
    /// End; -1: nobody knows.
    pub u: Vec<i64>,
    /// Revision of the answer as an offset; -1: none.
    pub r: Vec<i64>,
    /// Verb: index into `VERBS` of the page.
    pub v: Vec<u8>,
    /// Key or -1.
    pub k: Vec<i64>,
    /// HTTP status; 0: no answer.
    pub s: Vec<u16>,
    /// File.
    pub f: Vec<u32>,
    /// Line.
    pub l: Vec<u32>,
    /// Of calls and requests to etcd: index into the words; for requests to Kubernetes there is none.
    pub w: Vec<usize>,
}

/// Watch events as columns.
#[derive(Debug, Default, Serialize)]
pub(super) struct Events {
    /// Time.
    pub t: Vec<i64>,
    /// Revision as an offset; -1: none.
    pub r: Vec<i64>,
    /// Key or -1.
    pub k: Vec<i64>,
    /// One letter each: Added, Modified, Deleted, Bookmark, End of the initial events, eRror, Unidentified.
    pub y: String,
    /// File.
    pub f: Vec<u32>,
    /// Line.
    pub l: Vec<u32>,
}

/// What one watcher had seen over time.
#[derive(Debug, Default, Serialize)]
pub(super) struct Line {
    /// The lane.
    pub lane: usize,
    /// The scope, as people write it.
    pub scope: String,
    /// The counter.
    pub domain: usize,
    /// Time, revision, time, revision.
    pub points: Vec<i64>,
    /// Where it ends; -1: with what is known of its lane.
    pub end: i64,
}

/// A stretch of time with a name.
#[derive(Debug, Serialize)]
pub(super) struct Band {
    /// Begin.
    pub t: i64,
    /// End; the begin again for a moment.
    pub u: i64,
    /// Its name.
    pub name: String,
}

/// One finding.
#[derive(Debug, Default, Serialize)]
pub(super) struct Finding {
    /// Its id, which links name.
    pub id: String,
    /// Slug of the rule.
    pub rule: &'static str,
    /// What the rule proves.
    pub proves: &'static str,
    /// `violation`, `suspect` or `hazard`.
    pub kind: &'static str,
    /// Whose promise broke.
    pub promise: String,
    /// The client.
    pub client: String,
    /// Its name without what all users of its kind share.
    pub short: String,
    /// Its process life.
    pub life: String,
    /// One sentence.
    pub summary: String,
    /// Why the facts contradict.
    pub why: String,
    /// What it leads to.
    pub consequence: String,
    /// What evidence would refute it.
    pub refuted_by: String,
    /// Other ways of asking: request, effect, why.
    pub prevention: Vec<[String; 3]>,
    /// Id of the finding that explains it.
    pub cause: Option<String>,
    /// Proofs beyond the one that is drawn.
    pub repeats: usize,
    /// The facts.
    pub facts: Vec<Fact>,
    /// Which fact came before which, and how that is known: index, index, reason.
    pub edges: Vec<(usize, usize, &'static str)>,
}

/// One fact.
#[derive(Debug, Default, Serialize)]
pub(super) struct Fact {
    /// What it says.
    pub says: String,
    /// Time on the picture; -1: none.
    pub t: i64,
    /// Revision on the picture; -1: none.
    pub r: i64,
    /// The counter of `r`.
    pub domain: usize,
    /// Its lane; -1: none.
    pub lane: i64,
    /// Which operation of the lane; -1: none.
    pub operation: i64,
    /// Time as text.
    pub time: String,
    /// Clock.
    pub clock: String,
    /// Revision as text.
    pub revision: String,
    /// The process.
    pub who: String,
    /// The server.
    pub server: String,
    /// Where it stands.
    #[serde(skip)]
    pub position: Position,
    /// File; -1: none.
    pub file: i64,
    /// Line from 1; 0: the whole file.
    pub line: u32,
    /// Audit id.
    pub audit: String,
    /// The line of the evidence, bodies reduced to identity.
    pub raw: String,
}
