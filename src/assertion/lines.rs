//! JSON lines that several threads append as events happen. A line is one write, so only the last line of a file can be cut off.

use serde_json::{Map, Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A panicking thread must not lose the recording, so poisoning is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A monotonic clock in nanoseconds since 1970. An earlier reading is earlier in every thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begin: Instant,
    epoch: i64,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { begin: Instant::now(), epoch: i64::try_from(now.as_nanos()).unwrap_or(0) }
    }

    pub(crate) fn now(&self) -> i64 {
        self.epoch.saturating_add(i64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(i64::MAX))
    }
}

/// A growing sequence of lines. Each line is one write: it is complete or, at the end of a file, cut off.
#[derive(Debug)]
pub(crate) struct Lines {
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    place: Place,
    error: Option<String>,
}

#[derive(Debug)]
enum Place {
    /// A file that is created with its first line.
    Later(PathBuf),
    File(File),
    Memory(Vec<u8>),
}

impl Lines {
    /// Creates a file with a heading. The file must not exist: a recording is never overwritten.
    pub(crate) fn create(path: &Path, heading: &Map<String, Value>) -> io::Result<Lines> {
        let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
        file.write_all(line(heading)?.as_bytes())?;
        Ok(Lines::at(Place::File(file)))
    }

    /// A file without a heading, created with its folder when the first line is written.
    pub(crate) fn later(path: PathBuf) -> Lines {
        Lines::at(Place::Later(path))
    }

    /// Lines in memory.
    pub(crate) fn in_memory() -> Lines {
        Lines::at(Place::Memory(Vec::new()))
    }

    fn at(place: Place) -> Lines {
        Lines { written: Mutex::new(Written { place, error: None }) }
    }

    /// The lines in memory; empty for a file.
    pub(crate) fn content(&self) -> Vec<u8> {
        match &lock(&self.written).place {
            Place::Memory(bytes) => bytes.clone(),
            Place::Later(_) | Place::File(_) => Vec::new(),
        }
    }

    /// Appends a value as a line.
    pub(crate) fn append(&self, value: &Value) {
        let mut written = lock(&self.written);
        let done = serde_json::to_string(value).map_err(io::Error::from).and_then(|text| written.line(text + "\n"));
        written.note(done);
    }

    /// Appends a line with its time in `at`, and returns the time. The clock is read under the lock, so lines are in order of
    /// time.
    pub(crate) fn write(&self, fields: serde_json::Result<Map<String, Value>>, clock: &Clock) -> i64 {
        let mut written = lock(&self.written);
        let at = clock.now();
        let done = fields.map_err(io::Error::from).and_then(|mut fields| {
            fields.insert("at".to_owned(), json!(at));
            written.line(line(&fields)?)
        });
        written.note(done);
        at
    }

    /// The first error of a write, if any.
    pub(crate) fn error(&self) -> Option<String> {
        lock(&self.written).error.clone()
    }
}

impl Written {
    fn line(&mut self, line: String) -> io::Result<()> {
        if let Place::Later(path) = &self.place {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            self.place = Place::File(OpenOptions::new().append(true).create_new(true).open(path)?);
        }
        match &mut self.place {
            Place::File(file) => file.write_all(line.as_bytes()),
            Place::Memory(bytes) => {
                bytes.extend_from_slice(line.as_bytes());
                Ok(())
            }
            Place::Later(_) => Ok(()),
        }
    }

    fn note(&mut self, done: io::Result<()>) {
        if let Err(error) = done {
            self.error.get_or_insert(error.to_string());
        }
    }
}

fn line(fields: &Map<String, Value>) -> io::Result<String> {
    Ok(serde_json::to_string(fields)? + "\n")
}
