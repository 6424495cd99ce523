//! Reflectors of kube-rs, and writers, while a server is killed and restarted.

use crate::Result;
use crate::client::{Process, uid, version};
use crate::servers::{Server, until};
use crate::stage::Stage;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

type Store = Arc<Mutex<BTreeMap<String, String>>>;

/// A reflector of kube-rs: its names and their versions.
fn reflect(process: Process, namespace: &str, streaming: bool) -> (Store, JoinHandle<()>) {
    let maps: Api<ConfigMap> = Api::namespaced(process.client, namespace);
    let store = Store::default();
    let kept = Arc::clone(&store);
    let config = watcher::Config::default();
    let config = if streaming { config.streaming_lists() } else { config };
    let task = tokio::spawn(async move {
        let mut events = std::pin::pin!(watcher::watcher(maps, config));
        let entry = |map: &ConfigMap| {
            let metadata = &map.metadata;
            (metadata.name.clone().unwrap_or_default(), metadata.resource_version.clone().unwrap_or_default())
        };
        while let Some(event) = events.next().await {
            let mut kept = kept.lock().expect("no thread panics with it");
            match event {
                Ok(Event::Init) => kept.clear(),
                Ok(Event::Apply(map) | Event::InitApply(map)) => drop(kept.extend([entry(&map)])),
                Ok(Event::Delete(map)) => drop(kept.remove(&entry(&map).0)),
                Ok(Event::InitDone) => {}
                // The server is unavailable; the reflector retries.
                Err(_) => {
                    drop(kept);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    });
    (store, task)
}

async fn converged(stage: &Stage<'_>, writer: &Process, stores: &[Store]) -> Result<()> {
    let listed = writer.get(&stage.core("configmaps")).await?.ok()?;
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    let entry =
        |item: &Value| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), version(item).to_owned());
    let wanted: BTreeMap<String, String> = items.iter().map(entry).collect();
    let done = async || {
        let all = stores.iter().all(|store| *store.lock().expect("no thread panics with it") == wanted);
        Ok(all.then_some(()))
    };
    until("the reflectors have what is there", done).await
}

/// Some writes of each kind, with conditions.
async fn work(stage: &Stage<'_>, writer: &Process, round: u32) -> Result<()> {
    let maps = stage.core("configmaps");
    for number in 0..4 {
        let name = format!("map-{number}");
        let path = format!("{maps}/{name}");
        let found = writer.get(&path).await?;
        if found.status == 404 {
            let map =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"round": "0"}});
            writer.post(&maps, &map).await?.ok()?;
        } else if (round + number) % 3 == 0 {
            let found = found.ok()?;
            let condition = json!({"preconditions": {"uid": uid(&found), "resourceVersion": version(&found)}});
            writer.delete(&path, &condition).await?.ok()?;
        } else {
            let mut found = found.ok()?;
            found["data"] = json!({"round": round.to_string()});
            writer.put(&path, &found).await?.ok()?;
        }
    }
    Ok(())
}

pub async fn play(stage: &mut Stage<'_>) -> Result<()> {
    let writer = stage.process("writer", "writer-1", Server::A)?;
    let mut stores = Vec::new();
    let mut tasks = Vec::new();
    for (user, server, streaming) in
        [("reflector-a", Server::A, false), ("reflector-b", Server::B, false), ("streamer-b", Server::B, true)]
    {
        let (store, task) = reflect(stage.process(user, "life-1", server)?, &stage.namespace, streaming);
        stores.push(store);
        tasks.push(task);
    }
    for round in 0..4 {
        work(stage, &writer, round).await?;
    }
    converged(stage, &writer, &stores).await?;
    // Events are delayed and not lost.
    stage.servers.proxy.hold();
    work(stage, &writer, 4).await?;
    converged(stage, &writer, &stores[..1]).await?;
    stage.servers.proxy.release();
    converged(stage, &writer, &stores).await?;
    // A server is killed; the reflectors continue when it is back.
    stage.servers.restart(Server::B)?;
    work(stage, &writer, 5).await?;
    crate::ready(stage.servers).await?;
    work(stage, &writer, 6).await?;
    converged(stage, &writer, &stores).await?;
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        // The task was aborted.
        let _ = task.await;
    }
    Ok(())
}
