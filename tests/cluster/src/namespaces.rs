//! Namespaces that are deleted and polled until they are gone, as in test suites.

use crate::Result;
use crate::client::version;
use crate::servers::{Server, until};
use crate::stage::Stage;
use serde_json::{Value, json};

/// The scenario acts as this controller, since no controller manager runs.
const CONTROLLER: &str = "system:serviceaccount:kube-system:namespace-controller";
const SUITE: &str = "suite";

pub async fn play(stage: &Stage<'_>) -> Result<()> {
    let suite = stage.process(SUITE, "suite-1", Server::A)?;
    let controller = stage.process(CONTROLLER, "kcm-0", Server::B)?;
    let listed = controller.get("/api/v1/namespaces").await?.ok()?;
    let from = version(&listed);
    let mut watch = controller.watch(&format!("/api/v1/namespaces?watch=true&resourceVersion={from}")).await?;
    for round in 0..3 {
        let name = format!("{}-{}", stage.namespace, round % 2);
        let path = format!("/api/v1/namespaces/{name}");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        suite.post("/api/v1/namespaces", &namespace).await?.ok()?;
        let content = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "content"}});
        suite.post(&format!("{path}/configmaps"), &content).await?.ok()?;
        suite.delete(&path, &json!({})).await?.ok()?;
        let terminating = suite.get(&path).await?.ok()?;
        if terminating["status"]["phase"] != "Terminating" {
            return Err(format!("the namespace does not end: {terminating}").into());
        }
        suite.post(&format!("{path}/configmaps"), &content).await?.refused(403).or_else(|error| {
            // The namespace still has content.
            if error.to_string().starts_with("expected 403, found 409") { Ok(()) } else { Err(error) }
        })?;
        let mut seen = watch.expect("MODIFIED", &name).await?;
        controller.send(http::Method::DELETE, &format!("{path}/configmaps"), "application/json", None).await?.ok()?;
        seen["spec"]["finalizers"] = json!([]);
        controller.put(&format!("{path}/finalize"), &seen).await?.ok()?;
        let gone = async || Ok((suite.get(&path).await?.status == 404).then_some(()));
        until("the namespace is gone", gone).await?;
        watch.expect("DELETED", &name).await?;
        let left: Value = suite.get("/api/v1/namespaces").await?.ok()?;
        if left["items"].as_array().into_iter().flatten().any(|item| item["metadata"]["name"] == *name) {
            return Err("the namespace is still listed".into());
        }
    }
    Ok(())
}
