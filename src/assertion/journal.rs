//! The journal of a recording: JSON lines of `docs/formats.md`. A line is written before a call is sent and after it was
//! answered, so the file of a killed process still shows its open calls.

use super::lines::{Clock, Lines};
use crate::search::{Call, History, HistoryError, Outcome};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The writer of a journal.
pub(super) struct Journal<O, A> {
    lines: Lines,
    operation: fn(&O) -> serde_json::Result<Value>,
    answer: fn(&A) -> serde_json::Result<Value>,
}

impl<O, A> std::fmt::Debug for Journal<O, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Journal")
    }
}

impl<O: Serialize, A: Serialize> Journal<O, A> {
    /// Creates a journal in a new file.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let heading = [("kind", json!("operations")), ("version", json!(1)), ("clock", json!("recorder"))];
        let heading = heading.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        Ok(Journal {
            lines: Lines::create(path, &heading)?,
            operation: |operation| serde_json::to_value(operation),
            answer: |answer| serde_json::to_value(answer),
        })
    }
}

impl<O, A> Journal<O, A> {
    pub(super) fn error(&self) -> Option<String> {
        self.lines.error()
    }

    pub(super) fn invoke(&self, process: u32, client: &str, operation: &O, clock: &Clock) -> i64 {
        self.write(process, client, "invoke", operation, None, clock)
    }

    pub(super) fn ok(&self, process: u32, client: &str, operation: &O, answer: &A, clock: &Clock) -> i64 {
        self.write(process, client, "ok", operation, Some(answer), clock)
    }

    pub(super) fn failed(&self, process: u32, client: &str, operation: &O, clock: &Clock) {
        self.write(process, client, "fail", operation, None, clock);
    }

    fn write(&self, process: u32, client: &str, kind: &str, operation: &O, answer: Option<&A>, clock: &Clock) -> i64 {
        let line = (self.operation)(operation).and_then(|operation| {
            let mut line = Map::new();
            line.insert("process".to_owned(), json!(format!("{client}/{process}")));
            line.insert("type".to_owned(), json!(kind));
            split(operation, &mut line);
            if let Some(answer) = answer {
                line.insert("result".to_owned(), (self.answer)(answer)?);
            }
            Ok(line)
        });
        self.lines.write(line, clock)
    }
}

/// Splits an operation, as serde writes it, into the fields of a line. [`join`] is the inverse.
fn split(operation: Value, line: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Value| line.insert(name.to_owned(), value);
    match operation {
        Value::String(op) => {
            put("op", Value::String(op));
        }
        Value::Object(mut variant) if variant.len() == 1 => {
            let op = variant.keys().next().cloned().unwrap_or_default();
            let held = variant.remove(&op).unwrap_or_default();
            put("op", Value::String(op));
            match held {
                Value::Object(mut fields)
                    if fields.contains_key("key") && fields.keys().all(|name| name == "key" || name == "value") =>
                {
                    put("key", fields.remove("key").unwrap_or_default());
                    if let Some(value) = fields.remove("value") {
                        put("value", value);
                    }
                }
                value => {
                    put("value", value);
                }
            }
        }
        other => {
            put("op", json!("call"));
            put("value", other);
            put("plain", json!(true));
        }
    }
}

/// The operation of a line in serde's form.
fn join(line: &Map<String, Value>) -> Value {
    let get = |name: &str| line.get(name).cloned();
    if get("plain") == Some(Value::Bool(true)) {
        return get("value").unwrap_or_default();
    }
    let op = line.get("op").and_then(Value::as_str).unwrap_or_default().to_owned();
    let held = match (get("key"), get("value")) {
        (None, None) => return Value::String(op),
        (None, Some(value)) => value,
        (Some(key), None) => json!({ "key": key }),
        (Some(key), Some(value)) => json!({ "key": key, "value": value }),
    };
    Value::Object(Map::from_iter([(op, held)]))
}

/// The reason why a file is not a recording.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct JournalError(#[from] Flaw);

