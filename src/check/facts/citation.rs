//! Citations of the evidence: facts with position, time and clock, and the words for them.

use super::Evidence;
use crate::check::finding::{Draft, Fact, Kind};
use crate::history::{DeliveryKind, KeyId, Operation, OperationId, Revision, Symbol, Verb};
use crate::ingest::{FileId, Position};
use crate::order::graph::{HappensBefore, Reason, Record};
use crate::order::{EvidenceRef, Origin, Version};
use rustc_hash::FxHashMap;

/// The step limit of the search for a cycle in a small graph.
const MAX_CYCLE_STEPS: u64 = 10_000;

impl<'h> Evidence<'h> {
    /// An operation as a fact. The time is its return for a read or a write, and its start for a watch.
    pub fn operation(&self, id: OperationId, revision: Revision, says: impl Into<String>) -> Fact {
        let o = self.history.operation(id);
        let (time, clock) = self.order.moment(self.history, EvidenceRef::Answer(id));
        Fact {
            position: o.position,
            says: says.into(),
            revision,
            key: o.key,
            uid: o.answer_uid,
            time: if time.is_known() { time } else { o.invoke },
            clock,
            incarnation: o.incarnation,
            server: o.server,
            audit_id: o.audit_id,
            operation: id,
        }
    }

    /// The request of an operation as a fact, with the time when it was sent.
    pub fn request(&self, id: OperationId, revision: Revision, says: impl Into<String>) -> Fact {
        Fact { time: self.history.operation(id).invoke, ..self.operation(id, revision, says) }
    }

    /// One key inside an operation as a fact: a listed item.
    pub fn item(&self, id: OperationId, key: KeyId, uid: Symbol, revision: Revision, says: impl Into<String>) -> Fact {
        Fact { key, uid, ..self.operation(id, revision, says) }
    }

    /// A delivery as a fact, by its index.
    pub fn delivery(&self, index: usize, watch: OperationId, says: impl Into<String>) -> Fact {
        let d = &self.history.deliveries[index];
        let o = self.history.operation(watch);
        Fact {
            position: d.position,
            says: says.into(),
            revision: d.revision,
            key: d.key,
            uid: d.uid,
            time: d.at,
            clock: o.clock,
            incarnation: o.incarnation,
            server: o.server,
            audit_id: o.audit_id,
            operation: watch,
        }
    }

    /// A version of the revision order as a fact: its writer if known, else its evidence.
    pub fn version(&self, version: &Version, says: impl Into<String>) -> Fact {
        if version.writer.is_some() {
            let fact = self.operation(version.writer, version.revision, says);
            return Fact { key: version.key, uid: version.uid, ..fact };
        }
        self.shown(version, version.origin(), version.uid, says)
    }

    /// One record that shows a version as a fact, with the uid that it shows.
    pub fn shown(&self, version: &Version, origin: Origin, uid: Symbol, says: impl Into<String>) -> Fact {
        let shown_by = origin.operation(self.history);
        let shower = shown_by.is_some().then(|| self.history.operation(shown_by));
        let (time, clock) = origin.moment(self.history);
        Fact {
            position: origin.position(self.history),
            says: says.into(),
            revision: version.revision,
            key: version.key,
            uid,
            time,
            clock,
            incarnation: shower.map_or_else(Default::default, |o| o.incarnation),
            server: shower.map_or_else(Default::default, |o| o.server),
            audit_id: shower.map_or_else(Default::default, |o| o.audit_id),
            operation: shown_by,
        }
    }

    /// The evidence of a revision as a fact.
    pub fn showing(&self, showing: EvidenceRef, revision: Revision, says: impl Into<String>) -> Fact {
        match showing {
            EvidenceRef::Answer(id) => self.operation(id, revision, says),
            EvidenceRef::Delivery(index, watch) => Fact { revision, ..self.delivery(index as usize, watch, says) },
        }
    }

    /// A read from a cache as a fact, by its index.
    pub fn cache_read(&self, index: usize, says: impl Into<String>) -> Fact {
        let read = &self.history.cache_reads[index];
        Fact {
            position: read.position,
            says: says.into(),
            revision: read.revision,
            key: read.key,
            uid: read.uid,
            time: read.at,
            clock: read.clock,
            incarnation: read.incarnation,
            server: Default::default(),
            audit_id: Default::default(),
            operation: OperationId::NONE,
        }
    }

    /// The reason of an edge of the happens-before graph as a fact.
    pub fn reason(&self, reason: Reason) -> Fact {
        let fact = match reason.at {
            Record::Operation(id) => self.operation(id, reason.revision, reason.says),
            Record::Delivery(index, watch) => self.delivery(index as usize, watch, reason.says),
            Record::Cache(index) => self.cache_read(index as usize, reason.says),
        };
        let key = if reason.key.is_some() { reason.key } else { fact.key };
        Fact { key, ..fact }
    }

    /// A fact for each step of the first cycle of a small graph, in order; `None` without a cycle of at most five steps.
    pub fn contradiction(&self, before: &HappensBefore<'_>) -> Option<Vec<Fact>> {
        let (_, cycle) = before.anomalies(MAX_CYCLE_STEPS).cycles.into_iter().next()?;
        let steps = cycle.steps.iter().map(|step| before.explain(*step).map(|reason| self.reason(reason)));
        steps.collect::<Option<Vec<Fact>>>().filter(|facts| facts.len() <= 5)
    }

