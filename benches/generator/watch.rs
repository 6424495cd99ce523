//! A capture of many informers that watch the pods of one cluster with two correct servers, one of them stale.

use super::{Dice, fresh_uuid};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Size of a capture.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Delivered events of all watchers.
    pub events: usize,
    /// Keys that are written.
    pub keys: usize,
    /// Informers, each a process of its own.
    pub watchers: usize,
}

/// Base of all times, in nanoseconds.
const START: u64 = 1_770_000_000_000_000_000;
/// One write each millisecond.
const STEP: u64 = 1_000_000;
/// Writes before the informers start.
const BEFORE: usize = 1_000;
/// Streams that follow each other in one informer.
const STREAMS: usize = 4;

const PATH: &str = "/api/v1/namespaces/prod/pods";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Created,
    Updated,
    Deleted,
}

#[derive(Clone, Copy)]
struct Change {
    kind: Kind,
    key: usize,
    revision: u64,
    uid: usize,
}

/// The changes from which every client's recording is derived.
struct Truth {
    changes: Vec<Change>,
    uids: Vec<String>,
}

impl Truth {
    fn new(dice: &mut Dice, writes: usize, keys: usize) -> Truth {
        let mut live: Vec<Option<usize>> = vec![None; keys];
        let mut uids = Vec::new();
        let mut change = |n: usize| {
            let key = dice.index(keys);
            let (kind, uid) = match live[key] {
                None => {
                    uids.push(fresh_uuid(dice));
                    (Kind::Created, uids.len() - 1)
                }
                Some(uid) if dice.roll(20) == 0 => (Kind::Deleted, uid),
                Some(uid) => (Kind::Updated, uid),
            };
            live[key] = (kind != Kind::Deleted).then_some(uid);
            Change { kind, key, revision: 1_000 + n as u64, uid }
        };
        let changes = (0..writes).map(&mut change).collect();
        Truth { changes, uids }
    }

    fn object(&self, out: &mut String, change: Change) {
        let Change { key, uid, revision, .. } = change;
        let _ = write!(
            out,
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{key}","namespace":"prod","uid":"{}","resourceVersion":"{revision}"}}}}"#,
            self.uids[uid]
        );
    }

    /// The last change of every object that is live after the first `writes`.
    fn state(&self, writes: usize) -> Vec<Change> {
        let mut live = BTreeMap::new();
        for change in &self.changes[..writes] {
            match change.kind {
                Kind::Deleted => live.remove(&change.key),
                _ => live.insert(change.key, *change),
            };
        }
        live.into_values().collect()
    }
}

fn sent(write: usize) -> u64 {
    START + write as u64 * STEP
}

/// The files of a capture: one per informer, one of the writer.
pub fn capture(seed: u64, shape: Shape) -> Vec<(String, Vec<u8>)> {
    let truth = Truth::new(&mut Dice::new(seed), BEFORE + shape.events / shape.watchers, shape.keys);
    let mut files: Vec<_> = (0..shape.watchers)
        .map(|watcher| (format!("informer-{watcher}.jsonl"), informer(&truth, watcher).into_bytes()))
        .collect();
    files.push(("writer.jsonl".to_owned(), writer(&truth).into_bytes()));
    files
}

fn context(out: &mut String, client: &str, server: &str) {
    let _ = writeln!(
        out,
        r#"{{"kind":"capture","version":1,"client":"system:serviceaccount:prod:{client}","incarnation":"{client}-1","server":"{server}","clock":"recorder"}}"#
    );
}

