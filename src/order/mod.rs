//! Stage 3 of 5: from history to order. Input: [`History`]. Output: [`Order`]: the revision order of every domain, clock bounds,
//! watermarks, reflector chains and sessions. Invariant: this stage judges nothing and keeps contradictions as data. The steps of
//! [`Order::derive`] depend on each other: watermarks need the timeline, clocks need watermarks.
//!
//! ```
//! use retrograde::Options;
//! use retrograde::order::OrderOptions;
//!
//! // All clocks of the evidence are within 50 milliseconds, and the lives of this client are one process.
//! let order = OrderOptions { clock_skew: Some(50_000_000), same_process: vec!["scheduler".to_owned()] };
//! let options = Options { order, ..Options::default() };
//! ```

pub(crate) mod chain;
mod claim;
pub(crate) mod clock;
mod deleted_item;
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

#[doc(hidden)]
pub use self::{
    chain::{Chain, ReflectorChains, Start, Step},
    clock::{ClockStep, Clocks, Relation},
    deleted_item::{DeletedItem, DeletedItems},
    frontier::{Frontier, Frontiers, Scopes, held, is_deliberate, remembers},
    lifetime::{Death, Lifetime, Lifetimes},
    observation::{PerKeyMax, Records, RunningMax},
    premise::{Decisions, Ground, Pass, Premise, Premises, Source},
    presence::{After, Life, Presence},
    session::{Session, Sessions},
    settlement::{removes, stream_base},
    shown::{EvidenceRef, Observation},
    timeline::{Contradiction, Removal, Span, Timeline},
    validity::{Reading, Seen, ValidityInterval, ValidityIntervals},
    version::{Change, Fragment, Origin, Provenance, Version, VersionId},
    versions::Versions,
    watermark::{Counter, Watermark, Watermarks, write_of_event},
};

use crate::history::{Asked, ClockId, History, Marks, OperationId, Revision, Verb};
use crate::ingest::Time;
use std::sync::OnceLock;

/// The user's declarations about clocks and processes.
#[derive(Clone, Debug, Default)]
pub struct OrderOptions {
    /// `--clock-skew`: the largest difference between two clocks, in nanoseconds.
    pub clock_skew: Option<i64>,
    /// `--same-process`: clients whose incarnations belong to one process.
    pub same_process: Vec<String>,
}

/// The evidence for the revision of a list.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListRevision {
    /// Its own answer.
    Answer,
    /// The watch that followed the list, as in a reflector.
    Pair(OperationId),
    /// Its request names the revision exactly, and the request was answered.
    Asked,
}

/// The order of a history as far as the evidence shows it.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Order {
    /// The revision order of every domain.
    pub timeline: Timeline,
    /// Bounds on the offsets between clocks.
    pub clocks: Clocks,
    /// The watermarks over time.
    pub watermarks: Watermarks,
    /// Items of answered DELETECOLLECTIONs.
    pub deleted_items: DeletedItems,
    /// Reflector chains.
    pub chains: ReflectorChains,
    /// Sessions.
    pub sessions: Sessions,
    /// The frontiers of every session: what it had seen and written.
    pub frontiers: Frontiers,
    /// Results of an etcd cluster; `None` without etcd evidence.
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
        let watermarks = Watermarks::build(history, &unknown, &timeline, &counter);
        let clocks = Clocks::bound(history, &unknown, &mut counter, &watermarks, options.clock_skew);
        drop(counter);
        timeline.bound_removals(history, &clocks, &watermarks);
        let deleted_items = DeletedItems::collect(history, &timeline, &clocks, &watermarks);
        let chains = ReflectorChains::build(history, &timeline, &clocks, &watermarks);
        let sessions = Sessions::build(history, &clocks, &options.same_process);
        let mut order = Order {
            timeline,
            clocks,
            watermarks,
            deleted_items,
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

    /// When each key certainly held an object.
    pub fn presence<'h>(&'h self, history: &'h History) -> Presence<'h> {
        let known = self.stretches.get_or_init(|| presence::ExistenceIntervals::derive(history, self));
        Presence::new(history, self, known)
    }

    /// Lifetimes of objects, collected when a rule first asks for them.
    pub fn lifetimes(&self, history: &History) -> &Lifetimes {
        self.lifetimes.get_or_init(|| Lifetimes::collect(history, &self.timeline))
    }

    /// The revision of a list and the evidence for it; `None` without an answer or a known revision.
    pub fn list_revision(&self, history: &History, id: OperationId) -> Option<(Revision, ListRevision)> {
        let o = history.operation(id);
        if !Verb::LISTS.contains(&o.verb) || !o.is_answered() {
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

    /// The revision at which a list certainly showed a state to its process. The revision of a following watch does not count if
    /// the list asked for the most recent state. A client that watches from the past is likelier than a broken promise.
    pub fn listed_at(&self, history: &History, id: OperationId) -> Option<Revision> {
        let (revision, known) = self.list_revision(history, id)?;
        let is_guess = matches!(known, ListRevision::Pair(_)) && history.operation(id).asked == Asked::Unset;
        (!is_guess).then_some(revision)
    }

    /// The moment at which the evidence had reached its reader.
    pub fn moment(&self, history: &History, showing: EvidenceRef) -> (Time, ClockId) {
        match showing {
            EvidenceRef::Answer(id) => {
                let o = history.operation(id);
                // A watch shows its start revision when it is sent.
                (if o.verb == Verb::Watch { o.invoke } else { o.ret }, o.clock)
            }
            EvidenceRef::Delivery(index, watch) => {
                (history.deliveries[index as usize].at, history.operation(watch).clock)
            }
        }
    }
}
