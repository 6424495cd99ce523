//! A verdict "holds" has an order that the independent verifier accepts, and no altered order is accepted.

use crate::chance::Chance;
use retrograde::check::{Judgement, Proof};
use retrograde::history::History;
use retrograde::history::etcd::{Outcome, Recording};
use retrograde::ingest::{InputFile, ReadOptions};
use retrograde::order::etcd::Writer;
use retrograde::report::{Format, Look, Part};
use retrograde::verify::etcd::{EtcdFlaw, Explained, Step, replay};
use retrograde::verify::{self as verifier, ProofCheck};
use std::collections::BTreeMap;

/// The report of a judgement must be confirmed as far as `verify` can decide.
pub fn verify(history: &History, judgement: &Judgement, files: &[InputFile], options: &ReadOptions) {
    let report = retrograde::report::Report { histories: vec![Part::of(history, judgement)] };
    let mut text = Vec::new();
    report.write(Format::Json, Look::default(), &mut text).expect("a vector takes everything");
    let report: verifier::Report = serde_json::from_slice(&text).expect("a report");
    let checks = verifier::report(&report, files, options, None, 1000);
    let findings = checks[0].findings.iter().zip(&report.histories[0].findings);
    for (check, finding) in findings {
        assert!(check.flaws.is_empty(), "{}: {:?}", finding.rule, check.flaws);
        assert_eq!(check.standing as usize, finding.occurrences.iter().map(|o| o.facts.len()).sum::<usize>());
    }
    let confirmed = |check: &ProofCheck| matches!(check, ProofCheck::Confirmed(_));
    assert!(checks[0].proofs.iter().all(confirmed), "{:?}", checks[0].proofs);
    assert!(judgement.verdict.word() != "holds" || !checks[0].proofs.is_empty(), "it holds without an order");
}

/// An order in the form of a report.
#[derive(Clone, Debug)]
pub struct Certificate {
    steps: Vec<Step>,
    removed: BTreeMap<i64, Vec<String>>,
}

impl Certificate {
    /// The order of a judgement.
    pub fn of(judgement: &Judgement) -> Option<Certificate> {
        let step = |filler: &Writer| match filler {
            Writer::Operation(at) => Step::Operation(*at),
            Writer::Expiry(lease) => Step::Expiry(*lease),
        };
        judgement.proofs.iter().find_map(|proof| match proof {
            Proof::Etcd { order, removed } => Some(Certificate {
                steps: order.iter().map(step).collect(),
                removed: removed.iter().cloned().collect(),
            }),
            _ => None,
        })
    }

    /// Verifies the order.
    pub fn replay(&self, recording: &Recording) -> Result<Explained, EtcdFlaw> {
        let removed = self.removed.iter();
        let removed = removed.map(|(revision, of)| (*revision, of.iter().map(String::as_str).collect())).collect();
        replay(recording, &self.steps, &removed)
    }

    /// An altered order that must be wrong, with the name of the alteration; `None` if there is nothing to alter.
    pub fn spoilt(&self, recording: &Recording, dice: &mut Chance) -> Option<(Certificate, &'static str)> {
        let mut other = self.clone();
        let length = self.steps.len() as u64;
        if length < 2 {
            return None;
        }
        let at = dice.below(length) as usize;
        let operation = |at: usize| match self.steps[at] {
            Step::Operation(of) => Some(&recording.operations[of as usize]),
            Step::Expiry(_) => None,
        };
        // A step with an answer or a revision is needed; a compaction without an answer may not be.
        let needed = |at: usize| operation(at).is_none_or(|o| o.outcome == Outcome::Answered);
        let what = match dice.below(3) {
            0 if needed(at) => {
                other.steps.remove(at);
                "left out"
            }
            // A lease without a recorded grant may end twice.
            1 if operation(at).is_some() => {
                other.steps.insert(dice.below(length + 1) as usize, self.steps[at]);
                "twice"
            }
            _ => {
                // Answers of different revisions cannot change places.
                let to = dice.below(length) as usize;
                let revision = |at: usize| operation(at).map_or(0, |o| o.revision);
                if revision(at) == 0 || revision(to) == 0 || revision(at) == revision(to) {
                    return None;
                }
                other.steps.swap(at, to);
                "swapped"
            }
        };
        Some((other, what))
    }
}
