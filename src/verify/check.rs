//! Verifies a saved report against its evidence.

use super::etcd;
use super::facts::{self, FindingCheck};
use super::operations::{self, ProofCheck};
use super::report::{Proof, Report, ReportedHistory, file_named};
use crate::history::{self, Domains, History, Subject};
use crate::ingest::{InputFile, ReadOptions};

/// The result of verifying one history of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryCheck {
    /// For each finding.
    pub findings: Vec<FindingCheck>,
    /// For each proof.
    pub proofs: Vec<ProofCheck>,
}

/// Looks up the facts of all findings and decides all proofs again, in the order of the report. `model` is the declared model of
/// operation logs. `steps` bounds each question that is decided by trying all orders, in steps of the specification.
pub fn report(
    report: &Report,
    files: &[InputFile],
    options: &ReadOptions,
    model: Option<&str>,
    steps: u64,
) -> Vec<HistoryCheck> {
    let findings = facts::findings(report, files, options);
    let check = |(reported, mut findings): (&ReportedHistory, Vec<FindingCheck>)| {
        let of_etcd = facts::is_of_etcd(reported);
        let read = !reported.proofs.is_empty() || (of_etcd && !reported.findings.is_empty());
        let evidence = if read { evidence(reported, files, options, model) } else { None };
        if of_etcd {
            let cluster = evidence.as_ref().and_then(|history| Some((history.cluster()?, &history.inputs)));
            findings = match cluster {
                Some((cluster, inputs)) => {
                    let records = etcd::Records::of(&cluster.recording, inputs, &reported.findings);
                    reported.findings.iter().map(|finding| records.check(finding)).collect()
                }
                None => reported.findings.iter().map(|_| FindingCheck::without_evidence(&reported.name)).collect(),
            };
        }
        let proof = |proof: &Proof| match (proof, &evidence) {
            (Proof::Unknown, _) => ProofCheck::Open("a kind of proof that this version does not know".to_owned()),
            (_, None) => ProofCheck::Open(match reported.inputs.as_slice() {
                [input] => format!("{} is not among the evidence", input.file),
                _ => "its files are not all among the evidence".to_owned(),
            }),
            (Proof::Linearization { order, removed, .. }, Some(History { subject: Subject::Etcd(cluster), .. })) => {
                etcd::check(&cluster.recording, &reported.verdict, order, removed)
            }
            (Proof::Linearization { .. } | Proof::Core { .. }, Some(history)) => {
                operations::check(history, &reported.verdict, proof, steps)
            }
        };
        HistoryCheck { proofs: reported.proofs.iter().map(proof).collect(), findings }
    };
    report.histories.iter().zip(findings).map(check).collect()
}

/// The history behind a reported one, read again from its files.
fn evidence(
    reported: &ReportedHistory,
    files: &[InputFile],
    options: &ReadOptions,
    model: Option<&str>,
) -> Option<History> {
    let inputs = reported.inputs.iter().map(|input| file_named(files, &input.file).cloned());
    let inputs: Vec<InputFile> = inputs.collect::<Option<_>>()?;
    let renumbered = (0..).zip(inputs).map(|(id, file)| InputFile { id: crate::ingest::FileId(id), ..file });
    let mut history = history::load(renumbered.collect(), options, &Domains::default(), &());
    if let Some(model) = model {
        history.set_model(model);
    }
    Some(history)
}
