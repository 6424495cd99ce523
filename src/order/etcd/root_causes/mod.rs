//! Groups contradictions by their root cause, with union-find. A store that went back makes reads, watches and later writes
//! disagree as long as its revisions last. A lost write is missing from every answer. A watch that jumped back delivers
//! everything twice.
//!
//! Contradictions join if they concern the revisions of one regression after it began, one version of one key, or one answer.
//! Watch flaws join if they concern one event in several watches, or overlapping revisions of one watch.

mod answers;
mod watches;

use super::Analysis;
use super::answers::Mismatch;
use super::regression::{Regression, Regressions};
use super::streams::Streams;
use super::timeline::{Timeline, Witness};
use crate::history::Symbol;
use crate::history::etcd::Recording;
use crate::ingest::Time;
use petgraph::unionfind::UnionFind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// The root cause of each contradiction, in the order of the tables of the analysis. A cause is an arbitrary number.
#[derive(Debug, Default)]
pub struct RootCauses {
    /// Causes of answers that went back.
    pub backward: Vec<u32>,
    /// Causes of contradictions of the timeline.
    pub contradictions: Vec<u32>,
    /// Causes of answers that contradict the timeline.
    pub mismatches: Vec<u32>,
    /// Causes of broken watch guarantees.
    pub flaws: Vec<u32>,
    /// Causes of unattributed revisions.
    pub unfilled: Vec<u32>,
    /// The store's regressions, each with its root cause.
    pub regressions: Vec<(u32, Regression)>,
    /// Root causes that show in more than one watch, or outside watches.
    shared: FxHashSet<u32>,
}

/// Keys and revisions that reads or events show.
#[derive(Debug, Default)]
pub struct ShownVersions(FxHashSet<(Symbol, i64)>);

impl ShownVersions {
    /// Collects the versions that a recording shows.
    pub fn of(recording: &Recording) -> ShownVersions {
        let events = recording.events.iter().map(|event| (event.key, event.revision));
        ShownVersions(events.chain(recording.pairs.iter().map(|pair| (pair.key, pair.revision))).collect())
    }

    /// The acknowledged write that an answer lacks and that no read or event shows: the operation, and the version.
    pub fn lost(&self, timeline: &Timeline, mismatch: &Mismatch) -> Option<(u32, u32)> {
        let (operation, version) = match *mismatch {
            Mismatch::Outdated { operation, version, .. } | Mismatch::Missing { operation, version, .. } => {
                (operation, version)
            }
            _ => return None,
        };
        let known = &timeline.versions[version as usize];
        let unseen = !self.0.contains(&(known.change.key, known.revision));
        (matches!(known.shown_by, Witness::Write(_)) && unseen).then_some((operation, version))
    }
}

/// A feature that two contradictions share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Common {
    /// A version: key and revision.
    Version(Symbol, i64),
    /// The answer to one operation.
    Answer(u32),
    /// A kind of flaw of one event: its number in `flaw_kind`, key and revision.
    Event(u8, Symbol, i64),
    /// A kind of flaw of one whole watch.
    Watch(u8, u32),
    /// A write that was shown before it was sent.
    Write(u32),
}

/// Limit on the comparisons of wrong counts with keys in one report: about a second of time.
const COMPARISONS: usize = 1 << 24;

struct Joining<'t> {
    recording: &'t Recording,
    timeline: &'t Timeline,
    /// The revisions that each contradiction is about.
    revisions: Vec<Option<(i64, i64)>>,
    sets: UnionFind<u32>,
    first: FxHashMap<Common, u32>,
    seen: ShownVersions,
    /// Lost versions by key: revision, and a trace.
    lost: FxHashMap<Symbol, Vec<(i64, u32)>>,
    /// The comparisons of wrong counts with keys so far.
    comparisons: Cell<usize>,
}

