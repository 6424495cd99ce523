//! Findings and judgements as data. Input of reports, `explain` and `counterfactual`. Invariant: every finding has a
//! certificate whose facts name file, line and offset.

use crate::history::{AuditId, ClientId, ClockId, IncarnationId, KeyId, OperationId, Revision, ServerId, Symbol};
use crate::ingest::{Position, Time};

/// The certainty and the severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Proved from the evidence, for every value that the evidence leaves open.
    Violation,
    /// Consistent with a violation; the reason names the missing evidence.
    Suspect,
    /// Allowed and harmless here, unsafe as a pattern.
    Hazard,
}

/// The party that broke its promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BrokenBy {
    /// The server answered what its contract excludes.
    Server,
    /// The client used the protocol in a way that the contract forbids.
    Client,
    /// No party: the behaviour is allowed, but the client's observations are not one history.
    Nobody,
}

/// One fact of a certificate: a record of the evidence, and its relevant part.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fact {
    /// File, line and offset of the record.
    #[doc(hidden)]
    pub position: Position,
    /// One clause in the past tense, without time and place: "kubelet saw pods default/web-0 deleted".
    pub says: String,
    /// The relevant revision; zero without one.
    #[doc(hidden)]
    pub revision: Revision,
    /// The key, if it concerns one.
    #[doc(hidden)]
    pub key: KeyId,
    /// The uid, if known.
    #[doc(hidden)]
    pub uid: Symbol,
    /// The time: of the answer for an answer, of the request for a request.
    #[doc(hidden)]
    pub time: Time,
    /// Clock of `time`.
    #[doc(hidden)]
    pub clock: ClockId,
    /// Process.
    #[doc(hidden)]
    pub incarnation: IncarnationId,
    /// Server.
    #[doc(hidden)]
    pub server: ServerId,
    /// Audit id.
    #[doc(hidden)]
    pub audit_id: AuditId,
    /// The operation, if the fact comes from one.
    #[doc(hidden)]
    pub operation: OperationId,
}

/// One finding as a rule states it, before it is folded with its repeats.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Kind.
    pub kind: Kind,
    /// The party that broke its promise.
    pub broken_by: BrokenBy,
    /// The process that observed or did it.
    pub incarnation: IncarnationId,
    /// The key, if it concerns one.
    pub key: KeyId,
    /// The cause, to separate it from the client's other findings of the rule: a scope, a stream, a key. Findings of one kind,
    /// client and cause fold.
    pub cause: String,
    /// One sentence.
    pub summary: String,
    /// The facts, 2 to 5 (a hazard may have one).
    pub facts: Vec<Fact>,
    /// The contract and the reason why the facts contradict it.
    pub reason: String,
    /// Evidence that would refute it.
    pub refuted_by: String,
    /// The consequence for the reader.
    pub consequence: String,
}

/// The proof of a finding: its facts and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Certificate {
    /// 2 to 5 facts, in reading order. For a revision that nothing explains, also the requests that did not make it, 16 at
    /// most.
    pub facts: Vec<Fact>,
    /// The contract row or theorem that they contradict, in one or two sentences.
    pub reason: String,
}

impl Certificate {
    /// The part of a suspect's reason that names the missing evidence; the whole reason if no part does.
    pub fn unproved(&self) -> &str {
        const BEGIN: &str = "Not proved: ";
        self.reason.find(BEGIN).map_or(self.reason.as_str(), |at| &self.reason[at..])
    }
}

/// The effect of another way of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prevention {
    /// The other request, or the precondition, as reports show it.
    pub request: String,
    /// Its effect on this occurrence.
    pub effect: Effect,
    /// The smallest revision that the server could have answered with; zero if it does not apply.
    #[doc(hidden)]
    pub smallest_revision: Revision,
    /// The reason, as one clause.
    pub because: String,
}

/// The effect of a prevention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// The answer, or the write, would have been impossible.
    Impossible,
    /// A window remains.
    Narrowed,
    /// Nothing changes.
    None,
}

