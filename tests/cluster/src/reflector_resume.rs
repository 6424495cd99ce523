//! kubernetes#58545: a reflector resumes from the version in a deletion.
//!
//! Servers since 1.10 send deletions with the revision of the deletion. `server-fix` is the old reflector on such a
//! server. `goes-back` is a client that resumes as with the old servers: from the object's earlier version.
//! `goes-back-to-the-list` resumes from its first list, although it has received events since.

use crate::Result;
use crate::client::version;
use crate::servers::Server;
use crate::stage::Stage;
use serde_json::{Value, json};

const USER: &str = "alice";
const CONTROLLER: &str = "system:serviceaccount:kube-system:endpoint-controller";

pub const VARIANTS: [&str; 3] = ["goes-back", "goes-back-to-the-list", "server-fix"];

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}})
}

fn endpoints() -> Value {
    json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "x"}, "subsets": []})
}

pub async fn play(stage: &Stage<'_>, variant: &str) -> Result<()> {
    let services = stage.core("services");
    let path = |name: &str| stage.core(&format!("services/{name}"));
    let user = stage.process(USER, "kubectl-1", Server::B)?;
    let controller = stage.process(CONTROLLER, "kcm-0", Server::A)?;
    let watch_from = |version: &str| format!("{services}?watch=true&resourceVersion={version}");

    let a = user.post(&services, &service("a")).await?.ok()?;
    // The list has a newer version than the object.
    user.post(&services, &service("b")).await?.ok()?;
    let listed = controller.get(&services).await?.ok()?;
    let mut watch = controller.watch(&watch_from(version(&listed))).await?;
    user.post(&services, &service("x")).await?.ok()?;
    watch.expect("ADDED", "x").await?;
    user.delete(&path("x"), &json!({})).await?.ok()?;
    watch.expect("DELETED", "x").await?;
    user.post(&services, &service("x")).await?.ok()?;
    watch.expect("ADDED", "x").await?;
    controller.post(&stage.core("endpoints"), &endpoints()).await?.ok()?;
    user.delete(&path("a"), &json!({})).await?.ok()?;
    let last = watch.expect("DELETED", "a").await?;
    drop(watch);

    if variant == "server-fix" {
        let mut watch = controller.watch(&watch_from(version(&last))).await?;
        user.post(&services, &service("y")).await?.ok()?;
        // The first event is the new service: no event is repeated.
        let next = watch.next().await?.ok_or("the watch ended")?;
        if next["object"]["metadata"]["name"] != "y" {
            return Err(format!("an event was played again: {next}").into());
        }
        return Ok(());
    }
    let place = if variant == "goes-back" { version(&a) } else { version(&listed) };
    let mut watch = controller.watch(&watch_from(place)).await?;
    watch.expect("ADDED", "x").await?;
    watch.expect("DELETED", "x").await?;
    controller.delete(&stage.core("endpoints/x"), &json!({})).await?.ok()?;
    watch.expect("ADDED", "x").await?;
    watch.expect("DELETED", "a").await?;
    controller.post(&stage.core("endpoints"), &endpoints()).await?.ok()?;
    Ok(())
}
