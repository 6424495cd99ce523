//! Compactions and their place in the order. A compaction has no revision of its own, but the compacted revision only rises. So
//! acknowledged compactions are in order of that revision, each after every read that needs the compacted state and before every
//! answer that misses it. `schedule` places each as early as its predecessors allow; this fails only if no placement exists.
//!
//! Source: etcd `server/storage/mvcc/kvstore.go` (`updateCompactRev`, `checkPrevCompactionCompleted`), `kvstore_txn.go`
//! (`rangeKeys`), `server/etcdserver/apply` (compactions are proposed like writes).

use super::attribution::{Attribution, Writer};
use super::effects::{Class, Effects};
use super::log::{Log, LoggedCompaction};
use super::store::NOT_COMPACTED;
use super::timeline::Timeline;
use crate::history::etcd::{Outcome, Recording, Request};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// Requested compactions, by time.
#[derive(Debug)]
pub struct Compactions {
    /// Those that may have compacted, or were answered that their revision is compacted: earliest time, highest revision so far.
    asked: Vec<(Time, i64)>,
    /// Those that were not answered "already compacted": earliest time, highest revision so far.
    first: Vec<(Time, i64)>,
    /// Unanswered ones: sent at, highest revision so far.
    unanswered: Vec<(Time, i64)>,
    /// Acknowledged ones of a higher revision than all that were answered before: answered at, revision, operation.
    done: Vec<(Time, i64, u32)>,
    /// Compactions in the members' logs by unrecorded clients: earliest time, revision; both ascend.
    logged: Vec<(Time, i64)>,
    /// Answers that bound the compacted revision of their store: sent at, highest possible revision of this and all later
    /// answers, operation.
    allowing: Vec<(Time, i64, u32)>,
}

impl Compactions {
    /// Collects the compactions of all recorded clients, and of the members' logs, which include unrecorded clients.
    pub fn of(recording: &Recording, effects: &Effects, log: &Log, timeline: &Timeline) -> Compactions {
        let logged = logged(recording, effects, log, timeline);
        let allowing = allowing(recording, effects);
        let (entries, end) = logged_requests(recording, log, timeline);
        let mut compactions = Compactions {
            asked: Vec::new(),
            first: Vec::new(),
            unanswered: Vec::new(),
            done: Vec::new(),
            logged,
            allowing,
        };
        for &at in &effects.compactions {
            let operation = &recording.operations[at as usize];
            let Request::Compact { revision } = operation.request else { continue };
            // An unanswered request without an entry may only follow the end of the log.
            let is_unanswered = operation.outcome == Outcome::Unknown;
            if is_unanswered {
                compactions.unanswered.push((operation.call, revision));
            }
            let follows = is_unanswered && !entries.contains(&revision);
            let from = operation.call.max(if follows { end } else { Time(i64::MIN) });
            if !matches!(operation.outcome, Outcome::Refused | Outcome::Future) {
                compactions.asked.push((from, revision));
            }
            if matches!(operation.outcome, Outcome::Answered | Outcome::Unknown) {
                compactions.first.push((from, revision));
            }
            if operation.outcome == Outcome::Answered && operation.returned.is_known() {
                compactions.done.push((operation.returned, revision, at));
            }
        }
        compactions.done.sort();
        let mut highest = i64::MIN;
        compactions.done.retain(|(_, through, _)| {
            let is_higher = *through > highest;
            highest = highest.max(*through);
            is_higher
        });
        for asked in [&mut compactions.asked, &mut compactions.first, &mut compactions.unanswered] {
            asked.sort();
            for at in 1..asked.len() {
                asked[at].1 = asked[at].1.max(asked[at - 1].1);
            }
        }
        compactions
    }

    /// The highest revision that can have been compacted by a time.
    pub fn possible(&self, time: Time) -> i64 {
        let at = self.asked.partition_point(|(sent, _)| *sent <= time);
        self.asked[..at].last().map_or(0, |(_, through)| *through).max(self.logged(time))
    }

    /// The highest revision of the unanswered requests that were sent by a time.
    pub fn unanswered(&self, time: Time) -> i64 {
        let at = self.unanswered.partition_point(|(sent, _)| *sent <= time);
        self.unanswered[..at].last().map_or(0, |(_, through)| *through)
    }

