//! Recorded clients of a real etcd. They run until a line arrives on standard input, through restarts of etcd; then
//! the watches catch up.
//!
//! Arguments: the folder of the recording, and the address of etcd.

mod requests;
mod watches;

use etcd_client::{Client, Error};
use requests::Dice;
use retrograde::record::{EtcdLayer, EtcdRecorder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tonic::transport::Endpoint;
use tower::util::BoxCloneSyncService;
use tower_layer::Layer;

/// Number of requesting clients.
const CLIENTS: u64 = 8;

/// Timeout of a call. After it the outcome is unknown.
const PATIENCE: Duration = Duration::from_secs(2);

/// State that all clients share.
#[derive(Default)]
pub struct Shared {
    stop: AtomicBool,
    /// The highest revision in an answer.
    head: AtomicI64,
    /// Whether progress requests are safe at any time. Releases without the fix of etcd#15220 answer with a revision
    /// whose events are not all delivered.
    progress: AtomicBool,
}

/// A client of etcd that is recorded.
async fn recorded(recorder: &EtcdRecorder, name: &str, address: &str) -> Result<Client, Error> {
    let channel = Endpoint::from_shared(address.to_owned())?.connect_lazy();
    let layer = EtcdLayer::new(recorder.client(name), tonic::body::Body::new);
    let channel = etcd_client::Channel::Custom(BoxCloneSyncService::new(layer.layer(channel)));
    Client::from_channel(channel, None).await
}

/// Longest run of this program, so that no process outlives a test.
const LIFE: Duration = Duration::from_secs(120);

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::time::timeout(LIFE, run()).await?
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("usage: etcd-traffic FOLDER ADDRESS".into());
    };
    let recorder = EtcdRecorder::in_folder(folder)?;
    let shared = Arc::new(Shared::default());
    let status = Client::connect([&address], None).await?.status().await?;
    shared.progress.store(watches::tells_progress_rightly(status.version()), Ordering::Relaxed);
    let mut asking = Vec::new();
    for number in 0..CLIENTS {
        let client = recorded(&recorder, &format!("asks-{number}"), &address).await?;
        asking.push(tokio::spawn(requests::ask(client, Dice::new(number), Arc::clone(&shared))));
    }
    let mut watching = Vec::new();
    for (number, wanted) in watches::WANTED.iter().enumerate() {
        let client = recorded(&recorder, &format!("watches-{number}"), &address).await?;
        watching.push(tokio::spawn(watches::watch(client, wanted, Arc::clone(&shared))));
    }
    println!("begun");
    std::thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            // The end of the input counts as a line: the caller is gone.
            let _ = std::io::stdin().read_line(&mut String::new());
            shared.stop.store(true, Ordering::Relaxed);
        }
    });
    for task in asking {
        task.await?;
    }
    let last = requests::last(recorded(&recorder, "last", &address).await?).await;
    shared.head.store(last, Ordering::Relaxed);
    for task in watching {
        task.await?;
    }
    match recorder.error() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
