//! Published bugs of etcd, recognized by their traces in a history. Input: the findings and their root causes. Output: a
//! resemblance per finding. A resemblance is a hint and never a part of the proof, because another fault may leave the same
//! traces.
//!
//! Numbers are those of issues of etcd-io/etcd. These issues, and etcd's `tests/robustness/README.md` ("Track record"),
//! describe the fingerprints.

use super::Recorded;
use crate::check::published::{
    APPLIED_TWICE, BACK_IN_TIME, COMPACTED_DELETE, EARLY_PROGRESS, FUTURE_WATCH, INCONSISTENT_MEMBERS, LOST_AT_RESTART,
    MINUS_ONE, Published, REFUSED_WRITE, REPEATED_EVENT, STALE_READ, STARVED_WATCH, TOMBSTONE_REVISION,
};
use crate::check::{Finding, Kind};
use crate::history::etcd::{Operation, Outcome, Request};
use crate::order::etcd::{Backward, Class, Past, Regression, Unattributed, WatchViolation};
use rustc_hash::FxHashMap;

/// The number of missed changes from which a watch certainly lost its place, and not a single event.
const FAR_AHEAD: usize = 10;

/// Traces of published bugs, by root cause. Computed once, because a recording may have as many findings as operations.
pub struct Traces<'r, 'e> {
    recorded: &'r Recorded<'e>,
    regressions: FxHashMap<u32, &'r Regression>,
    backward: FxHashMap<u32, Vec<&'r Backward>>,
    unfilled: FxHashMap<u32, Vec<&'r Unattributed>>,
    flaws: FxHashMap<u32, Vec<(u32, WatchViolation)>>,
    /// (revision, operation) of writes, sorted.
    writes: Vec<(i64, u32)>,
    compactions: Vec<&'r Operation>,
    members: usize,
    /// Results by rule and root cause, because one root cause may have as many findings as operations.
    found: FxHashMap<(&'static str, u32), Option<&'static Published>>,
}

/// Groups things by their root causes.
fn by_fault<T>(of: &[u32], things: impl Iterator<Item = T>) -> FxHashMap<u32, Vec<T>> {
    let mut by_fault: FxHashMap<u32, Vec<T>> = FxHashMap::default();
    for (fault, thing) in of.iter().zip(things) {
        by_fault.entry(*fault).or_default().push(thing);
    }
    by_fault
}

impl<'r, 'e> Traces<'r, 'e> {
    /// Collects the traces of one recording.
    pub fn of(recorded: &'r Recorded<'e>) -> Traces<'r, 'e> {
        let (recording, analysis) = (recorded.recording, recorded.analysis);
        let mut regressions = FxHashMap::default();
        for (fault, regression) in &analysis.root_causes.regressions {
            regressions.entry(*fault).or_insert(regression);
        }
        let writes = (0..recording.operations.len() as u32).filter(|at| analysis.effects.class(*at) == Class::Write);
        let mut writes: Vec<(i64, u32)> = writes.map(|at| (recording.operations[at as usize].revision, at)).collect();
        writes.sort_unstable();
        let compacts = |operation: &&Operation| matches!(operation.request, Request::Compact { .. });
        Traces {
            recorded,
            regressions,
            backward: by_fault(&analysis.root_causes.backward, analysis.backward.iter()),
            unfilled: by_fault(&analysis.root_causes.unfilled, analysis.attribution.unattributed.iter()),
            flaws: by_fault(&analysis.root_causes.flaws, analysis.streams.flaws.iter().copied()),
            writes,
            compactions: recording.operations.iter().filter(compacts).collect(),
            members: members(recorded),
            found: FxHashMap::default(),
        }
    }

    /// The published bug that a finding resembles.
    pub fn resembled(&mut self, finding: &Finding) -> Option<&'static Published> {
        if finding.kind != Kind::Violation || finding.consequence_of.is_some() {
            return None;
        }
        finding.faults.iter().find_map(|fault| {
            let asked = (finding.rule, *fault);
            if let Some(found) = self.found.get(&asked) {
                return *found;
            }
            let found = self.of_fault(finding.rule, *fault);
            self.found.insert(asked, found);
            found
        })
    }

