//! Writing of captures (`docs/formats.md`): what a client of Kubernetes asked and was told, line by line as it happens.

use super::lines::{Clock, Lines, lock};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Who a capture is of. Everything is optional; what is empty is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The user, as the audit log would name it.
    pub client: String,
    /// The process life: anything that changes with a restart.
    pub incarnation: String,
    /// The server that is asked.
    pub server: String,
    /// The clock: files of one machine share one.
    pub clock: String,
}

/// A capture that is being written. Clones write into the same file, from any thread.
///
/// A line is one write, and is written before a request is sent and after an answer was read whole, so the file of a process that was
/// killed says which requests were open. What cannot be written is told by [`Capture::error`]; it never disturbs the client.
#[derive(Clone, Debug)]
pub struct Capture {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    next: AtomicU64,
    lines: Lines,
    /// Why a body is missing.
    unwritten: Mutex<Option<String>>,
}

impl Capture {
    /// Begins a capture in a new file.
    ///
    /// # Errors
    /// Where the file exists, or cannot be created or written.
    pub fn create(path: impl AsRef<Path>, subject: &Subject) -> io::Result<Capture> {
        let mut line = Map::from_iter([("kind".to_owned(), json!("capture")), ("version".to_owned(), json!(1))]);
        let Subject { client, incarnation, server, clock } = subject;
        for (name, value) in [("client", client), ("incarnation", incarnation), ("server", server), ("clock", clock)] {
            if !value.is_empty() {
                line.insert(name.to_owned(), json!(value));
            }
        }
        let lines = Lines::create(path.as_ref(), &line)?;
        let inner = Inner { clock: Clock::new(), next: AtomicU64::new(1), lines, unwritten: Mutex::default() };
        Ok(Capture { inner: Arc::new(inner) })
    }

    /// Notes a request: before its first byte is sent. `body` is the object that is written, where there is one.
    pub fn request(&self, method: &str, uri: &str, body: Option<&impl Serialize>) -> Exchange {
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let mut line = vec![("method", json!(method)), ("uri", json!(uri))];
        line.extend(self.value(body).map(|body| ("body", body)));
        self.inner.write("request", id, line);
        Exchange { capture: self.clone(), id }
    }

    /// Notes something for the reader of pictures, such as a fault that a test injects. It is never evidence.
    pub fn mark(&self, name: &str) {
        self.inner.write("mark", 0, vec![("name", json!(name))]);
    }

    /// Why lines could not be written, or bodies not be read, if any could not.
    pub fn error(&self) -> Option<String> {
        self.inner.lines.error().or_else(|| lock(&self.inner.unwritten).clone())
    }

    /// Notes that something is missing.
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

/// A request that was sent. Dropped without an answer, its outcome is unknown.
#[derive(Debug)]
#[must_use = "a request that is dropped has an unknown outcome"]
pub struct Exchange {
    capture: Capture,
    id: u64,
}

impl Exchange {
    /// Notes the answer, or the beginning of a stream: after the last byte of it was read. `audit_id` is the header `Audit-Id`, or
    /// empty.
    pub fn response(&mut self, status: u16, audit_id: &str, body: Option<&impl Serialize>) {
        let mut line = vec![("status", json!(status))];
        if !audit_id.is_empty() {
            line.push(("audit_id", json!(audit_id)));
        }
        line.extend(self.capture.value(body).map(|body| ("body", body)));
        self.capture.inner.write("response", self.id, line);
    }

    /// Notes an event of a watch, as the server sent it: `{"type": ..., "object": ...}`.
    pub fn event(&mut self, event: &impl Serialize) {
        if let Some(event) = self.capture.value(Some(event)) {
            self.capture.inner.write("event", self.id, vec![("event", event)]);
        }
    }

    /// Notes that the server ended the stream.
    pub fn end(self) {
        self.capture.inner.write("end", self.id, vec![("reason", json!("eof"))]);
    }

    /// Notes that it ended in an error: the outcome of a write is unknown then.
    pub fn error(self, why: &str) {
        self.capture.inner.write("end", self.id, vec![("reason", json!("error")), ("error", json!(why))]);
    }

    /// Notes that the client hung up.
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
