//! How rules cite the evidence, and the words for it.

use super::Evidence;
use crate::check::finding::{Draft, Fact, Kind};
use crate::history::{DeliveryKind, IncarnationId, KeyId, Operation, OperationId, Revision, Symbol, Verb};
use crate::ingest::{FileId, Position};
use crate::order::graph::{HappensBefore, Reason, Record};
use crate::order::{EvidenceRef, Origin, Version};
use rustc_hash::FxHashMap;

/// How many steps the search for a cycle in a small graph takes.
const STEPS: u64 = 10_000;

impl<'h> Evidence<'h> {
    /// Cites an operation. For a read and a write the time is its return, for a watch its start.
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

    /// Cites the beginning of an operation: when it was sent.
    pub fn request(&self, id: OperationId, revision: Revision, says: impl Into<String>) -> Fact {
        Fact { time: self.history.operation(id).invoke, ..self.operation(id, revision, says) }
    }

    /// Cites one key inside an operation: a listed item.
    pub fn item(&self, id: OperationId, key: KeyId, uid: Symbol, revision: Revision, says: impl Into<String>) -> Fact {
        Fact { key, uid, ..self.operation(id, revision, says) }
    }

    /// Cites a delivery by its index.
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

    /// Cites a version of T where it is known from; its writer, where there is one.
    pub fn version(&self, version: &Version, says: impl Into<String>) -> Fact {
        if version.writer.is_some() {
            let fact = self.operation(version.writer, version.revision, says);
            return Fact { key: version.key, uid: version.uid, ..fact };
        }
        self.shown(version, version.origin(), version.uid, says)
    }

    /// Cites one piece of evidence that shows a version, with the uid that it shows.
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

    /// Cites what shows a revision.
    pub fn showing(&self, showing: EvidenceRef, revision: Revision, says: impl Into<String>) -> Fact {
        match showing {
            EvidenceRef::Answer(id) => self.operation(id, revision, says),
            EvidenceRef::Delivery(index, watch) => Fact { revision, ..self.delivery(index as usize, watch, says) },
        }
    }

    /// Cites a read from a cache by its index.
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

    /// Cites why one thing comes before another.
    pub fn reason(&self, reason: Reason) -> Fact {
        let fact = match reason.at {
            Record::Operation(id) => self.operation(id, reason.revision, reason.says),
            Record::Delivery(index, watch) => self.delivery(index as usize, watch, reason.says),
            Record::Cache(index) => self.cache_read(index as usize, reason.says),
        };
        let key = if reason.key.is_some() { reason.key } else { fact.key };
        Fact { key, ..fact }
    }

    /// A fact for each step of the first cycle of a small graph, in order; `None` where there is none, or none short enough for a
    /// certificate.
    pub fn contradiction(&self, before: &HappensBefore<'_>) -> Option<Vec<Fact>> {
        let (_, cycle) = before.anomalies(STEPS).cycles.into_iter().next()?;
        let steps = cycle.steps.iter().map(|step| before.explain(*step).map(|reason| self.reason(reason)));
        steps.collect::<Option<Vec<Fact>>>().filter(|facts| facts.len() <= 5)
    }

    /// Operations that count as something a process did or saw: answered, not a shadow of a client's own record, not a dry run
    /// of a write.
    pub fn operations(&self) -> impl Iterator<Item = (OperationId, Operation)> + use<'h> {
        self.history.operations.but_shadows()
    }

    /// Those of [`Evidence::operations`] that have one of some verbs.
    pub fn of_verbs(&self, verbs: &[Verb]) -> impl Iterator<Item = (OperationId, Operation)> + use<'h> {
        self.history.operations.of_verbs(verbs)
    }

    /// The process that wrote a version, or else that first showed it.
    pub fn shower(&self, version: &Version) -> IncarnationId {
        let id = if version.writer.is_some() { version.writer } else { version.shown_by(self.history) };
        if id.is_some() { self.history.operations.incarnation(id.index()) } else { IncarnationId::NONE }
    }

    /// What a version is, in words: "pods default/web-0 version 37 (uid 3ce7…)".
    pub fn version_words(&self, key: KeyId, uid: Symbol, revision: Revision) -> String {
        let uid = self.short_uid(uid);
        let name = self.history.key_name(key);
        if uid.is_empty() { format!("{name}@{revision}") } else { format!("{name}@{revision} (uid {uid})") }
    }

    /// The first characters of a uid.
    pub fn short_uid(&self, uid: Symbol) -> String {
        let text = self.history.name(uid);
        match text.char_indices().nth(8) {
            Some((at, _)) if text.len() > 12 => format!("{}…", &text[..at]),
            _ => text.to_owned(),
        }
    }

    /// What happened at a version, in words.
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

    /// The last part of a user name, for sentences: `node-1` of `system:node:node-1`.
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

    /// A finding that rests on what the records of a process do not say: a suspect where a line between those that it cites could not be
    /// used, since that line may have said it.
    pub fn unless_lost(&self, draft: Draft) -> Draft {
        self.unless_lost_before(draft, None)
    }

    /// The same, where what is missed may stand as late as in front of a record that the finding does not cite.
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
        // The first by name, so that the report is the same each time.
        if let Some(lost) = cited.iter().filter_map(lost).min() {
            draft.kind = Kind::Suspect;
            draft.reason = format!("{} Not proved: {lost}, and what is missed may have stood there.", draft.reason);
        }
        draft
    }

    /// What faults of one server with one resource have in common, for folding.
    pub fn cause(&self, operation: &Operation) -> String {
        let resource = self.history.scopes[operation.scope.index()].resource;
        format!("{} of server {}", self.history.resource_name(resource), self.history.server_name(operation.server))
    }

    /// A server's name in a sentence.
    pub fn server_words(&self, operation: &Operation) -> String {
        match self.history.server_name(operation.server) {
            "" => "the server".to_owned(),
            name => format!("server {name}"),
        }
    }

    /// Who saw it, in a sentence: the user name, or the file that someone saved.
    pub fn observer_words(&self, operation: &Operation) -> String {
        match self.history.client_name(operation.incarnation) {
            "" => format!("whoever recorded {}", self.history.file_name(operation.position.file)),
            name => name.to_owned(),
        }
    }

    /// What an event did, in words: "MODIFIED of pods d/a at revision 7".
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
            DeliveryKind::Unidentified => return "an event whose object could not be identified".to_owned(),
        };
        format!("{word} of {} at revision {}", self.history.key_name(d.key), d.revision)
    }
}
