//! The writer of captures (`docs/formats.md`): requests, answers and events of a Kubernetes client, line by line as they happen.

use super::lines::{Clock, Lines, lock};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The subject of a capture. All fields are optional; an empty one is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The user, as the audit log names it.
    pub client: String,
    /// The incarnation: any label that changes with a restart.
    pub incarnation: String,
    /// The server that the client asks.
    pub server: String,
    /// The clock; files of one machine share one.
    pub clock: String,
}

/// A capture during writing. Clones write into the same file, from any thread.
///
/// A line is one write. It is written before a request is sent and after an answer was read completely, so the file of a killed
/// process shows its open requests. Write errors never disturb the client; [`Capture::error`] returns them.
#[derive(Clone, Debug)]
pub struct Capture {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    next: AtomicU64,
    lines: Lines,
    /// The first error of serializing a body.
    unwritten: Mutex<Option<String>>,
}

impl Capture {
    /// Creates a capture in a new file.
    ///
    /// # Errors
    /// If the file exists, or cannot be created or written.
    pub fn create(path: impl AsRef<Path>, subject: &Subject) -> io::Result<Capture> {
        Capture::create_on(Clock::new(), path, subject)
    }

    /// As [`Capture::create`]. Captures with one clock have comparable times.
    pub(crate) fn create_on(times: Clock, path: impl AsRef<Path>, subject: &Subject) -> io::Result<Capture> {
        let mut line = Map::from_iter([("kind".to_owned(), json!("capture")), ("version".to_owned(), json!(1))]);
        let Subject { client, incarnation, server, clock } = subject;
        for (name, value) in [("client", client), ("incarnation", incarnation), ("server", server), ("clock", clock)] {
            if !value.is_empty() {
                line.insert(name.to_owned(), json!(value));
            }
        }
        let lines = Lines::create(path.as_ref(), &line)?;
        let inner = Inner { clock: times, next: AtomicU64::new(1), lines, unwritten: Mutex::default() };
        Ok(Capture { inner: Arc::new(inner) })
    }

    /// Records a request. Call it before the first byte is sent. `body` is the written object, if any.
    pub fn request(&self, method: &str, uri: &str, body: Option<&impl Serialize>) -> Exchange {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let mut line = vec![("method", json!(method)), ("uri", json!(uri))];
        line.extend(self.value(body).map(|body| ("body", body)));
        self.inner.write("request", id, line);
        Exchange { capture: self.clone(), id }
    }

    /// Records a mark for drawings, such as a fault that a test injects. A mark is never evidence.
    pub fn mark(&self, name: &str) {
        self.inner.write("mark", 0, vec![("name", json!(name))]);
    }

    /// The first error of writing a line or serializing a body, if any.
    pub fn error(&self) -> Option<String> {
        self.inner.lines.error().or_else(|| lock(&self.inner.unwritten).clone())
    }

    /// Records that something is missing.
    #[cfg(feature = "tower")]
    pub(crate) fn note(&self, why: String) {
        lock(&self.inner.unwritten).get_or_insert(why);
    }

    fn value(&self, value: Option<&impl Serialize>) -> Option<Value> {
        match serde_json::to_value(value?) {
            Ok(value) => Some(value),
            Err(error) => {
                lock(&self.inner.unwritten).get_or_insert(error.to_string());
                None
            }
        }
    }
}

impl Inner {
    fn write(&self, kind: &str, id: u64, fields: Vec<(&str, Value)>) {
        let mut line = Map::from_iter([("kind".to_owned(), json!(kind))]);
        if id > 0 {
            line.insert("id".to_owned(), json!(id));
        }
        line.extend(fields.into_iter().map(|(name, value)| (name.to_owned(), value)));
        self.lines.write(Ok(line), &self.clock);
    }
}

/// A sent request. If it is dropped without an answer, its outcome is unknown.
#[derive(Debug)]
#[must_use = "a request that is dropped has an unknown outcome"]
pub struct Exchange {
    capture: Capture,
    id: u64,
}

impl Exchange {
    /// Records the answer or the start of a stream. Call it after the last byte of it was read. `audit_id` is the header
    /// `Audit-Id`, or empty.
    pub fn response(&mut self, status: u16, audit_id: &str, body: Option<&impl Serialize>) {
        let mut line = vec![("status", json!(status))];
        if !audit_id.is_empty() {
            line.push(("audit_id", json!(audit_id)));
        }
        line.extend(self.capture.value(body).map(|body| ("body", body)));
        self.capture.inner.write("response", self.id, line);
    }

    /// Records a watch event as the server sent it: `{"type": ..., "object": ...}`.
    pub fn event(&mut self, event: &impl Serialize) {
        if let Some(event) = self.capture.value(Some(event)) {
            self.capture.inner.write("event", self.id, vec![("event", event)]);
        }
    }

    /// Records that the server ended the stream.
    pub fn end(self) {
        self.capture.inner.write("end", self.id, vec![("reason", json!("eof"))]);
    }

    /// Records that the request ended in an error. The outcome of a write is unknown then.
    pub fn error(self, why: &str) {
        self.capture.inner.write("end", self.id, vec![("reason", json!("error")), ("error", json!(why))]);
    }

    /// Records that the client closed the connection.
    pub fn close(self) {
        self.capture.inner.write("end", self.id, vec![("reason", json!("closed"))]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{self, Domains};
    use crate::ingest::{self, ReadOptions};

    #[test]
    fn what_is_written_is_read_as_a_capture_with_nothing_left_over() {
        let path = std::env::temp_dir().join(format!("retrograde-capture-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let subject =
            Subject { client: "system:node:n1".to_owned(), incarnation: "boot-2".to_owned(), ..Subject::default() };
        let capture = Capture::create(&path, &subject).unwrap();
        let pod = |version: u32| json!({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-0","namespace":"default","uid":"u1","resourceVersion":version.to_string()}});
        let mut get = capture.request("GET", "/api/v1/namespaces/default/pods/web-0", None::<&Value>);
        get.response(200, "5f3c9a4e-0000-4000-8000-000000000001", Some(&pod(7)));
        get.close();
        capture.mark("api server b is paused");
        let mut watch = capture.request("GET", "/api/v1/pods?watch=1&resourceVersion=7", None::<&Value>);
        watch.response(200, "", None::<&Value>);
        watch.event(&json!({"type":"MODIFIED","object":pod(9)}));
        watch.end();
        drop(capture.request("PUT", "/api/v1/namespaces/default/pods/web-0", Some(&pod(9))));
        assert_eq!(capture.error(), None);
        assert!(Capture::create(&path, &subject).is_err(), "a capture is never overwritten");
        let inputs = ingest::inputs(std::slice::from_ref(&path), &[], &[]).unwrap();
        let history = history::load(inputs, &ReadOptions::default(), &Domains::default(), &());
        assert!(history.problems.is_empty(), "{:?}", history.problems);
        assert_eq!((history.operations.len(), history.deliveries.len()), (3, 1));
        assert_eq!(history.files[0].unknown, 0);
        assert_eq!(history.incarnations[0].label, "boot-2");
        std::fs::remove_file(path).unwrap();
    }
}
