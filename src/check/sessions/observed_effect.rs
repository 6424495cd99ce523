//! Effects that were seen before their causes. Input: an observation of a process. Output: an [`Effect`]: the process had seen
//! a write of another process, and the observation lacks a change that the writer had seen or written before. Trap: the cycle
//! counts only if times prove every step ([`Effect::facts`]).

use crate::check::{Evidence, Fact};
use crate::history::{ClockId, IncarnationId, KeyId, Operation, ResourceId, Revision, ScopeId, Symbol, Verb};
use crate::ingest::Time;
use crate::order::graph::{Access, HappensBefore, Record, Touch, Units};
use crate::order::{EvidenceRef, Frontier, Observation, PerKeyMax, RunningMax, Version, is_deliberate, remembers};

/// Upper bound on the observations of each resource that are examined for one observation, the latest first.
const MAX_OBSERVATIONS: usize = 64;

/// One observation: a state of one object or of a scope at a revision.
#[derive(Clone, Copy, Debug)]
pub struct ObservedEffect {
    /// Its record.
    pub record: Record,
    /// The process.
    pub incarnation: IncarnationId,
    /// The decision that it belongs to, if any.
    pub decision: Symbol,
    /// The time of its request, or of the cache read.
    pub begun: (Time, ClockId),
    /// The object; none for a scope.
    pub key: KeyId,
    /// The scope; none for an object in a cache.
    pub scope: ScopeId,
    /// The resource.
    pub resource: ResourceId,
    /// The version of the object, or the revision of the list.
    pub revision: Revision,
}

impl ObservedEffect {
    /// Whether it certainly lacks no change that a client had seen when it began: see [`crate::order::Frontiers::is_current`].
    pub fn is_current(&self, evidence: &Evidence<'_>) -> bool {
        matches!(self.record, Record::Operation(id) if evidence.order.frontiers.is_current(id))
    }
}

/// The way in which the writer of an effect knew the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// It had seen the cause; the record.
    Seen(Record),
    /// It had written the cause.
    Written,
}

/// An effect seen before its cause.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The observation that lacks the cause.
    pub observation: ObservedEffect,
    /// The change that the observation lacks.
    pub cause: Version,
    /// The way in which the effect's writer knew the cause.
    pub link: Link,
    /// The effect.
    pub effect: Version,
    /// The record by which the process had seen the effect.
    pub seen: Record,
}

/// Everything that processes with a memory read, without deliberate reads of the past. Events are left out: a stale stream
/// shows no state at the time, because it reaches that state later.
pub fn observations<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = ObservedEffect> + 'e {
    let (history, order) = (evidence.history, evidence.order);
    let reads = evidence.of_verbs(&[Verb::Get, Verb::List]).filter_map(move |(id, o)| {
        if !remembers(history, o.incarnation) || !o.is_answered() || is_deliberate(&order.chains, id, &o) {
            return None;
        }
        let revision = match o.verb {
            Verb::Get if o.key.is_some() => o.answered.known()?,
            Verb::List => order.list_revision(history, id)?.0,
            _ => return None,
        };
        Some(ObservedEffect {
            record: Record::Operation(id),
            incarnation: o.incarnation,
            decision: o.decision,
            begun: (o.invoke, o.clock),
            key: if o.verb == Verb::Get { o.key } else { KeyId::NONE },
            scope: o.scope,
            resource: history.scopes[o.scope.index()].resource,
            revision,
        })
    });
    let cached = history.cache_reads.iter().enumerate();
    let cached = cached.filter(move |(_, read)| remembers(history, read.incarnation) && read.revision.is_some());
    let cached = cached.map(move |(index, read)| ObservedEffect {
        record: Record::Cache(index as u32),
        incarnation: read.incarnation,
        decision: read.decision,
        begun: (read.at, read.clock),
        key: read.key,
        scope: ScopeId::NONE,
        resource: history.resource_of(read.key),
        revision: read.revision,
    });
    reads.chain(cached)
}