    /// Like [`Compactions::possible`], without compactions that were answered "already compacted".
    pub fn possible_first(&self, time: Time) -> i64 {
        let at = self.first.partition_point(|(sent, _)| *sent <= time);
        self.first[..at].last().map_or(NOT_COMPACTED, |(_, through)| *through).max(self.logged(time))
    }

    /// The highest revision that unrecorded clients can have compacted by a time, according to the members' logs.
    pub fn logged(&self, time: Time) -> i64 {
        let at = self.logged.partition_point(|(from, _)| *from <= time);
        self.logged[..at].last().map_or(NOT_COMPACTED, |(_, through)| *through)
    }

    /// Whether a recorded compaction took effect or may have. Clients that compact are presumed to be recorded then.
    pub fn is_recorded(&self) -> bool {
        !self.first.is_empty()
    }

    /// Whether recorded clients compact, and the members' logs have a compaction that none of them can have requested. A record
    /// is missing or was altered.
    pub fn lacks_records(&self) -> bool {
        self.is_recorded() && !self.logged.is_empty()
    }

    /// An operation, sent after a time, whose answer shows that nothing above a revision had been compacted by then by any
    /// client.
    pub fn ruled_out(&self, above: i64, by: Time) -> Option<u32> {
        let behind = self.allowing.partition_point(|(sent, ..)| *sent <= by);
        self.allowing.get(behind).filter(|(_, most, _)| *most <= above).map(|(.., operation)| *operation)
    }

    /// A compaction above a revision that was complete before a time.
    pub fn certain(&self, before: Time, above: i64) -> Option<u32> {
        let first = self.done.partition_point(|(_, through, _)| *through <= above);
        self.done.get(first).filter(|(answered, ..)| *answered < before).map(|(.., operation)| *operation)
    }
}

/// Answers that bound the compacted revision at their send time: a revision that does not exist yet, or that is read or compacted
/// later, is not compacted. Each has the lowest bound of itself and all that were sent later.
fn allowing(recording: &Recording, effects: &Effects) -> Vec<(Time, i64, u32)> {
    let bound = |(at, operation): (u32, &crate::history::etcd::Operation)| {
        let most = match (operation.outcome, operation.request, effects.class(at)) {
            (Outcome::Answered, Request::Compact { revision }, _) => revision.checked_sub(1)?,
            (.., Class::Write) => operation.revision.checked_sub(1)?,
            (_, Request::Range(range), Class::Same) if range.revision > 0 => range.revision.min(operation.revision),
            (.., Class::Same) => operation.revision,
            _ => return None,
        };
        operation.call.is_known().then_some((operation.call, most, at))
    };
    let mut bounds: Vec<(Time, i64, u32)> = (0..).zip(&recording.operations).filter_map(bound).collect();
    bounds.sort_unstable();
    for at in (1..bounds.len()).rev() {
        if bounds[at].1 <= bounds[at - 1].1 {
            (bounds[at - 1].1, bounds[at - 1].2) = (bounds[at].1, bounds[at].2);
        }
    }
    bounds
}

/// The revisions for which the logs have more compactions than recorded clients can have proposed. Every proposed request has a
/// log entry, even if it is refused when applied.
///
/// An acknowledged compaction comes before every one of a higher revision. If the logs lack it and have a higher one, they
/// contradict the client, and the higher one counts for no client.
fn of_others(recording: &Recording, effects: &Effects) -> FxHashSet<i64> {
    let logs = recording.members.iter().filter_map(|member| member.log.as_ref());
    let mut entries: Vec<(i64, u64)> = logs
        .flat_map(|log| &log.entries)
        .filter_map(|entry| match entry.request {
            Request::Compact { revision } => Some((revision, entry.index)),
            _ => None,
        })
        .collect();
    entries.sort_unstable();
    entries.dedup();
    let mut asked: FxHashMap<i64, usize> = FxHashMap::default();
    let mut lacking = i64::MAX;
    let requested = effects.compactions.iter().map(|at| &recording.operations[*at as usize]);
    for operation in requested.filter(|operation| operation.outcome != Outcome::Refused) {
        let Request::Compact { revision } = operation.request else { continue };
        *asked.entry(revision).or_default() += 1;
        let is_logged = entries.binary_search_by_key(&revision, |(through, _)| *through).is_ok();
        if operation.outcome == Outcome::Answered && !is_logged {
            lacking = lacking.min(revision);
        }
    }
    let more = |of: &&[(i64, u64)]| of[0].0 < lacking && of.len() > asked.get(&of[0].0).copied().unwrap_or(0);
    entries.chunk_by(|a, b| a.0 == b.0).filter(more).map(|of| of[0].0).collect()
}

