//! The JSON document, type by type: the source of `docs/report.schema.json`.
//!
//! Fields stand in the order in which they are written, which is part of the format. Revisions are decimal texts, since
//! they have up to 128 bits and JSON numbers do not. What is not known is `null`, never absent.

use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the format.
pub const SCHEMA: &str = "retrograde/report/1";

/// The whole report.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// `holds`, `violated` or `unknown`: the worst of the histories.
    pub verdict: &'static str,
    /// The histories.
    pub histories: Vec<History<'a>>,
    /// What could not be used (at most so many a file; `inputs[]` has the counts).
    pub problems: Vec<Problem<'a>>,
}

/// One history.
#[derive(Debug, Serialize)]
pub struct History<'a> {
    /// Its name.
    pub name: &'a str,
    /// `kubernetes`, `etcd` or `operations`.
    pub kind: &'static str,
    /// Its files, evidence or not.
    pub inputs: Vec<Input<'a>>,
    /// `holds`, `violated` or `unknown`.
    pub verdict: &'static str,
    /// Its revision counters.
    pub domains: Vec<Domain<'a>>,
    /// Its clients: is what each one saw consistent with etcd's total order?
    pub clients: Vec<Client<'a>>,
    /// Every rule.
    pub rules: Vec<Rule<'a>>,
    /// Violations, then suspects, then hazards.
    pub findings: Vec<Finding<'a>>,
    /// Where the order of writes is known without a hole.
    pub coverage: Vec<Coverage<'a>>,
    /// Why the verdict is what it is, where the word does not say it.
    pub reason: &'a str,
    /// How many obligations were met and could not be decided; `rules[].undecided` says which and why.
    pub undecided: u64,
    /// What was not checked and why, one sentence each.
    pub unchecked: &'a [String],
    /// Proofs of the verdict, complete and for a machine: what `retrograde verify` decides again.
    pub proofs: Vec<Proof<'a>>,
}

/// One input file.
#[derive(Debug, Serialize)]
pub struct Input<'a> {
    /// The path as it was given.
    pub file: &'a str,
    /// The format, or `null` for a file that is no evidence.
    pub format: Option<&'static str>,
    /// Why it is no evidence.
    pub ignored: Option<&'a str>,
    /// Lines or documents met.
    pub lines: u64,
    /// Records that were understood.
    pub records: u64,
    /// Lines that could not be used.
    pub problems: u64,
    /// Lines or fields of unknown kind.
    pub unknown: u64,
    /// Bytes after decompression.
    pub bytes: u64,
}

/// One revision counter.
#[derive(Debug, Serialize)]
pub struct Domain<'a> {
    /// Its name.
    pub domain: &'a str,
    /// The resources that count by it.
    pub resources: Vec<String>,
    /// The lowest revision that the evidence mentions.
    pub first_revision: Option<String>,
    /// The highest.
    pub last_revision: Option<String>,
}

/// One client.
#[derive(Debug, Serialize)]
pub struct Client<'a> {
    /// The user name, verbatim.
    pub client: &'a str,
    /// Its process lives.
    pub incarnations: Vec<Incarnation<'a>>,
    /// As how many processes they are judged; those of one are compared with each other.
    pub processes: usize,
    /// `holds`, `violated`, `unknown` or `not-checked`.
    pub verdict: &'static str,
    /// Verdict by rule.
    pub guarantees: BTreeMap<&'a str, &'static str>,
    /// Why the verdict is what it is, where the word does not say it.
    pub reason: &'a str,
}

/// One process life.
#[derive(Debug, Serialize)]
pub struct Incarnation<'a> {
    /// Its label.
    pub incarnation: &'a str,
    /// What told it from the others.
    pub told_by: &'static str,
    /// The place that survives a restart.
    pub place: Option<&'a str>,
    /// The program in its user agent.
    pub program: &'a str,
}

/// What a rule came to.
#[derive(Debug, Serialize)]
pub struct Rule<'a> {
    /// Slug.
    pub rule: &'a str,
    /// `holds`, `violated`, `unknown` or `not-checked`.
    pub verdict: &'static str,
    /// Why, where the word does not say it.
    pub reason: &'a str,
    /// How many obligations were checked.
    pub checked: u64,
    /// How many were met and could not be decided, by reason.
    pub undecided: Vec<Undecided<'a>>,
}

/// Obligations that the evidence leaves open.
#[derive(Debug, Serialize)]
pub struct Undecided<'a> {
    /// Why.
    pub reason: &'a str,
    /// How many.
    pub count: u64,
}

