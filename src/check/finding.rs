//! Findings: what a rule says, with the facts that prove it.

use crate::history::{AuditId, ClientId, ClockId, IncarnationId, KeyId, OperationId, Revision, ServerId, Symbol};
use crate::ingest::{Position, Time};

/// How sure, and how bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Proved from the evidence, for every value that the evidence leaves open.
    Violation,
    /// Consistent with a violation; the reason names the missing evidence.
    Suspect,
    /// Allowed and harmless here, unsafe as a pattern.
    Hazard,
}

/// Whose promise broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BrokenBy {
    /// The server answered what its contract excludes.
    Server,
    /// The client used the protocol in a way that the contract forbids.
    Client,
    /// Nobody: allowed, yet what the client saw is not one history.
    Nobody,
}

/// One fact of a certificate: a record of the evidence with the part of it that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Where it stands.
    pub position: Position,
    /// One clause in the past tense, without time and place: "kubelet saw pods default/web-0 deleted".
    pub says: String,
    /// The revision that counts; zero: none.
    pub revision: Revision,
    /// The key, where it is about one.
    pub key: KeyId,
    /// The uid, where known.
    pub uid: Symbol,
    /// When (end of the interval for answers, begin for requests).
    pub time: Time,
    /// Clock of `time`.
    pub clock: ClockId,
    /// Process.
    pub incarnation: IncarnationId,
    /// Server.
    pub server: ServerId,
    /// Audit id.
    pub audit_id: AuditId,
    /// The operation, where it comes from one.
    pub operation: OperationId,
}

/// One finding as a rule states it, before it is folded with its repeats.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Kind.
    pub kind: Kind,
    /// Whose promise broke.
    pub broken_by: BrokenBy,
    /// The process that it happened to, or that did it.
    pub incarnation: IncarnationId,
    /// The key, where it is about one.
    pub key: KeyId,
    /// What else makes it another cause than the client's other findings of this rule: a scope, a stream, a key. Repeats with
    /// one (kind, client, cause) fold.
    pub cause: String,
    /// One sentence.
    pub summary: String,
    /// The facts, 2 to 5 (a hazard may have one).
    pub facts: Vec<Fact>,
    /// Why.
    pub reason: String,
    /// What would refute it.
    pub refuted_by: String,
    /// What it leads to.
    pub consequence: String,
}

/// Why the facts cannot be true together, or what they amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// 2 to 5 facts, in the order in which a reader should meet them; of a revision that nothing explains, also the
    /// requests that did not make it, 16 at most.
    pub facts: Vec<Fact>,
    /// The contract row or theorem that they contradict, in one or two sentences.
    pub reason: String,
}

impl Certificate {
    /// The part of a suspect's reason that names the missing evidence; the whole reason where no part of it says that.
    pub fn unproved(&self) -> &str {
        const BEGIN: &str = "Not proved: ";
        self.reason.find(BEGIN).map_or(self.reason.as_str(), |at| &self.reason[at..])
    }
}

/// What another way of asking would have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prevention {
    /// The other way of asking, as people write it.
    pub request: String,
    /// Its effect on this occurrence.
    pub effect: Effect,
    /// The smallest revision with which the server would have had to answer; zero: does not apply.
    pub smallest_revision: Revision,
    /// One clause: why.
    pub because: String,
}

/// The effect of a prevention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// The answer, or the write, would have been impossible.
    Impossible,
    /// A window remains.
    Narrowed,
    /// Nothing changes.
    None,
}