/// The revisions of all compactions in the members' logs, and the earliest time of what follows the log: the last send time of
/// its writes.
fn logged_requests(recording: &Recording, log: &Log, timeline: &Timeline) -> (FxHashSet<i64>, Time) {
    let logs = recording.members.iter().filter_map(|member| member.log.as_ref());
    let compactions = logs.flat_map(|log| &log.entries).filter_map(|entry| match entry.request {
        Request::Compact { revision } => Some(revision),
        _ => None,
    });
    let end = logged_writes(recording, log, timeline).map(|(_, call)| call).max();
    (compactions.collect(), end.unwrap_or(Time(i64::MIN)))
}

/// The revisions that the log certainly has, with the send times of the requests that made them. If logs and clients disagree,
/// there are none.
fn logged_writes<'r>(
    recording: &'r Recording,
    log: &'r Log,
    timeline: &'r Timeline,
) -> impl Iterator<Item = (i64, Time)> + 'r {
    let certain = |number: i64| log.step(number).is_some_and(|step| step.certain);
    let logged = timeline.revisions.iter().filter(move |revision| revision.entry.is_some() && certain(revision.number));
    logged
        .filter(|_| timeline.contradictions.is_empty())
        .filter_map(|revision| Some((revision.number, recording.operations[revision.writer? as usize].call)))
        .filter(|(_, call)| call.is_known())
}

/// Compactions of unrecorded clients in the members' logs, each with the earliest time at which a member can have applied it.
/// That is the last send time of the writes whose entries come before. If logs and clients disagree, or entries of writes may
/// have been lost, this yields no times.
fn logged(recording: &Recording, effects: &Effects, log: &Log, timeline: &Timeline) -> Vec<(Time, i64)> {
    let mut writes = logged_writes(recording, log, timeline).peekable();
    let mut sent = Time(i64::MIN);
    let not_before = |one: &LoggedCompaction| {
        while let Some((_, call)) = writes.next_if(|(number, _)| *number <= one.behind) {
            sent = sent.max(call);
        }
        (sent, one.through)
    };
    let others = of_others(recording, effects);
    let unplaced = log.unplaced.iter().copied().filter(|through| others.contains(through)).max();
    let least = unplaced.unwrap_or(NOT_COMPACTED);
    let placed = log.compactions.iter().filter(|one| others.contains(&one.through));
    let placed = placed.map(not_before).map(|(from, through)| (from, through.max(least)));
    unplaced.map(|through| (Time(i64::MIN), through)).into_iter().chain(placed).collect()
}

/// An answer that only a compaction above a revision explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// That revision.
    pub above: i64,
    /// When the answer arrived.
    pub by: Time,
}

/// The placement of compactions in the order.
#[derive(Debug, Default)]
pub struct Placing {
    /// Pairs of acknowledged compactions: the first had compacted the revision of the second before the second was sent.
    pub repeated: Vec<(u32, u32)>,
    /// Whether some answer or compaction has no place, for a reason that more than two records show.
    pub stuck: bool,
    /// The compactions that took effect, by revision. They include those of unknown outcome that an answer needs. Empty if one
    /// has no place.
    pub chain: Vec<Taken>,
}

/// A compaction that took effect or may have.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// The request.
    pub operation: u32,
    /// The compacted revision.
    pub through: i64,
    /// The earliest time; in a chain, not before its predecessor's.
    pub from: Time,
    /// When it was answered; in a chain, when evidence first showed it.
    pub until: Time,
}

