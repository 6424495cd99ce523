//! Findings that rest on the absence of a request. A client without records leaves a trace only if it wrote. A client that
//! only compacts leaves none, so such findings are suspects unless other evidence rules the request out.

use super::Recorded;
use crate::check::{Draft, Kind, RuleResult};
use crate::history::Symbol;
use crate::history::etcd::Request;
use crate::ingest::Time;
use crate::order::etcd::{Class, lease};
use rustc_hash::FxHashSet;

/// The most missing clients that are named.
const NAMED: usize = 3;

impl Recorded<'_> {
    /// Whether records are known to be missing: some revision has no writer, or a file is damaged.
    fn is_incomplete(&self) -> bool {
        self.damaged || !self.analysis.attribution.unattributed.is_empty()
    }

    /// The kind of a finding that rests on no other client having the lease.
    pub fn unless_incomplete(&self) -> Kind {
        if self.is_incomplete() || self.lacks_clients() { Kind::Suspect } else { Kind::Violation }
    }

    /// Whether numbers of clients are missing, and no members' log shows the requests of those clients.
    pub(super) fn lacks_clients(&self) -> bool {
        !self.is_logged() && !self.missing_clients().is_empty()
    }

    /// Whether the members' logs hold everything that was applied, as far as the evidence shows.
    fn is_logged(&self) -> bool {
        let (log, timeline) = (&self.analysis.log, &self.analysis.timeline);
        log.whole && self.analysis.told <= log.last() && timeline.contradictions.is_empty() && !self.damaged
    }

    /// The logs that would decide whether an event of this kind happened, which the present logs do not.
    fn deciding_logs(&self, each: &str) -> String {
        if !self.recording.members.iter().any(|member| member.log.is_some()) {
            return format!(
                "the members' write-ahead logs (server-*/member/wal), which hold every {each}, would decide this"
            );
        }
        let (log, timeline) = (&self.analysis.log, &self.analysis.timeline);
        let shown = self.analysis.told;
        let why = match log.last() {
            _ if !timeline.contradictions.is_empty() || !log.splits.is_empty() => {
                "contradict other evidence".to_owned()
            }
            last if !log.whole => format!("reach revision {last}, but a majority may exclude these members"),
            last if last < shown => format!("end with revision {last}, but clients received revision {shown}"),
            _ => "are whole, but other files are damaged".to_owned(),
        };
        format!(
            "more of the members' write-ahead logs, which hold every {each}, would decide this: the present ones {why}"
        )
    }

    /// The missing numbers of clients, which count from 1; at most `NAMED` + 1 of them.
    fn missing_clients(&self) -> Vec<u64> {
        let number = |name: &str| name.strip_prefix("client-")?.parse::<u64>().ok();
        let mut next = 1;
        let mut missing = Vec::new();
        for here in self.recording.clients.iter().filter_map(|client| number(&client.name)) {
            missing.extend((next..here).take(NAMED + 1));
            missing.truncate(NAMED + 1);
            next = next.max(here.saturating_add(1));
        }
        missing
    }

    /// The missing clients, in parentheses after a space; empty if there are none.
    pub(super) fn missing_words(&self) -> String {
        missing_words(&self.missing_clients())
    }

    /// A finding about an answer that only a compaction above a revision explains, if no record shows one by that time. It
    /// remains a violation if a later answer rules the compaction out, if the members' logs hold everything, or if compacting
    /// clients are recorded and no client is missing. Otherwise it becomes a suspect.
    pub fn without_compaction(&self, draft: Draft, above: i64, by: Time) -> Draft {
        let (compactions, faults) = (&self.analysis.compactions, &self.analysis.root_causes);
        let later = compactions.ruled_out(above, by).filter(|_| by.is_known());
        if let Some(at) = later.filter(|at| faults.moved_between(by, self.operation(*at).call).is_none()) {
            let asked = self.asked(at);
            let told = match self.operation(at).revision {
                ..=0 => format!("asked later: {asked}; answered"),
                number => format!("asked later: {asked}; answered at revision {number}"),
            };
            let mut draft = draft;
            draft.facts.push(self.sent(at, told));
            draft.reason += " The later answer rules out such a compaction by any client.";
            return draft;
        }
        let missing = self.missing_clients();
        let recorded = compactions.is_recorded();
        if self.is_logged() || (!self.is_incomplete() && recorded && missing.is_empty()) {
            return draft;
        }
        let mut why = match recorded {
            true => " Not proved: the record of another client that requested one may be missing".to_owned(),
            false => {
                " Not proved: no compaction request is recorded, and the record of the client that compacts may be \
                missing"
                    .to_owned()
            }
        };
        why += &missing_words(&missing);
        Draft {
            kind: Kind::Suspect,
            reason: format!("{}{why}", draft.reason),
            refuted_by: format!(
                "the operations.json of a client that requested a compaction by then; {}",
                self.deciding_logs("compaction")
            ),
            ..draft
        }
    }

    /// Words for the absence of a compaction above a revision by a time. `highest`: the highest one that is possible by then.
    pub(super) fn compacted_by(&self, above: i64, by: Time, highest: i64) -> String {
        match highest {
            _ if self.analysis.compactions.unanswered(by) > above => {
                "the requested compaction comes after the end of the members' log".to_owned()
            }
            ..=0 => "no compaction request is recorded".to_owned(),
            _ => format!("the highest recorded compaction request is through {highest}"),
        }
    }

    /// Reports answers as if a lease were alive, if no recorded client was granted it although grants are recorded. A server
    /// refuses such a request unless another client was granted the lease.
    pub fn ungranted(&self, result: &mut RuleResult<'_>) {
        let grants = |request: &Request| match *request {
            Request::LeaseGrant { lease, .. } if lease != 0 => Some(lease),
            _ => None,
        };
        let operations = &self.recording.operations;
        if !operations.iter().any(|operation| grants(&operation.request).is_some()) {
            return;
        }
        let members = &self.recording.members;
        let entries = members.iter().filter_map(|member| member.log.as_ref()).flat_map(|log| &log.entries);
        let stored = members.iter().filter_map(|member| member.store.as_ref()).flat_map(|store| &store.leases);
        let granted = entries.filter_map(|entry| grants(&entry.request)).chain(stored.map(|lease| lease.id));
        let granted: FxHashSet<i64> = granted.collect();
        for (at, operation) in (0..).zip(operations) {
            if !matches!(self.analysis.effects.class(at), Class::Write | Class::Same | Class::Either) {
                continue;
            }
            let unknown = |lease: &i64| self.analysis.lives.is_always_alive(*lease) && !granted.contains(lease);
            let used = match operation.request {
                Request::Txn(txn) => lease::attached(self.recording, txn, !operation.failure).find(unknown),
                Request::LeaseRevoke { lease } if lease != 0 => Some(lease).filter(unknown),
                _ => None,
            };
            let Some(lease) = used else { continue };
            let answered = format!("answered at revision {}, as if lease {lease} were alive", operation.revision);
            let facts = vec![self.sent(at, self.asked(at)), self.answered(at, answered)];
            let summary = format!(
                "A request that names lease {lease} was not refused, but no recorded request granted that lease."
            );
            let reason = "A request with a lease that is not alive is refused. Other grants are recorded, but the \
                         record of this grant may be missing";
            let (client, cause) = (self.client_of(at), format!("lease {lease}"));
            let draft = self.draft(Kind::Suspect, client, Symbol::NONE, cause, summary, facts, reason);
            let logs = self.deciding_logs("grant");
            let decides = format!("the operations.json of a client that was granted this lease; {logs}");
            result.found(Draft { refuted_by: decides, ..draft });
        }
    }
}

fn missing_words(missing: &[u64]) -> String {
    let names: Vec<String> = missing.iter().take(NAMED).map(|number| format!("client-{number}")).collect();
    let more = if missing.len() > NAMED { " and more" } else { "" };
    let be = if missing.len() > 1 { "are" } else { "is" };
    match names.is_empty() {
        true => String::new(),
        false => format!(" ({}{more} {be} not in this report)", names.join(", ")),
    }
}
