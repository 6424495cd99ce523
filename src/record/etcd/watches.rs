//! A stream of etcd's watch service, as watches of a robustness report.
//!
//! The server's watch ids are known only from its answers, in the order of the requests. After a message that cannot
//! be decoded, watches are ended rather than guessed.
//!
//! Source: etcd `api/etcdserverpb/rpc.proto`, `server/etcdserver/api/v3rpc/watch.go`, `client/v3/watch.go`.

use super::answer::{Header, Pair};
use super::client_record::ClientRecord;
use super::{key, value};
use crate::assertion::lines::lock;
use crate::ingest::etcd::{Field, Fields, WireError, request};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

/// The watches of one stream.
#[derive(Debug)]
pub struct EtcdWatches {
    client: ClientRecord,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// Requested watches in the order of the server's answers; `None`: not recorded.
    asked: VecDeque<Option<u64>>,
    /// Watch numbers of the recording, by the server's watch id.
    watches: BTreeMap<i64, u64>,
    /// Events of a revision that is split over responses, by the server's watch id.
    fragments: BTreeMap<i64, Vec<Value>>,
    /// Whether a request of the client could not be decoded.
    lost: bool,
}

/// One message of the server.
#[derive(Debug, Default)]
struct WatchResponse {
    header: Header,
    watch: i64,
    created: bool,
    canceled: bool,
    compacted: i64,
    reason: String,
    fragment: bool,
    events: Vec<Value>,
}

/// Watch id of a response for every watch of its stream.
const ALL: i64 = -1;

impl EtcdWatches {
    pub(super) fn begin(client: ClientRecord) -> EtcdWatches {
        EtcdWatches { client, open: Mutex::default() }
    }

    /// Records a message of the client, before it is sent.
    pub fn sent(&self, message: &[u8]) {
        let create = Fields::of(message).flatten().find_map(|(number, field)| match (number, field) {
            (1, Field::Bytes(create)) => Some(create),
            _ => None,
        });
        let Some(create) = create.filter(|_| !lock(&self.open).lost) else { return };
        let number = wanted(create).ok().flatten().map(|request| {
            let number = self.client.next();
            self.client.watch(&json!({"Watch": number, "Request": request}));
            number
        });
        lock(&self.open).asked.push_back(number);
    }

    /// Records a message of the client that cannot be decoded. New watch ids can no longer be assigned.
    pub fn unread(&self) {
        let mut open = lock(&self.open);
        open.asked.clear();
        open.lost = true;
    }

    /// Records a message of the server, after its last byte was read.
    pub fn received(&self, message: &[u8]) {
        let Ok(response) = WatchResponse::of(message) else {
            // The delivered events are unknown, so all watches of the stream end here.
            let open = std::mem::take(&mut *lock(&self.open));
            open.watches.values().for_each(|number| self.ended(*number, "a response that cannot be read"));
            return;
        };
        let mut open = lock(&self.open);
        if response.created
            && let Some(Some(number)) = open.asked.pop_front()
        {
            open.watches.insert(response.watch, number);
        }
        if response.is_progress() {
            let all = response.watch == ALL;
            for number in open.watches.iter().filter(|(id, _)| all || **id == response.watch).map(|(_, number)| *number)
            {
                self.deliver(number, json!({"IsProgressNotify": true, "Revision": response.header.revision}));
            }
            return;
        }
        let Some(&number) = open.watches.get(&response.watch) else { return };
        if !response.events.is_empty() {
            let mut events = open.fragments.remove(&response.watch).unwrap_or_default();
            events.extend(response.events);
            match response.fragment {
                true => drop(open.fragments.insert(response.watch, events)),
                false => self.deliver(number, json!({"Events": events, "Revision": response.header.revision})),
            }
        }
        if response.canceled || response.compacted != 0 {
            open.watches.remove(&response.watch);
            open.fragments.remove(&response.watch);
            match response.compacted {
                0 if response.reason.is_empty() => {}
                0 => self.ended(number, &response.reason),
                _ => self.ended(number, "etcdserver: mvcc: required revision has been compacted"),
            }
        }
    }