/// One finding.
#[derive(Debug, Serialize)]
pub struct Finding<'a> {
    /// Hash of rule and witness.
    pub id: &'a str,
    /// Slug of the rule.
    pub rule: &'a str,
    /// `violation`, `hazard` or `suspect`.
    pub kind: &'static str,
    /// `server`, `client` or `nobody`.
    pub broken_by: &'static str,
    /// The user name, verbatim; the observer for a server's fault.
    pub client: Option<&'a str>,
    /// Its process life.
    pub incarnation: Option<&'a str>,
    /// The key, as `pods default/web-0`.
    pub key: Option<String>,
    /// The revisions that matter.
    pub revisions: Vec<String>,
    /// One sentence.
    pub summary: &'a str,
    /// The proof of the first occurrence.
    pub certificate: Certificate<'a>,
    /// Every occurrence, the first included.
    pub occurrences: Vec<Certificate<'a>>,
    /// Id of the finding that explains this one.
    pub consequence_of: Option<&'a str>,
    /// What follows from it, directly or not, by rule.
    pub consequences: Vec<Consequences<'a>>,
    /// A published bug that leaves the same traces: a hint, no part of the proof.
    pub resembles: Option<Published<'a>>,
    /// What would have prevented it.
    pub prevention: Vec<Prevention<'a>>,
    /// What evidence would refute it.
    pub refuted_by: &'a str,
    /// What it leads to.
    pub consequence: &'a str,
}

/// What follows from a finding under one rule.
#[derive(Debug, Serialize)]
pub struct Consequences<'a> {
    /// Slug of the rule.
    pub rule: &'a str,
    /// How many findings.
    pub findings: u64,
    /// To whom they happened, verbatim, in the order of names.
    pub clients: Vec<&'a str>,
}

/// A published bug.
#[derive(Debug, Serialize)]
pub struct Published<'a> {
    /// Its number, as `etcd#14370`.
    pub issue: &'a str,
    /// What it was, and what it leaves in a history.
    pub says: &'a str,
    /// Where it is told.
    pub address: String,
}

/// Facts that cannot be true together, or what they amount to.
#[derive(Debug, Serialize)]
pub struct Certificate<'a> {
    /// The facts.
    pub facts: Vec<Fact<'a>>,
    /// Why they contradict.
    pub reason: &'a str,
}

/// One fact.
#[derive(Debug, Serialize)]
pub struct Fact<'a> {
    /// Where it stands.
    pub source: Source<'a>,
    /// The revision that counts.
    pub revision: Option<String>,
    /// The key, as `pods default/web-0`.
    pub key: Option<String>,
    /// The uid.
    pub uid: Option<&'a str>,
    /// RFC 3339, on `clock`.
    pub time: Option<String>,
    /// The clock.
    pub clock: Option<&'a str>,
    /// The user name, verbatim.
    pub client: Option<&'a str>,
    /// The server.
    pub server: Option<&'a str>,
    /// The audit id.
    pub audit_id: Option<String>,
    /// What the record shows, as a clause.
    pub says: &'a str,
}

/// A place in the evidence.
#[derive(Debug, Serialize)]
pub struct Source<'a> {
    /// The path as it was given.
    pub file: &'a str,
    /// Line from 1; 0 where it is the whole file.
    pub line: u32,
    /// Byte offset of the line in the decompressed content.
    pub offset: u64,
}

/// Another way of asking.
#[derive(Debug, Serialize)]
pub struct Prevention<'a> {
    /// The request.
    pub request: &'a str,
    /// `impossible`, `narrowed` or `none`.
    pub effect: &'static str,
    /// The smallest revision that the server would have had to answer with.
    pub smallest_revision: Option<String>,
    /// Why.
    pub because: &'a str,
}

/// A stretch of the order of writes without a hole.
#[derive(Debug, Serialize)]
pub struct Coverage<'a> {
    /// The domain.
    pub domain: &'a str,
    /// The resource or scope; empty for the whole domain.
    pub scope: &'a str,
    /// After this revision.
    pub after: String,
    /// Through this one.
    pub through: String,
    /// What shows it.
    pub shown_by: &'a str,
}

/// What could not be used.
#[derive(Debug, Serialize)]
pub struct Problem<'a> {
    /// The path as it was given.
    pub file: &'a str,
    /// Line from 1; 0 where it is the whole file.
    pub line: u32,
    /// What stood to reason.
    pub expected: &'a str,
    /// What was found.
    pub found: &'a str,
}

/// A proof.
#[derive(Debug, Default, Serialize)]
pub struct Proof<'a> {
    /// `linearization`: `order` explains every answer. `core`: no order of the operations explains `claims`.
    pub kind: &'static str,
    /// The model that the operations are of.
    pub model: &'a str,
    /// Numbers of operations, first to last, separated by blanks; of a report of etcd also `expired:7`, the end of lease 7 that
    /// nobody asked for. There operations count from 0 by client, those of a client by their calls; what had no effect or may not
    /// have had is left out.
    pub order: Option<String>,
    /// Of a report of etcd: the keys that ends of leases removed.
    pub removed: Vec<Removed<'a>>,
    /// What is known of which operations.
    pub claims: Vec<Claim>,
    /// Whether it takes every claim.
    pub minimal: bool,
}

/// What the end of a lease removed.
#[derive(Debug, Serialize)]
pub struct Removed<'a> {
    /// The revision that it made.
    pub revision: String,
    /// The keys.
    pub keys: &'a [String],
}

/// What of an operation counts.
#[derive(Debug, Serialize)]
pub struct Claim {
    /// Its number: from 0, in the order of invocations, without reads that nobody saw the answer of; a drained queue counts one
    /// for each item.
    pub operation: u32,
    /// Its answer; of one that failed, that it failed. Otherwise only that it happened counts.
    pub answer: bool,
    /// That it did not happen before its invocation.
    pub invoked: bool,
    /// That it had happened by its return.
    pub returned: bool,
}