/// One finding of one rule. Repeats by one client with one cause are folded: `occurrences` has all of them, the first
/// included, and `certificate` is the first one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Hash of rule and witness, hexadecimal: the same for any thread count and input order.
    pub id: String,
    /// Slug of the rule.
    pub rule: &'static str,
    /// Kind.
    pub kind: Kind,
    /// Whose promise broke.
    pub broken_by: BrokenBy,
    /// The client it happened to, or who did it (for a server's fault: the observer).
    pub client: ClientId,
    /// Its process life.
    pub incarnation: IncarnationId,
    /// The key, where it is about one.
    pub key: KeyId,
    /// The revisions that matter, ascending.
    pub revisions: Vec<Revision>,
    /// One sentence: who saw or did what, and why it cannot be (or is unsafe).
    pub summary: String,
    /// The proof.
    pub certificate: Certificate,
    /// Every occurrence, the first included.
    pub occurrences: Vec<Certificate>,
    /// The finding that explains this one.
    pub consequence_of: Option<String>,
    /// The faults of the server that it shows, where the order tells them apart; numbers of this history only.
    pub faults: Vec<u32>,
    /// A published bug that leaves the same traces: a hint, no part of the proof.
    pub resembles: Option<&'static super::Published>,
    /// What would have prevented it (filled by the counterfactual stage).
    pub prevention: Vec<Prevention>,
    /// What evidence would refute it.
    pub refuted_by: String,
    /// What it leads to, in one sentence (for the reader).
    pub consequence: String,
}

/// The verdict of a rule, a client or a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every obligation that was met is kept.
    Holds,
    /// A violation was proved.
    Violated,
    /// Not decided; why.
    Unknown(String),
    /// No obligation was met; why.
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

    /// The reason, empty where the word says it all.
    pub fn reason(&self) -> &str {
        match self {
            Verdict::Holds | Verdict::Violated => "",
            Verdict::Unknown(reason) | Verdict::NotChecked(reason) => reason,
        }
    }
}

/// What a rule came to over one history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReport {
    /// Slug.
    pub rule: &'static str,
    /// Verdict.
    pub verdict: Verdict,
    /// How many obligations were checked.
    pub checked: u64,
    /// Why something is undecided that no finding is about.
    pub open: Option<String>,
    /// Obligations that were met and could not be decided, by reason. They stand beside the verdict in every output.
    pub undecided: Vec<Undecided>,
}

/// Obligations of one rule that the evidence leaves open for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// Why.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// What one client's observations came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientReport {
    /// The client.
    pub client: ClientId,
    /// Its process lives.
    pub incarnations: Vec<IncarnationId>,
    /// As how many processes they are judged: what lives of one process saw is held together.
    pub processes: usize,
    /// Is what this client saw consistent with etcd's total order?
    pub verdict: Verdict,
    /// Per rule that met an obligation of this client or found something about it: (slug, verdict).
    pub guarantees: Vec<(&'static str, Verdict)>,
}

/// What is known completely of one domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageReport {
    /// Name of the domain.
    pub domain: String,
    /// The resource or scope, as people write it; empty for the whole domain.
    pub scope: String,
    /// Known without a hole: after this revision.
    pub after: Revision,
    /// Through this one.
    pub through: Revision,
    /// What shows it: "etcd witness", "watch".
    pub shown_by: String,
}

/// Everything that was decided about one history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Verdict over all rules.
    pub verdict: Verdict,
    /// Per client, in the order of names.
    pub clients: Vec<ClientReport>,
    /// Per rule, in the order of `RULES`.
    pub rules: Vec<RuleReport>,
    /// Findings: violations, then suspects, then hazards; causes before consequences.
    pub findings: Vec<Finding>,
    /// What is known without a hole.
    pub coverage: Vec<CoverageReport>,
    /// What was not checked and why, one sentence each.
    pub unchecked: Vec<String>,
    /// Records that turned out to be unusable when a rule looked at them.
    pub problems: Vec<crate::ingest::Problem>,
    /// Proofs of the verdict that can be decided again.
    pub proofs: Vec<super::Proof>,
}

impl RuleReport {
    /// How many obligations were met and could not be decided.
    pub fn open_obligations(&self) -> u64 {
        self.undecided.iter().map(|open| open.count).sum()
    }
}
