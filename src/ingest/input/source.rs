//! Expands paths into the list of input files: directories, archives, symbolic links.
//!
//! Each file is listed once, since evidence counted twice would contradict itself. The order is fixed: as given, then
//! by name. Files that cannot be read become inputs with a problem, never an error here.

use super::archive::{self, Listing};
use super::collected;
use super::source_rule::{SourceRule, matches_end};
use super::stream;
use super::{InputFile, Member};
use crate::ingest::detection::format::Format;
use crate::ingest::detection::sniff::{Beginning, Seen, Unread};
use crate::ingest::limits::{DEEPEST_DIRECTORY, MOST_FILES, MOST_PATH_BYTES};
use crate::ingest::position::FileId;
use crate::ingest::problem::{Fault, count, size};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error that prevents a list of inputs. Every other error is a [`Problem`](crate::ingest::Problem) of its input.
#[derive(Debug, Error)]
#[error("{path}: {why}")]
pub struct InputError {
    path: String,
    why: Refusal,
}

#[derive(Debug, Error)]
enum Refusal {
    #[error("expected a file or a folder, found none: no such file or directory")]
    Missing,
    #[error("expected at most {MOST_FILES} files in all, found more; name fewer files")]
    TooMany,
    #[error("expected paths of at most {} in all, found more; name fewer files", size(MOST_PATH_BYTES as u64))]
    TooLong,
}

impl InputError {
    /// Whether a path that the caller named does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self.why, Refusal::Missing)
    }

    /// Whether folders and archives hold more files, or longer paths, than one run reads.
    pub fn is_too_many(&self) -> bool {
        matches!(self.why, Refusal::TooMany | Refusal::TooLong)
    }
}

/// Lists the files at the paths, in the order given. Directories are walked in name order; the members of tar
/// archives become inputs as if unpacked.
///
/// Hidden names are skipped inside directories. A pipe, socket or device there is counted and not read, since a walk
/// must not wait for a pipe. A file that is reached twice is listed once.
pub fn inputs(
    paths: &[PathBuf],
    sources: &[SourceRule],
    formats: &[(String, Format)],
) -> Result<Vec<InputFile>, InputError> {
    let mut walk =
        Walk { sources, formats, seen: HashSet::new(), files: Vec::new(), path_bytes: 0, buffer: Vec::new() };
    // Resolving a path takes as long as reading a small file, and a single file has no duplicate.
    let alone = paths.len() == 1;
    for path in paths {
        let shown = path.to_string_lossy().into_owned();
        if shown == "-" {
            walk.push(path, shown, None)?;
            continue;
        }
        let known = fs::metadata(path);
        // A dangling link exists, and so does a path without permission.
        let missing = known.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if missing && fs::symlink_metadata(path).is_err() {
            return Err(InputError { path: shown, why: Refusal::Missing });
        }
        match known {
            Ok(data) if data.is_dir() => walk.directory(path, shown)?,
            Ok(data) if data.is_file() => {
                if alone || walk.first_visit(real(path)) {
                    walk.file(path, shown)?;
                }
            }
            _ => walk.push(path, shown, None)?,
        }
    }
    Ok(walk.files)
}

struct Walk<'a> {
    sources: &'a [SourceRule],
    formats: &'a [(String, Format)],
    /// Canonical paths so far. They end symlink loops and prevent reading a file twice.
    seen: HashSet<PathBuf>,
    files: Vec<InputFile>,
    /// Bytes of all paths.
    path_bytes: usize,
    /// Buffer for samples.
    buffer: Vec<u8>,
}

/// A directory and its names that are not visited yet.
struct Directory {
    path: PathBuf,
    shown: String,
    /// Canonical path.
    real: PathBuf,
    names: std::vec::IntoIter<OsString>,
}

/// The canonical path; the path itself if it cannot be resolved.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

