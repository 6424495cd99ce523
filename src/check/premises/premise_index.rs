//! What writes were based on, as rules about premises look at it: premises with their truth, and what is certainly before what.

use crate::check::facts::commit_evidence;
use crate::check::facts::knowledge::Shown;
use crate::check::{Evidence, Fact};
use crate::history::{ClockId, OperationId, ResourceId, Revision, Verb};
use crate::ingest::Time;
use crate::order::{
    Change, Decisions, Pass, Premise, Premises, Reading, Source, ValidityInterval, ValidityIntervals, Version,
};
use rustc_hash::FxHashMap;

/// How many reads are looked at in all; what lies beyond is left undecided.
const READS: usize = 4_000_000;

/// How many of them for the writes of one pass: each of its writes rests on every read before it.
const READS_OF_PASS: usize = 1_000_000;

/// Why a write's premises are not known.
pub const ENDLESS: &str = "writes of decisions of which nobody recorded where their passes begin and end, or with too many reads and \
                           writes in one pass";

/// A premise, and when it was true.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// The premise.
    pub premise: Premise,
    /// When it was true.
    pub truth: ValidityInterval,
}

/// A write of a declared decision with its premises.
#[derive(Clone, Debug)]
pub struct Decided<'b> {
    /// The write.
    pub write: OperationId,
    /// Its pass.
    pub pass: &'b Pass,
    /// Which of the pass's writes it is.
    pub nth: usize,
    /// What single reads showed.
    pub used: Vec<Used>,
}

/// The premises of a history.
#[derive(Debug)]
pub struct PremiseIndex<'h> {
    evidence: Evidence<'h>,
    /// Truth of values.
    pub truths: ValidityIntervals<'h>,
    /// Declared decisions.
    pub decisions: Decisions,
    removals: FxHashMap<OperationId, Version>,
}

impl<'h> PremiseIndex<'h> {
    /// Derives it; `None` where no decision is declared.
    pub fn declared(evidence: &Evidence<'h>) -> Option<PremiseIndex<'h>> {
        let decisions = Decisions::collect(evidence.history);
        (!decisions.is_empty()).then(|| PremiseIndex::with(evidence, decisions))
    }

    /// Derives it.
    pub fn derive(evidence: &Evidence<'h>) -> PremiseIndex<'h> {
        PremiseIndex::with(evidence, Decisions::collect(evidence.history))
    }

    fn with(evidence: &Evidence<'h>, decisions: Decisions) -> PremiseIndex<'h> {
        let truths = ValidityIntervals::derive(evidence.history, evidence.order);
        PremiseIndex { evidence: *evidence, truths, decisions, removals: commit_evidence::removals(evidence) }
    }

    /// The writes of declared decisions, each with its premises; `None` in place of premises that are not known.
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

    /// A premise with its truth.
    pub fn used(&self, premise: Premise) -> Used {
        Used { premise, truth: premise.truth(self.evidence.history, &self.truths) }
    }

    /// The revision at which a write took effect, where it is certain.
    pub fn committed_at(&self, write: OperationId) -> Option<Revision> {
        let removal = self.removals.get(&write).map(|version| version.revision);
        removal.or_else(|| commit_evidence::attributed(&self.evidence, write))
    }

    /// The removal that a write did, where T knows it.
    pub fn removal(&self, write: OperationId) -> Option<Version> {
        self.removals.get(&write).copied()
    }

    /// Whether a version was certainly there before a write took effect: by their revisions, or because it had been shown when
    /// the write was sent.
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

    /// Whether a version was certainly there at a moment: somebody had been shown it, or its writer had its answer.
    pub fn shown_before(&self, version: &Version, moment: (Time, ClockId)) -> bool {
        let (history, clocks) = (self.evidence.history, &self.evidence.order.clocks);
        [Some(version.moment(history)), version.answered(history)]
            .into_iter()
            .flatten()
            .any(|seen| clocks.before(seen, moment))
    }

    /// Whether one version was certainly there before another: by their revisions, or because it had been shown when the write of
    /// the other was sent.
    pub fn before(&self, a: &Version, b: &Version) -> bool {
        let history = self.evidence.history;
        let (of_a, of_b) = (history.resource_of(a.key), history.resource_of(b.key));
        if history.share_counter(of_a, of_b) {
            return a.revision < b.revision;
        }
        let sent = self.truths.of(b.key, Reading::Present { uid: b.uid, revision: b.revision }, Default::default());
        sent.not_before(history).is_some_and(|sent| self.shown_before(a, sent))
    }

    /// The resource whose revisions stand for those of a counter: two resources with one share it for certain.
    pub fn counter(&self, resource: ResourceId) -> (bool, u32) {
        let placement = self.evidence.history.placements[resource.index()];
        if placement.overridable { (true, resource.0) } else { (false, placement.domain.0) }
    }

    /// Cites a premise.
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
                    if revision.is_some() { revision } else { self.truths.list_revision(id).unwrap_or_default() };
                evidence.item(id, premise.key, uid, shown, says)
            }
            Source::Request(id) => Fact { uid, ..evidence.request(id, revision, says) },
            Source::Event(index, watch) => evidence.delivery(index as usize, watch, says),
            Source::Cache(index) => evidence.cache_read(index as usize, says),
        }
    }

    /// What a premise says, in words: "pods default/web-0 at version 7", "no pods default/web-0".
    pub fn words(&self, premise: &Premise) -> String {
        let name = self.evidence.history.key_name(premise.key);
        match premise.reading {
            Reading::Present { revision, .. } if revision.is_some() => format!("{name} at version {revision}"),
            Reading::Present { uid, .. } => format!("{name} with uid {}", self.evidence.short_uid(uid)),
            Reading::Absent => format!("no {name}"),
        }
    }

    /// The first known version of the object that a write deleted.
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

/// Where a process learnt something.
pub fn source(shown: Shown) -> Source {
    match shown {
        Shown::Answer(id) => Source::Answer(id),
        Shown::List(id) => Source::List(id),
        Shown::Event(index, watch) => Source::Event(index, watch),
        Shown::Cache(index) => Source::Cache(index),
    }
}
