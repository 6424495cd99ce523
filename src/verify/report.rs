//! A saved report, as far as it can be decided again.

use crate::ingest::InputFile;
use serde::Deserialize;

/// A saved report, as far as its certificates go.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// `retrograde/report/1`.
    pub schema: String,
    /// Its histories.
    pub histories: Vec<ReportedHistory>,
}

/// One history of it.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedHistory {
    /// Its name.
    pub name: String,
    /// `kubernetes`, `etcd` or `operations`.
    pub kind: String,
    /// Its verdict.
    pub verdict: String,
    /// Its files.
    pub inputs: Vec<ReportedInput>,
    /// Its findings.
    pub findings: Vec<ReportedFinding>,
    /// Its proofs.
    #[serde(default)]
    pub proofs: Vec<Proof>,
}

/// One file of it.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedInput {
    /// The path as it was given.
    pub file: String,
}

/// A proof. A further kind is a variant here, and what decides it in [`super::report`].
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Proof {
    /// An order that explains every answer of an operation log, or of a report of etcd.
    Linearization {
        /// The model.
        model: String,
        /// Numbers of operations, first to last, separated by blanks; of a report of etcd also `expired:` and a lease.
        order: String,
        /// Of a report of etcd: the keys that ends of leases removed.
        #[serde(default)]
        removed: Vec<ReportedRemoval>,
    },
    /// What no order of the operations explains.
    Core {
        /// The model.
        model: String,
        /// What counts of which operations.
        claims: Vec<ReportedClaim>,
        /// Whether it takes every claim.
        minimal: bool,
    },
    /// One that this version does not know.
    #[serde(other)]
    Unknown,
}

/// What the end of a lease removed.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedRemoval {
    /// The revision that it made.
    pub revision: String,
    /// The keys.
    pub keys: Vec<String>,
}

/// What of an operation counts: [`crate::search::Claim`].
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ReportedClaim {
    /// Its number.
    pub operation: u32,
    /// Its answer, or that it failed.
    pub answer: bool,
    /// Its invocation.
    pub invoked: bool,
    /// Its return.
    pub returned: bool,
}

/// One finding.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedFinding {
    /// Its id.
    pub id: String,
    /// Its rule.
    pub rule: String,
    /// The certificate of each occurrence.
    pub occurrences: Vec<ReportedCertificate>,
}

/// One certificate.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedCertificate {
    /// Its facts.
    pub facts: Vec<ReportedFact>,
}

/// One fact.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportedFact {
    /// Where it stands.
    pub source: ReportedSource,
    /// The revision that counts.
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
    /// The path as it was given.
    pub file: String,
    /// Line from 1; 0 where it is the whole file.
    pub line: u32,
    /// Byte offset in the decompressed content.
    pub offset: u64,
}

/// The input of a name: as it was given then or, evidence being moved, the only one whose path ends alike.
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
