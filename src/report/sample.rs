//! Small judged histories for tests of reports: a kubelet that restarts against a stale server.

use super::{Part, Report};
use crate::check::{
    BrokenBy, Certificate, ClientReport, CoverageReport, Effect, Fact, Finding, Judgement, Kind, Prevention, Proof,
    RuleReport, Undecided, Verdict,
};
use crate::history::Nature;
use crate::history::{
    AuditId, ClientId, ClockId, DomainId, History, IdentifiedBy, Incarnation, IncarnationId, Key, KeyId, OperationId,
    Placement, Resource, ResourceId, Revision, ServerId,
};
use crate::ingest::{FileId, FileSummary, Position, Problem, Time};
use crate::order::etcd::Writer;
use crate::search::Claim;

/// A history with its judgement.
pub(crate) struct Sample {
    pub(crate) history: History,
    pub(crate) judgement: Judgement,
}

impl Sample {
    /// A report with this one history.
    pub(crate) fn report(&self) -> Report<'_> {
        let part =
            Part { name: "evidence", nature: Nature::Kubernetes, history: &self.history, judgement: &self.judgement };
        Report { histories: vec![part] }
    }
}

/// A judgement with only this verdict.
pub(crate) fn empty_judgement(verdict: Verdict) -> Judgement {
    Judgement {
        problems: Vec::new(),
        verdict,
        clients: Vec::new(),
        rules: Vec::new(),
        findings: Vec::new(),
        coverage: Vec::new(),
        unchecked: Vec::new(),
        proofs: Vec::new(),
    }
}

/// 2026-11-20T19:54:09Z plus some microseconds.
pub(crate) fn at(microseconds: i64) -> Time {
    Time(1_795_204_449 * 1_000_000_000 + microseconds * 1_000)
}

/// The history: two servers and three clients, one of which has two incarnations. `decorate` changes every name, for tests of
/// long or hostile names.
pub(crate) fn history(decorate: fn(&str) -> String) -> History {
    let mut history = History::default();
    let mut name = |text: &str| history.names.intern(&decorate(text));
    let (node, controller, scheduler) = (
        name("system:node:node-1"),
        name("system:serviceaccount:kube-system:statefulset-controller"),
        name("system:kube-scheduler"),
    );
    let servers = vec![name("A"), name("B")];
    let clocks = vec![name("lab")];
    let (namespace, pod) = (name("default"), name("pod-0"));
    name("3ce75cab-a307-4220-b99c-a48dd30b3dbd");
    let (group, plural) = (history.names.intern(""), history.names.intern("pods"));
    history.clients = vec![node, controller, scheduler];
    history.servers = servers;
    history.clocks = clocks;
    history.domains = vec!["default".to_owned()];
    history.resources = vec![Resource { group, plural }];
    history.placements = vec![Placement { domain: DomainId(0), overridable: true }];
    history.keys = vec![Key { resource: ResourceId(0), namespace, name: pod }];
    for (client, label, program) in [
        (0, "kubelet-1#1", "kubelet"),
        (0, "kubelet-1#2", "kubelet"),
        (1, "sts-controller#1", "kube-controller-manager"),
        (2, "scheduler#1", "kube-scheduler"),
    ] {
        history.incarnations.push(Incarnation {
            client: ClientId(client),
            label: decorate(label),
            identified_by: IdentifiedBy::CaptureLabel,
            place: Some(decorate("node node-1")),
            program: program.to_owned(),
            span: (at(0), at(900_000)),
            clock: ClockId(0),
            served: Vec::new(),
        });
    }
    for (path, format, lines, problems) in [
        ("audit-a.log", Some("audit"), 1_204, 0),
        ("captures/kubelet-1.jsonl", Some("capture"), 48, 7),
        ("audit-policy.yaml", None, 0, 0),
    ] {
        history.files.push(FileSummary {
            path: decorate(path),
            format,
            ignored: format.is_none().then(|| "YAML without a document that is evidence".to_owned()),
            lines,
            records: lines - problems,
            problems,
            unknown: 0,
            export: Default::default(),
            bytes: lines * 700,
            has_grown: false,
        });
    }
    for line in 41..48 {
        history.problems.push(Problem {
            file: Some(FileId(1)),
            path: decorate("captures/kubelet-1.jsonl"),
            line,
            expected: "a capture line".to_owned(),
            found: "the line ends inside a string".to_owned(),
        });
    }
    history
}

/// A fact of the first client's `life` about the pod.
pub(crate) fn fact(life: u32, line: u32, microseconds: i64, revision: u64, says: &str) -> Fact {
    Fact {
        position: Position { file: FileId(1), line, offset: u64::from(line) * 700 },
        says: says.to_owned(),
        revision: Revision::from(revision),
        key: KeyId(0),
        uid: crate::history::Symbol(8),
        time: at(microseconds),
        clock: ClockId(0),
        incarnation: IncarnationId(life),
        server: ServerId(life.min(1)),
        audit_id: AuditId::Uuid(0xf041_e522_a2b9_47f9, 0x91fb_8113_a295_d12e),
        operation: OperationId::NONE,
    }
}

/// A finding about the second incarnation. Its only fact repeats the summary.
pub(crate) fn finding(id: &str, rule: &'static str, kind: Kind, broken_by: BrokenBy, summary: &str) -> Finding {
    let certificate = Certificate {
        facts: vec![fact(1, 40, 1_057_471, 45, "kubelet patched the status of pods default/pod-0")],
        reason: "The write names a uid that is not the object's.".to_owned(),
    };
    Finding {
        id: id.to_owned(),
        rule,
        kind,
        broken_by,
        client: ClientId(0),
        incarnation: IncarnationId(1),
        key: KeyId(0),
        revisions: vec![Revision::from(37), Revision::from(39)],
        summary: summary.to_owned(),
        occurrences: vec![certificate.clone()],
        certificate,
        consequence_of: None,
        faults: Vec::new(),
        resembles: None,
        prevention: Vec::new(),
        refuted_by: String::new(),
        consequence: String::new(),
    }
}

