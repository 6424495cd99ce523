//! One linearization of everything that took effect, as the certificate of a log that holds. Input: an [`Analysis`] without open
//! revisions. `verify` replays the result.
//!
//! A write has the slot of its revision; an operation that changed nothing comes after the write of its answer's revision. Within
//! a slot, operations are in order of the earliest time that their predecessors allow. This respects time, because an operation
//! that returned before another was sent has an earlier time.

use super::Analysis;
use super::attribution::Writer;
use super::compaction::Earliest;
use super::effects::Class;
use super::store::NOT_COMPACTED;
use crate::history::Symbol;
use crate::history::etcd::{Operation, Outcome, Recording, Request};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// A linearization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linearization {
    /// The operations and expiries, first to last.
    pub steps: Vec<Writer>,
    /// The keys that ends of leases removed, by revision. The leases of puts in transactions may not be recorded.
    pub removed: Vec<(i64, Vec<Symbol>)>,
}

/// An operation with its sort key: the revisions before it, whether it wrote the last of them, its earliest time, and tie
/// breakers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    revision: i64,
    rank: Rank,
    time: Time,
    kind: Kind,
    /// The compacted revision of a compaction; otherwise the send time.
    tie: i64,
    place: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Write,
    Same,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Answer,
    Compaction,
    /// An answer that reports a compacted revision.
    Compacted,
}

/// A placed compaction.
struct Compacted {
    /// The time by which evidence shows it.
    until: Time,
    /// Operations after it have at least this revision.
    revision: i64,
    /// The compacted revision.
    through: i64,
    from: Time,
}

impl Linearization {
    /// The linearization of a recording that has one; `None` if the analysis leaves something open.
    pub fn of(recording: &Recording, analysis: &Analysis) -> Option<Linearization> {
        let Analysis { effects, timeline, attribution, placing, .. } = analysis;
        if attribution.open.is_some() || !attribution.unattributed.is_empty() || placing.stuck {
            return None;
        }
        let earliest = Earliest::of(recording, effects, timeline, attribution);
        let mut order = Order { recording, analysis, earliest, placed: Vec::new(), writers: Vec::new() };
        let known = order.known()?;
        let mut known = Highest::of(known);
        let compactions = order.compactions(&known);
        known = Highest::of(
            known.rows.into_iter().chain(compactions.iter().map(|one| (one.until, one.revision))).collect(),
        );
        order.windows(&known, &compactions)?;
        let Order { mut placed, writers, .. } = order;
        placed.sort_unstable();
        lives(recording, analysis, &writers, &mut placed);
        let steps = placed.iter().map(|one| writers[one.place as usize]).collect();
        Some(Linearization { steps, removed: removed(recording, analysis) })
    }
}

/// The highest revision that evidence had shown before a time.
struct Highest {
    /// Times, ascending, with the highest revision so far.
    rows: Vec<(Time, i64)>,
}

impl Highest {
    fn of(mut rows: Vec<(Time, i64)>) -> Highest {
        rows.sort_unstable();
        let mut highest = 1;
        for (_, revision) in &mut rows {
            highest = highest.max(*revision);
            *revision = highest;
        }
        Highest { rows }
    }

    fn before(&self, time: Time) -> i64 {
        let at = self.rows.partition_point(|(other, _)| *other < time);
        self.rows[..at].last().map_or(1, |(_, revision)| *revision)
    }
}

struct Order<'a> {
    recording: &'a Recording,
    analysis: &'a Analysis,
    earliest: Earliest,
    placed: Vec<Placed>,
    /// The placed operations and expiries.
    writers: Vec<Writer>,
}

fn returned(operation: &Operation) -> Time {
    if operation.returned.is_known() { operation.returned } else { Time(i64::MAX) }
}

