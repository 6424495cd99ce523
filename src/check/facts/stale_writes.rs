//! Writes on top of a read that was no longer current, and which of them put back what others had changed.

use crate::check::facts::authorship::{Author, author};
use crate::check::facts::bodies::BodyReader;
use crate::check::facts::commit_evidence;
use crate::check::facts::knowledge::{ClientKnowledge, Known, LastRead, Shown};
use crate::check::facts::three_way_diff::{Changed, WriteHistory, is_by_others, written};
use crate::check::{Evidence, Kind};
use crate::history::{Document, IncarnationId, KeyId, Marks, Operation, OperationId, Revision, Subresource, Verb};
use crate::order::{Change, Version, Versions, remembers};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// For how many writes what their processes had read is kept at a time, which bounds it.
const JUDGED_AT_ONCE: usize = if cfg!(test) { 2 } else { 1 << 18 };

/// How many writes are compared at a time, which bounds the bodies in memory.
pub const AT_ONCE: usize = 500;

/// Writes over more versions than this since the read are not compared field by field.
const VERSIONS: usize = 256;

/// A write on top of an outdated read.
#[derive(Debug)]
pub struct StaleWrite {
    /// The write.
    pub id: OperationId,
    /// What its process had last read.
    pub read: LastRead,
    /// Through which revision every version was there before it took effect.
    pub through: Revision,
    /// The first of the versions in between that another process made.
    pub other: Version,
}

/// The writes without condition of a history, as far as a read came before them.
#[derive(Debug, Default)]
pub struct Unconditioned {
    /// Those on top of a read that was no longer current.
    pub outdated: Vec<StaleWrite>,
    /// The process of every write that could be judged.
    pub checked: Vec<IncarnationId>,
    /// How many could not be judged, because the process may have read more than the evidence shows.
    pub undecided: u64,
    /// How many could not be judged, because nothing proves that the process had its answer to a read when it sent them.
    pub unordered: u64,
}

/// Whether what a write puts there takes effect whatever the object has become. A uid guards against another object of the name, and not
/// against changes of this one.
fn is_unconditioned(o: &Operation) -> bool {
    let names_uid_alone = o.marks.has(Marks::REQUEST_BODY)
        && matches!(o.verb, Verb::Update | Verb::Patch)
        && o.request_uid.is_some()
        && !o.asked_revision.is_some()
        && !o.marks.has(Marks::APPLY);
    o.marks.has(Marks::UNCONDITIONED) || names_uid_alone
}

impl<'h> Evidence<'h> {
    /// Writes that name no version (and deletions that name no uid either), after a read of the same object by the same process.
    pub(in crate::check) fn unconditioned(&self) -> &'h Unconditioned {
        self.facts.unconditioned.get_or_init(|| Unconditioned::of(self))
    }
}

