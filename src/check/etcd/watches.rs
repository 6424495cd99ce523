//! Predicates over the watches of etcd, for the `watch-*` rules, `false-progress` and `false-compaction`.

use super::{Recorded, one_fault, revision};
use crate::check::{Draft, Fact, Kind, RuleResult};
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
                self.response(watch, n, format!("received progress: every event through revision {told} was delivered"))
            }
        }
    }

    fn delivered(&self, watch: u32, e: u32) -> Fact {
        let event = &self.recording.events[e as usize];
        let what = if event.delete { "the removal of" } else { "a put of" };
        self.event(watch, e, format!("received {what} {} at revision {}", self.text(event.key), event.revision))
    }

    fn key_of(&self, e: u32) -> Symbol {
        self.recording.events[e as usize].key
    }

    fn number_of(&self, e: u32) -> i64 {
        self.recording.events[e as usize].revision
    }

    /// Counts the checks: one per event and progress response.
    fn count_checks(&self, result: &mut RuleResult<'_>) {
        for (at, watch) in (0..).zip(&self.recording.watches) {
            let responses = &self.recording.responses[watch.responses.start as usize..][..watch.responses.len as usize];
            let events = responses.iter().map(|response| u64::from(response.events.len) + u64::from(response.progress));
            result.checked_many(self.watcher(at), events.sum());
        }
    }
}

/// States the flaws of one kind.
fn each(
    recorded: &Recorded<'_>,
    result: &mut RuleResult<'_>,
    mut found: impl FnMut(u32, WatchViolation) -> Option<Draft>,
) {
    recorded.count_checks(result);
    let analysis = recorded.analysis;
    for ((watch, flaw), &fault) in analysis.streams.flaws.iter().zip(&analysis.root_causes.flaws) {
        if let Some(mut draft) = found(*watch, *flaw) {
            // A flaw with a root cause elsewhere is no repeat of the watch's own flaws.
            if analysis.root_causes.is_shared(fault) {
                draft.cause = format!("{}, {}", draft.cause, one_fault(fault));
            }
            result.found_of(draft, fault);
        }
    }
}

fn stream(watch: u32) -> String {
    format!("watch {watch}")
}

