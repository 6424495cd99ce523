//! Decides proofs about operation logs again, from the log.

use super::report::{Proof, ReportedClaim};
use super::{CoreCheck, CoreFlaw, EtcdFlaw, Finality, OrderFlaw, claims, linearization};
use crate::history::{History, calls};
use crate::model::{Log, Model, Spec, Touch, TypedLog, Visitor};
use crate::search::{Call, Claim, History as Intervals, Outcome, SpecHistory};
use std::collections::{HashMap, HashSet};

/// The result of deciding a proof again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofCheck {
    /// It holds; the sentence states what was confirmed.
    Confirmed(String),
    /// It was not decided; the sentence states why.
    Open(String),
    /// It is no proof.
    Flawed(ProofFlaw),
}

/// The reason why a proof is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofFlaw {
    /// No such model.
    #[error("there is no model `{0}`")]
    NoSuchModel(String),
    /// A number in the order cannot be parsed.
    #[error("`{0}` is not the number of an operation")]
    NoNumber(String),
    /// The log has gaps, so no order proves that all of it is linearizable.
    #[error("parts of the log are missing or do not fit the model, so no order explains all of it")]
    NotWhole,
    /// The order is no linearization.
    #[error(transparent)]
    Order(#[from] OrderFlaw),
    /// The core is none.
    #[error(transparent)]
    Core(#[from] CoreFlaw),
    /// The order does not explain the report of etcd.
    #[error(transparent)]
    Etcd(#[from] EtcdFlaw),
    /// It proves another verdict than the report states.
    #[error("it proves another verdict than `{0}`")]
    OtherVerdict(String),
}

/// Decides a proof about a log again.
pub(super) fn check(history: &History, verdict: &str, proof: &Proof, steps: u64) -> ProofCheck {
    let log = Log { calls: history.calls(), names: &history.names };
    if log.calls.is_empty() {
        return ProofCheck::Open("the evidence is no operation log".to_owned());
    }
    let (claimed, proves) = match proof {
        Proof::Linearization { model, .. } => (model, "holds"),
        Proof::Core { model, .. } => (model, "violated"),
        Proof::Unknown => return ProofCheck::Open("no proof about an operation log".to_owned()),
    };
    // A log with gaps is unknown, even if the order explains the rest.
    if verdict != proves && !(proves == "holds" && verdict == "unknown") {
        return ProofCheck::Flawed(ProofFlaw::OtherVerdict(verdict.to_owned()));
    }
    let Some(model) = Model::named(claimed) else {
        return ProofCheck::Flawed(ProofFlaw::NoSuchModel(claimed.clone()));
    };
    // If more than one model fits, the caller named one.
    match Model::of(log) {
        Ok(found) if found != model => ProofCheck::Open(format!(
            "it is about a model of {claimed}, and the log is of {} (--model {claimed}, if that is meant)",
            found.name()
        )),
        _ => match model.visit(log, Decision { calls: history.calls(), proof, steps }) {
            Ok(check) => check,
            Err(flaw) => ProofCheck::Flawed(flaw),
        },
    }
}

struct Decision<'d> {
    calls: &'d calls::Calls,
    proof: &'d Proof,
    steps: u64,
}

impl Visitor for Decision<'_> {
    type Output = Result<ProofCheck, ProofFlaw>;

    fn visit<S: Spec>(self, log: TypedLog<S>) -> Self::Output {
        // Below this rank the log is complete: nothing is missing, and everything fits the model.
        let mismatches = log.mismatches.iter().map(|(at, _)| self.calls.calls.get(*at as usize).invoke.rank);
        let whole = mismatches.chain(self.calls.lost.as_ref().map(|lost| lost.from)).min();
        match self.proof {
            Proof::Linearization { order, .. } => {
                if whole.is_some() {
                    return Err(ProofFlaw::NotWhole);
                }
                let number = |text: &str| text.parse::<u32>().map_err(|_| ProofFlaw::NoNumber(text.to_owned()));
                let order: Vec<u32> = order.split_ascii_whitespace().map(number).collect::<Result<_, _>>()?;
                let Some((history, _)) = self.history(&log, i64::MAX, &|_| true) else {
                    return Ok(ProofCheck::Open("too many operations".to_owned()));
                };
                linearization(&log.spec, &history, &order)?;
                let (all, never) = (order.len(), history.calls().len() - order.len());
                Ok(ProofCheck::Confirmed(format!(
                    "the order of {all} operations keeps every interval and gives every answer{}",
                    if never > 0 {
                        format!("; {never} that failed or were never answered are not in it")
                    } else {
                        String::new()
                    }
                )))
            }
            Proof::Core { claims, minimal, .. } => self.core(&log, whole.unwrap_or(i64::MAX), claims, *minimal),
            Proof::Unknown => Ok(ProofCheck::Open("a kind of proof that this version does not know".to_owned())),
        }
    }
}

