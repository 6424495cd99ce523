//! Resources, the domains that they live in, and their keys in etcd.

use super::ids::{DomainId, ResourceId, Symbol};
use serde::{Deserialize, Serialize};

/// A resource: API group (empty for the core group) and plural name, after cohabiting groups were made one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Resource {
    /// API group.
    pub group: Symbol,
    /// Plural name.
    pub plural: Symbol,
}

/// A key of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Resource.
    pub resource: ResourceId,
    /// Namespace; the empty text for cluster-scoped objects.
    pub namespace: Symbol,
    /// Name.
    pub name: Symbol,
}

/// Where a resource's revisions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Its domain.
    pub domain: DomainId,
    /// Whether the cluster may keep it in an etcd of its own: `--etcd-servers-overrides` takes built-in resources only
    /// (kube-apiserver reference), so two custom resources never differ.
    pub overridable: bool,
}

/// The group under which one stored object is kept when several groups serve it.
///
/// `events` and `events.k8s.io` share keys, and so did `extensions` with `apps` and `networking.k8s.io`
/// (kubernetes `pkg/kubeapiserver/default_storage_factory_builder.go`, cohabitating resources).
pub fn canonical_group<'a>(group: &'a str, plural: &str) -> &'a str {
    match (group, plural) {
        ("events.k8s.io", "events") => "",
        ("extensions", "ingresses" | "networkpolicies") => "networking.k8s.io",
        ("extensions", "daemonsets" | "deployments" | "replicasets") => "apps",
        ("extensions", "podsecuritypolicies") => "policy",
        _ => group,
    }
}

/// The name of a resource's default domain: `events` has an etcd of its own in the documented set-up, and every aggregated
/// group its own store.
pub fn default_domain<'a>(group: &'a str, plural: &str) -> &'a str {
    if group.is_empty() && plural == "events" {
        return "events";
    }
    if is_aggregated(group) { group } else { "default" }
}

/// Groups that are known to be served by extension API servers with a store of their own (or none).
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

/// Whether kube-apiserver serves the group from its own built-in types: no dot, or below `k8s.io`.
///
/// Custom resources below `k8s.io` exist too (gateway.networking.k8s.io); for them this errs on the careful side.
pub fn is_built_in(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// Reads a key of etcd below a registry prefix: `/registry/[GROUP/]RESOURCE[/NAMESPACE]/NAME`.
///
/// Sources: the storage prefixes of kubernetes `pkg/registry/**/storage` (`minions`, `services/specs`,
/// `services/endpoints` are the historical exceptions) and apiextensions-apiserver, which writes custom resources as
/// `GROUP/PLURAL/...`. Returns group, plural, namespace (empty for none) and name; `None` for keys that are no objects
/// (allocators, master leases, `compact_rev_key`).
pub fn parse_etcd_key(key: &str) -> Option<(&str, &str, &str, &str)> {
    let rest = key.strip_prefix('/')?;
    // The prefix is configurable (--etcd-prefix); it is one segment in every set-up that is documented.
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

/// The API group of a built-in resource, whose etcd key does not say it.
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

/// The plural of a kind, for evidence that names only the kind (a list file, a raw watch stream).
///
/// English plurals as kubectl and controller-gen make them; `Endpoints` is its own plural.
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
