//! Replays the order of a report of etcd on a small store of its own, and compares every answer and every delivery.

mod facts;
mod flaw;
mod log;
mod members;
mod order;
mod store;
#[cfg(test)]
mod tests;
mod watches;

use super::operations::{ProofCheck, ProofFlaw};
use super::report::ReportedRemoval;
use crate::history::etcd::Recording;
pub(super) use facts::Records;
pub use flaw::EtcdFlaw;
use members::Compared;
pub use order::{Explained, Step, replay};
use std::collections::BTreeMap;

/// Checks the order in a saved report.
pub(super) fn check(recording: &Recording, verdict: &str, order: &str, removed: &[ReportedRemoval]) -> ProofCheck {
    if recording.operations.is_empty() && recording.watches.is_empty() && order.is_empty() {
        return match members::compare(recording) {
            _ if verdict == "violated" => ProofCheck::Flawed(ProofFlaw::OtherVerdict(verdict.to_owned())),
            Ok(Compared { entries: 0, revisions: 0 }) => ProofCheck::Open("only one member has each record".to_owned()),
            Ok(Compared { entries, revisions }) => ProofCheck::Confirmed(format!(
                "the members have the same {entries} committed entries and {revisions} rows of stores, of all that two have"
            )),
            Err(flaw) => ProofCheck::Flawed(flaw.into()),
        };
    }
    match decide(recording, verdict, order, removed) {
        Ok(Explained { operations, expired, never, not_compared: 0 }) => {
            let mut text = format!(
                "the order of {operations} operations keeps every interval and gives every answer and every delivery of {} watches",
                recording.watches.len()
            );
            if expired > 0 {
                text += &format!("; {expired} leases ended on their own");
            }
            if never > 0 {
                text += &format!("; {never} operations that failed or may have had no effect are not in it");
            }
            ProofCheck::Confirmed(text)
        }
        Ok(Explained { not_compared, .. }) => ProofCheck::Open(format!(
            "the order fits, but {not_compared} conditions are about what was not recorded: hashed values, leases of transactions"
        )),
        Err(flaw) => ProofCheck::Flawed(flaw),
    }
}

fn decide(
    recording: &Recording,
    verdict: &str,
    order: &str,
    removed: &[ReportedRemoval],
) -> Result<Explained, ProofFlaw> {
    if verdict == "violated" {
        return Err(ProofFlaw::OtherVerdict(verdict.to_owned()));
    }
    let number = |text: &str| text.parse::<i64>().map_err(|_| ProofFlaw::NoNumber(text.to_owned()));
    let step = |text: &str| match text.strip_prefix("expired:") {
        Some(lease) => Ok(Step::Expiry(number(lease)?)),
        None => text.parse::<u32>().map(Step::Operation).map_err(|_| ProofFlaw::NoNumber(text.to_owned())),
    };
    let steps: Vec<Step> = order.split_ascii_whitespace().map(step).collect::<Result<_, _>>()?;
    let mut of_revision: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for removal in removed {
        let keys = removal.keys.iter().map(String::as_str);
        of_revision.entry(number(&removal.revision)?).or_default().extend(keys);
    }
    Ok(replay(recording, &steps, &of_revision)?)
}