#[derive(Debug, thiserror::Error)]
enum Flaw {
    #[error("cannot read the recording: {0}")]
    Read(#[from] io::Error),
    #[error("line {line}: {why}")]
    Line { line: usize, why: String },
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl JournalError {
    /// Whether the file could not be read.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.0, Flaw::Read(_))
    }

    /// Whether the file has a line that no recorder writes, or calls that are no history.
    pub fn is_foreign(&self) -> bool {
        !self.is_unreadable()
    }
}

/// Reads a recording that [`super::Recorder::in_file`] wrote, complete or cut off at any point. A last line that is cut off
/// counts as not written, which leaves its call open.
///
/// # Errors
/// If the file cannot be read or was not written by a recorder.
pub fn replay<O: DeserializeOwned, A: DeserializeOwned>(path: impl AsRef<Path>) -> Result<History<O, A>, JournalError> {
    Ok(read(BufReader::new(File::open(path).map_err(Flaw::Read)?))?)
}

fn read<O: DeserializeOwned, A: DeserializeOwned>(mut file: impl BufRead) -> Result<History<O, A>, Flaw> {
    let mut calls: Vec<Call<O, A>> = Vec::new();
    let mut open: FxHashMap<u32, usize> = FxHashMap::default();
    let mut text = Vec::new();
    for number in 1.. {
        text.clear();
        // A line without its end was cut off when the process died.
        if file.read_until(b'\n', &mut text)? == 0 || text.last() != Some(&b'\n') {
            break;
        }
        let wrong = |why: String| Flaw::Line { line: number, why };
        let line: Map<String, Value> = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if line.contains_key("kind") {
            continue;
        }
        let process = line.get("process").and_then(Value::as_str).and_then(|name| name.rsplit_once('/'));
        let process: u32 = process
            .and_then(|(_, number)| number.parse().ok())
            .ok_or_else(|| wrong("expected a process as CLIENT/NUMBER in `process`, found none".to_owned()))?;
        let at = line
            .get("at")
            .and_then(Value::as_i64)
            .ok_or_else(|| wrong("expected a time in `at`, found none".to_owned()))?;
        let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "invoke" {
            let operation = serde_json::from_value(join(&line)).map_err(|error| wrong(error.to_string()))?;
            open.insert(process, calls.len());
            calls.push(Call { process, operation, invoke: at, outcome: Outcome::Unknown });
            continue;
        }
        let call = open
            .remove(&process)
            .ok_or_else(|| wrong(format!("expected an open call of process {process}, found none")))?;
        calls[call].outcome = match kind {
            "ok" => {
                let answer = line.get("result").cloned().unwrap_or_default();
                let answer = serde_json::from_value(answer).map_err(|error| wrong(error.to_string()))?;
                Outcome::Completed { returned: at, answer }
            }
            "fail" => Outcome::Failed,
            other => return Err(wrong(format!("expected a type of ok or fail, found {other:?}"))),
        };
    }
    Ok(History::new(calls)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assertion::Recorder;
    use serde::Deserialize;
    use std::path::PathBuf;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Operation {
        Read,
        Write(u64),
        Put { key: String, value: String },
        Get { key: String },
        Range { from: u64, to: u64 },
        Nothing(Option<u64>),
    }

    fn place(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("retrograde-{name}-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn a_recording_cut_off_anywhere_is_a_history_in_which_less_is_known() {
        let path = place("cut");
        let recorder: Recorder<Operation, Option<u64>> = Recorder::in_file(&path).unwrap();
        let (a, b) = (recorder.client("a"), recorder.client("b/c"));
        a.invoke(Operation::Write(7)).ok(None);
        let open = b.invoke(Operation::Put { key: "x".to_owned(), value: "1".to_owned() });
        a.invoke(Operation::Read).ok(Some(7));
        a.invoke(Operation::Get { key: "x".to_owned() }).failed();
        a.invoke(Operation::Range { from: 1, to: 2 }).ok(None);
        a.invoke(Operation::Nothing(None)).ok(None);
        drop(open);
        assert_eq!(recorder.journal_error(), None);
        let whole = std::fs::read(&path).unwrap();
        let read = replay::<Operation, Option<u64>>(&path).unwrap();
        let recorded = recorder.history().unwrap();
        let plain = |history: &History<Operation, Option<u64>>| {
            let mut calls: Vec<_> = history.calls().iter().map(|c| format!("{c:?}")).collect();
            calls.sort();
            calls
        };
        assert_eq!(plain(&read), plain(&recorded));
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let cut = replay::<Operation, Option<u64>>(&path).unwrap();
            assert!(cut.calls().len() <= recorded.calls().len());
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_existing_recording_is_never_overwritten_and_a_foreign_line_is_named() {
        let path = place("exists");
        std::fs::write(&path, "{\"process\":\"a/0\",\"type\":\"ok\",\"op\":\"read\",\"at\":1}\n").unwrap();
        assert!(Recorder::<Operation, u64>::in_file(&path).is_err());
        let error = replay::<Operation, u64>(&path).unwrap_err();
        assert!(error.is_foreign() && !error.is_unreadable());
        assert_eq!(error.to_string(), "line 1: expected an open call of process 0, found none");
        std::fs::remove_file(&path).unwrap();
    }
}
