//! A temporary folder of one test.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that is removed on drop.
pub struct Folder(TempDir);

impl Folder {
    /// An empty folder.
    pub fn new() -> Folder {
        Folder(tempfile::Builder::new().prefix("retrograde-").tempdir().expect("there is room for temporary files"))
    }

    /// A folder with copies of the files of another.
    #[allow(dead_code, reason = "not every test does")]
    pub fn copy_of(other: impl AsRef<Path>) -> Folder {
        let folder = Folder::new();
        for entry in fs::read_dir(other).unwrap().flatten() {
            fs::copy(entry.path(), folder.root().join(entry.file_name())).unwrap();
        }
        folder
    }

    /// Its own path.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file or folder in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// The same as a text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}
