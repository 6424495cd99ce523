//! The read-your-own-writes client: before a read of its cache, it waits until the cache has the writes that the same process
//! made. Sources: kubernetes-sigs/controller-runtime#3472 (a read of one object waits for the process's writes of it, a list for
//! all its writes of the kind), KEP-5647 (a controller puts a reconcile off until then). Both forget everything at a restart.
//!
//! Input: a finding. Output: whether such a client would have read the change that the process missed. Invariant: a write of the
//! process counts only if its answer certainly came before the read.

use super::subject;
use crate::check::{Effect, Evidence, Fact, Finding, Prevention};
use crate::history::{ClockId, IncarnationId, KeyId, OperationId, Revision, Verb};
use crate::ingest::Time;
use crate::order::{EvidenceRef, Observation};

/// The most own writes that are examined for one finding.
const WRITES: usize = 10_000;

/// A change that a process had not read when it read or decided.
pub(crate) struct Missed {
    /// The object that changed.
    pub key: KeyId,
    /// The revision of the change.
    pub change: Revision,
    /// The revision of the state that the process read; zero if it read that there is no object.
    pub seen: Revision,
    /// The moment at which it asked its cache.
    pub moment: (Time, ClockId),
    /// Whether the read was a list.
    pub listed: bool,
}

/// The prevention by a client that waits for its own writes; `None` for findings about anything but a read of old state.
pub fn prevention(evidence: &Evidence<'_>, finding: &Finding, fault: OperationId) -> Option<Prevention> {
    let say = |effect, smallest_revision, because| Prevention {
        request: "a client that waits until its cache has the writes of its own process (read-your-own-writes)"
            .to_owned(),
        effect,
        smallest_revision,
        because,
    };
    if finding.rule == "read-your-writes" {
        return own_write(evidence, finding, fault).map(|(effect, revision, because)| say(effect, revision, because));
    }
    let missed = missed(evidence, finding, fault)?;
    let (effect, revision, because) = judged(evidence, finding.incarnation, &missed);
    Some(say(effect, revision, because))
}

/// The finding is that the process did not read its own write. Only a restart in between makes the client forget the write.
fn own_write(evidence: &Evidence<'_>, finding: &Finding, fault: OperationId) -> Option<(Effect, Revision, String)> {
    let history = evidence.history;
    let wrote = finding.certificate.facts.first().filter(|fact| fact.operation.is_some())?;
    let reader = history.operation(fault);
    let writer = history.operation(wrote.operation).incarnation;
    let write = at(wrote.revision);
    Some(match writer == reader.incarnation {
        true => (
            Effect::Impossible,
            wrote.revision,
            format!("a read of its cache waits for the process's own write{write}"),
        ),
        false => (Effect::None, Revision::NONE, forgotten(&write)),
    })
}

/// What such a client would have made of a read that missed a change: the effect, the smallest revision that it would have waited
/// for, and the reason.
pub(crate) fn judged(evidence: &Evidence<'_>, life: IncarnationId, missed: &Missed) -> (Effect, Revision, String) {
    let (history, order) = (evidence.history, evidence.order);
    let resource = history.resource_of(missed.key);
    let frontier = order.frontiers.of(history, order, life, resource);
    let (time, clock) = missed.moment;
    let writes =
        frontier.iter().flat_map(|all| all.commits.above(&order.clocks, clock, time, missed.seen)).take(WRITES);
    let (mut earlier, mut other, mut former): (Option<Observation>, _, _) = (None, None, None);
    for write in writes {
        let is_own = matches!(write.evidence, EvidenceRef::Answer(id) if history.operation(id).incarnation == life);
        let is_late = write.revision >= missed.change;
        match (is_own, is_late) {
            (true, true) if missed.listed || write.key == missed.key => {
                let because = format!(
                    "the process itself had written {} at {} before it read, so the read waits for a state that has the change at {}",
                    history.key_name(write.key),
                    write.revision,
                    missed.change
                );
                return (Effect::Impossible, write.revision, because);
            }
            (true, true) => other = Some(write),
            (true, false) if missed.listed || write.key == missed.key => {
                earlier = earlier.filter(|known| known.revision >= write.revision).or(Some(write));
            }
            (false, true) => former = Some(write),
            _ => {}
        }
    }
    if let Some(write) = other {
        let because = format!(
            "the process had written {} at {} before it read: a list of the kind waits for that, a read of one object does not",
            history.key_name(write.key),
            write.revision
        );
        return (Effect::Narrowed, write.revision, because);
    }
    if let Some(write) = earlier {
        let because = format!(
            "the read waits for the process's own write at {}; the change at {} came later",
            write.revision, missed.change
        );
        return (Effect::Narrowed, write.revision, because);
    }
    let because = match former {
        Some(write) => forgotten(&at(write.revision)),
        None => format!(
            "the evidence shows no write of {} by this process that its cache lacked, so it does not wait for the change at {}",
            history.resource_name(resource),
            missed.change
        ),
    };
    (Effect::None, Revision::NONE, because)
}

