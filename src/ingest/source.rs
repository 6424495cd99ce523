//! What the user says about inputs, and the files that paths stand for.

use super::archive::{self, Member};
use super::beginning::{Beginning, Seen};
use super::format::Format;
use super::identity::Identity;
use super::position::FileId;
use super::stream;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// `--source 'GLOB:server=b,client=x,clock=c,cluster=k'`: what a file does not say about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRule {
    /// Matched against the end of the path; `*` stays within one name.
    pub glob: String,
    /// Server that wrote or answered.
    pub server: Option<String>,
    /// Client that saw it.
    pub client: Option<String>,
    /// Clock of its times.
    pub clock: Option<String>,
    /// Cluster that it is of. A history that was packed is of one.
    #[serde(skip)]
    pub cluster: Option<String>,
}

const KEYS: [&str; 4] = ["server=", "client=", "clock=", "cluster="];

impl SourceRule {
    /// Parses `GLOB:server=b,client=x,clock=c,cluster=k`.
    ///
    /// The glob ends at the first colon that a key follows, and a value at the first comma that a key follows: names of
    /// users contain both (`system:node:node-1`, `CN=admin,O=ops`).
    pub fn parse(text: &str) -> Result<SourceRule, String> {
        let starts_key = |rest: &str| KEYS.iter().any(|key| rest.starts_with(key));
        let colon = text
            .match_indices(':')
            .find(|(at, _)| starts_key(&text[at + 1..]))
            .ok_or_else(|| format!("`{text}` is not of the form GLOB:server=NAME,client=NAME,clock=NAME,cluster=NAME"))?
            .0;
        let mut rule = SourceRule { glob: text[..colon].to_owned(), ..SourceRule::default() };
        if rule.glob.is_empty() {
            return Err(format!("`{text}` has no path before the colon"));
        }
        let mut rest = &text[colon + 1..];
        while !rest.is_empty() {
            let end = rest.match_indices(',').find(|(at, _)| starts_key(&rest[at + 1..])).map_or(rest.len(), |m| m.0);
            let (key, value) = rest[..end].split_once('=').unwrap_or((&rest[..end], ""));
            let field = match key {
                "server" => &mut rule.server,
                "client" => &mut rule.client,
                "cluster" => &mut rule.cluster,
                _ => &mut rule.clock,
            };
            if value.is_empty() {
                return Err(format!("`{text}` gives no value to `{key}`"));
            }
            if field.replace(value.to_owned()).is_some() {
                return Err(format!("`{text}` gives `{key}` twice"));
            }
            rest = rest.get(end + 1..).unwrap_or("");
        }
        Ok(rule)
    }
}

/// One input with what the user said about it: a file, a pipe, standard input (`-`), or bytes in memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InputFile {
    /// Index in the list of inputs.
    pub id: FileId,
    /// Where it is.
    #[serde(serialize_with = "as_text")]
    pub path: PathBuf,
    /// The path as it is shown: as the user typed it, plus what a directory walk added.
    pub shown: String,
    /// The merged `--source` rules (a later rule wins field by field).
    pub source: SourceRule,
    /// `--format`, where one matched.
    pub format: Option<Format>,
    /// The content, where it is already in memory; the path is then only a name.
    #[serde(skip)]
    pub bytes: Option<Arc<[u8]>>,
    /// Which file of the archive at `path` it is, where it is one.
    pub member: Option<Member>,
    /// What its first bytes showed, where they were looked at.
    #[serde(skip)]
    pub beginning: Beginning,
    /// What it was when it was read, where somebody wants to know later whether it still is.
    pub identity: Option<Identity>,
    /// Whether it can no longer be read as it was: it belongs to a history that was packed, and has changed or is gone since.
    #[serde(skip)]
    pub gone: bool,
}

/// A path that is no text is stored as what comes nearest, where no file will be found.
fn as_text<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

