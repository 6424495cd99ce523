//! Runs the rules over one history. Input: history, order, options. Output: a [`Judgement`]. Each rule runs on a thread of the
//! pool, and results are taken in the order of `RULES`. A caller that stops waiting gets the judgement of the rules that have
//! ended; the others are unknown.

use super::clusters;
use super::etcd::Recorded;
use super::etcd::traces::Traces;
use super::judgement::{
    self, client_reports, coverage, explain_consequences, lost_input, order_findings, overall, rule_verdict,
    unchecked_evidence,
};
use super::options::{NOT_ASKED_FOR, OTHER_NATURE, Options};
use super::rule_result::{self, EndedRule, RuleResult};
use super::{CoverageReport, Evidence, Facts, Group, Judgement, Proof, RULES, Rule, RuleReport, Undecided, Verdict};
use crate::history::Nature;
use crate::history::{ClientId, History};
use crate::order::Order;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs the rules and returns their judgement.
pub fn judge(history: &History, order: &Order, options: &Options) -> Judgement {
    let facts = Facts::default();
    let rules = RuleRun::new(history, order, options, &facts);
    rules.run();
    rules.judgement()
}

/// The rules and the results of those that have ended.
#[derive(Debug)]
pub struct RuleRun<'h> {
    evidence: Evidence<'h>,
    /// The reason why no rule is run: the evidence belongs to two clusters.
    clusters: Option<String>,
    unchecked: Vec<String>,
    coverage: Vec<CoverageReport>,
    /// One for each of `RULES`.
    stages: Mutex<Vec<Stage>>,
}

/// The progress of a rule.
#[derive(Debug)]
enum Stage {
    Waiting,
    Running,
    Ended(EndedRule),
}

impl<'h> RuleRun<'h> {
    /// The rules before they run. `facts` must belong to this history.
    pub fn new(history: &'h History, order: &'h Order, options: &'h Options, facts: &'h Facts) -> RuleRun<'h> {
        let is_cluster = history.nature() == Nature::Kubernetes;
        RuleRun {
            evidence: Evidence { history, order, options, facts },
            clusters: if is_cluster { clusters::of_two(history, order) } else { None },
            unchecked: unchecked_evidence(history, order),
            coverage: coverage(history, order),
            stages: Mutex::new(RULES.iter().map(|_| Stage::Waiting).collect()),
        }
    }

    /// Runs the rules until all have ended or the run is halted.
    pub fn run(&self) {
        let options = self.evidence.options;
        RULES.par_iter().enumerate().for_each(|(at, rule)| {
            if !options.runs(rule.slug) || !self.applies(rule) || options.halted().is_some() {
                return;
            }
            self.set(at, Stage::Running);
            let mut result = RuleResult::new(rule.slug, &self.evidence);
            result.limits = options.limits();
            match &self.clusters {
                Some(two) => result.open = Some(two.clone()),
                None => rule.check(&self.evidence, &mut result),
            }
            self.set(at, Stage::Ended(result.ended()));
        });
    }

    /// The judgement of the rules that have ended; the others are unknown. Results of rules that end later are dropped.
    pub fn judgement(&self) -> Judgement {
        let Evidence { history, order, .. } = self.evidence;
        let stages = std::mem::take(&mut *self.stages());
        let mut findings = Vec::new();
        let mut rules = Vec::new();
        let mut problems = Vec::new();
        let mut proofs = Vec::new();
        let mut unchecked = self.unchecked.clone();
        let lost = lost_input(history);
        let mut per_client: FxHashMap<(ClientId, usize), u64> = FxHashMap::default();
        for (index, (rule, stage)) in RULES.iter().zip(stages).enumerate() {
            let ended = match stage {
                Stage::Ended(ended) => ended,
                stage => {
                    rules.push(judgement::unjudged(rule, self.not_ended(rule, &stage)));
                    continue;
                }
            };
            for (life, count) in &ended.checked_by {
                *per_client.entry((history.incarnations[life.index()].client, index)).or_default() += count;
            }
            let open =
                ended.undecided.iter().map(|(reason, count)| Undecided { reason: reason.to_string(), count: *count });
            let mut undecided: Vec<_> = open.collect();
            undecided.sort_by(|a, b| a.reason.cmp(&b.reason));
            let sentence = |open: &Undecided| format!("{}: {} not decided: {}", rule.slug, open.count, open.reason);
            unchecked.extend(undecided.iter().map(sentence));
            rules.push(RuleReport {
                rule: rule.slug,
                verdict: rule_verdict(rule, &ended, lost.as_deref()),
                checked: ended.checked,
                open: ended.open.clone(),
                undecided,
            });
            findings.extend(ended.findings);
            problems.extend(ended.problems);
            proofs.extend(ended.proofs);
        }
        for finding in &mut findings {
            finding.id = rule_result::identify(&self.evidence, finding);
        }
        explain_consequences(&mut findings);
        if let Some(recorded) = Recorded::of(&self.evidence).filter(|_| !findings.is_empty()) {
            let mut traces = Traces::of(&recorded);
            findings.iter_mut().for_each(|finding| finding.resembles = traces.resembled(finding));
        }
        order_findings(&mut findings);
        let clients = client_reports(history, order, &findings, &per_client, &rules, lost.as_deref());
        let verdict = self.clusters.clone().map_or_else(|| overall(history, &rules), Verdict::Unknown);
        if verdict == Verdict::Violated {
            // A proof that one rule's obligations hold does not prove the overall verdict.
            proofs.retain(|proof| !matches!(proof, Proof::Etcd { .. }));
        }
        Judgement { verdict, clients, rules, findings, coverage: self.coverage.clone(), unchecked, problems, proofs }
    }

    fn applies(&self, rule: &Rule) -> bool {
        let history = self.evidence.history;
        match history.nature() {
            Nature::Kubernetes => rule.group != Group::Operations,
            Nature::Etcd => rule.checks.are_about(history),
            Nature::Operations => rule.group == Group::Operations && rule.checks.are_about(history),
        }
    }

    /// The verdict of a rule that has not ended.
    fn not_ended(&self, rule: &Rule, stage: &Stage) -> Verdict {
        let options = self.evidence.options;
        if !options.runs(rule.slug) {
            return Verdict::NotChecked(NOT_ASKED_FOR.to_owned());
        }
        if !self.applies(rule) {
            return Verdict::NotChecked(OTHER_NATURE.to_owned());
        }
        let why = options.halted().unwrap_or("the judgement was drawn");
        Verdict::Unknown(match stage {
            Stage::Running => format!("{why} while this rule ran"),
            _ => format!("{why} before this rule began"),
        })
    }

    /// Sets the stage of a rule. After the judgement was drawn this has no effect.
    fn set(&self, at: usize, stage: Stage) {
        if let Some(place) = self.stages().get_mut(at) {
            *place = stage;
        }
    }

    fn stages(&self) -> MutexGuard<'_, Vec<Stage>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
