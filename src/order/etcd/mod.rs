//! What is known of one etcd cluster: T, when its revisions were known, and what clients were told, held against it.
//!
//! Answers carry revisions, so the order of everything answered is a sort, and checking it a sweep. What is open is which
//! requests of unknown outcome made the revisions that nobody acknowledged: a matching.

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
pub use root_causes::{RootCauses, Sightings};
pub use streams::{Malformed, Past, Streams, WatchViolation};
pub use timeline::{Contradiction, State, Timeline, Version, Witness};

use crate::history::etcd::{Operation, Recording, Request};

/// Everything that is known of a recording.
#[derive(Debug)]
pub struct Analysis {
    /// What each operation did.
    pub effects: Effects,
    /// The members' logs as one.
    pub log: Log,
    /// When revisions were known.
    pub proofs: Proofs,
    /// T.
    pub timeline: Timeline,
    /// Answers from before what was complete when they were asked for.
    pub backward: Vec<Backward>,
    /// Answers held against T.
    pub answers: Answers,
    /// Who made what.
    pub attribution: Attribution,
    /// Watches held against T.
    pub streams: Streams,
    /// What was asked to be compacted when.
    pub compactions: Compactions,
    /// The place of compactions.
    pub placing: Placing,
    /// When leases are alive.
    pub lives: lease::Lives,
    /// Uses of leases outside of their lives.
    pub misuses: Vec<Misuse>,
    /// The highest revision that clients were told of, also by watches that went on without saying what it was.
    pub told: i64,
    /// Acknowledged transactions of which the log has no entry.
    pub unlogged: Vec<u32>,
    /// Whether the order keeps time where ends of leases that seem to have written are taken to have, and others not.
    pub settled: bool,
    /// How looking for what made revisions that nobody showed ended, where there are any: T has what was found.
    pub reconstruction: Option<SearchOutcome>,
    /// Which contradictions come of one fault.
    pub root_causes: RootCauses,
}

/// What comes first, whatever T is.
struct Inputs {
    effects: Effects,
    log: Log,
    proofs: Proofs,
    lives: lease::Lives,
}

/// What follows from T, and T.
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
    /// Of a recording.
    pub fn derive(recording: &Recording) -> Analysis {
        let effects = Effects::of(recording);
        let proofs = Proofs::of(recording);
        let lives = lease::Lives::of(recording, &effects, &proofs);
        let told = Inputs { log: Log::of(recording), proofs, effects, lives };
        let held = Derived::of(recording, &told, &[]);
        let undecided = held.is_open() && held.contradicts_nothing() && told.effects.misshapen.is_empty();
        let unseen = undecided.then(|| held.search(recording, &told));
        let held = match &unseen {
            Some(SearchOutcome::Found(supposed)) => Derived::of(recording, &told, supposed),
            _ => held,
        };
        let mut analysis = Analysis::new(told, held, unseen);
        let headers = recording.responses.iter().map(|response| response.revision);
        analysis.told = headers.chain([analysis.proofs.last(), analysis.timeline.last()]).max().unwrap_or(1);
        analysis.unlogged = unlogged::unlogged(recording, &analysis.effects, &analysis.log, &analysis.timeline);
        analysis.root_causes = RootCauses::of(recording, &analysis);
        analysis
    }

    fn new(told: Inputs, held: Derived, unseen: Option<SearchOutcome>) -> Analysis {
        let Inputs { effects, log, proofs, lives, .. } = told;
        let Derived {
            timeline,
            backward,
            answers,
            attribution: filling,
            streams,
            compactions,
            placing,
            misuses,
            settled,
        } = held;
        Analysis {
            root_causes: RootCauses::default(),
            told: 1,
            unlogged: Vec::new(),
            reconstruction: unseen,
            effects,
            log,
            proofs,
            timeline,
            backward,
            answers,
            attribution: filling,
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
    /// Of a recording. `supposed`: what is taken to have happened at revisions that nobody showed, ascending.
    fn of(recording: &Recording, told: &Inputs, supposed: &[Supposed]) -> Derived {
        let Inputs { effects, log, proofs, lives } = told;
        let timeline = Timeline::rebuild(recording, effects, log, proofs.last(), supposed);
        let revision = |at: u32| recording.operations[at as usize].revision;
        // Where another write was acknowledged, it did not write.
        let denied = |at: u32| timeline.revision(revision(at))?.writer.map(|_| false);
        let backward = proofs::backward(recording, effects, proofs, denied);
        let answers = Answers::compare(recording, effects, &timeline);
        let filling = Attribution::of(recording, effects, &timeline, proofs, lives, supposed);
        let compactions = Compactions::of(recording, effects, log, &timeline);
        let streams = Streams::of(recording, effects, &timeline, &compactions);
        let placing = Placing::of(recording, effects, &timeline, &filling, &streams.demands, &compactions);
        let makers: rustc_hash::FxHashSet<Writer> = filling.writers.iter().map(|(_, filler)| *filler).collect();
        let made = |at: u32| Some(makers.contains(&Writer::Operation(at)));
        let ambiguous = backward.is_empty() && recording.operations.iter().any(is_revoke);
        let settled = (!ambiguous || proofs::backward(recording, effects, proofs, made).is_empty())
            && !lease::outlived(recording, &timeline, &filling, lives)
            && !lease::survived(recording, &timeline, &filling)
            && !lease::needs_unnumbered(&timeline, &filling, lives)
            && (filling.doubted.is_empty() || lease::held(recording, &timeline, &filling));
        let misuses = lease::misuses(recording, effects, &timeline, &filling, lives);
        Derived { timeline, backward, answers, attribution: filling, streams, compactions, placing, misuses, settled }
    }

    /// Whether something stays to be decided.
    fn is_open(&self) -> bool {
        self.attribution.open.is_some()
            || self.answers.open > 0
            || !self.attribution.undecided.is_empty()
            || !self.misuses.is_empty()
            || !self.settled
            || self.placing.stuck
    }

    /// Whether nothing is certainly wrong.
    fn contradicts_nothing(&self) -> bool {
        // Old servers told progress just below the first revision asked for, which hides nothing.
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

    fn search(&self, recording: &Recording, told: &Inputs) -> SearchOutcome {
        let Inputs { effects, proofs, lives, .. } = told;
        let Derived { timeline, attribution: filling, .. } = self;
        let known = reconstruction::Known { recording, effects, proofs, lives, timeline, filling };
        reconstruction::search(known, |supposed| {
            let held = Derived::of(recording, told, supposed);
            !held.is_open() && held.contradicts_nothing()
        })
    }
}

fn is_revoke(operation: &Operation) -> bool {
    matches!(operation.request, Request::LeaseRevoke { .. })
}