impl InputFile {
    /// An input whose content is in memory.
    pub fn in_memory(id: FileId, name: &str, bytes: impl Into<Arc<[u8]>>) -> InputFile {
        InputFile {
            id,
            path: PathBuf::from(name),
            shown: name.to_owned(),
            bytes: Some(bytes.into()),
            ..InputFile::default()
        }
    }
}

/// Why a list of inputs cannot be made. Everything else that is wrong with an input is a
/// [`Problem`](super::Problem) of that input.
#[derive(Debug, Error)]
pub enum InputError {
    /// A path that the user named does not exist.
    #[error("{0}: no such file or directory")]
    NotFound(String),
}

/// The files that the paths stand for, in the order given; directories are walked in name order, and so are archives of tar,
/// whose files are inputs as if they were unpacked.
///
/// Hidden names are skipped inside directories, and so is what is neither a file nor a directory (a walk must not wait
/// for a pipe). A file that is reached twice is read once: evidence that is counted twice would contradict itself.
pub fn inputs(
    paths: &[PathBuf],
    sources: &[SourceRule],
    formats: &[(String, Format)],
) -> Result<Vec<InputFile>, InputError> {
    let mut walk = Walk { sources, formats, first: None, seen: HashSet::new(), files: Vec::new(), buffer: Vec::new() };
    for path in paths {
        let shown = path.to_string_lossy().into_owned();
        if shown == "-" {
            walk.push(path, shown, None);
            continue;
        }
        let known = fs::metadata(path);
        // A dangling link exists, and so does what may not be looked at.
        let missing = known.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        if missing && fs::symlink_metadata(path).is_err() {
            return Err(InputError::NotFound(shown));
        }
        match known {
            Ok(data) if data.is_dir() => walk.directory(path, &shown),
            Ok(data) if data.is_file() => walk.file(path, shown),
            _ => walk.push(path, shown, None),
        }
    }
    Ok(walk.files)
}

struct Walk<'a> {
    sources: &'a [SourceRule],
    formats: &'a [(String, Format)],
    /// The first path met, as it was named: alone, it need not be told from others, and finding out where it really is takes as
    /// long as reading a small file.
    first: Option<PathBuf>,
    /// Canonical paths met so far: ends symlink loops, and keeps a file from being read twice.
    seen: HashSet<PathBuf>,
    files: Vec<InputFile>,
    /// What beginnings of files are read into.
    buffer: Vec<u8>,
}

impl Walk<'_> {
    fn first_visit(&mut self, path: &Path) -> bool {
        match self.first.take() {
            Some(first) => self.seen.extend(fs::canonicalize(first)),
            None if self.seen.is_empty() => {
                self.first = Some(path.to_owned());
                return true;
            }
            None => {}
        }
        match fs::canonicalize(path) {
            Ok(real) => self.seen.insert(real),
            Err(_) => true,
        }
    }

    fn directory(&mut self, path: &Path, shown: &str) {
        // Own list instead of recursion: the depth of a directory tree is not ours to choose.
        let mut stack = vec![(path.to_owned(), shown.to_owned())];
        while let Some((path, shown)) = stack.pop() {
            let data = match fs::metadata(&path) {
                Ok(data) => data,
                Err(_) => {
                    self.push(&path, shown, None);
                    continue;
                }
            };
            if data.is_file() {
                self.file(&path, shown);
                continue;
            }
            if !data.is_dir() || !self.first_visit(&path) {
                continue;
            }
            let Ok(entries) = fs::read_dir(&path) else {
                self.push(&path, shown, None);
                continue;
            };
            let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
            names.sort();
            for name in names.into_iter().rev() {
                let text = name.to_string_lossy();
                if !text.starts_with('.') {
                    let shown = format!("{}/{text}", shown.trim_end_matches('/'));
                    stack.push((path.join(&name), shown));
                }
            }
        }
    }

    /// Adds a file, unless it was reached before; or the files of an archive, of which one that is damaged is an input as well,
    /// and will say so.
    fn file(&mut self, path: &Path, shown: String) {
        if !self.first_visit(path) {
            return;
        }
        let input = InputFile { path: path.to_owned(), ..InputFile::default() };
        let Ok(mut content) = stream::open(&input, &()) else { return self.push(path, shown, None) };
        let seen = Seen::at(&mut content, &mut self.buffer);
        if !archive::is_archive(&self.buffer) {
            self.push(path, shown, None);
            if let Some(file) = self.files.last_mut() {
                file.beginning = seen.into();
            }
            return;
        }
        let (members, fault) = archive::members(&mut io::Read::chain(&self.buffer[..], content));
        for member in members {
            let shown = format!("{shown}/{}", member.name);
            self.push(path, shown, Some(member));
        }
        if fault.is_some() {
            self.push(path, shown, None);
        }
    }

    fn push(&mut self, path: &Path, shown: String, member: Option<Member>) {
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
        let format = self.formats.iter().rev().find(|(glob, _)| matches_end(glob, &shown)).map(|(_, format)| *format);
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(InputFile {
            id,
            path: path.to_owned(),
            shown,
            source,
            format,
            bytes: None,
            member,
            beginning: Beginning::default(),
            identity: None,
            gone: false,
        });
    }
}