/// The first effect that a process had seen when it made an observation without the cause. `wanted` selects links.
pub fn before(evidence: &Evidence<'_>, observation: ObservedEffect, wanted: fn(Link) -> bool) -> Option<Effect> {
    let (history, order) = (evidence.history, evidence.order);
    if observation.is_current(evidence) {
        return None;
    }
    // Only the next version of an object can be the first one that an observation lacks.
    let next = match observation.key.is_some() {
        true => {
            let versions = order.timeline.versions(observation.key);
            Some(versions.get(versions.through(observation.revision))?)
        }
        false => None,
    };
    let lacks = next.map_or(observation.revision, |version| version.revision);
    let (time, clock) = observation.begun;
    // No client can have known before the observation what was sent after it began, or anything above that. For nearly every
    // read this covers everything that the read lacks.
    let after = order.watermarks.after(history, &order.clocks, observation.resource, clock, time);
    let first = if next.is_some() { lacks } else { lacks.next() };
    if after.is_some_and(|(after, _)| after <= first) {
        return None;
    }
    let of_session = order.frontiers.of_session(history, order, observation.incarnation);
    for (resource, frontier) in of_session {
        // An effect has a higher revision than its cause if both come from one counter.
        let shared = history.share_counter(resource, observation.resource);
        let above = if shared { lacks } else { Revision::NONE };
        for observed in frontier.objects.above(&order.clocks, clock, time, above).take(MAX_OBSERVATIONS) {
            let effect = order.timeline.version_at(observed.key, observed.revision);
            let Some(effect) = effect.filter(|v| v.writer.is_some() && v.key != observation.key) else { continue };
            let writer = history.operation(effect.writer);
            let stranger = order.sessions.are_two(history, writer.incarnation, observation.incarnation);
            if !stranger || !remembers(history, writer.incarnation) {
                continue;
            }
            let known = order.frontiers.of(history, order, writer.incarnation, observation.resource);
            let Some((cause, link)) = known.and_then(|known| cause(evidence, &observation, next, &known, &writer))
            else {
                continue;
            };
            if wanted(link) && cause.writer.is_some() && cause.key != effect.key {
                let seen = record(observed.evidence);
                return Some(Effect { observation, cause, link, effect, seen });
            }
        }
    }
    None
}

/// A change that an observation lacks and that a writer knew when it sent its write.
fn cause(
    evidence: &Evidence<'_>,
    observation: &ObservedEffect,
    next: Option<Version>,
    known: &Frontier<'_>,
    writer: &Operation,
) -> Option<(Version, Link)> {
    let (history, order) = (evidence.history, evidence.order);
    let (clocks, moment) = (&order.clocks, (writer.invoke, writer.clock));
    let version = |observed: Observation| {
        let version = order.timeline.version_at(observed.key, observed.revision)?;
        let inside = match next {
            Some(next) => version.key == next.key,
            None => {
                history.covers_key(observation.scope, version.key)
                    && history.selects(observation.scope, version.key, version.attributes) == Some(true)
            }
        };
        (inside && version.revision > observation.revision).then_some(version)
    };
    let highest = |maximum: &RunningMax<'_>, keyed: &PerKeyMax<'_>| match next {
        Some(next) => keyed.get(&next.key)?.before(clocks, moment.1, moment.0),
        None => maximum.before(clocks, moment.1, moment.0),
    };
    let written = highest(&known.commits, &known.commits_of).and_then(version).map(|v| (v, Link::Written));
    let seen = highest(&known.objects, &known.keys)
        .and_then(|observed| Some((version(observed)?, Link::Seen(record(observed.evidence)))));
    // A version that the writer wrote itself does not need an observation.
    match (written, seen) {
        (Some(written), Some(seen)) if written.0.revision >= seen.0.revision => Some(written),
        (written, seen) => seen.or(written),
    }
}

fn record(showing: EvidenceRef) -> Record {
    match showing {
        EvidenceRef::Answer(id) => Record::Operation(id),
        EvidenceRef::Delivery(index, watch) => Record::Delivery(index, watch),
    }
}

impl Effect {
    /// The cycle, with a fact for each step; `None` if times do not prove all of its steps.
    pub fn facts(&self, evidence: &Evidence<'_>) -> Option<Vec<Fact>> {
        let history = evidence.history;
        let mut units = Units::default();
        let mut touched = |record: Record, key, revision, touch| {
            let unit = units.unit_of(history, record);
            units.accesses.push(Access { key, revision, touch, unit, at: record });
        };
        let (cause, effect) = (self.cause, self.effect);
        touched(Record::Operation(cause.writer), cause.key, cause.revision, Touch::Wrote);
        if let Link::Seen(record) = self.link {
            touched(record, cause.key, cause.revision, Touch::Saw);
        }
        touched(Record::Operation(effect.writer), effect.key, effect.revision, Touch::Wrote);
        touched(self.seen, effect.key, effect.revision, Touch::Saw);
        let (record, revision) = (self.observation.record, self.observation.revision);
        let shown = match record {
            Record::Operation(id) if !self.observation.key.is_some() => {
                history.item(&history.operation(id), cause.key).map(|item| item.revision)
            }
            _ => Some(revision),
        };
        let touch = if shown.is_some() { Touch::Saw } else { Touch::SawNothing };
        touched(record, cause.key, shown.unwrap_or(revision), touch);
        evidence.contradiction(&HappensBefore::by_sessions(history, evidence.order, &units))
    }
}