impl Order<'_> {
    fn add(&mut self, revision: i64, rank: Rank, time: Time, kind: Kind, tie: i64, what: Writer) {
        let place = self.writers.len() as u32;
        self.writers.push(what);
        self.placed.push(Placed { revision, rank, time, kind, tie, place });
    }

    /// Places every operation with a known revision. Returns the time at which each shows its revision.
    fn known(&mut self) -> Option<Vec<(Time, i64)>> {
        let Analysis { effects, timeline, attribution, .. } = self.analysis;
        let mut writers: FxHashSet<u32> = FxHashSet::default();
        let mut shown = Vec::new();
        let mut fillers = attribution.writers.iter().peekable();
        for revision in &timeline.revisions {
            let made = fillers.next_if(|(number, _)| *number == revision.number).map(|(_, filler)| *filler);
            let filler = made.or(revision.writer.map(Writer::Operation))?;
            let time = self.earliest.of_revision(revision.number)?;
            if let Writer::Operation(at) = filler {
                writers.insert(at);
            }
            self.add(revision.number, Rank::Write, time, Kind::Answer, 0, filler);
        }
        for (at, operation) in (0..).zip(&self.recording.operations) {
            let has_place = match (effects.class(at), operation.request) {
                (Class::Write | Class::Same | Class::Either, _) => true,
                (_, Request::Range(range)) => range.serializable && operation.outcome == Outcome::Answered,
                _ => false,
            };
            if !has_place {
                continue;
            }
            shown.push((returned(operation), operation.revision));
            if writers.contains(&at) {
                continue;
            }
            // A write without a revision of its own.
            if effects.class(at) == Class::Write || operation.revision < 1 {
                return None;
            }
            let exists = self.earliest.of_revision(operation.revision)?;
            // A serializable read may come from a member that is behind, so only its state counts.
            let time = if effects.class(at) == Class::Silent { exists } else { exists.max(operation.call) };
            let tie = operation.call.0;
            self.add(operation.revision, Rank::Same, time, Kind::Answer, tie, Writer::Operation(at));
        }
        for response in &self.recording.responses {
            let events = response.events.of(&self.recording.events).iter().map(|event| event.revision);
            if let Some(revision) = events.chain(response.progress.then_some(response.revision)).max()
                && response.time.is_known()
            {
                shown.push((response.time, revision));
            }
        }
        Some(shown)
    }

    /// Places compactions in order of their revisions, each after the reads that need the compacted state.
    fn compactions(&mut self, known: &Highest) -> Vec<Compacted> {
        let chain = &self.analysis.placing.chain;
        if chain.is_empty() {
            return Vec::new();
        }
        let mut reads: Vec<(i64, i64)> = Vec::new();
        for operation in &self.recording.operations {
            if let Request::Range(range) = operation.request
                && operation.outcome == Outcome::Answered
                && range.revision > 0
                && !range.serializable
            {
                reads.push((range.revision, operation.revision));
            }
        }
        reads.sort_unstable();
        let mut reads = reads.into_iter().peekable();
        let mut revision = 1;
        let mut found = Vec::new();
        for one in chain {
            let operation = &self.recording.operations[one.operation as usize];
            revision = revision.max(one.through).max(known.before(operation.call));
            while let Some((_, at)) = reads.next_if(|(asked, _)| *asked < one.through) {
                revision = revision.max(at);
            }
            found.push(Compacted { until: one.until, revision, through: one.through, from: one.from });
            let what = Writer::Operation(one.operation);
            self.add(revision, Rank::Same, one.from, Kind::Compaction, one.through, what);
        }
        found
    }

    /// Places answers that may come anywhere between send and return: reports of compacted or future revisions, and
    /// defragmentations.
    fn windows(&mut self, known: &Highest, compactions: &[Compacted]) -> Option<()> {
        for (at, operation) in (0..).zip(&self.recording.operations) {
            let above = match (operation.outcome, operation.request) {
                (Outcome::Compacted, Request::Range(range)) => Some(range.revision),
                (Outcome::Compacted, Request::Compact { revision }) => Some(revision.saturating_sub(1)),
                (Outcome::Future, Request::Range(_) | Request::Compact { .. })
                | (Outcome::Answered, Request::Defragment) => None,
                _ => continue,
            };
            let mut revision = known.before(operation.call);
            let mut time = operation.call;
            // A serializable read may come from a member that was behind.
            if let (Outcome::Future, Request::Range(range)) = (operation.outcome, operation.request)
                && range.serializable
            {
                revision = revision.min(range.revision.saturating_sub(1));
                time = Time(i64::MIN);
            }
            // Revisions below [`NOT_COMPACTED`] count as compacted from the start.
            if let Some(above) = above.filter(|above| *above >= NOT_COMPACTED) {
                let first = compactions.partition_point(|one| one.through <= above);
                if let Some(one) = compactions.get(first) {
                    revision = revision.max(one.revision);
                    time = time.max(one.from);
                } else if above >= self.analysis.compactions.logged(returned(operation)) {
                    return None;
                }
            }
            let kind = if above.is_some() { Kind::Compacted } else { Kind::Answer };
            time = time.max(self.earliest.of_revision(revision)?);
            self.add(revision, Rank::Same, time, kind, operation.call.0, Writer::Operation(at));
        }
        Some(())
    }
}