/// Whether the last names of the path match the names of the glob, one by one. A glob that starts with `/` must match
/// the whole path.
fn matches_end(glob: &str, path: &str) -> bool {
    let names = |text: &str| -> Vec<String> {
        text.split('/').filter(|name| !name.is_empty() && *name != ".").map(str::to_owned).collect()
    };
    let (glob_names, path_names) = (names(glob), names(path));
    let Some(skipped) = path_names.len().checked_sub(glob_names.len()) else { return false };
    if glob_names.is_empty() || (glob.starts_with('/') && (skipped > 0 || !path.starts_with('/'))) {
        return false;
    }
    glob_names.iter().zip(&path_names[skipped..]).all(|(glob, name)| matches_name(glob, name))
}

/// `*` stands for any text within one name: the parts between stars must appear in order.
fn matches_name(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_rule_may_name_users_that_contain_colons_and_commas() {
        let rule = SourceRule::parse("logs/kubelet*.jsonl:client=system:node:node-1,clock=n1").unwrap();
        assert_eq!(rule.glob, "logs/kubelet*.jsonl");
        assert_eq!(rule.client.as_deref(), Some("system:node:node-1"));
        assert_eq!(rule.clock.as_deref(), Some("n1"));
        let rule = SourceRule::parse("a.log:cluster=staging,client=CN=admin,O=ops,server=b").unwrap();
        assert_eq!(rule.cluster.as_deref(), Some("staging"));
        assert_eq!(rule.client.as_deref(), Some("CN=admin,O=ops"));
        assert_eq!(rule.server.as_deref(), Some("b"));
    }

    #[test]
    fn a_source_rule_without_glob_key_or_value_is_refused() {
        for text in ["", "a.log", "a.log:", "a.log:host=b", ":server=b", "a.log:server=", "a:server=b,server=c"] {
            assert!(SourceRule::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_glob_matches_whole_names_at_the_end_of_the_path() {
        for (glob, path, expected) in [
            ("audit-*.log", "/var/log/audit-b.log", true),
            ("audit-*.log", "/var/log/audit-b.log.gz", false),
            ("*.log", "a/b.log", true),
            ("b.log", "/x/ab.log", false),
            ("b/*", "a/b/c", true),
            ("a/*", "a/b/c", false),
            ("/a/*/c", "/a/b/c", true),
            ("/b/c", "/a/b/c", false),
            ("./b.log", "b.log", true),
            ("*", "x", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*a", "a", false),
            ("", "x", false),
        ] {
            assert_eq!(matches_end(glob, path), expected, "{glob} {path}");
        }
    }

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
        assert!(matches!(inputs(&["/no/such/path".into()], &[], &[]), Err(InputError::NotFound(_))));
        assert_eq!(inputs(&["-".into()], &[], &[]).unwrap()[0].shown, "-");
    }

    fn tempfile(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("retrograde-source-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }
}