fn writer(truth: &Truth) -> String {
    let mut out = String::new();
    context(&mut out, "writer", "a");
    let mut versions = vec![0; truth.uids.len()];
    for (write, &change) in truth.changes.iter().enumerate() {
        let before = std::mem::replace(&mut versions[change.uid], change.revision);
        let (method, status, name) = match change.kind {
            Kind::Created => ("POST", 201, String::new()),
            Kind::Updated => ("PUT", 200, format!("/web-{}", change.key)),
            Kind::Deleted => ("DELETE", 200, format!("/web-{}", change.key)),
        };
        let _ = write!(
            out,
            r#"{{"kind":"request","id":{write},"at":{},"method":"{method}","uri":"{PATH}{name}","user_agent":"writer/v1.0""#,
            sent(write)
        );
        match change.kind {
            Kind::Created => {
                let _ = write!(
                    out,
                    r#","body":{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{}","namespace":"prod"}}}}"#,
                    change.key
                );
            }
            Kind::Updated => {
                out.push_str(r#","body":"#);
                truth.object(&mut out, Change { revision: before, ..change });
            }
            Kind::Deleted => {}
        }
        out.push_str("}\n");
        let answered = sent(write) + STEP / 2;
        let _ = write!(out, r#"{{"kind":"response","id":{write},"at":{answered},"status":{status},"body":"#);
        match change.kind {
            Kind::Deleted => {
                let _ = write!(
                    out,
                    r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Success","details":{{"name":"web-{}","kind":"pods","uid":"{}"}}}}"#,
                    change.key, truth.uids[change.uid]
                );
            }
            _ => truth.object(&mut out, change),
        }
        out.push_str("}\n");
    }
    out
}

/// A list, then consecutive streams. Every second informer is at the stale server.
fn informer(truth: &Truth, watcher: usize) -> String {
    let mut out = String::new();
    let (server, lag) = if watcher.is_multiple_of(2) { ("a", STEP) } else { ("b", 20 * STEP) };
    let lag = lag + watcher as u64 * 1_000;
    context(&mut out, &format!("informer-{watcher}"), server);
    // The list is sent after the last write before it was answered.
    let listed = sent(BEFORE) - STEP / 4;
    request(&mut out, 0, listed, "?limit=500000");
    let mut last = truth.changes[BEFORE - 1].revision;
    let _ = write!(
        out,
        r#"{{"kind":"response","id":0,"at":{},"status":200,"body":{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{last}"}},"items":["#,
        listed + STEP / 8
    );
    for (nth, change) in truth.state(BEFORE).into_iter().enumerate() {
        if nth > 0 {
            out.push(',');
        }
        truth.object(&mut out, change);
    }
    out.push_str("]}}\n");
    let rest = truth.changes.len() - BEFORE;
    for stream in 0..STREAMS {
        let (from, to) = (BEFORE + rest * stream / STREAMS, BEFORE + rest * (stream + 1) / STREAMS);
        let id = stream + 1;
        // The stream before ended after its last event; this one begins before its first.
        let query = format!("?allowWatchBookmarks=true&resourceVersion={last}&timeoutSeconds=381&watch=true");
        request(&mut out, id, sent(from) - STEP / 16 + lag, &query);
        for (write, change) in truth.changes[..to].iter().enumerate().skip(from) {
            let kind = match change.kind {
                Kind::Created => "ADDED",
                Kind::Updated => "MODIFIED",
                Kind::Deleted => "DELETED",
            };
            let at = sent(write) + STEP / 2 + lag;
            let _ = write!(out, r#"{{"kind":"event","id":{id},"at":{at},"event":{{"type":"{kind}","object":"#);
            truth.object(&mut out, *change);
            out.push_str("}}\n");
            last = change.revision;
        }
        let end = sent(to - 1) + STEP * 3 / 4 + lag;
        let _ = writeln!(
            out,
            r#"{{"kind":"event","id":{id},"at":{end},"event":{{"type":"BOOKMARK","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{last}"}}}}}}}}"#
        );
        let _ = writeln!(out, r#"{{"kind":"end","id":{id},"at":{},"reason":"eof"}}"#, end + STEP / 16);
    }
    out
}

fn request(out: &mut String, id: usize, at: u64, query: &str) {
    let _ = writeln!(
        out,
        r#"{{"kind":"request","id":{id},"at":{at},"method":"GET","uri":"{PATH}{query}","user_agent":"informer/v1.0"}}"#
    );
}
