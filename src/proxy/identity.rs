//! The user as whom the proxy asks, in the server's words.

use super::Caller;
use super::kube_server::{KubeServer, Whole};
use anyhow::{anyhow, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use std::time::Duration;
use tower_service::Service;

/// Longest wait for the answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Longest answer, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Asks the server (Kubernetes 1.28 and later). Empty if it does not say.
///
/// # Errors
/// If the server cannot be reached, or refuses the credentials.
pub(super) async fn user(mut server: KubeServer, caller: Caller<'_>) -> anyhow::Result<String> {
    let address = server.address().clone();
    let asked = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let request: Request<Whole> = Request::builder()
        .method(Method::POST)
        .uri("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(asked.to_string()).into())?;
    let answer = tokio::time::timeout(PATIENCE, async {
        let response = server.call(request).await.map_err(|why| anyhow!("asking {address}: {why}"))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
        anyhow::Ok((status, body.map(|body| body.to_bytes()).unwrap_or_default()))
    });
    let (status, body) = answer.await.map_err(|_| anyhow!("{address} gave no answer within {PATIENCE:?}"))??;
    if status == StatusCode::UNAUTHORIZED {
        bail!(
            "{address} refused the credentials of the kubeconfig (401); check its user, or whether its token has expired"
        );
    }
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = review["status"]["userInfo"]["username"].as_str().unwrap_or_default();
    if name.is_empty() {
        (caller.tell)(&format!(
            "the server does not say as whom it knows the proxy (status {}); with --user NAME the captures join its audit log",
            status.as_u16()
        ));
    }
    Ok(name.to_owned())
}