/// One finding of one rule. Repeats by one client with one cause are folded: `occurrences` has all of them with the first one,
/// and `certificate` is the first one's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Hash of rule and certificate, hexadecimal. Independent of the thread count and of the order of inputs.
    pub id: String,
    /// Slug of the rule, which names its page in `docs/rules`.
    pub rule: &'static str,
    /// How certain and how grave it is.
    pub kind: Kind,
    /// The party that broke its promise.
    pub broken_by: BrokenBy,
    /// The client that observed or did it.
    #[doc(hidden)]
    pub client: ClientId,
    /// Its process life.
    #[doc(hidden)]
    pub incarnation: IncarnationId,
    /// The key, if it concerns one.
    #[doc(hidden)]
    pub key: KeyId,
    /// The relevant revisions, ascending.
    #[doc(hidden)]
    pub revisions: Vec<Revision>,
    /// One sentence: the observation or the act, and why it contradicts the contract (or is unsafe).
    pub summary: String,
    /// The facts that prove the first occurrence, and the reason why they do.
    pub certificate: Certificate,
    /// Every occurrence, with the first one.
    pub occurrences: Vec<Certificate>,
    /// The `id` of the finding that explains this one.
    pub consequence_of: Option<String>,
    /// The root causes that it shows, if the order distinguishes them; numbers of this history only.
    #[doc(hidden)]
    pub faults: Vec<u32>,
    /// A published bug that leaves the same traces. A hint, and no part of the proof.
    pub resembles: Option<&'static super::Published>,
    /// Requests that would have prevented it (filled by the counterfactual stage).
    pub prevention: Vec<Prevention>,
    /// Evidence that would refute it.
    pub refuted_by: String,
    /// The consequence for the reader, in one sentence.
    pub consequence: String,
}

/// The verdict of a rule, a client or a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every checked obligation is kept.
    Holds,
    /// A violation was proved.
    Violated,
    /// Not decided, with the reason.
    Unknown(String),
    /// No obligation was met, with the reason.
    NotChecked(String),
}

impl Verdict {
    /// The word in reports.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Violated => "violated",
            Verdict::Unknown(_) => "unknown",
            Verdict::NotChecked(_) => "not-checked",
        }
    }

    /// The reason; empty if the word suffices.
    pub fn reason(&self) -> &str {
        match self {
            Verdict::Holds | Verdict::Violated => "",
            Verdict::Unknown(reason) | Verdict::NotChecked(reason) => reason,
        }
    }
}

/// The result of a rule over one history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleReport {
    /// Slug of the rule.
    pub rule: &'static str,
    /// What the rule proved about all of its obligations.
    pub verdict: Verdict,
    /// The number of obligations that the rule decided.
    pub checked: u64,
    /// The reason of an open question without a finding.
    pub open: Option<String>,
    /// Obligations that could not be decided, by reason. Every output shows them beside the verdict.
    pub undecided: Vec<Undecided>,
}

/// Obligations of one rule that the evidence leaves open for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undecided {
    /// The evidence that is missing, or the limit that was reached.
    pub reason: String,
    /// The number of obligations that it leaves open.
    pub count: u64,
}

/// The result for one client's observations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientReport {
    /// The client.
    pub client: ClientId,
    /// Its process lives.
    pub incarnations: Vec<IncarnationId>,
    /// The number of processes that its lives are judged as. Observations of one process are compared with each other.
    pub processes: usize,
    /// Whether the client's observations are consistent with etcd's total order.
    pub verdict: Verdict,
    /// Per rule with an obligation or a finding of this client: slug and verdict.
    pub guarantees: Vec<(&'static str, Verdict)>,
}

/// An interval of one domain without a gap in the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageReport {
    /// Name of the domain.
    pub domain: String,
    /// The resource or scope; empty for the whole domain.
    pub scope: String,
    /// Exclusive lower bound.
    pub after: Revision,
    /// Inclusive upper bound.
    pub through: Revision,
    /// The kind of evidence: "etcd witness", "watch".
    pub shown_by: String,
}

/// All results for one history.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// Verdict over all rules.
    pub verdict: Verdict,
    /// Per client, in the order of names.
    #[doc(hidden)]
    pub clients: Vec<ClientReport>,
    /// Per rule, in the order of `RULES`.
    pub rules: Vec<RuleReport>,
    /// Findings: violations, then suspects, then hazards; causes before consequences.
    pub findings: Vec<Finding>,
    /// Intervals without a gap in the evidence.
    #[doc(hidden)]
    pub coverage: Vec<CoverageReport>,
    /// Unchecked evidence with reasons, one sentence each.
    pub unchecked: Vec<String>,
    /// Records that a rule could not use.
    pub problems: Vec<crate::ingest::Problem>,
    /// Proofs of the verdict that `verify` decides again.
    #[doc(hidden)]
    pub proofs: Vec<super::Proof>,
}

impl RuleReport {
    /// The number of obligations that could not be decided.
    pub fn open_obligations(&self) -> u64 {
        self.undecided.iter().map(|open| open.count).sum()
    }
}
