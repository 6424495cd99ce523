//! Writes on a stale read. Input: writes without a precondition, and the last reads of their processes. Output: the writes
//! over changes of others, and those that put a field back. Bodies are read in parts of `MAX_WRITES_AT_ONCE` writes,
//! which bounds the memory.

use crate::check::facts::authorship::{Author, author};
use crate::check::facts::bodies::BodyReader;
use crate::check::facts::commit_evidence;
use crate::check::facts::knowledge::{ClientKnowledge, Known, LastRead, Shown};
use crate::check::facts::three_way_diff::{Changed, WriteHistory, is_by_others, written};
use crate::check::{Evidence, Kind};
use crate::history::{Document, IncarnationId, KeyId, Marks, Operation, OperationId, Revision, Subresource, Verb};
use crate::order::{Version, Versions, remembers};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// The writes that are compared at a time. Bounds the bodies in memory.
pub const MAX_WRITES_AT_ONCE: usize = 500;

/// Writes over more versions than this since the read are not compared field by field.
const VERSIONS: usize = 256;

/// A write on a stale read.
#[derive(Debug)]
pub struct StaleWrite {
    /// The write.
    pub id: OperationId,
    /// The last read of the object by its process.
    pub read: LastRead,
    /// Every version through this revision existed before the write took effect.
    pub through: Revision,
    /// The first version in between that another process made.
    pub other: Version,
}

/// The writes without precondition that follow a read of the same object.
#[derive(Debug, Default)]
pub struct Unconditioned {
    /// Those on a stale read.
    pub outdated: Vec<StaleWrite>,
    /// The process of every write that could be judged.
    pub checked: Vec<IncarnationId>,
    /// The number of writes whose process may have read more than the evidence shows.
    pub undecided: u64,
    /// The number of writes for which nothing proves that the process had the answer to its read.
    pub unordered: u64,
}

/// Whether the content of a write takes effect on any version of the object. A uid guards against another object of the name,
/// and not against changes of this one.
fn is_unconditioned(o: &Operation) -> bool {
    let names_uid_alone = o.marks.has(Marks::REQUEST_BODY)
        && matches!(o.verb, Verb::Update | Verb::Patch)
        && o.request_uid.is_some()
        && !o.asked_revision.is_some()
        && !o.marks.has(Marks::APPLY);
    o.marks.has(Marks::UNCONDITIONED) || names_uid_alone
}

impl<'h> Evidence<'h> {
    /// Writes that name no version (and deletions that name no uid either), after a read of the same object by the same
    /// process.
    pub(in crate::check) fn unconditioned(&self) -> &'h Unconditioned {
        self.facts.unconditioned.get_or_init(|| Unconditioned::of(self))
    }

    /// For each request that removed its object: the revision through which every version existed before.
    fn removal_bounds(&self) -> &'h FxHashMap<OperationId, Revision> {
        self.facts.removal_bounds.get_or_init(|| {
            let (history, timeline) = (self.history, &self.order.timeline);
            let mut bounds = FxHashMap::default();
            // A deletion of uncertain date still comes after every version below it.
            for deletion in timeline.deletions().filter(|v| v.writer.is_some()) {
                let o = history.operation(deletion.writer);
                if o.verb == Verb::Delete && o.key == deletion.key {
                    bounds.insert(deletion.writer, deletion.revision.previous());
                }
            }
            for removal in timeline.open_removals().iter().rev() {
                let before = removal.before.map_or(removal.after, |before| removal.after.min(before.previous()));
                bounds.insert(removal.operation, before);
            }
            bounds
        })
    }
}

impl Unconditioned {
    /// Collects the writes of one history. [`Evidence::unconditioned`] caches them.
    pub(in crate::check) fn of(evidence: &Evidence<'_>) -> Unconditioned {
        let history = evidence.history;
        let removals = commit_evidence::removals(evidence);
        let mut candidates: Vec<OperationId> = evidence
            .of_verbs(&[Verb::Update, Verb::Patch, Verb::Delete])
            .filter(|(_, o)| {
                evidence.committed(o)
                    && is_unconditioned(o)
                    && o.key.is_some()
                    && o.status != 201
                    && matches!(o.subresource, Subresource::None | Subresource::Status | Subresource::Part)
                    && remembers(history, o.incarnation)
            })
            .map(|(id, _)| id)
            .collect();
        // Writes of one object together.
        candidates.sort_by_key(|id| history.operations.key(id.index()));
        let mut found = Unconditioned::default();
        for candidates in candidates.chunks(evidence.facts.sizes.judged_at_once) {
            let pair =
                |id: &OperationId| (history.operations.incarnation(id.index()), history.operations.key(id.index()));
            let knowledge = ClientKnowledge::collect(evidence, &candidates.iter().map(pair).collect());
            for &id in candidates {
                found.judge(evidence, &knowledge, id, removals.get(&id));
            }
        }
        found.outdated.sort_unstable_by_key(|outdated| outdated.id);
        found
    }

