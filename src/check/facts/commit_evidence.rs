//! Input: a write and its answer. Output: what the answer proves about the write's revision. Trap: an answer may show a
//! version that existed before ([`shown`]), so only [`proven`] and [`attributed`] are revisions of the write itself.

use crate::check::Evidence;
use crate::history::{KeyId, Marks, Operation, OperationId, Revision, Subresource, Symbol, Verb};
use crate::order::{Change, Provenance, Version, remembers};
use rustc_hash::FxHashMap;

/// The revision at which a write certainly committed, by its own answer: a creation, or an update that names its base and was
/// answered above it. A write that changed nothing is answered with the current version, and so may any patch without base be.
pub fn proven(evidence: &Evidence<'_>, o: &Operation) -> Option<Revision> {
    let shows = evidence.committed(o)
        && o.key.is_some()
        && o.answered.is_some()
        && o.subresource.answers_parent()
        && !o.marks.has(Marks::LIST_ANSWER)
        && !o.marks.has(Marks::REMOVES);
    let commits = match o.verb {
        Verb::Create => o.status == 201 && o.subresource == Subresource::None,
        Verb::Update | Verb::Patch => o.shows_its_commit(),
        _ => false,
    };
    (shows && commits).then_some(o.answered)
}

/// Whether a version is a creation, by the answer of its writer or by an etcd witness; `None` if neither tells. A watch event
/// may have a wrong type.
pub fn is_creation(evidence: &Evidence<'_>, version: &Version) -> Option<bool> {
    let writer = version.writer.is_some().then(|| evidence.history.operation(version.writer));
    match writer.filter(|o| proven(evidence, o) == Some(version.revision)) {
        Some(o) => Some(o.status == 201),
        None => (version.provenance == Provenance::Witness).then_some(version.change == Change::Created),
    }
}

/// Whether a version is an update, so that an earlier version made the object.
pub fn is_update(evidence: &Evidence<'_>, version: &Version) -> bool {
    version.change == Change::Updated && is_creation(evidence, version) != Some(true)
}

/// The revision that the timeline attributes to a write without base: the version of its answer, if no other request wrote
/// that version and no record showed it before.
pub fn attributed(evidence: &Evidence<'_>, id: OperationId) -> Option<Revision> {
    let history = evidence.history;
    let o = history.operation(id);
    let writer = evidence.order.timeline.writer(o.key, o.answered).filter(|_| o.answered.is_some());
    let wrote = writer.is_some_and(|writer| history.are_one_request(writer, id));
    proven(evidence, &o).or(wrote.then_some(o.answered))
}

/// The version that the answer of an accepted update shows without proof of a commit: the version that it made, or the current
/// one if it changed nothing. In both cases the server reads the object from etcd (apiserver `pkg/storage/etcd3/store.go`,
/// GuaranteedUpdate), so no later version existed before the request.
pub fn shown(evidence: &Evidence<'_>, o: &Operation) -> Option<Revision> {
    let shows = shows_object(o) && evidence.committed(o) && proven(evidence, o).is_none();
    shows.then_some(o.answered)
}

/// Whether the answer of an update shows a version of its object.
fn shows_object(o: &Operation) -> bool {
    matches!(o.verb, Verb::Update | Verb::Patch)
        && o.key.is_some()
        && o.answered.is_some()
        && o.subresource.answers_parent()
        && !o.marks.has(Marks::LIST_ANSWER)
        && !o.marks.has(Marks::REMOVES)
}

