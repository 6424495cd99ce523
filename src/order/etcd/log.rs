//! The members' write-ahead logs, merged: the committed entries, and the revisions that they make when replayed.
//!
//! An entry through a member's commit index is certain; a later entry may be replaced. An entry is committed once a majority of
//! the voters has it. So the given logs include every committed entry if no majority exists outside them. The log itself names
//! the voters.
//!
//! Source: etcd `raft` (`raft.go`: `maybeCommit`; `quorum/majority.go`); Ongaro and Ousterhout, "In search of an understandable
//! consensus algorithm", 2014, figure 3 (log matching, leader completeness, state machine safety).

use super::effects::Change;
use super::store::{Applied, Store};
use crate::history::etcd::{LogEntry, Note, Recording, Request, Span};
use std::collections::BTreeSet;

/// An entry of a member's log: index of the member, and of the entry in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Logged {
    /// Index in [`Recording::members`].
    pub member: u32,
    /// Index in that member's log.
    pub entry: u32,
}

/// Two members that committed different entries at one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// One of them.
    pub a: Logged,
    /// The other.
    pub b: Logged,
}

/// A revision according to the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The revision.
    pub revision: i64,
    /// The entry that made it.
    pub entry: Logged,
    /// Its changes, in [`Log::changes`].
    pub changes: Span,
    /// Whether the entry was known to be committed. Otherwise it may have been lost with its member.
    pub certain: bool,
}

/// The result of replaying an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The revision of the store after the entry.
    pub revision: i64,
    /// Whether it was refused, without an effect.
    pub refused: bool,
    /// Whether it made that revision.
    pub changed: bool,
    /// Whether a transaction took its failure branch.
    pub failure: bool,
}

/// A compaction in the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedCompaction {
    /// The compacted revision.
    pub through: i64,
    /// The revision of the store that it was applied to; its entry comes after the entry of that revision.
    pub behind: i64,
}

/// The merged logs.
#[derive(Debug, Default)]
pub struct Log {
    /// Entries by index, from 1 without a gap, as far as they are known and the members agree.
    pub entries: Vec<Logged>,
    /// The number of entries that were known to be committed.
    pub certain: usize,
    /// The results of the first entries, until one could not be evaluated.
    pub replayed: Vec<Replayed>,
    /// Revisions, ascending from 2 without a gap.
    pub steps: Vec<Step>,
    /// The changes of all steps.
    pub changes: Vec<Change>,
    /// Entries that a member had as committed and that were compared with a committed entry of another member.
    pub compared: u64,
    /// Members that committed different entries, at the first such index.
    pub splits: Vec<Split>,
    /// Compactions that took effect, in order; their revisions ascend.
    pub compactions: Vec<LoggedCompaction>,
    /// The revisions of compactions after the last replayed entry; their place is unknown.
    pub unplaced: Vec<i64>,
    /// Whether the entries are all that the logs have, all were replayed, and no committed entry can be missing from every log.
    pub whole: bool,
    /// Like `whole`, except that the last records of logs may be cut off.
    pub cut_at_most: bool,
}

impl Log {
    /// Merges and replays the logs of a recording.
    pub fn of(recording: &Recording) -> Log {
        let mut log = Log::default();
        log.merge(recording);
        log.replay(recording);
        log
    }