impl Placing {
    /// Places the compactions of a recording in which every revision has a writer. With open revisions only `repeated` is filled.
    pub fn of(
        recording: &Recording,
        effects: &Effects,
        timeline: &Timeline,
        attribution: &Attribution,
        demands: &[Demand],
        asked: &Compactions,
    ) -> Placing {
        let mut placing = Placing::default();
        let compactions = &effects.compactions;
        placing.repeated = repeated(recording, compactions, asked);
        if attribution.open.is_some() || !attribution.unattributed.is_empty() {
            return placing;
        }
        let mut demands: Vec<Demand> = demands.to_vec();
        demands.extend(refusals(recording));
        demands.retain(|demand| demand.above >= asked.logged(demand.by));
        if compactions.is_empty() && demands.is_empty() {
            return placing;
        }
        let earliest = Earliest::of(recording, effects, timeline, attribution);
        let reads = reads(recording, &earliest);
        let mut known = Vec::new();
        let mut unknown = Vec::new();
        for &at in compactions {
            let operation = &recording.operations[at as usize];
            let Request::Compact { revision: through } = operation.request else { continue };
            let Some(exists) = earliest.of_revision(through) else { continue };
            // A read at a lower revision came before this compaction.
            let read = reads.partition_point(|(asked, _)| *asked < through);
            let read = reads[..read].last().map_or(Time(i64::MIN), |(_, time)| *time);
            let from = operation.call.max(exists).max(read);
            let until = if operation.returned.is_known() { operation.returned } else { Time(i64::MAX) };
            match operation.outcome {
                // No store ever has a revision this low to compact.
                Outcome::Answered if through <= NOT_COMPACTED => placing.stuck = true,
                Outcome::Answered => known.push(Taken { operation: at, through, from, until }),
                Outcome::Unknown if through > NOT_COMPACTED => {
                    unknown.push(Taken { operation: at, through, from, until: Time(i64::MAX) })
                }
                _ => {}
            }
        }
        let mut taken = known.clone();
        let chain = schedule(&mut taken);
        for demand in &demands {
            let Some(chain) = chain.as_deref().filter(|chain| !is_met(chain, *demand)) else { continue };
            // Take the earliest possible one; it satisfies at least as many other demands.
            let start = |one: &Taken| {
                let before = chain.partition_point(|(through, _)| *through < one.through);
                chain[..before].last().map_or(one.from, |(_, time)| one.from.max(*time))
            };
            let fits = unknown.iter().filter(|one| one.through > demand.above);
            match fits.min_by_key(|one| (start(one), one.through)) {
                Some(one) if !taken.iter().any(|other| other.through == one.through) => taken.push(*one),
                Some(_) => {}
                None => placing.stuck = true,
            }
        }
        let chain = schedule(&mut taken);
        placing.stuck |= !chain.as_ref().is_some_and(|chain| demands.iter().all(|demand| is_met(chain, *demand)));
        let times = chain.into_iter().flatten().map(|(_, time)| time);
        placing.chain = taken.into_iter().zip(times).map(|(one, time)| Taken { from: time, ..one }).collect();
        for demand in &demands {
            let first = placing.chain.partition_point(|one| one.through <= demand.above);
            if let Some(one) = placing.chain.get_mut(first) {
                one.until = one.until.min(demand.by);
            }
        }
        placing
    }
}

/// Acknowledged compactions that were sent after one of the same or a higher revision had been answered.
fn repeated(recording: &Recording, compactions: &[u32], done: &Compactions) -> Vec<(u32, u32)> {
    let answered = |at: &&u32| recording.operations[**at as usize].outcome == Outcome::Answered;
    let pair = |at: &u32| {
        let operation = &recording.operations[*at as usize];
        let Request::Compact { revision } = operation.request else { return None };
        Some((done.certain(operation.call, revision.saturating_sub(1))?, *at))
    };
    compactions.iter().filter(answered).filter_map(pair).collect()
}

