//! What watches delivered, held against what etcd promises of a watch and against T.
//!
//! Events arrive in the order of revisions, those of one revision together and once; none is left out between the first revision
//! asked for and the last event or progress; progress says that everything through its revision was delivered. A client library
//! resumes a broken watch just behind its last event, so the promise spans the server's watches that one recorded watch may be.
//!
//! Source: etcd `Documentation` "watch guarantees"; `server/etcdserver/api/v3rpc/watch.go`, `server/storage/mvcc/watchable_store.go`.

use super::compaction::{Compactions, Demand};
use super::effects::Effects;
use super::store::{FIRST_CHANGE, covers};
use super::timeline::{State, Timeline, Version, Witness};
use crate::history::Symbol;
use crate::history::etcd::{CreationMarks, Event, Interval, Recording, ValueId, Watch};
use crate::ingest::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// Something that a watch must not do. Events, responses and operations are indices of the recording's tables, versions of T's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchViolation {
    /// An event below the one before.
    Reorder {
        /// The event.
        event: u32,
        /// The one before.
        before: u32,
    },
    /// An event twice.
    Duplicate {
        /// The event.
        event: u32,
        /// The same one.
        before: u32,
    },
    /// An event below the first revision asked for, or below the first that any store gives a change.
    Prehistory {
        /// The event.
        event: u32,
    },
    /// An event of a key that is not watched.
    Filter {
        /// The event.
        event: u32,
    },
    /// The events of one revision, delivered in two parts.
    Split {
        /// The event that came later.
        event: u32,
        /// The one that came before.
        before: u32,
    },
    /// Only some of the events of one revision.
    Partial {
        /// The event that came.
        event: u32,
        /// What did not.
        version: u32,
    },
    /// A change that the watch went past.
    Gap {
        /// What was not delivered.
        version: u32,
        /// The event before, where there is one.
        after: Option<u32>,
        /// What shows that the watch went past.
        past: Past,
    },
    /// An event at or below what progress said to be delivered, or progress below an event or progress before.
    Progress {
        /// What was said to be delivered.
        told: Past,
        /// What contradicts.
        against: Past,
    },
    /// Progress below the first revision asked for.
    EarlyProgress {
        /// The response.
        response: u32,
    },
    /// Progress, or an event, of a write that had not been sent.
    Foreseen {
        /// What told it.
        told: Past,
        /// The write.
        operation: u32,
    },
    /// A store below the events that it delivered.
    Header {
        /// The response.
        response: u32,
        /// The event.
        event: u32,
    },
    /// An event that says wrongly whether its key was there before.
    Create {
        /// The event.
        event: u32,
        /// What the key was, where it ever changed before.
        version: Option<u32>,
    },
    /// An event that contradicts itself.
    Malformed {
        /// The event.
        event: u32,
        /// What of it cannot be true together.
        how: Malformed,
    },
    /// An event with a wrong value from before, or none although asked for.
    Previous {
        /// The event.
        event: u32,
        /// What the key was, where it was there.
        version: Option<u32>,
    },
    /// A watch that ended because of a compaction that cannot have reached it.
    Compacted {
        /// The response.
        response: u32,
        /// What was to be delivered next.
        next: i64,
        /// The highest revision that anybody had asked to compact through by then; 0: none.
        highest: i64,
    },
}

/// What no event is, whatever the store holds.
///
/// Source: etcd `server/storage/mvcc/watchable_store.go` (`kvsToEvents`), `server/etcdserver/api/v3rpc/watch.go` (previous values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A removal with a value: it has a key and a revision.
    ValueOfRemoval,
    /// A removal that creates its key.
    CreatingRemoval,
    /// A creation that tells what its key was before.
    CreationWithPast,
    /// What the key was before, of a revision that is not before the event, or before any change.
    PastNotBefore,
    /// What the key was before, after more changes than there were revisions.
    PastTooOften,
}

impl Malformed {
    /// What is wrong with an event, whatever the store holds.
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

/// How far a watch had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// An event.
    Event(u32),
    /// A response that tells progress.
    Progress(u32),
}

/// What watches did.
#[derive(Debug, Default)]
pub struct Streams {
    /// What they must not do, with the watch, in order of watches.
    pub flaws: Vec<(u32, WatchViolation)>,
    /// How many events were looked at, by watch.
    pub events: u64,
    /// Watches that begin at a revision that etcd gives no meaning to.
    pub senseless: u64,
    /// Deliveries that only a compaction explains.
    pub demands: Vec<Demand>,
}

struct Walk<'t> {
    recording: &'t Recording,
    effects: &'t Effects,
    timeline: &'t Timeline,
    compactions: &'t Compactions,
    /// Whether events of this report say what they create.
    marks_creation: bool,
    /// Writes by revision, each with the latest time at which it or one before was sent.
    sent: Vec<(i64, Time, u32)>,
    streams: Streams,
}

impl Streams {
    /// Of all watches.
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
        // Everything through here is accounted for; `None` before anything is known of a watch "from now on".
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
        // What came late is no gap: other flaws say so.
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

    /// What was told of a revision before that, or one before it, can have come about.
    fn foreseen(&mut self, at: u32, told: Past, revision: i64, time: Time) {
        let writes = self.sent.partition_point(|(other, ..)| *other <= revision);
        if let Some((_, call, operation)) = self.sent[..writes].last()
            && *call > time
            && time.is_known()
        {
            self.flaw(at, WatchViolation::Foreseen { told, operation: *operation });
        }
    }

    /// One event on its own.
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
            // A compaction through this revision took the one before away.
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

    /// What T has of one revision came with its first event.
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

    /// Whether a version counts that only a log may show.
    fn is_sure(&self, known: &Version) -> bool {
        match known.shown_by {
            Witness::Log(entry) => self.timeline.is_sure(self.recording, entry),
            _ => true,
        }
    }

    /// Nothing of T was left out above one revision and through another.
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

/// Whether a watch is about a key.
pub fn watched(recording: &Recording, watch: &Watch, key: Symbol) -> bool {
    if watch.prefix {
        return recording.texts.get(key).starts_with(recording.texts.get(watch.key));
    }
    covers(recording, Interval { key: watch.key, end: watch.end }, key)
}