    fn judge(
        &mut self,
        evidence: &Evidence<'_>,
        knowledge: &ClientKnowledge,
        id: OperationId,
        removal: Option<&Version>,
    ) {
        let Some(through) = present_before(evidence, id, removal) else { return };
        let o = evidence.history.operation(id);
        let read = knowledge.last(evidence, o.incarnation, o.key, (o.invoke, o.clock), |_| true);
        let is_same =
            |read: &LastRead| matches!(read.known, Known::Life(uid) if uid == o.answer_uid || !o.answer_uid.is_some());
        let Some(read) = read.filter(|read| is_same(read) && read.revision.is_some()) else {
            let (of, moment) = ((o.incarnation, o.key), (o.invoke, o.clock));
            self.unordered += u64::from(knowledge.may_have_read(evidence, of, o.answer_uid, moment, through));
            return;
        };
        if knowledge.may_know_more(evidence, o.incarnation, o.key, read.moment, (o.invoke, o.clock)) {
            self.undecided += 1;
            return;
        }
        self.checked.push(o.incarnation);
        let mut since = evidence.order.timeline.between(o.key, read.revision, through).iter();
        if let Some(other) = since.find(|v| is_others(evidence, v, id)) {
            self.outdated.push(StaleWrite { id, read, through, other });
        }
    }
}

/// The revision through which every version existed before the write took effect; `None` if the write is not known to have
/// written.
pub fn present_before(evidence: &Evidence<'_>, id: OperationId, removal: Option<&Version>) -> Option<Revision> {
    if let Some(removal) = removal {
        return Some(removal.revision.previous());
    }
    let removed = evidence.removal_bounds().get(&id).copied();
    removed.or_else(|| commit_evidence::attributed(evidence, id).map(Revision::previous))
}

/// Whether certainly another process than the writer of `id` made a version.
pub fn is_others(evidence: &Evidence<'_>, version: &Version, id: OperationId) -> bool {
    author(evidence, version, evidence.history.operation(id).incarnation) == Author::Another
}

/// The writes that put a field back, by index.
pub fn reverted<'e>(
    evidence: &Evidence<'e>,
    reader: &BodyReader<'_, 'e>,
    writes: &[StaleWrite],
) -> FxHashMap<usize, Undone> {
    let key = |write: &StaleWrite| -> KeyId { evidence.history.operation(write.id).key };
    let timeline = &evidence.order.timeline;
    let compared: Vec<Compared<'e>> = writes
        .iter()
        .map(|write| Compared {
            id: write.id,
            read: timeline.version_at(key(write), write.read.revision),
            since: timeline.between(key(write), write.read.revision, write.through),
        })
        .collect();
    let mut found = undone(evidence, reader, &compared, |history| history.reverted());
    let history = evidence.history;
    let own_patch = |at: usize| match writes[at].read.shown {
        Shown::Answer(id) if history.operation(id).verb == Verb::Patch => Some(Document::Request(id)),
        _ => None,
    };
    let patches = history.documents(&found.keys().filter_map(|at| own_patch(*at)).collect::<Vec<_>>());
    // A value that the process had set itself is one that it may want back.
    found.retain(|at, undone| {
        own_patch(*at)
            .and_then(|patch| patches.get(&patch))
            .is_none_or(|patch| written(patch).get(&undone.field).is_none())
    });
    found
}

/// A change of others that a write undid.
pub struct Undone {
    /// The field.
    pub field: String,
    /// The first version that shows the change.
    pub change: Version,
    /// The client that made it; `None` if several clients may have, because versions in between were not recorded as a whole.
    pub by: Option<IncarnationId>,
    /// Whether other clients certainly made it. Otherwise a version without a known writer may have.
    pub certain: bool,
}

