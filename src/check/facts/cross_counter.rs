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
        let complete = order.watermarks.before_request(history, &order.clocks, resource, &o);
        Place {
            from: complete.map_or(Revision::NONE, |watermark| watermark.revision),
            through: order
                .watermarks
                .after_answer(history, &order.clocks, resource, &o)
                .map(|(revision, _)| revision.previous()),
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
    let watermark = order.watermarks.before_request(history, &order.clocks, history.resource_of(version.key), &o);
    let writer = version.writer.is_some().then(|| history.operation(version.writer));
    watermark.is_some_and(|watermark| watermark.revision >= version.revision)
        || order.clocks.is_before_request(version.moment(history), &o)
        || writer.is_some_and(|writer| order.clocks.is_answered_before(&writer, &o))
}

/// The record of a removal at an unknown revision that was certainly answered before a request was sent. A uid is removed once,
/// so all records of its removal are about one event.
pub fn removal_before<'r>(evidence: &Evidence<'_>, records: &'r [Removal], id: OperationId) -> Option<&'r Removal> {
    if !id.is_some() {
        return None;
    }
    let (history, order) = (evidence.history, evidence.order);
    let o = history.operation(id);
    records.iter().find(|removal| {
        let by = history.operation(removal.operation);
        order.clocks.is_before_request((by.ret, by.clock), &o)
    })
}

/// Whether a life had certainly ended before a request was sent.
pub fn had_ended(evidence: &Evidence<'_>, life: &Lifetime, id: OperationId) -> bool {
    let timeline = &evidence.order.timeline;
    removal_before(evidence, life.removals(timeline), id).is_some()
        || life.last(timeline).is_some_and(|last| was_before(evidence, &last, id))
}

/// The times by which a life had ended, from the requests that ended it and the clients that saw it.
pub fn end_moments(evidence: &Evidence<'_>, life: &Lifetime) -> Vec<(Time, ClockId)> {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let last = life.last(timeline);
    let removals = life.removals(timeline).iter().map(|removal| removal.operation);
    let writer = last.map(|last| last.writer).filter(|writer| writer.is_some());
    let answered = |id| evidence.order.clocks.answered(&history.operation(id));
    removals.chain(writer).flat_map(answered).chain(last.map(|last| last.moment(history))).collect()
}

/// The end of a life as a fact, if known. Of several records, the fact cites one that proves the end before a request.
pub fn end(evidence: &Evidence<'_>, life: &Lifetime, name: &str, before: OperationId) -> Option<Fact> {
    let timeline = &evidence.order.timeline;
    let uid = evidence.short_uid(life.uid);
    let gone = format!("{name} with uid {uid} was deleted");
    let records = life.removals(timeline);
    if let Some(removal) = removal_before(evidence, records, before).or(records.first()) {
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
