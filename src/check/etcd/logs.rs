//! Input: the members' logs and the answers to clients. Output: findings for logs that contradict each other, and for
//! acknowledged writes that the committed log lacks or did not apply. Trap: a log proves an absence only if it is complete
//! beyond the write, which a later entry or the end of a report shows.

use super::{Recorded, one_fault};
use crate::check::{Draft, Fact, Kind, RuleResult};
use crate::history::Symbol;
use crate::history::etcd::{LogEntry, Request};
use crate::ingest::Format;
use crate::ingest::etcd::layout;
use crate::order::etcd::{Change, Class, Contradiction, Logged, Unlogged, log, timeline};

/// A revision with different contents in the committed log and for clients.
pub(super) struct Departure {
    revision: i64,
    entry: Logged,
    fault: u32,
    kind: Departed,
}

/// The kind of difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Departed {
    /// No member's log has an acknowledged write.
    Unlogged,
    /// The log continues, one entry later, with what clients were shown.
    Unapplied,
    /// Any other difference.
    Otherwise,
}

impl Recorded<'_> {
    /// The first revision at which the committed log and the clients' answers differ, if they agree before it and clients
    /// agree with each other. Another lease of a key is no other content.
    pub(super) fn departure(&self) -> Option<Departure> {
        let (timeline, log) = (&self.analysis.timeline, &self.analysis.log);
        let [Contradiction::LogDiffers { revision: number, entry, .. }] = timeline.contradictions[..] else {
            return None;
        };
        let agreed = timeline.revisions.iter().any(|revision| revision.entry.is_some());
        let step = log.step(number).filter(|step| step.certain && agreed)?;
        let revision = timeline.revision(number)?;
        // A store that differs from the log is a difference between members.
        if timeline.versions_of(revision).iter().all(|version| version.shown_by.is_of_member()) {
            return None;
        }
        let told: Vec<Change> = timeline.versions_of(revision).iter().map(|version| version.change).collect();
        let logged = step.changes.of(&log.changes);
        let is_in = |change: &Change, all: &[Change]| {
            let value = all.iter().rfind(|other| other.key == change.key).map(|other| other.value);
            value.is_some_and(|value| match (value, change.value) {
                (Some(a), Some(b)) => self.recording.values.same(a, b) != Some(false),
                (a, b) => a == b,
            })
        };
        let differs = told.iter().any(|change| !is_in(change, logged))
            || (revision.writer.is_some() && logged.iter().any(|change| !is_in(change, &told)));
        let again = |step: &&log::Step| timeline::same(step.changes.of(&log.changes), &told);
        let kind = match log.steps.iter().find(again) {
            None if revision.writer.is_some() => Departed::Unlogged,
            Some(step) if step.revision > number => Departed::Unapplied,
            _ => Departed::Otherwise,
        };
        let fault = self.analysis.root_causes.contradictions.first().copied()?;
        differs.then_some(Departure { revision: number, entry, fault, kind })
    }

    /// Whether the logs belong to a report, which is written after its clients have finished.
    fn is_of_report(&self) -> bool {
        let first = self.analysis.log.entries.first().and_then(|logged| self.logged(*logged));
        let path =
            first.and_then(|entry| self.recording.files.get(entry.position.file.0 as usize)).map(|file| &file.path);
        path.is_some_and(|path| layout::place(path, Format::EtcdLog).of_report)
    }

    fn logged(&self, logged: Logged) -> Option<&LogEntry> {
        self.analysis.log.entry(self.recording, logged)
    }

    /// An entry with its place, as a fact.
    pub(super) fn committed(&self, logged: Logged) -> Fact {
        let name = &self.recording.members[logged.member as usize].name;
        let says = self.logged(logged).map_or_else(String::new, |entry| self.entry_words(name, entry));
        self.entry(logged, says)
    }

    fn entry_words(&self, member: &str, entry: &LogEntry) -> String {
        let asked = match entry.request {
            Request::Other => "an entry that changes no keys".to_owned(),
            request => self.recording.request_words(&request),
        };
        format!("the log of {member} has at index {}, of term {}, as committed: {asked}", entry.index, entry.term)
    }
}