impl Undone {
    /// Builds it from the versions since a read, their authors, and the range of versions that may have made the change.
    pub fn new(
        evidence: &Evidence<'_>,
        field: String,
        since: &[Version],
        authors: &[Author],
        changed: &Changed,
    ) -> Undone {
        let change = since[*changed.end()];
        let is_one = changed.start() == changed.end();
        let by = is_one.then(|| evidence.history.operation(change.writer).incarnation);
        Undone { field, change, by, certain: is_by_others(authors, changed) == Some(true) }
    }

    /// The kind and the reason of a finding: a suspect if the author is not certain.
    pub fn reason(&self, reason: &str) -> (Kind, String) {
        if self.certain {
            return (Kind::Violation, reason.to_owned());
        }
        let open = "one version in between was not recorded as a whole, its writer is unknown, and it may have made \
                   the change";
        (Kind::Suspect, format!("{reason}. Not proved: {open}"))
    }

    /// The author of the change in a sentence.
    pub fn author_words<'h>(&self, evidence: &Evidence<'h>) -> &'h str {
        self.by.map_or("another client", |by| evidence.history.short_client(by))
    }

    /// The revision of the change in a sentence.
    pub fn when_words(&self) -> String {
        format!("{} {}", if self.by.is_some() { "at" } else { "by" }, self.change.revision)
    }
}

/// A write to be compared with the version that its process had read and the versions in between.
pub struct Compared<'e> {
    /// The write.
    pub id: OperationId,
    /// The version that its process had read.
    pub read: Option<Version>,
    /// All versions in between.
    pub since: Versions<'e>,
}

/// The writes that undid a change of others, by index.
///
/// Bodies are read in two steps: first the version read, the current version and the request; then all versions in between,
/// only for a field that was undone, to find the author of its change.
pub fn undone<'e>(
    evidence: &Evidence<'e>,
    reader: &BodyReader<'_, 'e>,
    writes: &[Compared<'e>],
    find: impl Fn(&WriteHistory<'_>) -> Option<(String, Changed)>,
) -> FxHashMap<usize, Undone> {
    let history = evidence.history;
    let own = |id: OperationId| [Document::Request(id), Document::Answer(id)];
    let mut found = FxHashMap::default();
    let mut rest: Vec<usize> = (0..writes.len()).collect();
    for whole in [false, true] {
        let mut plans: Vec<(usize, Version, Vec<Version>)> = Vec::new();
        for &at in &rest {
            let write = &writes[at];
            let o = history.operation(write.id);
            let sends = o.verb != Verb::Delete && o.marks.has(Marks::REQUEST_BODY);
            let from = if whole { 0 } else { write.since.len().saturating_sub(1) };
            let few = write.since.len() - from <= VERSIONS;
            if let Some(read) = write.read.filter(|_| sends && few) {
                plans.push((at, read, write.since.iter().skip(from).collect()));
            }
        }
        let versions: Vec<Version> =
            plans.iter().flat_map(|(_, read, since)| [*read].into_iter().chain(since.iter().copied())).collect();
        let bodies = reader.read(&versions, plans.iter().flat_map(|(at, ..)| own(writes[*at].id)));
        rest.clear();
        for (at, read, versions) in plans {
            let id = writes[at].id;
            let [request, answer] = own(id).map(|document| bodies.get(document));
            let (Some(request), Some(answer), Some(read)) = (request, answer, bodies.of(&read)) else { continue };
            let process = history.operation(id).incarnation;
            let by = |version| if whole { author(evidence, version, process) } else { Author::Another };
            let since: Vec<(Option<&Value>, Author)> =
                versions.iter().map(|version| (bodies.of(version), by(version))).collect();
            let authors: Vec<Author> = since.iter().map(|(_, author)| *author).collect();
            let write_history =
                WriteHistory { read, since, request, answer, whole: history.operation(id).verb == Verb::Update };
            match find(&write_history) {
                Some((field, changed)) if whole => {
                    drop(found.insert(at, Undone::new(evidence, field, &versions, &authors, &changed)));
                }
                Some(_) => rest.push(at),
                None => {}
            }
        }
    }
    found
}
