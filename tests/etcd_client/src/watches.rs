//! The watches of the clients.

use crate::{PATIENCE, Shared};
use etcd_client::{Client, Error, WatchOptions, WatchStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The keys of a watch.
pub enum Wanted {
    Everything { previous: bool },
    Prefix(&'static str),
    Range(&'static str, &'static str),
    Key(&'static str),
}

pub const WANTED: [Wanted; 5] = [
    Wanted::Everything { previous: true },
    Wanted::Everything { previous: false },
    Wanted::Prefix("jobs/"),
    Wanted::Range("jobs/3", "locks/3"),
    Wanted::Key("locks/1"),
];

/// Whether a requested progress notification follows the events that it covers: etcd#15220, fixed in 3.4.25 and
/// 3.5.8.
pub fn tells_progress_rightly(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    match [(); 3].map(|()| numbers.next().unwrap_or(0)) {
        [3, 4, patch] => patch >= 25,
        [3, 5, patch] => patch >= 8,
        [major, minor, _] => (major, minor) > (3, 5),
    }
}

/// Watches from the first to the last revision, and requests progress at the end.
pub async fn watch(mut client: Client, wanted: &Wanted, shared: Arc<Shared>) {
    let mut next = 1;
    while !matches!(once(&mut client, wanted, &mut next, &shared).await, Ok(true)) {
        // The stream broke: the next one continues after the last event.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn open(client: &mut Client, wanted: &Wanted, next: i64) -> Result<WatchStream, Error> {
    let options = WatchOptions::new().with_start_revision(next).with_progress_notify();
    match wanted {
        Wanted::Everything { previous: true } => client.watch("", Some(options.with_all_keys().with_prev_key())).await,
        Wanted::Everything { previous: false } => client.watch("", Some(options.with_all_keys())).await,
        Wanted::Prefix(prefix) => client.watch(*prefix, Some(options.with_prefix())).await,
        Wanted::Range(from, to) => client.watch(*from, Some(options.with_range(*to))).await,
        Wanted::Key(key) => client.watch(*key, Some(options.with_prev_key())).await,
    }
}

/// One stream. Returns whether the watch has reached the last revision.
async fn once(client: &mut Client, wanted: &Wanted, next: &mut i64, shared: &Shared) -> Result<bool, Error> {
    let stream = tokio::time::timeout(PATIENCE, open(client, wanted, *next)).await;
    let Ok(stream) = stream else { return Ok(false) };
    let mut stream = stream?;
    loop {
        let message = tokio::time::timeout(Duration::from_millis(400), stream.message()).await;
        let stopped = shared.stop.load(Ordering::Relaxed);
        let Ok(message) = message else {
            // No response arrived for a while.
            if stopped || shared.progress.load(Ordering::Relaxed) {
                stream.request_progress().await?;
            }
            continue;
        };
        let Some(message) = message? else { return Ok(false) };
        if message.canceled() {
            return Ok(false);
        }
        let events = message.events();
        if let Some(pair) = events.last().and_then(|event| event.kv()) {
            *next = pair.mod_revision() + 1;
        }
        let told = message.header().map_or(0, |header| header.revision());
        let progress = events.is_empty() && !message.created();
        if progress && stopped && told >= shared.head.load(Ordering::Relaxed) {
            return Ok(true);
        }
    }
}
