//! Where recorded calls go.

use super::call::EtcdCall;
use super::client_record::{ClientRecord, Files, Shared};
use super::watches::EtcdWatches;
use crate::assertion::Evidence;
use crate::assertion::lines::{Lines, lock};
use crate::history::{self, Domains, History};
use crate::ingest::{self, FileId, InputError, InputFile};
use crate::model::declaration::Declarations;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Records what clients of etcd ask and are told, as messages of its gRPC interface. Clones record into the same history.
///
/// Times are of one monotonic clock. A history is judged like a report of etcd's robustness suite: the store has to be empty where
/// it begins, since the revisions before are nobody's, and it is known as far as answers and watches show it. A watch over all keys
/// from revision 1 on shows everything.
///
/// ```
/// use retrograde::{assert_consistent, assertion::Undecided, assertion::Claim, record::EtcdRecorder};
///
/// let recorder = EtcdRecorder::new();
/// // put k=7: the messages as they are sent, and as they are read
/// let call = recorder.client("ann").call("/etcdserverpb.KV/Put", b"\x0a\x01k\x12\x017");
/// call.answer(b"\x0a\x02\x18\x02"); // at revision 2
/// assert_consistent!(recorder);
/// ```
#[derive(Clone, Debug)]
pub struct EtcdRecorder {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    folder: Option<PathBuf>,
    clients: Mutex<BTreeMap<String, Arc<Files>>>,
}

/// Somebody who asks etcd, as often and as much at once as it likes.
#[derive(Clone, Debug)]
pub struct EtcdClient {
    record: ClientRecord,
}

const OPERATIONS: &str = "operations.json";
const WATCHES: &str = "watch.json";

impl Default for EtcdRecorder {
    fn default() -> Self {
        EtcdRecorder::new()
    }
}

impl EtcdRecorder {
    /// An empty recording, in memory.
    pub fn new() -> Self {
        EtcdRecorder::at(None)
    }

    /// A recording that is written into a folder as it goes: a call before it is sent, and again when it was answered. What the
    /// folder holds survives the process; [`replay`] reads it, and so does `retrograde check`.
    ///
    /// # Errors
    /// Where the folder cannot be made, or holds something: a recording is never mixed with another one.
    pub fn in_folder(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        if fs::read_dir(&path)?.next().is_some() {
            let text = format!("{} is not empty", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(EtcdRecorder::at(Some(path)))
    }

    fn at(folder: Option<PathBuf>) -> Self {
        let inner = Inner { shared: Arc::new(Shared::new()), folder, clients: Mutex::default() };
        EtcdRecorder { inner: Arc::new(inner) }
    }

    /// The client of a name.
    pub fn client(&self, name: &str) -> EtcdClient {
        let mut clients = lock(&self.inner.clients);
        let folder = folder_name(name);
        let files = clients.entry(folder.clone()).or_insert_with(|| {
            let lines = |file| match &self.inner.folder {
                Some(root) => Lines::later(root.join(&folder).join(file)),
                None => Lines::in_memory(),
            };
            Arc::new(Files { operations: lines(OPERATIONS), watches: lines(WATCHES) })
        });
        EtcdClient { record: ClientRecord::new(Arc::clone(&self.inner.shared), Arc::clone(files)) }
    }

    /// Why something could not be written, if anything could not.
    pub fn error(&self) -> Option<String> {
        lock(&self.inner.clients).values().find_map(|files| files.operations.error().or(files.watches.error()))
    }

    /// What was recorded so far. Calls that are still open are of unknown outcome.
    pub fn history(&self) -> History {
        if let Some(folder) = &self.inner.folder {
            return replay(folder).unwrap_or_default();
        }
        let mut inputs: Vec<InputFile> = Vec::new();
        for (name, files) in &*lock(&self.inner.clients) {
            for (file, lines) in [(OPERATIONS, &files.operations), (WATCHES, &files.watches)] {
                let content = lines.content();
                if !content.is_empty() {
                    let id = FileId(u32::try_from(inputs.len()).unwrap_or(u32::MAX));
                    inputs.push(InputFile::in_memory(id, &format!("{name}/{file}"), content));
                }
            }
        }
        read(inputs)
    }
}

impl Evidence for EtcdRecorder {
    fn judged<R>(&self, _: &Declarations, judge: impl FnOnce(&[History]) -> R) -> Result<R, String> {
        Ok(judge(&[self.history()]))
    }
}

/// Reads a recording of [`EtcdRecorder::in_folder`], whole or cut off anywhere: a last line that was cut counts as not written, which
/// leaves its call open. Files of etcd's members that were put into the folder (`server-NAME/member/...`) are read with it.
///
/// # Errors
/// Where there is no such folder.
pub fn replay(folder: impl AsRef<Path>) -> Result<History, InputError> {
    let mut inputs = ingest::inputs(&[folder.as_ref().to_owned()], &[], &[])?;
    for input in inputs.iter_mut().filter(|input| input.path.extension().is_some_and(|end| end == "json")) {
        // What cannot be read now will say so when it is read again.
        let Ok(mut bytes) = fs::read(&input.path) else { continue };
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
            input.bytes = Some(bytes.into());
        }
    }
    // Of a client that was cut off in its first line, nothing is known.
    inputs.retain(|input| input.bytes.as_ref().is_none_or(|bytes| !bytes.is_empty()));
    for (at, input) in (0..).zip(&mut inputs) {
        input.id = FileId(at);
    }
    Ok(read(inputs))
}

fn read(inputs: Vec<InputFile>) -> History {
    history::load(inputs, &crate::read_options(), &Domains::default(), &())
}

/// The folder of a client: its name, as far as every file system takes it.
fn folder_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut folder: String = name.chars().map(|c| if plain(c) { c } else { '_' }).take(100).collect();
    if folder != name {
        // Names that only look alike stay apart.
        folder = format!("{folder}-{:08x}", history::etcd::hash(name.as_bytes()));
    }
    format!("client-{folder}")
}

impl EtcdClient {
    /// Notes a call with one answer, before it is sent: its gRPC path, such as `/etcdserverpb.KV/Put`, and the protobuf message.
    pub fn call(&self, path: &str, message: &[u8]) -> EtcdCall {
        EtcdCall::begin(self.record.clone(), path, Some(message), self.record.now())
    }

    /// Notes a call of which the message cannot be read, such as a compressed one: it may change any key.
    pub fn call_unread(&self, path: &str) -> EtcdCall {
        EtcdCall::begin(self.record.clone(), path, None, self.record.now())
    }

    /// A stream of the watch service.
    pub fn watches(&self) -> EtcdWatches {
        EtcdWatches::begin(self.record.clone())
    }
}
