//! The decisions of a client that rested on values which were true no more. Input: declared decisions with their reads. Output:
//! for each write that took effect, the premises that had certainly ended before. This is no rule, because most such decisions
//! are harmless: a later pass corrects them. `stale-premise` says which of them are faults.

pub(crate) use super::premise_index::ENDLESS;
use super::premise_index::PremiseIndex;
use crate::check::Evidence;
use crate::check::facts::commit_evidence;
use crate::history::{Operation, OperationId};
use crate::ingest::Position;
use crate::order::{Premise, Version};

/// The decisions of the chosen clients.
#[derive(Debug, Default)]
pub(crate) struct StaleDecisions {
    /// Writes of declared decisions that took effect.
    pub writes: u64,
    /// Those among them whose premises are not known; see [`ENDLESS`].
    pub undecided: u64,
    /// Those with a premise that had ended.
    pub stale: Vec<StaleDecision>,
}

/// A write whose premises had ended.
#[derive(Debug)]
pub(crate) struct StaleDecision {
    /// The write.
    pub write: OperationId,
    /// Its ended premises, in the order of reading.
    pub premises: Vec<EndedPremise>,
}

/// A premise that had ended before the write took effect.
#[derive(Debug)]
pub(crate) struct EndedPremise {
    /// The premise.
    pub premise: Premise,
    /// The premise in words.
    pub belief: String,
    /// The record of the read.
    pub read: Position,
    /// The version that ended it.
    pub end: Version,
    /// Whether the end was certainly complete before the read, so that the read was stale.
    pub read_was_stale: bool,
}

impl StaleDecisions {
    /// Collects them for the operations that `is_wanted` chooses. `None` if the evidence declares no decision.
    pub fn collect(evidence: &Evidence<'_>, is_wanted: impl Fn(&Operation) -> bool) -> Option<StaleDecisions> {
        let index = PremiseIndex::declared(evidence)?;
        let mut found = StaleDecisions::default();
        for (write, decided) in index.decided() {
            let o = evidence.history.operation(write);
            if !is_wanted(&o) || !commit_evidence::took_effect(evidence, write, &o) {
                continue;
            }
            found.writes += 1;
            let Some(decided) = decided else {
                found.undecided += 1;
                continue;
            };
            let ended = decided.used.iter().filter_map(|used| {
                let end = index.ended_before_commit(used, write)?;
                let premise = used.premise;
                Some(EndedPremise {
                    premise,
                    belief: index.words(&premise),
                    read: index.fact(&premise, "").position,
                    end,
                    read_was_stale: index.shown_before(&end, premise.moment),
                })
            });
            let premises: Vec<EndedPremise> = ended.collect();
            if !premises.is_empty() {
                found.stale.push(StaleDecision { write, premises });
            }
        }
        Some(found)
    }
}
