//! Proxies between clients in any language and their server, which write what the clients saw.
//!
//! Requests pass through the layers of [`record`](crate::record), so a proxy writes the same evidence as a client with
//! a layer. Input: connections of clients. Output: captures, or a recording of etcd. Invariant: answers pass
//! unchanged, and no answer waits for its end.
//!
//! This stage is the only one with a network. It reads no evidence.

mod clients;
mod etcd;
mod identity;
mod kube;
mod kube_server;
mod kubeconfig;
mod listener;
mod refusal;
mod tally;
mod tls;
mod upstream;

pub use etcd::EtcdProxy;
pub use kube::KubeProxy;
pub use listener::Listening;
pub use tls::Files;

use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Time for requests in progress after a signal. Watches do not end by themselves and are cut off.
const TO_FINISH: Duration = Duration::from_millis(400);

/// Time for tasks to drop what they hold, so that every line is written whole.
const TO_DROP: Duration = Duration::from_millis(300);

/// Interval between looks at the caller's flag.
const TICK: Duration = Duration::from_millis(20);

/// The surroundings of a proxy.
#[derive(Clone, Copy)]
pub struct Caller<'c> {
    /// Whether the proxy has to end.
    pub stopped: &'c dyn Fn() -> bool,
    /// Tells the user something.
    pub tell: &'c dyn Fn(&str),
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

async fn until(stopped: &dyn Fn() -> bool) {
    while !stopped() {
        tokio::time::sleep(TICK).await;
    }
}
