//! Output files. A file is written as a hidden draft and renamed when complete, and no file that is still needed is overwritten.

use super::console::UntilClosed;
use anyhow::{Context, bail};
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;

/// Limit on symbolic links in a row, that of Linux.
const MOST_LINKS: usize = 40;

/// The identity of a file, whatever its path: device and inode.
#[cfg(unix)]
pub type Id = (u64, u64);
/// The identity of a file: its canonical path.
#[cfg(not(unix))]
pub type Id = PathBuf;

/// The target of an output. Creating it writes nothing.
#[derive(Debug)]
pub struct Destination {
    /// The path as given.
    path: PathBuf,
    /// The path without symbolic links.
    real: PathBuf,
    /// The existing file, if any.
    id: Option<Id>,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Stdout,
    /// A draft replaces the existing file and takes its mode and owner.
    Replace(Option<Metadata>),
    /// The target is overwritten: a device, a pipe, or a file whose folder or owner forbids replacement.
    InPlace(File),
}

impl Destination {
    /// A path, `-` for standard output. Fails if it cannot be written, or if `kept` gives a reason to keep the existing file.
    pub fn of(path: &Path, kept: impl FnOnce(&Id) -> Option<&'static str>) -> anyhow::Result<Destination> {
        let cannot = || format!("cannot write {}", path.display());
        let mut to = Destination { path: path.to_owned(), real: PathBuf::new(), id: None, way: Way::Stdout };
        if is_stdout(path) {
            return Ok(to);
        }
        let (real, is_descriptor) = followed(path).with_context(cannot)?;
        to.real = real;
        let there = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Draft::beside(&to.real, None).with_context(cannot)?;
                to.way = Way::Replace(None);
                return Ok(to);
            }
            there => there.with_context(cannot)?,
        };
        to.id = id_of(path);
        if let Some(why) = to.id.as_ref().filter(|_| there.is_file()).and_then(kept) {
            bail!("{} is {why}; it will not be overwritten", path.display());
        }
        if !there.is_file() || is_descriptor {
            let file = File::options().append(true).open(path).with_context(cannot)?;
            to.way = Way::InPlace(file);
            return Ok(to);
        }
        if to.id.is_some() && to.id == stdout_id() {
            bail!("{} is where standard output goes; it will not be overwritten", path.display());
        }
        let file = File::options().write(true).open(path).with_context(cannot)?;
        to.way = match Draft::beside(&to.real, Some(&there)) {
            Ok(_) => Way::Replace(Some(there)),
            Err(_) => Way::InPlace(file),
        };
        Ok(to)
    }

    /// Whether it is standard output.
    pub fn is_stdout(&self) -> bool {
        matches!(self.way, Way::Stdout)
    }

    /// Whether both are the same file.
    pub fn is(&self, other: &Destination) -> bool {
        match (&self.id, &other.id) {
            (Some(id), Some(other)) => id == other,
            _ => self.real == other.real,
        }
    }

    /// Writes text to it: to a pipe or device directly, to a file completely or not at all.
    pub fn write(self, text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        let buffered = |out: &mut dyn Write| {
            let mut out = BufWriter::new(out);
            text(&mut out).and_then(|()| out.flush())
        };
        match &self.way {
            Way::Stdout => buffered(&mut UntilClosed(io::stdout().lock())).context("writing to standard output"),
            Way::InPlace(file) if !is_file(file) => buffered(&mut UntilClosed(file)).with_context(|| self.writing()),
            _ => {
                let path = self.path.clone();
                let write = |file: &mut File| buffered(file).with_context(|| format!("writing {}", path.display()));
                self.write_whole(write)
            }
        }
    }

    /// Writes a draft, and moves it to the path when complete.
    pub fn write_whole<T>(self, content: impl FnOnce(&mut File) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let cannot = || format!("cannot write {}", self.path.display());
        if let Way::Replace(old) = &self.way {
            let mut draft = Draft::beside(&self.real, old.as_ref()).with_context(cannot)?;
            let made = content(draft.file())?;
            // A file that is a mount point cannot be replaced.
            if let Err((error, mut draft)) = draft.put(&self.real) {
                let file = File::options().write(true).open(&self.real).map_err(|_| error).with_context(cannot)?;
                copy(draft.file(), file).with_context(|| self.writing())?;
            }
            return Ok(made);
        }
        let mut staged = tempfile::tempfile().context("cannot make a temporary file")?;
        let made = content(&mut staged)?;
        let copied = match &self.way {
            Way::InPlace(file) => file.try_clone().and_then(|file| copy(&mut staged, file)),
            _ => copy(&mut staged, UntilClosed(io::stdout().lock())),
        };
        copied.with_context(|| self.writing())?;
        Ok(made)
    }

    fn writing(&self) -> String {
        format!("writing {}", self.path.display())
    }
}

