//! Resources, their domains, and their keys in etcd.

use super::ids::{DomainId, ResourceId, Symbol};
use serde::{Deserialize, Serialize};

/// A resource: API group (empty for the core group) and plural name. Cohabiting groups share one, see `canonical_group`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resource {
    /// API group.
    pub group: Symbol,
    /// Plural name.
    pub plural: Symbol,
}

/// The key of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The resource.
    pub resource: ResourceId,
    /// Namespace; the empty text for cluster-scoped objects.
    pub namespace: Symbol,
    /// The object's name.
    pub name: Symbol,
}

/// The source of a resource's revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The domain.
    pub domain: DomainId,
    /// Whether the cluster may keep it in an etcd of its own. `--etcd-servers-overrides` accepts built-in resources only
    /// (kube-apiserver reference), so two custom resources always share one.
    pub overridable: bool,
}

/// The group that holds an object which several groups serve.
///
/// `events` and `events.k8s.io` share keys; `extensions` shared them with `apps` and `networking.k8s.io` (cohabitating resources
/// in kubernetes `pkg/kubeapiserver/default_storage_factory_builder.go`).
pub fn canonical_group<'a>(group: &'a str, plural: &str) -> &'a str {
    match (group, plural) {
        ("events.k8s.io", "events") => "",
        ("extensions", "ingresses" | "networkpolicies") => "networking.k8s.io",
        ("extensions", "daemonsets" | "deployments" | "replicasets") => "apps",
        ("extensions", "podsecuritypolicies") => "policy",
        _ => group,
    }
}

/// The default domain of a resource. `events` has an etcd of its own in the documented set-up, and every aggregated group has its
/// own store.
pub fn default_domain<'a>(group: &'a str, plural: &str) -> &'a str {
    if group.is_empty() && plural == "events" {
        return "events";
    }
    if is_aggregated(group) { group } else { "default" }
}

/// Known groups of extension API servers, which have a store of their own or none.
pub fn is_aggregated(group: &str) -> bool {
    group.ends_with(".metrics.k8s.io")
        || matches!(
            group,
            "metrics.k8s.io"
                | "wardle.example.com"
                | "packages.operators.coreos.com"
                | "data.packaging.carvel.dev"
                | "projectcalico.org"
                | "search.karmada.io"
                | "subresources.kubevirt.io"
                | "upload.cdi.kubevirt.io"
                | "porch.kpt.dev"
        )
}

/// Whether kube-apiserver serves the group from built-in types: a group without a dot, or below `k8s.io`.
///
/// Some custom resources are below `k8s.io` too (gateway.networking.k8s.io). Counting them as built-in weakens findings but makes
/// none false.
pub fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// Parses an etcd key: `/registry/[GROUP/]RESOURCE[/NAMESPACE]/NAME`. Returns group, plural, namespace (empty for none) and name.
/// `None` for keys that hold no object (allocators, master leases, `compact_rev_key`).
///
/// Sources: the storage prefixes in kubernetes `pkg/registry/**/storage`, with the exceptions `minions`, `services/specs` and
/// `services/endpoints`; apiextensions-apiserver, which writes custom resources as `GROUP/PLURAL/...`.
pub fn parse_etcd_key(key: &str) -> Option<(&str, &str, &str, &str)> {
    let rest = key.strip_prefix('/')?;
    // The prefix (--etcd-prefix) is configurable; every documented set-up uses one segment.
    let (_, rest) = rest.split_once('/')?;
    let parts: Vec<&str> = rest.split('/').collect();
    match parts.as_slice() {
        ["minions", name] => Some(("", "nodes", "", name)),
        ["services", "specs", namespace, name] => Some(("", "services", namespace, name)),
        ["services", "endpoints", namespace, name] => Some(("", "endpoints", namespace, name)),
        ["ranges" | "masterleases" | "peerserverleases" | "health", ..] => None,
        [group, plural, name] if group.contains('.') => Some((canonical_group(group, plural), plural, "", name)),
        [group, plural, namespace, name] if group.contains('.') => {
            Some((canonical_group(group, plural), plural, namespace, name))
        }
        [plural, name] => Some((built_in_group(plural), plural, "", name)),
        [plural, namespace, name] => Some((built_in_group(plural), plural, namespace, name)),
        _ => None,
    }
}

