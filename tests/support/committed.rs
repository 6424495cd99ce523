//! The evidence in `histories/`, and in folders beside the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// Every folder below `histories/` with evidence, and each operation log by itself.
pub fn evidence() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from("histories")];
    while let Some(folder) = open.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        let is = |path: &&PathBuf, of: &[&str]| path.extension().is_some_and(|e| of.iter().any(|of| e == *of));
        let recorded = entries.iter().any(|path| is(&path, &["json"]) && !path.ends_with("expected.json"));
        let report = folder.extension().is_some_and(|e| e == "report");
        let whole = recorded || report || folder.join("story.sketch").exists();
        if whole {
            found.push(folder);
            continue;
        }
        found.extend(entries.iter().filter(|path| is(path, &["edn", "log", "jsonl"])).cloned());
        open.extend(entries.into_iter().filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

/// Every sketch below `histories/`.
pub fn sketches() -> Vec<PathBuf> {
    let mut sketches = Vec::new();
    let mut open = vec![PathBuf::from("histories")];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|e| e == "sketch") => sketches.push(path),
                false => {}
            }
        }
    }
    sketches.sort();
    sketches
}

/// The cases below a folder of captures with at most `most` bytes, and the number of larger ones. A case is an
/// archive, or a folder with evidence or client reports.
#[allow(dead_code)]
pub fn captures(folder: &Path, most: u64) -> (Vec<PathBuf>, usize) {
    let (mut cases, mut larger) = (Vec::new(), 0);
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let mut entries: Vec<PathBuf> = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path()).collect();
        entries.sort();
        let archives = entries.iter().filter(|path| path.to_string_lossy().ends_with(".tar.zst"));
        let found: Vec<PathBuf> = match archives.cloned().collect::<Vec<_>>() {
            none if none.is_empty() && entries.iter().any(|path| path.ends_with("expect.json")) => vec![folder],
            none if none.is_empty() => {
                open.extend(entries.into_iter().filter(|path| path.is_dir()));
                continue;
            }
            archives => archives,
        };
        for case in found {
            match bytes(&case) > most {
                true => larger += 1,
                false => cases.push(case),
            }
        }
    }
    cases.sort();
    (cases, larger)
}

fn bytes(path: &Path) -> u64 {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| bytes(&entry.path())).sum(),
        Err(_) => fs::metadata(path).map_or(0, |data| data.len()),
    }
}