impl RootCauses {
    /// Groups all contradictions of an analysis.
    pub fn of(recording: &Recording, analysis: &Analysis) -> RootCauses {
        let Analysis { effects, timeline, proofs, backward, answers, streams, attribution, .. } = analysis;
        let contradictions = &timeline.contradictions;
        if backward.is_empty()
            && contradictions.is_empty()
            && answers.mismatches.is_empty()
            && streams.flaws.is_empty()
            && attribution.unattributed.is_empty()
        {
            return RootCauses::default();
        }
        let regressions = Regressions::of(recording, effects, timeline, proofs, backward);
        let mut joining = Joining {
            recording,
            timeline,
            revisions: Vec::new(),
            sets: UnionFind::new_empty(),
            first: FxHashMap::default(),
            seen: if answers.mismatches.is_empty() { ShownVersions::default() } else { ShownVersions::of(recording) },
            lost: FxHashMap::default(),
            comparisons: Cell::new(0),
        };
        joining.regressions(&regressions);
        let of_contradictions = joining.contradictions(&regressions);
        let of_mismatches = joining.mismatches(&answers.mismatches);
        let of_unfilled: Vec<u32> =
            attribution.unattributed.iter().map(|gap| joining.trace(Some((gap.revision, gap.revision)))).collect();
        let deliveries = joining.deliveries(&streams.flaws);
        let of_flaws = joining.flaws(&streams.flaws, &deliveries);
        joining.absorb(&regressions);
        joining.after_regressions(
            effects,
            &regressions,
            (&answers.mismatches, &of_mismatches),
            (&streams.flaws, &of_flaws),
            &deliveries,
        );
        joining.finish(&regressions, [of_contradictions, of_mismatches, of_flaws, of_unfilled], streams)
    }

    /// The root cause of a regression that moved writes at or below a revision before a time.
    pub fn moved_before(&self, revision: i64, time: Time) -> Option<u32> {
        let moved = |(_, regression): &&(u32, Regression)| {
            regression.wrote && regression.after <= revision && regression.from <= time
        };
        self.regressions.iter().find(moved).map(|(fault, _)| *fault)
    }

    /// The root cause of a regression that moved writes between two times.
    pub fn moved_between(&self, from: Time, until: Time) -> Option<u32> {
        let moved = |(_, regression): &&(u32, Regression)| {
            regression.wrote && regression.from <= until && regression.until >= from
        };
        self.regressions.iter().find(moved).map(|(fault, _)| *fault)
    }

    /// Whether a root cause shows in more than one watch, or outside watches.
    pub fn is_shared(&self, fault: u32) -> bool {
        self.shared.contains(&fault)
    }
}

impl Joining<'_> {
    fn trace(&mut self, revisions: Option<(i64, i64)>) -> u32 {
        self.revisions.push(revisions);
        self.sets.new_set()
    }

    fn join(&mut self, a: u32, b: u32) {
        self.sets.union(a, b);
    }

    fn share(&mut self, at: u32, common: Common) {
        match self.first.get(&common) {
            Some(&first) => self.join(first, at),
            None => drop(self.first.insert(common, at)),
        }
    }

    /// Whether a wrong count may be compared with so many keys. If not, it stays a root cause of its own.
    fn may_compare(&self, keys: usize) -> bool {
        self.comparisons.set(self.comparisons.get().saturating_add(keys));
        self.comparisons.get() <= COMPARISONS
    }

    /// Adds one trace for each regression, as the first traces.
    fn regressions(&mut self, regressions: &Regressions) {
        for regression in &regressions.all {
            self.trace(Some((regression.after + 1, regression.through)));
        }
    }

    fn finish(
        mut self,
        regressions: &Regressions,
        [contradictions, mismatches, flaws, unfilled]: [Vec<u32>; 4],
        streams: &Streams,
    ) -> RootCauses {
        let mut roots = |traces: &[u32]| -> Vec<u32> { traces.iter().map(|at| self.sets.find_mut(*at)).collect() };
        let numbers: Vec<u32> = (0..regressions.all.len() as u32).collect();
        let regressed = roots(&numbers);
        let mut faults = RootCauses {
            backward: roots(&regressions.of_backward),
            contradictions: roots(&contradictions),
            mismatches: roots(&mismatches),
            flaws: roots(&flaws),
            unfilled: roots(&unfilled),
            regressions: regressed.into_iter().zip(regressions.all.iter().copied()).collect(),
            shared: FxHashSet::default(),
        };
        let outside = [&faults.backward, &faults.contradictions, &faults.mismatches, &faults.unfilled];
        let mut shared: FxHashSet<u32> = outside.into_iter().flatten().copied().collect();
        let mut watch_of: FxHashMap<u32, u32> = FxHashMap::default();
        for ((watch, _), fault) in streams.flaws.iter().zip(&faults.flaws) {
            if *watch_of.entry(*fault).or_insert(*watch) != *watch {
                shared.insert(*fault);
            }
        }
        faults.shared = shared;
        faults
    }
}
