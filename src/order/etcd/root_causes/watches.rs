//! Traces of broken watch guarantees.

use super::{Common, Joining};
use crate::history::Symbol;
use crate::ingest::Time;
use crate::order::etcd::streams::{Past, WatchViolation};
use rustc_hash::{FxHashMap, FxHashSet};

/// The delivery of one event.
pub(super) struct Delivery {
    /// The highest revision that its watch had delivered before it.
    highest: i64,
    at: Time,
}

impl Joining<'_> {
    pub(super) fn flaws(&mut self, flaws: &[(u32, WatchViolation)], deliveries: &FxHashMap<u32, Delivery>) -> Vec<u32> {
        let mut found = Vec::with_capacity(flaws.len());
        // For the current watch: the revisions of its flaws so far, and one of their traces.
        let mut last: Option<(u32, (i64, i64), u32)> = None;
        for (watch, flaw) in flaws {
            let revisions = self.revisions_of(flaw, deliveries);
            let at = self.trace(revisions);
            let kind = flaw_kind(flaw);
            match *flaw {
                WatchViolation::Gap { version, .. } | WatchViolation::Partial { version, .. } => {
                    let known = &self.timeline.versions[version as usize];
                    let (key, revision) = (known.change.key, known.revision);
                    self.share(at, Common::Event(kind, key, revision));
                    self.same_version(key, revision, at);
                }
                WatchViolation::Create { event, version } | WatchViolation::Previous { event, version } => {
                    let (event, delivered) = (event, &self.recording.events[event as usize]);
                    self.share(at, Common::Event(kind, delivered.key, delivered.revision));
                    let before = version.map_or(delivered.revision, |at| self.timeline.versions[at as usize].revision);
                    self.same_version(delivered.key, before, at);
                    if self.recording.events[event as usize].previous.is_none() {
                        self.share(at, Common::Watch(kind, *watch));
                    }
                }
                WatchViolation::Reorder { event, .. }
                | WatchViolation::Duplicate { event, .. }
                | WatchViolation::Split { event, .. } => {
                    let event = &self.recording.events[event as usize];
                    self.share(at, Common::Event(kind, event.key, event.revision));
                }
                WatchViolation::Foreseen { operation, .. } => self.share(at, Common::Write(operation)),
                WatchViolation::Malformed { event, .. } => {
                    let event = &self.recording.events[event as usize];
                    self.share(at, Common::Event(kind, event.key, event.revision));
                    self.share(at, Common::Watch(kind, *watch));
                }
                WatchViolation::Filter { .. }
                | WatchViolation::Prehistory { .. }
                | WatchViolation::EarlyProgress { .. }
                | WatchViolation::Header { .. } => {
                    self.share(at, Common::Watch(kind, *watch));
                }
                WatchViolation::Progress { .. } | WatchViolation::Compacted { .. } => {}
            }
            let (low, high) = revisions.unwrap_or((0, -1));
            last = match last {
                Some((of, (from, to), trace)) if of == *watch && low <= to && high >= from => {
                    self.join(trace, at);
                    Some((of, (from.min(low), to.max(high)), trace))
                }
                _ => Some((*watch, (low, high), at)),
            };
            found.push(at);
        }
        found
    }

    /// Joins a flaw about a version with the trace that first concerned it, such as its loss.
    pub(super) fn same_version(&mut self, key: Symbol, revision: i64, at: u32) {
        if let Some(&first) = self.first.get(&Common::Version(key, revision)) {
            self.join(first, at);
        }
    }

    /// The delivery of each event that a flaw is about.
    pub(super) fn deliveries(&self, flaws: &[(u32, WatchViolation)]) -> FxHashMap<u32, Delivery> {
        let wanted: FxHashSet<u32> = flaws.iter().filter_map(|(_, flaw)| event_of(flaw)).collect();
        let mut deliveries = FxHashMap::default();
        if wanted.is_empty() {
            return deliveries;
        }
        for watch in &self.recording.watches {
            let mut highest = 0;
            for response in watch.responses.of(&self.recording.responses) {
                for e in response.events.start..response.events.start + response.events.len {
                    if wanted.contains(&e) {
                        deliveries.insert(e, Delivery { highest, at: response.time });
                    }
                    highest = highest.max(self.recording.events[e as usize].revision);
                }
            }
        }
        deliveries
    }

    pub(super) fn revisions_of(
        &self,
        flaw: &WatchViolation,
        deliveries: &FxHashMap<u32, Delivery>,
    ) -> Option<(i64, i64)> {
        let of_event = |e: u32| self.recording.events[e as usize].revision;
        let of_past = |past: Past| match past {
            Past::Event(e) => of_event(e),
            Past::Progress(n) => self.recording.responses[n as usize].revision,
        };
        let of_version = |at: u32| self.timeline.versions[at as usize].revision;
        let (a, b) = match *flaw {
            WatchViolation::Duplicate { event, .. } | WatchViolation::Reorder { event, .. } => {
                (of_event(event), deliveries.get(&event).map_or(0, |delivery| delivery.highest))
            }
            WatchViolation::Prehistory { event }
            | WatchViolation::Filter { event }
            | WatchViolation::Split { event, .. }
            | WatchViolation::Create { event, .. }
            | WatchViolation::Malformed { event, .. }
            | WatchViolation::Previous { event, .. } => (of_event(event), of_event(event)),
            WatchViolation::Partial { version, .. } => (of_version(version), of_version(version)),
            WatchViolation::Gap { version, past, .. } => {
                let past_it = of_past(past) - i64::from(matches!(past, Past::Event(_)));
                (of_version(version), past_it)
            }
            WatchViolation::Progress { told, against } => (of_past(told), of_past(against)),
            WatchViolation::Header { response, event } => (of_past(Past::Progress(response)), of_event(event)),
            WatchViolation::Foreseen { told, .. } => (of_past(told), of_past(told)),
            WatchViolation::EarlyProgress { .. } | WatchViolation::Compacted { .. } => return None,
        };
        Some((a.min(b), a.max(b)))
    }

    pub(super) fn time_of(&self, told: Past, deliveries: &FxHashMap<u32, Delivery>) -> Time {
        match told {
            Past::Event(event) => deliveries.get(&event).map_or(Time::UNKNOWN, |delivery| delivery.at),
            Past::Progress(n) => self.recording.responses[n as usize].time,
        }
    }
}

