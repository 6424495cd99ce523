//! The expected result of each scenario, by the evidence in view.

/// The verdict of a scenario, and its violations and suspects as `KIND RULE by WHOM: CLIENT`.
#[derive(Debug)]
pub struct Expected {
    /// `INCIDENT/VARIANT`.
    pub scenario: &'static str,
    /// The evidence: `all`, the audit `logs` alone, or the `captures` alone.
    pub view: &'static str,
    pub verdict: &'static str,
    pub findings: &'static [&'static str],
}

const fn violated(scenario: &'static str, view: &'static str, findings: &'static [&'static str]) -> Expected {
    Expected { scenario, view, verdict: "violated", findings }
}

const fn holds(scenario: &'static str, view: &'static str) -> Expected {
    Expected { scenario, view, verdict: "holds", findings: &[] }
}

const WENT_BACK: &[&str] = &[
    "violation monotonic-reads by nobody: system:node:node-1",
    "violation read-your-writes by nobody: system:node:node-1",
];

const WROTE_TO_THE_SUCCESSOR: &[&str] = &[
    "violation monotonic-reads by nobody: system:node:node-1",
    "violation name-reuse by client: system:node:node-1",
    "violation read-your-writes by nobody: system:node:node-1",
];

const TOOK_THE_PREDECESSORS: &[&str] = &["violation name-reuse by client: system:serviceaccount:kube-system:azure-cns"];

/// No capture names the reads and writes of one reconciler run, so this is a suspect.
const FREED_TOO_EARLY: &[&str] = &[
    "suspect intermediate-state by client: system:serviceaccount:kube-system:ip-reconciler",
    "violation double-allocation by client: system:serviceaccount:kube-system:multus",
];

/// The servers' logs have no watch of these resources. A policy may omit watches, so the reconciler's knowledge is
/// open and `intermediate-state` is undecided.
const FREED_TOO_EARLY_BY_LOGS: &[&str] =
    &["violation double-allocation by client: system:serviceaccount:kube-system:multus"];

const RESUMED_BACKWARDS: &[&str] = &[
    "violation monotonic-reads by nobody: system:serviceaccount:kube-system:endpoint-controller",
    "violation resume-backwards by client: system:serviceaccount:kube-system:endpoint-controller",
    "violation stale-premise by nobody: system:serviceaccount:kube-system:endpoint-controller",
];

