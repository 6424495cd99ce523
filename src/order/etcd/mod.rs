//! What is known of one etcd cluster: T, when its revisions were known, and what clients were told, held against it.
//!
//! Answers carry revisions, so the order of everything answered is a sort, and checking it a sweep. What is open is which
//! requests of unknown outcome made the revisions that nobody acknowledged: a matching.

pub mod answers;
mod census;
pub mod effects;
pub mod filling;
pub mod log;
pub mod proofs;
pub mod store;
pub mod streams;
pub mod timeline;

pub use answers::{Answers, Mismatch};
pub use effects::{Change, Class, Effects};
pub use filling::{Filler, Filling, Unfilled, Unfit};
pub use log::{Log, Logged};
pub use proofs::{Backward, Proof, Proofs};
pub use streams::{Compactions, Flaw, Past, Streams};
pub use timeline::{Contradiction, State, Timeline, Version, Witness};

use crate::history::etcd::Recording;

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
}

impl Analysis {
    /// Of a recording.
    pub fn derive(recording: &Recording) -> Analysis {
        let effects = Effects::of(recording);
        let log = Log::of(recording);
        let proofs = Proofs::of(recording);
        let timeline = Timeline::rebuild(recording, &effects, &log);
        let backward = proofs::backward(recording, &effects);
        let compactions = Compactions::of(recording);
        let answers = Answers::compare(recording, &effects, &timeline);
        let filling = Filling::of(recording, &effects, &timeline, &proofs);
        let streams = Streams::of(recording, &effects, &timeline, &compactions, log.compaction);
        Analysis { effects, log, proofs, timeline, backward, answers, filling, streams }
    }
}
