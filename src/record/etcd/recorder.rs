//! The recorder of etcd calls and its recordings.

use super::call::EtcdCall;
use super::client_record::{ClientRecord, Files, Shared};
use super::watches::EtcdWatches;
use crate::assertion::lines::{Lines, lock};
use crate::assertion::{ClaimError, Evidence};
use crate::history::{self, Domains, History};
use crate::ingest::{self, FileId, InputError, InputFile};
use crate::model::declaration::Declarations;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Records requests of etcd clients and their answers, as messages of etcd's gRPC interface. Clones record into the
/// same history.
///
/// Times are from one monotonic clock. A history is judged like a report of etcd's robustness suite. So the store
/// must be empty at the start: earlier revisions would have no writer. Only changes in answers and watches are known;
/// a watch over all keys from revision 1 on delivers all of them.
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

/// A client of etcd. It may have any number of calls at once.
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
    /// A new recording in memory.
    pub fn new() -> Self {
        EtcdRecorder::at(None)
    }

    /// A recording in a folder, written continuously: each call before it is sent, and again after its answer. The
    /// folder survives the process; [`replay`] and `retrograde check` read it.
    ///
    /// # Errors
    /// If the folder cannot be created or is not empty: two recordings must not mix.
    pub fn in_folder(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)?;
        if fs::read_dir(&path)?.next().is_some() {
            let text = format!(
                "expected an empty folder for a recording, found files in {}; name a new folder",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(EtcdRecorder::at(Some(path)))
    }

    fn at(folder: Option<PathBuf>) -> Self {
        let inner = Inner { shared: Arc::new(Shared::new()), folder, clients: Mutex::default() };
        EtcdRecorder { inner: Arc::new(inner) }
    }

    /// The client with a name; the same name continues the same client.
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

    /// The first error of writing the recording.
    pub fn error(&self) -> Option<String> {
        lock(&self.inner.clients).values().find_map(|files| files.operations.error().or(files.watches.error()))
    }

    /// The recording so far. Calls in progress have an unknown outcome.
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
    fn judged<R>(&self, _: &Declarations, judge: impl FnOnce(&[History]) -> R) -> Result<R, ClaimError> {
        Ok(judge(&[self.history()]))
    }
}

/// Reads a recording of [`EtcdRecorder::in_folder`], whole or cut off anywhere. An incomplete last line counts as not
/// written, which leaves its call in progress. Files of etcd members in the folder (`server-NAME/member/...`) are
/// read with it.
///
/// # Errors
/// If the folder does not exist.
pub fn replay(folder: impl AsRef<Path>) -> Result<History, InputError> {
    let mut inputs = ingest::inputs(&[folder.as_ref().to_owned()], &[], &[])?;
    for input in inputs.iter_mut().filter(|input| input.path.extension().is_some_and(|end| end == "json")) {
        // A file that cannot be read becomes a problem when it is read again.
        let Ok(mut bytes) = fs::read(&input.path) else { continue };
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
            input.bytes = Some(bytes.into());
        }
    }
    // A client whose first line is incomplete has no evidence.
    inputs.retain(|input| input.bytes.as_ref().is_none_or(|bytes| !bytes.is_empty()));
    for (at, input) in (0..).zip(&mut inputs) {
        input.id = FileId(at);
    }
    Ok(read(inputs))
}

fn read(inputs: Vec<InputFile>) -> History {
    history::load(inputs, &crate::read_options(), &Domains::default(), &())
}

/// The folder of a client: its name in characters that every file system accepts.
fn folder_name(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut folder: String = name.chars().map(|c| if plain(c) { c } else { '_' }).take(100).collect();
    if folder != name {
        // A hash keeps names with the same replacement apart.
        folder = format!("{folder}-{:08x}", history::etcd::hash(name.as_bytes()));
    }
    format!("client-{folder}")
}

impl EtcdClient {
    /// Records a call with one answer, before it is sent. `path` is its gRPC path, such as `/etcdserverpb.KV/Put`;
    /// `message` is the protobuf message.
    pub fn call(&self, path: &str, message: &[u8]) -> EtcdCall {
        EtcdCall::begin(self.record.clone(), path, Some(message), self.record.now())
    }

    /// Records a call whose message cannot be decoded, such as a compressed one: it may change any key.
    pub fn call_unread(&self, path: &str) -> EtcdCall {
        EtcdCall::begin(self.record.clone(), path, None, self.record.now())
    }

    /// Begins a stream of the watch service.
    pub fn watches(&self) -> EtcdWatches {
        EtcdWatches::begin(self.record.clone())
    }
}