/// All expected results.
pub const EXPECTED: &[Expected] = &[
    violated("kubelet-restart/buggy", "all", WROTE_TO_THE_SUCCESSOR),
    violated("kubelet-restart/buggy", "captures", WROTE_TO_THE_SUCCESSOR),
    violated("kubelet-restart/buggy", "logs", WENT_BACK),
    violated("kubelet-restart/buggy-request", "all", WROTE_TO_THE_SUCCESSOR),
    violated("kubelet-restart/buggy-metadata", "all", WROTE_TO_THE_SUCCESSOR),
    violated("kubelet-restart/uid-in-the-patch", "all", WENT_BACK),
    violated("kubelet-restart/uid-in-the-patch", "captures", WENT_BACK),
    violated("kubelet-restart/uid-in-the-patch", "logs", WENT_BACK),
    violated("kubelet-restart/live-get", "all", WENT_BACK),
    violated("kubelet-restart/live-get", "captures", WENT_BACK),
    violated("kubelet-restart/live-get", "logs", WENT_BACK),
    violated("kubelet-restart/compare-later-lists", "all", WENT_BACK),
    violated("kubelet-restart/compare-later-lists", "captures", WENT_BACK),
    holds("kubelet-restart/quorum-lists", "all"),
    holds("kubelet-restart/quorum-lists", "captures"),
    holds("kubelet-restart/quorum-lists", "logs"),
    holds("kubelet-restart/quorum-lists-request", "all"),
    holds("kubelet-restart/quorum-lists-request", "logs"),
    holds("kubelet-restart/quorum-lists-metadata", "all"),
    holds("kubelet-restart/quorum-lists-metadata", "logs"),
    holds("kubelet-restart/not-older-than", "all"),
    holds("kubelet-restart/not-older-than", "captures"),
    holds("kubelet-restart/not-older-than", "logs"),
    holds("kubelet-restart/watch-list", "all"),
    holds("kubelet-restart/watch-list", "captures"),
    holds("kubelet-restart/watch-list", "logs"),
    holds("kubelet-restart/lucky", "all"),
    holds("kubelet-restart/lucky", "captures"),
    holds("kubelet-restart/lucky", "logs"),
    violated("node-name-reuse/buggy-fresh", "all", TOOK_THE_PREDECESSORS),
    violated("node-name-reuse/buggy-fresh", "captures", TOOK_THE_PREDECESSORS),
    // With the logs alone the agent may have watched: a policy may omit watches.
    holds("node-name-reuse/buggy-fresh", "logs"),
    violated("node-name-reuse/buggy-stale", "all", TOOK_THE_PREDECESSORS),
    violated("node-name-reuse/buggy-stale", "captures", TOOK_THE_PREDECESSORS),
    holds("node-name-reuse/buggy-stale", "logs"),
    holds("node-name-reuse/owner-check", "all"),
    holds("node-name-reuse/owner-check", "captures"),
    holds("node-name-reuse/owner-check", "logs"),
    holds("node-name-reuse/fail-on-foreign-address", "all"),
    holds("node-name-reuse/fail-on-foreign-address", "captures"),
    holds("node-name-reuse/uid-in-the-patch", "all"),
    holds("node-name-reuse/uid-in-the-patch", "captures"),
    holds("node-name-reuse/uid-in-the-patch", "logs"),
    violated("ip-reconciler/buggy", "all", FREED_TOO_EARLY),
    violated("ip-reconciler/buggy", "captures", FREED_TOO_EARLY),
    violated("ip-reconciler/buggy", "logs", FREED_TOO_EARLY_BY_LOGS),
    violated("ip-reconciler/read-again", "all", FREED_TOO_EARLY),
    violated("ip-reconciler/read-again", "captures", FREED_TOO_EARLY),
    violated("ip-reconciler/read-again", "logs", FREED_TOO_EARLY_BY_LOGS),
    holds("ip-reconciler/skip-pending", "all"),
    holds("ip-reconciler/skip-pending", "captures"),
    holds("ip-reconciler/skip-pending", "logs"),
    violated("reflector-resume/goes-back", "all", RESUMED_BACKWARDS),
    violated("reflector-resume/goes-back", "captures", RESUMED_BACKWARDS),
    violated("reflector-resume/goes-back-to-the-list", "all", RESUMED_BACKWARDS),
    violated("reflector-resume/goes-back-to-the-list", "captures", RESUMED_BACKWARDS),
    holds("reflector-resume/server-fix", "all"),
    holds("reflector-resume/server-fix", "captures"),
    holds("reflector-resume/server-fix", "logs"),
    holds("writes/requestresponse", "all"),
    holds("writes/requestresponse", "captures"),
    holds("writes/requestresponse", "logs"),
    holds("writes/request", "all"),
    holds("writes/request", "captures"),
    holds("writes/request", "logs"),
    holds("writes/metadata", "all"),
    holds("writes/metadata", "captures"),
    holds("writes/metadata", "logs"),
    holds("namespaces/requestresponse", "all"),
    holds("namespaces/requestresponse", "captures"),
    holds("namespaces/requestresponse", "logs"),
    holds("namespaces/request", "all"),
    holds("namespaces/request", "captures"),
    holds("namespaces/request", "logs"),
    holds("namespaces/metadata", "all"),
    holds("namespaces/metadata", "captures"),
    holds("namespaces/metadata", "logs"),
    holds("healthy/restart", "all"),
    holds("healthy/restart", "captures"),
    holds("healthy/restart", "logs"),
];