/// Acknowledged writes that the logs lack, and committed entries that were not applied: `lost-write`.
pub(super) fn lost(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    match r.departure() {
        Some(departure) if departure.kind != Departed::Otherwise => parted(r, &departure, result),
        Some(_) => {}
        None => behind(r, result),
    }
}

/// Logs that contradict each other, or otherwise contradict the clients' answers: `split-timeline`.
pub(super) fn split(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    let reason = "An entry that a majority has committed at an index stays there, and every member has the same entry.";
    let anew = "logs of another cluster, or of a cluster that was restored from a backup or restarted with \
               --force-new-cluster in between";
    let mut found = |index: u64, facts: Vec<Fact>, summary: String| {
        let client = facts[0].incarnation;
        let draft = r.draft(Kind::Violation, client, Symbol::NONE, format!("index {index}"), summary, facts, reason);
        let consequence =
            "members apply different histories, and each client sees the history of the member that answers it"
                .to_owned();
        result.found(Draft { refuted_by: anew.to_owned(), consequence, ..draft });
    };
    for split in &r.analysis.log.splits {
        let index = r.logged(split.a).map_or(0, |entry| entry.index);
        let name = |logged: Logged| &r.recording.members[logged.member as usize].name;
        let summary = format!(
            "The members {} and {} committed different entries at index {index}.",
            name(split.a),
            name(split.b)
        );
        found(index, vec![r.committed(split.a), r.committed(split.b)], summary);
    }
    for member in &r.recording.members {
        let Some(replaced) = member.log.as_ref().and_then(|log| log.overwritten.first()) else { continue };
        let fact = |entry: &LogEntry| {
            let says = r.entry_words(&member.name, entry);
            r.fact(entry.position, 0, Symbol::NONE, crate::ingest::Time::UNKNOWN, says)
        };
        let index = replaced.old.index;
        let summary = format!("The member {} replaced an entry at index {index} that was committed.", member.name);
        found(index, vec![fact(&replaced.old), fact(&replaced.new)], summary);
    }
    if let Some(departure) = r.departure().filter(|departure| departure.kind == Departed::Otherwise) {
        parted(r, &departure, result);
    }
}

fn parted(r: &Recorded<'_>, departure: &Departure, result: &mut RuleResult<'_>) {
    let number = departure.revision;
    let Some(revision) = r.analysis.timeline.revision(number) else { return };
    let key = r.version_at(revision.start).change.key;
    let facts = vec![r.version(revision.start), r.committed(departure.entry)];
    let (summary, reason) = match departure.kind {
        Departed::Unlogged => (
            format!("The write of {} that was acknowledged at revision {number} is in no member's log.", r.text(key)),
            "A write is acknowledged once a majority has it in its logs, but the committed log has another entry at \
            its place.",
        ),
        Departed::Unapplied => (
            format!(
                "The entry that the log has committed for revision {number} was not applied: clients were shown the \
                entry after it."
            ),
            "Every member applies every committed entry, in the order of the log.",
        ),
        Departed::Otherwise => (
            format!(
                "Revision {number} has one content in the members' log, and another one in the answers to clients."
            ),
            "Every member applies the committed entries in the order of the log, so the log determines each revision.",
        ),
    };
    let client = facts[0].incarnation;
    let cause = one_fault(departure.fault);
    let draft = r.draft(Kind::Violation, client, key, cause, summary, facts, reason);
    result.found_of(draft, departure.fault);
}

