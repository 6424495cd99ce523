//! Clients, their incarnations, and the evidence that separates incarnations.

use super::ids::{ClientId, ClockId, Symbol};
use crate::ingest::Time;
use serde::{Deserialize, Serialize};

/// What the evidence says about the process behind a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Process {
    /// The user (the impersonated one when present), verbatim.
    pub user: Symbol,
    /// The incarnation label of a capture.
    pub label: Symbol,
    /// Uid of the pod whose token was used.
    pub pod_uid: Symbol,
    /// Name of that pod.
    pub pod_name: Symbol,
    /// Node of that pod.
    pub node_name: Symbol,
    /// The TCP peer.
    pub address: Symbol,
    /// The user agent.
    pub agent: Symbol,
    /// The clock of the recorder (captures).
    pub clock: Symbol,
}

/// The evidence that separates one incarnation from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IdentifiedBy {
    /// The recorder named the incarnation.
    CaptureLabel,
    /// The uid of the pod in the token.
    PodUid,
    /// User, source address and agent: weaker, since a restart leaves them as they are.
    Address,
    /// A command-line tool: each request may be a process of its own.
    CommandLine,
    /// A saved file without a declared client.
    File,
    /// The number or name of a process in an operation log.
    Process,
    /// The directory of a client in a report of etcd's robustness suite.
    Directory,
    /// The loopback client of an API server, in a log of perhaps several servers: all have the same user, address and agent.
    Loopback,
}

impl IdentifiedBy {
    /// One sentence for reports.
    pub fn sentence(self) -> &'static str {
        match self {
            IdentifiedBy::CaptureLabel => "the capture names the incarnation",
            IdentifiedBy::PodUid => "the token's pod uid identifies the incarnation",
            IdentifiedBy::Address => "same user, source address and agent; a restart in between would leave no trace",
            IdentifiedBy::CommandLine => "a command-line tool: each request may be a process of its own",
            IdentifiedBy::Process => "the operation log names the process",
            IdentifiedBy::Directory => "the report has a directory for each client",
            IdentifiedBy::Loopback => {
                "each API server has its own loopback client, and the log may hold several servers"
            }
            IdentifiedBy::File => "a saved file: the evidence does not name the process that read it",
        }
    }
}

/// One process life of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Incarnation {
    /// The client that ran it.
    pub client: ClientId,
    /// The label in reports: of a capture, a pod uid, an address.
    pub label: String,
    /// The evidence that separates it from others.
    pub identified_by: IdentifiedBy,
    /// The place that survives a restart: a node, a pod's controller and ordinal, a recorder. None without evidence.
    pub place: Option<String>,
    /// The agent's program name (the part before the first `/`).
    pub program: String,
    /// First known invoke and last known return, on `clock`.
    pub span: (Time, Time),
    /// The clock of the first request.
    pub clock: ClockId,
    /// The identities under which servers recorded requests of this process, if the client recorded them too.
    pub served: Vec<Served>,
}

impl Incarnation {
    /// Whether its requests came from the server's own host: from a loopback address, which belongs to each host alone.
    pub fn is_local(&self) -> bool {
        let address = self.label.rsplit_once(" from ").map(|(_, rest)| rest.split(' ').next().unwrap_or(rest));
        let address = address.and_then(|text| text.parse::<std::net::IpAddr>().ok());
        self.identified_by == IdentifiedBy::Address && address.is_some_and(|address| address.is_loopback())
    }
}

/// The identity of an incarnation in a server's records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// See [`Incarnation::identified_by`].
    pub identified_by: IdentifiedBy,
    /// See [`Incarnation::label`].
    pub label: String,
    /// See [`Incarnation::place`].
    pub place: Option<String>,
    /// See [`Incarnation::program`].
    pub program: String,
}

/// The program in a user agent: `kubelet` of `kubelet/v1.34.13 (linux/amd64)`.
pub fn program(agent: &str) -> &str {
    agent.split(['/', ' ']).next().unwrap_or("")
}

