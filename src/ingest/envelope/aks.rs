//! Diagnostic settings of AKS: records of an Event Hub (`{"records":[...]}`), and lines of a storage account. The pod is
//! one API server.
//!
//! Source: the Azure Monitor documentation ("Azure resource logs common and service-specific schemas", AKS).

use super::cursor::Cursor;
use super::quoted::unescaped;
use super::{Envelope, OTHER_CATEGORIES, Opening, Origin, api_server};

/// One record of the diagnostic settings.
pub static DIAGNOSTICS: Envelope = Envelope {
    name: "aks-diagnostics",
    lacks: "reads, if the category is kube-audit-admin",
    keys: &["category", "properties"],
    read: record,
};

/// Categories of the other components of a control plane.
const OTHERS: [&str; 7] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "cluster-autoscaler",
    "cloud-controller-manager",
    "guard",
    "csi-azuredisk-controller",
];

/// `subscription/group/cluster` for the id of a cluster, in small letters, since exports differ in their case.
pub(super) fn cluster(id: &str) -> String {
    let id = unescaped(id).to_ascii_lowercase();
    let part = |before: &str| {
        let mut parts = id.split('/').skip_while(|part| *part != before);
        parts.nth(1).unwrap_or("").to_owned()
    };
    let parts = [part("subscriptions"), part("resourcegroups"), part("managedclusters")];
    if parts[2].is_empty() { id } else { parts.join("/") }
}

fn record<'t>(cursor: &mut Cursor<'t>, out: &mut Opening<'t, '_>) -> bool {
    let (mut category, mut id, mut pod, mut log, mut properties) = ("", "", "", None, "");
    cursor.object(|cursor, key| match key {
        "category" | "Category" => category = cursor.text(),
        "resourceId" | "_ResourceId" => id = cursor.text(),
        "properties" => {
            properties = key;
            cursor.object(|cursor, key| match key {
                "log" => (log, properties) = (Some(cursor.value()), key),
                "pod" => pod = cursor.text(),
                _ => {}
            });
        }
        _ => {}
    });
    if !matches!(category, "kube-audit" | "kube-audit-admin") {
        let is_other = OTHERS.contains(&category) && !properties.is_empty();
        if is_other {
            out.other(properties, OTHER_CATEGORIES);
        }
        return is_other;
    }
    let Some(log) = log else { return false };
    out.payload(log, &Origin { cluster: cluster(id).into(), server: api_server(pod), ..Origin::default() });
    true
}