/// `watch-reorder`.
pub fn reorder(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| {
        let WatchViolation::Reorder { event, before } = flaw else { return None };
        let facts = vec![r.watch(watch), r.delivered(watch, before), r.delivered(watch, event)];
        let summary =
            format!("A watch delivered revision {} after revision {}.", r.number_of(event), r.number_of(before));
        let reason = "A watch delivers events in the order of revisions (etcd's guarantee \"ordered\").";
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-duplicate`.
pub fn duplicate(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| {
        let WatchViolation::Duplicate { event, before } = flaw else { return None };
        let facts = vec![r.watch(watch), r.delivered(watch, before), r.delivered(watch, event)];
        let summary =
            format!("A watch delivered {} at revision {} twice.", r.text(r.key_of(event)), r.number_of(event));
        let reason = "A watch delivers each event once (etcd's guarantee \"unique\").";
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-prehistory`.
pub fn prehistory(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| {
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
pub fn filter(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| {
        let WatchViolation::Filter { event } = flaw else { return None };
        let facts = vec![r.watch(watch), r.delivered(watch, event)];
        let summary =
            format!("A watch delivered an event of {}, which its request does not name.", r.text(r.key_of(event)));
        let reason = "A watch delivers only the keys that its request names.";
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-split`.
pub fn split(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| match flaw {
        WatchViolation::Split { event, before } => {
            let facts = vec![r.watch(watch), r.delivered(watch, before), r.delivered(watch, event)];
            let number = r.number_of(event);
            let summary = format!("A watch delivered the events of revision {number} in two parts.");
            let reason = "A watch delivers all events of one revision together (etcd's guarantee \"atomic\").";
            Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
        }
        WatchViolation::Partial { event, version } => {
            let facts = vec![r.watch(watch), r.delivered(watch, event), r.version(version)];
            let key = r.version_at(version).change.key;
            let number = r.number_of(event);
            let summary = format!(
                "A watch delivered {} at revision {number}, but not {}, which changed in the same revision.",
                r.text(r.key_of(event)),
                r.text(key)
            );
            let reason =
                "A watch delivers all events of one revision together or none of them (etcd's guarantee \"atomic\").";
            Some(r.draft(Kind::Violation, r.watcher(watch), key, stream(watch), summary, facts, reason))
        }
        _ => None,
    });
}

/// `watch-gap`.
pub fn gap(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| {
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
            "A watch never delivered {} at revision {}, and continued with {went}.",
            r.text(lost.change.key),
            lost.revision
        );
        let reason = "Between the first requested revision and the last delivered one a watch leaves out no event \
                     (etcd's guarantees \"reliable\" and \"resumable\"). A watch that cannot continue ends with an error.";
        let mut draft =
            r.draft(Kind::Violation, r.watcher(watch), lost.change.key, stream(watch), summary, facts, reason);
        draft.consequence = "a client of this watch keeps an old state until something else changes the key".to_owned();
        Some(draft)
    });
}

/// `false-progress`.
pub fn progress(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| {
        let (kind, facts, summary, reason) = match flaw {
            WatchViolation::Progress { told, against } => {
                let summary = match (told, against) {
                    (Past::Progress(n), Past::Event(e)) => format!(
                        "A watch reported progress through revision {}, and then delivered revision {}.",
                        r.recording.responses[n as usize].revision,
                        r.number_of(e)
                    ),
                    _ => "A watch reported progress below a revision that it had delivered.".to_owned(),
                };
                (
                    Kind::Violation,
                    vec![r.past(watch, told), r.past(watch, against)],
                    summary,
                    "Progress says that every event through its revision was delivered (etcd's guarantee \"bookmarkable\").",
                )
            }
            WatchViolation::EarlyProgress { response } => {
                let start = r.recording.watches[watch as usize].revision;
                let told = r.recording.responses[response as usize].revision;
                // Releases before etcd#20229 answer a watch from a future revision with the current revision.
                let kind = if told == start - 1 { Kind::Hazard } else { Kind::Violation };
                (
                    kind,
                    vec![r.watch(watch), r.past(watch, Past::Progress(response))],
                    format!("A watch from revision {start} on reported progress at revision {told}."),
                    "A watch reports nothing about revisions before its first one (etcd#20221).",
                )
            }
            WatchViolation::Foreseen { told: Past::Progress(n), operation } => (
                Kind::Violation,
                vec![
                    r.past(watch, Past::Progress(n)),
                    r.sent(operation, format!("sent the write of revision {}", r.operation(operation).revision)),
                ],
                "A watch reported progress at a revision before the write of that revision was sent.".to_owned(),
                "No store reaches a revision before a client sent the write of it.",
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
                "A store delivers only events that it has, so its revision is not below its events.",
            ),
            _ => return None,
        };
        Some(r.draft(kind, r.watcher(watch), Symbol::NONE, stream(watch), summary, facts, reason))
    });
}

/// `watch-before-write`.
pub fn before_write(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    let untimed = r.recording.responses.iter().filter(|response| response.events.len > 0 && !response.time.is_known());
    match untimed.count() {
        0 => {}
        1 => result.open = Some("1 response with events has no time of its receipt".to_owned()),
        count => result.open = Some(format!("{count} responses with events have no time of their receipt")),
    }
    each(r, result, |watch, flaw| {
        let WatchViolation::Foreseen { told: Past::Event(event), operation } = flaw else { return None };
        let facts =
            vec![r.delivered(watch, event), r.sent(operation, format!("sent the write: {}", r.asked(operation)))];
        let (shown, made) = (r.number_of(event), r.operation(operation).revision);
        let summary = match shown == made {
            true => format!("A watch delivered revision {shown} before its write was sent."),
            false => format!("A watch delivered revision {shown} before the write of revision {made} was sent."),
        };
        let reason = "Both times are of the clock of the process that recorded the report.";
        Some(r.draft(Kind::Violation, r.watcher(watch), r.key_of(event), stream(watch), summary, facts, reason))
    });
}

/// `watch-type`.
pub fn kind(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    let marks = r.recording.marks_creation();
    each(r, result, |watch, flaw| {
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
        let mut facts = vec![r.event(watch, event, format!("received that {} {said}", r.text(shown.key)))];
        facts.extend(version.map(|version| r.version(version)));
        let was = match version.map(|at| r.version_at(at).change.value.is_some()) {
            Some(true) => "it existed",
            Some(false) => "it had been removed",
            None => "no known revision before has that key",
        };
        if facts.len() < 2 {
            facts.push(r.watch(watch));
        }
        let summary =
            format!("A watch says that {} {said} at revision {}, but {was}.", r.text(shown.key), shown.revision);
        let mut reason = format!(
            "Every revision below {} is known, and an event creates a key if and only if the key was absent.",
            shown.revision
        );
        let unmarked = !shown.delete && !shown.create && marks < CreationMarks::Written;
        if unmarked {
            reason +=
                " Not proved: no event of this report is marked as a creation, so its recorder may not write that mark";
        }
        let kind = if unmarked { Kind::Suspect } else { Kind::Violation };
        let draft = r.draft(kind, r.watcher(watch), shown.key, stream(watch), summary, facts, reason);
        let decides = "a recorder that does not mark events that create their key";
        Some(if unmarked { Draft { refuted_by: decides.to_owned(), ..draft } } else { draft })
    });
}

/// An event whose type contradicts the rest of it.
fn malformed_type(r: &Recorded<'_>, watch: u32, event: u32, how: Malformed) -> Option<Draft> {
    let shown = &r.recording.events[event as usize];
    let key = r.text(shown.key);
    let (says, reason) = match how {
        Malformed::ValueOfRemoval => (
            format!("received the removal of {key}, with the value {}", r.value(shown.value)),
            "A removal leaves no value, so its event has only the key and the revision.",
        ),
        Malformed::CreatingRemoval => {
            (format!("received the removal of {key} as its creation"), "A removal creates nothing.")
        }
        Malformed::CreationWithPast => (
            format!("received the creation of {key}, with a previous value"),
            "A created key was absent, so it has no previous value.",
        ),
        Malformed::PastNotBefore | Malformed::PastTooOften => return None,
    };
    let summary = format!("An event of {key} at revision {} contradicts itself.", shown.revision);
    let facts = vec![r.watch(watch), r.event(watch, event, says)];
    Some(r.draft(Kind::Violation, r.watcher(watch), shown.key, stream(watch), summary, facts, reason))
}

/// An event with a previous value that no earlier revision can have had.
fn malformed_past(r: &Recorded<'_>, watch: u32, event: u32, how: Malformed) -> Option<Draft> {
    let shown = &r.recording.events[event as usize];
    let (key, previous) = (r.text(shown.key), shown.previous?);
    let (says, reason) = match how {
        Malformed::PastNotBefore => (
            format!(
                "received {key} of revision {}, with a previous value of revision {}",
                shown.revision, previous.revision
            ),
            "A previous value is of a lower revision, and the first change of a store makes revision 2.",
        ),
        Malformed::PastTooOften => (
            format!("received that {key} had changed {} times by revision {}", previous.version, previous.revision),
            "A revision changes a key at most once, and the first change of a store makes revision 2.",
        ),
        Malformed::ValueOfRemoval | Malformed::CreatingRemoval | Malformed::CreationWithPast => return None,
    };
    let summary = format!("An event of {key} at revision {} has an impossible previous value.", shown.revision);
    let facts = vec![r.watch(watch), r.event(watch, event, says)];
    Some(r.draft(Kind::Violation, r.watcher(watch), shown.key, stream(watch), summary, facts, reason))
}

/// `watch-prev-value`.
pub fn previous(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| {
        if let WatchViolation::Malformed { event, how } = flaw {
            return malformed_past(r, watch, event, how);
        }
        let WatchViolation::Previous { event, version } = flaw else { return None };
        let shown = &r.recording.events[event as usize];
        let said = match shown.previous {
            Some(told) => format!(
                "received that {} was {} of revision {} before",
                r.text(shown.key),
                r.value(told.value),
                told.revision
            ),
            None => format!("received a change of {} without the value before it", r.text(shown.key)),
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
                "A watch names a value before revision {} of {}, which did not exist.",
                shown.revision,
                r.text(shown.key)
            ),
            (None, _) => format!(
                "A watch lacks the value before revision {} of {}, although its request asks for it.",
                shown.revision,
                r.text(shown.key)
            ),
        };
        let reason =
            "A watch with previous values delivers the value right before each event, unless that value was compacted.";
        let draft = r.draft(Kind::Violation, r.watcher(watch), shown.key, stream(watch), summary, facts, reason);
        Some(match shown.previous {
            Some(_) => draft,
            // No recorded client had requested a compaction of that value.
            None => r.without_compaction(draft, shown.revision - 1, r.time_of(watch, event)),
        })
    });
}

/// `false-compaction`.
pub fn compaction(r: &Recorded<'_>, result: &mut RuleResult<'_>) {
    each(r, result, |watch, flaw| {
        let WatchViolation::Compacted { response, next, highest } = flaw else { return None };
        let fact = r.response(watch, response, "was answered that the requested revision is compacted");
        let facts = vec![r.watch(watch), Fact { revision: revision(next), ..fact }];
        let told = r.recording.responses[response as usize].time;
        let by_then = r.compacted_by(next, told, highest);
        let summary = format!("A watch that continues at revision {next} ended as compacted, but {by_then}.");
        let reason = "A compaction compacts only the revisions below the one that it names.";
        let draft = r.draft(Kind::Violation, r.watcher(watch), Symbol::NONE, stream(watch), summary, facts, reason);
        Some(r.without_compaction(draft, next, told))
    });
    super::reads::compactions(r, result);
}
