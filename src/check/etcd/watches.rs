//! Rules about watches.

use super::{Recorded, one_fault, revision};
use crate::check::{Draft, Fact, Kind, Ruling};
use crate::history::Symbol;
use crate::history::etcd::CreationMarks;
use crate::order::etcd::store::FIRST_CHANGE;
use crate::order::etcd::{Malformed, Past, WatchViolation};

impl Recorded<'_> {
    fn past(&self, watch: u32, past: Past) -> Fact {
        match past {
            Past::Event(e) => self.delivered(watch, e),
            Past::Progress(n) => {
                let told = self.recording.responses[n as usize].revision;
                self.response(watch, n, format!("was told that everything through revision {told} was delivered"))
            }
        }
    }

    fn delivered(&self, watch: u32, e: u32) -> Fact {
        let event = &self.recording.events[e as usize];
        let what = if event.delete { "the removal of" } else { "a put of" };
        self.event(watch, e, format!("was delivered {what} {} at revision {}", self.text(event.key), event.revision))
    }

    fn key_of(&self, e: u32) -> Symbol {
        self.recording.events[e as usize].key
    }

    fn number_of(&self, e: u32) -> i64 {
        self.recording.events[e as usize].revision
    }

    /// Counts what was looked at: each event of each watch.
    fn look(&self, ruling: &mut Ruling<'_>) {
        for (at, watch) in (0..).zip(&self.recording.watches) {
            let responses = &self.recording.responses[watch.responses.start as usize..][..watch.responses.len as usize];
            let events = responses.iter().map(|response| u64::from(response.events.len) + u64::from(response.progress));
            ruling.checked_many(self.watcher(at), events.sum());
        }
    }
}

/// Finds the flaws of one kind.
fn each(recorded: &Recorded<'_>, ruling: &mut Ruling<'_>, mut found: impl FnMut(u32, WatchViolation) -> Option<Draft>) {
    recorded.look(ruling);
    let analysis = recorded.analysis;
    for ((watch, flaw), &fault) in analysis.streams.flaws.iter().zip(&analysis.root_causes.flaws) {
        if let Some(mut draft) = found(*watch, *flaw) {
            // What follows from a fault elsewhere is not a repeat of the watch's own.
            if analysis.root_causes.is_shared(fault) {
                draft.cause = format!("{}, {}", draft.cause, one_fault(fault));
            }
            ruling.found_of(draft, fault);
        }
    }
}

fn stream(watch: u32) -> String {
    format!("watch {watch}")
}

