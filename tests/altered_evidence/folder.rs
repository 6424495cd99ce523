//! Folders of evidence from the repository, for alteration.

use crate::support::committed;
use retrograde::history::sketch;
use std::fs;
use std::path::Path;

/// A file by its path in the folder.
#[derive(Clone)]
pub struct File {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Files of one recording, with their `--source` values.
#[derive(Clone)]
pub struct Folder {
    pub files: Vec<File>,
    pub sources: Vec<String>,
}

/// Every folder, log and sketch of `histories/`, and each format sample as a folder of its own.
pub fn all() -> Vec<Folder> {
    let mut folders: Vec<Folder> = committed::evidence().iter().map(|path| recorded(path)).collect();
    folders.extend(committed::sketches().iter().map(|path| {
        let made = sketch::evidence(&fs::read_to_string(path).unwrap()).unwrap();
        let files = made.files.into_iter().map(|(name, content)| File { name, bytes: content.into_bytes() });
        Folder { files: files.collect(), sources: made.sources }
    }));
    let sample = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        // The files of an etcd report are recognised by their place in it.
        let place = match &*name {
            "etcd-operations.json" => "r/client-1/operations.json",
            "etcd-watches.json" => "r/client-2/watch.json",
            "etcd-traffic.json" => "r/traffic.json",
            "member.wal" => "r/server-a/member/wal/0-0.wal",
            "member.db" => "r/server-a/member/snap/db",
            other => other,
        };
        let bytes = fs::read(entry.path()).unwrap();
        Folder { files: vec![File { name: place.to_owned(), bytes }], sources: Vec::new() }
    };
    let entries = ["tests/samples", "tests/samples/exports"].map(|path| fs::read_dir(path).unwrap().flatten());
    let files = entries.into_iter().flatten().filter(|entry| entry.path().is_file());
    let mut samples: Vec<Folder> = files.map(sample).collect();
    samples.sort_by(|a, b| a.files[0].name.cmp(&b.files[0].name));
    folders.extend(samples);
    folders
}

/// The files at a path.
pub fn recorded(path: &Path) -> Folder {
    let mut files = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()));
            continue;
        }
        files.push(path);
    }
    files.sort();
    let root = if path.is_dir() { path } else { path.parent().unwrap() };
    let file = |path: &std::path::PathBuf| File {
        name: path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(),
        bytes: fs::read(path).unwrap(),
    };
    Folder { files: files.iter().map(file).collect(), sources: Vec::new() }
}

impl Folder {
    /// Writes the files below an empty path.
    pub fn write(&self, to: &Path) {
        let _ = fs::remove_dir_all(to);
        fs::create_dir_all(to).unwrap();
        for file in &self.files {
            let path = to.join(&file.name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, &file.bytes).unwrap();
        }
    }
}
