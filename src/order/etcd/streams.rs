//! Comparison of watches with etcd's guarantees and with the revision order. Output: [`Streams`].
//!
//! The watch guarantees are those of the etcd documentation, "API guarantees". Events are ordered by revision, unique, atomic per
//! revision, and without gaps from the start revision on. Progress says that everything through its revision was delivered. A
//! client library resumes a broken watch after its last event, so one recorded watch may span several watches of the server.
//!
//! Source: etcd `server/etcdserver/api/v3rpc/watch.go`, `server/storage/mvcc/watchable_store.go`.

use super::compaction::{Compactions, Demand};
use super::effects::Effects;
use super::store::{FIRST_CHANGE, covers};
use super::timeline::{State, Timeline, Version, Witness};
use crate::history::Symbol;
use crate::history::etcd::{CreationMarks, Event, Interval, Recording, ValueId, Watch};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// A broken guarantee. Events, responses and operations are indices into the recording's tables, versions into the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchViolation {
    /// An event has a lower revision than the event before.
    Reorder {
        /// The event.
        event: u32,
        /// The one before.
        before: u32,
    },
    /// An event was delivered twice.
    Duplicate {
        /// The event.
        event: u32,
        /// The first delivery.
        before: u32,
    },
    /// An event is below the start revision, or below the lowest revision of any change.
    Prehistory {
        /// The event.
        event: u32,
    },
    /// An event is for a key outside the watch.
    Filter {
        /// The event.
        event: u32,
    },
    /// The events of one revision were delivered in two responses.
    Split {
        /// The later event.
        event: u32,
        /// The earlier event.
        before: u32,
    },
    /// Only some events of a revision were delivered.
    Partial {
        /// A delivered event.
        event: u32,
        /// The version that was not delivered.
        version: u32,
    },
    /// The watch skipped a change.
    Gap {
        /// The version that was not delivered.
        version: u32,
        /// The event before it, if there is one.
        after: Option<u32>,
        /// The evidence that the watch had passed the version.
        past: Past,
    },
    /// An event at or below an announced progress, or progress below an earlier event or progress.
    Progress {
        /// The progress or event that came first.
        told: Past,
        /// The later evidence that contradicts it.
        against: Past,
    },
    /// Progress below the start revision.
    EarlyProgress {
        /// The response.
        response: u32,
    },
    /// An event or progress of a write that had not been sent.
    Foreseen {
        /// The event or progress.
        told: Past,
        /// The write.
        operation: u32,
    },
    /// The response header has a lower revision than an event of the response.
    Header {
        /// The response.
        response: u32,
        /// The event.
        event: u32,
    },
    /// An event is wrong about whether it created its key.
    Create {
        /// The event.
        event: u32,
        /// The version of the key before it, if the key ever changed.
        version: Option<u32>,
    },
    /// An event contradicts itself.
    Malformed {
        /// The event.
        event: u32,
        /// The contradiction.
        how: Malformed,
    },
    /// An event has a wrong previous value, or none although requested.
    Previous {
        /// The event.
        event: u32,
        /// The version before it, if the key existed.
        version: Option<u32>,
    },
    /// A watch was cancelled for a compaction that cannot have reached it.
    Compacted {
        /// The response.
        response: u32,
        /// The next revision to deliver.
        next: i64,
        /// The highest revision that any client had asked to compact by then; 0 if none.
        highest: i64,
    },
}

/// Shapes that no event has, whatever the store holds.
///
/// Source: etcd `server/storage/mvcc/watchable_store.go` (`kvsToEvents`), `server/etcdserver/api/v3rpc/watch.go` (previous values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A deletion with a value; it may only have key and revision.
    ValueOfRemoval,
    /// A deletion that claims to create its key.
    CreatingRemoval,
    /// A creation with a previous value.
    CreationWithPast,
    /// A previous value whose revision is not below the event's, or below any change.
    PastNotBefore,
    /// A previous value with more changes than there were revisions.
    PastTooOften,
}

