//! The JSON document, type by type: the source of `docs/report.schema.json`.
//!
//! The order of fields is part of the format. Revisions are decimal texts, since they have up to 128 bits and JSON numbers have
//! not. An unknown value is `null`, never absent.

use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the format.
pub const SCHEMA: &str = "retrograde/report/1";

/// The form of a revision; 0 is the bound of an interval that begins with the first one.
#[cfg(test)]
const REVISION: &str = "^[0-9]{1,39}$";

/// What `retrograde check --json` writes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[cfg_attr(
    test,
    schemars(
        title = "retrograde report, version 1",
        extend("$comment" = "Each object has its fields in the order of `required`. Revisions are decimal texts of up to 128 bits. An unknown value is null or empty, never absent.")
    )
)]
pub struct Document<'a> {
    /// Name and version of the format.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    pub schema: &'static str,
    /// The worst of the histories: `violated`, then `unknown`, then `holds`.
    #[cfg_attr(test, schemars(extend("enum" = ["holds", "violated", "unknown"])))]
    pub verdict: &'static str,
    /// The histories.
    pub histories: Vec<History<'a>>,
    /// Lines that could not be used, up to a limit per file; `inputs[]` has the counts.
    pub problems: Vec<Problem<'a>>,
}

/// One history.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct History<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its kind.
    #[cfg_attr(test, schemars(extend("enum" = ["kubernetes", "etcd", "operations"])))]
    pub kind: &'static str,
    /// Its files, evidence or not.
    pub inputs: Vec<Input<'a>>,
    /// The verdict.
    #[cfg_attr(test, schemars(extend("enum" = ["holds", "violated", "unknown"])))]
    pub verdict: &'static str,
    /// Its revision counters.
    pub domains: Vec<Domain<'a>>,
    /// Its clients. For each: is what it saw consistent with etcd's total order?
    pub clients: Vec<Client<'a>>,
    /// Every rule.
    pub rules: Vec<Rule<'a>>,
    /// Violations, then suspects, then hazards.
    pub findings: Vec<Finding<'a>>,
    /// The parts of the revision order that are known without a gap.
    pub coverage: Vec<Coverage<'a>>,
    /// The reason for the verdict, unless the verdict itself says it.
    pub reason: &'a str,
    /// Number of obligations that could not be decided; `rules[].undecided` has the reasons.
    pub undecided: u64,
    /// What was not checked and why, one sentence each.
    pub unchecked: &'a [String],
    /// Complete proofs of the verdict, which `retrograde verify` decides again.
    pub proofs: Vec<Proof<'a>>,
}

/// One input file.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Input<'a> {
    /// The path as given.
    pub file: &'a str,
    /// The format, or `null` for a file that is no evidence.
    pub format: Option<&'static str>,
    /// The reason why it is no evidence.
    pub ignored: Option<&'a str>,
    /// Number of lines or documents.
    pub lines: u64,
    /// Number of records that were read.
    pub records: u64,
    /// Number of lines that could not be used.
    pub problems: u64,
    /// Number of lines or fields of unknown kind.
    pub unknown: u64,
    /// Bytes after decompression.
    pub bytes: u64,
}

/// One revision counter.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Domain<'a> {
    /// Its name.
    pub domain: &'a str,
    /// The resources with this counter.
    pub resources: Vec<String>,
    /// The lowest revision in the evidence.
    #[cfg_attr(test, schemars(regex(pattern = REVISION)))]
    pub first_revision: Option<String>,
    /// The highest revision in the evidence.
    #[cfg_attr(test, schemars(regex(pattern = REVISION)))]
    pub last_revision: Option<String>,
}

/// One client.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Client<'a> {
    /// The user name, verbatim.
    pub client: &'a str,
    /// Its incarnations (process lives).
    pub incarnations: Vec<Incarnation<'a>>,
    /// Number of processes it counts as. Only incarnations of one process are compared with each other.
    pub processes: usize,
    /// The verdict.
    #[cfg_attr(test, schemars(extend("enum" = ["holds", "violated", "unknown", "not-checked"])))]
    pub verdict: &'static str,
    /// Verdict by rule.
    #[cfg_attr(test, schemars(extend("additionalProperties" = { "enum": ["holds", "violated", "unknown", "not-checked"] })))]
    pub guarantees: BTreeMap<&'a str, &'static str>,
    /// The reason for the verdict, unless the verdict itself says it.
    pub reason: &'a str,
}

/// One incarnation (process life) of a client.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Incarnation<'a> {
    /// Its label.
    pub incarnation: &'a str,
    /// The evidence that separates it from the others.
    pub told_by: &'static str,
    /// The place that survives a restart.
    pub place: Option<&'a str>,
    /// The program in its user agent.
    pub program: &'a str,
}

/// The result of a rule.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Rule<'a> {
    /// Slug.
    pub rule: &'a str,
    /// The verdict.
    #[cfg_attr(test, schemars(extend("enum" = ["holds", "violated", "unknown", "not-checked"])))]
    pub verdict: &'static str,
    /// The reason, unless the verdict itself says it.
    pub reason: &'a str,
    /// Number of obligations that were checked.
    pub checked: u64,
    /// Numbers of obligations that could not be decided, by reason.
    pub undecided: Vec<Undecided<'a>>,
}

/// Obligations that the evidence leaves open.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Undecided<'a> {
    /// The reason.
    pub reason: &'a str,
    /// Number of obligations.
    pub count: u64,
}

