//! Places of writes in the counter of another resource. Two built-in resources may be kept in two etcd clusters, so that their
//! revisions do not compare ([`History::share_counter`](crate::history::History::share_counter)). Input: a version or an
//! operation, and a resource. Output: an interval of that resource's counter, from the revision that was complete before the
//! request to the first one that was sent after the answer.

use crate::check::{Evidence, Fact};
use crate::history::{ClockId, OperationId, ResourceId, Revision};
use crate::ingest::Time;
use crate::order::{Change, Death, Lifetime, Removal, Version};

/// An interval of a counter in which a write took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Inclusive lower bound of the state at the write.
    pub from: Revision,
    /// Inclusive upper bound; `None` without a bound.
    pub through: Option<Revision>,
}

impl Place {
    /// The place of a version in the counter of a resource.
    pub fn of_version(evidence: &Evidence<'_>, version: &Version, resource: ResourceId) -> Place {
        let history = evidence.history;
        if history.share_counter(history.resource_of(version.key), resource) {
            return Place { from: version.revision, through: Some(version.revision) };
        }
        if version.writer.is_some() {
            return Place::of_operation(evidence, version.writer, resource);
        }
        Place { from: Revision::NONE, through: sent_later(evidence, resource, version.moment(history)) }
    }

    /// The place of an operation in the counter of a resource.
    pub fn of_operation(evidence: &Evidence<'_>, id: OperationId, resource: ResourceId) -> Place {
        let (history, order) = (evidence.history, evidence.order);
        let o = history.operation(id);
        let complete = order.watermarks.before(history, &order.clocks, resource, o.clock, o.invoke);
        Place {
            from: complete.map_or(Revision::NONE, |watermark| watermark.revision),
            through: sent_later(evidence, resource, (o.ret, o.clock)),
        }
    }
}

/// The revision below the first one that was sent after a moment.
fn sent_later(evidence: &Evidence<'_>, resource: ResourceId, (time, clock): (Time, ClockId)) -> Option<Revision> {
    if !time.is_known() || !clock.is_some() {
        return None;
    }
    let (revision, _) =
        evidence.order.watermarks.after(evidence.history, &evidence.order.clocks, resource, clock, time)?;
    Some(revision.previous())
}

/// Whether a version was certainly complete before a request was sent: by its revision, or by the times of its writer and its
/// observers.
pub fn was_before(evidence: &Evidence<'_>, version: &Version, id: OperationId) -> bool {
    if !id.is_some() {
        return false;
    }
    let (history, order) = (evidence.history, evidence.order);
    let o = history.operation(id);
    let sent = (o.invoke, o.clock);
    let watermark =
        order.watermarks.before(history, &order.clocks, history.resource_of(version.key), o.clock, o.invoke);
    let moments = [Some(version.moment(history)), version.answered(history)];
    watermark.is_some_and(|watermark| watermark.revision >= version.revision)
        || moments.into_iter().flatten().any(|moment| order.clocks.before(moment, sent))
}

/// Whether a removal at an unknown revision was certainly complete before a request was sent.
pub fn was_removed_before(evidence: &Evidence<'_>, removal: &Removal, id: OperationId) -> bool {
    if !id.is_some() {
        return false;
    }
    let (by, o) = (evidence.history.operation(removal.operation), evidence.history.operation(id));
    by.ret.is_known() && evidence.order.clocks.before((by.ret, by.clock), (o.invoke, o.clock))
}

/// Whether a life had certainly ended before a request was sent.
pub fn had_ended(evidence: &Evidence<'_>, life: &Lifetime, id: OperationId) -> bool {
    let timeline = &evidence.order.timeline;
    let removed = life.removal(timeline).is_some_and(|removal| was_removed_before(evidence, &removal, id));
    removed || life.last(timeline).is_some_and(|last| was_before(evidence, &last, id))
}

/// The times by which a life had ended, from the requests that ended it and the clients that saw it.
pub fn end_moments(evidence: &Evidence<'_>, life: &Lifetime) -> Vec<(Time, ClockId)> {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let answered = |id: OperationId| (history.operation(id).ret, history.operation(id).clock);
    let removal = life.removal(timeline).map(|removal| answered(removal.operation));
    let last = life.last(timeline);
    let writer = last.filter(|last| last.writer.is_some()).map(|last| answered(last.writer));
    [removal, writer, last.map(|last| last.moment(history))].into_iter().flatten().collect()
}

/// The end of a life as a fact, if known.
pub fn end(evidence: &Evidence<'_>, life: &Lifetime, name: &str) -> Option<Fact> {
    let timeline = &evidence.order.timeline;
    let uid = evidence.short_uid(life.uid);
    let gone = format!("{name} with uid {uid} was deleted");
    if let Some(removal) = life.removal(timeline) {
        let fact = evidence.operation(removal.operation, removal.after, gone);
        return Some(Fact { key: life.key, uid: life.uid, ..fact });
    }
    let last = life.last(timeline)?;
    if last.change == Change::Deleted {
        return Some(evidence.version(&last, gone));
    }
    let other = evidence.short_uid(last.uid);
    Some(evidence.version(&last, format!("{name} had uid {other}, so uid {uid} was gone")))
}

/// The end of a life in words: "at revision 30", "after revision 20".
pub fn when(evidence: &Evidence<'_>, life: &Lifetime) -> String {
    let timeline = &evidence.order.timeline;
    match (life.death, life.last(timeline), life.removal(timeline)) {
        (Death::At(_), Some(last), _) => format!("at revision {}", last.revision),
        (Death::Before(_), Some(last), _) => format!("before revision {}", last.revision),
        (_, _, Some(removal)) if removal.after.is_some() => format!("after revision {}", removal.after),
        _ => "at an unknown revision".to_owned(),
    }
}
