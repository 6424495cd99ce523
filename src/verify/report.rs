//! The parts of a saved report that can be verified. Unknown fields are ignored.

use crate::ingest::InputFile;
use serde::Deserialize;

/// The certificates of a saved report.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// `retrograde/report/1`.
    pub schema: String,
    /// The histories.
    pub histories: Vec<ReportedHistory>,
}

/// One history.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedHistory {
    /// The name.
    pub name: String,
    /// `kubernetes`, `etcd` or `operations`.
    pub kind: String,
    /// The verdict.
    pub verdict: String,
    /// The files.
    pub inputs: Vec<ReportedInput>,
    /// The findings.
    pub findings: Vec<ReportedFinding>,
    /// The proofs.
    #[serde(default)]
    pub proofs: Vec<Proof>,
}

/// One file.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedInput {
    /// The path as given to `check`.
    pub file: String,
}

/// A proof. A new kind needs a variant here and a decision in `verify::report`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Proof {
    /// An order that explains every answer of an operation log, or of a report of etcd.
    Linearization {
        /// The model.
        model: String,
        /// Numbers of operations in order, separated by blanks. For a report of etcd also `expired:` with a lease.
        order: String,
        /// For a report of etcd: the keys removed by ends of leases.
        #[serde(default)]
        removed: Vec<ReportedRemoval>,
    },
    /// Operations that no order explains.
    Core {
        /// The model.
        model: String,
        /// The parts of operations that count.
        claims: Vec<ReportedClaim>,
        /// Whether every claim is needed.
        minimal: bool,
    },
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The keys removed by the end of a lease.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedRemoval {
    /// The revision of the removal.
    pub revision: String,
    /// The keys.
    pub keys: Vec<String>,
}

/// The parts of an operation that count: [`crate::search::Claim`].
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ReportedClaim {
    /// The number of the operation.
    pub operation: u32,
    /// Whether its answer counts, or that it failed.
    pub answer: bool,
    /// Whether its invocation counts.
    pub invoked: bool,
    /// Whether its return counts.
    pub returned: bool,
}

/// One finding.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedFinding {
    /// The id.
    pub id: String,
    /// The rule.
    pub rule: String,
    /// The certificate of each occurrence.
    pub occurrences: Vec<ReportedCertificate>,
}

/// One certificate.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedCertificate {
    /// The facts.
    pub facts: Vec<ReportedFact>,
}

/// One fact.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedFact {
    /// The place in the evidence.
    pub source: ReportedSource,
    /// The revision.
    pub revision: Option<String>,
    /// The key, as `pods default/web-0`.
    pub key: Option<String>,
    /// The uid.
    pub uid: Option<String>,
    /// The audit id.
    pub audit_id: Option<String>,
}

/// A place in the evidence.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedSource {
    /// The path as given to `check`.
    pub file: String,
    /// Line, from 1; 0 for the whole file.
    pub line: u32,
    /// Byte offset in the decompressed content.
    pub offset: u64,
}

/// The input with this name. If the evidence was moved, the only input whose path has the same end.
pub(super) fn file_named<'a>(files: &'a [InputFile], name: &str) -> Option<&'a InputFile> {
    if let Some(file) = files.iter().find(|file| file.shown == name) {
        return Some(file);
    }
    let parts = |path: &str| path.split(['/', '\\']).rev().map(str::to_owned).collect::<Vec<_>>();
    let wanted = parts(name);
    let alike = |file: &InputFile| parts(&file.shown).iter().zip(&wanted).take_while(|(a, b)| a == b).count();
    let best = files.iter().map(alike).max().filter(|best| *best > 0)?;
    let mut found = files.iter().filter(|file| alike(file) == best);
    found.next().filter(|_| found.next().is_none())
}
