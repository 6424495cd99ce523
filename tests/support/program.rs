//! External programs of some tests.

use std::path::PathBuf;

/// A program on the PATH. If it is missing, tests that need it are skipped with a message; if `CI` is set, they fail.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "there is no `{name}` on the PATH");
        eprintln!("skipped: there is no `{name}` on the PATH");
    }
    found
}