/// Whether a write was answered with success and may have changed something. A server that finds nothing to change commits
/// nothing and answers with the current version (apiserver `pkg/storage/etcd3/store.go`, GuaranteedUpdate).
pub fn took_effect(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> bool {
    evidence.committed(o) && !changed_nothing(evidence, id, o)
}

/// Whether the answer shows the base of the write, or a version from before it: another request wrote that version, or its
/// revision was complete before this request was sent.
fn changed_nothing(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> bool {
    let (history, order) = (evidence.history, evidence.order);
    if !shows_object(o) || order.timeline.wrote_its_answer(id) || proven(evidence, o).is_some() {
        return false;
    }
    let Some(version) = order.timeline.version_at(o.key, o.answered) else { return o.answered == o.asked_revision };
    if version.writer.is_some() {
        return !history.are_one_request(version.writer, id);
    }
    let complete = order.watermarks.before_request(history, &order.clocks, history.resource_of(o.key), o);
    o.answered == o.asked_revision || complete.is_some_and(|watermark| watermark.revision >= o.answered)
}

/// A write of a process with a memory that certainly made a version.
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    /// The write.
    pub id: OperationId,
    /// The operation of `id`.
    pub operation: Operation,
    /// The key of the version.
    pub key: KeyId,
    /// Its revision.
    pub revision: Revision,
}

impl Commit {
    /// Whether no client had seen its revision, or a higher one, when it was sent: see [`is_above_all`].
    pub fn is_above_all(&self, evidence: &Evidence<'_>) -> bool {
        (self.key, self.revision) == (self.operation.key, self.operation.answered)
            && is_above_all(evidence, self.id, &self.operation)
    }
}

/// Versions that certainly are the commits of their writers: creations, updates above their bases, and deletions in the
/// revision order.
pub fn commits<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = Commit> + 'e {
    let (history, timeline) = (evidence.history, &evidence.order.timeline);
    let writes = evidence.of_verbs(&[Verb::Create, Verb::Update, Verb::Patch]);
    let answered = writes.filter(move |(id, o)| {
        timeline.made_its_answer(history, *id, o) && remembers(history, o.incarnation) && proven(evidence, o).is_some()
    });
    let answered =
        answered.map(|(id, operation)| Commit { id, operation, key: operation.key, revision: operation.answered });
    let deleted = timeline.deletions().filter(|version| version.writer.is_some()).filter_map(move |version| {
        let (id, operation) = (version.writer, history.operation(version.writer));
        let proved = match operation.verb {
            Verb::Delete => version.uid.is_some() && removal(evidence, version).is_some(),
            // A version that the answer shows is among `answered`.
            _ => {
                proven(evidence, &operation) == Some(version.revision)
                    && !(timeline.wrote_its_answer(id) && operation.key == version.key)
            }
        };
        (proved && remembers(history, operation.incarnation)).then_some(Commit {
            id,
            operation,
            key: version.key,
            revision: version.revision,
        })
    });
    answered.chain(deleted)
}

/// Accepted updates of processes with a memory that show a version and prove no commit: see [`shown`].
pub fn unproven<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (OperationId, Operation)> + 'e {
    let writes = evidence.of_verbs(&[Verb::Update, Verb::Patch]);
    writes.filter(move |(_, o)| remembers(evidence.history, o.incarnation) && shown(evidence, o).is_some())
}

/// Whether a write with a proven revision certainly committed above everything that any client had seen when it was sent.
pub fn is_above_all(evidence: &Evidence<'_>, id: OperationId, o: &Operation) -> bool {
    let (history, order) = (evidence.history, evidence.order);
    order.frontiers.are_steady()
        && order.timeline.wrote_its_answer(id)
        && o.invoke.is_known()
        && o.clock.is_some()
        && history.scopes[o.scope.index()].resource == history.resource_of(o.key)
}

/// Whether a version was requested after a higher revision was complete. Then the store went back, and its revisions do not
/// order lives (`revision-rewind` reports it).
pub fn went_back(evidence: &Evidence<'_>, version: &Version) -> bool {
    if !version.writer.is_some() {
        return false;
    }
    let (history, order) = (evidence.history, evidence.order);
    let o = history.operation(version.writer);
    let watermark = order.watermarks.before_request(history, &order.clocks, history.resource_of(version.key), &o);
    watermark.is_some_and(|watermark| watermark.revision > version.revision)
}

/// Removals with a known request and a known revision: request to deletion, with the uid that it ended.
///
/// An event dates a deletion only if it certainly does not carry the version before (servers before 1.10 carry that one): the
/// watch would have delivered that version, or the request or its answer names it. An etcd witness always dates a deletion,
/// but its tombstone may name no uid; then the request's answer does.
pub fn removals(evidence: &Evidence<'_>) -> FxHashMap<OperationId, Version> {
    let deletions = evidence.order.timeline.deletions().filter(|v| v.writer.is_some());
    deletions.filter_map(|version| Some((version.writer, removal(evidence, version)?))).collect()
}