/// The event that a flaw is about.
fn event_of(flaw: &WatchViolation) -> Option<u32> {
    match *flaw {
        WatchViolation::Duplicate { event, .. }
        | WatchViolation::Reorder { event, .. }
        | WatchViolation::Prehistory { event }
        | WatchViolation::Filter { event }
        | WatchViolation::Split { event, .. }
        | WatchViolation::Create { event, .. }
        | WatchViolation::Malformed { event, .. }
        | WatchViolation::Previous { event, .. }
        | WatchViolation::Partial { event, .. }
        | WatchViolation::Header { event, .. }
        | WatchViolation::Gap { past: Past::Event(event), .. }
        | WatchViolation::Progress { against: Past::Event(event), .. }
        | WatchViolation::Foreseen { told: Past::Event(event), .. } => Some(event),
        _ => None,
    }
}

fn flaw_kind(flaw: &WatchViolation) -> u8 {
    match flaw {
        WatchViolation::Reorder { .. } => 0,
        WatchViolation::Duplicate { .. } => 1,
        WatchViolation::Prehistory { .. } => 2,
        WatchViolation::Filter { .. } => 3,
        WatchViolation::Split { .. } => 4,
        WatchViolation::Partial { .. } => 5,
        WatchViolation::Gap { .. } => 6,
        WatchViolation::Progress { .. } => 7,
        WatchViolation::EarlyProgress { .. } => 8,
        WatchViolation::Foreseen { .. } => 9,
        WatchViolation::Header { .. } => 10,
        WatchViolation::Create { .. } => 11,
        WatchViolation::Previous { .. } => 12,
        WatchViolation::Compacted { .. } => 13,
        WatchViolation::Malformed { .. } => 14,
    }
}
