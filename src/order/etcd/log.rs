//! The write-ahead logs of a cluster as one: what was committed, and what it came to.

use super::effects::Change;
use super::store::Store;
use crate::history::etcd::{LogEntry, Recording, Request, Span};
use rustc_hash::FxHashSet;

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

/// A revision as the logs have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The revision.
    pub revision: i64,
    /// The entry that made it.
    pub entry: Logged,
    /// Its changes, in [`Log::changes`].
    pub changes: Span,
    /// Whether the entry was known to be committed. Without that it may have been lost with the member that wrote it.
    pub certain: bool,
}

/// A compaction that the logs hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedCompaction {
    /// It takes away what is below.
    pub through: i64,
    /// The revision of the store that it was applied to: its entry stands behind the one of that revision.
    pub behind: i64,
}

/// The logs as one.
#[derive(Debug, Default)]
pub struct Log {
    /// Entries by index, from 1 without a hole, as far as they are known.
    pub entries: Vec<Logged>,
    /// How many of them were known to be committed.
    pub certain: usize,
    /// Revisions, ascending from 2 without a hole.
    pub steps: Vec<Step>,
    /// Their changes.
    pub changes: Vec<Change>,
    /// Members that committed different entries; the first index of each pair of members.
    pub splits: Vec<Split>,
    /// Compactions that took effect, in their order: that of their revisions too.
    pub compactions: Vec<LoggedCompaction>,
    /// The highest revision that compactions name behind what could be replayed: nobody knows what they stand behind.
    pub unplaced: Option<i64>,
    /// Whether the entries hold everything that was committed, as far as the members that left a log knew.
    pub whole: bool,
}

impl Log {
    /// Of a recording.
    pub fn of(recording: &Recording) -> Log {
        let mut log = Log::default();
        log.merge(recording);
        log.replay(recording);
        log
    }

    /// An entry.
    pub fn entry<'r>(&self, recording: &'r Recording, logged: Logged) -> Option<&'r LogEntry> {
        entry(recording, logged)
    }

    /// The revision that the logs have at a number.
    pub fn step(&self, revision: i64) -> Option<&Step> {
        let at = usize::try_from(revision.checked_sub(2)?).ok()?;
        self.steps.get(at)
    }

    fn merge(&mut self, recording: &Recording) {
        let logs: Vec<(u32, &crate::history::etcd::Log)> =
            (0..).zip(&recording.members).filter_map(|(at, member)| Some((at, member.log.as_ref()?))).collect();
        let commit = logs.iter().map(|(_, log)| log.commit).max().unwrap_or(0);
        let mut next: Vec<usize> = vec![0; logs.len()];
        let mut split: FxHashSet<(u32, u32)> = FxHashSet::default();
        let mut index = 1;
        loop {
            let mut here: Vec<(Logged, &LogEntry, bool)> = Vec::new();
            for ((member, log), at) in logs.iter().zip(&mut next) {
                while log.entries.get(*at).is_some_and(|entry| entry.index < index) {
                    *at += 1;
                }
                if let Some(entry) = log.entries.get(*at).filter(|entry| entry.index == index) {
                    let logged = Logged { member: *member, entry: *at as u32 };
                    here.push((logged, entry, index <= log.commit));
                }
            }
            // A committed entry counts; of entries that are only written, that of the latest term.
            let best =
                here.iter().max_by_key(|(logged, entry, certain)| (*certain, entry.term, std::cmp::Reverse(*logged)));
            let Some((logged, first, _)) = best else { break };
            for (other, entry, certain) in &here {
                if *certain && entry.term != first.term && split.insert((logged.member, other.member)) {
                    self.splits.push(Split { a: *logged, b: *other });
                }
            }
            self.entries.push(*logged);
            if index <= commit {
                self.certain = self.entries.len();
            }
            index += 1;
        }
        let broken = logs.iter().any(|(_, log)| log.broken);
        self.whole = !logs.is_empty() && !broken && self.certain as u64 == commit;
    }

    fn replay(&mut self, recording: &Recording) {
        let mut store = Store::default();
        let mut replayed = 0;
        for (at, logged) in self.entries.iter().enumerate() {
            let Some(entry) = entry(recording, *logged) else { break };
            // What a request that cannot be evaluated did, and so every number behind it, is not known.
            let Ok(applied) = store.apply(recording, &entry.request) else {
                self.whole = false;
                break;
            };
            replayed = entry.index;
            if let Request::Compact { revision } = entry.request
                && !applied.refused
            {
                self.compactions.push(LoggedCompaction { through: revision, behind: store.revision });
            }
            if applied.changes.is_empty() {
                continue;
            }
            let changes = Span { start: self.changes.len() as u32, len: applied.changes.len() as u32 };
            self.changes.extend(applied.changes);
            let certain = at < self.certain;
            self.steps.push(Step { revision: store.revision, entry: *logged, changes, certain });
        }
        let entries = recording.members.iter().filter_map(|member| member.log.as_ref()).flat_map(|log| &log.entries);
        let behind = entries.filter(|entry| entry.index > replayed).filter_map(|entry| match entry.request {
            Request::Compact { revision } => Some(revision),
            _ => None,
        });
        self.unplaced = behind.max();
    }
}

/// An entry.
pub(super) fn entry(recording: &Recording, logged: Logged) -> Option<&LogEntry> {
    recording.members.get(logged.member as usize)?.log.as_ref()?.entries.get(logged.entry as usize)
}
