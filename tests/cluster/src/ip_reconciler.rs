//! whereabouts#162: a reconciler frees an address while a plugin assigns it.

use crate::Result;
use crate::client::{Process, uid, version};
use crate::servers::Server;
use crate::stage::Stage;
use serde_json::{Value, json};

const PLUGIN: &str = "system:serviceaccount:kube-system:whereabouts";
const MULTUS: &str = "system:serviceaccount:kube-system:multus";
const RECONCILER: &str = "system:serviceaccount:kube-system:ip-reconciler";
const STATEFUL_SETS: &str = "system:serviceaccount:kube-system:statefulset-controller";

const GROUP: &str = "whereabouts.cni.cncf.io/v1alpha1";

pub const VARIANTS: [&str; 3] = ["buggy", "read-again", "skip-pending"];

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/web:1"}]},
    })
}

fn reservation(holder: &str) -> Value {
    json!({
        "apiVersion": GROUP, "kind": "OverlappingRangeIPReservation", "metadata": {"name": "10.128.40.47"},
        "spec": {"podref": holder},
    })
}

/// The pod's annotation with its address.
fn shown() -> Value {
    let networks = json!([{"name": "whereabouts", "ips": ["10.128.40.47"]}]).to_string();
    json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/network-status": networks}}})
}

/// Replaces the allocations of a pool if its resourceVersion is unchanged.
async fn allocate(process: &Process, path: &str, pool: &Value, allocations: Value) -> Result<Value> {
    let patch = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version(pool)},
        {"op": "replace", "path": "/spec/allocations", "value": allocations},
    ]);
    process.patch(path, "json", &patch).await?.ok()
}

pub async fn play(stage: &Stage<'_>, variant: &str) -> Result<()> {
    let pools = stage.of(GROUP, "ippools");
    let pool_path = format!("{pools}/10.128.40.0-24");
    let reservations = stage.of(GROUP, "overlappingrangeipreservations");
    let reservation_path = format!("{reservations}/10.128.40.47");
    let controller = stage.process(STATEFUL_SETS, "kcm-0", Server::A)?;
    let plugin = stage.process(PLUGIN, "whereabouts-7xk2p", Server::B)?;
    let multus = stage.process(MULTUS, "multus-n5q8z", Server::B)?;
    let reconciler = stage.process(RECONCILER, "ip-reconciler-27391", Server::B)?;
    let podref = |name: &str| format!("{}/{name}", stage.namespace);
    let entry = |name: &str| json!({"47": {"id": name, "podref": podref(name)}});

    let empty = json!({
        "apiVersion": GROUP, "kind": "IPPool", "metadata": {"name": "10.128.40.0-24"},
        "spec": {"range": "10.128.40.0/24", "allocations": {}},
    });
    plugin.post(&pools, &empty).await?.ok()?;
    controller.post(&stage.core("pods"), &pod("web-2")).await?.ok()?;
    let read = plugin.get(&pool_path).await?.ok()?;
    allocate(&plugin, &pool_path, &read, entry("web-2")).await?;

    // The reconciler lists between the two writes.
    let listed = reconciler.get(&stage.core("pods")).await?.ok()?;
    if listed["items"][0]["metadata"]["annotations"].is_object() {
        return Err("the pod shows its address already".into());
    }
    let mut seen = reconciler.get(&pool_path).await?.ok()?;
    if variant == "read-again" {
        reconciler.get(&stage.core("pods/web-2")).await?.ok()?;
        seen = reconciler.get(&pool_path).await?.ok()?;
    }
    if variant != "skip-pending" {
        allocate(&reconciler, &pool_path, &seen, json!({})).await?;
    }
    let reserved = plugin.post(&reservations, &reservation(&podref("web-2"))).await?.ok()?;
    if variant != "skip-pending" {
        let condition = json!({"preconditions": {"uid": uid(&reserved)}});
        reconciler.delete(&reservation_path, &condition).await?.ok()?;
    }
    multus.patch(&stage.core("pods/web-2"), "merge", &shown()).await?.ok()?;
    if variant == "skip-pending" {
        return Ok(());
    }

    // The next pod gets the same address.
    controller.post(&stage.core("pods"), &pod("web-3")).await?.ok()?;
    let read = plugin.get(&pool_path).await?.ok()?;
    allocate(&plugin, &pool_path, &read, entry("web-3")).await?;
    plugin.post(&reservations, &reservation(&podref("web-3"))).await?.ok()?;
    multus.patch(&stage.core("pods/web-3"), "merge", &shown()).await?.ok()?;
    controller.get(&stage.core("pods")).await?.ok()?;
    Ok(())
}