impl Malformed {
    /// The contradiction inside an event, whatever the store holds.
    pub fn of(event: &Event) -> Option<Malformed> {
        if event.delete && event.value != ValueId::default() {
            return Some(Malformed::ValueOfRemoval);
        }
        if event.delete && event.create {
            return Some(Malformed::CreatingRemoval);
        }
        let previous = event.previous?;
        if event.create {
            Some(Malformed::CreationWithPast)
        } else if previous.revision == 0 {
            None
        } else if !(FIRST_CHANGE..event.revision).contains(&previous.revision) {
            Some(Malformed::PastNotBefore)
        } else {
            (!(0..previous.revision).contains(&previous.version)).then_some(Malformed::PastTooOften)
        }
    }
}

/// Evidence of how far a watch had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// An event.
    Event(u32),
    /// A response with progress.
    Progress(u32),
}

/// The broken guarantees of all watches, and counts.
#[derive(Debug, Default)]
pub struct Streams {
    /// Broken guarantees with their watch, in order of watches.
    pub flaws: Vec<(u32, WatchViolation)>,
    /// The number of compared events, counted per watch.
    pub events: u64,
    /// The number of watches with a negative start revision, which etcd does not define.
    pub senseless: u64,
    /// Deliveries that only a compaction explains.
    pub demands: Vec<Demand>,
}

struct Walk<'t> {
    recording: &'t Recording,
    effects: &'t Effects,
    timeline: &'t Timeline,
    compactions: &'t Compactions,
    /// Whether events of this recording say whether they created their key.
    marks_creation: bool,
    /// Writes by revision, each with the latest send time so far; only those that raise it.
    sent: Vec<(i64, Time, u32)>,
    streams: Streams,
}

impl Streams {
    /// Compares all watches.
    pub fn of(recording: &Recording, effects: &Effects, timeline: &Timeline, compactions: &Compactions) -> Streams {
        let mut sent: Vec<(i64, Time, u32)> = Vec::new();
        for revision in &timeline.revisions {
            let Some(writer) = revision.writer else { continue };
            let call = recording.operations[writer as usize].call;
            if sent.last().is_none_or(|(_, latest, _)| *latest < call) {
                sent.push((revision.number, call, writer));
            }
        }
        let marks_creation = recording.marks_creation() > CreationMarks::Unknown;
        let mut walk =
            Walk { recording, effects, timeline, compactions, marks_creation, sent, streams: Streams::default() };
        for at in 0..recording.watches.len() as u32 {
            walk.watch(at);
        }
        walk.streams
    }
}

