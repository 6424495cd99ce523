//! The premises of writes as rules read them. Input: declared decisions, reads and the revision order. Output: for each write
//! the premises with their validity intervals, and proofs that one version precedes another. Invariant: a comparison is true
//! only if it is certain, by revisions of one counter or by times. Reads beyond `READS` leave a write's premises unknown.

use crate::check::facts::commit_evidence;
use crate::check::facts::knowledge::Shown;
use crate::check::{Evidence, Fact};
use crate::history::{ClockId, OperationId, ResourceId, Revision, Verb};
use crate::ingest::Time;
use crate::order::{
    Change, Decisions, Pass, Premise, Premises, Reading, Source, ValidityInterval, ValidityIntervals, Version,
};
use rustc_hash::FxHashMap;

/// The most reads that are examined in one history. The rest is left undecided.
const READS: usize = 4_000_000;

/// The most reads for the writes of one pass. Each write rests on every read before it, so the cost is quadratic.
const READS_OF_PASS: usize = 1_000_000;

/// The reason why a write's premises are unknown.
pub const ENDLESS: &str =
    "writes of decisions whose passes have no recorded begin and end, or have too many reads and writes";

/// A premise with its validity interval.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// The premise.
    pub premise: Premise,
    /// The revisions at which it was true.
    pub truth: ValidityInterval,
}

/// A write of a declared decision with its premises.
#[derive(Clone, Debug)]
pub struct Decided<'b> {
    /// The write.
    pub write: OperationId,
    /// Its pass.
    pub pass: &'b Pass,
    /// Its index among the writes of the pass.
    pub nth: usize,
    /// The premises that its reads of single objects showed.
    pub used: Vec<Used>,
}

/// The premises of a history.
#[derive(Debug)]
pub struct PremiseIndex<'h> {
    evidence: Evidence<'h>,
    /// The validity intervals of values.
    pub validity: ValidityIntervals<'h>,
    /// Declared decisions.
    pub decisions: Decisions,
    removals: FxHashMap<OperationId, Version>,
}