impl Decision<'_> {
    fn core<S: Spec>(
        &self,
        log: &TypedLog<S>,
        below: i64,
        claimed: &[ReportedClaim],
        minimal: bool,
    ) -> Result<ProofCheck, ProofFlaw> {
        let connected = connected(log, claimed);
        let Some((history, numbers)) = self.history(log, below, &|at| connected[at as usize]) else {
            return Ok(ProofCheck::Open("too many operations".to_owned()));
        };
        let placed: HashMap<u32, u32> = numbers.iter().copied().zip(0..).collect();
        let claim = |claim: &ReportedClaim| {
            let ReportedClaim { operation, answer, invoked, returned } = *claim;
            let calls = log.operations.len();
            let call = *placed.get(&operation).ok_or(CoreFlaw::NoSuchCall { call: operation, calls })?;
            Ok(Claim { call, answer, invoked, returned })
        };
        let core: Vec<Claim> = claimed.iter().map(claim).collect::<Result<_, ProofFlaw>>()?;
        let check = claims(&log.spec, &history, &core, minimal, self.steps).map_err(|flaw| flaw.renamed(&numbers))?;
        let count = match core.len() {
            1 => "the operation".to_owned(),
            count => format!("the {count} operations"),
        };
        Ok(match (check.refuted, minimal, check.irreducible) {
            (Finality::TooLarge, ..) => self.whole(log, &history, &count),
            (Finality::Decided, false, _) => {
                ProofCheck::Confirmed(format!("no order explains {count}, whatever the others did"))
            }
            (Finality::Decided, true, Finality::Decided) => ProofCheck::Confirmed(format!(
                "no order explains {count}, whatever the others did, and it takes every answer, invocation and return that is claimed"
            )),
            (Finality::Decided, true, Finality::TooLarge) => ProofCheck::Confirmed(format!(
                "no order explains {count}, whatever the others did; that it takes all of it was not decided: too many orders"
            )),
        })
    }

    /// The weaker question, with all that is known of the other calls, if the stronger one has too many orders.
    fn whole<S: Spec>(&self, log: &TypedLog<S>, history: &SpecHistory<S>, count: &str) -> ProofCheck {
        let known = (0..).zip(history.calls()).filter(|(_, call)| call.outcome != Outcome::Unknown);
        let all: Vec<Claim> =
            known.map(|(call, _)| Claim { call, answer: true, invoked: true, returned: true }).collect();
        let open = format!("that none explains {count}, whatever the others did, was not: too many orders");
        match claims(&log.spec, history, &all, false, self.steps) {
            Ok(CoreCheck { refuted: Finality::Decided, .. }) => ProofCheck::Confirmed(format!(
                "no order explains the {} operations that may be related to it; {open}",
                all.len()
            )),
            Ok(_) => ProofCheck::Open(format!("not decided in {} steps", self.steps)),
            Err(flaw) => ProofCheck::Flawed(ProofFlaw::Core(flaw)),
        }
    }

    /// The wanted operations below a rank, with their numbers in the log.
    fn history<S: Spec>(
        &self,
        log: &TypedLog<S>,
        below: i64,
        wanted: &dyn Fn(u32) -> bool,
    ) -> Option<(SpecHistory<S>, Vec<u32>)> {
        let (mut given, mut numbers) = (Vec::new(), Vec::new());
        for (at, typed) in (0..).zip(&log.operations) {
            let call = self.calls.calls.get(typed.call as usize);
            if call.invoke.rank >= below || !wanted(at) {
                continue;
            }
            let outcome = match &typed.answer {
                _ if call.ret.rank >= below => Outcome::Unknown,
                _ if typed.failed => Outcome::Failed,
                Some(answer) => Outcome::Completed { returned: call.ret.rank, answer: answer.clone() },
                None => Outcome::Unknown,
            };
            // The intervals already contain the order of each process, so every call gets a process of its own.
            let process = numbers.len() as u32;
            given.push(Call { process, operation: typed.operation.clone(), invoke: call.invoke.rank, outcome });
            numbers.push(at);
        }
        Some((Intervals::new(given).ok()?, numbers))
    }
}

/// The operations connected to a core: those that share a part of the object with it, or with a connected operation. No other can
/// matter.
fn connected<S: Spec>(log: &TypedLog<S>, core: &[ReportedClaim]) -> Vec<bool> {
    let count = log.operations.len();
    let mut by_key: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut keys = Vec::with_capacity(count);
    let touch = Touch::of(&log.spec, log.operations.iter().map(|typed| &typed.operation));
    for (at, typed) in (0..).zip(&log.operations) {
        let of = touch.parts(&typed.operation);
        of.iter().for_each(|&key| by_key.entry(key).or_default().push(at));
        keys.push(of);
    }
    let mut open: Vec<u32> = core.iter().map(|claim| claim.operation).filter(|&at| (at as usize) < count).collect();
    let mut found: HashSet<u32> = open.iter().copied().collect();
    while let Some(at) = open.pop() {
        for key in &keys[at as usize] {
            open.extend(by_key.remove(key).into_iter().flatten().filter(|&other| found.insert(other)));
        }
    }
    (0..count as u32).map(|at| found.contains(&at)).collect()
}