    /// The operations that count as acts or observations of a process. Shadows of a client's own record are left out.
    pub fn operations(&self) -> impl Iterator<Item = (OperationId, Operation)> + use<'h> {
        self.history.operations.but_shadows()
    }

    /// The operations of [`Evidence::operations`] with one of some verbs.
    pub fn of_verbs(&self, verbs: &[Verb]) -> impl Iterator<Item = (OperationId, Operation)> + use<'h> {
        self.history.operations.of_verbs(verbs)
    }

    /// A version in words: "pods default/web-0@37 (uid 3ce7…)".
    pub fn version_words(&self, key: KeyId, uid: Symbol, revision: Revision) -> String {
        let uid = self.short_uid(uid);
        let name = self.history.key_name(key);
        if uid.is_empty() { format!("{name}@{revision}") } else { format!("{name}@{revision} (uid {uid})") }
    }

    /// The first 8 characters of a uid of more than 12.
    pub fn short_uid(&self, uid: Symbol) -> String {
        let text = self.history.name(uid);
        match text.char_indices().nth(8) {
            Some((at, _)) if text.len() > 12 => format!("{}…", &text[..at]),
            _ => text.to_owned(),
        }
    }

    /// The change at a version in words.
    pub fn change_words(&self, version: &Version) -> String {
        use crate::order::Change;
        let what = match version.change {
            Change::Created => "created",
            Change::Updated | Change::Put => "written",
            Change::Deleted => "deleted",
            Change::Left => "changed or deleted",
        };
        format!("{} was {what} at revision {}", self.history.key_name(version.key), version.revision)
    }

    /// The last part of a user name: `node-1` of `system:node:node-1`.
    pub fn short_client(&self, operation: &Operation) -> &'h str {
        self.history.short_client(operation.incarnation)
    }

    /// Whether the operation is a write that was answered with success and was not a dry run.
    pub fn committed(&self, operation: &Operation) -> bool {
        use crate::history::Marks;
        operation.verb.is_write()
            && operation.verb != Verb::Other
            && operation.is_answered()
            && !operation.marks.has(Marks::DRY_RUN)
    }

    /// A finding that rests on what the records of a process lack. It becomes a suspect if a line between the cited ones could
    /// not be used, because that line may hold the missing record.
    pub fn unless_lost(&self, draft: Draft) -> Draft {
        self.unless_lost_before(draft, None)
    }

    /// The same, if the missing record may stand as late as `end`, which the finding does not cite.
    pub fn unless_lost_before(&self, mut draft: Draft, end: Option<Position>) -> Draft {
        if draft.kind != Kind::Violation || self.history.problems.is_empty() {
            return draft;
        }
        let mut cited: FxHashMap<FileId, (u32, u32)> = FxHashMap::default();
        let own = draft.facts.iter().filter(|fact| fact.incarnation == draft.incarnation);
        for Position { file, line, .. } in own.map(|fact| fact.position).chain(end) {
            let lines = cited.entry(file).or_insert((line, line));
            *lines = (lines.0.min(line), lines.1.max(line));
        }
        let lost = |(file, (first, last)): (&FileId, &(u32, u32))| {
            let kept = || self.history.problems.iter().filter(|problem| problem.file == Some(*file));
            let summary = self.history.files.get(file.0 as usize)?;
            if summary.problems > kept().count() as u64 {
                return Some(format!("{} lines of {} could not be used", summary.problems, summary.path));
            }
            let between = kept().find(|problem| (*first..=*last).contains(&problem.line) || problem.line == 0)?;
            Some(format!("line {} of {} could not be used", between.line, summary.path))
        };
        // The least by text, so that the report is deterministic.
        if let Some(lost) = cited.iter().filter_map(lost).min() {
            draft.kind = Kind::Suspect;
            draft.reason = format!("{} Not proved: {lost}, and may have held the missing record.", draft.reason);
        }
        draft
    }

    /// The fold cause of faults of one server with one resource.
    pub fn cause(&self, operation: &Operation) -> String {
        let resource = self.history.scopes[operation.scope.index()].resource;
        format!("{} of server {}", self.history.resource_name(resource), self.history.server_name(operation.server))
    }

    /// The server in a sentence.
    pub fn server_words(&self, operation: &Operation) -> String {
        match self.history.server_name(operation.server) {
            "" => "the server".to_owned(),
            name => format!("server {name}"),
        }
    }

    /// The observer in a sentence: the user name, or the recorder of a file.
    pub fn observer_words(&self, operation: &Operation) -> String {
        match self.history.client_name(operation.incarnation) {
            "" => format!("the recorder of {}", self.history.file_name(operation.position.file)),
            name => name.to_owned(),
        }
    }

    /// A delivery in words: "MODIFIED of pods d/a at revision 7".
    pub fn delivery_words(&self, index: usize) -> String {
        let d = &self.history.deliveries[index];
        let word = match d.kind {
            DeliveryKind::Added => "ADDED",
            DeliveryKind::Modified => "MODIFIED",
            DeliveryKind::Deleted => "DELETED",
            DeliveryKind::Bookmark => return format!("a bookmark at revision {}", d.revision),
            DeliveryKind::InitialEventsEnd => {
                return format!("the end of the initial events at revision {}", d.revision);
            }
            DeliveryKind::Error => return format!("an error {}", d.code),
            DeliveryKind::Unidentified => return "an event of an unidentified object".to_owned(),
        };
        format!("{word} of {} at revision {}", self.history.key_name(d.key), d.revision)
    }
}
