//! Analysis of one etcd cluster: the revision order, when each revision was known, and the client's answers compared with both.
//! Input: a [`Recording`]. Output: an [`Analysis`], which keeps contradictions as data.
//!
//! Answers carry revisions, so the order of everything answered is a sort, and checking it is a sweep. Requests of unknown
//! outcome are assigned to unacknowledged revisions by bipartite matching. If that leaves questions open and nothing is
//! contradicted, a backtracking search tries to complete the order (see the module `reconstruction`).

mod agreement;
pub(crate) mod answers;
mod attachment;
mod attribution;
pub(crate) mod coherence;
pub(crate) mod compaction;
mod conditions;
pub(crate) mod effects;
mod key_counts;
pub(crate) mod lease;
pub(crate) mod linearization;
pub(crate) mod log;
mod matching;
pub(crate) mod presence;
pub(crate) mod proofs;
pub(crate) mod reconstruction;
pub(crate) mod regression;
pub(crate) mod replicas;
mod requests;
pub(crate) mod root_causes;
pub(crate) mod store;
pub(crate) mod streams;
pub(crate) mod timeline;
mod unlogged;
pub(crate) mod writers;

pub use answers::{Answers, Mismatch};
pub use attribution::Supposed;
pub use attribution::{Attribution, Unattributed, Unfit, Writer};
pub use coherence::Incoherence;
pub use compaction::{Compactions, Placing};
pub use effects::{Change, Class, Effects};
pub use lease::Misuse;
pub use linearization::Linearization;
pub use log::{Log, Logged, LoggedCompaction};
pub use presence::{Stay, Teller};
pub use proofs::{Backward, Proof, Proofs};
pub use reconstruction::SearchOutcome;
pub use regression::Regression;
pub use replicas::{Difference, Replicas, Stored};
pub use root_causes::{RootCauses, ShownVersions};
pub use streams::{Malformed, Past, Streams, WatchViolation};
pub use timeline::{Contradiction, State, Timeline, Version, Witness};
pub use unlogged::Unlogged;

use crate::history::etcd::Recording;

/// The results of analysing a recording.
#[derive(Debug)]
pub struct Analysis {
    /// The effect of each operation.
    pub effects: Effects,
    /// The members' logs, merged.
    pub log: Log,
    /// The members' stores, compared.
    pub replicas: Replicas,
    /// When revisions were known.
    pub proofs: Proofs,
    /// The revision order.
    pub timeline: Timeline,
    /// Answers older than what was complete when their requests were sent.
    pub backward: Vec<Backward>,
    /// Answers that contradict the revision order, and counts.
    pub answers: Answers,
    /// The writer of each revision.
    pub attribution: Attribution,
    /// Watches that contradict the revision order, and counts.
    pub streams: Streams,
    /// The compactions that were requested, with times.
    pub compactions: Compactions,
    /// The place of compactions in the order.
    pub placing: Placing,
    /// When leases are alive.
    pub lives: lease::Lives,
    /// Uses of leases while they were not alive.
    pub misuses: Vec<Misuse>,
    /// The highest revision that any response to a client names, including watch responses without events.
    pub told: i64,
    /// Answered requests without an entry in the log.
    pub unlogged: Vec<Unlogged>,
    /// Whether the order respects time for revokes and expiries that are presumed writers and for those that are not.
    pub settled: bool,
    /// The outcome of the search for writers of unshown revisions; `None` if no search was needed. On success the timeline
    /// includes it.
    pub reconstruction: Option<SearchOutcome>,
    /// Groups of contradictions with one root cause.
    pub root_causes: RootCauses,
}

/// Inputs that do not depend on the revision order.
struct Inputs {
    effects: Effects,
    log: Log,
    proofs: Proofs,
    lives: lease::Lives,
}

/// The revision order, and everything derived from it.
struct Derived {
    timeline: Timeline,
    backward: Vec<Backward>,
    answers: Answers,
    attribution: Attribution,
    streams: Streams,
    compactions: Compactions,
    placing: Placing,
    misuses: Vec<Misuse>,
    settled: bool,
}