    fn of_fault(&self, rule: &str, fault: u32) -> Option<&'static Published> {
        match rule {
            "revision-reuse" | "revision-rewind" | "split-timeline" | "lost-write" | "stale-consistent-read" => {
                // A member that only answered from an old state gave no write an old revision.
                self.went_back(fault, self.regressions.get(&fault)?)
                    .filter(|bug| bug.issue != STALE_READ.issue || rule == "stale-consistent-read")
            }
            "linearizability" => self.made_wrongly(fault),
            _ => self.watched(rule, self.flaws.get(&fault).map_or(&[], Vec::as_slice)),
        }
    }

    fn unfilled(&self, fault: u32) -> impl Iterator<Item = &'r Unattributed> {
        self.unfilled.get(&fault).into_iter().flatten().copied()
    }

    /// A store that went back, or members with different histories.
    fn went_back(&self, fault: u32, regression: &Regression) -> Option<&'static Published> {
        let r = self.recorded;
        if !regression.answered {
            return None;
        }
        if !regression.wrote {
            return self.stale(fault).then_some(&STALE_READ);
        }
        if regression.parted {
            // A member that applied a write twice is ahead of the others. A member that skipped a write is behind.
            let ahead = |at: u32, revision: i64| r.operation(at).revision > revision;
            let twice = self.unfilled(fault).any(|gap| gap.repeats.is_some_and(|at| ahead(at, gap.revision)));
            return Some(if twice { &APPLIED_TWICE } else { &INCONSISTENT_MEMBERS });
        }
        let from = self.writes.partition_point(|(revision, _)| *revision <= regression.after);
        let to = self.writes.partition_point(|(revision, _)| *revision <= regression.through).max(from);
        // Writes acknowledged until then belong to the abandoned history.
        let until_then = |at: &u32| r.operation(*at).call <= regression.from;
        let mut lost = self.writes[from..to].iter().map(|(_, at)| *at).filter(until_then).peekable();
        let deletes = lost.peek().is_some()
            && lost.all(|at| r.analysis.effects.changes(at).iter().all(|change| change.value.is_none()));
        let compacted = || {
            self.compactions.iter().any(|operation| {
                matches!(operation.request, Request::Compact { revision } if revision > regression.after)
                    && operation.outcome != Outcome::Refused
                    && operation.call <= regression.until
            })
        };
        if deletes && compacted() {
            return Some(&TOMBSTONE_REVISION);
        }
        (self.members <= 1 && r.recording.members.len() <= 1).then_some(&LOST_AT_RESTART)
    }

    /// Whether all old answers came from one of several members.
    fn stale(&self, fault: u32) -> bool {
        let of_fault = self.backward.get(&fault).into_iter().flatten();
        let mut behind: Vec<u64> = of_fault.map(|back| self.recorded.operation(back.later).member).collect();
        behind.dedup();
        matches!(behind[..], [member] if member != 0) && self.members > 1
    }

    /// A revision that no request should have made.
    fn made_wrongly(&self, fault: u32) -> Option<&'static Published> {
        let r = self.recorded;
        let gap = self.unfilled(fault).next()?;
        if let Some(at) = gap.refused {
            return r.text(r.operation(at).error).contains("revision").then_some(&REFUSED_WRITE);
        }
        gap.repeats.is_some().then_some(&APPLIED_TWICE)
    }

    /// A change that a watch missed.
    fn missed(&self, watch: u32, flaw: &WatchViolation) -> Option<&'static Published> {
        let r = self.recorded;
        let version = match flaw {
            WatchViolation::Gap { version, .. } | WatchViolation::Partial { version, .. } => r.version_at(*version),
            _ => return None,
        };
        let compacted = self.compactions.iter().any(|operation| {
            matches!(operation.request, Request::Compact { revision } if revision == version.revision)
                && !matches!(operation.outcome, Outcome::Refused | Outcome::Future)
        });
        if version.change.value.is_none() && compacted {
            return Some(&COMPACTED_DELETE);
        }
        let WatchViolation::Gap { version: at, past, .. } = flaw else { return None };
        if let Past::Progress(_) = past {
            return Some(&EARLY_PROGRESS);
        }
        if r.recording.watches.iter().any(|other| other.revision == -1) {
            return Some(&MINUS_ONE);
        }
        let Past::Event(event) = past else { return None };
        let until = r.recording.events[*event as usize].revision;
        let timeline = &r.analysis.timeline;
        let watch = &r.recording.watches[watch as usize];
        let about = |key| crate::order::etcd::streams::watched(r.recording, watch, key);
        let lost = timeline.versions[*at as usize..].iter().take_while(|version| version.revision < until);
        (lost.filter(|version| about(version.change.key)).take(FAR_AHEAD).count() == FAR_AHEAD)
            .then_some(&STARVED_WATCH)
    }

    fn watched(&self, rule: &str, flaws: &[(u32, WatchViolation)]) -> Option<&'static Published> {
        match rule {
            "watch-gap" | "watch-split" => flaws.iter().find_map(|(watch, flaw)| self.missed(*watch, flaw)),
            "false-progress" => flaws.iter().find_map(|(_, flaw)| match flaw {
                WatchViolation::Progress { told: Past::Progress(_), against: Past::Event(_) } => Some(&EARLY_PROGRESS),
                WatchViolation::EarlyProgress { .. } => Some(&FUTURE_WATCH),
                _ => None,
            }),
            "watch-prehistory" => Some(&FUTURE_WATCH),
            "watch-duplicate" | "watch-reorder" => again(self.recorded, flaws),
            _ => None,
        }
    }
}

/// The number of members that answered.
fn members(r: &Recorded<'_>) -> usize {
    let mut members: Vec<u64> =
        r.recording.operations.iter().map(|operation| operation.member).filter(|member| *member != 0).collect();
    members.sort_unstable();
    members.dedup();
    members.len()
}

/// Events that were delivered again.
fn again(r: &Recorded<'_>, flaws: &[(u32, WatchViolation)]) -> Option<&'static Published> {
    let revision = |e: u32| r.recording.events[e as usize].revision;
    let twice: Vec<(u32, u32)> = flaws
        .iter()
        .filter_map(|(_, flaw)| match flaw {
            WatchViolation::Duplicate { event, before } => Some((*event, *before)),
            _ => None,
        })
        .collect();
    let &(event, before) = twice.first()?;
    let jumped = flaws.iter().any(|(_, flaw)| matches!(flaw, WatchViolation::Reorder { .. }))
        || (before + 1..event).any(|e| revision(e) > revision(event));
    Some(if jumped { &BACK_IN_TIME } else { &REPEATED_EVENT })
}