    /// Records that the stream ended with an error.
    pub fn failed(&self, text: &str) {
        let open = std::mem::take(&mut *lock(&self.open));
        open.watches.values().for_each(|number| self.ended(*number, text));
    }

    fn deliver(&self, number: u64, mut response: Value) {
        response["Time"] = json!(self.client.now());
        self.client.watch(&json!({"Watch": number, "Responses": [response]}));
    }

    fn ended(&self, number: u64, text: &str) {
        self.deliver(number, json!({ "Error": text }));
    }
}

/// The request of a watch for the report; `None`: its filters are not expressible there.
fn wanted(create: &[u8]) -> Result<Option<Value>, WireError> {
    let keys = request::interval(create, 1, 2)?;
    let (mut revision, mut progress, mut previous, mut filtered) = (0, false, false, false);
    for field in Fields::of(create) {
        match field? {
            (3, start) => revision = start.signed()?,
            (4, flag) => progress = flag.flag()?,
            (5, Field::Bytes(filters)) => filtered |= !filters.is_empty(),
            (5, _) => filtered = true,
            (6, flag) => previous = flag.flag()?,
            _ => {}
        }
    }
    if filtered {
        return Ok(None);
    }
    let all = keys.key <= b"\0".as_slice() && keys.end == b"\0";
    let prefix = all || (!keys.end.is_empty() && keys.end == behind(keys.key));
    Ok(Some(json!({
        "Key": if all { String::new() } else { key(keys.key) },
        "End": if prefix { String::new() } else { key(keys.end) },
        "Revision": revision,
        "WithPrefix": prefix,
        "WithProgressNotify": progress,
        "WithPrevKV": previous,
    })))
}

/// One past the last key with this prefix, as clients compute it.
fn behind(key: &[u8]) -> Vec<u8> {
    let Some(last) = key.iter().rposition(|byte| *byte < 0xff) else { return vec![0] };
    let mut end = key[..=last].to_vec();
    end[last] += 1;
    end
}

impl WatchResponse {
    fn of(message: &[u8]) -> Result<WatchResponse, WireError> {
        let mut response = WatchResponse::default();
        for field in Fields::of(message) {
            match field? {
                (1, header) => response.header = Header::of(header.bytes()?)?,
                (2, watch) => response.watch = watch.signed()?,
                (3, flag) => response.created = flag.flag()?,
                (4, flag) => response.canceled = flag.flag()?,
                (5, revision) => response.compacted = revision.signed()?,
                (6, reason) => response.reason = String::from_utf8_lossy(reason.bytes()?).into_owned(),
                (7, flag) => response.fragment = flag.flag()?,
                (11, event) => response.events.push(self::event(event.bytes()?)?),
                _ => {}
            }
        }
        Ok(response)
    }

    fn is_progress(&self) -> bool {
        let other = self.created || self.canceled || self.compacted != 0 || self.fragment;
        !other && self.events.is_empty() && self.header.revision > 0
    }
}

fn event(message: &[u8]) -> Result<Value, WireError> {
    let (mut delete, mut pair, mut previous) = (false, Pair::default(), None);
    for field in Fields::of(message) {
        match field? {
            (1, kind) => delete = kind.number()? == 1,
            (2, now) => pair = Pair::of(now.bytes()?)?,
            (3, before) => previous = Some(Pair::of(before.bytes()?)?),
            _ => {}
        }
    }
    let mut event = json!({
        "Type": if delete { "delete-operation" } else { "put-operation" },
        "Key": key(pair.key),
        "Value": value(pair.value),
        "Revision": pair.revision,
        "IsCreate": !delete && pair.created == pair.revision,
    });
    if let Some(before) = previous {
        event["PrevValue"] =
            json!({"Value": value(before.value), "ModRevision": before.revision, "Version": before.version});
    }
    Ok(event)
}