impl Unconditioned {
    /// Of one history. [`Evidence::unconditioned`] keeps them.
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
        // Those of one object together.
        candidates.sort_by_key(|id| history.operations.key(id.index()));
        let mut found = Unconditioned::default();
        for candidates in candidates.chunks(JUDGED_AT_ONCE) {
            let pair =
                |id: &OperationId| (history.operations.incarnation(id.index()), history.operations.key(id.index()));
            let memories = ClientKnowledge::collect(evidence, &candidates.iter().map(pair).collect());
            for &id in candidates {
                found.judge(evidence, &memories, id, removals.get(&id));
            }
        }
        found.outdated.sort_unstable_by_key(|outdated| outdated.id);
        found
    }

    fn judge(
        &mut self,
        evidence: &Evidence<'_>,
        memories: &ClientKnowledge,
        id: OperationId,
        removal: Option<&Version>,
    ) {
        let Some(through) = present_before(evidence, id, removal) else { return };
        let o = evidence.history.operation(id);
        let read = memories.last(evidence, o.incarnation, o.key, (o.invoke, o.clock), |_| true);
        let is_same =
            |read: &LastRead| matches!(read.known, Known::Life(uid) if uid == o.answer_uid || !o.answer_uid.is_some());
        let Some(read) = read.filter(|read| is_same(read) && read.revision.is_some()) else {
            let counts = |read: &LastRead| is_same(read) && read.revision.is_some() && read.revision <= through;
            self.unordered +=
                u64::from(memories.may_have_known(evidence, o.incarnation, o.key, (o.invoke, o.clock), counts));
            return;
        };
        if memories.may_know_more(evidence, o.incarnation, o.key, read.moment, (o.invoke, o.clock)) {
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

/// Through which revision every version was there before the write took effect; `None` where it is not known to have written.
pub fn present_before(evidence: &Evidence<'_>, id: OperationId, removal: Option<&Version>) -> Option<Revision> {
    let o = evidence.history.operation(id);
    if let Some(removal) = removal {
        return Some(removal.revision.previous());
    }
    let timeline = &evidence.order.timeline;
    let open = timeline.removals(o.key).iter().find(|r| r.operation == id);
    let open = open.map(|r| r.before.map_or(r.after, |before| r.after.min(before.previous())));
    // A deletion of uncertain date comes after every version below it all the same.
    let ends = |v: &Version| v.change == Change::Deleted && v.writer == id;
    let deleted = || timeline.versions(o.key).iter().rfind(ends).map(|v| v.revision.previous());
    open.or_else(|| (o.verb == Verb::Delete).then(deleted).flatten())
        .or_else(|| commit_evidence::attributed(evidence, id).map(Revision::previous))
}

/// Whether certainly another process than the writer of `id` made a version.
pub fn is_others(evidence: &Evidence<'_>, version: &Version, id: OperationId) -> bool {
    author(evidence, version, evidence.history.operation(id).incarnation) == Author::Another
}

/// Which of these writes put a field back, by place.
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
    let mut found = undone(evidence, reader, &compared, |course| course.reverted());
    let history = evidence.history;
    let own_patch = |at: usize| match writes[at].read.shown {
        Shown::Answer(id) if history.operation(id).verb == Verb::Patch => Some(Document::Request(id)),
        _ => None,
    };
    let patches = history.documents(&found.keys().filter_map(|at| own_patch(*at)).collect::<Vec<_>>());
    // What the process had set itself, and not only read, it may want back.
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
    /// The client that made it; `None`: one of several clients, since versions in between were not recorded as a whole.
    pub by: Option<IncarnationId>,
    /// Whether certainly other clients made it. Else a version whose writer nobody knows may have.
    pub certain: bool,
}

impl Undone {
    /// Names the change of a field, out of the versions since a read, their authors, and the places of those that may have made it.
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

    /// A reason, and what it lacks where the author is not certain.
    pub fn reason(&self, reason: &str) -> (Kind, String) {
        if self.certain {
            return (Kind::Violation, reason.to_owned());
        }
        let open = "nobody knows who made a version in between, which was not recorded as a whole and may have made the change";
        (Kind::Suspect, format!("{reason}. Not proved: {open}"))
    }

    /// The author of the change, for a sentence.
    pub fn author_words<'h>(&self, evidence: &Evidence<'h>) -> &'h str {
        self.by.map_or("another client", |by| evidence.history.short_client(by))
    }

    /// At which revision, for a sentence.
    pub fn when_words(&self) -> String {
        format!("{} {}", if self.by.is_some() { "at" } else { "by" }, self.change.revision)
    }
}

/// A write to be compared with what its process had read and with what came in between.
pub struct Compared<'e> {
    /// The write.
    pub id: OperationId,
    /// The version that its process had read.
    pub read: Option<Version>,
    /// All versions in between.
    pub since: Versions<'e>,
}

/// Which of these writes undid a change of others, by place.
///
/// Bodies are read again in two steps: first what was read, what was there and what was sent; all versions in between only
/// where a field was undone, to see who had changed it.
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
            let course =
                WriteHistory { read, since, request, answer, whole: history.operation(id).verb == Verb::Update };
            match find(&course) {
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