fn at(revision: Revision) -> String {
    if revision.is_some() { format!(" at {revision}") } else { String::new() }
}

fn forgotten(write: &str) -> String {
    format!("the write{write} is of an earlier life of the process, and a client forgets its writes at a restart")
}

/// The change that the finding says the process had not read.
fn missed(evidence: &Evidence<'_>, finding: &Finding, fault: OperationId) -> Option<Missed> {
    let (history, order) = (evidence.history, evidence.order);
    let facts = &finding.certificate.facts;
    let (last, before) = facts.split_last()?;
    let o = history.operation(fault);
    let missed = match finding.rule {
        "monotonic-reads" if matches!(o.verb, Verb::List | Verb::Get) => Missed {
            key: subject(finding),
            change: before.iter().map(|fact| fact.revision).max()?,
            seen: last.revision,
            moment: (o.invoke, o.clock),
            listed: o.verb == Verb::List,
        },
        "intermediate-state" => decided(finding, last.key, last.revision, evidence)?,
        "false-absence" | "stale-premise" | "read-skew" => {
            // Each version that the finding cites contradicts the premise: the first one suffices.
            let key = facts.first()?.key;
            let cited = |above: Revision| {
                facts.iter().filter(move |f| f.key == key).map(|f| f.revision).filter(move |r| *r > above)
            };
            let read = decided(finding, key, cited(Revision::NONE).max()?, evidence)?;
            Missed { change: cited(read.seen).min()?, ..read }
        }
        "name-reuse" | "ghost-actor" | "blind-write" => {
            let watermark = order.watermarks.before_request(history, &order.clocks, history.resource_of(o.key), &o)?;
            let current = order.timeline.at_or_before(o.key, watermark.revision)?;
            decided(finding, o.key, current.revision, evidence)?
        }
        _ => return None,
    };
    let is_known = missed.key.is_some() && history.resource_of(missed.key).is_some();
    (is_known && missed.change > missed.seen).then_some(missed)
}

/// The last read of an object that a finding cites, of its process, of a state before a change.
fn decided(finding: &Finding, key: KeyId, change: Revision, evidence: &Evidence<'_>) -> Option<Missed> {
    let history = evidence.history;
    let is_read = |fact: &&Fact| {
        fact.key == key
            && fact.incarnation == finding.incarnation
            && fact.revision < change
            && !(fact.operation.is_some() && history.operation(fact.operation).verb.is_write())
    };
    let read = finding.certificate.facts.iter().rfind(is_read)?;
    let o = read.operation.is_some().then(|| history.operation(read.operation));
    // A list and a watch fill the cache, and the process reads from it after their answers.
    let of_one = o.filter(|o| o.verb == Verb::Get);
    Some(Missed {
        key,
        change,
        seen: read.revision,
        moment: of_one.map_or((read.time, read.clock), |o| (o.invoke, o.clock)),
        listed: o.is_some_and(|o| o.verb == Verb::List),
    })
}