impl Walk<'_> {
    fn first_visit(&mut self, real: PathBuf) -> bool {
        self.seen.insert(real)
    }

    fn directory(&mut self, path: &Path, shown: String) -> Result<(), InputError> {
        // An own stack instead of recursion, since the input decides the depth. It holds only the directories around
        // the present one, as paths grow with the depth.
        let mut around: Vec<Directory> = Vec::new();
        around.extend(self.open(path.to_owned(), shown, real(path))?);
        while let Some(directory) = around.last_mut() {
            let Some(name) = directory.names.next() else {
                around.pop();
                continue;
            };
            let path = directory.path.join(&name);
            let shown = format!("{}/{}", directory.shown.trim_end_matches('/'), name.to_string_lossy());
            let own = fs::symlink_metadata(&path);
            let is_link = own.as_ref().is_ok_and(fs::Metadata::is_symlink);
            let Ok(data) = (if is_link { fs::metadata(&path) } else { own }) else {
                self.push(&path, shown, None)?;
                continue;
            };
            let place = if is_link { real(&path) } else { directory.real.join(&name) };
            if data.is_file() {
                if self.first_visit(place) {
                    self.file(&path, shown)?;
                }
            } else if data.is_dir() && around.len() == DEEPEST_DIRECTORY {
                let fault = Fault::new(
                    format!("at most {DEEPEST_DIRECTORY} nested directories (name an inner one)"),
                    "one more",
                );
                self.push_unread(&path, shown, Unread { faults: vec![fault], ignored: None })?;
            } else if data.is_dir() {
                around.extend(self.open(path, shown, place)?);
            } else if self.first_visit(place) {
                let ignored = Some("a pipe, a socket or a device inside a directory".to_owned());
                self.push_unread(&path, shown, Unread { faults: Vec::new(), ignored })?;
            }
        }
        Ok(())
    }

    /// Lists a directory by name, unless it was visited. A directory that cannot be listed becomes an input, which
    /// reports the error.
    fn open(&mut self, path: PathBuf, shown: String, real: PathBuf) -> Result<Option<Directory>, InputError> {
        if !self.first_visit(real.clone()) {
            return Ok(None);
        }
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(_) => return self.push(&path, shown, None).map(|()| None),
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) if entry.file_name().to_string_lossy().starts_with('.') => {}
                Ok(_) if names.len() == MOST_FILES => return Err(InputError { path: shown, why: Refusal::TooMany }),
                Ok(entry) => names.push(entry.file_name()),
                Err(error) => {
                    let unread = Unread { faults: vec![stream::unreadable(&error)], ignored: None };
                    self.push_unread(&path, shown.clone(), unread)?;
                    break;
                }
            }
        }
        names.sort_unstable();
        Ok(Some(Directory { path, shown, real, names: names.into_iter() }))
    }

    /// Adds a file, or the members of an archive. An archive that is not read completely is an input too, which
    /// reports why.
    fn file(&mut self, path: &Path, shown: String) -> Result<(), InputError> {
        let input = InputFile { path: path.to_owned(), ..InputFile::default() };
        let Ok(mut content) = stream::open(&input, &()) else { return self.push(path, shown, None) };
        let seen = Seen::at(&mut content, &mut self.buffer);
        if !archive::is_archive(&self.buffer) {
            return self.add(path, shown, None, seen.into());
        }
        let Listing { members, copies, faults } = archive::list(&mut io::Read::chain(&self.buffer[..], content));
        for member in members {
            let shown = format!("{shown}/{}", member.name);
            self.push(path, shown, Some(member))?;
        }
        if copies > 0 || !faults.is_empty() {
            let ignored = format!("{} to files that are read", count(copies, "hard link"));
            let ignored = faults.is_empty().then_some(ignored);
            self.push_unread(path, shown, Unread { faults, ignored })?;
        }
        Ok(())
    }

    fn push(&mut self, path: &Path, shown: String, member: Option<Member>) -> Result<(), InputError> {
        self.add(path, shown, member, Beginning::default())
    }

    fn push_unread(&mut self, path: &Path, shown: String, unread: Unread) -> Result<(), InputError> {
        self.add(path, shown, None, unread.into())
    }

    fn add(
        &mut self,
        path: &Path,
        shown: String,
        member: Option<Member>,
        beginning: Beginning,
    ) -> Result<(), InputError> {
        self.path_bytes += shown.len();
        if self.files.len() == MOST_FILES {
            return Err(InputError { path: shown, why: Refusal::TooMany });
        }
        if self.path_bytes > MOST_PATH_BYTES {
            return Err(InputError { path: shown, why: Refusal::TooLong });
        }
        let mut source = SourceRule::default();
        for rule in self.sources.iter().filter(|rule| matches_end(&rule.glob, &shown)) {
            source.glob.clone_from(&rule.glob);
            for (field, said) in [
                (&mut source.server, &rule.server),
                (&mut source.client, &rule.client),
                (&mut source.clock, &rule.clock),
                (&mut source.cluster, &rule.cluster),
            ] {
                if said.is_some() {
                    field.clone_from(said);
                }
            }
        }
        collected::complete(&mut source, &shown);
        let format = self.formats.iter().rev().find(|(glob, _)| matches_end(glob, &shown)).map(|(_, format)| *format);
        let id = FileId(self.files.len() as u32);
        self.files.push(InputFile {
            id,
            path: path.to_owned(),
            shown,
            source,
            format,
            bytes: None,
            member,
            beginning,
            identity: None,
            gone: false,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_source_rules_win_field_by_field_and_the_last_format_counts() {
        let folder = tempfile("rules");
        fs::write(folder.join("a.log"), "x").unwrap();
        let rules = [
            SourceRule::parse("*.log:server=a,clock=c").unwrap(),
            SourceRule::parse("a.log:server=b").unwrap(),
            SourceRule::parse("z.log:server=z").unwrap(),
        ];
        let formats = [("*".to_owned(), Format::Watch), ("*.log".to_owned(), Format::Audit)];
        let files = inputs(std::slice::from_ref(&folder), &rules, &formats).unwrap();
        assert_eq!(files[0].source.server.as_deref(), Some("b"));
        assert_eq!(files[0].source.clock.as_deref(), Some("c"));
        assert_eq!(files[0].format, Some(Format::Audit));
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_walk_goes_in_name_order_and_skips_hidden_files_loops_and_second_visits() {
        let folder = tempfile("walk");
        fs::create_dir_all(folder.join("b/inner")).unwrap();
        for name in ["c.log", "a.log", ".hidden", "b/inner/z.log", "b/y.log"] {
            fs::write(folder.join(name), "x").unwrap();
        }
        std::os::unix::fs::symlink(&folder, folder.join("b/loop")).unwrap();
        std::os::unix::fs::symlink(folder.join("a.log"), folder.join("d.log")).unwrap();
        std::os::unix::fs::symlink(folder.join("nowhere"), folder.join("e.log")).unwrap();
        let files = inputs(&[folder.clone(), folder.join("a.log")], &[], &[]).unwrap();
        let base = folder.to_string_lossy().into_owned();
        let names: Vec<&str> = files.iter().map(|file| file.shown.trim_start_matches(&base)).collect();
        assert_eq!(names, ["/a.log", "/b/inner/z.log", "/b/y.log", "/c.log", "/e.log"]);
        assert!(files.iter().enumerate().all(|(n, file)| file.id.0 as usize == n));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_a_path_that_does_not_exist_is_an_error() {
        let missing = inputs(&["/no/such/path".into()], &[], &[]).unwrap_err();
        assert!(missing.is_not_found() && !missing.is_too_many(), "{missing}");
        assert_eq!(inputs(&["-".into()], &[], &[]).unwrap()[0].shown, "-");
    }

    fn tempfile(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("retrograde-source-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }
}