impl<'h> PremiseIndex<'h> {
    /// Derives the index; `None` without a declared decision.
    pub fn declared(evidence: &Evidence<'h>) -> Option<PremiseIndex<'h>> {
        let decisions = Decisions::collect(evidence.history);
        (!decisions.is_empty()).then(|| PremiseIndex::with(evidence, decisions))
    }

    /// Derives the index, even without a declared decision.
    pub fn derive(evidence: &Evidence<'h>) -> PremiseIndex<'h> {
        PremiseIndex::with(evidence, Decisions::collect(evidence.history))
    }

    fn with(evidence: &Evidence<'h>, decisions: Decisions) -> PremiseIndex<'h> {
        let validity = ValidityIntervals::derive(evidence.history, evidence.order);
        PremiseIndex { evidence: *evidence, validity, decisions, removals: commit_evidence::removals(evidence) }
    }

    /// The writes of declared decisions with their premises; `None` for premises beyond the limits or of a pass without known
    /// ends.
    pub fn decided<'b>(&'b self) -> impl Iterator<Item = (OperationId, Option<Decided<'b>>)> + 'b {
        let history = self.evidence.history;
        let mut left = READS;
        let all = self.decisions.passes.iter().flat_map(move |pass| {
            let mut of_pass = 0;
            (0..pass.writes.len()).map(move |nth| {
                let cost = pass.cost(history, nth);
                of_pass += cost;
                (pass, nth, cost, of_pass <= READS_OF_PASS)
            })
        });
        let mut premises: Option<Premises<'b, Used>> = None;
        all.map(move |(pass, nth, cost, fits)| {
            let write = pass.writes[nth];
            if cost > left || !fits {
                return (write, None);
            }
            left -= cost;
            let premises = match &mut premises {
                Some(premises) if std::ptr::eq(premises.pass, pass) => premises,
                other => other.insert(Premises::new(pass)),
            };
            let used = premises.of(history, nth, |premise| self.used(premise));
            (write, used.map(|used| Decided { write, pass, nth, used }))
        })
    }

    /// A premise with its validity interval.
    pub fn used(&self, premise: Premise) -> Used {
        Used { premise, truth: premise.truth(self.evidence.history, &self.validity) }
    }

    /// The revision at which a write took effect, if that is certain.
    pub fn committed_at(&self, write: OperationId) -> Option<Revision> {
        let removal = self.removals.get(&write).map(|version| version.revision);
        removal.or_else(|| commit_evidence::attributed(&self.evidence, write))
    }

    /// The removal that a write did, if the revision order has it.
    pub fn removal(&self, write: OperationId) -> Option<Version> {
        self.removals.get(&write).copied()
    }

    /// Whether a version certainly existed before a write took effect: by revisions, or because it was shown before the write
    /// was sent.
    pub fn before_commit(&self, version: &Version, write: OperationId) -> bool {
        let history = self.evidence.history;
        let o = history.operation(write);
        let resource = history.resource_of(version.key);
        let by_revision = self
            .committed_at(write)
            .filter(|_| o.key.is_some() && history.share_counter(resource, history.resource_of(o.key)))
            .is_some_and(|commit| version.revision < commit);
        by_revision || self.shown_before(version, (o.invoke, o.clock))
    }

    /// The version that ended a premise of a write, if that certainly was before the write took effect and the write itself did
    /// not end it.
    pub fn ended_before_commit(&self, used: &Used, write: OperationId) -> Option<Version> {
        used.truth.ended_by.filter(|end| end.writer != write && self.before_commit(end, write))
    }

    /// Whether a version certainly existed at a moment: a client had been shown it, or its writer had the answer.
    pub fn shown_before(&self, version: &Version, moment: (Time, ClockId)) -> bool {
        let (history, clocks) = (self.evidence.history, &self.evidence.order.clocks);
        [Some(version.moment(history)), version.answered(history)]
            .into_iter()
            .flatten()
            .any(|seen| clocks.before(seen, moment))
    }

    /// Whether one version certainly preceded another: by revisions of one counter, or because it was shown before the write
    /// of the other was sent.
    pub fn before(&self, a: &Version, b: &Version) -> bool {
        let history = self.evidence.history;
        let (of_a, of_b) = (history.resource_of(a.key), history.resource_of(b.key));
        if history.share_counter(of_a, of_b) {
            return a.revision < b.revision;
        }
        let sent = self.validity.of(b.key, Reading::Present { uid: b.uid, revision: b.revision }, Default::default());
        sent.not_before(history).is_some_and(|sent| self.shown_before(a, sent))
    }

    /// The counter of a resource as a comparable value. Two resources with equal values certainly share it.
    pub fn counter(&self, resource: ResourceId) -> (bool, u32) {
        let placement = self.evidence.history.placements[resource.index()];
        if placement.overridable { (true, resource.0) } else { (false, placement.domain.0) }
    }

    /// The record of a premise as a fact.
    pub fn fact(&self, premise: &Premise, says: impl Into<String>) -> Fact {
        let evidence = &self.evidence;
        let (uid, revision) = match premise.reading {
            Reading::Present { uid, revision } => (uid, revision),
            Reading::Absent => Default::default(),
        };
        match premise.source {
            Source::Answer(id) => Fact { key: premise.key, ..evidence.operation(id, revision, says) },
            Source::List(id) => {
                let shown =
                    if revision.is_some() { revision } else { self.validity.list_revision(id).unwrap_or_default() };
                evidence.item(id, premise.key, uid, shown, says)
            }
            Source::Request(id) => Fact { uid, ..evidence.request(id, revision, says) },
            Source::Event(index, watch) => evidence.delivery(index as usize, watch, says),
            Source::Cache(index) => evidence.cache_read(index as usize, says),
        }
    }

    /// The premise in words: "pods default/web-0 at version 7", "no pods default/web-0".
    pub fn words(&self, premise: &Premise) -> String {
        let name = self.evidence.history.key_name(premise.key);
        match premise.reading {
            Reading::Present { revision, .. } if revision.is_some() => format!("{name} at version {revision}"),
            Reading::Present { uid, .. } => format!("{name} with uid {}", self.evidence.short_uid(uid)),
            Reading::Absent => format!("no {name}"),
        }
    }

    /// The first known version of the object that a write deleted, if it is a creation.
    pub fn birth_of_deleted(&self, write: OperationId) -> Option<Version> {
        let o = self.evidence.history.operation(write);
        let uid = Some(o.answer_uid).filter(|uid| uid.is_some()).or(self.removal(write).map(|v| v.uid))?;
        if o.verb != Verb::Delete || !uid.is_some() {
            return None;
        }
        let versions = self.evidence.order.timeline.versions(o.key);
        versions.iter().find(|v| v.uid == uid).filter(|v| v.change == Change::Created)
    }
}

/// The source of a process's knowledge.
pub fn source(shown: Shown) -> Source {
    match shown {
        Shown::Answer(id) => Source::Answer(id),
        Shown::List(id) => Source::List(id),
        Shown::Event(index, watch) => Source::Event(index, watch),
        Shown::Cache(index) => Source::Cache(index),
    }
}
