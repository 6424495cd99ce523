//! Stage 3 of 5: history to order. Input: [`History`]. Output: [`Order`]: the timeline T of every domain, clock bounds, the
//! head over time, reflector chains, sessions. Invariant: judges nothing; contradictions are data.

pub(crate) mod chain;
mod claim;
pub(crate) mod clock;
#[doc(hidden)]
pub mod etcd;
mod flags;
pub(crate) mod frontier;
#[doc(hidden)]
pub mod graph;
pub(crate) mod lifetime;
mod observation;
pub(crate) mod premise;
mod presence;
pub(crate) mod session;
mod settlement;
pub(crate) mod shown;
pub(crate) mod timeline;
pub(crate) mod validity;
#[cfg(test)]
mod validity_tests;
mod version;
pub(crate) mod versions;
mod watched;
pub(crate) mod watermark;

pub use chain::{Chain, ReflectorChains, Start, Step};
pub use clock::{ClockStep, Clocks, Relation};
pub use frontier::{Frontier, Frontiers, Scopes, held, is_deliberate, remembers};
pub use lifetime::{Death, Lifetime, Lifetimes};
pub use observation::{PerKeyMax, Records, RunningMax};
pub use premise::{Decisions, Ground, Pass, Premise, Premises, Source};
pub use presence::{After, Life, Presence};
pub use session::{Session, Sessions};
pub use settlement::{removes, stream_base};
pub use shown::EvidenceRef;
pub use shown::Observation;
pub use timeline::{Contradiction, Removal, Span, Timeline};
pub use validity::{Reading, Seen, ValidityInterval, ValidityIntervals};
pub use version::Origin;
pub use version::{Change, Fragment, Provenance, Version, VersionId};
pub use versions::Versions;
pub use watermark::{Counter, Watermark, Watermarks, write_of_event};

use crate::history::{Asked, ClockId, History, Marks, OperationId, Revision, Verb};
use crate::ingest::Time;
use std::sync::OnceLock;

/// What the user declares about time and processes.
#[derive(Clone, Debug, Default)]
pub struct OrderOptions {
    /// `--clock-skew`: no two clocks differ by more, in nanoseconds.
    pub clock_skew: Option<i64>,
    /// `--same-process`: clients whose lives are one process.
    pub same_process: Vec<String>,
}

/// Where a list's revision is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListRevision {
    /// Its own answer.
    Answer,
    /// The watch that followed it (reflector pair).
    Pair(OperationId),
    /// Its request names the revision exactly, and it was answered.
    Asked,
}

/// Everything that is known about order.
#[derive(Debug, Default)]
pub struct Order {
    /// T.
    pub timeline: Timeline,
    /// Offsets between clocks.
    pub clocks: Clocks,
    /// The head over time.
    pub heads: Watermarks,
    /// Reflector chains.
    pub chains: ReflectorChains,
    /// Sessions.
    pub sessions: Sessions,
    /// What every session had seen and done.
    pub frontiers: Frontiers,
    /// What is known of an etcd cluster.
    pub etcd: Option<Box<etcd::Analysis>>,
    lifetimes: OnceLock<Lifetimes>,
    stretches: OnceLock<presence::ExistenceIntervals>,
}

impl Order {
    /// Derives the order of a history.
    pub fn derive(history: &History, options: &OrderOptions) -> Order {
        let mut timeline = Timeline::rebuild(history);
        let mut counter = Counter::collect_all(history, &timeline);
        let unknown = history.unknown_writers();
        let heads = Watermarks::build(history, &unknown, &timeline, &counter);
        let clocks = Clocks::bound(history, &unknown, &mut counter, &heads, options.clock_skew);
        drop(counter);
        timeline.bound_removals(history, &clocks, &heads);
        let chains = ReflectorChains::build(history, &timeline, &clocks, &heads);
        let sessions = Sessions::build(history, &clocks, &options.same_process);
        let mut order = Order {
            timeline,
            clocks,
            heads,
            chains,
            sessions,
            frontiers: Frontiers::default(),
            etcd: history.cluster().map(|cluster| Box::new(etcd::Analysis::derive(&cluster.recording))),
            lifetimes: OnceLock::new(),
            stretches: OnceLock::new(),
        };
        order.frontiers = Frontiers::collect(history, &order);
        order
    }

    /// Which keys certainly held an object when.
    pub fn presence<'h>(&'h self, history: &'h History) -> Presence<'h> {
        let known = self.stretches.get_or_init(|| presence::ExistenceIntervals::derive(history, self));
        Presence::new(history, self, known)
    }

    /// Lives of objects, collected when a rule first asks for them.
    pub fn lifetimes(&self, history: &History) -> &Lifetimes {
        self.lifetimes.get_or_init(|| Lifetimes::collect(history, &self.timeline))
    }

    /// The revision of a list, and where it is known from.
    pub fn list_revision(&self, history: &History, id: OperationId) -> Option<(Revision, ListRevision)> {
        let o = history.operation(id);
        if o.verb != Verb::List || !o.is_answered() {
            return None;
        }
        if o.answered.is_some() {
            return Some((o.answered, ListRevision::Answer));
        }
        if let Some((revision, watch)) = self.chains.paired.get(&id) {
            return Some((*revision, ListRevision::Pair(*watch)));
        }
        let exact = matches!(o.asked, Asked::Exact | Asked::Continue | Asked::LegacyExact);
        (exact && !o.marks.has(Marks::ANSWER_BODY)).then_some((o.asked_revision, ListRevision::Asked))
    }

    /// The revision at which a list certainly showed its process a state. Where it was asked for the most recent one, the watch after it
    /// does not say: a client may watch from the past on purpose, and that is likelier than a server that broke its promise.
    pub fn listed_at(&self, history: &History, id: OperationId) -> Option<Revision> {
        let (revision, known) = self.list_revision(history, id)?;
        let is_guess = matches!(known, ListRevision::Pair(_)) && history.operation(id).asked == Asked::Unset;
        (!is_guess).then_some(revision)
    }

    /// The moment at which what is shown had reached its reader.
    pub fn moment(&self, history: &History, showing: EvidenceRef) -> (Time, ClockId) {
        match showing {
            EvidenceRef::Answer(id) => {
                let o = history.operation(id);
                // A watch shows its start when it is sent.
                (if o.verb == Verb::Watch { o.invoke } else { o.ret }, o.clock)
            }
            EvidenceRef::Delivery(index, watch) => {
                (history.deliveries[index as usize].at, history.operation(watch).clock)
            }
        }
    }
}
