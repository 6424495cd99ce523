//! The report and the owner of a file, from its path.
//!
//! ```text
//! ROOT/client-N/{operations,watch}.json         ROOT/server-NAME/member/wal/*.wal      a report
//! ROOT/traffic.json                             ROOT/server-NAME/member/snap/db
//! ROOT/member/{wal/*.wal,snap/db}                                                      a data directory
//! ```

use crate::ingest::detection::format::Format;

/// The directory and the owner of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Root directory of the report or of the data.
    pub root: String,
    /// Owner of the file.
    pub owner: Owner,
    /// Whether the path shows that `root` is a report.
    pub of_report: bool,
}

/// The client or member that a file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A client, by the name of its directory.
    Client(String),
    /// A member of the cluster.
    Member(String),
    /// The report itself.
    Report,
}

/// The place of a file of this format.
pub fn place(path: &str, format: Format) -> Place {
    let (folder, _) = split(path);
    match format {
        Format::EtcdLog | Format::EtcdStore => member(folder),
        Format::EtcdTraffic => Place { root: folder.to_owned(), owner: Owner::Report, of_report: true },
        _ => {
            let (parent, name) = split(folder);
            let of_report = name.starts_with("client-");
            let root = if of_report { parent } else { folder };
            let name = if name.is_empty() { "client" } else { name };
            Place { root: root.to_owned(), owner: Owner::Client(name.to_owned()), of_report }
        }
    }
}

fn member(folder: &str) -> Place {
    let without = |folder, last| match split(folder) {
        (parent, name) if name == last => Some(parent),
        _ => None,
    };
    let inside = without(folder, "wal").or_else(|| without(folder, "snap")).unwrap_or(folder);
    let data = without(inside, "member").unwrap_or(inside);
    let (parent, name) = split(data);
    match name.strip_prefix("server-") {
        Some(member) => Place { root: parent.to_owned(), owner: Owner::Member(member.to_owned()), of_report: true },
        None => {
            let name = if name.is_empty() { "member" } else { name };
            Place { root: data.to_owned(), owner: Owner::Member(name.to_owned()), of_report: false }
        }
    }
}

/// The file that etcd keeps under this name, as a problem names it. A damaged one is missing evidence.
pub fn of_member(path: &str) -> Option<&'static str> {
    let (folder, name) = split(path);
    let (_, folder) = split(folder);
    let numbered = |stem: &str| {
        let (sequence, index) = stem.split_once('-')?;
        let is_number = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_number(sequence) && is_number(index)).then_some(())
    };
    match name.strip_suffix(".wal") {
        Some(stem) if folder == "wal" || numbered(stem).is_some() => Some("a segment of etcd's write-ahead log"),
        None if name == "db" && folder == "snap" => Some("the store of an etcd member"),
        _ => None,
    }
}

/// Directory and file name.
fn split(path: &str) -> (&str, &str) {
    let path = path.trim_end_matches('/');
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((folder, name)) => (folder, name),
        None if path == "." || path == ".." => ("", ""),
        None => ("", path),
    }
}

/// The path and the directories around it, innermost first.
pub fn around(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| (!path.is_empty() && *path != "/").then(|| split(path).0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, format: Format) -> (String, String, bool) {
        let Place { root, owner, of_report } = place(path, format);
        let owner = match owner {
            Owner::Client(name) | Owner::Member(name) => name,
            Owner::Report => String::new(),
        };
        (root, owner, of_report)
    }

    #[test]
    fn paths_say_which_report_and_whose() {
        for (path, format, root, owner, of_report) in [
            ("a/T/17/client-3/operations.json", Format::EtcdOperations, "a/T/17", "client-3", true),
            ("client-3/watch.json", Format::EtcdWatches, "", "client-3", true),
            ("/client-3/watch.json", Format::EtcdWatches, "/", "client-3", true),
            ("x/ops.json", Format::EtcdOperations, "x", "x", false),
            ("ops.json", Format::EtcdOperations, "", "client", false),
            ("r/traffic.json", Format::EtcdTraffic, "r", "", true),
            ("r/server-etcd0:2379/member/wal/0-0.wal", Format::EtcdLog, "r", "etcd0:2379", true),
            ("r/server-a/member/snap/db", Format::EtcdStore, "r", "a", true),
            ("data/member/snap/db", Format::EtcdStore, "data", "data", false),
            ("member/wal/0-0.wal", Format::EtcdLog, "", "member", false),
            ("./member/wal/0-0.wal", Format::EtcdLog, ".", "member", false),
            ("wal/0-0.wal", Format::EtcdLog, "", "member", false),
            ("db", Format::EtcdStore, "", "member", false),
        ] {
            assert_eq!(shown(path, format), (root.to_owned(), owner.to_owned(), of_report), "{path}");
        }
        assert_eq!(around("a/b/c").collect::<Vec<_>>(), ["a/b/c", "a/b", "a", ""]);
        assert_eq!(around("/a").collect::<Vec<_>>(), ["/a", "/"]);
    }
}
