//! What a write's own answer proves about the revision at which it committed.

use super::Evidence;
use crate::history::{AuditId, Marks, OperationId, Revision, Subresource, Verb};
use crate::order::{Change, Version};
use rustc_hash::FxHashMap;

/// The revision at which a write certainly committed, by its own answer: a creation, or an update that names its base and was
/// answered above it. A no-op answers with the version that it met, and so may any patch without base: neither proves a commit.
pub fn proven(evidence: &Evidence<'_>, id: OperationId) -> Option<Revision> {
    let o = evidence.history.operation(id);
    let shows = evidence.committed(&o)
        && o.key.is_some()
        && o.answered.is_some()
        && o.subresource.answers_parent()
        && !o.marks.has(Marks::LIST_ANSWER)
        && !o.marks.has(Marks::REMOVES);
    let commits = match o.verb {
        Verb::Create => o.status == 201 && o.subresource == Subresource::None,
        Verb::Update | Verb::Patch => o.status == 201 || (o.asked_revision.is_some() && o.answered > o.asked_revision),
        _ => false,
    };
    (shows && commits).then_some(o.answered)
}

/// The revision at which a write without base took effect, as the timeline takes it: its answer's version, where nobody else
/// wrote that version and nobody showed it before.
pub fn attributed(evidence: &Evidence<'_>, id: OperationId) -> Option<Revision> {
    let history = evidence.history;
    let o = history.operation(id);
    let wrote =
        evidence.order.timeline.writer(o.key, o.answered).filter(|_| o.answered.is_some()).is_some_and(|writer| {
            // The server's record of the same request may stand for it.
            let w = history.operation(writer);
            writer == id || (w.audit_id == o.audit_id && w.audit_id != AuditId::None && w.verb == o.verb)
        });
    proven(evidence, id).or(wrote.then_some(o.answered))
}

/// Whether a version is certainly the commit of its writer, at its revision: a creation, an update above its base, or a deletion
/// that T knows.
pub fn proves(evidence: &Evidence<'_>, version: &Version) -> bool {
    if !version.writer.is_some() {
        return false;
    }
    let o = evidence.history.operation(version.writer);
    match o.verb {
        Verb::Delete => version.change == Change::Deleted && version.uid.is_some() && version.uid == o.answer_uid,
        _ => proven(evidence, version.writer) == Some(version.revision),
    }
}

/// Removals of which both the request and the revision are known: request to the deletion in T.
///
/// An event dates a deletion only where the version before it is known too (servers before 1.10 put that version into the
/// event); an etcd witness always does.
pub fn removals(evidence: &Evidence<'_>) -> FxHashMap<OperationId, Version> {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let dated = |version: &Version| {
        let o = history.operation(version.writer);
        let before = if o.answered.is_some() { o.answered } else { o.asked_revision };
        let witnessed = version.provenance == crate::order::Provenance::Witness;
        o.answer_uid.is_some() && o.answer_uid == version.uid && (witnessed || before.is_some())
    };
    timeline
        .all()
        .iter()
        .filter(|v| v.change == Change::Deleted && v.writer.is_some() && v.uid.is_some())
        .filter(dated)
        .map(|v| (v.writer, v))
        .collect()
}
