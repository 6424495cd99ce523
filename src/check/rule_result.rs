//! The results of one rule: findings, folded by cause, and counts of obligations. Invariant: memory is bounded by `LISTED`
//! findings of each kind; the others are only counted.

use super::certificate::Proof;
use super::facts::Evidence;
use super::finding::{Certificate, Draft, Finding, Kind};
use super::options::Limits;
use crate::check::facts::catalog::CROWDED;
use crate::history::{ClientId, IncarnationId, Revision};
use crate::ingest::Problem;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The most findings and repeats of one kind that a rule lists over one history. The others are counted.
const LISTED: u64 = 50_000;

/// The reason under which unlisted findings are counted.
const UNLISTED: &str = "findings beyond the limit of one kind";

/// Findings of one rule over one history.
pub struct RuleResult<'e> {
    rule: &'static str,
    evidence: &'e Evidence<'e>,
    folds: FxHashMap<(Kind, ClientId, String), usize>,
    /// The number of stated findings, by kind.
    stated: FxHashMap<Kind, u64>,
    /// Findings so far.
    pub findings: Vec<Finding>,
    /// Obligations checked.
    pub checked: u64,
    /// Obligations checked per process life.
    pub checked_by: FxHashMap<IncarnationId, u64>,
    /// Obligations that the evidence leaves open, by reason.
    pub undecided: FxHashMap<Cow<'static, str>, u64>,
    /// The reason why the rule as a whole is not decided, if it is not.
    pub open: Option<String>,
    /// Records that the rule could not use.
    pub problems: Vec<Problem>,
    /// Proofs that `verify` decides again.
    pub proofs: Vec<Proof>,
    /// The limits of the rule.
    pub limits: Limits,
}

/// The result of a rule that has ended.
#[derive(Debug)]
pub(super) struct EndedRule {
    /// [`RuleResult::findings`].
    pub findings: Vec<Finding>,
    /// [`RuleResult::checked`].
    pub checked: u64,
    /// [`RuleResult::checked_by`].
    pub checked_by: FxHashMap<IncarnationId, u64>,
    /// [`RuleResult::undecided`].
    pub undecided: FxHashMap<Cow<'static, str>, u64>,
    /// [`RuleResult::open`].
    pub open: Option<String>,
    /// [`RuleResult::problems`].
    pub problems: Vec<Problem>,
    /// [`RuleResult::proofs`].
    pub proofs: Vec<Proof>,
}

