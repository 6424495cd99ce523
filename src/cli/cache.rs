//! `--cache`: keeps parsed evidence in containers and reuses it while the files are unchanged.
//!
//! A container stores the request that it answers, as text: this program, the files in order with their declarations, and the
//! options that decide what is read. Each file has its path, size, times and a digest of 64 places of its content (all of it up
//! to 1 MiB). A container is used only for exactly the same text. The cache is optional: its errors are warnings, and the
//! evidence is read instead.

use super::console::tell;
use super::container_file;
use super::output::Draft;
use super::plan::Input;
use crate::history::History;
use crate::history::snapshot::{self, Packing};
use crate::ingest::{self, InputFile};
use anyhow::{Context, anyhow};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Number of containers to keep, by last use.
const MAX_CONTAINERS: usize = 32;

/// The place of one container.
#[derive(Debug)]
pub struct Cache {
    question: String,
    path: PathBuf,
}

impl Cache {
    /// The place for an input. Identifies the input's files. `None`, with the reason on standard error, if there can be no place.
    pub fn of(input: &mut Input) -> Option<Cache> {
        ingest::identify(&mut input.files);
        let found = question(input).and_then(|question| {
            let mut hasher = DefaultHasher::new();
            question.hash(&mut hasher);
            let path = folder(|name| std::env::var_os(name))
                .context("no folder for a cache is known: set RETROGRADE_CACHE_DIR")?
                .join(format!("{:016x}.rgh", hasher.finish()));
            Ok(Cache { question, path })
        });
        found.map_err(|error| tell(format_args!("warning: --cache is not used: {error:#}"))).ok()
    }

    /// The kept histories, if there are any.
    pub fn find(&self, input: &Input) -> Option<Vec<History>> {
        let file = match open_own(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tell(format_args!("warning: {} is of no use: {error}", self.path.display()));
                return None;
            }
        };
        match snapshot::read(&mut BufReader::new(&file), &input.read.fields, None) {
            Ok(unpacked) if unpacked.request == self.question => {
                // The modification time orders containers by last use.
                file.set_modified(SystemTime::now()).ok();
                Some(unpacked.histories)
            }
            Ok(_) => None,
            Err(error) => {
                tell(format_args!("warning: {} is of no use: {error}", self.path.display()));
                None
            }
        }
    }

    /// Keeps histories, unless a file changed during reading.
    pub fn keep(&self, input: &Input, histories: &[History]) {
        if let Err(error) = self.try_to_keep(input, histories) {
            tell(format_args!("warning: --cache could not keep what was read: {error:#}"));
        }
    }

    fn try_to_keep(&self, input: &Input, histories: &[History]) -> anyhow::Result<()> {
        if let Some(file) = container_file::changed(histories).first() {
            return Err(anyhow!("{} changed during reading", file.shown));
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        make_private(folder).with_context(|| format!("making {}", folder.display()))?;
        let packing = Packing { fields: &input.read.fields, request: &self.question, compress: true };
        let cannot = || format!("cannot write {}", self.path.display());
        let mut draft = Draft::private(&self.path).with_context(cannot)?;
        container_file::write(draft.file(), histories, &packing)?;
        draft.put(&self.path).map_err(|(error, _)| error).with_context(cannot)?;
        remove_old(folder, MAX_CONTAINERS);
        Ok(())
    }
}

/// The request text: everything that decides what is read.
fn question(input: &Input) -> anyhow::Result<String> {
    let mut question = format!("retrograde {}\n", env!("CARGO_PKG_VERSION"));
    // A rebuilt program may read differently, so it counts as another program.
    let program = std::env::current_exe().context("this program")?;
    writeln!(question, "{}", outside(&program)?)?;
    writeln!(question, "{} {}", input.read.block_bytes, input.read.max_line_bytes)?;
    writeln!(question, "{:?} {:016x}", input.domains.overrides, input.read.fields.fingerprint())?;
    writeln!(question, "{:?}", input.read.functions)?;
    let mut opener = ingest::Opener::default();
    for file in &input.files {
        let identity = file.identity;
        if identity.is_none() && !file.beginning.is_passed_over() {
            return Err(anyhow!("{} can be read only once", file.shown));
        }
        if opener.is_container(file) {
            return Err(anyhow!("{} is packed already", file.shown));
        }
        let InputFile { shown, source, format, member, .. } = file;
        writeln!(question, "{shown:?} {source:?} {format:?} {member:?} {identity:?} {}", outside(&file.path)?)?;
    }
    Ok(question)
}