/// Programs that run once per invocation, each time as a new process.
const COMMAND_LINE: [&str; 19] = [
    "ansible",
    "argocd",
    "cmctl",
    "curl",
    "etcdctl",
    "flux",
    "hashicorp",
    "helm",
    "istioctl",
    "k9s",
    "kubectl",
    "kustomize",
    "oc",
    "openapi-generator",
    "pulumi",
    "retrograde",
    "terraform",
    "velero",
    "wget",
];

/// Whether each invocation of a program is a new process. Covers plugins (`kubectl-...`) and Windows builds (`.exe`).
pub fn is_command_line(program: &str) -> bool {
    let name = program.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    name.starts_with("kubectl-") || COMMAND_LINE.contains(&name)
}

/// The place of a pod that survives its restart: its name without random parts.
///
/// A StatefulSet's pod keeps its ordinal (`web-0`). A DaemonSet has one pod on a node, so the node is the place. A Deployment's
/// pod has two random parts; the rest names only the controller, which has several replicas, so it is no place.
pub fn pod_place(pod_name: &str, node_name: &str, program: &str) -> Option<String> {
    let ordinal =
        pod_name.rsplit_once('-').is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    if ordinal {
        return Some(format!("pod {pod_name}"));
    }
    (!node_name.is_empty()).then(|| format!("{program} on node {node_name}"))
}

/// An incarnation label without the count at its end: `boot` of `boot-2`, `kubelet-1` of `kubelet-1#2`.
///
/// The separator before the count is `#`, or the last of `-`, `.`, `_`, `/`.
pub fn label_stem(label: &str) -> &str {
    match label.rfind(['#', '-', '.', '_', '/']) {
        Some(at) if at + 1 < label.len() && label[at + 1..].bytes().all(|b| b.is_ascii_digit()) => &label[..at],
        _ => label,
    }
}

/// The place in an incarnation label: its stem. `None` for a label that is only a number, a UUID or a date, which separates
/// incarnations but names no place.
pub fn label_place(label: &str) -> Option<&str> {
    let is_count = |text: &str| {
        let mark = |b: u8| {
            b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.' | b':' | b'+' | b'#' | b'/' | b' ' | b'T' | b'Z')
        };
        text.bytes().all(mark)
    };
    let is_uuid = |text: &str| {
        let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
        digits == 32 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
    };
    let stem = label_stem(label);
    let says_nothing = |text: &str| is_count(text) || is_uuid(text);
    (!says_nothing(label) && !says_nothing(stem)).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_known_however_they_write_themselves() {
        for agent in
            ["kubectl/v1.34 (linux/amd64)", "kubectl.exe/v1.34", "Helm/3.14.0", "kubectl-argo-rollouts/v1", "Wget/1.21"]
        {
            assert!(is_command_line(program(agent)), "{agent}");
        }
        for agent in ["kubelet/v1.34", "kube-controller-manager/v1.34", "kubectlish/v1", "velero-server/v1", ""] {
            assert!(!is_command_line(program(agent)), "{agent}");
        }
    }

    #[test]
    fn places_survive_a_restart_and_never_join_replicas() {
        assert_eq!(pod_place("web-0", "", "x").as_deref(), Some("pod web-0"));
        assert_eq!(pod_place("azure-cns-x7k2p", "node-1", "azure-cns").as_deref(), Some("azure-cns on node node-1"));
        assert_eq!(pod_place("web-7d9c5b6f4-x7k2p", "", "web"), None);
        assert_eq!(label_stem("kubelet-1#2"), "kubelet-1");
        assert_eq!(label_stem("boot-2"), "boot");
        assert_eq!(label_stem("ip-reconciler"), "ip-reconciler");
        for label in
            ["1", "#2", "2026-03-02", "2026-03-02T09:00:00.5Z", "3f2b1c9e-5d4a-4b6c-8e7f-0123456789ab", "1700000000"]
        {
            assert_eq!(label_place(label), None, "{label}");
        }
        assert_eq!(label_place("kubelet-1#2"), Some("kubelet-1"));
        assert_eq!(label_place("before-upgrade"), Some("before-upgrade"));
        assert_ne!(label_stem("whereabouts-node-1#1"), label_stem("whereabouts-node-2#1"));
    }
}
