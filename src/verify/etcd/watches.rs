//! Compares the deliveries of watches with the sequence of changes.
//!
//! Source: etcd `Documentation/learning/api_guarantees` (ordered, unique, reliable, atomic, resumable, bookmarkable).

use super::flaw::EtcdFlaw;
use super::log::Logged;
use super::store::{Changed, Live, ReplayedHistory};
use crate::history::etcd::{CreationMarks, Event, Recording, Response, Watch};
use crate::ingest::Time;
use std::collections::BTreeMap;

/// Checks all watches.
pub(super) fn check(recording: &Recording, replayed: &ReplayedHistory<'_>, logged: &Logged) -> Result<(), EtcdFlaw> {
    let streams =
        Streams { recording, replayed, marks_creation: recording.marks_creation() > CreationMarks::Unknown, logged };
    for (at, watch) in (0..).zip(&recording.watches) {
        let responses = watch.responses.of(&recording.responses);
        let mut state = State { from: 0, through: 0, next: 0, events: 0 };
        begin(recording, watch, responses, &mut state);
        let changes = &replayed.store.changes;
        state.next = changes.partition_point(|(revision, _)| *revision < state.from);
        state.through = state.from - 1;
        for (n, response) in (0..).zip(responses) {
            streams.response(watch, response, &mut state).map_err(|why| EtcdFlaw::Watch {
                watch: at,
                response: n,
                why,
            })?;
        }
    }
    Ok(())
}

/// Sets the first revision of a watch. A watch without one begins at the latest revision that its responses allow.
fn begin(recording: &Recording, watch: &Watch, responses: &[Response], state: &mut State) {
    let shown = |response: &Response| match response.events.of(&recording.events).first() {
        Some(event) => Some(event.revision),
        None => response.progress.then_some(response.revision.saturating_add(1)),
    };
    let first = responses.iter().find_map(shown).unwrap_or(1);
    state.from = if watch.revision > 0 { watch.revision } else { first };
}

struct Streams<'s> {
    recording: &'s Recording,
    replayed: &'s ReplayedHistory<'s>,
    /// Whether events in this report mark creations.
    marks_creation: bool,
    /// Compactions in members' logs, which need no client's request.
    logged: &'s Logged,
}

/// The progress of a watch.
struct State {
    /// Its first revision.
    from: i64,
    /// The revision through which everything counts as delivered.
    through: i64,
    /// Index of the next change.
    next: usize,
    /// The revision of its last event.
    events: i64,
}

impl Streams<'_> {
    fn response(&self, watch: &Watch, response: &Response, state: &mut State) -> Result<(), String> {
        let events = response.events.of(&self.recording.events);
        for events in events.chunk_by(|a, b| a.revision == b.revision) {
            self.revision(watch, events, response.time, state)?;
        }
        if let Some(last) = events.last() {
            if response.revision > 0 && response.revision < last.revision {
                return Err(format!("the store was at revision {}", response.revision));
            }
            self.exists(last.revision, response.time)?;
        }
        if response.progress && response.revision > 0 {
            if let Some((revision, changed)) =
                self.next(watch, state).filter(|(revision, _)| *revision <= response.revision)
            {
                return Err(format!("revision {revision} changed {}, which was not delivered", changed.key));
            }
            if response.revision < state.through.max(state.events) {
                return Err("an earlier response went further".to_owned());
            }
            self.exists(response.revision, response.time)?;
            state.through = response.revision;
        }
        let compacted = self.recording.texts.get(response.error).contains("required revision has been compacted");
        if compacted && watch.revision >= 0 {
            let next = watch.revision.max(state.events + 1).max(1);
            if !self.compacted(next, response.time) {
                return Err(format!("revision {next} was not yet compacted"));
            }
        }
        Ok(())
    }

    /// The next change that a watch covers.
    fn next(&self, watch: &Watch, state: &mut State) -> Option<(i64, &Changed<'_>)> {
        let changes = &self.replayed.store.changes;
        while let Some((revision, changed)) = changes.get(state.next) {
            if self.is_about(watch, changed.key) {
                return Some((*revision, changed));
            }
            state.next += 1;
        }
        None
    }

    fn is_about(&self, watch: &Watch, key: &str) -> bool {
        let first = self.recording.texts.get(watch.key);
        match watch.end.is_some().then(|| self.recording.texts.get(watch.end)) {
            _ if watch.prefix => key.starts_with(first),
            None => key == first,
            Some(end) => key >= first && (end == "\0" || key < end),
        }
    }

    /// Compares all events of one revision with its changes.
    fn revision(&self, watch: &Watch, events: &[Event], time: Time, state: &mut State) -> Result<(), String> {
        let Some(number) = events.first().map(|event| event.revision) else { return Ok(()) };
        let mut due: BTreeMap<&str, Changed<'_>> = BTreeMap::new();
        while let Some((revision, changed)) = self.next(watch, state).map(|(revision, changed)| (revision, *changed)) {
            if revision < number {
                return Err(format!("revision {revision} changed {}, which was not delivered", changed.key));
            }
            if revision > number {
                break;
            }
            due.insert(changed.key, changed);
            state.next += 1;
        }
        for event in events {
            let key = self.recording.texts.get(event.key);
            let Some(changed) = due.remove(key) else {
                return Err(format!("revision {number} did not change {key}, or the change was delivered before"));
            };
            if !self.shows(watch, event, &changed, time) {
                return Err(format!("revision {number} gave {key} another content"));
            }
        }
        if let Some(key) = due.keys().next() {
            return Err(format!("revision {number} changed {key} too"));
        }
        if number <= state.through {
            return Err("an earlier response stated that everything through this revision was delivered".to_owned());
        }
        state.events = number;
        Ok(())
    }

    fn shows(&self, watch: &Watch, event: &Event, changed: &Changed<'_>, time: Time) -> bool {
        let values = &self.recording.values;
        let content = match changed.after {
            Some(live) => !event.delete && values.same(live.value, event.value) != Some(false),
            None => event.delete && changed.before.is_some(),
        };
        let creates = changed.before.is_none() && changed.after.is_some();
        let previous = match (event.previous, changed.before) {
            (None, None) => true,
            (None, Some(_)) => !watch.previous || self.compacted(event.revision - 1, time),
            (Some(previous), Some(Live { changed, version, value, .. })) => {
                previous.revision == changed
                    && (previous.version == 0 || previous.version == version)
                    && values.same(value, previous.value) != Some(false)
            }
            (Some(_), None) => false,
        };
        content && previous && (!self.marks_creation || event.create == creates)
    }

    /// Whether a revision may be compacted at a time.
    fn compacted(&self, above: i64, time: Time) -> bool {
        let at = self.replayed.compactions.partition_point(|(through, _)| *through <= above);
        above < self.logged.through(time) || self.replayed.compactions.get(at).is_some_and(|(_, when)| *when <= time)
    }

    /// Checks that a revision existed at a time.
    fn exists(&self, number: i64, time: Time) -> Result<(), String> {
        let earliest = match usize::try_from(number - 2) {
            Ok(at) => self.replayed.earliest.get(at).copied(),
            Err(_) => Some(Time(i64::MIN)),
        };
        match earliest {
            Some(earliest) if earliest <= time || !time.is_known() => Ok(()),
            Some(_) => Err(format!("revision {number} had not been sent yet")),
            None => Err(format!("there is no revision {number}")),
        }
    }
}
