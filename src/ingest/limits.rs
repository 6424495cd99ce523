//! Limits on evidence. They bound memory and time whatever a file holds.
//!
//! `docs/limits.md` has a row for each, with its reason; a test compares both.

/// Bytes of a line or a document. `--memory` may lower it.
pub const LONGEST_LINE: usize = 64 << 20;

/// Factor on [`LONGEST_LINE`] for etcd evidence. In a robustness report one value is a whole watch; a member's file
/// from a stream is read whole.
pub const LONGER_OF_ETCD: usize = 8;

/// Bytes of a name: object, namespace, user, program, key or operation.
pub const LONGEST_NAME: usize = 4 << 10;

/// Bytes of a URI with its query, a continue token, or the labels of an object.
pub const LONGEST_ADDRESS: usize = 64 << 10;

/// Bytes of one declared field of an object.
pub const LONGEST_FIELD: usize = 4 << 20;

/// Limit for texts that are inspected and dropped: the length of their line.
pub const UNLIMITED: usize = usize::MAX;

/// Parts of one value in an operation log, nested ones included.
pub const MOST_PARTS: usize = 1 << 22;

/// Problems kept in full per file; the others are only counted.
pub const KEPT_PROBLEMS_PER_FILE: usize = 20;

/// Problems kept in full per run.
pub const KEPT_PROBLEMS: usize = 10_000;

/// Files of a run, archive members included.
pub const MOST_FILES: usize = 1 << 20;

/// Bytes of the paths of all files of a run.
pub const MOST_PATH_BYTES: usize = 128 << 20;

/// Nested directories.
pub const DEEPEST_DIRECTORY: usize = 256;

/// Files and hard links of an archive.
pub const MOST_MEMBERS: usize = 1 << 18;

/// Bytes of the names of all files and hard links of an archive.
pub const MOST_MEMBER_NAMES: usize = 32 << 20;

/// Bytes of the name of a file in an archive.
pub const LONGEST_MEMBER_NAME: usize = 4 << 10;

/// Bytes of an extended header of an archive.
pub const LONGEST_EXTENDED_HEADER: u64 = 1 << 20;

/// Decompressed bytes that any compressed file may have.
pub const FREE_INFLATION: u64 = 256 << 20;

/// Ratio of decompressed to stored bytes beyond [`FREE_INFLATION`], nested compression included.
pub const MOST_INFLATION: u64 = 200;

/// Envelopes around each other in an export.
pub const DEEPEST_ENVELOPE: usize = 4;

/// Unpacked bytes that any packed record of an export may have. Beyond it, [`MOST_INFLATION`] is the limit.
pub const FREE_RECORD: usize = 1 << 20;

/// Clusters that the envelopes of all files may name.
pub const MOST_CLUSTERS: usize = 64;

/// Base-2 logarithm of the window of a zstd frame, which the decoder keeps in memory.
pub const LARGEST_WINDOW_LOG: u32 = 27;

/// Bytes of one record in an etcd member's log.
pub const LONGEST_LOG_RECORD: u64 = 64 << 20;

/// Bytes of one node in an etcd member's store.
pub const LONGEST_STORE_NODE: u64 = 256 << 20;

/// Bytes of a rules file.
pub const LONGEST_RULES_FILE: u64 = 4 << 20;

/// Bytes of a saved report, as a baseline or for `verify`.
pub const LONGEST_REPORT: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::problem::size;

    const PAGE: &str = include_str!("../../docs/limits.md");

    #[test]
    fn the_page_has_a_row_for_each_limit_with_its_value() {
        let bytes = |bytes: usize| format!("{bytes} bytes");
        let times = |times: usize| format!("{times} times");
        let expected = [
            size(LONGEST_LINE as u64),
            times(LONGER_OF_ETCD) + " a line",
            bytes(LONGEST_NAME),
            bytes(LONGEST_ADDRESS),
            size(LONGEST_FIELD as u64),
            MOST_PARTS.to_string(),
            KEPT_PROBLEMS_PER_FILE.to_string(),
            KEPT_PROBLEMS.to_string(),
            MOST_FILES.to_string(),
            size(MOST_PATH_BYTES as u64),
            DEEPEST_DIRECTORY.to_string(),
            MOST_MEMBERS.to_string(),
            size(MOST_MEMBER_NAMES as u64),
            bytes(LONGEST_MEMBER_NAME),
            size(LONGEST_EXTENDED_HEADER),
            size(FREE_INFLATION),
            times(MOST_INFLATION as usize) + " its size",
            DEEPEST_ENVELOPE.to_string(),
            size(FREE_RECORD as u64),
            MOST_CLUSTERS.to_string(),
            size(1 << LARGEST_WINDOW_LOG),
            size(LONGEST_LOG_RECORD),
            size(LONGEST_STORE_NODE),
            size(LONGEST_RULES_FILE),
            size(LONGEST_REPORT),
        ];
        let rows: Vec<Vec<&str>> = PAGE
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        let (of_containers, of_ingest): (Vec<_>, Vec<_>) =
            rows.iter().skip(2).partition(|row| row[1].contains("of a container"));
        assert_eq!(of_ingest.iter().map(|row| row[2]).collect::<Vec<_>>(), expected);
        assert!(rows.iter().all(|row| row.len() == 6 && row.iter().filter(|cell| cell.is_empty()).count() == 2));
        // An added limit needs a row.
        let limits = include_str!("limits.rs").lines().filter(|line| line.starts_with("pub const "));
        assert_eq!(limits.count(), expected.len() + 1, "UNLIMITED is not a limit");
        #[cfg(feature = "container")]
        {
            use crate::container::{LARGEST, MOST_DENSE};
            let expected = [size(LARGEST as u64), times(MOST_DENSE) + " its stored length"];
            assert_eq!(of_containers.iter().map(|row| row[2]).collect::<Vec<_>>(), expected);
        }
        assert_eq!(of_containers.len(), 2);
    }
}