/// The end of each life that a deletion certainly dates, by name and uid: see [`removals`]. A witness that names the uid dates
/// it without a request. Of several ends the last one counts.
pub fn ends(evidence: &Evidence<'_>) -> FxHashMap<(KeyId, Symbol), Version> {
    let timeline = &evidence.order.timeline;
    let mut ends: FxHashMap<(KeyId, Symbol), Version> = FxHashMap::default();
    for deletion in timeline.deletions() {
        let by_request = || deletion.writer.is_some().then(|| removal(evidence, deletion)).flatten();
        let by_itself = || (deletion.uid.is_some() && timeline.is_dated(&deletion)).then_some(deletion);
        let Some(end) = by_request().or_else(by_itself) else { continue };
        let known = ends.entry((end.key, end.uid)).or_insert(end);
        if known.revision < end.revision {
            *known = end;
        }
    }
    ends
}

/// A deletion in the revision order with its uid, if it certainly belongs to its writer and has its own revision.
fn removal(evidence: &Evidence<'_>, deletion: Version) -> Option<Version> {
    let o = evidence.history.operation(deletion.writer);
    let before = if o.answered.is_some() { o.answered } else { o.asked_revision };
    let witnessed = deletion.provenance == Provenance::Witness;
    let uid = if witnessed && !deletion.uid.is_some() { o.answer_uid } else { deletion.uid };
    let dated = evidence.order.timeline.is_dated(&deletion) || (before.is_some() && before < deletion.revision);
    (uid.is_some() && uid == o.answer_uid && dated).then_some(Version { uid, ..deletion })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::sketch::sketch;
    use crate::order::{Order, OrderOptions};

    /// Revision and uid of every dated removal.
    fn dated(text: &str) -> Vec<(String, String)> {
        let history = sketch(text).unwrap_or_else(|error| panic!("{error}"));
        let order = Order::derive(&history, &OrderOptions::default());
        let options = crate::check::Options::default();
        let evidence =
            Evidence { history: &history, order: &order, options: &options, facts: &crate::check::Facts::default() };
        let found = removals(&evidence).into_values();
        found.map(|version| (version.revision.to_string(), history.name(version.uid).to_owned())).collect()
    }

    #[test]
    fn a_tombstone_without_uid_is_that_of_the_deletion_whose_answer_names_it() {
        let story = "recorded audit\nc@A CREATE a => a:u1@21\nc@A DELETE a => ok:u1\n";
        let known = [("25".to_owned(), "u1".to_owned())];
        assert_eq!(dated(&format!("{story}etcd +a:u1@21 -a:-@25 +b:u2@30\n")), known);
        // If another life may lie between, nothing shows which of two tombstones the request left.
        assert_eq!(dated(&format!("{story}etcd -a:-@25 +b:u2@30\n")), []);
    }

    #[test]
    fn an_event_dates_a_deletion_where_the_watch_would_have_shown_the_version_that_it_carries() {
        let story = "c@A CREATE a => a:u1@21\nc@A DELETE a => ok:u1\n";
        let known = [("25".to_owned(), "u1".to_owned())];
        let watched = |watch: &str| dated(&format!("{story}{watch}\n"));
        assert_eq!(watched("w@A WATCH from 20 +a:u1@21 -a:u1@25"), known);
        assert_eq!(watched("w@A WATCH from 22 -a:u1@25"), known);
        assert_eq!(watched("w@A WATCH rv=0 +a:u1@21 -a:u1@25"), known);
        assert_eq!(watched("w@A WATCH initial rv=0 +a:u1@21 ^^23 -a:u1@25"), known);
        // Another client may have written version 25 before the watch began, and servers before 1.10 carry that one.
        assert_eq!(watched("w@A WATCH rv=0 -a:u1@25"), []);
        assert_eq!(watched("w@A WATCH from 30 -a:u1@25"), []);
        assert_eq!(watched("w@A WATCH rv=0 +a:u0@19 -a:u1@25"), []);
        // An object that leaves a selection may still exist.
        assert_eq!(watched("w@A WATCH labels(x=y) from 20 +a:u1@21 -a:u1@25"), []);
        // Servers from 1.26 on answer with the deletion's own version, earlier ones with the version that it ended.
        for answer in ["a:u1@25", "a:u1@21"] {
            let answered = story.replace("ok:u1", answer);
            assert_eq!(dated(&format!("{answered}w@A WATCH from 20 +a:u1@21 -a:u1@25\n")), known);
        }
        let unseen = story.replace("ok:u1", "a:u1@25");
        assert_eq!(dated(&format!("{unseen}w@A WATCH rv=0 -a:u1@25\n")), []);
    }
}
