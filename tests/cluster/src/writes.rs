//! Every kind of write by a correct client, with a second client that watches.

use crate::Result;
use crate::client::{uid, version};
use crate::kubelet_restart::binding;
use crate::servers::Server;
use crate::stage::Stage;
use http::Method;
use serde_json::{Value, json};

const WRITER: &str = "writer";
const READER: &str = "reader";

fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "writes"}},
        "data": {"value": value},
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "writes"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/web:1"}]},
    })
}

pub async fn play(stage: &Stage<'_>) -> Result<()> {
    let maps = stage.core("configmaps");
    let map = |name: &str| stage.core(&format!("configmaps/{name}"));
    let writer = stage.process(WRITER, "writer-1", Server::A)?;
    let reader = stage.process(READER, "reader-1", Server::B)?;
    let listed = reader.get(&maps).await?.ok()?;
    let mut watch = reader.watch(&format!("{maps}?watch=true&resourceVersion={}", version(&listed))).await?;

    // Creation, also with a generated name, and as a dry run.
    let mut one = writer.post(&maps, &config_map("one", "1")).await?.ok()?;
    writer.post(&maps, &config_map("one", "again")).await?.refused(409)?;
    let mut generated = config_map("", "2");
    generated["metadata"] = json!({"generateName": "made-", "labels": {"app": "writes"}});
    let made = writer.post(&maps, &generated).await?.ok()?;
    writer.post(&format!("{maps}?dryRun=All"), &config_map("dry", "3")).await?.ok()?;
    writer.get(&map("dry")).await?.refused(404)?;

    // Updates: conditional, refused, without a change, as a dry run, unconditional.
    let stale = one.clone();
    one["data"] = json!({"value": "4"});
    let mut one = writer.put(&map("one"), &one).await?.ok()?;
    writer.put(&map("one"), &{ stale }).await?.refused(409)?;
    let same = writer.put(&map("one"), &one).await?.ok()?;
    if version(&same) != version(&one) {
        return Err("an update that changes nothing has another version".into());
    }
    one["data"] = json!({"value": "5"});
    writer.put(&format!("{}?dryRun=All", map("one")), &one).await?.ok()?;
    writer.put(&map("one"), &config_map("one", "6")).await?.ok()?;

    // Patches of each type.
    writer.patch(&map("one"), "merge", &json!({"data": {"merge": "7"}})).await?.ok()?;
    let one = writer.patch(&map("one"), "strategic-merge", &json!({"data": {"strategic": "8"}})).await?.ok()?;
    let test = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version(&one)},
        {"op": "add", "path": "/data/json", "value": "9"},
    ]);
    let one = writer.patch(&map("one"), "json", &test).await?.ok()?;
    writer.patch(&map("one"), "json", &test).await?.refused(422)?;
    let old = json!({"metadata": {"resourceVersion": version(&made)}, "data": {"merge": "10"}});
    writer.patch(&map("one"), "merge", &old).await?.refused(409)?;
    let foreign = json!({"metadata": {"uid": uid(&made)}, "data": {"merge": "11"}});
    let answer = writer.patch(&map("one"), "merge", &foreign).await?;
    if !matches!(answer.status, 409 | 422) {
        return Err(format!("a foreign uid was answered {}", answer.status).into());
    }
    let mut applied = config_map("applied", "12");
    for value in ["12", "13"] {
        applied["data"]["value"] = json!(value);
        writer.patch(&format!("{}?fieldManager=writer&force=true", map("applied")), "apply", &applied).await?.ok()?;
    }

    // Finalizers: the deletion mark, and the removal with the last finalizer.
    let mut held = config_map("held", "14");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    writer.post(&maps, &held).await?.ok()?;
    let marked = writer.delete(&map("held"), &json!({})).await?.ok()?;
    writer.delete(&map("held"), &json!({})).await?.ok()?;
    let condition = json!({"metadata": {"resourceVersion": version(&marked), "finalizers": []}});
    writer.patch(&map("held"), "merge", &condition).await?.ok()?;
    writer.get(&map("held")).await?.refused(404)?;
    watch.expect("DELETED", "held").await?;

    // Deletion: conditional, refused, as a dry run, of a collection.
    let wrong = json!({"preconditions": {"uid": uid(&made), "resourceVersion": version(&one)}});
    writer.delete(&map("one"), &wrong).await?.refused(409)?;
    let dry = json!({"dryRun": ["All"]});
    writer.delete(&map("one"), &dry).await?.ok()?;
    let right = json!({"preconditions": {"uid": uid(&one), "resourceVersion": version(&one)}});
    writer.delete(&map("one"), &right).await?.ok()?;
    writer.delete(&map("one"), &json!({})).await?.refused(404)?;
    let second = writer.post(&maps, &config_map("one", "15")).await?.ok()?;
    if uid(&second) == uid(&one) {
        return Err("a new object has the uid of the old one".into());
    }
    watch.expect("ADDED", "one").await?;
    writer.send(Method::DELETE, &format!("{maps}?labelSelector=app%3Dwrites"), "application/json", None).await?.ok()?;
    // A collection is deleted in any order.
    for _ in 0..3 {
        while watch.next().await?.ok_or("the watch ended")?["type"] != "DELETED" {}
    }

    // Pods: the binding, the status, an eviction.
    let created = writer.post(&stage.core("pods"), &pod("bound")).await?.ok()?;
    writer.post(&stage.core("pods/bound/binding"), &binding("bound", "node-1")).await?.ok()?;
    let status = stage.core("pods/bound/status");
    writer.patch(&status, "strategic-merge", &json!({"status": {"phase": "Running"}})).await?.ok()?;
    let mut bound = writer.get(&stage.core("pods/bound")).await?.ok()?;
    bound["status"]["message"] = json!("ready");
    writer.put(&status, &bound).await?.ok()?;
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "bound", "namespace": stage.namespace},
        "deleteOptions": {"gracePeriodSeconds": 0, "preconditions": {"uid": uid(&created)}},
    });
    writer.post(&stage.core("pods/bound/eviction"), &eviction).await?.ok()?;
    writer.get(&stage.core("pods/bound")).await?.refused(404)?;
    writer.post(&stage.core("pods"), &pod("graceful")).await?.ok()?;
    writer.post(&stage.core("pods/graceful/binding"), &binding("graceful", "node-1")).await?.ok()?;
    // The server takes the grace period from its cache. A pod that is not bound there is removed at once.
    let bound = writer.get(&stage.core("pods/graceful")).await?.ok()?;
    writer.get(&stage.core(&format!("pods/graceful?resourceVersion={}", version(&bound)))).await?.ok()?;
    writer.delete(&stage.core("pods/graceful"), &json!({"gracePeriodSeconds": 30})).await?.ok()?;
    writer.delete(&stage.core("pods/graceful"), &json!({"gracePeriodSeconds": 0})).await?.ok()?;

    // The scale of a deployment.
    let deployments = stage.of("apps/v1", "deployments");
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": pod("")["spec"]});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    writer.post(&deployments, &deployment).await?.ok()?;
    let scale = format!("{deployments}/web/scale");
    let mut wanted = writer.get(&scale).await?.ok()?;
    wanted["spec"]["replicas"] = json!(3);
    writer.put(&scale, &wanted).await?.ok()?;
    writer.patch(&scale, "merge", &json!({"spec": {"replicas": 2}})).await?.ok()?;
    let last = writer.get(&format!("{deployments}/web")).await?.ok()?;
    writer.delete(&format!("{deployments}/web"), &json!({"propagationPolicy": "Orphan"})).await?.ok()?;

    // A Secret and a Service, of which the recorder keeps other fields.
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}, "stringData": {"password": "hunter2"},
    });
    writer.post(&stage.core("secrets"), &secret).await?.ok()?;
    writer.delete(&stage.core("secrets/secret"), &json!({})).await?.ok()?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]},
    });
    writer.post(&stage.core("services"), &service).await?.ok()?;
    writer.delete(&stage.core("services/web"), &json!({})).await?.ok()?;

    // The remaining objects, in pages, from both servers.
    for _ in 0..3 {
        writer.post(&maps, &json!({"metadata": {"generateName": "page-"}})).await?.ok()?;
    }
    let mut next = String::new();
    loop {
        let page = reader.get(&format!("{maps}?limit=2{next}")).await?.ok()?;
        let Some(token) = page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) else { break };
        next = format!("&continue={token}");
    }
    stage.caught_up(Server::B, &maps, &last).await?;
    reader.get(&format!("{maps}?resourceVersion=0")).await?.ok()?;
    Ok(())
}
