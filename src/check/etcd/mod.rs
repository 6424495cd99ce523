//! Predicates over recordings of etcd clusters: the contradictions that [`crate::order::etcd`] found, as findings with
//! citations.

mod coherence;
mod logs;
#[cfg(test)]
mod logs_tests;
pub(crate) mod order;
pub(crate) mod reads;
mod stores;
#[cfg(test)]
mod stores_tests;
#[cfg(test)]
mod tests;
pub(crate) mod traces;
mod unrecorded;
pub(crate) mod watches;
pub(crate) mod writes;

use super::{BrokenBy, Draft, Evidence, Fact, Kind, RuleResult};
use crate::history::etcd::{CLOCK, Cluster, Operation, Recording, Response, ValueId};
use crate::history::{AuditId, IncarnationId, KeyId, OperationId, Revision, ServerId, Symbol};
use crate::ingest::{Position, Time};
use crate::order::etcd::{Analysis, Change, Logged, Version, Witness, Writer};

/// The recording of an etcd cluster with what follows from it.
#[derive(Clone, Copy)]
pub struct Recorded<'e> {
    /// The history's names for the recording.
    pub cluster: &'e Cluster,
    /// The recording.
    pub recording: &'e Recording,
    /// The derived order and its contradictions.
    pub analysis: &'e Analysis,
    /// Whether some records could not be used.
    pub damaged: bool,
    /// Whether to keep proofs that are as long as the evidence.
    pub proofs: bool,
}

/// The fold cause of findings with one root cause.
fn one_fault(fault: u32) -> String {
    format!("fault {fault}")
}

/// A revision in the form of findings; negative numbers become none.
pub fn revision(number: i64) -> Revision {
    Revision::new(u128::try_from(number).unwrap_or(0))
}

impl<'e> Recorded<'e> {
    /// The recording of a history, if it has one.
    pub fn of(evidence: &Evidence<'e>) -> Option<Recorded<'e>> {
        let cluster = evidence.history.cluster()?;
        let analysis = evidence.order.etcd.as_deref()?;
        let damaged = !evidence.history.problems.is_empty();
        let proofs = evidence.options.proofs;
        Some(Recorded { cluster, recording: &cluster.recording, analysis, damaged, proofs })
    }

    /// Whether any request or watch of a client is recorded.
    pub fn has_clients(&self) -> bool {
        !self.recording.operations.is_empty() || !self.recording.watches.is_empty()
    }

    /// States a finding about an operation's state. If the store had gone back by then, that root cause explains the finding.
    fn forgotten(&self, draft: Draft, at: u32, result: &mut RuleResult<'_>) {
        let operation = self.operation(at);
        match self.analysis.root_causes.moved_before(operation.revision, operation.returned) {
            Some(fault) => result.found_of(draft, fault),
            None => result.found(draft),
        }
    }

    fn operation(&self, at: u32) -> &'e Operation {
        &self.recording.operations[at as usize]
    }

    /// The process life of an operation's client.
    pub fn client_of(&self, at: u32) -> IncarnationId {
        self.cluster.incarnation(self.operation(at).client)
    }

    /// Counts the operations that a rule examines.
    fn look_at(&self, result: &mut RuleResult<'_>, counts: impl Fn(u32) -> bool) {
        let mut first = 0;
        for run in self.recording.operations.chunk_by(|a, b| a.client == b.client) {
            let count = (first..first + run.len() as u32).filter(|at| counts(*at)).count();
            if count > 0 {
                result.checked_many(self.client_of(first), count as u64);
            }
            first += run.len() as u32;
        }
    }

    /// The process life of a watch's client.
    pub fn watcher(&self, watch: u32) -> IncarnationId {
        self.cluster.incarnation(self.recording.watches[watch as usize].client)
    }

    fn fact(&self, position: Position, number: i64, key: Symbol, time: Time, says: String) -> Fact {
        Fact {
            position,
            says,
            revision: revision(number),
            key: self.cluster.key(key),
            uid: Symbol::NONE,
            time,
            clock: CLOCK,
            incarnation: IncarnationId::NONE,
            server: ServerId::NONE,
            audit_id: AuditId::None,
            operation: OperationId::NONE,
        }
    }

    /// An operation's answer as a fact.
    pub fn answered(&self, at: u32, says: impl Into<String>) -> Fact {
        let operation = self.operation(at);
        let time = if operation.returned.is_known() { operation.returned } else { operation.call };
        Fact {
            incarnation: self.client_of(at),
            server: self.cluster.server(operation.member),
            ..self.fact(operation.position, operation.revision, Symbol::NONE, time, says.into())
        }
    }

    /// An operation's request as a fact.
    pub fn sent(&self, at: u32, says: impl Into<String>) -> Fact {
        Fact { time: self.operation(at).call, ..self.answered(at, says) }
    }

    /// The time at which an event was delivered.
    pub fn time_of(&self, watch: u32, e: u32) -> Time {
        let responses = self.recording.watches[watch as usize].responses.of(&self.recording.responses);
        // Responses are in the order of their events.
        let at = responses.partition_point(|response| response.events.start + response.events.len <= e);
        let holds = |r: &&Response| r.events.start <= e;
        responses.get(at).filter(holds).map_or(Time::UNKNOWN, |response| response.time)
    }

