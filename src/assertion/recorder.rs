//! Recording of calls by any number of threads or tasks, in memory or with a journal. Each client keeps its own list of calls.

use super::journal::Journal;
use super::lines::{Clock, lock};
use crate::search::{Call, History, HistoryError, Outcome};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A recorder of calls. Clones record into the same history.
///
/// Times have one monotonic clock, so an earlier time is earlier in every thread.
#[derive(Debug)]
pub struct Recorder<O, A> {
    inner: Arc<Inner<O, A>>,
}

#[derive(Debug)]
struct Inner<O, A> {
    clock: Clock,
    clients: Mutex<FxHashMap<String, Arc<Log<O, A>>>>,
    /// The client names of the processes, by number.
    processes: Mutex<Vec<String>>,
    journal: Option<Journal<O, A>>,
}

/// The calls of one client.
#[derive(Debug)]
struct Log<O, A> {
    name: String,
    calls: Mutex<Calls<O, A>>,
}

#[derive(Debug)]
struct Calls<O, A> {
    calls: Vec<Call<O, A>>,
    /// Processes of this client without an open call. A client with concurrent calls is several processes, which changes nothing
    /// about the order of its calls.
    idle: Vec<u32>,
}

impl<O, A> Clone for Recorder<O, A> {
    fn clone(&self) -> Self {
        Recorder { inner: Arc::clone(&self.inner) }
    }
}

impl<O, A> Default for Recorder<O, A> {
    fn default() -> Self {
        Recorder::new()
    }
}

impl<O: Serialize, A: Serialize> Recorder<O, A> {
    /// Records into a file as well, each line before the call proceeds, so the file survives the process. [`super::replay`] reads
    /// it, and so does `retrograde check` if the operations are those of a provided model.
    ///
    /// The file has operations as serde writes an enum: `"read"` becomes `op`, `{"write": 7}` has 7 as its `value`, and `{"put":
    /// {"key": k, "value": v}}` has both fields.
    ///
    /// # Errors
    /// If the file cannot be created. It must not exist: a recording is never overwritten.
    pub fn in_file(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Recorder::with(Some(Journal::create(path.as_ref())?)))
    }
}

impl<O, A> Recorder<O, A> {
    /// An empty recording in memory.
    pub fn new() -> Self {
        Recorder::with(None)
    }

    fn with(journal: Option<Journal<O, A>>) -> Self {
        let inner = Inner { clock: Clock::new(), clients: Mutex::default(), processes: Mutex::default(), journal };
        Recorder { inner: Arc::new(inner) }
    }

    /// The client with a name. Keep the result, because the lookup takes longer than recording a call.
    pub fn client(&self, name: &str) -> Client<O, A> {
        let mut clients = lock(&self.inner.clients);
        let log = match clients.get(name) {
            Some(log) => Arc::clone(log),
            None => {
                let calls = Mutex::new(Calls { calls: Vec::new(), idle: Vec::new() });
                let log = Arc::new(Log { name: name.to_owned(), calls });
                clients.insert(name.to_owned(), Arc::clone(&log));
                log
            }
        };
        Client { inner: Arc::clone(&self.inner), log }
    }

    /// The client name of a process number in the history.
    pub fn client_name(&self, process: u32) -> String {
        lock(&self.inner.processes).get(process as usize).cloned().unwrap_or_default()
    }

    /// The number of recorded calls, open ones included.
    pub fn len(&self) -> usize {
        lock(&self.inner.clients).values().map(|log| lock(&log.calls).calls.len()).sum()
    }

    /// Whether no call was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first error of writing the file, if any.
    pub fn journal_error(&self) -> Option<String> {
        self.inner.journal.as_ref().and_then(Journal::error)
    }
}

impl<O: Clone, A: Clone> Recorder<O, A> {
    /// The calls so far, by invocation. Open calls have an unknown outcome.
    ///
    /// # Errors
    /// If there are more calls than [`History`] takes.
    pub fn history(&self) -> Result<History<O, A>, HistoryError> {
        let mut calls: Vec<Call<O, A>> =
            lock(&self.inner.clients).values().flat_map(|log| lock(&log.calls).calls.clone()).collect();
        calls.sort_by_key(|call| (call.invoke, call.process));
        History::new(calls)
    }
}

/// A client that makes calls.
#[derive(Debug)]
pub struct Client<O, A> {
    inner: Arc<Inner<O, A>>,
    log: Arc<Log<O, A>>,
}

impl<O, A> Clone for Client<O, A> {
    fn clone(&self) -> Self {
        Client { inner: Arc::clone(&self.inner), log: Arc::clone(&self.log) }
    }
}

impl<O, A> Client<O, A> {
    /// Records that a call begins. Call it before anything is sent.
    pub fn invoke(&self, operation: O) -> Pending<O, A> {
        let mut log = lock(&self.log.calls);
        let process = log.idle.pop().unwrap_or_else(|| {
            let mut processes = lock(&self.inner.processes);
            processes.push(self.log.name.clone());
            processes.len() as u32 - 1
        });
        // From here on the call may have an effect, whatever happens to the thread.
        let invoke = match &self.inner.journal {
            Some(journal) => journal.invoke(process, &self.log.name, &operation, &self.inner.clock),
            None => self.inner.clock.now(),
        };
        let at = log.calls.len();
        log.calls.push(Call { process, operation, invoke, outcome: Outcome::Unknown });
        drop(log);
        Pending { inner: Arc::clone(&self.inner), log: Arc::clone(&self.log), at, process, ended: false }
    }
}

