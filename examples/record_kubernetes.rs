//! Records a client of Kubernetes with a layer of tower, and finds a list that goes back in time.
//!
//! ```console
//! $ cargo run --example record_kubernetes
//! ```
//!
//! `Server` stands for the connection. With kube-rs, `KubeLayer::new(capture, kube::client::Body::try_clone)` is the layer,
//! and `ClientBuilder::try_from(config)?.with_layer(&layer).build()` makes the client (docs/guide-ci.md). Needs the feature
//! `tower` and the crates http, http-body, tower-layer and tower-service.

use http::{Request, Response};
use http_body::Body;
use retrograde::assertion::{Capture, Claim, Subject};
use retrograde::record::KubeLayer;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::error::Error;
use std::future::{Ready, poll_fn, ready};
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tower_layer::Layer;
use tower_service::Service;

/// An API server. Its cache lags behind: it still has a pod that its stream has deleted at revision 115.
struct Server;

impl Service<Request<String>> for Server {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<String>) -> Self::Future {
        let event = |kind: &str, version: &str| json!({"type": kind, "object": pod(version)}).to_string() + "\n";
        let list = json!({
            "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "105"}, "items": [pod("100")],
        });
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=1"));
        let body = if is_watch { event("MODIFIED", "110") + &event("DELETED", "115") } else { list.to_string() };
        ready(Ok(Response::new(body)))
    }
}

fn pod(version: &str) -> Value {
    let metadata = json!({"name": "web-0", "namespace": "default", "uid": "u1", "resourceVersion": version});
    json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})
}

/// A client that lists, watches, and lists again from the cache. Returns the report for people, if there is a finding.
pub fn recorded(folder: &Path) -> Result<Option<String>, Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let subject = Subject { client: "system:node:node-1".to_owned(), ..Subject::default() };
    let capture = Capture::create(folder.join("node-1.jsonl"), &subject)?;
    let layer = KubeLayer::new(capture.clone(), |body: &String| Some(body.clone()));
    let mut client = layer.layer(Server);
    for query in ["", "?watch=1&resourceVersion=105", "?resourceVersion=0"] {
        let request = Request::get(format!("/api/v1/pods{query}")).body(String::new())?;
        let mut body = run(client.call(request))?.into_body();
        // The layer notes what the client reads, when the client reads it.
        while let Some(frame) = run(poll_fn(|context| Pin::new(&mut body).poll_frame(context))) {
            frame?;
        }
    }
    if let Some(error) = capture.error() {
        return Err(error.into());
    }
    Ok(Claim::default().consistent(&folder).err().map(|error| error.to_string()))
}

/// A runtime for futures that never wait. Yours is tokio.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("retrograde-record-kubernetes-{}", std::process::id()));
    let report = recorded(&folder)?;
    println!("{}", report.as_deref().unwrap_or("The recording is consistent."));
    Ok(std::fs::remove_dir_all(folder)?)
}