impl<'e> RuleResult<'e> {
    /// An empty result.
    pub fn new(rule: &'static str, evidence: &'e Evidence<'e>) -> RuleResult<'e> {
        RuleResult {
            rule,
            evidence,
            folds: FxHashMap::default(),
            stated: FxHashMap::default(),
            findings: Vec::new(),
            checked: 0,
            checked_by: FxHashMap::default(),
            undecided: FxHashMap::default(),
            open: None,
            problems: Vec::new(),
            proofs: Vec::new(),
            limits: Limits::default(),
        }
    }

    /// The result.
    pub(super) fn ended(self) -> EndedRule {
        let RuleResult { findings, checked, checked_by, undecided, open, problems, proofs, .. } = self;
        EndedRule { findings, checked, checked_by, undecided, open, problems, proofs }
    }

    /// One obligation of a process was checked (kept or broken).
    pub fn checked(&mut self, incarnation: IncarnationId) {
        self.checked += 1;
        if incarnation.is_some() {
            *self.checked_by.entry(incarnation).or_default() += 1;
        }
    }

    /// Several obligations of a process were checked.
    pub fn checked_many(&mut self, incarnation: IncarnationId, count: u64) {
        self.checked += count;
        if incarnation.is_some() && count > 0 {
            *self.checked_by.entry(incarnation).or_default() += count;
        }
    }

    /// One obligation could not be decided, and nothing suggests a violation. Reports show it; it does not change the verdict.
    pub fn undecided(&mut self, reason: impl Into<Cow<'static, str>>) {
        *self.undecided.entry(reason.into()).or_default() += 1;
    }

    /// Several obligations could not be decided.
    pub fn undecided_many(&mut self, reason: impl Into<Cow<'static, str>>, count: u64) {
        if count > 0 {
            *self.undecided.entry(reason.into()).or_default() += count;
        }
    }

    /// A declaration was not examined, because the rule has too many of them.
    pub fn crowded(&mut self) {
        self.undecided("declarations of resources with more versions than one run looks at");
        self.open.get_or_insert_with(|| CROWDED.to_owned());
    }

    /// Whether one more finding of a kind would be listed. If not, it is counted and need not be built.
    pub fn lists(&mut self, kind: Kind) -> bool {
        let stated = self.stated.entry(kind).or_default();
        let is_listed = *stated < LISTED;
        if !is_listed {
            *stated += 1;
            self.undecided(UNLISTED);
        }
        is_listed
    }

    /// Counts findings that the rule does not list.
    pub fn unlisted(&mut self, count: u64) {
        self.undecided_many(UNLISTED, count);
    }

    /// Whether more violations were stated than are listed. A rule that compares many streams with many changes then stops:
    /// the verdict is known, and the rest counts as undecided.
    pub fn is_full(&self) -> bool {
        self.stated.get(&Kind::Violation).is_some_and(|stated| *stated >= LISTED)
    }

    /// States a finding.
    pub fn found(&mut self, draft: Draft) {
        self.state(draft, None);
    }

    /// States a finding with its root cause. Findings of one root cause explain each other.
    pub fn found_of(&mut self, draft: Draft, fault: u32) {
        self.state(draft, Some(fault));
    }

    fn state(&mut self, draft: Draft, fault: Option<u32>) {
        let stated = self.stated.entry(draft.kind).or_default();
        *stated += 1;
        if *stated > LISTED {
            self.undecided(UNLISTED);
            return;
        }
        let history = self.evidence.history;
        let client = match draft.incarnation.is_some() {
            true => history.incarnations[draft.incarnation.index()].client,
            false => ClientId::NONE,
        };
        let mut revisions: Vec<Revision> = draft.facts.iter().map(|f| f.revision).filter(|r| r.is_some()).collect();
        revisions.sort_unstable();
        revisions.dedup();
        let certificate = Certificate { facts: draft.facts, reason: draft.reason };
        let fold = (draft.kind, client, draft.cause);
        if let Some(&at) = self.folds.get(&fold) {
            let finding = &mut self.findings[at];
            finding.occurrences.push(certificate);
            finding.faults.extend(fault.filter(|fault| finding.faults.last() != Some(fault)));
            return;
        }
        self.folds.insert(fold, self.findings.len());
        self.findings.push(Finding {
            id: String::new(),
            rule: self.rule,
            kind: draft.kind,
            broken_by: draft.broken_by,
            client,
            incarnation: draft.incarnation,
            key: draft.key,
            revisions,
            summary: draft.summary,
            occurrences: vec![certificate.clone()],
            certificate,
            consequence_of: None,
            faults: fault.into_iter().collect(),
            resembles: None,
            prevention: Vec::new(),
            refuted_by: draft.refuted_by,
            consequence: draft.consequence,
        });
    }
}

/// The identifier of a finding: a 64-bit FNV-1a hash of the rule and its first certificate. Positions in files do not count,
/// so another recording of the same history yields the same identifier.
pub fn identify(evidence: &Evidence<'_>, finding: &Finding) -> String {
    let history = evidence.history;
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |text: &str| {
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    eat(finding.rule);
    eat(finding.kind_word());
    eat(history.client_name(finding.incarnation));
    for fact in &finding.certificate.facts {
        eat(&history.key_name(fact.key));
        eat(&fact.revision.to_string());
        eat(&history.audit_id(fact.audit_id));
        eat(&fact.says);
    }
    format!("{hash:016x}")
}

impl Finding {
    /// The word of the kind in reports.
    pub fn kind_word(&self) -> &'static str {
        match self.kind {
            Kind::Violation => "violation",
            Kind::Suspect => "suspect",
            Kind::Hazard => "hazard",
        }
    }
}
