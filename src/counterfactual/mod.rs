//! Other ways of asking, put to the same recorded T and clocks: what would have prevented a finding.
//!
//! Input: findings with their certificates. Output: [`Prevention`]s. Invariant: changes nothing else of a finding, and says
//! nothing that T does not show: every line is computed for this occurrence, from what was certainly committed before the
//! request at fault was sent.

mod premise;
mod read;
mod write;

use crate::check::{Evidence, Finding, Judgement, Kind, Options, Prevention};
use crate::history::{History, OperationId};
use crate::order::Order;

/// Fills in what would have prevented each violation and suspect.
pub fn prevent(history: &History, order: &Order, options: &Options, judgement: &mut Judgement) {
    let evidence = Evidence { history, order, options };
    for finding in judgement.findings.iter_mut().filter(|f| f.kind != Kind::Hazard) {
        finding.prevention = preventions(&evidence, finding);
    }
}

fn preventions(evidence: &Evidence<'_>, finding: &Finding) -> Vec<Prevention> {
    let Some(fault) = fault(evidence, finding) else { return Vec::new() };
    match finding.rule {
        "monotonic-reads" | "read-your-writes" | "stale-consistent-read" | "below-minimum" => {
            read::preventions(evidence, finding, fault)
        }
        "resume-backwards" | "resume-from-item" => read::resumptions(evidence, finding, fault),
        "intermediate-state" | "false-absence" | "stale-premise" | "read-skew" => {
            premise::preventions(evidence, finding)
        }
        "name-reuse" | "ghost-actor" | "blind-write" => write::preventions(evidence, finding, fault),
        _ => Vec::new(),
    }
}

/// The request at fault: that of the last fact which has one.
fn fault(evidence: &Evidence<'_>, finding: &Finding) -> Option<OperationId> {
    let facts = finding.certificate.facts.iter().rev();
    facts.map(|f| f.operation).find(|o| o.is_some() && o.index() < evidence.history.operations.len())
}
