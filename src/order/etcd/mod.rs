//! What is known of one etcd cluster: T, when its revisions were known, and what clients were told, held against it.
//!
//! Answers carry revisions, so the order of everything answered is a sort, and checking it a sweep. What is open is which
//! requests of unknown outcome made the revisions that nobody acknowledged: a matching.

pub mod answers;
mod census;
pub mod compaction;
pub mod effects;
pub mod faults;
pub mod filling;
pub mod lease;
pub mod linearization;
pub mod log;
pub mod proofs;
pub mod regression;
pub mod store;
pub mod streams;
pub mod timeline;

pub use answers::{Answers, Mismatch};
pub use compaction::{Compactions, Placing};
pub use effects::{Change, Class, Effects};
pub use faults::{Faults, Sightings};
pub use filling::{Filler, Filling, Unfilled, Unfit};
pub use lease::Misuse;
pub use linearization::Linearization;
pub use log::{Log, Logged};
pub use proofs::{Backward, Proof, Proofs};
pub use regression::Regression;
pub use streams::{Flaw, Past, Streams};
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
    pub filling: Filling,
    /// Watches held against T.
    pub streams: Streams,
    /// The place of compactions.
    pub placing: Placing,
    /// When leases are alive.
    pub lives: lease::Lives,
    /// Uses of leases outside of their lives.
    pub misuses: Vec<Misuse>,
    /// Whether the order keeps time where ends of leases that seem to have written are taken to have, and others not.
    pub settled: bool,
    /// Which contradictions come of one fault.
    pub faults: Faults,
}

impl Analysis {
    /// Of a recording.
    pub fn derive(recording: &Recording) -> Analysis {
        let effects = Effects::of(recording);
        let log = Log::of(recording);
        let proofs = Proofs::of(recording);
        let timeline = Timeline::rebuild(recording, &effects, &log);
        let revision = |at: u32| recording.operations[at as usize].revision;
        // Where another write was acknowledged, it did not write.
        let denied = |at: u32| timeline.revision(revision(at))?.writer.map(|_| false);
        let backward = proofs::backward(recording, &effects, denied);
        let compactions = Compactions::of(recording);
        let answers = Answers::compare(recording, &effects, &timeline);
        let lives = lease::Lives::of(recording, &effects);
        let filling = Filling::of(recording, &effects, &timeline, &proofs, &lives);
        let streams = Streams::of(recording, &effects, &timeline, &compactions, log.compaction);
        let placing = Placing::of(recording, &effects, &timeline, &filling, &streams.demands, log.compaction);
        let makers: rustc_hash::FxHashSet<Filler> = filling.fillers.iter().map(|(_, filler)| *filler).collect();
        let made = |at: u32| Some(makers.contains(&Filler::Operation(at)));
        let ambiguous = backward.is_empty() && recording.operations.iter().any(is_revoke);
        let settled = !ambiguous || proofs::backward(recording, &effects, made).is_empty();
        let misuses = lease::misuses(recording, &effects, &filling, &lives);
        let mut analysis = Analysis {
            faults: Faults::default(),
            effects,
            log,
            proofs,
            timeline,
            backward,
            answers,
            filling,
            streams,
            placing,
            lives,
            misuses,
            settled,
        };
        analysis.faults = Faults::of(recording, &analysis);
        analysis
    }
}

fn is_revoke(operation: &Operation) -> bool {
    matches!(operation.request, Request::LeaseRevoke { .. })
}