/// Writes that were acknowledged after the end of logs that every majority needs. Either the write is lost, or the logs were
/// copied before it. A report copies the logs after its clients have finished, and an entry for a request sent after the
/// answer shows that the log extends beyond the write.
fn behind(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    let (analysis, recording) = (r.analysis, r.recording);
    let (log, last) = (&analysis.log, analysis.log.last());
    if log.entries.is_empty() || !log.splits.is_empty() || !analysis.timeline.contradictions.is_empty() {
        return;
    }
    let is_behind = |at: &u32| analysis.effects.class(*at) == Class::Write && r.operation(*at).revision > last;
    let writes = || (0..recording.operations.len() as u32).filter(is_behind);
    let Some(first) = writes().min_by_key(|at| r.operation(*at).revision) else { return };
    let later = later_grant(r, first);
    if later.is_none() && !log.cut_at_most {
        return;
    }
    let number = r.operation(first).revision;
    let end = log.entries.last().map_or_else(Vec::new, |entry| vec![*entry]);
    let mut facts = vec![r.write(first)];
    facts.extend(later.map(|(grant, _)| r.sent(grant, r.asked(grant))));
    let end = later.map_or(end, |(_, entry)| vec![entry]);
    facts.extend(end.into_iter().map(|entry| r.committed(entry)));
    let more = match writes().count() - 1 {
        0 => String::new(),
        1 => "; so is one more write".to_owned(),
        more => format!("; so are {more} more writes"),
    };
    let keys = analysis.effects.changes(first);
    let key = keys.first().map_or(Symbol::NONE, |change| change.key);
    let summary =
        format!("The write of {} that was acknowledged at revision {number} is in no member's log{more}.", r.text(key));
    let promise = "A write is acknowledged once a majority has it in its logs";
    let (kind, reason, refuted) = if later.is_some() {
        let reason = format!("{promise}. The log has a request that was sent after the answer, but not this write.");
        (Kind::Violation, reason, "a record of this report that differs from what was sent or answered")
    } else if log.whole && r.is_of_report() {
        let reason = format!(
            "{promise}. Every majority includes one of these members. Their logs end with revision {last}, and a \
            report copies them at its end."
        );
        (Kind::Violation, reason, "logs that were copied before this answer")
    } else {
        let reason = format!(
            "{promise}. Every majority includes one of these members. Not proved: nothing shows that their logs, \
            which end with revision {last}, were copied whole after the answer"
        );
        (Kind::Suspect, reason, "whole copies of the members' write-ahead logs from after this answer")
    };
    let draft = r.draft(kind, r.client_of(first), key, "unlogged".to_owned(), summary, facts, reason);
    result.found(Draft { refuted_by: refuted.to_owned(), ..draft });
}

/// A lease grant that was sent after the answer to a write, and its log entry. Only one client asked for that lease.
fn later_grant(r: &Recorded<'_>, write: u32) -> Option<(u32, Logged)> {
    let returned = r.operation(write).returned;
    let grant = |request: &Request| match *request {
        Request::LeaseGrant { lease, .. } if lease != 0 => Some(lease),
        _ => None,
    };
    let granted: Vec<(i64, Logged)> =
        r.analysis.log.entries.iter().filter_map(|entry| Some((grant(&r.logged(*entry)?.request)?, *entry))).collect();
    let operations = || (0..).zip(&r.recording.operations);
    // The server may have given any id to a grant without one, this id too.
    let is_unnamed = |request: &Request| matches!(request, Request::LeaseGrant { lease: 0, .. });
    if granted.is_empty() || !returned.is_known() || operations().any(|(_, o)| is_unnamed(&o.request)) {
        return None;
    }
    granted.iter().rev().find_map(|(lease, entry)| {
        let mut asked = operations().filter(|(_, operation)| grant(&operation.request) == Some(*lease));
        let (at, operation) = asked.next()?;
        (asked.next().is_none() && operation.call > returned).then_some((at, *entry))
    })
}

/// Answered requests that have no entry in the log at a possible place: `linearizability`.
pub(super) fn unlogged(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    for &Unlogged { operation: at, earlier, later, entry, presumes } in &r.analysis.unlogged {
        let answers = [Some(at), later].into_iter().flatten().map(|at| r.answer_to(at));
        let facts = earlier.map(|proof| r.proof(proof)).into_iter().chain(answers);
        let facts = facts.chain(entry.map(|entry| r.committed(entry))).collect();
        let summary = format!("The members' log has no entry of an answered request: {}.", r.asked(at));
        let reason = "A request that goes through raft is answered after its log entry was applied. The answers and their \
                      times show which entries may be its own, and none is left for it.";
        let (client, cause) = (r.client_of(at), "unlogged".to_owned());
        let kind = if presumes { r.unless_incomplete() } else { Kind::Violation };
        result.found(r.draft(kind, client, Symbol::NONE, cause, summary, facts, reason));
    }
}