/// The restarted kubelet: a violation with a consequence, a suspect and a hazard. Every field is filled.
pub(crate) fn restart(decorate: fn(&str) -> String) -> Sample {
    let mut travel = finding(
        "3f6c2a9e51d07b84",
        "monotonic-reads",
        Kind::Violation,
        BrokenBy::Nobody,
        "kubelet on node-1 had seen pods default/pod-0 deleted at revision 39, and after its restart got a list of \
         revision 37 in which the pod is alive.",
    );
    travel.certificate = Certificate {
        facts: vec![
            fact(0, 33, 301_894, 39, "saw pods default/pod-0 deleted"),
            fact(1, 36, 1_035_566, 37, "got a list with pods default/pod-0 in it"),
        ],
        reason:
            "A process that has seen revision 39 went back to revision 37: no single order of writes has both in this \
                 order."
                .to_owned(),
    };
    let again = Certificate {
        facts: vec![
            fact(0, 33, 301_894, 39, "saw pods default/pod-0 deleted"),
            fact(1, 38, 1_055_000, 37, "got a list"),
        ],
        reason: travel.certificate.reason.clone(),
    };
    travel.occurrences = vec![travel.certificate.clone(), again.clone(), again];
    travel.prevention = vec![
        Prevention {
            request: "LIST pods without resourceVersion".to_owned(),
            effect: Effect::Impossible,
            smallest_revision: Revision::from(39),
            because: "the delete was complete before the list began".to_owned(),
        },
        Prevention {
            request: "LIST pods resourceVersion=39 resourceVersionMatch=NotOlderThan".to_owned(),
            effect: Effect::Narrowed,
            smallest_revision: Revision::NONE,
            because: String::new(),
        },
    ];
    travel.resembles = crate::check::PUBLISHED.last().copied();
    travel.refuted_by = "evidence that the two incarnations ran in different places".to_owned();
    travel.consequence = "The kubelet starts the containers of a pod that another node may run by now.".to_owned();
    let mut reuse = finding(
        "77aa01b2c3d4e5f6",
        "name-reuse",
        Kind::Violation,
        BrokenBy::Client,
        "The status of the old pod was written onto the new pod of the same name.",
    );
    reuse.consequence_of = Some(travel.id.clone());
    let mut suspect = finding(
        "aaaa01b2c3d4e5f6",
        "read-your-writes",
        Kind::Suspect,
        BrokenBy::Server,
        "An answer may lack the client's own write.",
    );
    suspect.refuted_by = "the clocks of the two servers".to_owned();
    let mut hazard = finding(
        "bbbb01b2c3d4e5f6",
        "unsafe-first-read",
        Kind::Hazard,
        BrokenBy::Client,
        "The first list of an incarnation asked for any version.",
    );
    hazard.prevention = vec![Prevention {
        request: "LIST pods without resourceVersion".to_owned(),
        effect: Effect::Impossible,
        smallest_revision: Revision::NONE,
        because: "a consistent read cannot be older than what the last life saw".to_owned(),
    }];
    let client = |id: u32, verdict: Verdict, guarantees: Vec<(&'static str, Verdict)>| ClientReport {
        client: ClientId(id),
        incarnations: if id == 0 { vec![IncarnationId(0), IncarnationId(1)] } else { vec![IncarnationId(id + 1)] },
        processes: 1,
        verdict,
        guarantees,
    };
    let rule = |rule, verdict, checked| RuleReport { rule, verdict, checked, open: None, undecided: Vec::new() };
    let unknown = || Verdict::Unknown("no clock bounds the two servers".to_owned());
    let judgement = Judgement {
        problems: Vec::new(),
        verdict: Verdict::Violated,
        clients: vec![
            client(2, Verdict::Holds, vec![("monotonic-reads", Verdict::Holds)]),
            client(0, Verdict::Violated, vec![("monotonic-reads", Verdict::Violated), ("read-your-writes", unknown())]),
            client(1, Verdict::NotChecked("it only wrote".to_owned()), Vec::new()),
        ],
        rules: vec![
            rule("monotonic-reads", Verdict::Violated, 812),
            rule("read-your-writes", unknown(), 0),
            RuleReport {
                undecided: vec![Undecided { reason: "nothing shows the labels of a change".to_owned(), count: 3 }],
                ..rule("watch-gap", Verdict::Holds, 1_204)
            },
            rule("below-minimum", Verdict::Holds, 17),
            rule("watch-prev-value", Verdict::NotChecked("needs etcd histories".to_owned()), 0),
            rule("watch-split", Verdict::NotChecked("needs etcd histories".to_owned()), 0),
        ],
        findings: vec![travel, reuse, suspect, hazard],
        coverage: vec![CoverageReport {
            domain: "default".to_owned(),
            scope: "pods".to_owned(),
            after: Revision::from(24),
            through: Revision::from(45),
            shown_by: "watch".to_owned(),
        }],
        unchecked: vec!["Selectors on labels: no body of 12 versions was recorded.".to_owned()],
        proofs: vec![
            Proof::Core {
                model: "register",
                claims: vec![Claim { call: 7, answer: true, invoked: true, returned: false }],
                minimal: true,
            },
            Proof::Etcd {
                order: vec![Writer::Operation(3), Writer::Expiry(7)],
                removed: vec![(9, vec!["key".to_owned()])],
            },
        ],
    };
    Sample { history: history(decorate), judgement }
}