/// Reorders grants and revokes of leases that changed nothing between two revisions, so that each lease is granted before it
/// ends.
fn lives(recording: &Recording, analysis: &Analysis, writers: &[Writer], placed: &mut [Placed]) {
    let lease = |one: &Placed| match writers[one.place as usize] {
        Writer::Expiry(lease) => Some((lease, true)),
        Writer::Operation(at) => match recording.operations[at as usize].request {
            Request::LeaseGrant { lease, .. } => Some((lease, false)),
            Request::LeaseRevoke { lease } => Some((lease, true)),
            _ => None,
        },
    };
    if !placed.iter().any(|one| lease(one).is_some_and(|(_, ends)| ends)) {
        return;
    }
    // Unanswered grants by lease, with their send times. An end that no answered grant explains takes the first that is left.
    let mut asked: FxHashMap<i64, Vec<Time>> = FxHashMap::default();
    for operation in &recording.operations {
        if let (Request::LeaseGrant { lease, .. }, Outcome::Unknown) = (operation.request, operation.outcome) {
            asked.entry(lease).or_default().push(operation.call);
        }
    }
    asked.values_mut().for_each(|calls| calls.sort_unstable_by(|a, b| b.cmp(a)));
    let mut alive: FxHashSet<i64> = FxHashSet::default();
    for run in placed.chunk_by_mut(|a, b| (a.revision, a.rank) == (b.revision, b.rank)) {
        let mut by_lease: FxHashMap<i64, Vec<(usize, bool)>> = FxHashMap::default();
        for (at, one) in run.iter().enumerate() {
            if let Some((lease, ends)) = lease(one) {
                by_lease.entry(lease).or_default().push((at, ends));
            }
        }
        let mut moved = false;
        for (lease, mut left) in by_lease {
            let (mut time, mut tie) = (Time(i64::MIN), i64::MIN);
            let grants_and_ends = left.iter().any(|(_, ends)| *ends) && left.iter().any(|(_, ends)| !*ends);
            while !left.is_empty() {
                let times = |at: usize| match writers[run[at].place as usize] {
                    Writer::Operation(at) => {
                        let operation = &recording.operations[at as usize];
                        (operation.call, returned(operation))
                    }
                    Writer::Expiry(_) => (Time(i64::MIN), Time(i64::MAX)),
                };
                let over = left.iter().map(|(at, _)| times(*at).1).min().unwrap_or(Time(i64::MAX));
                let first_asked = asked.get(&lease).and_then(|calls| calls.last().copied());
                let lives = |until: Time| {
                    alive.contains(&lease)
                        || analysis.lives.is_always_alive(lease)
                        || first_asked.is_some_and(|asked| asked <= until)
                };
                let next = (0..left.len())
                    .filter(|n| times(left[*n].0).0 <= over)
                    .min_by_key(|n| {
                        let (at, ends) = left[*n];
                        let rank = match ends {
                            true if lives(times(at).1) => 0,
                            false => 1,
                            true => 2,
                        };
                        (rank, run[at])
                    })
                    .unwrap_or(0);
                let (at, ends) = left.remove(next);
                if !ends {
                    alive.insert(lease);
                } else if !alive.remove(&lease)
                    && let Some(asked) = asked.get_mut(&lease).and_then(Vec::pop)
                    && asked > run[at].time
                {
                    // The end comes after the unanswered grant that it needs.
                    run[at].time = asked;
                    moved = true;
                }
                if grants_and_ends {
                    let one = &mut run[at];
                    if (one.time, one.tie) <= (time, tie) {
                        (one.time, one.tie) = (time, tie.saturating_add(1));
                        moved = true;
                    }
                    (time, tie) = (one.time, one.tie);
                }
            }
        }
        if moved {
            run.sort_unstable();
        }
    }
}

/// The keys that ends of leases removed, by revision.
fn removed(recording: &Recording, analysis: &Analysis) -> Vec<(i64, Vec<Symbol>)> {
    let ends = |filler: &Writer| match filler {
        Writer::Expiry(_) => true,
        Writer::Operation(at) => {
            matches!(recording.operations[*at as usize].request, Request::LeaseRevoke { .. })
        }
    };
    let timeline = &analysis.timeline;
    let of_lease = analysis.attribution.writers.iter().filter(|(_, filler)| ends(filler));
    let revisions = of_lease.filter_map(|(number, _)| timeline.revision(*number));
    let keys = |revision| timeline.versions_of(revision).iter().map(|version| version.change.key).collect();
    revisions.map(|revision| (revision.number, keys(revision))).collect()
}