    /// An event as a fact.
    pub fn event(&self, watch: u32, e: u32, says: impl Into<String>) -> Fact {
        let event = &self.recording.events[e as usize];
        let w = &self.recording.watches[watch as usize];
        let time = self.time_of(watch, e);
        let position = Position { line: event.line, offset: event.offset, ..w.position };
        Fact { incarnation: self.watcher(watch), ..self.fact(position, event.revision, event.key, time, says.into()) }
    }

    /// A response of a watch as a fact.
    pub fn response(&self, watch: u32, n: u32, says: impl Into<String>) -> Fact {
        let response = &self.recording.responses[n as usize];
        let position = Position {
            line: response.line,
            offset: response.offset,
            ..self.recording.watches[watch as usize].position
        };
        let fact = self.fact(position, response.revision, Symbol::NONE, response.time, says.into());
        Fact { incarnation: self.watcher(watch), ..fact }
    }

    /// The request of a watch as a fact.
    pub fn watch(&self, watch: u32) -> Fact {
        let w = &self.recording.watches[watch as usize];
        let what = match (w.prefix, self.text(w.key)) {
            (true, "") => "every key".to_owned(),
            (true, key) => format!("keys that begin with {key}"),
            (false, key) if w.end.is_some() => format!("{key} to {}", self.text(w.end)),
            (false, key) => key.to_owned(),
        };
        let from = if w.revision == 0 { "now".to_owned() } else { format!("revision {}", w.revision) };
        let says = format!("watched {what} from {from} on");
        let number = w.revision.max(0);
        Fact { incarnation: self.watcher(watch), ..self.fact(w.position, number, Symbol::NONE, Time::UNKNOWN, says) }
    }

    /// An entry of a log as a fact.
    pub fn entry(&self, logged: Logged, says: impl Into<String>) -> Fact {
        let member = &self.recording.members[logged.member as usize];
        let position = member
            .log
            .as_ref()
            .and_then(|log| log.entries.get(logged.entry as usize))
            .map_or_else(Position::default, |entry| entry.position);
        self.fact(position, 0, Symbol::NONE, Time::UNKNOWN, says.into())
    }

    /// A witness of a key as a fact.
    pub fn witness(&self, witness: Witness, key: Symbol, says: impl Into<String>) -> Fact {
        let fact = match witness {
            Witness::Write(at) => self.answered(at, says),
            Witness::Log(logged) => self.entry(logged, says),
            Witness::Event(watch, _, e) => self.event(watch, e, says),
            Witness::Pair(at, _) | Witness::Supposed(Writer::Operation(at)) => self.answered(at, says),
            Witness::Supposed(Writer::Expiry(_)) => self.fact(Position::default(), 0, key, Time::UNKNOWN, says.into()),
            Witness::Store(member, n) => {
                let store = self.recording.members[member as usize].store.as_ref();
                let position = store.and_then(|store| store.revisions.get(n as usize)).map(|row| row.position);
                self.fact(position.unwrap_or_default(), 0, key, Time::UNKNOWN, says.into())
            }
        };
        Fact { key: self.cluster.key(key), ..fact }
    }

    /// A version of the revision order as a fact, with its witness.
    pub fn version(&self, at: u32) -> Fact {
        let version = &self.analysis.timeline.versions[at as usize];
        let done = self.change(version.change);
        let says = match version.shown_by {
            Witness::Write(_) => format!("{done}; acknowledged at revision {}", version.revision),
            Witness::Event(..) => format!("received that revision {} {done}", version.revision),
            Witness::Pair(..) => format!("read that revision {} {done}", version.revision),
            Witness::Log(_) => format!("the members' log has at revision {}: {done}", version.revision),
            Witness::Supposed(_) => format!("no record shows revision {}; presumably it {done}", version.revision),
            Witness::Store(..) => format!("a member's store has at revision {}: {done}", version.revision),
        };
        let fact = self.witness(version.shown_by, version.change.key, says);
        Fact { revision: revision(version.revision), ..fact }
    }

    /// A version by its index.
    pub fn version_at(&self, at: u32) -> &'e Version {
        &self.analysis.timeline.versions[at as usize]
    }

    /// A key or a text.
    pub fn text(&self, symbol: Symbol) -> &'e str {
        self.recording.texts.get(symbol)
    }

    /// A value in words.
    pub fn value(&self, value: ValueId) -> String {
        self.recording.value_words(value)
    }

    /// A change as a clause: `put k=7`, `deleted k`.
    pub fn change(&self, change: Change) -> String {
        match change.value {
            Some(value) => format!("put {}={}", self.text(change.key), self.value(value)),
            None => format!("deleted {}", self.text(change.key)),
        }
    }

    /// A request as a clause.
    pub fn asked(&self, at: u32) -> String {
        self.recording.request_words(&self.operation(at).request)
    }

    /// A finding about the server.
    #[allow(clippy::too_many_arguments)]
    pub fn draft(
        &self,
        kind: Kind,
        incarnation: IncarnationId,
        key: Symbol,
        cause: String,
        summary: String,
        facts: Vec<Fact>,
        reason: impl Into<String>,
    ) -> Draft {
        Draft {
            kind,
            broken_by: BrokenBy::Server,
            incarnation,
            key: if key.is_some() { self.cluster.key(key) } else { KeyId::NONE },
            cause,
            summary,
            facts,
            reason: reason.into(),
            refuted_by: "a record of this report that differs from what was sent or answered".to_owned(),
            consequence: String::new(),
        }
    }
}
