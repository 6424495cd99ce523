//! kubernetes#59848: a kubelet restarts and reads from a server whose cache is stale.

use crate::Result;
use crate::client::{Process, uid, version};
use crate::servers::{Server, until};
use crate::stage::Stage;
use serde_json::{Value, json};

const NODE: &str = "system:node:node-1";
const SUCCESSORS_NODE: &str = "system:node:node-2";
const STATEFUL_SETS: &str = "system:serviceaccount:kube-system:statefulset-controller";
const SCHEDULER: &str = "system:kube-scheduler";

const OWN_PODS: &str = "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1";

pub const VARIANTS: [&str; 8] = [
    "buggy",
    "uid-in-the-patch",
    "quorum-lists",
    "compare-later-lists",
    "not-older-than",
    "live-get",
    "watch-list",
    "lucky",
];

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-0", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/web:1"}]},
    })
}

pub fn binding(pod: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    })
}

/// The status that a kubelet writes. Each life of a kubelet writes another text, since a patch of equal
/// content changes nothing.
fn running(by: &str, uid: Option<&str>) -> Value {
    let mut patch = json!({"status": {"phase": "Running", "message": format!("started by {by}")}});
    if let Some(uid) = uid {
        patch["metadata"] = json!({"uid": uid});
    }
    patch
}

fn has_pod(list: &Value) -> Option<&Value> {
    list["items"].as_array()?.iter().find(|item| item["metadata"]["name"] == "pod-0")
}

pub async fn play(stage: &Stage<'_>, variant: &str) -> Result<()> {
    let pods = stage.core("pods");
    let path = stage.core("pods/pod-0");
    let (binding_path, status) = (format!("{path}/binding"), format!("{path}/status"));
    let controller = stage.process(STATEFUL_SETS, "kcm-0", Server::A)?;
    let scheduler = stage.process(SCHEDULER, "scheduler-0", Server::A)?;

    // The first incarnation of the kubelet.
    let first = stage.process(NODE, "boot-1", Server::A)?;
    let listed = first.get(&format!("{OWN_PODS}&limit=500")).await?.ok()?;
    let mut watch = first.watch(&format!("{OWN_PODS}&watch=true&resourceVersion={}", version(&listed))).await?;
    let old = controller.post(&pods, &pod()).await?.ok()?;
    let uid_1 = uid(&old).to_owned();
    scheduler.post(&binding_path, &binding("pod-0", "node-1")).await?.ok()?;
    watch.expect("ADDED", "pod-0").await?;
    let started = first.patch(&status, "strategic-merge", &running("node-1, boot-1", Some(&uid_1))).await?.ok()?;
    watch.expect("MODIFIED", "pod-0").await?;
    stage.caught_up(Server::B, &pods, &started).await?;
    if variant != "lucky" {
        stage.servers.proxy.hold();
    }
    let of_uid_1 = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid_1}});
    controller.delete(&path, &of_uid_1).await?.ok()?;
    watch.expect("MODIFIED", "pod-0").await?;
    let mut at_once = of_uid_1.clone();
    at_once["gracePeriodSeconds"] = json!(0);
    first.delete(&path, &at_once).await?.ok()?;
    watch.expect("DELETED", "pod-0").await?;
    drop((watch, first));

    // The pod's successor on another node.
    controller.post(&pods, &pod()).await?.ok()?;
    scheduler.post(&binding_path, &binding("pod-0", "node-2")).await?.ok()?;
    let other = stage.process(SUCCESSORS_NODE, "boot-1", Server::A)?;
    let listed = other.get("/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-2&limit=500").await?.ok()?;
    let uid_2 = uid(has_pod(&listed).ok_or("the successor is not on node-2")?).to_owned();
    let successor = other.patch(&status, "strategic-merge", &running("node-2", Some(&uid_2))).await?.ok()?;
    if variant == "lucky" {
        stage.caught_up(Server::B, &pods, &successor).await?;
    }

    // The second incarnation, on server B.
    let second = stage.process(NODE, "boot-2", Server::B)?;
    restarted(stage, &second, variant, &status, &uid_1).await
}

async fn restarted(stage: &Stage<'_>, kubelet: &Process, variant: &str, status: &str, uid_1: &str) -> Result<()> {
    let stale = format!("{OWN_PODS}&limit=500&resourceVersion=0");
    let fresh = format!("{OWN_PODS}&limit=500");
    let is_back = |list: &Value| match has_pod(list) {
        Some(pod) if uid(pod) == uid_1 => Ok(()),
        other => Err(format!("the list is not stale: {other:?}")),
    };
    match variant {
        "buggy" | "uid-in-the-patch" => {
            let listed = kubelet.get(&stale).await?.ok()?;
            is_back(&listed)?;
            kubelet.watch(&format!("{OWN_PODS}&watch=true&resourceVersion={}", version(&listed))).await?;
            if variant == "buggy" {
                kubelet.patch(status, "strategic-merge", &running("node-1, boot-2", None)).await?.ok()?;
            } else {
                kubelet
                    .patch(status, "strategic-merge", &running("node-1, boot-2", Some(uid_1)))
                    .await?
                    .refused(422)?;
            }
        }
        "live-get" => {
            is_back(&kubelet.get(&stale).await?.ok()?)?;
            let found = kubelet.get(status.trim_end_matches("/status")).await?.ok()?;
            if uid(&found) == uid_1 {
                return Err("a live GET answered the pod that is gone".into());
            }
        }
        "quorum-lists" => {
            let listed = kubelet.get(&fresh).await?.ok()?;
            if has_pod(&listed).is_some() {
                return Err("a list without a version answered the pod that is gone".into());
            }
        }
        "compare-later-lists" => {
            kubelet.get(&fresh).await?.ok()?;
            is_back(&kubelet.get(&stale).await?.ok()?)?;
        }
        "not-older-than" => {
            let first = kubelet.get(&fresh).await?.ok()?;
            let not_older = format!("{OWN_PODS}&resourceVersion={}&resourceVersionMatch=NotOlderThan", version(&first));
            kubelet.get(&not_older).await?.refused(504)?;
            stage.servers.proxy.release();
            let asked = async || Ok((kubelet.get(&not_older).await?.status == 200).then_some(()));
            until("the server has caught up", asked).await?;
        }
        "watch-list" => {
            let list = format!(
                "{OWN_PODS}&watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            );
            if !kubelet.watch(&list).await?.is_refused().await? {
                return Err("a server that lags began a consistent watch".into());
            }
            stage.servers.proxy.release();
            let again = async || {
                let event = kubelet.watch(&list).await?.next().await?;
                Ok(event.filter(|event| event["type"] == "BOOKMARK"))
            };
            until("the watch begins", again).await?;
        }
        _ => {
            if has_pod(&kubelet.get(&stale).await?.ok()?).is_some() {
                return Err("a server that has caught up answered the pod that is gone".into());
            }
        }
    }
    Ok(())
}