/// The API group of a built-in resource, which its etcd key omits.
fn built_in_group(plural: &str) -> &'static str {
    match plural {
        "deployments" | "daemonsets" | "replicasets" | "statefulsets" | "controllerrevisions" => "apps",
        "jobs" | "cronjobs" => "batch",
        "leases" => "coordination.k8s.io",
        "endpointslices" => "discovery.k8s.io",
        "ingresses" | "ingress" | "networkpolicies" | "ingressclasses" | "ipaddresses" | "servicecidrs" => {
            "networking.k8s.io"
        }
        "poddisruptionbudgets" | "podsecuritypolicies" => "policy",
        "roles" | "rolebindings" | "clusterroles" | "clusterrolebindings" => "rbac.authorization.k8s.io",
        "storageclasses" | "volumeattachments" | "csinodes" | "csidrivers" | "csistoragecapacities" => "storage.k8s.io",
        "horizontalpodautoscalers" => "autoscaling",
        "priorityclasses" => "scheduling.k8s.io",
        "mutatingwebhookconfigurations"
        | "validatingwebhookconfigurations"
        | "validatingadmissionpolicies"
        | "validatingadmissionpolicybindings" => "admissionregistration.k8s.io",
        "certificatesigningrequests" => "certificates.k8s.io",
        "flowschemas" | "prioritylevelconfigurations" => "flowcontrol.apiserver.k8s.io",
        "runtimeclasses" => "node.k8s.io",
        "resourceclaims" | "resourceclaimtemplates" | "resourceslices" | "deviceclasses" => "resource.k8s.io",
        _ => "",
    }
}

/// The plural of a kind, for evidence that has only the kind (a list file, a raw watch stream).
///
/// Forms the English plural like kubectl and controller-gen. `Endpoints` is its own plural.
pub fn plural_of_kind(kind: &str) -> String {
    let lower = kind.to_ascii_lowercase();
    if lower == "endpoints" {
        return lower;
    }
    if lower.ends_with('s') || lower.ends_with('x') || lower.ends_with("ch") || lower.ends_with("sh") {
        return lower + "es";
    }
    match lower.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => lower + "s",
    }
}

/// The group of an `apiVersion`.
pub fn group_of_api_version(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_keys_that_api_servers_write() {
        for (key, expected) in [
            ("/registry/pods/default/web-0", Some(("", "pods", "default", "web-0"))),
            ("/registry/minions/node-1", Some(("", "nodes", "", "node-1"))),
            ("/registry/services/endpoints/default/x", Some(("", "endpoints", "default", "x"))),
            ("/registry/deployments/default/x", Some(("apps", "deployments", "default", "x"))),
            (
                "/registry/acn.azure.com/nodenetworkconfigs/kube-system/node-1",
                Some(("acn.azure.com", "nodenetworkconfigs", "kube-system", "node-1")),
            ),
            ("/registry/core.lab.example.com/nodes/node-1", Some(("core.lab.example.com", "nodes", "", "node-1"))),
            ("/registry/ranges/serviceips", None),
            ("compact_rev_key", None),
            ("", None),
        ] {
            assert_eq!(parse_etcd_key(key), expected, "{key}");
        }
    }

    #[test]
    fn makes_the_plurals_that_the_api_uses() {
        for (kind, plural) in [
            ("Pod", "pods"),
            ("Endpoints", "endpoints"),
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("Gateway", "gateways"),
            ("OverlappingRangeIPReservation", "overlappingrangeipreservations"),
        ] {
            assert_eq!(plural_of_kind(kind), plural);
        }
    }
}