    /// An entry of a member's log.
    pub fn entry<'r>(&self, recording: &'r Recording, logged: Logged) -> Option<&'r LogEntry> {
        entry(recording, logged)
    }

    /// The step of a revision.
    pub fn step(&self, revision: i64) -> Option<&Step> {
        let at = usize::try_from(revision.checked_sub(2)?).ok()?;
        self.steps.get(at)
    }

    /// The highest revision in the logs; 1 if there is none.
    pub fn last(&self) -> i64 {
        self.steps.last().map_or(1, |step| step.revision)
    }

    /// Whether the entry of a revision is known to be committed.
    pub fn is_certain(&self, revision: i64) -> bool {
        self.step(revision).is_some_and(|step| step.certain)
    }

    fn merge(&mut self, recording: &Recording) {
        let logs: Vec<(u32, &crate::history::etcd::Log)> =
            (0..).zip(&recording.members).filter_map(|(at, member)| Some((at, member.log.as_ref()?))).collect();
        let mut next: Vec<usize> = vec![0; logs.len()];
        let mut electorate = Electorate::default();
        let mut index = 1;
        let mut here: Vec<(Logged, &LogEntry, bool)> = Vec::new();
        loop {
            here.clear();
            for ((member, log), at) in logs.iter().zip(&mut next) {
                while log.entries.get(*at).is_some_and(|entry| entry.index < index) {
                    *at += 1;
                }
                if let Some(entry) = log.entries.get(*at).filter(|entry| entry.index == index) {
                    let logged = Logged { member: *member, entry: *at as u32 };
                    here.push((logged, entry, index <= log.commit));
                }
            }
            // Prefer a committed entry; among uncommitted ones, that of the latest term.
            let best =
                here.iter().max_by_key(|(logged, entry, certain)| (*certain, entry.term, std::cmp::Reverse(*logged)));
            let Some(&(logged, first, certain)) = best else { break };
            let committed = here.iter().filter(|(.., committed)| *committed).count() as u64;
            self.compared += committed.saturating_sub(1);
            for (other, entry, committed) in &here {
                if certain && *committed && differ(recording, first, entry) {
                    self.splits.push(Split { a: logged, b: *other });
                }
            }
            // After a split, the history of the cluster is unknown.
            if !self.splits.is_empty() {
                break;
            }
            let notes = recording.members[logged.member as usize].log.as_ref().map_or(&[][..], |log| &log.notes);
            electorate.take(index, first, notes);
            self.entries.push(logged);
            if certain && self.certain + 1 == self.entries.len() {
                self.certain = self.entries.len();
            }
            index += 1;
        }
        let last = logs.iter().filter_map(|(_, log)| log.entries.last()).map(|entry| entry.index).max().unwrap_or(0);
        let commit = logs.iter().map(|(_, log)| log.commit).max().unwrap_or(0);
        let all = self.splits.is_empty() && last < index && commit < index;
        let nodes = |cut: bool| -> BTreeSet<u64> {
            let usable = logs.iter().filter(|(_, log)| !log.broken && (cut || !log.torn));
            usable.map(|(_, log)| log.node).collect()
        };
        self.whole = all && electorate.is_covered(&nodes(false));
        self.cut_at_most = all && electorate.is_covered(&nodes(true));
    }

    fn replay(&mut self, recording: &Recording) {
        let mut store = Store::default();
        let mut replayed = 0;
        let restricted = restricted(recording);
        for (at, logged) in self.entries.iter().enumerate() {
            let Some(entry) = entry(recording, *logged) else { break };
            // If a request cannot be evaluated, its effect and all later revisions are unknown.
            let applied = Some(entry.index).filter(|index| *index < restricted);
            let Some(Ok(applied)) = applied.map(|_| store.apply(recording, &entry.request)) else {
                (self.whole, self.cut_at_most) = (false, false);
                break;
            };
            replayed = entry.index;
            let Applied { ref changes, refused, failure } = applied;
            self.replayed.push(Replayed { revision: store.revision, refused, changed: !changes.is_empty(), failure });
            if let Request::Compact { revision } = entry.request
                && !refused
            {
                self.compactions.push(LoggedCompaction { through: revision, behind: store.revision });
            }
            if changes.is_empty() {
                continue;
            }
            let span = Span { start: self.changes.len() as u32, len: changes.len() as u32 };
            self.changes.extend(applied.changes);
            self.steps.push(Step {
                revision: store.revision,
                entry: *logged,
                changes: span,
                certain: at < self.certain,
            });
        }
        let entries = recording.members.iter().filter_map(|member| member.log.as_ref()).flat_map(|log| &log.entries);
        let behind = entries.filter(|entry| entry.index > replayed).filter_map(|entry| match entry.request {
            Request::Compact { revision } => Some(revision),
            _ => None,
        });
        self.unplaced = behind.collect();
    }
}

/// The voters, derived from the log entry by entry.
#[derive(Debug, Default)]
struct Electorate {
    voters: BTreeSet<u64>,
    /// Every set of voters that had to agree on a client's entry; the current one is last.
    past: Vec<BTreeSet<u64>>,
    /// Whether the members changed in an unknown way.
    unknown: bool,
}

impl Electorate {
    fn take(&mut self, index: u64, entry: &LogEntry, notes: &[(u64, Note)]) {
        let first = notes.partition_point(|(of, _)| *of < index);
        for (_, note) in notes[first..].iter().take_while(|(of, _)| *of == index) {
            match note {
                Note::Voter(node) => drop(self.voters.insert(*node)),
                Note::NoVoter(node) => drop(self.voters.remove(node)),
                Note::Members => self.unknown = true,
                Note::Restriction => {}
            }
        }
        if !matches!(entry.request, Request::Other) && self.past.last() != Some(&self.voters) {
            self.past.push(self.voters.clone());
        }
    }

    /// Whether every majority includes one of these members.
    fn is_covered(&self, nodes: &BTreeSet<u64>) -> bool {
        let covered = |voters: &BTreeSet<u64>| {
            let absent = voters.difference(nodes).count();
            !voters.is_empty() && absent < voters.len() / 2 + 1
        };
        !self.unknown && covered(&self.voters) && self.past.iter().all(covered)
    }
}

/// The index from which results are unknown, because requests may be refused for reasons that logs do not show.
fn restricted(recording: &Recording) -> u64 {
    let notes = recording.members.iter().filter_map(|member| member.log.as_ref()).flat_map(|log| &log.notes);
    let restricts = notes.filter(|(_, note)| matches!(note, Note::Restriction)).map(|(index, _)| *index);
    restricts.min().unwrap_or(u64::MAX)
}

/// Whether two entries of one index must differ. One term has one leader, which proposes one entry for an index.
fn differ(recording: &Recording, a: &LogEntry, b: &LogEntry) -> bool {
    let both = !matches!((a.request, b.request), (Request::Other, _) | (_, Request::Other));
    a.term != b.term || both && !recording.requests.same(&a.request, &b.request)
}

/// An entry of a member's log.
pub(super) fn entry(recording: &Recording, logged: Logged) -> Option<&LogEntry> {
    recording.members.get(logged.member as usize)?.log.as_ref()?.entries.get(logged.entry as usize)
}

/// Whether the member that has an entry knew it to be committed.
pub fn is_committed(recording: &Recording, logged: Logged) -> bool {
    let log = recording.members.get(logged.member as usize).and_then(|member| member.log.as_ref());
    log.is_some_and(|log| log.entries.get(logged.entry as usize).is_some_and(|entry| entry.index <= log.commit))
}