impl Analysis {
    /// Analyses a recording.
    pub fn derive(recording: &Recording) -> Analysis {
        let effects = Effects::of(recording);
        let proofs = Proofs::of(recording);
        let log = Log::of(recording);
        let lives = lease::Lives::of(recording, &effects, &log, &proofs);
        let inputs = Inputs { log, proofs, effects, lives };
        let derived = Derived::of(recording, &inputs, &[]);
        let undecided = derived.is_open() && derived.contradicts_nothing() && inputs.effects.misshapen.is_empty();
        let reconstruction = undecided.then(|| derived.search(recording, &inputs));
        let derived = match &reconstruction {
            Some(SearchOutcome::Found(supposed)) => Derived::of(recording, &inputs, supposed),
            _ => derived,
        };
        let mut analysis = Analysis::new(inputs, derived, reconstruction);
        let headers = recording.responses.iter().map(|response| response.revision);
        analysis.told = headers.chain([analysis.proofs.last(), analysis.timeline.last()]).max().unwrap_or(1);
        analysis.replicas = Replicas::of(recording, &analysis.log);
        analysis.unlogged = unlogged::unlogged(recording, &analysis);
        analysis.root_causes = RootCauses::of(recording, &analysis);
        analysis
    }

    fn new(inputs: Inputs, derived: Derived, reconstruction: Option<SearchOutcome>) -> Analysis {
        let Inputs { effects, log, proofs, lives, .. } = inputs;
        let Derived { timeline, backward, answers, attribution, streams, compactions, placing, misuses, settled } =
            derived;
        Analysis {
            root_causes: RootCauses::default(),
            told: 1,
            replicas: Replicas::default(),
            unlogged: Vec::new(),
            reconstruction,
            effects,
            log,
            proofs,
            timeline,
            backward,
            answers,
            attribution,
            streams,
            compactions,
            placing,
            lives,
            misuses,
            settled,
        }
    }
}

impl Derived {
    /// Derives the order. `supposed`: presumed writers of unshown revisions, ascending.
    fn of(recording: &Recording, inputs: &Inputs, supposed: &[Supposed]) -> Derived {
        let Inputs { effects, log, proofs, lives } = inputs;
        let timeline = Timeline::rebuild(recording, effects, log, proofs.last(), supposed);
        let revision = |at: u32| recording.operations[at as usize].revision;
        // If another write was acknowledged at the revision, this operation did not write.
        let denied = |at: u32| timeline.revision(revision(at))?.writer.map(|_| false);
        let backward = proofs::backward(recording, effects, proofs, denied);
        let answers = Answers::compare(recording, effects, &timeline);
        let attribution = Attribution::of(recording, effects, &timeline, proofs, lives, supposed);
        let compactions = Compactions::of(recording, effects, log, &timeline);
        let streams = Streams::of(recording, effects, &timeline, &compactions);
        let placing = Placing::of(recording, effects, &timeline, &attribution, &streams.demands, &compactions);
        let writers: rustc_hash::FxHashSet<Writer> = attribution.writers.iter().map(|(_, writer)| *writer).collect();
        let made = |at: u32| Some(writers.contains(&Writer::Operation(at)));
        let ambiguous = backward.is_empty() && !effects.revokes.is_empty();
        let settled = (!ambiguous || proofs::backward(recording, effects, proofs, made).is_empty())
            && !lease::outlived(recording, &timeline, &attribution, lives)
            && !lease::survived(recording, effects, &timeline, &attribution)
            && !lease::needs_unnumbered(&timeline, &attribution, lives)
            && (attribution.doubted.is_empty() || lease::held(recording, effects, &timeline, &attribution));
        let misuses = lease::misuses(recording, effects, &timeline, &attribution, lives);
        Derived { timeline, backward, answers, attribution, streams, compactions, placing, misuses, settled }
    }

    /// Whether some question is undecided.
    fn is_open(&self) -> bool {
        self.attribution.open.is_some()
            || self.answers.open > 0
            || !self.attribution.undecided.is_empty()
            || !self.misuses.is_empty()
            || !self.settled
            || self.placing.stuck
    }

    /// Whether no contradiction is certain.
    fn contradicts_nothing(&self) -> bool {
        // Old servers sent progress just below the first requested revision, which hides no event.
        let hides = |(_, flaw): &(u32, WatchViolation)| !matches!(flaw, WatchViolation::EarlyProgress { .. });
        self.timeline.contradictions.is_empty()
            && self.backward.is_empty()
            && self.answers.mismatches.is_empty()
            && self.attribution.unattributed.is_empty()
            && self.attribution.unrevoked.is_empty()
            && self.placing.repeated.is_empty()
            && !self.streams.flaws.iter().any(hides)
            && !self.misuses.iter().any(|misuse| misuse.certain)
    }

    fn search(&self, recording: &Recording, inputs: &Inputs) -> SearchOutcome {
        let Inputs { effects, proofs, lives, .. } = inputs;
        let Derived { timeline, attribution, .. } = self;
        let known = reconstruction::Known { recording, effects, proofs, lives, timeline, attribution };
        reconstruction::search(known, |supposed| {
            let derived = Derived::of(recording, inputs, supposed);
            !derived.is_open() && derived.contradicts_nothing()
        })
    }
}