/// A target to copy a draft to if it cannot be renamed.
trait Target: Write {
    fn empty(&mut self) -> io::Result<()>;
}

impl Target for File {
    fn empty(&mut self) -> io::Result<()> {
        if is_file(self) { self.set_len(0).and_then(|()| self.rewind()) } else { Ok(()) }
    }
}

impl<W: Write> Target for UntilClosed<W> {
    fn empty(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn copy(from: &mut File, mut to: impl Target) -> io::Result<()> {
    from.rewind()?;
    to.empty()?;
    io::copy(from, &mut to)?;
    to.flush()
}

fn is_file(file: &File) -> bool {
    file.metadata().is_ok_and(|data| data.is_file())
}

/// The existing drafts.
static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn drafts() -> MutexGuard<'static, Vec<PathBuf>> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all drafts. Afterwards none can be made or moved into place, so the process must end.
pub fn abandon() {
    let drafts = drafts();
    for draft in &*drafts {
        let _ = fs::remove_file(draft);
    }
    std::mem::forget(drafts);
}

/// A hidden temporary file beside its target, readable by its owner only, and removed unless it is moved into place.
#[derive(Debug)]
pub struct Draft(Option<NamedTempFile>);

impl Draft {
    /// A draft beside `path`, with the mode and owner of `old`. Without `old`, the umask decides the mode.
    pub fn beside(path: &Path, old: Option<&Metadata>) -> io::Result<Draft> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        if old.is_none() {
            // The umask of the process applies, as to any new file.
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        }
        let mut draft = Draft::make(&mut builder, path)?;
        if let Some(old) = old {
            keep_owner(draft.file(), old)?;
            draft.file().set_permissions(old.permissions())?;
        }
        Ok(draft)
    }

    /// A draft of a file that only its owner may read.
    pub fn private(path: &Path) -> io::Result<Draft> {
        Draft::make(&mut tempfile::Builder::new(), path)
    }

    fn make(builder: &mut tempfile::Builder<'_, '_>, path: &Path) -> io::Result<Draft> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut drafts = drafts();
        let file = builder.prefix(".retrograde-").suffix(".part").tempfile_in(folder)?;
        drafts.push(file.path().to_owned());
        Ok(Draft(Some(file)))
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        self.0.as_mut().expect("a draft until it is put in its place").as_file_mut()
    }

    /// Moves it to its path, or returns it with the error.
    pub fn put(mut self, path: &Path) -> Result<(), (io::Error, Draft)> {
        let result = self.file().sync_all();
        let mut drafts = drafts();
        let Some(file) = self.0.take() else { return Ok(()) };
        let draft = file.path().to_owned();
        let result = match result {
            Ok(()) => file.persist(path).map(drop).map_err(|error| (error.error, error.file)),
            Err(error) => Err((error, file)),
        };
        if result.is_ok() {
            drafts.retain(|known| *known != draft);
        }
        drop(drafts);
        result.map_err(|(error, file)| (error, Draft(Some(file))))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(file) = self.0.take() {
            let mut drafts = drafts();
            drafts.retain(|known| *known != file.path());
            drop(file);
        }
    }
}

#[cfg(unix)]
fn keep_owner(draft: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = draft.metadata()?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(draft, Some(old.uid()), Some(old.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Whether a path is `-`, or names standard output otherwise, such as `/dev/stdout`.
pub fn is_stdout(path: &Path) -> bool {
    let is_its_name = || {
        let id = id_of(path).filter(|id| stdout_id().as_ref() == Some(id));
        id.is_some() && followed(path).is_ok_and(|(_, is_descriptor)| is_descriptor)
    };
    path.as_os_str() == "-" || is_its_name()
}

/// The target of a path through all symbolic links, which need not exist. Also whether it is an open file of a process
/// (`/proc/…/fd`), which a rename would not reach.
fn followed(path: &Path) -> io::Result<(PathBuf, bool)> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = folder.canonicalize()?;
        let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let real = folder.join(name);
        if real.starts_with("/proc") || real.starts_with("/dev/fd") {
            return Ok((real, true));
        }
        match fs::read_link(&real) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok((real, false)),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The identity of the file at a path.
#[cfg(unix)]
pub fn id_of(path: &Path) -> Option<Id> {
    fs::metadata(path).ok().map(|data| id(&data))
}

#[cfg(unix)]
fn id(data: &Metadata) -> Id {
    use std::os::unix::fs::MetadataExt;
    (data.dev(), data.ino())
}

#[cfg(unix)]
fn stdout_id() -> Option<Id> {
    use std::os::fd::AsFd;
    let file = File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    file.metadata().ok().map(|data| id(&data))
}

/// The identity of the file at a path.
#[cfg(not(unix))]
pub fn id_of(path: &Path) -> Option<Id> {
    path.canonicalize().ok()
}

#[cfg(not(unix))]
fn stdout_id() -> Option<Id> {
    None
}