impl Walk<'_> {
    fn watch(&mut self, at: u32) {
        let recording = self.recording;
        let watch = &recording.watches[at as usize];
        if watch.revision < 0 {
            self.streams.senseless += 1;
        }
        // Everything through this revision is accounted for; `None` for a watch "from now on" before its first response.
        let mut through = (watch.revision > 0).then(|| watch.revision - 1);
        let mut last: Option<u32> = None;
        let mut told: Option<u32> = None;
        let mut seen: FxHashMap<(Symbol, i64), u32> = FxHashMap::default();
        let mut highest = 0;
        let begun = self.streams.flaws.len();
        for n in watch.responses.start..watch.responses.start + watch.responses.len {
            let response = &recording.responses[n as usize];
            let range = response.events.start..response.events.start + response.events.len;
            for e in range.clone() {
                self.streams.events += 1;
                let event = &recording.events[e as usize];
                if let Some(&before) = seen.get(&(event.key, event.revision)) {
                    self.flaw(at, WatchViolation::Duplicate { event: e, before });
                    continue;
                }
                seen.insert((event.key, event.revision), e);
                if !watched(recording, watch, event.key) {
                    self.flaw(at, WatchViolation::Filter { event: e });
                    continue;
                }
                if event.revision < watch.revision.max(FIRST_CHANGE) {
                    self.flaw(at, WatchViolation::Prehistory { event: e });
                    continue;
                }
                if let Some(response) = told
                    && event.revision <= recording.responses[response as usize].revision
                {
                    self.flaw(at, WatchViolation::Progress { told: Past::Progress(response), against: Past::Event(e) });
                }
                if let Some(before) = last {
                    let revision = recording.events[before as usize].revision;
                    if event.revision < revision {
                        self.flaw(at, WatchViolation::Reorder { event: e, before });
                        continue;
                    }
                    if event.revision == revision && !range.contains(&before) {
                        self.flaw(at, WatchViolation::Split { event: e, before });
                    }
                }
                self.event(at, watch, e, response.time);
                if event.revision > highest {
                    let from = *through.get_or_insert(event.revision - 1);
                    self.gap(at, watch, from, event.revision - 1, last, Past::Event(e));
                    through = Some(event.revision.max(from));
                    highest = event.revision;
                    self.together(at, watch, e, range.end);
                }
                last = Some(e);
            }
            if response.revision > 0
                && let Some(e) = range.clone().find(|e| recording.events[*e as usize].revision > response.revision)
            {
                self.flaw(at, WatchViolation::Header { response: n, event: e });
            }
            if response.progress && response.revision > 0 {
                self.progress(at, watch, n, last, told);
                if watch.revision <= 0 || response.revision >= watch.revision - 1 {
                    let from = *through.get_or_insert(response.revision);
                    self.gap(at, watch, from, response.revision, last, Past::Progress(n));
                    through = Some(response.revision.max(from));
                    let higher = |told: &u32| recording.responses[*told as usize].revision > response.revision;
                    told = told.filter(higher).or(Some(n));
                }
            }
            let compacted = recording.texts.get(response.error).contains("required revision has been compacted");
            if compacted && watch.revision >= 0 {
                let next = watch.revision.max(highest + 1).max(1);
                let possible = self.compactions.possible(response.time);
                if possible <= next {
                    self.flaw(at, WatchViolation::Compacted { response: n, next, highest: possible });
                } else {
                    self.streams.demands.push(Demand { above: next, by: response.time });
                }
            }
        }
        // A version that arrived late is no gap; another violation reports it.
        let late = |flaw: &WatchViolation| match flaw {
            WatchViolation::Gap { version, .. } => {
                let version = &self.timeline.versions[*version as usize];
                seen.contains_key(&(version.change.key, version.revision))
            }
            _ => false,
        };
        let mut kept = self.streams.flaws.split_off(begun);
        kept.retain(|(_, flaw)| !late(flaw));
        self.streams.flaws.append(&mut kept);
    }

    fn flaw(&mut self, watch: u32, flaw: WatchViolation) {
        self.streams.flaws.push((watch, flaw));
    }

    fn progress(&mut self, at: u32, watch: &Watch, n: u32, last: Option<u32>, told: Option<u32>) {
        let response = &self.recording.responses[n as usize];
        if watch.revision > 0 && response.revision < watch.revision {
            self.flaw(at, WatchViolation::EarlyProgress { response: n });
        }
        if let Some(e) = last.filter(|e| self.recording.events[*e as usize].revision > response.revision) {
            self.flaw(at, WatchViolation::Progress { told: Past::Event(e), against: Past::Progress(n) });
        } else if let Some(before) =
            told.filter(|told| self.recording.responses[*told as usize].revision > response.revision)
        {
            self.flaw(at, WatchViolation::Progress { told: Past::Progress(before), against: Past::Progress(n) });
        }
        self.foreseen(at, Past::Progress(n), response.revision, response.time);
    }

    /// Reports evidence of a revision that came before the revision, or one below it, can have existed.
    fn foreseen(&mut self, at: u32, told: Past, revision: i64, time: Time) {
        let writes = self.sent.partition_point(|(other, ..)| *other <= revision);
        if let Some((_, call, operation)) = self.sent[..writes].last()
            && *call > time
            && time.is_known()
        {
            self.flaw(at, WatchViolation::Foreseen { told, operation: *operation });
        }
    }

    /// Compares one event.
    fn event(&mut self, at: u32, watch: &Watch, e: u32, time: Time) {
        let event = &self.recording.events[e as usize];
        if let Some(revision) = self.timeline.revision(event.revision)
            && let Some(writer) = revision.writer
            && self.effects.changes(writer).iter().any(|change| change.key == event.key)
            && self.recording.operations[writer as usize].call > time
            && time.is_known()
        {
            self.flaw(at, WatchViolation::Foreseen { told: Past::Event(e), operation: writer });
        } else if self.timeline.contradictions.is_empty() {
            self.foreseen(at, Past::Event(e), event.revision, time);
        }
        if let Some(how) = Malformed::of(event) {
            self.flaw(at, WatchViolation::Malformed { event: e, how });
            return;
        }
        if self.timeline.may_be_lost(event.revision, time) {
            return;
        }
        let (before, last) = match self.timeline.state(event.key, event.revision - 1) {
            State::Open(_) => return,
            State::There(version) => (Some(version), Some(version)),
            State::Absent(last) => (None, last),
        };
        let creates = !event.delete && before.is_none();
        if (self.marks_creation && event.create != creates) || (event.delete && before.is_none()) {
            let version = last.map(|version| self.timeline.index(version));
            self.flaw(at, WatchViolation::Create { event: e, version });
            return;
        }
        let wrong = match (event.previous, before) {
            (Some(_), None) => true,
            (None, None) => false,
            (Some(told), Some(known)) => {
                told.revision != known.revision
                    || known
                        .change
                        .value
                        .is_none_or(|value| self.recording.values.same(value, told.value) == Some(false))
                    || known.miscounts(told.version)
            }
            // A compaction through this revision removed the previous version.
            (None, Some(_)) => {
                if watch.previous {
                    self.streams.demands.push(Demand { above: event.revision - 1, by: time });
                }
                watch.previous && self.compactions.possible(time) < event.revision
            }
        };
        if wrong {
            let version = before.map(|version| self.timeline.index(version));
            self.flaw(at, WatchViolation::Previous { event: e, version });
        }
    }

    /// Reports versions of a revision that did not come with its first event.
    fn together(&mut self, at: u32, watch: &Watch, first: u32, end: u32) {
        let recording = self.recording;
        let number = recording.events[first as usize].revision;
        let Some(revision) = self.timeline.revision(number) else { return };
        if revision.len < 2 {
            return;
        }
        let same = |e: &u32| recording.events[*e as usize].revision == number;
        let came: FxHashSet<Symbol> = (first..end).take_while(same).map(|e| recording.events[e as usize].key).collect();
        for version in revision.start..revision.start + revision.len {
            let known = &self.timeline.versions[version as usize];
            if watched(recording, watch, known.change.key) && !came.contains(&known.change.key) && self.is_sure(known) {
                self.flaw(at, WatchViolation::Partial { event: first, version });
            }
        }
    }

    /// Whether a version counts, even if only a log shows it.
    fn is_sure(&self, known: &Version) -> bool {
        match known.shown_by {
            Witness::Log(entry) => self.timeline.is_sure(self.recording, entry),
            _ => true,
        }
    }

    /// Reports the first version in (after, through] that the watch covers but did not deliver.
    fn gap(&mut self, at: u32, watch: &Watch, after: i64, through: i64, last: Option<u32>, past: Past) {
        if through <= after {
            return;
        }
        let time = match past {
            Past::Event(_) => Time::UNKNOWN,
            Past::Progress(n) => self.recording.responses[n as usize].time,
        };
        for revision in self.timeline.range(after, through) {
            let lost = time.is_known() && self.timeline.may_be_lost(revision.number, time);
            let missing = (revision.start..revision.start + revision.len).find(|version| {
                let known = &self.timeline.versions[*version as usize];
                watched(self.recording, watch, known.change.key) && self.is_sure(known)
            });
            if let Some(version) = missing.filter(|_| !lost) {
                self.flaw(at, WatchViolation::Gap { version, after: last, past });
                return;
            }
        }
    }
}

/// Whether a watch covers a key.
pub fn watched(recording: &Recording, watch: &Watch, key: Symbol) -> bool {
    if watch.prefix {
        return recording.texts.get(key).starts_with(recording.texts.get(watch.key));
    }
    covers(recording, Interval { key: watch.key, end: watch.end }, key)
}