/// An open call. If it is dropped, its outcome is unknown.
#[derive(Debug)]
#[must_use = "a call that is dropped has an unknown outcome"]
pub struct Pending<O, A> {
    inner: Arc<Inner<O, A>>,
    log: Arc<Log<O, A>>,
    at: usize,
    process: u32,
    ended: bool,
}

impl<O, A> Pending<O, A> {
    /// Records the answer. Call it after the answer has arrived.
    pub fn ok(mut self, answer: A) {
        let mut log = lock(&self.log.calls);
        let returned = match &self.inner.journal {
            Some(journal) => {
                let operation = &log.calls[self.at].operation;
                journal.ok(self.process, &self.log.name, operation, &answer, &self.inner.clock)
            }
            None => self.inner.clock.now(),
        };
        log.calls[self.at].outcome = Outcome::Completed { returned, answer };
        log.idle.push(self.process);
        drop(log);
        self.ended = true;
    }

    /// Records that the call certainly had no effect and never will. A timeout does not show that.
    pub fn failed(mut self) {
        let mut log = lock(&self.log.calls);
        if let Some(journal) = &self.inner.journal {
            journal.failed(self.process, &self.log.name, &log.calls[self.at].operation, &self.inner.clock);
        }
        log.calls[self.at].outcome = Outcome::Failed;
        log.idle.push(self.process);
        drop(log);
        self.ended = true;
    }

    /// Records an unknown outcome, like dropping the call.
    pub fn unknown(self) {}
}

impl<O, A> Drop for Pending<O, A> {
    fn drop(&mut self) {
        if !self.ended {
            // The outcome is unknown already. The process may continue; the call stays open forever.
            lock(&self.log.calls).idle.push(self.process);
        }
    }
}

/// A source of recorded calls.
pub trait Recording<O: Clone, A: Clone> {
    /// The recorded calls.
    ///
    /// # Errors
    /// If they do not form a history.
    fn calls(&self) -> Result<Cow<'_, History<O, A>>, HistoryError>;

    /// The name of a process in reports.
    fn name(&self, process: u32) -> String {
        format!("process {process}")
    }
}

impl<O: Clone, A: Clone> Recording<O, A> for History<O, A> {
    fn calls(&self) -> Result<Cow<'_, History<O, A>>, HistoryError> {
        Ok(Cow::Borrowed(self))
    }
}

impl<O: Clone, A: Clone> Recording<O, A> for Recorder<O, A> {
    fn calls(&self) -> Result<Cow<'_, History<O, A>>, HistoryError> {
        self.history().map(Cow::Owned)
    }

    fn name(&self, process: u32) -> String {
        self.client_name(process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_recorded_from_its_invocation_on_and_open_until_somebody_says_more() {
        let recorder: Recorder<&str, u32> = Recorder::new();
        let client = recorder.client("a");
        let open = client.invoke("open");
        client.invoke("answered").ok(7);
        client.invoke("failed").failed();
        drop(client.invoke("dropped"));
        let history = recorder.history().expect("one client at several things at once is several processes");
        let of = |operation| history.calls().iter().find(|call| call.operation == operation).expect("a call");
        assert_eq!(of("open").outcome, Outcome::Unknown);
        assert!(
            matches!(of("answered").outcome, Outcome::Completed { answer: 7, returned } if returned >= of("answered").invoke)
        );
        assert_eq!(of("failed").outcome, Outcome::Failed);
        assert_eq!(of("dropped").outcome, Outcome::Unknown);
        assert_ne!(of("open").process, of("answered").process);
        assert_eq!(recorder.client_name(of("open").process), "a");
        open.ok(1);
        assert_eq!(recorder.len(), 4);
    }

    #[test]
    fn a_panic_while_a_call_is_open_leaves_it_unknown() {
        let recorder: Recorder<u32, u32> = Recorder::new();
        let other = recorder.clone();
        std::thread::spawn(move || {
            let _call = other.client("a").invoke(1);
            panic!("the client dies");
        })
        .join()
        .unwrap_err();
        assert_eq!(recorder.history().unwrap().calls()[0].outcome, Outcome::Unknown);
    }

    #[test]
    fn threads_record_into_one_history() {
        let recorder: Recorder<u32, u32> = Recorder::new();
        std::thread::scope(|scope| {
            for client in 0..8 {
                let recorder = recorder.clone();
                scope.spawn(move || {
                    let client = recorder.client(&format!("client {client}"));
                    (0..1_000).for_each(|n| client.invoke(n).ok(n));
                });
            }
        });
        let history = recorder.history().unwrap();
        assert_eq!(history.calls().len(), 8_000);
        assert!(history.calls().is_sorted_by_key(|call| call.invoke));
    }
}