/// An input file: its path and file system metadata.
fn outside(path: &Path) -> anyhow::Result<String> {
    let context = || path.display().to_string();
    let (real, data) = (path.canonicalize().with_context(context)?, path.metadata().with_context(context)?);
    let text = format!("{real:?} {} {:?}", data.len(), data.modified().ok());
    #[cfg(unix)]
    let text = {
        // No program can set this time (of any change to the inode).
        use std::os::unix::fs::MetadataExt;
        format!("{text} {} {} {}.{:09}", data.dev(), data.ino(), data.ctime(), data.ctime_nsec())
    };
    Ok(text)
}

/// The folder of containers: `RETROGRADE_CACHE_DIR`, or one in the system's cache folder.
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
    set("RETROGRADE_CACHE_DIR")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|path| path.join("retrograde")))
        .or_else(|| absolute("LOCALAPPDATA").map(|path| path.join("retrograde").join("cache")))
        .or_else(|| absolute("HOME").map(|path| path.join(".cache").join("retrograde")))
}

/// Opens a container only if no other user can have written it. Follows no symbolic link and waits for no pipe.
#[cfg(unix)]
fn open_own(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let data = file.metadata()?;
    let writable_by_others = data.mode() & 0o022 != 0;
    if !data.is_file() || data.uid() != rustix::process::geteuid().as_raw() || writable_by_others {
        return Err(io::Error::other("it is not a file that only the present user can have written"));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open_own(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Makes a private folder, since containers hold names from the evidence.
fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Removes all containers but the `kept` last used ones.
fn remove_old(folder: &Path, kept: usize) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let ours = entries.filter(|path| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or("");
        let named = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        named && path.extension().is_some_and(|extension| extension == "rgh")
    });
    let mut ours: Vec<_> =
        ours.filter_map(|path| Some((path.symlink_metadata().ok()?.modified().ok()?, path))).collect();
    ours.sort_unstable();
    let many = ours.len().saturating_sub(kept);
    for (_, path) in ours.drain(..many) {
        fs::remove_file(path).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_folder_is_the_named_one_or_that_of_the_system() {
        let folder = |known: &[(&str, &str)]| {
            folder(|name| known.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
        };
        assert_eq!(folder(&[("RETROGRADE_CACHE_DIR", "c"), ("HOME", "/h")]), Some("c".into()));
        assert_eq!(folder(&[("RETROGRADE_CACHE_DIR", ""), ("HOME", "/h")]), Some("/h/.cache/retrograde".into()));
        // The XDG base directory specification ignores relative paths.
        assert_eq!(folder(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), Some("/h/.cache/retrograde".into()));
        assert_eq!(folder(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some("/x/retrograde".into()));
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn the_containers_that_were_used_last_are_kept_and_other_files_are_left_alone() {
        let folder = std::env::temp_dir().join(format!("retrograde-cache-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        make_private(&folder).unwrap();
        let names: Vec<String> = (0..6).map(|n| format!("{n:016x}.rgh")).collect();
        for (n, name) in names.iter().enumerate() {
            let file = File::create(folder.join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs((n as u64 * 5) % 6)).unwrap();
        }
        for other in ["notes.txt", "incident.rgh"] {
            fs::write(folder.join(other), "x").unwrap();
        }
        remove_old(&folder, 2);
        let mut left: Vec<String> =
            fs::read_dir(&folder).unwrap().flatten().map(|e| e.file_name().into_string().unwrap()).collect();
        left.sort();
        // The times were 0, 5, 4, 3, 2, 1.
        assert_eq!(left, [&names[1], &names[2], "incident.rgh", "notes.txt"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