/// `watch-reorder`.
pub fn reorder(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| {
        let WatchViolation::Reorder { event, before } = flaw else { return None };
        let facts = vec![r.watch(watch), r.delivered(watch, before), r.delivered(watch, event)];
        let summary =
            format!("A watch delivered revision {} after revision {}.", r.number_of(event), r.number_of(before));
        let reason = "Events of a watch arrive in the order of revisions (etcd's guarantee \"ordered\").";
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-duplicate`.
pub fn duplicate(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| {
        let WatchViolation::Duplicate { event, before } = flaw else { return None };
        let facts = vec![r.watch(watch), r.delivered(watch, before), r.delivered(watch, event)];
        let summary =
            format!("A watch delivered {} at revision {} twice.", r.text(r.key_of(event)), r.number_of(event));
        let reason = "An event is delivered once (etcd's guarantee \"unique\").";
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-prehistory`.
pub fn prehistory(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| {
        let WatchViolation::Prehistory { event } = flaw else { return None };
        let facts = vec![r.watch(watch), r.delivered(watch, event)];
        let (start, number) = (r.recording.watches[watch as usize].revision, r.number_of(event));
        let (summary, reason) = match number < FIRST_CHANGE {
            true => (
                format!("A watch delivered an event of revision {number}, at which a store is empty."),
                "The first change of a store makes revision 2.",
            ),
            false => (
                format!("A watch from revision {start} on delivered revision {number}."),
                "A watch begins with the revision that it names.",
            ),
        };
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-filter`.
pub fn filter(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| {
        let WatchViolation::Filter { event } = flaw else { return None };
        let facts = vec![r.watch(watch), r.delivered(watch, event)];
        let summary = format!("A watch delivered an event of {}, which it did not ask for.", r.text(r.key_of(event)));
        let reason = "A watch delivers the keys that it names, and no others.";
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-split`.
pub fn split(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| match flaw {
        WatchViolation::Split { event, before } => {
            let facts = vec![r.watch(watch), r.delivered(watch, before), r.delivered(watch, event)];
            let number = r.number_of(event);
            let summary = format!("A watch delivered the events of revision {number} in two parts.");
            let reason = "The events of one revision are delivered together (etcd's guarantee \"atomic\").";
            Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
        }
        WatchViolation::Partial { event, version } => {
            let facts = vec![r.watch(watch), r.delivered(watch, event), r.version(version)];
            let key = r.version_at(version).change.key;
            let number = r.number_of(event);
            let summary = format!(
                "A watch delivered {} at revision {number}, and not {}, which changed with it.",
                r.text(r.key_of(event)),
                r.text(key)
            );
            let reason =
                "The events of one revision are delivered together or not at all (etcd's guarantee \"atomic\").";
            Some(r.draft(Kind::Violation, r.watcher(watch), key, stream(watch), summary, facts, reason))
        }
        _ => None,
    });
}

/// `watch-gap`.
pub fn gap(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| {
        let WatchViolation::Gap { version, after, past } = flaw else { return None };
        let mut facts = vec![r.watch(watch)];
        facts.extend(after.map(|e| r.delivered(watch, e)));
        facts.push(r.version(version));
        facts.push(r.past(watch, past));
        let lost = r.version_at(version);
        let went = match past {
            Past::Event(e) => format!("revision {}", r.number_of(e)),
            Past::Progress(n) => format!("progress at revision {}", r.recording.responses[n as usize].revision),
        };
        let summary = format!(
            "A watch never delivered {} at revision {}, and went on with {went}.",
            r.text(lost.change.key),
            lost.revision
        );
        let reason = "Between the first revision asked for and the last one delivered no event is left out (etcd's guarantees \
                      \"reliable\" and \"resumable\"); a watch that cannot go on ends with an error.";
        let mut draft =
            r.draft(Kind::Violation, r.watcher(watch), lost.change.key, stream(watch), summary, facts, reason);
        draft.consequence = "who follows this watch keeps an old state until something else changes the key".to_owned();
        Some(draft)
    });
}

/// `false-progress`.
pub fn progress(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| {
        let (kind, facts, summary, reason) = match flaw {
            WatchViolation::Progress { told, against } => {
                let summary = match (told, against) {
                    (Past::Progress(n), Past::Event(e)) => format!(
                        "A watch was told that everything through revision {} was delivered, and then delivered revision {}.",
                        r.recording.responses[n as usize].revision,
                        r.number_of(e)
                    ),
                    _ => "A watch was told of progress below what it had delivered.".to_owned(),
                };
                (
                    Kind::Violation,
                    vec![r.past(watch, told), r.past(watch, against)],
                    summary,
                    "Progress says that everything through its revision was delivered (etcd's guarantee \"bookmarkable\").",
                )
            }
            WatchViolation::EarlyProgress { response } => {
                let start = r.recording.watches[watch as usize].revision;
                let told = r.recording.responses[response as usize].revision;
                // Releases before etcd#20229 answered a watch of the revision to come with the present one.
                let kind = if told == start - 1 { Kind::Hazard } else { Kind::Violation };
                (
                    kind,
                    vec![r.watch(watch), r.past(watch, Past::Progress(response))],
                    format!("A watch from revision {start} on was told of progress at revision {told}."),
                    "A watch tells nothing about revisions before the one that it begins with (etcd#20221).",
                )
            }
            WatchViolation::Foreseen { told: Past::Progress(n), operation } => (
                Kind::Violation,
                vec![
                    r.past(watch, Past::Progress(n)),
                    r.sent(operation, format!("sent what became revision {}", r.operation(operation).revision)),
                ],
                "A watch was told of progress at a revision before the write that made it was sent.".to_owned(),
                "No store can have reached a revision before it exists.",
            ),
            WatchViolation::Header { response, event } => (
                Kind::Violation,
                vec![
                    r.response(watch, response, "received a response that names the revision of the store"),
                    r.delivered(watch, event),
                ],
                format!(
                    "A response of a store at revision {} delivered revision {}.",
                    r.recording.responses[response as usize].revision,
                    r.number_of(event)
                ),
                "A store delivers what it has: its revision is not below its events.",
            ),
            _ => return None,
        };
        Some(r.draft(kind, r.watcher(watch), Symbol::NONE, stream(watch), summary, facts, reason))
    });
}

/// `watch-before-write`.
pub fn before_write(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    let untimed = r.recording.responses.iter().filter(|response| response.events.len > 0 && !response.time.is_known());
    match untimed.count() {
        0 => {}
        1 => ruling.open = Some("1 response with events does not say when it was received".to_owned()),
        count => ruling.open = Some(format!("{count} responses with events do not say when they were received")),
    }
    each(r, ruling, |watch, flaw| {
        let WatchViolation::Foreseen { told: Past::Event(event), operation } = flaw else { return None };
        let facts =
            vec![r.delivered(watch, event), r.sent(operation, format!("sent the write: {}", r.asked(operation)))];
        let (shown, made) = (r.number_of(event), r.operation(operation).revision);
        let summary = match shown == made {
            true => format!("A watch delivered revision {shown} before its write was sent."),
            false => format!("A watch delivered revision {shown} before the write of revision {made} was sent."),
        };
        let reason = "Both times are of one clock, that of the process which recorded the report.";
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-type`.
pub fn kind(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    let marks = r.recording.marks_creation();
    each(r, ruling, |watch, flaw| {
        if let WatchViolation::Malformed { event, how } = flaw {
            return malformed_type(r, watch, event, how);
        }
        let WatchViolation::Create { event, version } = flaw else { return None };
        let shown = &r.recording.events[event as usize];
        let said = match (shown.delete, shown.create) {
            (true, _) => "was removed",
            (false, true) => "was created",
            (false, false) => "was changed",
        };
        let mut facts = vec![r.event(watch, event, format!("was delivered that {} {said}", r.text(shown.key)))];
        facts.extend(version.map(|version| r.version(version)));
        let was = match version.map(|at| r.version_at(at).change.value.is_some()) {
            Some(true) => "it was there",
            Some(false) => "it had been removed",
            None => "it had never been there",
        };
        if facts.len() < 2 {
            facts.push(r.watch(watch));
        }
        let summary = format!("A watch says that {} {said} at revision {}; {was}.", r.text(shown.key), shown.revision);
        let mut reason = format!(
            "Every revision below {} is known: an event creates a key exactly where it was absent.",
            shown.revision
        );
        let unmarked = !shown.delete && !shown.create && marks < CreationMarks::Written;
        if unmarked {
            reason += " Not proved: no event of this report says that it creates a key, so its recorder may not write that down";
        }
        let kind = if unmarked { Kind::Suspect } else { Kind::Violation };
        let draft = r.draft(kind, r.watcher(watch), shown.key, stream(watch), summary, facts, reason);
        let decides = "a recorder that does not write down which events create their key";
        Some(if unmarked { Draft { refuted_by: decides.to_owned(), ..draft } } else { draft })
    });
}

/// An event whose type contradicts the rest of it.
fn malformed_type(r: &Recorded<'_>, watch: u32, event: u32, how: Malformed) -> Option<Draft> {
    let shown = &r.recording.events[event as usize];
    let key = r.text(shown.key);
    let (says, reason) = match how {
        Malformed::ValueOfRemoval => (
            format!("was delivered the removal of {key}, with the value {}", r.value(shown.value)),
            "A removal leaves no value: its event has the key and the revision only.",
        ),
        Malformed::CreatingRemoval => {
            (format!("was delivered the removal of {key} as its creation"), "A removal creates nothing.")
        }
        Malformed::CreationWithPast => (
            format!("was delivered the creation of {key}, with what it was before"),
            "What is created was absent: there is nothing that it was before.",
        ),
        Malformed::PastNotBefore | Malformed::PastTooOften => return None,
    };
    let summary = format!("An event of {key} at revision {} contradicts itself.", shown.revision);
    let facts = vec![r.watch(watch), r.event(watch, event, says)];
    Some(r.draft(Kind::Violation, r.watcher(watch), shown.key, stream(watch), summary, facts, reason))
}

/// An event that tells a previous value that nothing before it can have had.
fn malformed_past(r: &Recorded<'_>, watch: u32, event: u32, how: Malformed) -> Option<Draft> {
    let shown = &r.recording.events[event as usize];
    let (key, previous) = (r.text(shown.key), shown.previous?);
    let (says, reason) = match how {
        Malformed::PastNotBefore => (
            format!(
                "was delivered {key} of revision {}, and that it was of revision {} before",
                shown.revision, previous.revision
            ),
            "What a key was before is of a lower revision, and the first change of a store makes revision 2.",
        ),
        Malformed::PastTooOften => (
            format!(
                "was delivered that {key} had changed {} times by revision {}",
                previous.version, previous.revision
            ),
            "A revision changes a key once at most, and the first change of a store makes revision 2.",
        ),
        Malformed::ValueOfRemoval | Malformed::CreatingRemoval | Malformed::CreationWithPast => return None,
    };
    let summary = format!("What an event of {key} at revision {} says of the past cannot be.", shown.revision);
    let facts = vec![r.watch(watch), r.event(watch, event, says)];
    Some(r.draft(Kind::Violation, r.watcher(watch), shown.key, stream(watch), summary, facts, reason))
}

/// `watch-prev-value`.
pub fn previous(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| {
        if let WatchViolation::Malformed { event, how } = flaw {
            return malformed_past(r, watch, event, how);
        }
        let WatchViolation::Previous { event, version } = flaw else { return None };
        let shown = &r.recording.events[event as usize];
        let said = match shown.previous {
            Some(told) => format!(
                "was delivered that {} was {} of revision {} before",
                r.text(shown.key),
                r.value(told.value),
                told.revision
            ),
            None => format!("was delivered a change of {} without the value before it", r.text(shown.key)),
        };
        let mut facts = vec![r.event(watch, event, said)];
        facts.extend(version.map(|version| r.version(version)));
        if facts.len() < 2 {
            facts.push(r.watch(watch));
        }
        let summary = match (shown.previous, version) {
            (Some(_), Some(_)) => format!(
                "The value before revision {} of {} is not the one that it had.",
                shown.revision,
                r.text(shown.key)
            ),
            (Some(_), None) => format!(
                "A watch names a value before revision {} of {}, which was not there.",
                shown.revision,
                r.text(shown.key)
            ),
            (None, _) => format!(
                "The value before revision {} of {} was asked for and is missing.",
                shown.revision,
                r.text(shown.key)
            ),
        };
        let reason =
            "A watch that asks for previous values gets the one of the revision before, unless that was compacted.";
        let draft = r.draft(Kind::Violation, r.watcher(watch), shown.key, stream(watch), summary, facts, reason);
        Some(match shown.previous {
            Some(_) => draft,
            // Nobody who is recorded had asked for a compaction that takes it away.
            None => r.without_compaction(draft, shown.revision - 1, r.time_of(watch, event)),
        })
    });
}

/// `false-compaction`.
pub fn compaction(r: &Recorded<'_>, ruling: &mut Ruling<'_>) {
    each(r, ruling, |watch, flaw| {
        let WatchViolation::Compacted { response, next, highest } = flaw else { return None };
        let fact = r.response(watch, response, "was told that the revision asked for is compacted");
        let facts = vec![r.watch(watch), Fact { revision: revision(next), ..fact }];
        let by_then = if highest > 0 {
            format!("the highest compaction that anybody is recorded to have asked for was through {highest}")
        } else {
            "nobody is recorded to have asked for a compaction".to_owned()
        };
        let summary = format!("A watch that goes on at revision {next} was ended as compacted; {by_then}.");
        let reason = "A revision is compacted only below the one that a compaction names.";
        let told = r.recording.responses[response as usize].time;
        let draft = r.draft(Kind::Violation, r.watcher(watch), Symbol::NONE, stream(watch), summary, facts, reason);
        Some(r.without_compaction(draft, next, told))
    });
    super::reads::compactions(r, ruling);
}