/// Answers that report compacted revisions.
fn refusals(recording: &Recording) -> impl Iterator<Item = Demand> {
    recording.operations.iter().filter(|operation| operation.outcome == Outcome::Compacted).filter_map(|operation| {
        let by = if operation.returned.is_known() { operation.returned } else { Time(i64::MAX) };
        match operation.request {
            Request::Range(range) => Some(Demand { above: range.revision, by }),
            Request::Compact { revision } => Some(Demand { above: revision.saturating_sub(1), by }),
            _ => None,
        }
    })
}

/// Answered reads of the past, by requested revision, each with the latest of the earliest times so far.
fn reads(recording: &Recording, earliest: &Earliest) -> Vec<(i64, Time)> {
    let read = |operation: &crate::history::etcd::Operation| match operation.request {
        // A serializable read may be answered by a member that has not compacted yet.
        Request::Range(range)
            if operation.outcome == Outcome::Answered && range.revision > 0 && !range.serializable =>
        {
            Some((range.revision, operation.call.max(earliest.of_revision(operation.revision)?)))
        }
        _ => None,
    };
    let mut reads: Vec<(i64, Time)> = recording.operations.iter().filter_map(read).collect();
    reads.sort_unstable();
    let mut latest = Time(i64::MIN);
    for (_, time) in &mut reads {
        latest = latest.max(*time);
        *time = latest;
    }
    reads
}

/// The times of compactions in order of revision; `None` if one would be later than its answer, or two have the same revision.
fn schedule(taken: &mut [Taken]) -> Option<Vec<(i64, Time)>> {
    taken.sort_by_key(|one| one.through);
    let mut chain: Vec<(i64, Time)> = Vec::with_capacity(taken.len());
    for one in taken {
        let time = chain.last().map_or(one.from, |(_, before)| one.from.max(*before));
        // The second of two compactions of the same revision is refused.
        if time > one.until || chain.last().is_some_and(|(through, _)| *through == one.through) {
            return None;
        }
        chain.push((one.through, time));
    }
    Some(chain)
}

fn is_met(chain: &[(i64, Time)], demand: Demand) -> bool {
    let at = chain.partition_point(|(through, _)| *through <= demand.above);
    chain.get(at).is_some_and(|(_, time)| *time <= demand.by)
}

/// The earliest time at which each revision can have existed: the latest send time among the operations at or before it.
pub(super) struct Earliest {
    /// By revision, from 0 through the revision after the last.
    times: Vec<Time>,
}

impl Earliest {
    /// Requires a timeline without unknown revisions.
    pub fn of(recording: &Recording, effects: &Effects, timeline: &Timeline, attribution: &Attribution) -> Earliest {
        let mut times = vec![Time(i64::MIN); timeline.revisions.len() + 3];
        let mut not_before = |revision: i64, time: Time| {
            if let Some(at) = usize::try_from(revision).ok().and_then(|at| times.get_mut(at)) {
                *at = time.max(*at);
            }
        };
        let writers: rustc_hash::FxHashMap<u32, i64> = attribution
            .writers
            .iter()
            .filter_map(|(revision, filler)| match filler {
                Writer::Operation(at) => Some((*at, *revision)),
                Writer::Expiry(_) => None,
            })
            .collect();
        for (at, operation) in (0..).zip(&recording.operations) {
            match (effects.class(at), operation.outcome, operation.request) {
                (Class::Write, ..) => not_before(operation.revision, operation.call),
                (Class::Unknown | Class::Either, ..) if writers.contains_key(&at) => {
                    not_before(writers[&at], operation.call)
                }
                (Class::Same | Class::Either, ..) => not_before(operation.revision + 1, operation.call),
                (_, Outcome::Future, Request::Range(range)) if !range.serializable => {
                    not_before(range.revision, operation.call)
                }
                (_, Outcome::Future, Request::Compact { revision }) => not_before(revision, operation.call),
                _ => {}
            }
        }
        let mut latest = Time(i64::MIN);
        for time in &mut times {
            latest = latest.max(*time);
            *time = latest;
        }
        Earliest { times }
    }

    /// The earliest time of a revision; `None` above the revision after the last.
    pub fn of_revision(&self, revision: i64) -> Option<Time> {
        let last = self.times.len() as i64 - 2;
        (revision <= last).then(|| self.times[usize::try_from(revision).unwrap_or(0)])
    }
}
