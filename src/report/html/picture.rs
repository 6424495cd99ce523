//! The data of the page: times and revisions as offsets, names once, columns instead of rows.
//!
//! A browser represents integers exactly only below 2^53. Times are therefore offsets from the first one in a unit that fits, and
//! revisions are offsets from a base, which is written as decimal text.

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
    /// The reason, unless the verdict itself says it.
    pub reason: String,
    /// Nanoseconds since 1970 at time 0, decimal.
    pub base: String,
    /// Nanoseconds per unit of time.
    pub unit: u64,
    /// Whether times are real; otherwise they are ranks in the order of the log.
    pub timed: bool,
    /// Clocks whose times are drawn together, as recorded.
    pub clocks: Vec<String>,
    /// Revision counters.
    pub domains: Vec<Domain>,
    /// Keys, as `pods default/web-0`.
    pub keys: Vec<String>,
    /// Words for calls of an operation log, and for requests to etcd, with their answers.
    pub words: Vec<String>,
    /// Paths of the evidence.
    pub files: Vec<String>,
    /// One lane per incarnation.
    pub lanes: Vec<Lane>,
    /// Progress over time, one line per watcher and scope.
    pub lines: Vec<Line>,
    /// Recorders' notes, never evidence.
    pub marks: Vec<Band>,
    /// The findings, gravest first.
    pub findings: Vec<Finding>,
    /// Number of undecided obligations, in words; empty for none.
    pub undecided: String,
    /// What was not checked.
    pub unchecked: Vec<String>,
    /// Number of lines of evidence that could not be used.
    pub problems: u64,
    /// Number of operations and of deliveries left out, away from the findings.
    pub omitted: [u64; 2],
}

/// One revision counter.
#[derive(Debug, Default, Serialize)]
pub(super) struct Domain {
    /// Its name.
    pub name: String,
    /// The revision of offset 0, decimal.
    pub base: String,
    /// The watermark: time, revision, time, revision. Never falls.
    pub head: Vec<i64>,
}

/// One incarnation.
#[derive(Debug, Default, Serialize)]
pub(super) struct Lane {
    /// The user name.
    pub client: String,
    /// The part of the name that differs among users of its kind.
    pub short: String,
    /// The incarnation's label.
    pub life: String,
    /// Operations, by begin.
    pub operations: Operations,
    /// Watch events, by time.
    pub events: Events,
}

/// Operations as columns.
#[derive(Debug, Default, Serialize)]
pub(super) struct Operations {
    /// Begin.
    pub t: Vec<i64>,
    /// End; -1: unknown.
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
    /// Index into the words, for calls and requests to etcd; empty for Kubernetes.
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

/// The progress of one watcher over time.
#[derive(Debug, Default, Serialize)]
pub(super) struct Line {
    /// The lane.
    pub lane: usize,
    /// The scope, in words.
    pub scope: String,
    /// The counter.
    pub domain: usize,
    /// Time, revision, time, revision.
    pub points: Vec<i64>,
    /// End of the line; -1: the end of its lane.
    pub end: i64,
}

/// A named interval of time.
#[derive(Debug, Serialize)]
pub(super) struct Band {
    /// Begin.
    pub t: i64,
    /// End; equal to the begin for an instant.
    pub u: i64,
    /// Its name.
    pub name: String,
}

/// One finding.
#[derive(Debug, Default, Serialize)]
pub(super) struct Finding {
    /// The id, which links use.
    pub id: String,
    /// Slug of the rule.
    pub rule: &'static str,
    /// The statement that the rule proves.
    pub proves: &'static str,
    /// `violation`, `suspect` or `hazard`.
    pub kind: &'static str,
    /// The broken promise.
    pub promise: String,
    /// The client.
    pub client: String,
    /// The part of the client's name that differs among users of its kind.
    pub short: String,
    /// The incarnation.
    pub life: String,
    /// One sentence.
    pub summary: String,
    /// The reason why the facts contradict each other.
    pub why: String,
    /// Possible harm.
    pub consequence: String,
    /// Evidence that would refute it.
    pub refuted_by: String,
    /// Other requests: request, effect, reason.
    pub prevention: Vec<[String; 3]>,
    /// The command that compares them in every run; empty without one.
    pub exploration: String,
    /// Id of the finding that explains it.
    pub cause: Option<String>,
    /// Number of further proofs.
    pub repeats: usize,
    /// The facts.
    pub facts: Vec<Fact>,
    /// Order of facts: index, index, reason.
    pub edges: Vec<(usize, usize, &'static str)>,
}

/// One fact.
#[derive(Debug, Default, Serialize)]
pub(super) struct Fact {
    /// The fact, as a clause.
    pub says: String,
    /// Time in the picture; -1: none.
    pub t: i64,
    /// Revision in the picture; -1: none.
    pub r: i64,
    /// The counter of `r`.
    pub domain: usize,
    /// Its lane; -1: none.
    pub lane: i64,
    /// Index of the operation in the lane; -1: none.
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
    /// Position in the evidence.
    #[serde(skip)]
    pub position: Position,
    /// File; -1: none.
    pub file: i64,
    /// Line, from 1; 0: the whole file.
    pub line: u32,
    /// Audit id.
    pub audit: String,
    /// The excerpt of the line.
    pub raw: String,
}
