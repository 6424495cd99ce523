//! Lines of JSON that are written as things happen, by any thread.

use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A panicking test still wants what was recorded.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One monotonic clock that says nanoseconds since 1970: what it says was earlier was earlier, in whatever thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begin: Instant,
    epoch: i64,
}

impl Clock {
    pub(super) fn new() -> Clock {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { begin: Instant::now(), epoch: i64::try_from(now.as_nanos()).unwrap_or(0) }
    }

    pub(super) fn now(&self) -> i64 {
        self.epoch.saturating_add(i64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(i64::MAX))
    }
}

/// A new file that only grows. One line is one write: it is there whole or, at the very end, cut.
#[derive(Debug)]
pub(super) struct Lines {
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    file: File,
    error: Option<String>,
}

impl Lines {
    /// The file must not exist: a recording is never overwritten.
    pub(super) fn create(path: &Path, heading: &Map<String, Value>) -> io::Result<Lines> {
        let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
        file.write_all(line(heading)?.as_bytes())?;
        Ok(Lines { written: Mutex::new(Written { file, error: None }) })
    }

    /// Writes a line with its time in `at`; the time. It is taken under the lock: lines stand in the order of their times.
    pub(super) fn write(&self, fields: serde_json::Result<Map<String, Value>>, clock: &Clock) -> i64 {
        let mut written = lock(&self.written);
        let at = clock.now();
        let done = fields.map_err(io::Error::from).and_then(|mut fields| {
            fields.insert("at".to_owned(), json!(at));
            written.file.write_all(line(&fields)?.as_bytes())
        });
        if let Err(error) = done {
            written.error.get_or_insert(error.to_string());
        }
        at
    }

    /// Why a line is missing, where one is.
    pub(super) fn error(&self) -> Option<String> {
        lock(&self.written).error.clone()
    }
}

fn line(fields: &Map<String, Value>) -> io::Result<String> {
    Ok(serde_json::to_string(fields)? + "\n")
}