/// One finding.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Finding<'a> {
    /// Hash of rule and witness.
    pub id: &'a str,
    /// Slug of the rule.
    pub rule: &'a str,
    /// Its kind.
    #[cfg_attr(test, schemars(extend("enum" = ["violation", "hazard", "suspect"])))]
    pub kind: &'static str,
    /// The side that broke the rule.
    #[cfg_attr(test, schemars(extend("enum" = ["server", "client", "nobody"])))]
    pub broken_by: &'static str,
    /// The user name, verbatim; for a server's fault, that of the observer.
    pub client: Option<&'a str>,
    /// The incarnation of the client.
    pub incarnation: Option<&'a str>,
    /// The key, as `pods default/web-0`.
    pub key: Option<String>,
    /// The revisions that matter.
    #[cfg_attr(test, schemars(inner(regex(pattern = REVISION))))]
    pub revisions: Vec<String>,
    /// One sentence.
    pub summary: &'a str,
    /// The proof of the first occurrence.
    pub certificate: Certificate<'a>,
    /// Every occurrence, the first included.
    pub occurrences: Vec<Certificate<'a>>,
    /// Id of the finding that explains this one.
    pub consequence_of: Option<&'a str>,
    /// All consequences, direct or not, by rule.
    pub consequences: Vec<Consequences<'a>>,
    /// A published bug that leaves the same traces: a hint, no part of the proof.
    pub resembles: Option<Published<'a>>,
    /// Requests that would have prevented it.
    pub prevention: Vec<Prevention<'a>>,
    /// Evidence that would refute it.
    pub refuted_by: &'a str,
    /// Possible harm.
    pub consequence: &'a str,
}

/// The consequences of a finding under one rule.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Consequences<'a> {
    /// Slug of the rule.
    pub rule: &'a str,
    /// Number of findings.
    pub findings: u64,
    /// The affected clients, verbatim, in the order of names.
    pub clients: Vec<&'a str>,
}

/// A published bug.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Published<'a> {
    /// Its number, as `etcd#14370`.
    pub issue: &'a str,
    /// The bug, and its traces in a history.
    pub says: &'a str,
    /// The address of its report.
    pub address: String,
}

/// Facts that cannot be true together, or that prove the finding otherwise.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Certificate<'a> {
    /// The facts.
    pub facts: Vec<Fact<'a>>,
    /// The reason why they contradict each other.
    pub reason: &'a str,
}

/// One fact.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Fact<'a> {
    /// The place in the evidence.
    pub source: Source<'a>,
    /// The revision that matters.
    #[cfg_attr(test, schemars(regex(pattern = REVISION)))]
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
    /// The content of the record, as a clause.
    pub says: &'a str,
}

/// A place in the evidence.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Source<'a> {
    /// The path as given.
    pub file: &'a str,
    /// Line, from 1; 0 for the whole file.
    pub line: u32,
    /// Byte offset of the line in the decompressed content.
    pub offset: u64,
}

/// Another request.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Prevention<'a> {
    /// The request.
    pub request: &'a str,
    /// Its effect on the finding.
    #[cfg_attr(test, schemars(extend("enum" = ["impossible", "narrowed", "none"])))]
    pub effect: &'static str,
    /// The smallest revision with which the server could have answered.
    #[cfg_attr(test, schemars(regex(pattern = REVISION)))]
    pub smallest_revision: Option<String>,
    /// The reason.
    pub because: &'a str,
}

/// An interval of revisions without a gap in the order of writes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Coverage<'a> {
    /// The domain.
    pub domain: &'a str,
    /// The resource or scope; empty for the whole domain.
    pub scope: &'a str,
    /// Exclusive lower bound.
    #[cfg_attr(test, schemars(regex(pattern = REVISION)))]
    pub after: String,
    /// Inclusive upper bound.
    #[cfg_attr(test, schemars(regex(pattern = REVISION)))]
    pub through: String,
    /// The evidence that shows it.
    pub shown_by: &'a str,
}

/// A line that could not be used.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Problem<'a> {
    /// The path as given.
    pub file: &'a str,
    /// Line, from 1; 0 for the whole file.
    pub line: u32,
    /// What was expected.
    pub expected: &'a str,
    /// What was found.
    pub found: &'a str,
}

/// A proof.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Proof<'a> {
    /// `linearization`: `order` explains every answer. `core`: no order of the operations explains `claims`.
    #[cfg_attr(test, schemars(extend("enum" = ["linearization", "core"])))]
    pub kind: &'static str,
    /// The model of the operations.
    pub model: &'a str,
    /// Numbers of operations in order, separated by blanks. For a report of etcd also `expired:7`: lease 7 ended without a
    /// request. Numbers count from 0, for a report of etcd by client, then by call. Operations that had no effect, or perhaps had
    /// none, are left out.
    #[cfg_attr(test, schemars(regex(pattern = r"^((expired:-?)?[0-9]+( (expired:-?)?[0-9]+)*)?$")))]
    pub order: Option<String>,
    /// For a report of etcd: the keys that ends of leases removed.
    pub removed: Vec<Removed<'a>>,
    /// The parts of operations that matter.
    pub claims: Vec<Claim>,
    /// Whether every claim is needed.
    pub minimal: bool,
}

/// The keys removed by the end of a lease.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Removed<'a> {
    /// The revision of the removal.
    #[cfg_attr(test, schemars(regex(pattern = REVISION)))]
    pub revision: String,
    /// The keys.
    pub keys: &'a [String],
}

/// The parts of an operation that matter.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Claim {
    /// The number of the operation, from 0, in the order of invocations. Reads without an answer are not counted; a drained queue
    /// counts one operation per item.
    pub operation: u32,
    /// Whether its answer matters; for a failed operation, that it failed. Otherwise only that it happened matters.
    pub answer: bool,
    /// Whether it matters that it did not happen before its invocation.
    pub invoked: bool,
    /// Whether it matters that it had happened by its return.
    pub returned: bool,
}
