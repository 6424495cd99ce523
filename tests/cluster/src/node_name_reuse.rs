//! Azure/azure-container-networking#4210: an agent takes the configuration of an earlier node with the same name.

use crate::Result;
use crate::client::{uid, version};
use crate::servers::Server;
use crate::stage::Stage;
use serde_json::{Value, json};

const KUBELET: &str = "system:node:node-3";
const CONFIGURER: &str = "system:serviceaccount:kube-system:dnc-rc";
const CLOUD: &str = "system:serviceaccount:kube-system:cloud-node-lifecycle";
const GARBAGE: &str = "system:serviceaccount:kube-system:generic-garbage-collector";
const AGENT: &str = "system:serviceaccount:kube-system:azure-cns";

pub const VARIANTS: [&str; 5] =
    ["buggy-fresh", "buggy-stale", "owner-check", "fail-on-foreign-address", "uid-in-the-patch"];

fn node() -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-3"}})
}

fn configuration(node: &Value, version: u32) -> Value {
    json!({
        "apiVersion": "acn.azure.com/v1alpha", "kind": "NodeNetworkConfig",
        "metadata": {"name": "node-3", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "node-3", "uid": uid(node), "controller": true},
        ]},
        "spec": {"requestedIPCount": 16 * version},
    })
}

pub async fn play(stage: &Stage<'_>, variant: &str) -> Result<()> {
    let configurations = stage.of("acn.azure.com/v1alpha", "nodenetworkconfigs");
    let path = format!("{configurations}/node-3");
    let kubelet = stage.process(KUBELET, "boot-1", Server::A)?;
    let configurer = stage.process(CONFIGURER, "dnc-rc-0", Server::A)?;
    let cloud = stage.process(CLOUD, "ccm-0", Server::A)?;
    let garbage = stage.process(GARBAGE, "kcm-0", Server::A)?;

    let node_1 = kubelet.post("/api/v1/nodes", &node()).await?.ok()?;
    let first = configurer.post(&configurations, &configuration(&node_1, 1)).await?.ok()?;
    stage.process(AGENT, "azure-cns-1", Server::A)?.get(&configurations).await?.ok()?;
    let of_uid = |object: &Value| json!({"preconditions": {"uid": uid(object)}});
    cloud.delete("/api/v1/nodes/node-3", &of_uid(&node_1)).await?.ok()?;
    let node_2 = kubelet.post("/api/v1/nodes", &node()).await?.ok()?;

    // The agent restarts.
    let agent = stage.process(AGENT, "azure-cns-2", Server::B)?;
    let replace = async || -> Result<Value> {
        garbage.delete(&path, &of_uid(&first)).await?.ok()?;
        configurer.post(&configurations, &configuration(&node_2, 2)).await?.ok()
    };
    let spec = json!({"spec": {"requestedIPCount": 64}});
    match variant {
        "buggy-fresh" => {
            agent.get(&path).await?.ok()?;
            replace().await?;
            agent.patch(&path, "merge", &spec).await?.ok()?;
        }
        "buggy-stale" => {
            stage.caught_up(Server::B, &configurations, &first).await?;
            stage.servers.proxy.hold();
            replace().await?;
            let found = agent.get(&format!("{path}?resourceVersion=0")).await?.ok()?;
            if uid(&found) != uid(&first) {
                return Err("the read is not stale".into());
            }
            agent.patch(&path, "merge", &spec).await?.ok()?;
        }
        "owner-check" => {
            let own = agent.get("/api/v1/nodes/node-3").await?.ok()?;
            let listed = agent.get(&configurations).await?.ok()?;
            if uid(&listed["items"][0]["metadata"]["ownerReferences"][0]) == uid(&own) {
                return Err("the configuration is already the new one".into());
            }
            let from = version(&listed);
            let mut watch = agent.watch(&format!("{configurations}?watch=true&resourceVersion={from}")).await?;
            replace().await?;
            watch.expect("DELETED", "node-3").await?;
            watch.expect("ADDED", "node-3").await?;
            agent.patch(&path, "merge", &spec).await?.ok()?;
        }
        "fail-on-foreign-address" => {
            agent.get(&path).await?.ok()?;
            replace().await?;
        }
        _ => {
            let found = agent.get(&path).await?.ok()?;
            replace().await?;
            let patch = json!({"metadata": {"uid": uid(&found)}, "spec": {"requestedIPCount": 64}});
            let answer = agent.patch(&path, "merge", &patch).await?;
            if !matches!(answer.status, 409 | 422) {
                return Err(format!("the foreign uid was not refused: {}", answer.status).into());
            }
        }
    }
    drop(agent);
    stage.servers.proxy.release();
    // The next variant creates a node of this name again.
    let admin = stage.unrecorded(crate::stage::ADMIN, Server::A)?;
    admin.delete("/api/v1/nodes/node-3", &json!({})).await?.ok()?;
    Ok(())
}
