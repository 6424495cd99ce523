//! A recorded client of kube-rs, and an API server with fixed answers.
//!
//! Arguments: the file of the capture, and whether the last list is `stale` or `fresh`.

use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchParams};
use kube::client::{Body, ClientBuilder};
use kube::{Api, Client, Config};
use retrograde::assertion::{Capture, Subject};
use retrograde::record::KubeLayer;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// A client of Kubernetes that is recorded.
fn recorded(config: Config, capture: Capture) -> kube::Result<Client> {
    let layer = KubeLayer::new(capture, Body::try_clone);
    Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(last)) = (arguments.next(), arguments.next()) else {
        return Err("usage: kube_traffic FILE stale|fresh".into());
    };
    let server = TcpListener::bind("127.0.0.1:0")?;
    let address = server.local_addr()?;
    std::thread::spawn(move || {
        // One connection at a time suffices for one client.
        server.incoming().flatten().for_each(|connection| drop(std::thread::spawn(|| serve(connection))));
    });
    let subject = Subject { client: "system:node:n1".to_owned(), ..Subject::default() };
    let capture = Capture::create(path, &subject)?;
    let client = recorded(Config::new(format!("http://{address}").parse()?), capture.clone())?;
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let listed = pods.list(&ListParams::default()).await?;
    let from = listed.metadata.resource_version.ok_or("a list without a version")?;
    let events: Vec<_> = pods.watch(&WatchParams::default(), &from).await?.try_collect().await?;
    let again = if last == "stale" { ListParams::default().match_any() } else { ListParams::default() };
    let again = pods.list(&again).await?;
    println!("{} events, {} then {} pods", events.len(), listed.items.len(), again.items.len());
    match capture.error() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

fn pod(version: u32) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1", "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": "Running"},
        "metadata": {
            "name": "web-0", "namespace": "default", "uid": "u1", "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
    })
}

/// The state for a request. The pod is deleted at revision 115, which a stale server does not have.
fn answer(target: &str, lists: u32) -> String {
    let list = |version: u32, items: &[Value]| {
        let metadata = json!({"resourceVersion": version.to_string()});
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).to_string()
    };
    if target.contains("watch=") {
        let event = |kind: &str, version: u32| format!("{}\n", json!({"type": kind, "object": pod(version)}));
        event("MODIFIED", 110) + &event("DELETED", 115)
    } else if lists == 0 || target.contains("resourceVersion=0") {
        list(105, &[pod(100)])
    } else {
        list(120, &[])
    }
}

/// Answers in chunks of arbitrary boundaries.
fn serve(mut connection: TcpStream) -> Option<()> {
    let mut requests = BufReader::new(connection.try_clone().ok()?);
    for lists in 0.. {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            (requests.read_line(&mut head).ok()? > 0).then_some(())?;
        }
        let target = head.split(' ').nth(1)?;
        let mut text =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
        for chunk in answer(target, lists).as_bytes().chunks(37) {
            text += &format!("{:x}\r\n{}\r\n", chunk.len(), str::from_utf8(chunk).ok()?);
        }
        connection.write_all((text + "0\r\n\r\n").as_bytes()).ok()?;
    }
    None
}
